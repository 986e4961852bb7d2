# amaranth: UnusedElaboratable=no
import numpy as np
import pytest
from amaranth.hdl import C, Module
from amaranth.lib import wiring
from hypothesis import given, settings
from hypothesis import strategies as st

import designs
import draw
import rtl
import tiles
from benn_fpga import bits, golden
from benn_fpga.hw.banks import widened
from benn_fpga.hw.pipeline import counter
from benn_fpga.hw.pool import MaxPoolUnit, SumPoolUnit
from benn_fpga.hw.tiles import Tiles
from benn_fpga.hw.window import LineBuffer
from benn_fpga.layers import MaxPool, SumPool
from benn_fpga.plan.latency import max_latency, pool_latency, window_ahead

IDLE = st.sampled_from([0, 0, 1, 3])


@st.composite
def pools(draw_, kind, **options):
    """A small pool and the lanes of its unit."""
    shape = draw_(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)))
    layer = kind(**draw_(draw.windows(shape)),
                 **{name: draw_(strategy) for name, strategy in options.items()})
    return layer, draw_(st.sampled_from(draw.divisors(shape[2])))


def tap_words(layer, x, lanes, width):
    """The words of the windows of images ``x``, group by group, as a line buffer sends them."""
    if layer.is_tiled:
        return tiles.tile_words(layer, x, lanes, width)

    def by_group(x):
        seen = golden.windows(layer, x, fill=0).reshape(-1, layer.taps, layer.channels // lanes,
                                                        lanes)
        return seen.transpose(0, 2, 1, 3).reshape(-1, lanes)

    inside = by_group(np.ones_like(x))[:, 0].tolist()
    return [{"data": data, "inside": there}
            for data, there in zip(bits.stream_words(by_group(x), width), inside, strict=True)]


def pool_cycles(layer, lanes, rounds):
    return sum(pool_latency(layer, lanes, rounds))


def rtl_pool(dut, layer, x, lanes, widths, latency, *, idle=0):
    """Unsigned outputs of the unit for images ``x``; checks the cycles if there are no gaps."""
    width, output_width = widths
    count = len(x) * layer.positions * layer.channels // lanes
    words = tap_words(layer, x, lanes, width)
    beats, = rtl.stream(dut, [(dut.i, words)], [(dut.o, count)], idle=idle, limit=20_000)
    if not idle:
        assert [beat.cycle for beat in beats] == [
            n + latency for n, word in enumerate(words)
            if word.get("last", (n + 1) % layer.taps == 0)]
    out = [(beat.payload >> (n * output_width)) & ((1 << output_width) - 1)
           for beat in beats for n in range(lanes)]
    return np.array(out).reshape(len(x), *layer.output_shape)


@settings(max_examples=40)
@given(pools(MaxPool, code_bits=st.integers(1, 3)), IDLE, st.integers(0, 99))
def test_max_pool(pool, idle, seed):
    layer, lanes = pool
    x = np.random.default_rng(seed).integers(0, 1 << layer.code_bits, (2, *layer.shape))
    got = rtl_pool(MaxPoolUnit(layer, lanes=lanes), layer, x, lanes, (layer.code_bits,) * 2,
                   max_latency(layer, lanes), idle=idle)
    assert np.array_equal(got, golden.compute(layer, {}, x))


def integers(rng, width, shape):
    """Any integers of ``width`` bits, often the least or the largest."""
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    x = rng.integers(low, high + 1, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice([low, high], shape), x)


def random_bank(rng, layer, limit):
    """Arrays of a member, often with "always" and "never"."""
    arrays = draw.random_arrays(rng, layer, [limit])
    for name, low, high in (("thresholds", -layer.taps * limit, layer.taps * limit + 1),
                            ("active", -limit - 1, limit + 1)):
        if name in arrays:
            shape = arrays[name].shape
            extreme = np.where(rng.random(shape) < 0.2, rng.choice([low, high], shape),
                               arrays[name])
            arrays[name] = np.sort(extreme, axis=-1)
    return arrays


def sum_pool(layer, lanes, width, banks, ahead=0):
    """The unit for these arrays of members."""
    constants = {name: [bank[name].tolist() for bank in banks] for name in banks[0]}
    output_bits = None if layer.output_bits else sum_bits(layer, width)
    return SumPoolUnit(layer, lanes=lanes, input_bits=width, rounds=len(banks),
                       output_bits=output_bits, ahead=ahead, **constants)


def sum_bits(layer, width):
    return int(layer.taps << (width - 1)).bit_length() + 1


