# amaranth: UnusedElaboratable=no
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import designs
import draw
import rtl
from benn_fpga import bits, golden
from benn_fpga.hw.residual import AddUnit, ScaleUnit
from benn_fpga.layers import MAX_GAIN, MAX_SUM, Add, Scale
from benn_fpga.plan.latency import scale_latency
from benn_fpga.plan.memories import signed_bits

IDLE = st.sampled_from([0, 0, 1, 3])


def extremes(rng, low, high, shape):
    """Any integers from ``low`` to ``high``, often one of these."""
    x = rng.integers(low, high + 1, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([low, high], shape), x)


def integers(rng, width, shape):
    return extremes(rng, -(1 << (width - 1)), (1 << (width - 1)) - 1, shape)


def integers_of(beats, width, lanes):
    """The signed integers in the words that came out."""
    out = np.array([(beat.payload >> (n * width)) & ((1 << width) - 1) for beat in beats
                    for n in range(lanes)])
    return out - ((out >> (width - 1)) << width)


def random_scale(rng, layer, gain, bias):
    return {name: extremes(rng, -limit, limit, layer.shape[2]).astype(np.int32)
            for name, limit in (("gain", gain), ("bias", bias))}


def scale_unit(layer, lanes, widths, banks):
    input_bits, output_bits = widths
    constants = {name: [bank[name].tolist() for bank in banks] for name in ("gain", "bias")}
    return ScaleUnit(layer, lanes=lanes, input_bits=input_bits, output_bits=output_bits,
                     rounds=len(banks), **constants,
                     **{f"{name}_bits": signed_bits(each) for name, each in constants.items()})


def check_scale(layer, lanes, widths, limits, rounds, seed, *, idle=0):
    """Images of the rounds in turn, twice."""
    rng = np.random.default_rng(seed)
    banks = [random_scale(rng, layer, *limits) for _ in range(rounds)]
    x = integers(rng, widths[0], (2 * rounds, *layer.shape))
    dut, words = scale_unit(layer, lanes, widths, banks), bits.stream_words(
        x.reshape(-1, lanes), widths[0])
    beats, = rtl.stream(dut, [(dut.i, words)], [(dut.o, len(words))], idle=idle)
    expected = [golden.compute(layer, banks[n % rounds], x[n:n + 1]) for n in range(len(x))]
    assert np.array_equal(integers_of(beats, widths[1], lanes), np.concatenate(expected).ravel())
    if not idle:
        latency = scale_latency(layer, lanes, rounds)
        assert [beat.cycle for beat in beats] == list(range(latency, latency + len(words)))


