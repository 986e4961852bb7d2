import dataclasses

import numpy as np
import pytest

import draw
from benn_fpga import analysis, golden
from benn_fpga.accuracy import interval, within_noise

MODEL = draw.random_model(np.random.default_rng(0), members=4, vote_weights=[2, 1, 1, 3])
X = draw.random_frames(np.random.default_rng(1), MODEL, 50)
Y = np.random.default_rng(2).integers(0, MODEL.classes, 50)


def with_members(model, *members):
    return dataclasses.replace(model, members=tuple(model.members[k] for k in members))


def accuracy(model):
    return float((model.predict(X) == Y).mean())


@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_curve_and_gain_are_those_of_smaller_ensembles(vote):
    model = dataclasses.replace(MODEL, vote=vote)
    found = analysis.analyse(model, X, Y)
    assert found.curve == [accuracy(with_members(model, *range(k))) for k in (1, 2, 3, 4)]
    others = [accuracy(with_members(model, *(m for m in range(4) if m != k))) for k in range(4)]
    assert found.gain == pytest.approx([found.curve[-1] - other for other in others], abs=1e-12)


def test_members_and_disagreement():
    found = analysis.analyse(MODEL, X, Y)
    answers = golden.run(MODEL, X).member_classes
    assert found.members == [float((answers[:, k] == Y).mean()) for k in range(4)]
    assert found.disagreement[0][3] == float((answers[:, 0] != answers[:, 3]).mean())
    assert np.diag(found.disagreement).tolist() == [0] * 4
    pairs = [found.disagreement[a][b] for a in range(4) for b in range(a)]
    assert found.mean_disagreement == pytest.approx(np.mean(pairs))


def rights(*counts, frames=200):
    """(K, frames): members get their first so many frames right."""
    return np.arange(frames) < np.array(counts)[:, None]


@pytest.mark.parametrize(("counts", "best", "chosen"), [
    ([190], 1, 1),
    ([190, 190], 1, 1),
    ([190, 191, 191], 2, 1),  # one frame is within noise
    ([190, 191, 192], 3, 2),
    ([185, 190, 188], 2, 2),
    ([150, 170, 189, 190], 4, 3)])
def test_the_fewest_members_within_one_standard_error(counts, best, chosen):
    advice = analysis.advise(rights(*counts))
    assert (advice.frames, advice.best, advice.chosen) == (200, best, chosen)
    assert advice.curve == [count / 200 for count in counts]
    assert advice.intervals[0] == interval(counts[0], 200)


@pytest.mark.parametrize(("counts", "text"), [
    ([190], "1 member: 95.00 %"),
    ([190, 190], "1 member: 95.00 %; more are no better"),
    ([190, 191], "1 member: 95.00 %, within noise of the 95.50 % of 2"),
    ([170, 190, 188], "2 members: 95.00 %; fewer are worse by more than noise"),
    ([170, 190, 191, 190], "2 members: 95.00 %, within noise of the 95.50 % of 3")])
def test_advice_in_words(counts, text):
    assert str(analysis.advise(rights(*counts))) == text


@pytest.mark.parametrize(("frames", "words"), [
    (1, "validated on 1 frame, too few to drop members by"),
    (99, "validated on 99 frames, too few to drop members by"), (100, None)])
def test_little_data_is_said_to_be_little(frames, words):
    assert analysis.advise(rights(frames, frames, frames=frames)).little == words


@pytest.mark.parametrize(("told", "orders"), [
    ({}, 1), ({"ensemble": "boost-d"}, 1), ({"ensemble": "bagging", "schedule": "seq"}, 1),
    ({"ensemble": "bagging", "schedule": "indep"}, 50), ({"ensemble": "independent"}, 50)])
def test_members_that_were_trained_alike_vote_in_many_orders(told, orders):
    model = dataclasses.replace(MODEL, provenance=told)
    scores = golden.run(model, X).scores
    right, count = analysis.right_by_any(model, scores, Y)
    given = analysis.right_by_first(model, scores, Y)
    assert count == orders
    assert (right[-1] == orders * given[-1]).all()
    alone = np.stack([scores[:, k].argmax(axis=1) == Y for k in range(4)])
    if orders == 1:
        assert (right == given).all()
    else:
        assert ((right[0] == 0) == ~alone.any(axis=0)).all()


def test_noise_of_an_average_over_orders():
    """Against the standard error of the mean difference, computed from the frames."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 5, (2, 30)) + rng.integers(0, 2, (2, 1))
        gaps = (counts[0] - counts[1]) / 5
        error = gaps.std(ddof=1) / 30 ** 0.5
        assert within_noise(*counts) == (abs(gaps.mean()) <= error * (1 + 1e-9))


def test_no_advice_by_other_than_validation_data():
    assert analysis.analyse(MODEL, X, Y).advice.frames == 50
    assert analysis.analyse(MODEL, X, Y, advice=False).advice is None


def test_one_member_disagrees_with_nobody():
    assert analysis.analyse(with_members(MODEL, 0), X, Y).mean_disagreement is None
