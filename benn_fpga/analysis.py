"""What the members of an ensemble do for its vote, and how many of them are enough."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benn_fpga import golden
from benn_fpga.accuracy import interval, within_noise
from benn_fpga.errors import plural
from benn_fpga.spec import Ensemble

__all__ = ["Advice", "Analysis", "advise", "analyse", "curve", "right_by_any",
           "right_by_first"]

FEW = 100  # frames; with fewer, one standard error is 2 points or more of an accuracy of 95 %
ORDERS = 50  # in which interchangeable members vote
INTERCHANGEABLE = ("independent", "bagging", "average")  # ensembles, if no member starts as another


@dataclass(frozen=True)
class Advice:
    """How many of the members to take, by frames on which they were not trained.

    Members
    -------
    frames : that it rests on
    orders : of the members, over which it averages; 1 if only the given one makes sense
    curve, intervals : share of the frames that the vote of the first 1, 2, ... members gets right,
        on average over the orders, and its 95 % interval
    best : the fewest members whose vote is best
    chosen : the fewest whose vote is within one standard error of that; see
        :func:`~benn_fpga.accuracy.within_noise`
    """

    frames: int
    orders: int
    curve: list[float]
    intervals: list[tuple[float, float]]
    best: int
    chosen: int

    @property
    def is_within_noise(self) -> bool:
        """Whether more members than ``chosen`` were better, but not by more than noise."""
        return self.chosen < self.best

    @property
    def little(self) -> str | None:
        """That this rests on little data, if so."""
        if self.frames >= FEW:
            return None
        return f"validated on {self.frames} {plural(self.frames)}, too few to drop members by"

    def __str__(self) -> str:
        if self.little and len(self.curve) > 1:
            return f"not known: {self.little}"
        chosen = (f"{self.chosen} {plural(self.chosen, 'member')}: "
                  f"{100 * self.curve[self.chosen - 1]:.2f} %")
        if self.is_within_noise:
            return (f"{chosen}, within noise of the {100 * self.curve[self.best - 1]:.2f} % of "
                    f"{self.best}")
        if len(self.curve) == 1:
            return chosen
        return f"{chosen}; " + ("more are no better" if self.chosen == 1 else
                                "fewer are worse by more than noise")

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "is_within_noise": self.is_within_noise, "text": str(self)}


@dataclass(frozen=True)
class Analysis:
    """Shares of frames, by members in the order in which they vote.

    Members
    -------
    frames : of which they are shares
    curve, intervals : right by the vote of the first 1, 2, ... K members, and its 95 % interval
    members : right by each member alone
    gain : right by the vote of all, minus that of all others, for each member
    disagreement : (K, K) two members give different classes
    advice : how many members to take; None unless the frames are for validation
    """

    frames: int
    curve: list[float]
    intervals: list[tuple[float, float]]
    members: list[float]
    gain: list[float]
    disagreement: list[list[float]]
    advice: Advice | None

    @property
    def mean_disagreement(self) -> float | None:
        """Over all pairs; None for one member."""
        k = len(self.members)
        return float(np.sum(self.disagreement)) / (k * (k - 1)) if k > 1 else None

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "mean_disagreement": self.mean_disagreement,
                "advice": self.advice and self.advice.describe()}


def _right(totals, labels):
    return totals.argmax(axis=-1) == labels


def right_by_first(model: Ensemble, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(K, frames) whether the first 1, 2, ... K members get a frame right together."""
    totals = golden.ballots(scores, model.vote_weights, model.vote).cumsum(axis=1)
    return _right(totals.transpose(1, 0, 2), labels)


def curve(model: Ensemble, scores: np.ndarray, labels: np.ndarray) -> list[float]:
    """Share of frames that the first 1, 2, ... K members get right together."""
    return right_by_first(model, scores, labels).mean(axis=1).tolist()


def right_by_any(model: Ensemble, scores: np.ndarray, labels: np.ndarray,
                 ) -> tuple[np.ndarray, int]:
    """(K, frames) in how many orders of the members the first 1, 2, ... K get a frame right; and of
    how many. Members that were trained alike vote in 50 orders, others in the one that they have:
    which of them come first is then no accident.
    """
    count, told = len(model.members), model.provenance
    orders = [np.arange(count)]
    if count > 1 and told.get("ensemble") in INTERCHANGEABLE and told.get("schedule") != "seq":
        rng = np.random.RandomState(0)  # its numbers are the same under every version of NumPy
        orders += [rng.permutation(count) for _ in range(ORDERS - 1)]
    votes = golden.ballots(scores, model.vote_weights, model.vote).transpose(1, 0, 2)
    right = np.zeros((count, len(labels)), np.int64)
    for order in orders:
        right += _right(votes[order].cumsum(axis=0), labels)
    return right, len(orders)


def advise(right: np.ndarray, orders: int = 1) -> Advice:
    """The :class:`Advice` of frames that the first 1, 2, ... members get ``right`` (K, frames), in
    so many of the ``orders``."""
    correct, frames = right.sum(axis=1) / orders, right.shape[1]
    best = int(correct.argmax())
    chosen = next(k for k in range(best + 1) if within_noise(right[best], right[k], orders))
    return Advice(frames, orders, (correct / frames).tolist(), _intervals(correct, frames),
                  best + 1, chosen + 1)


def _intervals(correct, frames):
    return [interval(count, frames) for count in correct.tolist()]


def analyse(model: Ensemble, x: npt.ArrayLike, labels: np.ndarray, advice: bool = True) -> Analysis:
    """The :class:`Analysis` of ``model`` on raw values ``x`` and their classes.

    ``advice``: whether to advise how many members to take. By test data it must not be.
    """
    scores = golden.run(model, x).scores
    votes = golden.ballots(scores, model.vote_weights, model.vote)
    answers = scores.argmax(axis=2)
    totals = votes.sum(axis=1)
    right = right_by_first(model, scores, labels)
    frames = len(labels)
    without = (totals[:, None] - votes).transpose(1, 0, 2)
    return Analysis(
        frames=frames,
        curve=right.mean(axis=1).tolist(),
        intervals=_intervals(right.sum(axis=1), frames),
        members=(answers.T == labels).mean(axis=1).tolist(),
        gain=(right[-1].mean() - _right(without, labels).mean(axis=-1)).tolist(),
        disagreement=(answers[:, :, None] != answers[:, None, :]).mean(axis=0).tolist(),
        advice=advise(*right_by_any(model, scores, labels)) if advice else None,
    )
