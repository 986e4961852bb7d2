"""Line buffer: a stream of pixels in, a stream of windows out."""

from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter
from benn_fpga.walk import Step, Walk

__all__ = ["LineBuffer", "tap_layout"]


def tap_layout(width):
    """Payload of the stream of windows: a word of a pixel, 0 outside the image, and where it is."""
    return data.StructLayout({"data": width, "inside": 1})


@dataclass(frozen=True)
class _Word:
    """The word to be read next, as signals.

    Members
    -------
    address, inside : its place in the ring, and whether it is in the image
    first : it starts a window
    frees : with it ``step.free`` pixels have been read for the last time
    step : the window
    """

    address: Signal
    inside: Signal
    first: Signal
    frees: Signal
    step: Step


class LineBuffer(wiring.Component):
    """Sends the windows of each image, word by word, while the next pixels come in.

    A ring that holds the pixels from the first that a window still needs to the last: for a kernel
    of k rows, k - 1 rows of the image and the columns of the kernel (for one tap two pixels, of
    which one comes in while the other is read). A window is sent ``folds`` times: row by row,
    column by column, the words of a pixel last. With ``groups``, fold n sends the n-th of as many
    parts of every pixel, folds / groups times in a row. A window, of two words at least, starts
    when all its pixels are there, then it goes on, one word per cycle. Latency 2 from the last word
    of its last pixel.

    Parameters
    ----------
    layer : with shape, kernel, stride, padding and grid
    lanes : elements of a word
    element_bits : bits of an element
    folds, groups : see above

    Members
    -------
    i : In(stream of lanes * element_bits bits)
    o : Out(stream of tap_layout)
    """

    def __init__(self, layer, *, lanes, element_bits, folds, groups=1):
        positive(lanes=lanes, element_bits=element_bits, folds=folds, groups=groups)
        if folds * layer.taps * (layer.channels // lanes // groups) < 2:
            raise ValueError("A window must have two words at least")
        if layer.channels % (lanes * groups):
            raise ValueError(f"{groups} groups of words of {lanes} must divide {layer.channels} "
                             f"channels")
        if folds % groups:
            raise ValueError(f"{groups} groups must divide {folds} folds")
        self._layer = layer
        self._walk = Walk(layer)
        self._words = layer.channels // lanes
        self._folds = folds
        self._groups = groups
        width = lanes * element_bits
        super().__init__({
            "i": In(stream.Signature(width)),
            "o": Out(stream.Signature(tap_layout(width))),
        })

    def elaborate(self, platform):
        m = Module()
        words, depth = self._words, self._walk.places
        size = depth * words
        # A pixel is read the cycle after it was written at the earliest, and its place is written
        # the cycle after it was freed at the earliest: the ports never meet at an address.
        m.submodules.memory = mem = memory.Memory(
            shape=self.i.payload.shape(), depth=size, init=[], attrs={"no_rw_check": 1})
        write, read = mem.write_port(), mem.read_port()
        put, get, freed = Signal(), Signal(), Signal()

        # Pixels held, less those that are to come and will not be needed.
        least = -max(step.free for step in self._walk.steps)
        held = Signal(range(least, depth + 1))
        place, _ = counter(m, size, en=put, name="place")
        _, whole = counter(m, words, en=put, name="word")
        word = self._word(m, get)
        m.d.comb += [
            self.i.ready.eq(held < depth),
            put.eq(self.i.valid & self.i.ready),
            write.addr.eq(place),
            write.data.eq(self.i.payload),
            write.en.eq(put),
            read.addr.eq(word.address),
            read.en.eq(get & word.inside),
            freed.eq(get & word.frees),
        ]
        m.d.sync += held.eq(held + (put & whole) - Mux(freed, word.step.free, 0))
        inside = Signal()
        m.d.comb += [
            self.o.p.data.eq(Mux(inside, read.data, 0)),
            self.o.p.inside.eq(inside),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.comb += get.eq(~word.first | (held >= word.step.need))
            m.d.sync += [self.o.valid.eq(get), inside.eq(word.inside)]
        return m

    def _word(self, m, get):
        """The word that ``get`` reads, and what goes with it."""
        layer, words = self._layer, self._words
        (height, width, _), (kh, kw), pad = layer.shape, layer.kernel, layer.padding
        part = words // self._groups

        # Words in a part of a pixel, taps, folds of a group, groups.
        _, part_ends = counter(m, part, en=get, name="part")
        column, line_ends = counter(m, kw, en=get & part_ends, name="column")
        row, taps_end = counter(m, kh, en=get & part_ends & line_ends, name="row")
        fold_ends, group_ends, ends = Signal(), Signal(), Signal()
        _, last_fold = counter(m, self._folds // self._groups, en=get & fold_ends, name="fold")
        _, last_group = counter(m, self._groups, en=get & group_ends, name="group")
        first = Signal(init=1)
        m.d.comb += [
            fold_ends.eq(part_ends & line_ends & taps_end),
            group_ends.eq(fold_ends & last_fold),
            ends.eq(group_ends & last_group),
        ]
        with m.If(get):
            m.d.sync += first.eq(ends)
        now = self._steps(m, get & ends)
        address = self._address(m, now, get, part_ends, line_ends, fold_ends, group_ends, ends)

        inside = C(1)
        if pad:
            y, x = now.row + row, now.column + column
            inside = (y >= pad) & (y < height + pad) & (x >= pad) & (x < width + pad)
        within, line, frame = ((row == r) & (column == c) for r, c in self._walk.free_at)
        frees = last_group & last_fold & part_ends & Mux(
            now.ends_frame, frame, Mux(now.ends_row, line, within))
        return _Word(address, inside, first, frees, now)

    def _address(self, m, now, get, part_ends, line_ends, fold_ends, group_ends, ends):
        """Place of the word to read in the ring."""
        layer, words, size = self._layer, self._words, self._walk.places * self._words
        (height, width, _), (rows, columns), stride = layer.shape, layer.grid, layer.stride
        part = words // self._groups

        def places(pixels):
            return pixels * words % size

        def moved(address, amount):
            total = Signal(range(2 * size))
            m.d.comb += total.eq(address + amount)
            return Mux(total >= size, total - size, total)[:len(address)]

        # From the first tap of a window to that of the next: in a row, to a row, to a frame.
        back = (columns - 1) * stride
        jumps = (places(stride), places(stride * width - back),
                 places((height - (rows - 1) * stride) * width - back))
        start = places(-layer.padding * (width + 1))
        kind = 2 if rows * columns == 1 else 1 if columns == 1 else 0
        address, base, window, after = (
            Signal(range(size), name=name, init=init) for name, init in (
                ("address", start), ("base", start), ("window", start),
                ("after", (start + jumps[kind]) % size)))
        m.d.sync += after.eq(moved(window, Mux(
            now.ends_frame, jumps[2], Mux(now.ends_row, jumps[1], jumps[0]))))
        to_tap = (words - part + 1) % size
        to_line = (to_tap + places(width - layer.kernel[1])) % size
        with m.If(get):
            m.d.sync += address.eq(moved(address, Mux(
                part_ends, Mux(line_ends, to_line, to_tap), 1)))
            with m.If(fold_ends):
                m.d.sync += address.eq(base)
            with m.If(group_ends):
                m.d.sync += [address.eq(moved(base, part)), base.eq(moved(base, part))]
            with m.If(ends):
                m.d.sync += [address.eq(after), base.eq(after), window.eq(after)]
        return address

    def _steps(self, m, en):
        """The :class:`~benn_fpga.walk.Step` of the window that is read; ``en`` goes to the next.

        It is computed ahead: the numbers of the next window are in registers when it starts.
        """
        layer, steps = self._layer, self._walk.steps
        (height, width, _), (kh, kw), (rows, columns) = layer.shape, layer.kernel, layer.grid
        stride, pad = layer.stride, layer.padding
        following = steps[1 % len(steps)]

        def upto(name, largest, init):
            """A signal for numbers up to ``largest``, of one bit at least."""
            return Signal(range(max(2, largest + 1)), name=name, init=init)

        # Row and column of the window after this one, and the pixels above its row.
        last_x, last_y = (columns - 1) * stride, (rows - 1) * stride
        x = upto("x", last_x, following.column)
        y = upto("y", last_y, following.row)
        above = upto("above", last_y * width, following.row * width)
        ends_row, ends_frame = Signal(), Signal()
        m.d.comb += [ends_row.eq(x == last_x), ends_frame.eq(ends_row & (y == last_y))]
        with m.If(en):
            m.d.sync += x.eq(Mux(ends_row, 0, x + stride))
            with m.If(ends_row):
                m.d.sync += [y.eq(Mux(ends_frame, 0, y + stride)),
                             above.eq(Mux(ends_frame, 0, above + stride * width))]

        def first(at, scale):
            """Of the rows (times ``scale``) or columns of a window, the first in the image."""
            found = at - pad * scale
            return Mux(found[-1], 0, found[:-1])

        def end(at, size, kernel, scale):
            """... and the end of them."""
            stop = at + (kernel - pad) * scale
            return Mux((size * scale - stop)[-1], size * scale, stop)

        top, below = first(above, width), first(above + stride * width, width)
        gone = top + Mux(below > top, first(x, 1), 0)
        after = Mux(ends_frame, height * width, Mux(ends_row, below, Mux(
            below > top, top + first(x + stride, 1), gone)))
        need = end(above, height, kh, width) - width + end(x, width, kw, 1) - gone
        values = {"row": y, "column": x, "need": need, "free": after - gone,
                  "ends_row": ends_row, "ends_frame": ends_frame}
        now = {}
        for name, value in values.items():
            largest = max(int(getattr(step, name)) for step in steps)
            coming, now[name] = (upto(f"{when}_{name}", largest, int(getattr(step, name)))
                                 for when, step in (("next", following), ("now", steps[0])))
            m.d.sync += coming.eq(value)
            with m.If(en):
                m.d.sync += now[name].eq(coming)
        return Step(**now)
