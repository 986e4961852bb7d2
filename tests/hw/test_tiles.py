# amaranth: UnusedElaboratable=no
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from hypothesis import given
from hypothesis import strategies as st

import rtl
import tiles
from benn_fpga import bits
from benn_fpga.hw.tiles import Partials, Tiles, tile_layout
from benn_fpga.layers import MaxPool
from draw import divisors


@st.composite
def layers(draw, channels=4):
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    padding = draw(st.integers(0, min(kernel) - 1))
    shape = tuple(draw(st.integers(max(1, k - 2 * padding), 9)) for k in kernel)
    layer = MaxPool((*shape, draw(st.integers(1, channels))), kernel, draw(st.integers(1, 5)),
                    padding, code_bits=2)
    return layer if layer.is_tiled else replace(layer, stride=draw(st.integers(max(kernel), 5)))


def check_tiles(layer, lanes, **waits):
    x = np.random.default_rng(0).integers(0, 4, (2, *layer.shape))
    expected = tiles.tile_words(layer, x, lanes, 2)
    dut = Tiles(layer, lanes=lanes, element_bits=2)
    beats, = rtl.stream(dut, [(dut.i, bits.stream_words(x.reshape(-1, lanes), 2))],
                        [(dut.o, len(expected))], **waits)
    assert [{key: beat.payload[key] for key in expected[0]} for beat in beats] == expected
    assert layer.covered * (layer.channels // lanes) * 2 == len(expected)
    return [beat.cycle for beat in beats]


@given(layers(), st.data())
def test_tiles(layer, data_):
    lanes = data_.draw(st.sampled_from(divisors(layer.channels)))
    idle, stall = data_.draw(st.sampled_from([(0, 0), (3, 0), (0, 3)]))
    check_tiles(layer, lanes, idle=idle, stall=stall)


@pytest.mark.parametrize("stall", [0, 3])
@pytest.mark.parametrize(("shape", "count", "stride"), [
    ((4, 5), 1, 2), ((5, 4), 3, 2), ((1, 1), 2, 3), ((7, 7), 1, 3), ((3, 3), 2, 1)])
def test_one_tap(shape, count, stride, stall):
    cycles = check_tiles(MaxPool((*shape, count), (1, 1), stride, code_bits=2), 1, stall=stall)
    if not stall:
        assert cycles[0] == 0


class Counts(wiring.Component):
    """Each beat's number among those of its window and word, by way of Partials."""

    def __init__(self, depth, words):
        self._depth, self._words = depth, words
        super().__init__({"i": In(stream.Signature(tile_layout(1, depth), always_ready=True)),
                          "o": Out(stream.Signature(8, always_ready=True))})

    def elaborate(self, platform):
        m = Module()
        first, valid = Signal(), Signal()
        m.d.sync += [first.eq(self.i.p.first), valid.eq(self.i.valid), self.o.valid.eq(valid)]
        partials = Partials(m, 8, depth=self._depth, words=self._words, tap=self.i.p,
                            valid=(self.i.valid, valid))
        partials.update(Mux(first, 1, partials.before + 1)[:8])
        m.d.comb += self.o.payload.eq(partials.now)
        if self._depth > 1:
            (write,), (read,) = m.submodules.memory.write_ports, m.submodules.memory.read_ports
            m.d.sync += Assert(~(write.en & read.en & (write.addr == read.addr)), "ports met")
        return m


@pytest.mark.parametrize("idle", [0, 1, 3])
@pytest.mark.parametrize("layer", [
    MaxPool((4, 5, 2), (2, 2), 2), MaxPool((4, 5, 1), (2, 2), 2), MaxPool((5, 5, 1), (3, 1), 3),
    MaxPool((4, 4, 1), (3, 2), 3, 1), MaxPool((3, 3, 3), (3, 3), 3), MaxPool((3, 3, 1), (3, 3), 3),
    MaxPool((3, 2, 2), (2, 1), 2), MaxPool((3, 3, 2), (3, 3)), MaxPool((4, 5, 2), (4, 2), 2)],
    ids=str)
def test_partials(layer, idle):
    """Every word is kept until its window goes on, and the ports of the memory never meet."""
    words, counts, expected = layer.channels, {}, []
    taps = tiles.tile_words(layer, np.zeros((3, *layer.shape), np.int64), 1, 1)
    for tap in taps:
        counts[tap["partial"]] = 1 if tap["first"] else counts[tap["partial"]] + 1
        expected.append(counts[tap["partial"]])
    dut = Counts(layer.partial_words(1), words)
    beats, = rtl.stream(dut, [(dut.i, taps)], [(dut.o, len(taps))], idle=idle)
    assert [beat.payload for beat in beats] == expected


@pytest.mark.parametrize("reset_at", [1, 2, 3, 5, 6])
def test_reset(reset_at):
    layer = MaxPool((2, 4, 1), (2, 2), 2, code_bits=2)
    x = np.random.default_rng(0).integers(0, 4, (1, *layer.shape))
    dut = Tiles(layer, lanes=1, element_bits=2)
    expected = tiles.tile_words(layer, x, 1, 2)
    got = rtl.after_reset(dut, bits.stream_words(x.reshape(-1, 1), 2), reset_at=reset_at)
    assert [{key: beat.payload[key] for key in expected[0]} for beat in got] == expected


def test_windows_must_not_overlap():
    with pytest.raises(ValueError, match=r"^Windows of 3x2 overlap at stride 2$"):
        Tiles(MaxPool((5, 4, 2), (3, 2), 2), lanes=1, element_bits=1)
