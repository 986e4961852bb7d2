import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import draw
from benn_fpga import bits, golden
from benn_fpga.errors import BennError


def plain(model, x):
    """The model in plain integers: matrix products of the values the codes stand for."""
    encoder = model.encoder
    x = x.reshape(len(x), -1).astype(np.int64)
    if encoder.kind == "planes":
        first = 2 * (x >> encoder.dropped) - (2**encoder.element_bits - 1)
    else:
        first = 2 * (x[:, :, None] >= encoder.thresholds).reshape(len(x), -1).astype(np.int64) - 1
    scores = []
    for member in model.members:
        v = first
        for layer, a in zip(model.layers, member.layers, strict=True):
            s = v @ bits.value(bits.unplanes(a["weights"], layer.inputs), layer.weight_bits).T
            v = s + a["bias"] if layer.is_scores else \
                bits.value((s[:, :, None] >= a["thresholds"]).sum(2), layer.output_bits)
        scores.append(v)
    return np.stack(scores, axis=1)


def plain_vote(model, scores):
    """One frame at a time, in Python integers; every tie goes to the lowest class."""
    for frame in scores.tolist():
        totals = [0] * model.classes
        for member, row in zip(model.members, frame, strict=True):
            for c in range(model.classes):
                vote = row[c] if model.vote == "soft" else c == row.index(max(row))
                totals[c] += member.vote_weight * vote
        best, second = sorted(totals, reverse=True)[:2]
        yield totals.index(best), best - second, totals


@given(draw.models(), st.integers(0, 99))
def test_scores_are_those_of_plain_integers(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 4)
    assert (golden.run(model, x).scores == plain(model, x)).all()


@given(draw.models(), st.integers(0, 99))
def test_vote_is_that_of_plain_integers(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 4)
    result = golden.run(model, x)
    got = zip(result.classes.tolist(), result.margins.tolist(), result.totals.tolist(), strict=True)
    assert list(got) == list(plain_vote(model, result.scores))


@given(draw.models(), st.integers(0, 99))
def test_trace_changes_nothing_and_leads_to_the_scores(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 3)
    traced = golden.run(model, x, trace=True)
    assert (traced.totals == golden.run(model, x).totals).all()
    for k, member in enumerate(model.members):
        codes = traced.activations[k][-1] if len(model.layers) > 1 else traced.encoded
        scores = golden.compute(model.layers[-1], member.layers[-1], codes)
        assert (scores == traced.scores[:, k]).all()


def test_chunks_do_not_show(monkeypatch):
    model = draw.random_model(np.random.default_rng(0))
    x = draw.random_frames(np.random.default_rng(1), model, 9)
    whole = golden.run(model, x).totals
    monkeypatch.setattr(golden, "_CHUNK_WORDS", 25)
    monkeypatch.setattr(golden, "_CHUNK_VALUES", 33)
    assert (golden.run(model, x).totals == whole).all()


def test_ties_go_to_the_lowest_class():
    model = draw.random_model(np.random.default_rng(0), members=2, vote_weights=[1, 1])
    scores = np.array([[[3, 7, 7, 0, 7], [0, 1, 1, 0, 1]]])
    for vote in ("hard", "soft"):
        classes, margins, _ = golden.vote(dataclasses.replace(model, vote=vote), scores)
        assert (classes.tolist(), margins.tolist()) == ([1], [2 if vote == "hard" else 0])


def test_activation_counts_the_thresholds_reached():
    thresholds = np.array([[-2, 0, 4]], np.int32)
    sums = np.array([[-3], [-2], [0], [3], [4]])
    assert golden.activate(thresholds, sums)[:, 0].tolist() == [0, 1, 2, 2, 3]


def test_threshold_is_reached_when_equal():
    model = draw.random_model(np.random.default_rng(0), shape=(2,))
    level = int(model.encoder.thresholds[0, 0])
    codes = golden.encode(model.encoder, np.array([[level, level - 1]]))
    assert codes.tolist() == [[1, 0]]


def test_predict_is_the_class_of_the_vote():
    model = draw.random_model(np.random.default_rng(0))
    x = draw.random_frames(np.random.default_rng(1), model, 5)
    assert (model.predict(x) == golden.run(model, x).classes).all()


@pytest.mark.parametrize("above", [-1, 0, 1])
def test_rejected_is_a_margin_below_that_of_the_model(above):
    model = draw.random_model(np.random.default_rng(0))
    x = draw.random_frames(np.random.default_rng(1), model, 30)
    result = golden.run(model, x)
    assert not result.rejected.any()
    reject = int(np.sort(result.margins)[15]) + above
    found = golden.run(dataclasses.replace(model, reject=reject), x)
    assert found.rejected.tolist() == [margin < reject for margin in result.margins.tolist()]


@pytest.mark.parametrize(("x", "message"), [
    (np.zeros((2, 4, 4, 1)), "Inputs must be integers in 0..255, not float64"),
    (np.zeros((2, 15), int), r"Inputs must have shape \(frames, 4, 4, 1\), not \(2, 15\)"),
    (np.zeros(16, int), r"Inputs must have shape \(frames, 4, 4, 1\), not \(16,\)"),
    (np.full((2, 16), 256), "Inputs must lie in 0..255, but range from 256 to 256"),
    (np.full((2, 16), -1), "Inputs must lie in 0..255, but range from -1 to -1"),
])
def test_wrong_input(x, message):
    model = draw.random_model(np.random.default_rng(0))
    with pytest.raises(BennError, match=message):
        golden.run(model, x)
