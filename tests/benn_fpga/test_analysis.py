import dataclasses

import numpy as np
import pytest

import draw
from benn_fpga import analysis, golden

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
    assert found.chosen == 1 + found.curve.index(max(found.curve))
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


def test_one_member_disagrees_with_nobody():
    assert analysis.analyse(with_members(MODEL, 0), X, Y).mean_disagreement is None
