"""Line buffer: a stream of pixels in, a stream of windows out."""

from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter, delay
from benn_fpga.hw.ram import buffer_attrs
from benn_fpga.plan.geometry import Walk

__all__ = ["LineBuffer", "tap_layout"]


def tap_layout(width):
    """Payload of the stream of windows: a word of a pixel, 0 outside the image, and where it is."""
    return data.StructLayout({"data": width, "inside": 1})


@dataclass(frozen=True)
class _Window:
    """The window that is read, as signals: numbers of its :class:`~benn_fpga.plan.geometry.Step`,
    and how many pixels later than its last the last of the next window comes."""

    row: Signal
    column: Signal
    ends_row: Signal
    ends_frame: Signal
    free: Signal
    more: Signal


@dataclass(frozen=True)
class _Word:
    """The word to be read next, as signals.

    Members
    -------
    address, inside : where it is in the ring, and whether it is in the image
    first, last : it starts, or ends, a window
    frees : with it ``window.free`` pixels have been read for the last time
    window : its window
    """

    address: Signal
    inside: Signal
    first: Signal
    last: Signal
    frees: Signal
    window: _Window


class LineBuffer(wiring.Component):
    """Sends the windows of each image, word by word, while the next pixels come in.

    A ring that holds the pixels from the first that a window still needs to the last: for a kernel
    of k rows, k - 1 rows of the image and the columns of the kernel (for one tap two pixels, of
    which one comes in while the other is read). A window is sent ``replays`` times: row by row,
    column by column, the words of a pixel last. With ``groups``, replay n sends the n-th of as many
    parts of every pixel, replays / groups times in a row. A window, of two words at least, starts
    when all its pixels are there, then it goes on, one word per cycle. Latency 1 from the last word
    of its last pixel to when its first word is offered. A payload follows ``latency.window_ahead``
    cycles after it was offered and taken, and is there for one cycle.

    Parameters
    ----------
    layer : with shape, channels, kernel, taps, stride, padding and grid
    lanes : elements of a word
    element_bits : bits of an element
    replays, groups : see above

    Members
    -------
    i : In(stream of lanes * element_bits bits)
    o : Out(stream of tap_layout)
    """

    def __init__(self, layer, *, lanes, element_bits, replays, groups=1):
        positive(lanes=lanes, element_bits=element_bits, replays=replays, groups=groups)
        if replays * layer.taps * (layer.channels // lanes // groups) < 2:
            raise ValueError("A window must have two words at least")
        if layer.channels % (lanes * groups):
            raise ValueError(f"{groups} groups of words of {lanes} must divide {layer.channels} "
                             f"channels")
        if replays % groups:
            raise ValueError(f"{groups} groups must divide {replays} replays")
        self._layer = layer
        self._walk = Walk(layer)
        self._words = layer.channels // lanes
        self._replays = replays
        self._groups = groups
        width = lanes * element_bits
        super().__init__({
            "i": In(stream.Signature(width)),
            "o": Out(stream.Signature(tap_layout(width))),
        })

    def elaborate(self, platform):
        m = Module()
        words, depth = self._words, self._walk.slots
        size = depth * words
        # A pixel is read the cycle after it was written at the earliest, and its slot is written
        # the cycle after it was freed at the earliest: the ports meet at an address at most where a
        # tap is outside the image, and that word is not used.
        m.submodules.memory = mem = memory.Memory(
            shape=self.i.payload.shape(), depth=size, init=[],
            attrs=buffer_attrs(size, len(self.i.payload)))
        write, read = mem.write_port(), mem.read_port()
        put, get = Signal(), Signal()
        address, _ = counter(m, size, en=put, name="slot")
        _, whole = counter(m, words, en=put, name="word")
        word = self._word(m, get)

        # Both change by what comes and by what is read. ``space`` is tested for zero: free slots,
        # and those of pixels that are to come and will not be needed.
        steps = self._walk.steps
        space = Signal(range(depth + max(step.free for step in steps) + 1), init=depth)
        # ``lack``: pixels still missing before the window may be read, minus one; negative: start.
        most = max(_more(steps, n) for n in range(len(steps)))
        lack = Signal(range(-depth - 1, most + 1), init=steps[0].last - 1)
        came = put & whole
        m.d.comb += [
            self.i.ready.eq(space != 0),
            put.eq(self.i.valid & self.i.ready),
            write.addr.eq(address),
            write.data.eq(self.i.payload),
            write.en.eq(put),
            read.addr.eq(word.address),
            read.en.eq(get),
        ]
        m.d.sync += [
            space.eq(space - came + Mux(get & word.frees, word.window.free, 0)),
            lack.eq(lack - came + Mux(get & word.last, word.window.more, 0)),
        ]
        # Outside the image any word is read, and not used.
        data, inside = (delay(m, value, cycles, name=name)[-1] for name, value, cycles in (
            ("data", read.data, 1), ("inside", word.inside, 2)))
        if self._layer.padding:
            inside_now = inside
            data, inside = (delay(m, value, 1, name=name)[-1] for name, value in (
                ("masked", Mux(inside_now, data, 0)), ("masks", inside)))
        m.d.comb += [
            self.o.p.data.eq(data),
            self.o.p.inside.eq(inside),
            self.o.valid.eq(~word.first | lack[-1]),
            get.eq(self.o.valid & self.o.ready),
        ]
        return m

    def _word(self, m, get):
        """The word that ``get`` reads, and what goes with it."""
        layer, words = self._layer, self._words
        (height, width, _), (kh, kw), pad = layer.shape, layer.kernel, layer.padding
        part = words // self._groups

        # Words in a part of a pixel, taps, replays of a group, groups.
        _, part_ends = counter(m, part, en=get, name="part")
        column, line_ends = counter(m, kw, en=get & part_ends, name="column")
        row, taps_end = counter(m, kh, en=get & part_ends & line_ends, name="row")
        replay_ends, group_ends, ends = Signal(), Signal(), Signal()
        _, last_replay = counter(m, self._replays // self._groups, en=get & replay_ends,
                                 name="fold")
        _, last_group = counter(m, self._groups, en=get & group_ends, name="group")
        first = Signal(init=1)
        m.d.comb += [
            replay_ends.eq(part_ends & line_ends & taps_end),
            group_ends.eq(replay_ends & last_replay),
            ends.eq(group_ends & last_group),
        ]
        with m.If(get):
            m.d.sync += first.eq(ends)
        now = self._windows(m, get & ends)
        address = self._address(m, now, get, part_ends, line_ends, replay_ends, group_ends, ends)

        inside = C(1)
        if pad:
            y, x = now.row + row, now.column + column
            inside = (y >= pad) & (y < height + pad) & (x >= pad) & (x < width + pad)
        within, line, frame = ((row == r) & (column == c) for r, c in self._walk.free_at)
        frees = last_group & last_replay & part_ends & Mux(
            now.ends_frame, frame, Mux(now.ends_row, line, within))
        return _Word(address, inside, first, ends, frees, now)

    def _address(self, m, now, get, part_ends, line_ends, replay_ends, group_ends, ends):
        """Address of the word to read in the ring."""
        layer, words, size = self._layer, self._words, self._walk.slots * self._words
        (height, width, _), (rows, columns), stride = layer.shape, layer.grid, layer.stride
        part = words // self._groups

        def offset(pixels):
            return pixels * words % size

        def moved(address, amount):
            total = Signal(range(2 * size))
            m.d.comb += total.eq(address + amount)
            return Mux(total >= size, total - size, total)[:len(address)]

        # From the first tap of a window to that of the next: in a row, to a row, to a frame.
        back = (columns - 1) * stride
        jumps = (offset(stride), offset(stride * width - back),
                 offset((height - (rows - 1) * stride) * width - back))
        start = offset(-layer.padding * (width + 1))
        first = 2 if rows * columns == 1 else 1 if columns == 1 else 0
        address, base, window, after = (
            Signal(range(size), name=name, init=init) for name, init in (
                ("address", start), ("base", start), ("window", start),
                ("after", (start + jumps[first]) % size)))
        m.d.sync += after.eq(moved(window, Mux(
            now.ends_frame, jumps[2], Mux(now.ends_row, jumps[1], jumps[0]))))
        to_tap = (words - part + 1) % size
        to_line = (to_tap + offset(width - layer.kernel[1])) % size
        with m.If(get):
            m.d.sync += address.eq(moved(address, Mux(
                part_ends, Mux(line_ends, to_line, to_tap), 1)))
            with m.If(replay_ends):
                m.d.sync += address.eq(base)
            with m.If(group_ends):
                m.d.sync += [address.eq(moved(base, part)), base.eq(moved(base, part))]
            with m.If(ends):
                m.d.sync += [address.eq(after), base.eq(after), window.eq(after)]
        return address

    def _windows(self, m, en):
        """The :class:`_Window` that is read; ``en`` goes to the next.

        What it frees, and how many pixels later the next one ends, is the same for most windows:
        within a row of them it depends on the column, at its end on the row. Where it changes is
        compared with the next window's position, so that all is in registers when that starts.
        """
        layer, steps = self._layer, self._walk.steps
        (rows, columns), stride = layer.grid, layer.stride
        frees = [step.free for step in steps]
        shift = [any(frees[r * columns:(r + 1) * columns - 1]) for r in range(rows)]
        within = [max(frees[c::columns]) for c in range(columns - 1)]
        more = [_more(steps, n) for n in range(len(steps))]

        following = steps[1 % len(steps)]
        last_x, last_y = (columns - 1) * stride, (rows - 1) * stride
        x, y = (Signal(range(max(2, last + 1)), name=name, init=init) for name, last, init in (
            ("x", last_x, following.column), ("y", last_y, following.row)))
        ends_row, ends_frame = Signal(), Signal()
        m.d.comb += [ends_row.eq(x == last_x), ends_frame.eq(ends_row & (y == last_y))]
        with m.If(en):
            m.d.sync += x.eq(Mux(ends_row, 0, x + stride))
            with m.If(ends_row):
                m.d.sync += y.eq(Mux(ends_frame, 0, y + stride))

        def register(name, numbers, value):
            held = Signal(range(min(0, *numbers), max(1, *numbers) + 1), name=name,
                          init=int(numbers[0]))
            with m.If(en):
                m.d.sync += held.eq(value)
            return held

        return _Window(
            row=register("row", [0, last_y], y),
            column=register("column", [0, last_x], x),
            ends_row=register("ends_row", [steps[0].ends_row, 1], ends_row),
            ends_frame=register("ends_frame", [steps[0].ends_frame, 1], ends_frame),
            free=register("free", [*frees, 0], Mux(
                ends_row, _number(y, stride, frees[columns - 1::columns]),
                Mux(_number(y, stride, shift), _number(x, stride, within), 0))),
            more=register("more", [*more, 0], Mux(
                ends_row, _number(y, stride, more[columns - 1::columns]),
                _number(x, stride, more[:columns - 1]))))


def _more(steps, n):
    """Pixels from the last of window ``n`` to the last of the next; negative where the next row of
    windows is cut off below as well."""
    if n + 1 < len(steps):
        return steps[n + 1].last - steps[n].last
    return steps[-1].after - steps[-1].last + steps[0].last  # of the next frame


def _number(at, step, numbers):
    """``numbers[at // step]``, ``at`` a multiple of ``step``: it is compared with where they
    change."""
    number = C(int(numbers[-1])) if numbers else C(0)
    for n in reversed(range(len(numbers) - 1)):
        if numbers[n] != numbers[n + 1]:
            number = Mux(at <= n * step, int(numbers[n]), number)
    return number
