"""The whole design in Amaranth's simulator against the golden model and the cycle model."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from amaranth.sim import Simulator
from hypothesis import strategies as st

import designs
import draw
import rtl
from benn_fpga import golden, spec
from benn_fpga.errors import BennError
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.layers import Conv, Dense, MaxPool
from benn_fpga.plan.plan import plan
from benn_fpga.spec import ENCODERS, VOTES, Fold, Folding

WAITS = list(product([0, 3], [0, 3]))


# Designs to draw from; those with convolutions are simulated for long unless their layers are
# quick. The larger ones are for `make verify`.
DESIGNS = {
    "dense": draw.designs(draw.models()),
    "convolutional": draw.designs(draw.conv_models(max_blocks=2, max_side=5), cycles=40),
    "one block": draw.designs(draw.conv_models(max_blocks=1, max_side=5), cycles=40),
    "wide": draw.designs(draw.wide_models(), cycles=60, lanes=70),
    "larger": draw.designs(draw.conv_models(max_blocks=3, max_side=7), cycles=120),
    "larger and wide": draw.designs(draw.wide_models(), cycles=120, lanes=70),
}


def parts(tens):
    """Parameters ``kind`` and ``part``: so many times ten draws of each kind."""
    return pytest.mark.parametrize(("kind", "part"), [(kind, n) for kind in tens
                                                      for n in range(tens[kind])])


def small(seed=0, **options):
    """A model with two rounds of two engines on a bus that does not divide the frame."""
    rng = np.random.default_rng(seed)
    model = draw.random_model(rng, members=4, shape=(5, 4, 1), hidden=(12, 6), classes=4, **options)
    return model, Folding((Fold(4, 5), Fold(3, 4), Fold(2, 3)), 2, 24)


def residual(vote):
    """A convolutional model of two rounds."""
    return draw.residual(members=2, vote=vote)


def drawn_frames(model, count, seed=0):
    return draw.random_frames(np.random.default_rng(seed), model, count)


def check_any_ensemble(kind, part):
    @draw.ten(part, design=DESIGNS[kind], waits=st.sampled_from(WAITS))
    def check(design, waits):
        model, folding = design
        frames, (idle, stall) = drawn_frames(model, 5 if kind == "dense" else 3), waits
        got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
        assert got == golden.run(model, frames)


@parts({"dense": 4, "convolutional": 4, "wide": 1})
def test_any_ensemble(kind, part):
    check_any_ensemble(kind, part)


@pytest.mark.verify
@parts({"larger": 10, "larger and wide": 3})
def test_any_larger_ensemble(kind, part):
    check_any_ensemble(kind, part)


def check_timing(model, folding, *, is_dense=False):
    timing = plan(model, folding).schedule
    in_flight = -(-timing.latency_cycles // timing.cycles_per_frame)
    frames = drawn_frames(model, in_flight + (6 if is_dense else 4))
    with rtl.Peaks() as peaks:
        got = rtl.answers(model, folding, frames, alone=timing.stages["input"], at_end=peaks.read)
    assert got == golden.run(model, frames)
    assert got.latency == timing.latency_cycles
    settled = got.answered[1 if is_dense else -3:]
    assert set(np.diff(settled)) == {timing.cycles_per_frame}
    assert peaks.are_those_of(timing.queues)


def check_any_timing(kind, part):
    @draw.ten(part + 10, design=DESIGNS[kind])
    def check(design):
        check_timing(*design, is_dense=kind == "dense")


@parts({"dense": 3, "convolutional": 2})
def test_any_timing(kind, part):
    """Latency, distance of answers and what the queues hold, where nothing waits."""
    check_any_timing(kind, part)


@pytest.mark.verify
@parts({"larger": 5})
def test_any_larger_timing(kind, part):
    check_any_timing(kind, part)


@pytest.mark.parametrize("first", draw.STRAIGHT)
def test_timing_of_a_first_layer_that_keeps_no_pixels(first):
    check_timing(*draw.straight(first))


def test_timing_of_weights_that_are_far():
    model, folding = draw.relayed()
    assert [unit.relays for unit in plan(model, folding).units] == [2, 2, 2, 0]
    check_timing(model, folding)


@pytest.mark.parametrize("name", ["folded", "registers"])
def test_timing_with_fewer_registers(name):
    model, folding = designs.case(name)
    folding = replace(folding, adder_levels=2)
    assert 2 in [unit.adder_levels for unit in plan(model, folding).units]
    check_timing(model, folding)


@pytest.mark.parametrize(("idle", "stall"), [(0, 3), (3, 0)])
@pytest.mark.parametrize("name", ["direct", *draw.STRAIGHT])
def test_a_first_layer_behind_the_width_converter(name, idle, stall):
    model, folding = designs.case(name)
    frames = drawn_frames(model, 4)
    got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
    assert got == golden.run(model, frames)


@pytest.mark.parametrize("padding", [0, 1])
def test_pool_of_windows_that_overlap(padding):
    """It waits for words that its line buffer offers ahead; the dense layer need not."""
    encoder = spec.Encoder("planes", (4, 4, 2), 3, np.zeros((1, 0), np.int32))
    pool = MaxPool(encoder.shape, (2, 2), 1, padding, code_bits=3)
    head = Dense(int(np.prod(pool.output_shape)), 3, input_bits=3, output_bits=0)
    model = draw.random_ensemble(np.random.default_rng(0), encoder, (pool, head), members=4)
    check_timing(model, Folding((Fold(2, 1), Fold(1, 2)), 2, 16))


def test_latency_when_outputs_come_in_bursts():
    """Rounds follow each other closely through a layer whose outputs come in bursts."""
    rng = np.random.default_rng(0)
    model = draw.random_model(rng, members=3, shape=(6,), hidden=(2, 1, 6), classes=6)
    folding = Folding((Fold(2, 1), Fold(1, 2), Fold(2, 1), Fold(6, 1)), 1, 16)
    got = rtl.answers(model, folding, draw.random_frames(rng, model, 2), alone=3)
    assert got.latency == plan(model, folding).schedule.latency_cycles


@pytest.mark.parametrize("name", ["unrolled", "folded", "direct"])
def test_ready_depends_on_no_port_in_the_same_cycle(name):
    model, folding = designs.case(name)
    dut, taken = Ensemble(model=model, folding=folding), []
    ports = (dut.s_axis_tvalid, dut.s_axis_tlast, dut.s_axis_tkeep, dut.m_axis_tready)

    async def bench(ctx):
        for cycle in range(300):
            seen = set()
            for values in product((0, -1), repeat=len(ports)):
                for port, value in zip(ports, values, strict=True):
                    ctx.set(port, value)
                seen.add(ctx.get(dut.s_axis_tready))
            assert len(seen) == 1
            taken.append(seen.pop())
            ctx.set(dut.m_axis_tready, cycle > 150)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert set(taken[:150]) == {0, 1}


@pytest.mark.parametrize("rows", [9, 10, 11, 30])
def test_latency_of_an_answer_that_waits_for_its_error_flag(rows):
    """One pixel is read, the first, so that the scores are there before the frame is."""
    encoder = spec.Encoder("planes", (rows, 1, 1), 1, np.zeros((1, 0), np.int32))
    conv = Conv(encoder.shape, (1, 1), rows, outputs=2, output_bits=0)
    model = draw.random_ensemble(np.random.default_rng(0), encoder, (conv,))
    folding = Folding((Fold(2, 1),), 1, 8)
    got = rtl.answers(model, folding, drawn_frames(model, 2), alone=rows)
    assert got.latency == plan(model, folding).schedule.latency_cycles == max(12, rows + 3)


@pytest.mark.parametrize(("idle", "stall"), [*WAITS, (0, 20)])
@pytest.mark.parametrize(("make", "vote"), [(small, "hard"), (small, "soft"),
                                            (residual, "soft")])
def test_idle_and_stall(make, vote, idle, stall):
    model, folding = make(vote=vote)
    frames = drawn_frames(model, 8 if make is small else 4)
    got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
    assert got == golden.run(model, frames)


@pytest.mark.parametrize(("vote", "reject", "rejected"), [
    ("hard", 1, 1), ("hard", 3, 4), ("hard", 4, 6), ("hard", 5, 11),
    ("soft", 1, 0), ("soft", 16, 1), ("soft", 17, 4), ("soft", 48, 11), ("soft", 49, 12)])
def test_rejected_answers(vote, reject, rejected):
    """By margins that occur, and by one more; latency and distance of answers stay as they are."""
    model, folding = small(4, vote=vote)
    model, frames = replace(model, reject=reject), drawn_frames(model, 12)
    timing = plan(model, folding).schedule
    got = rtl.answers(model, folding, frames, alone=timing.stages["input"])
    assert got == golden.run(model, frames)
    assert np.count_nonzero(got.flags) == rejected
    assert got.latency == timing.latency_cycles
    assert set(np.diff(got.answered[1:])) == {timing.cycles_per_frame}


def mixed_beats(rng, frames, lanes):
    """Beats of frames, some too short or too long, some with a byte left out in the first beat;
    and which of the frames are wrong."""
    beats, wrong = [], []
    for frame in frames:
        kind, size = rng.integers(4), len(frame)
        if kind == 0:
            frame = rng.integers(0, 256, rng.integers(1, 3 * size + 1), np.uint8)
        first, *rest = rtl.beats_of(frame, lanes)
        beats += [(first[0], first[1] & ~1, first[2]) if kind == 1 else first, *rest]
        wrong.append(bool(kind == 1 or len(frame) != size))
    return beats, wrong


@parts({"dense": 1, "one block": 1})
def test_wrong_frames_among_right_ones(kind, part):
    """Those are answered with the error flag, and every other frame is answered right."""
    @draw.ten(part + 20, design=DESIGNS[kind], waits=st.sampled_from(WAITS))
    def check(design, waits):
        (model, folding), (idle, stall) = design, waits
        frames = golden.check_input(model.encoder, drawn_frames(model, 6))
        beats, wrong = mixed_beats(np.random.default_rng(part), frames, folding.bus // 8)
        got = rtl.top(model, folding, beats, count=6, idle=idle, stall=stall)
        assert got.flags.tolist() == [bool(user) for user in got.users] == wrong
        right = ~np.array(wrong)
        assert np.array_equal(got.totals[right], golden.run(model, frames).totals[right])


def check_reset(rng, seed, model, folding, count):
    """After a reset of one cycle every frame is right, whatever was on its way before."""
    frames = golden.check_input(model.encoder, draw.random_frames(rng, model, count))
    lanes, latency = folding.bus // 8, plan(model, folding).schedule.latency_cycles
    after = [beat for frame in frames for beat in rtl.beats_of(frame, lanes)]
    got = rtl.top(model, folding, after, count=len(frames), idle=int(rng.integers(2)),
                  stall=int(rng.choice([0, 1, 6])), seed=seed,
                  before=mixed_beats(rng, frames.repeat(6, axis=0), lanes)[0],
                  reset_at=int(rng.integers(1, 3 * latency + 40)))
    assert got == golden.run(model, frames)


@pytest.mark.parametrize("seed", range(40))
def test_reset_at_any_moment(seed):
    rng = np.random.default_rng(seed)
    model = draw.random_model(
        rng, members=int(rng.integers(1, 5)), shape=(int(rng.integers(1, 13)),),
        hidden=tuple(rng.integers(1, 8, rng.integers(0, 3)).tolist()),
        classes=int(rng.integers(2, 6)), encoder=str(rng.choice(ENCODERS)),
        vote=str(rng.choice(VOTES)), per_value=bool(rng.integers(2)))
    check_reset(rng, seed, model, draw.random_folding(rng, model), 12)


@pytest.mark.parametrize("part", range(2))
def test_reset_of_a_convolution(part):
    @draw.ten(part + 30, design=DESIGNS["one block"], seed=st.integers(0, 999))
    def check(design, seed):
        check_reset(np.random.default_rng(seed), seed, *design, 3)


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("size", [1, 3, 17, 18, 19, 21, 22, 60])
def test_frame_of_another_size(size, idle, stall):
    """It is answered with the error flag, and every other frame is answered right."""
    model, folding = small()
    frames = golden.check_input(model.encoder, drawn_frames(model, 4))
    sent = [*frames[:2], np.arange(size, dtype=np.uint8), *frames[2:]]
    beats = [beat for frame in sent for beat in rtl.beats_of(frame, 3)]
    got = rtl.top(model, folding, beats, count=5, idle=idle, stall=stall)
    assert got.flags.tolist() == [bool(user) for user in got.users] == [0, 0, 1, 0, 0]
    assert np.array_equal(np.delete(got.totals, 2, 0), golden.run(model, frames).totals)


def test_interval_is_the_slowest_stage():
    model, _ = small()
    for folding, slowest in (
            (Folding((Fold(12, 20), Fold(6, 12), Fold(4, 6)), 4, 8), "answer"),
            (Folding((Fold(12, 20), Fold(6, 12), Fold(4, 6)), 4, 192), "input"),
            (Folding((Fold(2, 10), Fold(6, 12), Fold(4, 6)), 4, 64), "layer0"),
            (Folding((Fold(12, 20), Fold(1, 3), Fold(4, 6)), 2, 64), "layer1"),
            (Folding((Fold(12, 20), Fold(6, 12), Fold(1, 1)), 1, 64), "layer2")):
        timing = plan(model, folding).schedule
        assert timing.cycles_per_frame == timing.stages[slowest]
        got = rtl.answers(model, folding, drawn_frames(model, 40))
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
    assert set(np.diff(got.answered)) == {plan(model, folding).schedule.cycles_per_frame}


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
