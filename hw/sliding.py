"""Sliding window: a stream of pixels in, windows in registers out, several taps in a word."""

from amaranth.hdl import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter
from benn_fpga.hw.ram import buffer_attrs
from benn_fpga.plan.geometry import Slide

__all__ = ["SlidingWindow"]


class SlidingWindow(wiring.Component):
    """Holds a window in registers and sends it in words of several taps.

    A memory holds, of every column, the pixels of the kernel's rows but the last. With every pixel
    that comes the pixels above it are read, and this column of the kernel's height moves into the
    registers, from which the oldest column goes. A complete window is sent ``replays`` times: row
    by row, column by column, channel fastest; what is outside the image is 0. The next column moves
    in with the last word of a window. Latency 1 from the last pixel of a window; a word per cycle,
    and a cycle for every step that completes no window.

    ``i.ready`` depends on ``o.ready``, since the next pixel comes in as the last word leaves.

    Parameters
    ----------
    layer : with shape, channels, kernel, stride, padding and grid
    lanes : elements of a word: taps of a row, rows, or the window
    element_bits : bits of an element
    replays : how often a window is sent

    Members
    -------
    i : In(stream of channels * element_bits bits), a pixel
    o : Out(stream of lanes * element_bits bits)
    """

    def __init__(self, layer, *, lanes, element_bits, replays):
        positive(lanes=lanes, element_bits=element_bits, replays=replays)
        if lanes not in layer.wide_simds:
            raise ValueError(f"Lanes must be one of {', '.join(map(str, layer.wide_simds))}, "
                             f"not {lanes}")
        self._layer = layer
        self._slide = Slide(layer)
        self._words = layer.taps * layer.channels // lanes
        self._replays = replays
        self._pixel = layer.channels * element_bits
        super().__init__({
            "i": In(stream.Signature(self._pixel)),
            "o": Out(stream.Signature(lanes * element_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        free, moves, comes, completes = Signal(), Signal(), Signal(), Signal()
        left = self.o.valid & self.o.ready
        word, words_end = counter(m, self._words, en=left, name="word")
        _, replays_end = counter(m, self._replays, en=left & words_end, name="fold")
        columns = self._steps(m, moves, comes)
        m.d.comb += [
            free.eq(~self.o.valid | (self.o.ready & words_end & replays_end)),
            moves.eq(free & (self.i.valid | ~comes)),
            self.i.ready.eq(free & comes),
        ]
        with m.If(free):
            m.d.sync += self.o.valid.eq(moves & completes)

        masks = self._masks(m, moves, completes)
        (_, kw), pixel, rows = self._layer.kernel, self._pixel, []
        for n, newest in enumerate((*self._above(m, moves, columns), self.i.payload)):
            row = Signal(kw * pixel, name=f"row{n}", reset_less=True)  # oldest column in low bits
            with m.If(moves):
                m.d.sync += row.eq(Cat(row, newest)[pixel:])
            rows.append(row)
        window = Cat(row.word_select(n, pixel) & inside.replicate(pixel)
                     for row, taps in zip(rows, masks, strict=True)
                     for n, inside in enumerate(taps)) if masks else Cat(rows)
        m.d.comb += self.o.payload.eq(window.word_select(word, len(self.o.payload)))
        return m

    def _steps(self, m, moves, comes):
        """Count the steps of a frame; returns the columns of this one and of the next."""
        slide, (height, width, _) = self._slide, self._layer.shape
        last_row, last_column = divmod(slide.steps - 1, slide.width)
        row, column = (Signal(range(stop), name=name) for name, stop in (
            ("row", max(2, last_row + 1)), ("column", slide.width)))
        following, line_ends, ends = Signal.like(column), Signal(), Signal()
        m.d.comb += [
            comes.eq((row < height if last_row >= height else 1)
                     & (column < width if slide.width > width else 1)),
            line_ends.eq(column == slide.width - 1),
            ends.eq((row == last_row) & (column == last_column)),
            following.eq(Mux(line_ends | ends, 0, column + 1)),
        ]
        with m.If(moves):
            m.d.sync += [column.eq(following), row.eq(Mux(ends, 0, row + line_ends))]
        return column, following

    def _above(self, m, moves, columns):
        """The pixels above the one that comes, the highest first.

        The memory is read for the next step, so that its ports never meet at an address but where
        the rows of the next frame begin, above which nothing is looked at.
        """
        rows, pixel, width = self._layer.kernel[0] - 1, self._pixel, self._slide.width
        if not rows:
            return []
        m.submodules.memory = mem = memory.Memory(
            shape=rows * pixel, depth=width, init=[], attrs=buffer_attrs(width, rows * pixel))
        write, read = mem.write_port(), mem.read_port()
        column, following = columns
        m.d.comb += [
            write.addr.eq(column),
            write.data.eq(Cat(read.data, self.i.payload)[pixel:]),
            write.en.eq(moves),
            read.addr.eq(following),
            read.en.eq(moves),
        ]
        return [read.data.word_select(n, pixel) for n in range(rows)]

    def _masks(self, m, moves, completes):
        """Count the windows; per row and column of taps of the one that is held, whether they are
        in the image, None if all are."""
        layer, slide = self._layer, self._slide
        (height, width, _), (kh, kw), pad = layer.shape, layer.kernel, layer.padding
        within, to_row, to_frame = slide.gaps
        lack = Signal(range(max(slide.first, *slide.gaps) + 1), init=slide.first)
        x, row_ends = counter(m, layer.grid[1] * layer.stride, step=layer.stride,
                              en=moves & completes, name="x")
        y, frame_ends = counter(m, layer.grid[0] * layer.stride, step=layer.stride,
                                en=moves & completes & row_ends, name="y")
        m.d.comb += completes.eq(lack == 0)
        with m.If(moves):
            m.d.sync += lack.eq(lack - 1)
            with m.If(completes):
                m.d.sync += lack.eq(Mux(row_ends, Mux(frame_ends, to_frame, to_row), within) - 1)
        if not pad:
            return None

        def inside(at, size, kernel, name):
            """Registers that say which taps of the window are in the image, along one axis."""
            taps = Signal(kernel, name=name, reset_less=True)
            with m.If(moves & completes):
                m.d.sync += taps.eq(Cat((at + n >= pad) & (at + n < size + pad)
                                        for n in range(kernel)))
            return taps
        rows, columns = inside(y, height, kh, "rows"), inside(x, width, kw, "columns")
        return [[row & column for column in columns] for row in rows]
