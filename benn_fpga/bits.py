"""Bit order, decided here and nowhere else.

A vector of ``n`` elements is stored with element 0 in the least significant bit. An image is the
vector of its elements in the order row, column, channel, with the channel fastest::

    pixel (row 0, col 0)      pixel (row 0, col 1)          pixel (row 1, col 0)
    ch 0   ch 1   ch 2        ch 0   ch 1   ch 2     ...    ch 0   ch 1   ch 2     ...
    [0]    [1]    [2]         [3]    [4]    [5]             [3*W]  [3*W+1] ...

An element of ``p`` bits is the unsigned integer ``u`` of those bits and stands for the odd integer
``2*u - (2**p - 1)``, so one bit is -1 (0) or +1 (1). There are two layouts of such a vector:

*planes*, for NumPy and for the model file: plane ``j`` holds bit ``j`` of every element, and
element ``e`` is bit ``e % 64`` of 64-bit word ``e // 64``; bits past the end are 0.

*stream*, for hardware: elements side by side, each with its own bits together, so bit ``j`` of
element ``e`` is bit ``e*p + j`` of the vector. A thermometer code is ``levels`` one-bit elements
per value, lowest threshold first.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["WORD", "pack", "planes", "stream_words", "unpack", "unplanes", "value", "words"]

WORD = 64


def words(n: int) -> int:
    """Number of 64-bit words that hold ``n`` bits."""
    return -(-n // WORD)


def value(u: npt.ArrayLike, p: int) -> np.ndarray:
    """The odd integers that the ``p``-bit codes ``u`` stand for."""
    return 2 * np.asarray(u, np.int64) - ((1 << p) - 1)


def pack(bits: npt.ArrayLike) -> np.ndarray:
    """Pack the last axis of an array of 0 and 1 into uint64 words."""
    bits = np.asarray(bits, np.uint8)
    n = bits.shape[-1]
    padded = np.zeros((*bits.shape[:-1], words(n) * WORD), np.uint8)
    padded[..., :n] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8")


def unpack(packed: npt.ArrayLike, n: int) -> np.ndarray:
    """Inverse of :func:`pack`: the first ``n`` bits of the last axis, as uint8."""
    as_bytes = np.ascontiguousarray(packed, "<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, count=n, bitorder="little")


def planes(u: npt.ArrayLike, p: int) -> np.ndarray:
    """Pack codes ``u[..., n]`` of ``p`` bits into planes ``[..., p, words(n)]``."""
    u = np.asarray(u)
    return pack((u[..., None, :] >> np.arange(p, dtype=u.dtype)[:, None]) & 1)


def unplanes(packed: npt.ArrayLike, n: int) -> np.ndarray:
    """Inverse of :func:`planes`: codes ``[..., n]`` as int64."""
    bits = unpack(packed, n).astype(np.int64)
    p = bits.shape[-2]
    return (bits << np.arange(p)[:, None]).sum(axis=-2)


def stream_words(u: npt.ArrayLike, p: int) -> list[int]:
    """Codes ``u[rows, n]`` of ``p`` bits as one Python integer per row, in stream layout."""
    u = np.asarray(u, np.int64)
    bits = (u[:, :, None] >> np.arange(p)) & 1
    rows = np.packbits(bits.reshape(len(u), -1).astype(np.uint8), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in rows]
