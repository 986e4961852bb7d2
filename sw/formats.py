"""The file formats of the public data sets, as arrays: idx, CIFAR binary, npz."""

import math
import struct
import tokenize
import zipfile
import zlib

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.inputs import open_regular

__all__ = ["cifar", "idx", "npz"]

_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_RECORD = 1 + math.prod(_CIFAR_SHAPE)
NPZ_KEYS = ("x_train", "y_train", "x_test", "y_test")
NPZ_NAMES = ("class_names", "feature_names")
_AGAIN = "write it with numpy.savez"
# What zipfile and NumPy raise on bytes that are not theirs; their advice is not for our users.
_DAMAGE = (EOFError, KeyError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError,
           struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error)


def idx(content, axes, where):
    """The uint8 array with ``axes`` axes in an idx file."""
    if content[:4] != bytes((0, 0, 8, axes)):
        raise BennError(f"{where} is not an idx file of bytes with {axes} axes; "
                        f"it begins with {content[:4].hex()}")
    header = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[at:at + 4], "big") for at in range(4, header, 4))
    if len(content) != header + math.prod(shape):
        raise BennError(f"{where} has {len(content)} bytes, but its header says "
                        f"{header + math.prod(shape)}; download it again")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def cifar(content, where):
    """Images (frames, 32, 32, 3) and labels of a CIFAR-10 binary batch."""
    if not content or len(content) % _CIFAR_RECORD:
        raise BennError(f"{where} has {len(content)} bytes, not a multiple of {_CIFAR_RECORD}; "
                        f"download it again")
    records = np.frombuffer(content, np.uint8).reshape(-1, _CIFAR_RECORD)
    images = records[:, 1:].reshape(-1, *_CIFAR_SHAPE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, 0]


def npz(path):
    """The four arrays of an ``.npz`` data set, in the order of ``NPZ_KEYS``; and those of
    ``NPZ_NAMES``, as lists of strings."""
    try:
        with open_regular(path) as stream:
            if not zipfile.is_zipfile(stream):
                raise BennError(f"{path} is truncated or not an .npz file; {_AGAIN}")
            stream.seek(0)
            # Never pickles: an .npz is as untrusted as any download.
            with np.load(stream, allow_pickle=False) as file:
                missing = [key for key in NPZ_KEYS if key not in file]
                if missing:
                    raise BennError(f"{path} has no array {missing[0]!r}; it must hold "
                                    f"{', '.join(NPZ_KEYS)}")
                return ([_array(path, file, key) for key in NPZ_KEYS],
                        [_names(path, file, key) for key in NPZ_NAMES])
    except OSError as error:
        raise BennError(f"cannot read {path}: {error.strerror or error}; "
                        f"give a file that numpy.savez wrote") from None
    except _DAMAGE:
        raise BennError(f"{path} is damaged; {_AGAIN}") from None


def _array(path, file, key):
    try:
        array = file[key]
    except _DAMAGE as error:
        if "Object arrays" in str(error):
            raise BennError(f"{path}: {key} must be an array of numbers, not of objects; "
                            f"save it with a number type") from None
        raise BennError(f"{path}: {key} is damaged; {_AGAIN}") from None
    except MemoryError:
        raise BennError(f"{path}: {key} is damaged, or larger than the memory; {_AGAIN}") from None
    if not isinstance(array, np.ndarray):  # NumPy gives a member that is no .npy as bytes
        raise BennError(f"{path}: {key} is not an array; {_AGAIN}")
    return array


def _names(path, file, key):
    if key not in file:
        return []
    names = _array(path, file, key)
    if names.ndim != 1 or names.dtype.kind != "U":
        raise BennError(f"{path}: {key} must be an array of strings with one axis, not "
                        f"{names.dtype} {names.shape}; save np.array([...], str)")
    return names.tolist()
