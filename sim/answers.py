"""The answer record: little-endian u16 class, u16 flags, i32 margin, i32 total per class."""

import numpy as np

__all__ = ["ERROR", "answer_keep", "answer_size", "answer_type", "decode", "pack"]

ERROR = 1  # flag: the frame was cut short or too long


def answer_size(classes):
    """Bytes of a record."""
    return 4 * (2 + classes)


def answer_keep(classes, lanes):
    """TKEEP of the last beat of a record on a bus of ``lanes`` bytes."""
    return (1 << ((answer_size(classes) - 1) % lanes + 1)) - 1


def _fields(classes):
    return np.dtype([("winner", "<u2"), ("flags", "<u2"), ("margin", "<i4"),
                     ("totals", "<i4", (classes,))])


def decode(data, classes):
    """Fields of packed records uint8 (answers, bytes), and whether the bytes after them are 0."""
    data = np.ascontiguousarray(data)
    size = answer_size(classes)
    fields = np.ascontiguousarray(data[:, :size]).view(_fields(classes))[:, 0]
    return fields, ~data[:, size:].any(axis=1)


def pack(winner, flags, margin, totals):
    """Bytes of one record, without padding."""
    return np.array((winner, flags, margin, totals), _fields(len(totals))).tobytes()


def answer_type(size):
    """What the bulk bench writes per answer of ``size`` bytes.

    Cycles of the frame's first beat, of the answer's first and of its last beat; TUSER; whether the
    number of beats and every TKEEP are right; the bytes.
    """
    return np.dtype([("start", "<u8"), ("first", "<u8"), ("last", "<u8"), ("user", "?"),
                     ("whole", "?"), ("data", "u1", (size,))])