@settings(max_examples=60)
@given(st.data())
def test_scale(data):
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)))
    layer = Scale(shape, data.draw(st.integers(0, 31)), data.draw(st.integers(2, 24)))
    limits = data.draw(st.sampled_from([(MAX_GAIN, MAX_SUM // 4), (99, 9), (1, 0)]))
    widths = data.draw(st.integers(1, 24)), layer.integer_bits + data.draw(st.integers(0, 2))
    check_scale(layer, data.draw(st.sampled_from(draw.divisors(shape[2]))), widths, limits,
                data.draw(st.integers(1, 2)), data.draw(st.integers(0, 99)),
                idle=data.draw(IDLE))


@pytest.mark.parametrize("shift", [0, 1, 4])
def test_scale_rounds_and_clips(shift):
    """Every 5-bit input, at gains and biases on both sides of the clip."""
    layer = Scale((32, 1, 4), shift, 6)
    bank = {"gain": np.array([1, -1, 7, -7]), "bias": np.array([30, -30, 0, 1])}
    x = np.tile(np.arange(-16, 16).reshape(1, 32, 1, 1), 4)
    dut = scale_unit(layer, 4, (5, 6), [bank])
    beats, = rtl.stream(dut, [(dut.i, bits.stream_words(x.reshape(-1, 4), 5))], [(dut.o, 32)])
    assert np.array_equal(integers_of(beats, 6, 4), golden.compute(layer, bank, x).ravel())


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("lanes", [1, 3])
def test_scale_latency(lanes, rounds):
    check_scale(Scale((2, 2, 3), 3, 6), lanes, (5, 6), (99, 9), rounds, seed=0)


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize("n", [1, 4])
def test_scale_of_engines(n, idle):
    """As planned: one unit for all of them, each with its own constants."""
    unit, dut, banks = designs.planned_unit(draw.residual(), n, engines=3, rounds=2)
    layer, lanes = unit.stage.layer, unit.i.lanes * 3
    x = integers(np.random.default_rng(0), unit.i.element_bits, (4, *layer.shape, 3))
    expected = np.stack([np.concatenate([golden.compute(layer, banks[e][f % 2], x[f:f + 1, ..., e])
                                         for f in range(4)]) for e in range(3)], axis=-1)
    words = bits.stream_words(x.reshape(-1, lanes), unit.i.element_bits)
    beats, = rtl.stream(dut, [(dut.i, words)], [(dut.o, len(words))], idle=idle)
    assert np.array_equal(integers_of(beats, unit.o.element_bits, lanes), expected.ravel())
    if not idle:
        assert beats[0].cycle == unit.latency


@pytest.mark.parametrize("reset_at", [1, 3, 4, 9])
def test_scale_reset(reset_at):
    layer, rng = Scale((2, 1, 2), 3, 8), np.random.default_rng(0)
    banks = [random_scale(rng, layer, 99, 9) for _ in range(2)]
    x = integers(rng, 6, (4, *layer.shape))
    got = rtl.after_reset(scale_unit(layer, 1, (6, 8), banks),
                          bits.stream_words(x.reshape(-1, 1), 6), reset_at=reset_at)
    expected = [golden.compute(layer, banks[n % 2], x[n:n + 1]).ravel() for n in range(4)]
    assert np.array_equal(integers_of(got, 8, 1), np.concatenate(expected))


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), IDLE, st.integers(0, 99))
def test_add(lanes, left, right, idle, seed):
    layer, rng, width = Add((4, 3, lanes), other=0), np.random.default_rng(seed), 7
    a, b = (integers(rng, size, (1, *layer.shape)) for size in (left, right))
    dut = AddUnit(lanes=lanes, left_bits=left, right_bits=right, output_bits=width)
    sources = [(port, bits.stream_words(x.reshape(-1, lanes), size))
               for port, x, size in ((dut.a, a, left), (dut.b, b, right))]
    beats, = rtl.stream(dut, sources, [(dut.o, 12)], idle=idle, seed=seed)
    assert np.array_equal(integers_of(beats, width, lanes), golden.compute(layer, {}, a, b).ravel())
    if not idle:
        assert [beat.cycle for beat in beats] == list(range(1, 1 + 12))


@pytest.mark.parametrize(("options", "message"), [
    ({"lanes": 3}, "Lanes 3 must divide the 4 channels"),
    ({"rounds": 0}, "Rounds must be a positive integer, not 0"),
    ({"output_bits": 5}, "Output bits must be at least the layer's 6, not 5"),
    ({"rounds": 2}, "Gain must be integers in lists of 2, 4, outermost first"),
    ({"bias": [[0] * 3]}, "Bias must be integers in lists of 1, 4, outermost first"),
    ({"gain": [[1, 2, 1, 1]]}, "Gain must fit 2 bits"),
])
def test_wrong_scale(options, message):
    options = {"lanes": 2, "input_bits": 4, "output_bits": 6, "gain": [[1] * 4],
               "bias": [[0] * 4], "gain_bits": 2, "bias_bits": 2, **options}
    with pytest.raises(ValueError, match=f"^{message}$"):
        ScaleUnit(Scale((2, 2, 4), 3, 6), **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"lanes": 0}, "Lanes must be a positive integer, not 0"),
    ({"output_bits": 4}, "Output bits must be at least the 5 of an input, not 4"),
])
def test_wrong_add(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        AddUnit(**{"lanes": 1, "left_bits": 4, "right_bits": 5, "output_bits": 6, **options})
