import numpy as np
import pytest

from benn_fpga.sw import verdict

pytestmark = pytest.mark.train


@pytest.mark.parametrize(("a", "b", "held"), [
    ([5.0, 6.0, 7.0], [1.0, 2.5, 3.0], True),
    ([1.0, 2.5, 3.0], [5.0, 6.0, 7.0], False),
    ([1.0, 3.0, 2.0], [2.0, 1.0, 2.5], None),
    ([5.0], [1.0], None),  # one seed shows nothing
    ([2.0, 2.0], [1.0, 1.0], True),
    ([2.0, 2.0], [2.0, 2.0], None),
])
def test_held(a, b, held):
    assert verdict.gap(a, b).held() is held


def test_error_is_that_of_paired_differences():
    found = verdict.gap([0.5, 0.7, 0.9], [0.4, 0.5, 0.6], 100)
    assert str(found) == "+20.00 ± 5.77"  # differences 10, 20, 30: deviation 10, divided by sqrt(3)
    assert str(verdict.gap([0.5], [0.25])) == "+0.25"


def test_limit_is_that_of_the_t_distribution():
    # Two seeds: t = mean / error = 6 is below 6.31, 6.6 above.
    assert verdict.gap([7.0, 5.0], [0.0, 0.0]).held() is None
    assert verdict.gap([7.6, 5.6], [0.0, 0.0]).held() is True
    assert verdict.gap([7.6, 5.6], [0.0, 0.0]).held(tests=2) is None


def test_best_pays_for_the_others():
    gaps = {"a": verdict.gap([1.0, 1.2, 1.6], [0, 0, 0]), "b": verdict.gap([0.0, 0, 0], [1, 2, 3])}
    assert gaps["a"].held() is True
    name, found, held = verdict.best(gaps)
    assert (name, found) == ("a", gaps["a"])
    assert held is gaps["a"].held(2)


def test_seldom_where_there_is_nothing():
    rng = np.random.default_rng(0)
    found = [verdict.gap(*rng.standard_normal((2, 3))).held() for _ in range(2000)]
    assert 0.03 < found.count(True) / 2000 < 0.07
    assert 0.03 < found.count(False) / 2000 < 0.07


def test_every():
    up, down, unsure = (verdict.gap(values, [0, 0, 0]) for values in (
        [1.0, 1.01, 1.02], [-1.0, -1.01, -1.02], [-1.0, 1, 2]))
    assert verdict.every({1: up, 2: up}) is True
    assert verdict.every({1: up, 2: unsure}) is None
    assert verdict.every({1: up, 2: unsure, 3: down}) is False
