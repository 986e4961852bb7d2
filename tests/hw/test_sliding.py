# amaranth: UnusedElaboratable=no
import numpy as np
import pytest
from amaranth.hdl import Assert
from hypothesis import given
from hypothesis import strategies as st

import rtl
from benn_fpga import bits, golden
from benn_fpga.hw.pipeline import counter
from benn_fpga.hw.sliding import SlidingWindow
from benn_fpga.layers import Conv
from benn_fpga.plan.geometry import Slide
from draw import ten


@st.composite
def layers(draw):
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda k: k != (1, 1)))
    padding = draw(st.integers(0, min(kernel) - 1))
    shape = tuple(draw(st.integers(max(1, k - 2 * padding), 7)) for k in kernel)
    return Conv((*shape, draw(st.integers(1, 3))), kernel, draw(st.integers(1, 3)), padding,
                outputs=1, input_bits=draw(st.integers(1, 3)))


class Checked(SlidingWindow):
    """Fails if a word is read while it is written, but for the first of a frame, above which there
    is nothing."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        if self._layer.kernel[0] > 1:
            (write,), (read,) = m.submodules.memory.write_ports, m.submodules.memory.read_ports
            _, ends = counter(m, self._slide.steps, en=write.en, name="step")
            met = write.en & read.en & (write.addr == read.addr)
            m.d.sync += Assert(~met | ends, "ports met")
        return m


def window_words(layer, x, lanes, replays):
    """The words of the windows of images ``x``."""
    seen = golden.windows(layer, x, fill=0).reshape(layer.positions * len(x), -1, lanes)
    return [word for window in seen for _ in range(replays)
            for word in bits.stream_words(window, layer.input_bits)]


def pixels(layer, x):
    return bits.stream_words(x.reshape(-1, layer.channels), layer.input_bits)


def images(layer, count, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << layer.input_bits, (count, *layer.shape))


def stream(layer, lanes, replays, x, **waits):
    """The beats of a sliding window for images ``x``."""
    dut = Checked(layer, lanes=lanes, element_bits=layer.input_bits, replays=replays)
    count = len(x) * layer.positions * replays * layer.inputs // lanes
    beats, = rtl.stream(dut, [(dut.i, pixels(layer, x))], [(dut.o, count)], **waits)
    return beats


@given(layers())
def test_slide(layer):
    """Every pixel is taken once, and every window is complete once all its pixels are in."""
    slide, (height, width, _) = Slide(layer), layer.shape
    comes, complete = np.array(slide.walk).T
    assert comes.sum() == height * width
    number = np.arange(1, height * width + 1).reshape(1, height, width, 1)
    needed = golden.windows(layer, number, fill=0).reshape(layer.positions, -1).max(axis=1)
    assert (comes.cumsum()[complete] >= needed).all()
    gaps = [*np.diff(np.flatnonzero(complete)), slide.steps - np.flatnonzero(complete)[-1]
            + slide.first]
    columns = layer.grid[1]
    within, to_row, to_frame = slide.gaps
    assert gaps == [to_frame if n + 1 == layer.positions else within if (n + 1) % columns else
                    to_row for n in range(layer.positions)]


@pytest.mark.parametrize("part", range(4))
def test_sliding_window(part):
    @ten(part, layer=layers(), data=st.data())
    def check(layer, data):
        idle, stall = data.draw(st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2)]))
        lanes, replays = data.draw(st.sampled_from(layer.wide_simds)), data.draw(st.integers(1, 3))
        x = images(layer, 3)
        beats = stream(layer, lanes, replays, x, idle=idle, stall=stall)
        assert [beat.payload for beat in beats] == window_words(layer, x, lanes, replays)


# Padding as usual, more windows than columns, rows left over, gaps, one column, one row.
GEOMETRIES = {
    "same": Conv((4, 5, 2), (3, 3), 1, 1, outputs=1),
    "more windows": Conv((3, 4, 1), (2, 3), 1, 1, outputs=1),
    "far outside": Conv((2, 1, 1), (3, 5), 1, 2, outputs=1),
    "rows left over": Conv((6, 4, 2), (2, 3), 2, outputs=1),
    "gaps": Conv((5, 5, 1), (1, 2), 3, outputs=1),
    "one row": Conv((1, 6, 1), (1, 3), outputs=1),
}


@pytest.mark.parametrize("replays", [1, 2])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_cycles(name, replays):
    """A step takes a cycle, and a window as many as it has words, the first of them in the step
    after its last: the next step comes with the last."""
    layer = GEOMETRIES[name]
    for lanes in layer.wide_simds:
        words, now, expected = layer.inputs // lanes * replays, -1, []
        for _, completes in Slide(layer).walk * 2:
            now += 1
            if completes:
                expected += range(now + 1, now + 1 + words)
                now += words - 1
        x = images(layer, 2)
        beats = stream(layer, lanes, replays, x)
        assert [beat.payload for beat in beats] == window_words(layer, x, lanes, replays)
        assert [beat.cycle for beat in beats] == expected


@pytest.mark.parametrize("reset_at", [1, 4, 7, 12, 20])
def test_reset(reset_at):
    """After it all is as at the start, to the cycle."""
    layer = GEOMETRIES["same"]
    x = images(layer, 2)
    dut = SlidingWindow(layer, lanes=6, element_bits=1, replays=1)
    expected = stream(layer, 6, 1, x)
    got = rtl.after_reset(dut, pixels(layer, x), reset_at=reset_at, count=len(expected))
    assert [beat.payload for beat in got] == [beat.payload for beat in expected]
    assert [beat.cycle - reset_at - 1 for beat in got] == [beat.cycle for beat in expected]


def test_wrong_lanes():
    with pytest.raises(ValueError, match=r"^Lanes must be one of 6, 18, not 4$"):
        SlidingWindow(GEOMETRIES["same"], lanes=4, element_bits=1, replays=1)
