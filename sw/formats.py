"""The file formats of the public data sets, as arrays: idx, CIFAR binary."""

import math

import numpy as np

from benn_fpga.errors import BennError

__all__ = ["cifar", "idx"]

_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_RECORD = 1 + math.prod(_CIFAR_SHAPE)


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