def check_sum_pool(layer, lanes, width, rounds, seed, **waits):
    """Images of the rounds in turn, twice."""
    rng = np.random.default_rng(seed)
    banks = [random_bank(rng, layer, 1 << (width - 1)) for _ in range(rounds)]
    x = integers(rng, width, (2 * rounds, *layer.shape))
    expected = np.concatenate([golden.compute(layer, banks[n % rounds], x[n:n + 1])
                               for n in range(len(x))])
    out_width = layer.output_bits or sum_bits(layer, width)
    got = rtl_pool(sum_pool(layer, lanes, width, banks), layer, x, lanes, (width, out_width),
                   pool_cycles(layer, lanes, rounds), **waits)
    if not layer.output_bits:
        got -= (got >> (out_width - 1)) << out_width
    assert np.array_equal(got, expected)


@settings(max_examples=30)
@given(pools(SumPool), st.integers(1, 6), st.integers(1, 2), IDLE, st.integers(0, 99))
def test_sums(pool, width, rounds, idle, seed):
    check_sum_pool(*pool, width, rounds, seed, idle=idle)


@settings(max_examples=60)
@given(pools(SumPool, output_bits=st.integers(1, 3), relu=st.booleans()), st.integers(1, 6),
       st.integers(1, 2), IDLE, st.integers(0, 99))
def test_sums_and_thresholds(pool, width, rounds, idle, seed):
    check_sum_pool(*pool, width, rounds, seed, idle=idle)


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [
    ((1, 1), 1, 0), ((2, 2), 1, 1), ((3, 2), 1, 1), ((2, 2), 2, 0), ((2, 1), 3, 0), ((3, 2), 3, 1),
    ((5, 5), 1, 0), ((4, 2), 3, 0)])
def test_latency(kernel, stride, padding, relu, lanes, rounds):
    layer = SumPool((5, 5, 3), kernel, stride, padding, output_bits=2, relu=relu)
    check_sum_pool(layer, lanes, 4, rounds, seed=0)


@pytest.mark.parametrize("seed", range(3))
def test_partials_in_gaps(seed):
    """One column, so that a window's sum is read with every pixel; what comes in gaps is none."""
    layer = SumPool((4, 4, 1), (2, 1), 2, output_bits=2, relu=True)
    check_sum_pool(layer, 1, 4, 2, seed=seed, idle=3)


def test_outside_is_not_active():
    """Zeros are active, but not those outside the image."""
    layer = SumPool((1, 1, 1), (2, 2), 1, 1, output_bits=1, relu=True)
    thresholds = [[[[1], [0], [1], [1], [1]]]]  # reached with one active tap
    dut = SumPoolUnit(layer, lanes=1, input_bits=3, thresholds=thresholds, active=[[0]])
    x = np.zeros((1, 1, 1, 1), np.int64)
    assert rtl_pool(dut, layer, x, 1, (3, 1), pool_cycles(layer, 1, 1)).all()


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize(("make", "n"), [(draw.pools, 1), (draw.pools, 3), (draw.pools, 5),
                                         (draw.residual, 2), (draw.residual, 6)])
def test_engines(make, n, idle):
    """As planned: one unit for all of them, each with its own constants. Channel by channel the
    inputs are those of engine 0 first, and so are the outputs."""
    unit, dut, banks = designs.planned_unit(make(), n, engines=3, rounds=2)
    layer, width, rng = unit.stage.layer, unit.i.element_bits, np.random.default_rng(0)
    x = (integers(rng, width, (4, *layer.shape, 3)) if isinstance(layer, SumPool) else
         rng.integers(0, 1 << width, (4, *layer.shape, 3)))
    expected = np.stack([np.concatenate([golden.compute(layer, banks[e][f % 2], x[f:f + 1, ..., e])
                                         for f in range(4)]) for e in range(3)], axis=-1)
    got = rtl_pool(dut, widened(layer, 3), x.reshape(4, *layer.shape[:2], -1), unit.i.lanes * 3,
                   (width, unit.o.element_bits), unit.latency, idle=idle)
    assert np.array_equal(got, expected.reshape(got.shape))


class Behind(wiring.Component):
    """A pool behind a line buffer, or behind tiles; a word is taken every so many cycles."""

    def __init__(self, buffer, pool, *, every):
        self._buffer, self._pool, self._every = buffer, pool, every
        super().__init__({"i": buffer.signature.members["i"], "o": pool.signature.members["o"]})

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer, m.submodules.pool = buffer, pool = self._buffer, self._pool
        wiring.connect(m, wiring.flipped(self.i), buffer.i)
        wiring.connect(m, pool.o, wiring.flipped(self.o))
        _, open_ = counter(m, self._every, en=C(1), name="cycle")
        m.d.comb += [
            buffer.o.ready.eq(open_),
            pool.i.valid.eq(buffer.o.valid & buffer.o.ready),
            pool.i.payload.eq(buffer.o.payload),
        ]
        return m


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("window", [((4, 3, 4), (3, 2), 1, 1), ((5, 7, 4), (2, 2), 2, 0),
                                    ((5, 7, 2), (2, 2), 2, 0), ((4, 4, 2), (3, 2), 3, 1),
                                    ((4, 2, 2), (2, 2), 3, 0)])
