"""How often answers are right, how sure that is, and how many are left if doubtful ones are not
given."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from benn_fpga.errors import BennError, plural

__all__ = ["CONFIDENCE", "Answered", "ClassAccuracy", "Rejection", "by_class", "by_margin",
           "check_rate", "confusion", "interval", "rejection", "within_noise"]

CONFIDENCE = 0.95
POINTS = 101  # of a curve, at most


def interval(right: float, frames: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The share of frames that a classifier gets right may lie anywhere between these two, if it
    got ``right`` of ``frames`` right: the score interval of Wilson (1927)."""
    if not 0 <= right <= frames or not frames:
        raise BennError(f"Right answers must be 0 to the number of frames, at least 1, not {right} "
                        f"of {frames}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = right / frames, z * z / frames
    middle = share + spread / 2
    reach = math.sqrt(spread * (share * (1 - share) + spread / 4))
    low, high = ((middle - reach) / (1 + spread), (middle + reach) / (1 + spread))
    return 0.0 if right == 0 else low, 1.0 if right == frames else high


def within_noise(right: npt.ArrayLike, other: npt.ArrayLike, runs: int = 1) -> bool:
    """Whether two classifiers differ by at most one standard error of their difference, or by at
    most one frame.

    ``right`` and ``other`` say of the same frames in how many of so many ``runs`` each gets them
    right. With d the difference of the two in a frame, that is sum(d)**2 <= sum(d**2); if in one
    run b frames are right by the first alone and c by the second alone, (b - c)**2 <= b + c.
    """
    gaps = np.asarray(right).astype(np.int64) - np.asarray(other)
    return int(gaps.sum()) ** 2 <= max(int((gaps * gaps).sum()), runs * runs)


def confusion(labels: np.ndarray, answers: np.ndarray, classes: int,
              rejected: np.ndarray | None = None) -> np.ndarray:
    """(classes, classes) frames by label, the row, and answer, the column. If some may be
    ``rejected``, these are in one more column, the last."""
    columns = classes
    if rejected is not None:
        columns, answers = classes + 1, np.where(rejected, classes, answers)
    return np.bincount(labels * columns + answers,
                       minlength=classes * columns).reshape(classes, columns)


@dataclass(frozen=True)
class ClassAccuracy:
    """Of the frames of a class: how many there are, are rejected, and are answered right.

    ``accuracy`` is the share of right answers among those that are not rejected, and ``interval``
    is where it lies; both are None if there are none.
    """

    label: int
    name: str
    frames: int
    rejected: int
    right: int
    accuracy: float | None
    interval: tuple[float, float] | None


def by_class(counts: np.ndarray, names: list[str]) -> list[ClassAccuracy]:
    """Accuracy of each class of a :func:`confusion` matrix."""
    answered = counts[:, :len(names)].sum(axis=1).tolist()
    return [ClassAccuracy(label, names[label], frames, frames - left, right,
                          right / left if left else None,
                          interval(right, left) if left else None)
            for label, (right, left, frames) in enumerate(zip(
                counts.diagonal().tolist(), answered, counts.sum(axis=1).tolist(), strict=True))]


@dataclass(frozen=True)
class Answered:
    """What is answered if answers of a smaller ``margin`` are rejected.

    ``coverage`` is the share of frames that is answered, ``accuracy`` the share of those that is
    right.
    """

    margin: int
    answered: int
    wrong: int
    coverage: float
    accuracy: float


def by_margin(margins: np.ndarray, right: np.ndarray, points: int | None = POINTS,
              ) -> list[Answered]:
    """What rejection by each margin that occurs leaves, from the smallest margin on; of many
    margins, ``points`` that are spread evenly."""
    levels, first = np.unique(np.sort(margins), return_index=True)
    chosen = np.arange(len(levels))
    if points is not None and len(levels) > points:
        chosen = np.unique(np.linspace(0, len(levels) - 1, points).round().astype(int))
    wrong_before = np.concatenate([[0], np.cumsum(~right[np.argsort(margins, kind="stable")])])
    frames = len(margins)
    return [Answered(margin, frames - at, wrong, (frames - at) / frames,
                     (frames - at - wrong) / (frames - at))
            for margin, at, wrong in zip(
                levels[chosen].tolist(), first[chosen].tolist(),
                (wrong_before[-1] - wrong_before[first[chosen]]).tolist(), strict=True)]


@dataclass(frozen=True)
class Rejection:
    """A margin to reject by, and what it leaves of the frames that it was chosen on.

    Members
    -------
    wanted : error rate among the answers
    margin : answers of a smaller one are rejected
    frames, answered, wrong : that there were, that are answered, and of these those that are wrong
    """

    wanted: float
    margin: int
    frames: int
    answered: int
    wrong: int

    @property
    def vouched(self) -> float:
        """The error rate if one more answer came, and were wrong."""
        return (self.wrong + 1) / (self.answered + 1)

    @property
    def is_met(self) -> bool:
        """Whether so few are wrong that one more would not exceed what is wanted."""
        return self.vouched <= self.wanted

    @property
    def coverage(self) -> float:
        return self.answered / self.frames

    @property
    def error_interval(self) -> tuple[float, float] | None:
        """Of the error rate among the answers; None if there are none."""
        return interval(self.wrong, self.answered) if self.answered else None

    @property
    def failure(self) -> str | None:
        """Why the wanted rate is not met, in one line, or None."""
        if self.is_met:
            return None
        return (f"an error rate of {100 * self.wanted:g} % cannot be shown with {self.frames} "
                f"validation {plural(self.frames)}: at best {self.wrong} of {self.answered} "
                f"answers are wrong, from margin {self.margin} on, and one more would be "
                f"{math.ceil(1e4 * self.vouched) / 100:.2f} %; ask for that, or use more data")

    def describe(self) -> dict[str, Any]:
        return {**vars(self), "is_met": self.is_met, "coverage": self.coverage,
                "error_interval": self.error_interval}

    def origin(self) -> dict[str, Any]:
        """As in the provenance of a model, which has no floats."""
        return {**vars(self), "wanted": str(self.wanted)}

    @classmethod
    def read(cls, provenance: dict[str, Any]) -> Self | None:
        """What :meth:`origin` put into the ``provenance`` of a model; None if nothing."""
        told = provenance.get("rejection")
        return told and cls(**{**told, "wanted": float(told["wanted"])})


def check_rate(wanted: float) -> None:
    """Raise unless ``wanted`` can be an error rate to reject by."""
    if not 0 < wanted < 1:
        raise BennError(f"Error rate must be above 0 and below 1, not {wanted!r}; 0.01 is 1 %")


def rejection(margins: np.ndarray, right: np.ndarray, wanted: float) -> Rejection:
    """The smallest of these ``margins`` that ``is_met``; else the one that comes nearest.

    Nothing is known of margins between two that occur. A tie, of margin 0, is rejected in any case.
    """
    check_rate(wanted)
    frames = len(margins)
    candidates = [Rejection(wanted, point.margin, frames, point.answered, point.wrong)
                  for point in by_margin(margins, right, None) if point.margin]
    candidates = candidates or [Rejection(wanted, 1, frames, 0, 0)]
    return next((each for each in candidates if each.is_met),
                min(candidates, key=lambda each: each.vouched))
