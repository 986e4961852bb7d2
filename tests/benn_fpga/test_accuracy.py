import numpy as np
import pytest

from benn_fpga import accuracy
from benn_fpga.errors import BennError


# The first two are worked examples of Newcombe (1998), table I, method 3.
@pytest.mark.parametrize(("right", "frames", "low", "high"), [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
    (29, 29, 0.8830, 1.0),
    (1, 1, 0.2065, 1.0),
])
def test_interval(right, frames, low, high):
    assert tuple(round(bound, 4) for bound in accuracy.interval(right, frames)) == (low, high)


@pytest.mark.parametrize(("right", "frames"), [(0, 0), (-1, 5), (6, 5)])
def test_interval_of_nothing(right, frames):
    with pytest.raises(BennError, match=r"^Right answers must be 0 to the number of frames"):
        accuracy.interval(right, frames)


@pytest.mark.parametrize(("alone", "others", "same"), [
    (0, 0, True), (1, 0, True), (0, 1, True), (2, 0, False), (2, 1, True), (3, 1, True),
    (4, 1, False), (6, 3, True), (7, 3, False)])
def test_one_standard_error(alone, others, same):
    """Against the standard error of the mean difference, computed from the frames."""
    right = np.array([1] * alone + [0] * others + [1] * 30 + [0] * 20, bool)
    other = np.array([0] * alone + [1] * others + [1] * 30 + [0] * 20, bool)
    assert accuracy.within_noise(right, other) is same
    gaps = right.astype(float) - other
    error = gaps.std(ddof=1) / len(gaps) ** 0.5
    assert (abs(gaps.mean()) <= error * (1 + 1e-9)) == same


def test_one_frame_never_decides():
    """Nor do parts of one, where runs are averaged."""
    right, other = np.array([50, 50, 50, 7]), np.array([49, 49, 49, 7])
    assert not accuracy.within_noise(right, other)
    assert accuracy.within_noise(right, other, runs=50)
    assert accuracy.within_noise(np.array([50, 0]), np.array([0, 0]), runs=50)
    assert not accuracy.within_noise(np.array([50, 50]), np.array([0, 49]), runs=50)


def test_what_is_rejected_is_in_a_column_of_its_own():
    labels, rejected = np.array([0, 0, 1]), np.array([True, False, True])
    counts = accuracy.confusion(labels, np.array([0, 0, 0]), 2, rejected)
    assert counts.tolist() == [[1, 0, 1], [0, 0, 1]]
    first, last = accuracy.by_class(counts, ["a", "b"])
    assert (first.frames, first.rejected, first.right, first.accuracy) == (2, 1, 1, 1.0)
    assert (last.frames, last.rejected, last.right, last.accuracy) == (1, 1, 0, None)


def test_confusion_has_a_row_for_each_label():
    counts = accuracy.confusion(np.array([0, 0, 2, 2, 2]), np.array([0, 1, 2, 0, 2]), 3)
    assert counts.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 2]]
    first, absent, last = accuracy.by_class(counts, ["a", "b", "c"])
    assert (first.name, first.frames, first.right, first.accuracy) == ("a", 2, 1, 0.5)
    assert (absent.frames, absent.accuracy, absent.interval) == (0, None, None)
    assert last.interval == accuracy.interval(2, 3)


def test_what_each_margin_leaves():
    margins, right = np.array([3, 0, 3, 9]), np.array([True, False, False, True])
    found = [(point.margin, point.answered, point.wrong, point.coverage, point.accuracy)
             for point in accuracy.by_margin(margins, right)]
    assert found == [(0, 4, 2, 1, 0.5), (3, 3, 1, 0.75, 2 / 3), (9, 1, 0, 0.25, 1)]


def test_a_curve_has_few_points_and_keeps_its_ends():
    margins = np.arange(1000)
    found = accuracy.by_margin(margins, margins % 2 == 0)
    assert (len(found), found[0].margin, found[-1].margin) == (accuracy.POINTS, 0, 999)
    assert all(point.answered == 1000 - point.margin for point in found)


def drawn(wrong_below, frames=1000):
    """Margins 0, 1, ...; every tenth answer below a margin is wrong."""
    margins = np.arange(frames)
    return margins, ~((margins % 10 == 0) & (margins < wrong_below))


@pytest.mark.parametrize(("wrong_below", "wanted", "margin", "wrong"), [
    (0, 0.01, 1, 0),  # a tie is rejected in any case
    (100, 0.05, 1, 9),
    (100, 0.005, 61, 3),  # 4 of 940; from 60 on it would be 5 of 941
    (100, 0.0011, 91, 0),
])
def test_smallest_margin_for_an_error_rate(wrong_below, wanted, margin, wrong):
    found = accuracy.rejection(*drawn(wrong_below), wanted)
    assert (found.margin, found.wrong, found.is_met) == (margin, wrong, True)
    assert found.answered == 1000 - margin
    assert found.vouched == (wrong + 1) / (1001 - margin) <= wanted


@pytest.mark.parametrize("wanted", [1 / 21, 0.04])
def test_few_frames_vouch_for_little(wanted):
    """20 right answers of 20: if the next were wrong, 1 of 21 would be."""
    found = accuracy.rejection(np.full(20, 5), np.ones(20, bool), wanted)
    assert (found.margin, found.answered, found.wrong) == (5, 20, 0)
    assert found.is_met == (wanted == 1 / 21)


def test_what_comes_nearest_is_told():
    found = accuracy.rejection(*drawn(100), 0.001)
    assert (found.is_met, found.margin, found.answered, found.wrong) == (False, 91, 909, 0)


@pytest.mark.parametrize("wanted", [0, 1, -0.1, float("nan")])
def test_no_error_rate(wanted):
    with pytest.raises(BennError, match=r"^Error rate must be above 0 and below 1, not "):
        accuracy.rejection(*drawn(0), wanted)


def test_nothing_but_ties():
    found = accuracy.rejection(np.zeros(3, int), np.ones(3, bool), 0.5)
    assert (found.margin, found.answered, found.is_met, found.error_interval) == (1, 0, False, None)


def test_a_rate_that_is_not_met_is_one_line():
    assert accuracy.rejection(*drawn(100), 0.01).failure is None
    assert accuracy.rejection(*drawn(100), 0.001).failure == (
        "an error rate of 0.1 % cannot be shown with 1000 validation frames: at best 0 of 909 "
        "answers are wrong, from margin 91 on, and one more would be 0.11 %; ask for that, or use "
        "more data")


def test_a_model_says_what_its_margin_rests_on():
    found = accuracy.rejection(*drawn(100), 0.01)
    assert accuracy.Rejection.read({"rejection": found.origin()}) == found
    assert accuracy.Rejection.read({}) is None
