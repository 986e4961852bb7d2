import math

import numpy as np
import pytest

from benn_fpga.sw import boost


def test_samme_by_hand():
    # 3 classes, a quarter missed: alpha = (ln 3 + ln 2) / 2, and e**(2 * alpha) = 6.
    missed = np.array([False, True, False, False])
    alpha, weights = boost.samme(np.full(4, 1 / 4), missed, classes=3, shrinkage=0.5)
    assert alpha == pytest.approx(math.log(6) / 2, rel=1e-15)
    assert weights == pytest.approx([1 / 9, 6 / 9, 1 / 9, 1 / 9], rel=1e-15)


def test_samme_weighs_the_error():
    missed = np.array([True, False, False])
    alpha, _ = boost.samme(np.array([0.5, 0.25, 0.25]), missed, classes=10, shrinkage=1)
    assert alpha == pytest.approx(math.log(9), rel=1e-15)


def test_samme_without_error_keeps_the_weights():
    alpha, weights = boost.samme(np.full(5, 0.2), np.zeros(5, bool), classes=2, shrinkage=1)
    assert alpha == pytest.approx(math.log(999), rel=1e-12)
    assert weights == pytest.approx([0.2] * 5)


@pytest.mark.parametrize("missed", [[True, True, False], [True, True, True]])
def test_samme_starts_again_at_chance(missed):
    alpha, weights = boost.samme(np.array([0.25, 0.25, 0.5]), np.array(missed), classes=2)
    assert 0 < alpha < 1e-3
    assert weights.tolist() == [1 / 3] * 3


def test_integer_votes():
    assert boost.integer_votes([0.5, 1.0, 0.25, 0.0001]) == [32, 64, 16, 0]
