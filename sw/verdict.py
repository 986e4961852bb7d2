"""Whether a difference is conclusive: paired values of the same seeds, by a one-sided t test."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Gap", "best", "every", "gap"]

LEVEL = 0.05  # chance to see a difference where there is none


@dataclass(frozen=True)
class Gap:
    """By how much one thing exceeds another: mean, and its standard error (None for one seed)."""

    mean: float
    error: float | None
    count: int

    def held(self, tests=1):
        """True if it is above zero, False if below, None if that is inconclusive.

        ``tests``: as many gaps were looked at to find this one (Bonferroni).
        """
        if self.error is None or self.mean == 0:
            return None
        from scipy import stats
        limit = stats.t.ppf(1 - LEVEL / tests, self.count - 1) * self.error
        return None if abs(self.mean) <= limit else self.mean > 0

    def __str__(self):
        return f"{self.mean:+.2f}" if self.error is None else f"{self.mean:+.2f} ± {self.error:.2f}"


def gap(a, b, scale=1.0):
    """The :class:`Gap` of ``a`` over ``b``, one value for each seed."""
    gaps = scale * (np.asarray(a, float) - np.asarray(b, float))
    count = len(gaps)
    error = float(gaps.std(ddof=1)) / count ** 0.5 if count > 1 else None
    return Gap(float(gaps.mean()), error, count)


def best(gaps):
    """Name and :class:`Gap` of the largest, and whether it held, as one of so many looked at."""
    name = max(gaps, key=lambda key: gaps[key].mean)
    return name, gaps[name], gaps[name].held(len(gaps))


def every(gaps):
    """Whether all of them held, as so many looked at; False if one did not, else None."""
    verdicts = {item.held(len(gaps)) for item in gaps.values()}
    return False if False in verdicts else None if None in verdicts else True