@pytest.mark.parametrize("kind", ["max", "sum", "relu"])
def test_behind_what_cuts_windows(kind, window, every):
    rng = np.random.default_rng(0)
    if kind == "max":
        layer, bank, width = MaxPool(*window, code_bits=2), {}, 2
        x = rng.integers(0, 4, (2, *layer.shape))
    else:
        layer, width = SumPool(*window, output_bits=2, relu=kind == "relu"), 4
        bank, x = random_bank(rng, layer, 8), integers(rng, 4, (2, *layer.shape))
    ahead, words = 0 if layer.is_tiled else window_ahead(layer), layer.channels // 2
    pool = MaxPoolUnit(layer, lanes=2, ahead=ahead) if kind == "max" else \
        sum_pool(layer, 2, 4, [bank], ahead=ahead)
    dut = Behind(Tiles(layer, lanes=2, element_bits=width) if layer.is_tiled else
                 LineBuffer(layer, lanes=2, element_bits=width, replays=words, groups=words), pool,
                 every=every)
    expected = bits.stream_words(golden.compute(layer, bank, x).reshape(-1, 2), 2)
    beats, = rtl.stream(dut, [(dut.i, bits.stream_words(x.reshape(-1, 2), width))],
                        [(dut.o, len(expected))])
    assert [beat.payload for beat in beats] == expected


@pytest.mark.parametrize("reset_at", [1, 3, 4, 9])
def test_reset(reset_at):
    layer, rng = SumPool((2, 1, 2), (1, 1), output_bits=2, relu=True), np.random.default_rng(0)
    banks = [random_bank(rng, layer, 8) for _ in range(2)]
    x = integers(rng, 4, (4, *layer.shape))
    words, dut = tap_words(layer, x, 1, 4), sum_pool(layer, 1, 4, banks)
    expected = [golden.compute(layer, banks[n % 2], x[n:n + 1]).ravel() for n in range(4)]
    got = rtl.after_reset(dut, words, reset_at=reset_at)
    assert [beat.payload for beat in got] == np.concatenate(expected).tolist()
    assert got[0].cycle == reset_at + 1 + pool_cycles(layer, 1, 2)


@pytest.mark.parametrize(("unit", "layer", "options", "message"), [
    (MaxPoolUnit, MaxPool((2, 2, 4), (2, 2)), {"lanes": 3}, "Lanes 3 must divide the 4 channels"),
    (MaxPoolUnit, MaxPool((2, 2, 4), (2, 2)), {"lanes": 0},
     "Lanes must be a positive integer, not 0"),
    (SumPoolUnit, SumPool((2, 2, 4), (2, 2)), {"lanes": 3, "output_bits": 6},
     "Lanes 3 must divide the 4 channels"),
    (SumPoolUnit, SumPool((2, 2, 4), (2, 2)), {},
     "Output bits must be given for a pool of sums, and for no other, not None"),
    (SumPoolUnit, SumPool((2, 2, 4), (2, 2)), {"output_bits": 3},
     "Output bits must be at least the 4 of an input, not 3"),
    (SumPoolUnit, SumPool((2, 2, 4), (2, 2)), {"output_bits": 6, "active": [[0] * 4]},
     "Active must be given for a pool with relu, and for no other"),
    (SumPoolUnit, SumPool((2, 2, 4), (2, 2), output_bits=1), {},
     "Thresholds must be given for a pool of codes, and for no other"),
    (SumPoolUnit, SumPool((2, 2, 1), (2, 2), output_bits=2), {"thresholds": [[[[0, 1]]]]},
     "Thresholds must be integers in lists of 1, 1, 1, 3, outermost first"),
    (SumPoolUnit, SumPool((2, 2, 1), (1, 1), output_bits=1, relu=True),
     {"thresholds": [[[[0], [0]]]], "active": [[np.int64(0)]]},
     "Active must be integers in lists of 1, 1, outermost first"),
])
def test_wrong_parameters(unit, layer, options, message):
    options = {"lanes": 1, **({"input_bits": 4} if unit is SumPoolUnit else {}), **options}
    with pytest.raises(ValueError, match=f"^{message}$"):
        unit(layer, **options)
