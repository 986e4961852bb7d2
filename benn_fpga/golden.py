"""The golden model: what the hardware must compute, on packed words, in plain NumPy.

Everything follows from one formula (bits.py says what a plane is)::

    dot(w, x) = sum over i < q, j < p of 2**(i+j) * (2*popcount(xnor(w_i, x_j)) - n)

and ``popcount(xnor(a, b)) = n - popcount(a ^ b)``, in which the zero bits past the end of a packed
vector cancel.
"""

from dataclasses import dataclass

import numpy as np

from benn_fpga import bits
from benn_fpga.errors import BennError

__all__ = ["Result", "activate", "check_input", "dense", "encode", "member_scores", "run", "vote"]

_CHUNK_WORDS = 1 << 22  # words of scratch memory in one step


@dataclass(frozen=True, eq=False)
class Result:
    """What :func:`run` returns; F frames, K members, C classes.

    Members
    -------
    classes, margins : (F,) winner, and its total minus the runner-up's
    totals : (F, C) the vote
    scores : (F, K, C) of each member
    encoded : codes (F, elements) that the first layer read, or None
    activations : per member, per hidden layer, codes (F, outputs), or None
    """

    classes: np.ndarray
    margins: np.ndarray
    totals: np.ndarray
    scores: np.ndarray
    encoded: np.ndarray | None = None
    activations: tuple[tuple[np.ndarray, ...], ...] | None = None

    @property
    def member_classes(self):
        """(F, K) each member's own answer."""
        return self.scores.argmax(axis=2)


def check_input(encoder, x):
    """Raw values as uint8 (frames, values); raise if they can not be streamed to this encoder."""
    x = np.asarray(x)
    if x.dtype.kind not in "iu":
        raise BennError(f"Inputs must be integers in 0..{(1 << encoder.bits) - 1}, not {x.dtype}")
    if x.shape[1:] not in (encoder.shape, (encoder.values,)):
        raise BennError(f"Inputs must have shape (frames, {', '.join(map(str, encoder.shape))}), "
                        f"not {x.shape}")
    if x.size and (x.min() < 0 or x.max() >> encoder.bits):
        raise BennError(f"Inputs must lie in 0..{(1 << encoder.bits) - 1}, "
                        f"but range from {x.min()} to {x.max()}; scale them as in training")
    return x.reshape(len(x), -1).astype(np.uint8)


def encode(encoder, x):
    """Codes (frames, elements) of raw values (frames, values)."""
    if encoder.kind == "planes":
        return x.astype(np.uint8)
    codes = x[:, :, None].astype(np.int32) >= encoder.thresholds[None]
    return codes.reshape(len(x), -1).astype(np.uint8)


def dense(layer, weights, codes):
    """Sums ``s`` (frames, outputs) of a layer for input codes (frames, inputs)."""
    q, p, n = layer.weight_bits, layer.input_bits, layer.inputs
    sums = np.empty((len(codes), layer.outputs), np.int64)
    step = max(1, _CHUNK_WORDS // (layer.outputs * bits.words(n)))
    for at in range(0, len(codes), step):
        x = bits.planes(codes[at:at + step], p)
        s = 0
        for i in range(q):
            for j in range(p):
                differ = np.bitwise_count(weights[None, :, i] ^ x[:, None, j]).sum(-1, np.int64)
                s = s + (1 << (i + j)) * (2 * (n - differ) - n)
        sums[at:at + step] = s
    return sums


def activate(thresholds, sums):
    """Codes: how many of the output's thresholds its sum reaches."""
    codes = np.zeros(sums.shape, np.uint8)
    for level in thresholds.T:
        codes += sums >= level
    return codes


def member_scores(model, k, codes):
    """Scores (frames, classes) of member ``k`` and its hidden activations."""
    member, hidden = model.members[k], []
    for layer, weights, table in zip(model.layers, member.weights, member.tables, strict=True):
        sums = dense(layer, weights, codes)
        if layer.is_scores:
            return sums + table, tuple(hidden)
        codes = activate(table, sums)
        hidden.append(codes)
    raise AssertionError("the last layer of an Ensemble gives scores")


def vote(model, scores):
    """Classes, margins and totals of the vote over ``scores`` (frames, members, classes).

    Every tie goes to the lowest class index: ``argmax`` returns the first maximum.
    """
    weights = np.array([m.vote_weight for m in model.members], np.int64)
    if model.vote == "hard":
        scores = scores.argmax(axis=2)[:, :, None] == np.arange(model.classes)
    totals = (scores * weights[:, None]).sum(axis=1)
    classes = totals.argmax(axis=1)
    best_two = np.sort(totals, axis=1)[:, -2:]
    return classes, best_two[:, 1] - best_two[:, 0], totals


def run(model, x, trace=False):
    """Run the ensemble on raw values ``x`` (frames, ...); ``trace`` keeps every intermediate."""
    codes = encode(model.encoder, check_input(model.encoder, x))
    scores, hidden = [], []
    for k in range(len(model.members)):
        s, h = member_scores(model, k, codes)
        scores.append(s)
        hidden.append(h)
    scores = np.stack(scores, axis=1)
    classes, margins, totals = vote(model, scores)
    if not trace:
        return Result(classes, margins, totals, scores)
    return Result(classes, margins, totals, scores, codes, tuple(hidden))
