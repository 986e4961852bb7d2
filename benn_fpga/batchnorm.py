"""Batch normalisation and activation absorbed into integer thresholds, exactly, and proved.

A layer's float activation is ``y = (v - mean) * scale + beta`` with ``scale = gain / sigma``, and
its output code is the number of bounds that ``y`` reaches; :func:`bounds` lists them. ``v`` is

* the sum ``s`` itself, or in the recipe ``paper`` ``relu(alpha * s + bias)``;
* behind a pool of such ReLUs ``(alpha * S + bias * m) / taps``, S the sum of the m taps that are
  active, those with ``alpha * s + bias > 0``.

In integers that is the number of thresholds that ``s``, or ``S``, reaches.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from benn_fpga.errors import BennError

__all__ = ["absorb", "absorb_pool", "bounds", "prove"]

_CELLS = 1 << 15  # comparisons made in one step: what they need stays in the cache
_EXHAUST = 1 << 27  # comparisons up to which every sum is tried
_FEW = 8  # thresholds up to which trying each is faster than a search


def bounds(levels: int) -> tuple[int, ...]:
    """The values of ``y`` between neighbouring output values: 0 for one bit, -2, 0, 2 for two."""
    return tuple(2 * k - (levels - 1) for k in range(levels))


def _fractions(*constants: np.ndarray) -> Iterator[tuple[Fraction, ...]]:
    """Per channel, its constants as exact numbers."""
    return zip(*([Fraction(float(c)) for c in array] for array in constants), strict=True)


def _clip(t: int, limit: int) -> int:
    return min(max(t, -limit), limit + 1)


def _reached(always: bool, limit: int) -> int:
    """The threshold that every sum reaches, or none."""
    return -limit if always else limit + 1


def absorb(limit: int, levels: int, mean: np.ndarray, scale: np.ndarray, beta: np.ndarray,
           alpha: np.ndarray | None = None, bias: np.ndarray | None = None,
           ) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds int32 (channels, levels) on sums in ±limit, and which channels are flipped.

    A channel with negative scale is computed with complemented weights, whose sum is ``-s``, so
    that hardware only ever compares with >=: the caller must complement them where ``flip``. With
    ``alpha`` and ``bias`` the sum goes through a ReLU first; scale must then not be negative.
    """
    thresholds = np.empty((len(mean), levels), np.int32)
    flip = np.asarray(scale) < 0
    if alpha is None:
        for n, (m, g, b) in enumerate(_fractions(mean, scale, beta)):
            for k, bound in enumerate(bounds(levels)):
                if g == 0:
                    thresholds[n, k] = _reached(b >= bound, limit)
                else:
                    crossing = m + (bound - b) / g
                    thresholds[n, k] = _clip(ceil(crossing if g > 0 else -crossing), limit)
        return thresholds, flip
    assert bias is not None  # it comes with alpha
    for n, (m, g, b, a, c) in enumerate(_fractions(mean, scale, beta, alpha, bias)):
        for k, bound in enumerate(bounds(levels)):
            thresholds[n, k] = _through_relu(limit, bound, m, g, b, a, c)
    return thresholds, flip


def _through_relu(limit: int, bound: int, m: Fraction, g: Fraction, b: Fraction, a: Fraction,
                  c: Fraction) -> int:
    _check_signs(g, a)
    if g == 0:
        return _reached(b >= bound, limit)
    crossing = m + (bound - b) / g
    if crossing <= 0:
        return -limit  # no ReLU is below zero
    if a == 0:
        return _reached(c >= crossing, limit)
    return _clip(ceil((crossing - c) / a), limit)


def _check_signs(g: Fraction, a: Fraction) -> None:
    if g < 0 or a < 0:
        raise BennError(f"Gain and scale must not be negative behind a ReLU, not "
                        f"{float(g)} and {float(a)}")


def absorb_pool(limit: int, levels: int, taps: int, mean: np.ndarray, scale: np.ndarray,
                beta: np.ndarray, alpha: np.ndarray, bias: np.ndarray,
                ) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds int32 (channels, taps + 1, levels) on ``S``, by m, and ``active`` (channels,).

    ``limit`` is that of one tap.
    """
    reach = taps * limit
    thresholds = np.empty((len(mean), taps + 1, levels), np.int32)
    active = np.empty(len(mean), np.int32)
    for n, (m, g, b, a, c) in enumerate(_fractions(mean, scale, beta, alpha, bias)):
        _check_signs(g, a)
        active[n] = _reached(c > 0, limit) if a == 0 else _clip(floor(-c / a) + 1, limit)
        for k, bound in enumerate(bounds(levels)):
            for count in range(taps + 1):
                if g == 0:
                    t = _reached(b >= bound, reach)
                else:
                    rest = taps * (m + (bound - b) / g) - count * c
                    t = _reached(rest <= 0, reach) if a == 0 else _clip(ceil(rest / a), reach)
                thresholds[n, count, k] = t
    return thresholds, active


def prove(limit: int, thresholds: np.ndarray, activation: Callable[[np.ndarray], npt.ArrayLike], *,
          flip: bool | np.ndarray = False, step: int = 2, where: str = "layer") -> int:
    """Compare thresholds (channels, levels) with ``activation`` on every sum that can occur.

    ``activation(s)`` is the trained layer: for sums int64 (values, 1) it returns the codes
    (values, channels). Sums are ``-limit, -limit + step, ..., limit``; where they are so many that
    trying all would take minutes, those on both sides of every threshold are tried, and both ends:
    as neither side ever falls from one sum to the next, that decides all between. Raises
    :class:`BennError` naming the first sum and channel that differ. Returns the comparisons made.
    """
    made = 0
    for sums in _sums(limit, thresholds, flip, step):
        expected = np.asarray(activation(sums))
        seen = np.where(flip, -sums, sums)
        codes = _codes(thresholds, np.broadcast_to(seen, expected.shape))
        wrong = codes != expected
        if wrong.any():
            row, n = np.argwhere(wrong)[0]
            raise BennError(f"{where}: output {n} at sum {sums[row, 0]} becomes code "
                            f"{codes[row, n]}, but training computes {expected[row, n]}")
        made += codes.size
    return made


def _codes(thresholds: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """How many of its channel's thresholds each of ``sums`` (values, channels) reaches."""
    if thresholds.shape[1] > _FEW:
        return np.stack([np.searchsorted(t, s, side="right")
                         for t, s in zip(thresholds, sums.T, strict=True)], axis=1)
    codes = np.zeros(sums.shape, np.uint8)
    for level in thresholds.T:
        codes += sums >= level
    return codes


def _sums(limit: int, thresholds: np.ndarray, flip: bool | np.ndarray, step: int,
          ) -> Iterator[np.ndarray]:
    """The sums to try, some at a time, int64 (values, 1)."""
    rows = max(1, _CELLS // len(thresholds))
    count = 2 * limit // step + 1
    if count * len(thresholds) <= _EXHAUST:
        for start in range(0, count, rows):
            yield (np.arange(start, min(start + rows, count), dtype=np.int64) * step
                   - limit)[:, None]
        return
    edges = np.where(np.reshape(flip, (-1, 1)), -thresholds.astype(np.int64), thresholds)
    steps = (edges.ravel() + limit) // step
    steps = np.unique(np.concatenate([steps - 1, steps, steps + 1, [0, count - 1]]))
    steps = steps[(steps >= 0) & (steps < count)]
    for start in range(0, len(steps), rows):
        yield (steps[start:start + rows] * step - limit)[:, None]
