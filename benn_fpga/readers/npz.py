"""``.npz`` and ``.npy`` files as arrays, never as objects: any file is untrusted."""

import struct
import tokenize
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.regular import open_regular

__all__ = ["NAMES", "PARTS", "Npz", "opened", "read_npy"]

PARTS = ("x_train", "y_train", "x_test", "y_test")  # what training takes
NAMES = ("class_names", "feature_names")
_AGAIN = "write it with numpy.save"
# What zipfile and NumPy raise on bytes that are not theirs; their advice is not for our users.
_DAMAGE = (EOFError, KeyError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError,
           struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error)


class Npz:
    """An open ``.npz`` file; ``key in npz`` tells whether it has an array of that name."""

    def __init__(self, path, file):
        self._path = path
        self._file = file

    def __contains__(self, key):
        return key in self._file

    def require(self, keys):
        """Raise unless the file has all of ``keys``."""
        missing = [key for key in keys if key not in self]
        if missing:
            raise BennError(f"{self._path} has no array {missing[0]!r}; it must hold "
                            f"{', '.join(keys)}")

    def array(self, key):
        """The array called ``key``, which is there."""
        path = self._path
        try:
            array = self._file[key]
        except _DAMAGE as error:
            if "Object arrays" in str(error):
                what, cure = "numbers", "with a number type"
                if key in NAMES:
                    what, cure = "text", "as text: np.array(names, str)"
                elif key.startswith("y"):
                    cure += ", or text as str"
                raise BennError(f"{path}: {key} must be an array of {what}, not of objects; "
                                f"save it {cure}") from None
            raise BennError(f"{path}: {key} is damaged; {_AGAIN}z") from None
        except MemoryError:
            raise BennError(f"{path}: {key} is damaged, or larger than the memory; "
                            f"{_AGAIN}z") from None
        if not isinstance(array, np.ndarray):  # NumPy gives a member that is no .npy as bytes
            raise BennError(f"{path}: {key} is not an array; {_AGAIN}z")
        return array

    def names(self, key):
        """The list of strings called ``key``; empty if it is not there."""
        if key not in self:
            return []
        names = self.array(key)
        if names.ndim != 1 or names.dtype.kind != "U":
            raise BennError(f"{self._path}: {key} must be an array of strings with one axis, not "
                            f"{names.dtype} {names.shape}; save np.array([...], str)")
        return names.tolist()

    def check_names(self, key, known):
        """Raise if the file has names called ``key`` that are not ``known``; there may be none."""
        given = self.names(key)
        if not given or not known or tuple(given) == tuple(known):
            return
        n = next(n for n in range(len(given) + 1) if tuple(given[:n + 1]) != tuple(known[:n + 1]))
        theirs, ours = (repr(each[n]) if n < len(each) else "nothing" for each in (given, known))
        raise BennError(f"{self._path}: {key} must be those of the model, but number {n} is "
                        f"{theirs}, not {ours}")


@contextmanager
def opened(path):
    """The :class:`Npz` at ``path``."""
    with _words(path, "z"), open_regular(path) as stream:
        if not zipfile.is_zipfile(stream):
            raise BennError(f"{path} is truncated or not an .npz file; {_AGAIN}z")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as file:
            yield Npz(path, file)


def read_npy(path):
    """The array in the ``.npy`` file at ``path``."""
    with _words(path, ""), open_regular(path) as stream:
        magic = stream.read(6)
        if magic != b"\x93NUMPY":
            raise BennError(f"{path} is truncated or not an .npy file; {_AGAIN}")
        stream.seek(0)
        return np.load(stream, allow_pickle=False)


@contextmanager
def _words(path, letter):
    """What goes wrong with a file that numpy.save, or savez if ``letter`` is z, wrote."""
    try:
        yield
    except OSError as error:
        raise BennError(f"cannot read {path}: {error.strerror or error}; "
                        f"give a file that numpy.save{letter} wrote") from None
    except MemoryError:
        raise BennError(f"{path} is damaged, or larger than the memory; "
                        f"{_AGAIN}{letter}") from None
    except _DAMAGE:
        objects = "" if letter else ", or holds objects"
        raise BennError(f"{path} is damaged{objects}; {_AGAIN}{letter}") from None
