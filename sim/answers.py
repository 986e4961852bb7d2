"""What the bulk bench writes about an answer; the record itself is in plan/answer.py."""

import numpy as np

__all__ = ["answer_type"]


def answer_type(size):
    """The type of what is written per answer of ``size`` bytes.

    Cycles of the frame's first beat, of the answer's first and of its last beat; TUSER; whether the
    number of beats and every TKEEP are right; the bytes.
    """
    return np.dtype([("start", "<u8"), ("first", "<u8"), ("last", "<u8"), ("user", "?"),
                     ("whole", "?"), ("data", "u1", (size,))])
