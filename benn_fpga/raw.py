"""Raw values: how somebody's numbers become the bytes that the model, and the hardware, takes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from benn_fpga.checks import one_of
from benn_fpga.errors import BennError
from benn_fpga.presets import FLOAT_SCALES

__all__ = ["SCALES", "Inputs", "check_finite", "scale_for", "wasted"]

SCALES = ("unknown", "bytes", *FLOAT_SCALES)
MAX_NAME = 200  # characters of the name of a class or feature
MAX_NAMES = 1 << 18  # of all names of classes, or of features, as they are in the header of a file
# The axis of (features,) and of (rows, columns, channels) that each scale has ranges along, the
# default of rows and images first.
_AXES: dict[int, dict[str, int | None]] = {1: {"feature": 0, "all": None},
                                           3: {"all": None, "channel": 2, "column": 1}}
FEW_VALUES = 64  # a quarter of what a byte can hold


def scale_for(shape: Sequence[int], scale: str | None = None) -> str:
    """``scale``, or what fits the ``shape`` of a frame if that is None; raise if it does not fit.

    A row of features is scaled feature by feature, an image as a whole.
    """
    if len(shape) not in _AXES:
        raise BennError(f"Frames must be rows of features or images with channels, not of shape "
                        f"{tuple(shape)}")
    fits = tuple(_AXES[len(shape)])
    if scale is None:
        return fits[0]
    if scale not in fits:
        what = "rows of features" if len(shape) == 1 else "images"
        raise BennError(f"`scale` of {what} must be one of {', '.join(fits)}, not {scale!r}")
    return scale


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a model knows of its inputs, beside their shape.

    A float x becomes a byte by the range low..high of the training data::

        byte = floor((min(max(x / 2, low / 2), high / 2) - low / 2) / (high / 2 - low / 2) * 255
                     + 0.5)

    in IEEE double precision, operation by operation as written; an x of single precision is
    widened first. (Halves, since the span of two doubles can exceed a double.) Where high / 2 = low
    / 2 in the training data, high becomes the larger of low + 1 and the next double above low, and
    so low becomes byte 0. (If low is the largest double, low becomes the double below it instead.)

    Parameters
    ----------
    scale : what has a range of its own: ``all`` values together, each ``feature`` of a row, each
        ``channel`` or each ``column`` of an image. ``bytes``: training took bytes as they are;
        ``unknown``: the model does not say
    low, high : float64 (n,), n = 1, features, channels or columns; empty without ranges
    class_names, feature_names : empty if they have none
    """

    scale: str = "unknown"
    low: np.ndarray = field(default_factory=lambda: np.empty(0))
    high: np.ndarray = field(default_factory=lambda: np.empty(0))
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("Scale", self.scale, SCALES)
        for bound in (self.low, self.high):
            if not isinstance(bound, np.ndarray) or bound.dtype != np.float64 or bound.ndim != 1:
                raise BennError("Input ranges must be float64 arrays with one axis")
        if len(self.low) != len(self.high) or bool(len(self.low)) != self.has_range:
            raise BennError(f"Scale {self.scale} cannot have ranges of {len(self.low)} and "
                            f"{len(self.high)} bounds")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()
                and (self.low / 2 < self.high / 2).all()):
            raise BennError("Input ranges must be finite, with low / 2 below high / 2")
        for noun, names in (("Class", self.class_names), ("Feature", self.feature_names)):
            _check_names(noun, names)

    @classmethod
    def of(cls, x: np.ndarray, scale: str | None = None, class_names: Sequence[str] = (),
           feature_names: Sequence[str] = ()) -> Self:
        """The inputs of which ``x`` (frames, *shape) are those of training: floats or bytes."""
        names = tuple(class_names), tuple(feature_names)
        if x.dtype.kind != "f":
            if scale is not None:
                raise BennError(f"`scale` is for floats; the data are {x.dtype}, which are taken "
                                f"as they are")
            return cls("bytes", np.empty(0), np.empty(0), *names)
        scale = scale_for(x.shape[1:], scale)
        low, high = (np.atleast_1d(bound(axis=_others(x, scale))).astype(np.float64)
                     for bound in (x.min, x.max))
        most = np.finfo(np.float64).max
        above = np.maximum(low + 1, np.nextafter(np.minimum(low, np.nextafter(most, 0)), np.inf))
        high = np.where(high / 2 > low / 2, high, above)
        return cls(scale, np.minimum(low, np.nextafter(high, -np.inf)), high, *names)

    @property
    def has_range(self) -> bool:
        """Whether it says how floats become bytes."""
        return self.scale in FLOAT_SCALES

    @property
    def no_range(self) -> str:
        """Why it has no range, in words that follow "the model"."""
        return "was trained on bytes, which are taken as they are" if self.scale == "bytes" else \
            "does not say how floats become bytes"

    @property
    def is_known(self) -> bool:
        """Whether it says anything at all."""
        return self.scale != "unknown" or bool(self.class_names or self.feature_names)

    def check(self, shape: tuple[int, ...], classes: int) -> None:
        """Raise unless this fits frames of ``shape`` and so many classes."""
        if self.has_range:
            scale_for(shape, self.scale)
            _, size = self.range_index(shape)
            if len(self.low) != size:
                raise BennError(f"Ranges by {self.scale} of inputs {shape} must be {size}, not "
                                f"{len(self.low)}")
        for noun, names, size in (("class", self.class_names, classes),
                                  ("feature", self.feature_names, math.prod(shape))):
            if names and len(names) != size:
                raise BennError(f"There must be {size} {noun} names, one for each, "
                                f"not {len(names)}")

    def range_index(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """(stride, n) of frames of ``shape``: value k of one has range ``k // stride % n`` of n."""
        axis = _AXES[len(shape)][self.scale]
        return (1, 1) if axis is None else (math.prod(shape[axis + 1:]), shape[axis])

    def bounds(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """``low`` and ``high`` of each value of a frame of ``shape``."""
        stride, n = self.range_index(shape)
        index = (np.arange(math.prod(shape)) // stride % n).reshape(shape)
        return self.low[index], self.high[index]

    def share_by_range(self, mask: np.ndarray) -> np.ndarray:
        """(n,) share of a mask (frames, *shape) that is set, for each of the n ranges."""
        return np.atleast_1d(mask.mean(axis=_others(mask, self.scale)))

    def range_name(self, n: int) -> str:
        """What range ``n`` is of, in words."""
        if self.scale == "all":
            return "all values"
        named = self.scale == "feature" and self.feature_names
        return f"{self.scale} {n}{f' ({self.feature_names[n]})' if named else ''}"

    def to_bytes(self, x: npt.ArrayLike) -> np.ndarray:
        """Bytes of floats ``x`` (frames, *shape); raise if the model has no range, or x is not
        finite."""
        x = np.asarray(x)
        if not self.has_range:
            raise BennError(f"Inputs must be bytes, not {x.dtype}: the model {self.no_range}")
        check_finite(x, "x")
        low, high = (bound / 2 for bound in self.bounds(x.shape[1:]))
        share = (np.clip(x.astype(np.float64) / 2, low, high) - low) / (high - low)
        return np.floor(share * 255 + 0.5).astype(np.uint8)

    def describe(self) -> dict[str, Any]:
        """All but the ranges, as JSON."""
        return {"scale": self.scale, "class_names": list(self.class_names),
                "feature_names": list(self.feature_names)}

    def name_of(self, label: int) -> str:
        """Name of a class: its number if it has none."""
        return self.class_names[label] if self.class_names else str(label)


def _others(x: np.ndarray, scale: str) -> tuple[int, ...]:
    """Axes of frames ``x`` over which one range reaches."""
    own = _AXES[x.ndim - 1][scale]
    return tuple(axis for axis in range(x.ndim) if own is None or axis != own + 1)


def wasted(inputs: Inputs, x: np.ndarray) -> str | None:
    """What to say of training data whose one range for all leaves most of the bytes unused.

    That is so if half of the features, channels or columns take less than a quarter of 0..255 in
    ``x``, the bytes (frames, *shape) that the floats became. None if all is well.
    """
    if inputs.scale != "all":
        return None
    for scale in (scale for scale, axis in _AXES[x.ndim - 1].items() if axis is not None):
        others = _others(x, scale)
        used = x.max(axis=others).astype(int) - x.min(axis=others) + 1
        if len(used) > 1 and np.median(used) < FEW_VALUES:
            return (f"one range for all values leaves most bits unused: half of the {scale}s take "
                    f"at most {int(np.median(used))} of 256 values; try `scale` {scale}")
    return None


def check_finite(x: np.ndarray, noun: str) -> None:
    """Raise if a value of ``x`` (frames, ...) is not a number that a double can hold."""
    wrong = np.argwhere(~(np.abs(x) <= np.finfo(np.float64).max))
    if len(wrong):
        frame, *where = wrong[0].tolist()
        raise BennError(f"{noun} must be finite, but is {x[tuple(wrong[0])]} in frame {frame} at "
                        f"{', '.join(map(str, where))}; leave such frames out, or fill them in")


def _check_names(noun: str, names: object) -> None:
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise BennError(f"{noun} names must be a tuple of strings")
    for name in names:
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise BennError(f"{noun} name must be 1 to {MAX_NAME} printable characters, "
                            f"not {name[:40]!r}")
    if (size := len(json.dumps(names))) > MAX_NAMES:
        raise BennError(f"{noun} names must have at most {MAX_NAMES} characters in all, not "
                        f"{size}; shorten them, or leave them out")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BennError(f"{noun} names must differ, but {twice!r} is there twice")
