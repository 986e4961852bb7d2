"""Boost-D: SAMME with shrinkage, reweighting by sampling, integer vote weights."""

import math

import numpy as np

__all__ = ["SHRINKAGE", "VOTE_BITS", "integer_votes", "samme"]

SHRINKAGE = 0.1
VOTE_BITS = 6
MARGIN = 1e-3  # the error rate is kept this far from 0 and from chance


def samme(weights, missed, classes, shrinkage=SHRINKAGE):
    """The vote ``alpha`` of a member and the sample weights for the next one.

    ``weights`` sum to 1, ``missed`` marks the frames that the member gets wrong; e is the weight of
    those. ``alpha = shrinkage * (ln((1 - e) / e) + ln(classes - 1))``, and weights are multiplied
    by ``exp(alpha)`` where missed and ``exp(-alpha)`` elsewhere. A member no better than chance
    gets next to no vote, and the weights start again from equal ones.
    """
    chance = 1 - 1 / classes
    error = float(weights[missed].sum())
    clamped = min(max(error, MARGIN), chance - MARGIN)
    alpha = shrinkage * (math.log((1 - clamped) / clamped) + math.log(classes - 1))
    if error >= chance:
        return alpha, np.full(len(weights), 1 / len(weights))
    weights = weights * np.exp(np.where(missed, alpha, -alpha))
    return alpha, weights / weights.sum()


def integer_votes(alphas):
    """``round(2**VOTE_BITS * alpha / largest alpha)`` of each member."""
    return [round((1 << VOTE_BITS) * alpha / max(alphas)) for alpha in alphas]
