"""What the members of an ensemble do for its vote."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from benn_fpga import golden
from benn_fpga.spec import Ensemble

__all__ = ["Analysis", "analyse", "curve"]


@dataclass(frozen=True)
class Analysis:
    """Shares of frames, by members in the order in which they vote.

    Members
    -------
    curve : right by the vote of the first 1, 2, ... K members
    chosen : the fewest members whose vote is best; choose it on validation data
    members : right by each member alone
    gain : right by the vote of all, minus that of all others, for each member
    disagreement : (K, K) two members give different classes
    """

    curve: list[float]
    chosen: int
    members: list[float]
    gain: list[float]
    disagreement: list[list[float]]

    @property
    def mean_disagreement(self):
        """Over all pairs; None for one member."""
        k = len(self.members)
        return float(np.sum(self.disagreement)) / (k * (k - 1)) if k > 1 else None

    def describe(self):
        return {**asdict(self), "mean_disagreement": self.mean_disagreement}


def _right(totals, labels):
    return (totals.argmax(axis=-1) == labels).mean(axis=-1)


def curve(model: Ensemble, scores: np.ndarray, labels: np.ndarray) -> list[float]:
    """Share of frames that the first 1, 2, ... K members get right together."""
    totals = golden.ballots(scores, model.vote_weights, model.vote).cumsum(axis=1)
    return _right(totals.transpose(1, 0, 2), labels).tolist()


def analyse(model: Ensemble, x: npt.ArrayLike, labels: np.ndarray) -> Analysis:
    """The :class:`Analysis` of ``model`` on raw values ``x`` and their classes."""
    scores = golden.run(model, x).scores
    votes = golden.ballots(scores, model.vote_weights, model.vote)
    answers = scores.argmax(axis=2)
    totals = votes.sum(axis=1)
    whole = _right(totals, labels)
    along = curve(model, scores, labels)
    without = (totals[:, None] - votes).transpose(1, 0, 2)
    return Analysis(
        curve=along,
        chosen=int(np.argmax(along)) + 1,
        members=(answers.T == labels).mean(axis=1).tolist(),
        gain=(whole - _right(without, labels)).tolist(),
        disagreement=(answers[:, :, None] != answers[:, None, :]).mean(axis=0).tolist(),
    )
