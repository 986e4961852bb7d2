"""Batch normalisation and activation folded into integer thresholds, exactly, and proved.

A layer's float activation is ``y = (s - mean) * scale + beta`` with ``scale = gamma / sigma``, and
its output code is the number of bounds that ``y`` reaches; :func:`bounds` lists them. In integers
that is the number of thresholds that ``s`` reaches.
"""

from fractions import Fraction
from math import ceil

import numpy as np

from benn_fpga.errors import BennError

__all__ = ["bounds", "fold", "prove"]

_CELLS = 1 << 21  # comparisons made in one step


def bounds(levels):
    """The values of ``y`` between neighbouring output values: 0 for one bit, -2, 0, 2 for two."""
    return tuple(2 * k - (levels - 1) for k in range(levels))


def fold(layer, mean, scale, beta):
    """Thresholds int32 (outputs, levels) of ``layer``, and which outputs are flipped.

    An output with negative scale is computed with complemented weights, whose sum is ``-s``, so
    that hardware only ever compares with >=: the caller must complement them where ``flip``.
    """
    limit = layer.max_sum
    thresholds = np.empty((layer.outputs, layer.levels), np.int32)
    for n, (m, g, b) in enumerate(zip(mean, scale, beta, strict=True)):
        m, g, b = Fraction(float(m)), Fraction(float(g)), Fraction(float(b))
        for k, bound in enumerate(bounds(layer.levels)):
            if g == 0:
                t = -limit if b >= bound else limit + 1
            else:
                crossing = m + (bound - b) / g
                t = ceil(crossing if g > 0 else -crossing)
            thresholds[n, k] = min(max(t, -limit), limit + 1)
    return thresholds, np.asarray(scale) < 0


def prove(layer, thresholds, flip, activation, where="layer"):
    """Compare the thresholds with ``activation`` on every sum that ``layer`` can produce.

    ``activation(s)`` is the trained layer: for sums int64 (values, 1) it returns the codes
    (values, outputs). Raises :class:`BennError` naming the first sum and output that differ.
    Returns how many comparisons were made.
    """
    limit = layer.max_sum
    step = 2 * max(1, _CELLS // thresholds.size)
    for start in range(-limit, limit + 1, step):
        sums = np.arange(start, min(start + step, limit + 1), 2, dtype=np.int64)[:, None]
        expected = np.asarray(activation(sums))
        seen = np.where(flip, -sums, sums)
        codes = (seen[:, :, None] >= thresholds).sum(axis=2)
        wrong = np.argwhere(codes != expected)
        if len(wrong):
            row, n = wrong[0]
            raise BennError(f"{where}: output {n} at sum {sums[row, 0]} folds to code "
                            f"{codes[row, n]}, but training computes {expected[row, n]}")
    return (limit + 1) * layer.outputs
