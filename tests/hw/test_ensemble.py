"""The whole design in Amaranth's simulator against the golden model and the cycle model."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import draw
import rtl
from benn_fpga import golden, spec
from benn_fpga.errors import BennError
from benn_fpga.layers import Dense
from benn_fpga.schedule import schedule
from benn_fpga.spec import ENCODERS, VOTES, Fold, Folding

WAITS = list(product([0, 3], [0, 3]))


def small(seed=0, **options):
    """A model with two rounds of two engines on a bus that does not divide the frame."""
    rng = np.random.default_rng(seed)
    model = draw.random_model(rng, members=4, shape=(5, 4, 1), hidden=(12, 6), classes=4, **options)
    return rng, model, Folding((Fold(4, 5), Fold(3, 4), Fold(2, 3)), 2, 24)


@settings(max_examples=40)
@given(st.data())
def test_any_ensemble(data):
    model = data.draw(draw.models())
    folding = data.draw(draw.foldings(model))
    idle, stall = data.draw(st.sampled_from(WAITS))
    frames = draw.random_frames(np.random.default_rng(0), model, 5)
    got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
    assert got == golden.run(model, frames)


@settings(max_examples=25)
@given(st.data())
def test_any_timing(data):
    model = data.draw(draw.models(max_values=9, max_width=8, max_bits=2))
    folding = data.draw(draw.foldings(model))
    timing = schedule(model, folding)
    in_flight = -(-timing.latency_cycles // timing.cycles_per_frame)
    frames = draw.random_frames(np.random.default_rng(0), model, in_flight + 6)
    got = rtl.answers(model, folding, frames, alone=timing.stages["input"])
    assert got == golden.run(model, frames)
    assert got.latency == timing.latency_cycles
    assert set(np.diff(got.answered[1:])) == {timing.cycles_per_frame}


def test_latency_when_a_layer_must_pause():
    """Rounds follow each other closely through a layer whose outputs come in bursts."""
    rng = np.random.default_rng(0)
    model = draw.random_model(rng, members=3, shape=(6,), hidden=(2, 1, 6), classes=6)
    folding = Folding((Fold(2, 1), Fold(1, 2), Fold(2, 1), Fold(6, 1)), 1, 16)
    got = rtl.answers(model, folding, draw.random_frames(rng, model, 2), alone=3)
    assert got.latency == schedule(model, folding).latency_cycles


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_idle_and_stall(vote, idle, stall):
    rng, model, folding = small(vote=vote)
    frames = draw.random_frames(rng, model, 8)
    got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
    assert got == golden.run(model, frames)


def mixed_beats(rng, frames, lanes):
    """Beats of frames, some too short or too long, some with a byte left out in the first beat."""
    beats = []
    for frame in frames:
        kind = rng.integers(4)
        if kind == 0:
            frame = rng.integers(0, 256, rng.integers(1, 3 * len(frame) + 1), np.uint8)
        first, *rest = rtl.beats_of(frame, lanes)
        beats += [(first[0], first[1] & ~1, first[2]) if kind == 1 else first, *rest]
    return beats


@pytest.mark.parametrize("seed", range(40))
def test_reset_at_any_moment(seed):
    """After a reset of one cycle every frame is right, whatever was on its way before."""
    rng = np.random.default_rng(seed)
    model = draw.random_model(
        rng, members=int(rng.integers(1, 5)), shape=(int(rng.integers(1, 13)),),
        hidden=tuple(rng.integers(1, 8, rng.integers(0, 3)).tolist()),
        classes=int(rng.integers(2, 6)), encoder=str(rng.choice(ENCODERS)),
        vote=str(rng.choice(VOTES)), per_value=bool(rng.integers(2)))
    folding = draw.random_folding(rng, model)
    frames = golden.check_input(model.encoder, draw.random_frames(rng, model, 12))
    lanes, latency = folding.bus // 8, schedule(model, folding).latency_cycles
    after = [beat for frame in frames for beat in rtl.beats_of(frame, lanes)]
    got = rtl.top(model, folding, after, count=len(frames), idle=int(rng.integers(2)),
                  stall=int(rng.choice([0, 1, 6])), seed=seed,
                  before=mixed_beats(rng, frames.repeat(6, axis=0), lanes),
                  reset_at=int(rng.integers(1, 3 * latency + 40)))
    assert got == golden.run(model, frames)


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("size", [1, 3, 17, 18, 19, 21, 22, 60])
def test_frame_of_another_size(size, idle, stall):
    """It is answered with the error flag, and every other frame is answered right."""
    rng, model, folding = small()
    frames = golden.check_input(model.encoder, draw.random_frames(rng, model, 4))
    sent = [*frames[:2], np.arange(size, dtype=np.uint8), *frames[2:]]
    beats = [beat for frame in sent for beat in rtl.beats_of(frame, 3)]
    got = rtl.top(model, folding, beats, count=5, idle=idle, stall=stall)
    assert got.flags.tolist() == [bool(user) for user in got.users] == [0, 0, 1, 0, 0]
    assert np.array_equal(np.delete(got.totals, 2, 0), golden.run(model, frames).totals)


def test_interval_is_the_slowest_stage():
    rng, model, _ = small()
    for folding, slowest in (
            (Folding((Fold(12, 20), Fold(6, 12), Fold(4, 6)), 4, 8), "answer"),
            (Folding((Fold(12, 20), Fold(6, 12), Fold(4, 6)), 4, 192), "input"),
            (Folding((Fold(2, 10), Fold(6, 12), Fold(4, 6)), 4, 64), "layer0"),
            (Folding((Fold(12, 20), Fold(1, 3), Fold(4, 6)), 2, 64), "layer1"),
            (Folding((Fold(12, 20), Fold(6, 12), Fold(1, 1)), 1, 64), "layer2")):
        timing = schedule(model, folding)
        assert timing.cycles_per_frame == timing.stages[slowest]
        got = rtl.answers(model, folding, draw.random_frames(rng, model, 40))
        assert set(np.diff(got.answered)) == {timing.cycles_per_frame}


# Designs that are bound by their answers, so that frames crowd in the pipelines before the port.
CROWDED = [
    (5, 4, (4,), 4, Folding((Fold(4, 4), Fold(4, 4)), 5, 128)),
    (8, 2, (), 16, Folding((Fold(16, 2),), 8, 128)),
    (8, 2, (6, 4), 16, Folding((Fold(6, 1), Fold(4, 6), Fold(16, 2)), 8, 128)),
]


@pytest.mark.parametrize("case", range(len(CROWDED)))
def test_every_gap(case):
    members, values, hidden, classes, folding = CROWDED[case]
    rng = np.random.default_rng(0)
    model = draw.random_model(rng, members=members, shape=(values,), hidden=hidden,
                              classes=classes, vote="hard")
    got = rtl.answers(model, folding, draw.random_frames(rng, model, 60))
    assert set(np.diff(got.answered)) == {schedule(model, folding).cycles_per_frame}


def test_largest_margin():
    """Totals at the limit of the specification, of opposite signs."""
    bias = np.array([spec.MAX_SUM // 4 - 1, 1 - spec.MAX_SUM // 4], np.int32)
    encoder = spec.Encoder("threshold", (1,), 8, np.array([[100]], np.int32))
    member = spec.Member(({"weights": np.array([[[1]], [[0]]], np.uint64), "bias": bias},), 2)
    model = spec.Ensemble(encoder, (Dense(1, 2, output_bits=0),), (member,))
    frames = np.array([[0], [255]], np.uint8)
    assert golden.run(model, frames).margins.max() == 2 * (spec.MAX_SUM // 2 - 1)
    got = rtl.answers(model, Folding((Fold(1, 1),), 1, 64), frames)
    assert got == golden.run(model, frames)
    with pytest.raises(BennError, match=r"^Votes sum up to 1610612733, over the limit 1073741823"):
        spec.Ensemble(encoder, model.layers, (replace(member, vote_weight=3),))
