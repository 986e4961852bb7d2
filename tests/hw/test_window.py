# amaranth: UnusedElaboratable=no
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from amaranth.hdl import Assert, Fragment
from hypothesis import given
from hypothesis import strategies as st

import rtl
from benn_fpga import bits, golden
from benn_fpga.hw import assembly
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.hw.pipeline import delay
from benn_fpga.hw.window import LineBuffer
from benn_fpga.layers import MaxPool
from benn_fpga.plan import nodes
from benn_fpga.plan.geometry import Walk
from benn_fpga.plan.latency import window_ahead
from benn_fpga.plan.plan import plan
from draw import conv_models, designs, divisors, ten


@st.composite
def layers(draw, channels=6):
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    padding = draw(st.integers(0, min(kernel) - 1))
    shape = tuple(draw(st.integers(max(1, k - 2 * padding), 7)) for k in kernel)
    return MaxPool((*shape, draw(st.integers(1, channels))), kernel, draw(st.integers(1, 3)),
                   padding, code_bits=draw(st.integers(1, 3)))


def by_hand(layer):
    """Per window: pixels up to its last one, and the first pixel that later windows need."""
    height, width, _ = layer.shape
    inside = np.arange(height * width).reshape(1, height, width, 1)
    seen = golden.windows(layer, inside + 1, fill=0)[0, ..., 0].reshape(layer.positions, -1)
    firsts = [min(v - 1 for v in window if v) for window in seen.tolist()] + [height * width]
    return [(max(window), min(firsts[p + 1:])) for p, window in enumerate(seen.tolist())]


@given(layers())
def test_walk(layer):
    gone = 0
    for step, (last, after) in zip(Walk(layer).steps, by_hand(layer), strict=True):
        assert (step.need, step.free) == (last - gone, max(after, gone) - gone)
        gone = max(after, gone)
    assert gone == layer.shape[0] * layer.shape[1]
    rows, columns = layer.kernel
    assert Walk(layer).depth <= (rows - 1) * layer.shape[1] + columns


