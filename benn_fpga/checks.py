"""Checks that the specification repeats, each with its one message."""

import numpy as np

from benn_fpga.errors import BennError

__all__ = ["array", "one_of", "whole"]


def whole(noun, value, low, high):
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BennError(f"{noun} must be a whole number from {low} to {high}, not {value!r}")


def array(noun, value, shape, dtype):
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise BennError(f"{noun} must be an array of {np.dtype(dtype)} {shape}, not {got}")


def one_of(noun, value, known):
    if value not in known:
        raise BennError(f"{noun} must be one of {', '.join(known)}, not {value!r}")
