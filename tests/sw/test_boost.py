import math

import numpy as np
import pytest

from benn_fpga.presets import BOOSTS
from benn_fpga.sw import boost

# Five frames of the same weight, the first of which is missed: e = 1/5, exp(vote) = 2 for A to C.
EQUAL = np.full(5, 1 / 5)
MISSED = np.array([True, False, False, False, False])


@pytest.mark.parametrize(("scheme", "vote", "first", "others"), [
    ("boost-a", math.log(2), 1 / 2, 1 / 8),
    ("boost-b", math.log(2), 1 / 3, 1 / 9),
    ("boost-c", math.log(2), 33 / 34, 30 / 34),
    ("boost-d", math.log(36) / 10, 36 ** 0.2 / (36 ** 0.2 + 4), 1 / (36 ** 0.2 + 4))])
def test_by_hand(scheme, vote, first, others):
    error, got, weights = boost.step(scheme, EQUAL, MISSED, classes=10)
    assert (error, got) == pytest.approx((1 / 5, vote), rel=1e-14)
    assert weights.tolist() == pytest.approx([first] + [others] * 4, rel=1e-14)


@pytest.mark.parametrize(("scheme", "odds", "expected"), [
    ("boost-a", 7, [4 / 14, 7 / 14, 1 / 14]),
    ("boost-b", 6, [1 / (2 * 6 ** 0.5 + 1), 1 / (8 / 6 ** 0.5 + 1), 1 / (8 * 6 ** 0.5 + 1)]),
    ("boost-c", 4.1, [1 - 4.1 / 114.6, 1 - 4 / 114.6, 1 - 16.4 / 114.6])])
def test_second_round_by_hand(scheme, odds, expected):
    _, _, weights = boost.step(scheme, EQUAL, MISSED, 10)
    _, vote, weights = boost.step(scheme, weights, np.roll(MISSED, 1), 10)
    assert vote == pytest.approx(math.log(odds) / 2, rel=1e-13)
    assert weights[:3].tolist() == pytest.approx(expected, rel=1e-13)


def test_second_round_of_samme_by_hand():
    _, _, weights = boost.step("boost-d", EQUAL, MISSED, 10)
    _, vote, weights = boost.step("boost-d", weights, np.roll(MISSED, 1), 10)
    first = 36 ** 0.2  # the weight of frame 0, if the others have 1
    second = (9 * (first + 3)) ** 0.2
    assert vote == pytest.approx(math.log(9 * (first + 3)) / 10, rel=1e-13)
    assert weights.tolist() == pytest.approx(
        np.array([first, second, 1, 1, 1]) / (first + second + 3), rel=1e-13)


@pytest.mark.parametrize("scheme", BOOSTS[:-1])
def test_the_error_is_a_share_of_the_weight(scheme):
    weights = np.array([2.0, 1, 1, 1, 1])
    assert boost.step(scheme, weights / 6, MISSED, 3)[0] == pytest.approx(1 / 3, rel=1e-14)


@pytest.mark.parametrize("scheme", BOOSTS[:-1])
def test_no_mistake_is_a_vote_with_a_limit(scheme):
    error, vote, weights = boost.step(scheme, EQUAL, np.zeros(5, bool), 2)
    assert error == 0
    assert vote == pytest.approx(math.log(999) * (0.1 if scheme == "boost-d" else 0.5), rel=1e-12)
    assert len(set(weights.tolist())) == 1


@pytest.mark.parametrize("scheme", BOOSTS[:-1])
def test_a_frame_that_is_always_missed_keeps_finite_weights(scheme):
    weights = EQUAL
    for _ in range(200):
        _, vote, weights = boost.step(scheme, weights, MISSED, 10)
        assert vote > 0
    assert np.isfinite(weights).all()
    assert weights.min() >= 0


def test_chance():
    assert boost.chance("boost-a", 10) == 0.5
    assert boost.chance("boost-d", 10) == 0.9


# LogitBoost with 5 frames and 3 classes. At the start p = 1/3: targets 3 and -3/2, weights 2/9.
Y = np.array([0, 1, 2, 0, 1])


def test_newton_by_hand():
    targets, weights = boost.newton(np.zeros((5, 3)), Y)
    assert targets[0] == pytest.approx([3, -1.5, -1.5], rel=1e-14)
    assert weights == pytest.approx(np.ones((5, 3)), rel=1e-14)


def test_newton_after_a_member_by_hand():
    # Scores 3, 0, 0 centred are 2, -1, -1; times 2/3 and shrinkage 3/4 ln 2: ln 2 * (1, -1/2, -1/2)
    scores = np.tile([3.0, 0, 0], (5, 1))
    logits = boost.add(np.zeros((5, 3)), scores, shrinkage=0.75 * math.log(4))
    p = 8 / 10  # 2**2 / (2**2 + 2 * 2**-1)
    targets, weights = boost.newton(logits, Y)
    assert targets[0] == pytest.approx([1 / p, -1 / 0.9, -1 / 0.9], rel=1e-14)
    assert targets[1] == pytest.approx([-4, 4, -1 / 0.9], rel=1e-14)  # -5 and 10, kept in ±4
    assert weights[0] / weights[0, 0] == pytest.approx([1, 0.09 / 0.16, 0.09 / 0.16], rel=1e-14)
    assert boost.log_loss(logits, Y) == pytest.approx(
        -(2 * math.log(0.8) + 3 * math.log(0.1)) / 5, rel=1e-14)


def test_newton_of_certain_logits_is_finite():
    logits = np.array([[1000.0, -1000], [1000, -1000]])
    targets, weights = boost.newton(logits, np.array([0, 1]))
    assert np.isfinite(targets).all()
    assert np.isfinite(weights).all()
    assert math.isfinite(boost.log_loss(logits, np.array([0, 1])))


def test_decide():
    scores = np.array([[[5, 4, 0], [0, 1, 0]], [[0, 2, 2], [0, 0, 1]]])
    assert boost.decide(scores, [1, 1], "soft").tolist() == [0, 2]
    assert boost.decide(scores, [1, 2], "hard").tolist() == [1, 2]
    assert boost.decide(scores, [1, 1], "hard").tolist() == [0, 1]  # the lowest class of a tie


def test_integer_votes():
    scores = np.zeros((1, 4, 2), int)
    assert boost.integer_votes([0.5, 1.0, 0.25, 0.0001], scores, "soft", 9999) == (
        [32, 64, 16, 0], 0)


def test_integer_votes_take_more_bits_where_they_matter():
    # 0.495 of 64 rounds to the tie of two members with the third; 0.495 of 512 does not.
    scores = np.array([[[0, 1], [1, 0], [1, 0]]])
    votes, changed = boost.integer_votes([1.0, 0.495, 0.5], scores, "hard", 9999)
    assert (votes, changed) == ([128, 63, 64], 0)


def test_integer_votes_keep_within_a_sum():
    votes, _ = boost.integer_votes([1.0, 0.5, 0.5], np.zeros((1, 3, 2), int), "soft", 17)
    assert votes == [8, 4, 4]


def test_one_member_has_one_vote():
    assert boost.integer_votes([0.3], np.zeros((1, 1, 2), int), "hard", 9) == ([1], 0)
