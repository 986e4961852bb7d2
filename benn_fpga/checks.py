"""Checks that the specification repeats, each with its one message."""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from benn_fpga.errors import BennError

__all__ = ["array", "one_of", "whole"]


def whole(noun: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BennError(f"{noun} must be a whole number from {low} to {high}, not {value!r}")


def array(noun: str, value: object, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise BennError(f"{noun} must be an array of {np.dtype(dtype)} {shape}, not {got}")


def one_of(noun: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise BennError(f"{noun} must be one of {', '.join(known)}, not {value!r}")