class Checked(LineBuffer):
    """Fails when what is read is being written, which no_rw_check says never is; but outside the
    image that is not used."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        (write,), (read,) = m.submodules.memory.write_ports, m.submodules.memory.read_ports
        met = delay(m, write.en & read.en & (write.addr == read.addr),
                    window_ahead(self._layer), name="met", init=0)[-1]
        m.d.sync += Assert(~(met & self.o.p.inside), "ports met")
        return m


def pixel_words(layer, x, lanes):
    """Images (frames, rows, columns, channels) as the words of a stream."""
    return bits.stream_words(x.reshape(-1, lanes), layer.code_bits)


def window_words(layer, x, lanes, replays, groups):
    """... and the words of their windows."""
    seen = golden.windows(layer, x, fill=0).reshape(-1, layer.taps, layer.channels)
    parts = np.split(seen, groups, axis=2)
    return [word for window in range(len(seen)) for part in parts
            for _ in range(replays // groups)
            for word in bits.stream_words(part[window].reshape(-1, lanes), layer.code_bits)]


def check_line_buffer(layer, *, lanes=1, replays=1, groups=1, seed=0, **waits):
    x = np.random.default_rng(seed).integers(0, 1 << layer.code_bits, (3, *layer.shape))
    expected = window_words(layer, x, lanes, replays, groups)
    inside = window_words(layer, np.ones_like(x), lanes, replays, groups)
    dut = Checked(layer, lanes=lanes, element_bits=layer.code_bits, replays=replays, groups=groups)
    beats, = rtl.stream(dut, [(dut.i, pixel_words(layer, x, lanes))], [(dut.o, len(expected))],
                        o_ahead=window_ahead(layer), **waits)
    assert [beat.payload.data for beat in beats] == expected
    assert [beat.payload.inside for beat in beats] == [word & 1 for word in inside]
    return [beat.cycle for beat in beats]


@st.composite
def parameters(draw, layer):
    """Lanes, replays and groups of a line buffer for ``layer``."""
    lanes = draw(st.sampled_from(divisors(layer.channels)))
    groups = draw(st.sampled_from(divisors(layer.channels // lanes)))
    return {"lanes": lanes, "groups": groups, "replays": groups * draw(st.integers(1, 3))}


@pytest.mark.parametrize("part", range(4))
def test_line_buffer(part):
    @ten(part, layer=layers().filter(lambda layer: layer.taps > 1), data=st.data())
    def check(layer, data):
        idle, stall = data.draw(st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2)]))
        check_line_buffer(layer, **data.draw(parameters(layer)), idle=idle, stall=stall)


# Windows that overlap and do not, that leave pixels over, that lie outside the image; one tap.
GEOMETRIES = {
    "same": MaxPool((4, 5, 2), (3, 3), 1, 1),
    "rows left over": MaxPool((5, 4, 2), (2, 3), 2),
    "rows outside": MaxPool((5, 5, 1), (3, 3), 2, 1),
    "gaps": MaxPool((5, 5, 1), (1, 2), 3),
    "far outside": MaxPool((2, 1, 1), (3, 5), 2, 2),
    "one tap": MaxPool((2, 3, 2), (1, 1)),
}


@pytest.mark.parametrize(("idle", "stall"), [(0, 0), (9, 0), (0, 2)])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_geometry(name, idle, stall):
    layer = GEOMETRIES[name]
    check_line_buffer(layer, replays=2 * layer.channels, groups=layer.channels, idle=idle,
                      stall=stall)


def test_first_words():
    """A window is offered the cycle after its last pixel came, then word by word."""
    cycles = check_line_buffer(GEOMETRIES["same"], lanes=2, replays=2)
    start = 5 + 2  # the first window lacks a row and a column
    assert cycles[:18] == list(range(start, start + 18))


def largest(layer):
    """Pixels that a line buffer may hold."""
    (rows, columns), (_, width, _) = layer.kernel, layer.shape
    return (rows - 1) * width + columns if layer.taps > 1 else 2


class Built(LineBuffer):
    """Knows all that were elaborated."""

    memories: ClassVar = []

    def elaborate(self, platform):
        m = super().elaborate(platform)
        self.memories.append({"words": m.submodules.memory.depth, "bits": len(self.i.payload)})
        return m


def memories(component):
    """Of the line buffers in ``component``."""
    Built.memories.clear()
    with mock.patch.object(assembly, "LineBuffer", Built):
        Fragment.get(component, None)
    return Built.memories


@given(layers(), st.data())
def test_memory(layer, data):
    """Rows of the kernel but one, and its columns: no pixel more."""
    parts = {**data.draw(parameters(layer)), "replays": 2 * layer.channels}
    memory, = memories(Built(layer, element_bits=2, **parts))
    assert memory["words"] <= largest(layer) * (layer.channels // parts["lanes"])


def test_plan():
    """It says what memories the line buffers are, and these are no larger than they must be."""
    @ten(0, design=designs(conv_models()))
    def check(design):
        model, folding = design
        planned = {node: node.memories["memory"]
                   for node in plan(model, folding).all(nodes.LineBuffer)}
        assert memories(Ensemble(model=model, folding=folding)) \
            == [{"words": memory.words, "bits": memory.bits} for memory in planned.values()]
        for node, memory in planned.items():
            assert memory.words <= largest(node.stage.layer) * node.stage.words_in


@pytest.mark.parametrize("reset_at", [1, 4, 7, 12, 20])
def test_reset(reset_at):
    """After it all is as at the start, to the cycle."""
    layer = GEOMETRIES["same"]
    x = np.random.default_rng(0).integers(0, 2, (2, *layer.shape))
    words, expected = pixel_words(layer, x, 1), window_words(layer, x, 1, 1, 1)
    fresh, dut = (LineBuffer(layer, lanes=1, element_bits=1, replays=1) for _ in range(2))
    ahead = window_ahead(layer)
    beats, = rtl.stream(fresh, [(fresh.i, words)], [(fresh.o, len(expected))], o_ahead=ahead)
    got = rtl.after_reset(dut, words, reset_at=reset_at, count=len(expected), ahead=ahead)
    assert [beat.payload.data for beat in got] == expected
    assert [beat.cycle - reset_at - 1 for beat in got] == [beat.cycle for beat in beats]


@pytest.mark.parametrize(("options", "message"), [
    ({"lanes": 0}, "Lanes must be a positive integer, not 0"),
    ({"lanes": 4}, "A window must have two words at least"),
    ({"groups": 3, "replays": 3}, "3 groups of words of 1 must divide 4 channels"),
    ({"groups": 2, "replays": 3}, "2 groups must divide 3 replays"),
])
def test_wrong_parameters(options, message):
    options = {"lanes": 1, "element_bits": 1, "replays": 1, **options}
    with pytest.raises(ValueError, match=f"^{message}$"):
        LineBuffer(MaxPool((2, 2, 4), (1, 1)), **options)
