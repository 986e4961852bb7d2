"""Boosting: what each scheme makes of a member's mistakes, and votes as whole numbers.

With w the weights of the frames, of any sum, M frames, C classes, e the share of the weight that a
member misses and m = +1 where it misses, else -1:

=======  ==================================  ==================================================
scheme   vote                                weights for the next member
=======  ==================================  ==================================================
boost-a  ``1/2 ln((1 - e) / e)``             ``w * exp(vote * m)``: AdaBoost.M1
boost-b  the same                            ``1 / ((1/w - 1) * exp(-vote * m) + 1)``
boost-c  the same                            ``1 - u``, where ``u = (1 - w) * exp(-vote * m)``
                                             is scaled to the sum M / 10
boost-d  ``0.1 (ln((1 - e) / e)              ``w * exp(vote * m)``: SAMME, shrunk
         + ln(C - 1))``
=======  ==================================  ==================================================

LogitBoost (Friedman, Hastie and Tibshirani, 2000) fits each member to the Newton step of the log
loss instead, by least squares.
"""

import math

import numpy as np

from benn_fpga import golden

__all__ = ["add", "chance", "decide", "integer_votes", "log_loss", "newton", "step"]

SAMME_SHRINKAGE = 0.1
LOGIT_SHRINKAGE = 0.25  # 0.1, 0.25, 0.5 and 1 tried on digits, with 0 to 2 hidden layers
MARGIN = 1e-3  # the error rate is kept this far from 0 and from chance
VOTE_BITS = (6, 10)  # from, to
MAX_RESPONSE = 4.0  # of a Newton step
TINY = 1e-300  # a weight that is divided by


def chance(scheme, classes):
    """The error rate from which a member of ``scheme`` has no vote."""
    return 1 - 1 / classes if scheme == "boost-d" else 1 / 2


def step(scheme, weights, missed, classes):
    """Error rate and vote of a member, and the weights of the frames for the next one.

    ``weights`` are not negative, ``missed`` marks the frames that the member gets wrong.
    """
    error = float(weights[missed].sum() / weights.sum())
    rate = min(max(error, MARGIN), chance(scheme, classes) - MARGIN)
    odds = math.log((1 - rate) / rate)
    vote = SAMME_SHRINKAGE * (odds + math.log(classes - 1)) if scheme == "boost-d" else odds / 2
    rise = np.exp(np.where(missed, vote, -vote))
    if scheme == "boost-b":
        return error, vote, 1 / ((1 / weights.clip(min=TINY) - 1) / rise + 1)
    if scheme == "boost-c":
        rest = (1 - weights) / rise
        return error, vote, (1 - rest * (len(rest) / 10 / rest.sum())).clip(min=0)
    weights = weights * rise
    return error, vote, weights / weights.sum()


def newton(logits, y):
    """Targets and weights (frames, classes) of the next member of LogitBoost.

    ``(t - p) / (p * (1 - p))``, kept in ±MAX_RESPONSE, and ``p * (1 - p)``, of mean 1; t is 1 for
    the class of the frame, else 0, and p the softmax of ``logits``.
    """
    p = _softmax(logits)
    true = np.arange(logits.shape[1]) == y[:, None]
    weights = (p * (1 - p)).clip(min=1e-12)
    targets = np.where(true, 1 / p.clip(min=1e-12), -1 / (1 - p).clip(min=1e-12))
    return targets.clip(-MAX_RESPONSE, MAX_RESPONSE), weights / weights.mean()


def add(logits, scores, shrinkage=LOGIT_SHRINKAGE):
    """``logits`` after a member whose scaled scores are ``scores``, both (frames, classes)."""
    classes = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    return logits + shrinkage * (classes - 1) / classes * centred


def log_loss(logits, y):
    """Mean of ``-ln(p)`` of the true class."""
    return float(-np.log(_softmax(logits)[np.arange(len(y)), y].clip(min=1e-300)).mean())


def _softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def decide(scores, votes, vote):
    """Classes by the vote over ``scores`` (frames, members, classes), each member's ``votes``."""
    return golden.ballots(scores, votes, vote).sum(axis=1).argmax(axis=1)


def integer_votes(votes, scores, vote, most):
    """``round(2**f * vote / largest vote)`` of each member, and how many decisions that changes.

    f is the smallest of 6..10 that changes the fewest decisions on ``scores``; smaller only if the
    sum of the votes would exceed ``most``. One member alone has the vote 1.
    """
    if len(votes) == 1:
        return [1], 0
    exact = decide(scores, votes, vote)
    tried = []
    low, high = VOTE_BITS
    for bits in range(high, -1, -1):
        whole = [round((1 << bits) * v / max(votes)) for v in votes]
        if sum(whole) <= most and (bits >= low or not tried):
            changed = int((decide(scores, whole, vote) != exact).sum())
            tried.append((changed, bits, whole))
    changed, _, whole = min(tried)
    return whole, changed
