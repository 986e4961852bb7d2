# amaranth: UnusedElaboratable=no
import numpy as np
from amaranth.hdl import Assert
from hypothesis import given
from hypothesis import strategies as st

import rtl
from benn_fpga import bits, golden
from benn_fpga.hw.window import LineBuffer
from benn_fpga.layers import MaxPool
from benn_fpga.walk import Walk
from draw import divisors


@st.composite
def layers(draw, channels=6):
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    padding = draw(st.integers(0, min(kernel) - 1))
    shape = tuple(draw(st.integers(max(1, k - 2 * padding), 9)) for k in kernel)
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
    """Fails when both ports of the memory are at one address, which no_rw_check says never is."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        (write,), (read,) = m.submodules.memory.write_ports, m.submodules.memory.read_ports
        m.d.sync += Assert(~(write.en & read.en & (write.addr == read.addr)), "ports met")
        return m


def pixel_words(layer, x, lanes):
    """Images (frames, rows, columns, channels) as the words of a stream."""
    return bits.stream_words(x.reshape(-1, lanes), layer.code_bits)


def window_words(layer, x, lanes, folds, groups):
    """... and the words of their windows."""
    seen = golden.windows(layer, x, fill=0).reshape(-1, layer.taps, layer.channels)
    parts = np.split(seen, groups, axis=2)
    return [word for window in range(len(seen)) for part in parts
            for _ in range(folds // groups)
            for word in bits.stream_words(part[window].reshape(-1, lanes), layer.code_bits)]


@given(layers().filter(lambda layer: layer.taps > 1), st.data())
def test_line_buffer(layer, data):
    lanes = data.draw(st.sampled_from(divisors(layer.channels)))
    groups = data.draw(st.sampled_from(divisors(layer.channels // lanes)))
    folds = groups * data.draw(st.integers(1, 3))
    idle, stall = data.draw(st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2)]))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        0, 1 << layer.code_bits, (3, *layer.shape))
    expected = window_words(layer, x, lanes, folds, groups)
    dut = Checked(layer, lanes=lanes, element_bits=layer.code_bits, folds=folds, groups=groups)
    beats, = rtl.stream(dut, [(dut.i, pixel_words(layer, x, lanes))], [(dut.o, len(expected))],
                        idle=idle, stall=stall)
    assert [beat.payload.data for beat in beats] == expected
