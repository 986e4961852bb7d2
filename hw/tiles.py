"""Tiles: windows that do not overlap, cut out of a stream of pixels."""

from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter, delay
from benn_fpga.hw.ram import buffer_attrs

__all__ = ["Partials", "Tiles", "tile_layout"]


def tile_layout(width, partials):
    """Payload of the stream of tiles.

    A word of a pixel, whether its pixel is the first or the last of its window, and whether it is
    the first or the last of the window's pixels in a row; which of ``partials`` words of partial
    results it goes with.
    """
    return data.StructLayout({"data": width, "first": 1, "last": 1, "enters": 1, "leaves": 1,
                              "partial": range(partials)})


@dataclass(frozen=True)
class _Axis:
    """Where a pixel is in the rows or the columns, as signals."""

    kept: Value
    first: Value
    last: Value
    ends: Value


class Tiles(wiring.Component):
    """Passes the pixels that are in a window, drops the others. Latency 0.

    Parameters
    ----------
    layer : with shape, channels, kernel, stride, spacing, padding and grid; its windows do not
        overlap
    lanes : channels of a word
    element_bits : bits of an element

    Members
    -------
    i : In(stream of lanes * element_bits bits)
    o : Out(stream of tile_layout)
    """

    def __init__(self, layer, *, lanes, element_bits):
        positive(lanes=lanes, element_bits=element_bits)
        if any(space < kernel for space, kernel in
               zip(layer.spacing, layer.kernel, strict=True)):
            raise ValueError(f"Windows of {layer.kernel[0]}x{layer.kernel[1]} overlap at stride "
                             f"{layer.stride}")
        if layer.channels % lanes:
            raise ValueError(f"Lanes {lanes} must divide the {layer.channels} channels")
        self._layer = layer
        self._words = layer.channels // lanes
        self._partials = layer.grid[1] * self._words
        width = lanes * element_bits
        super().__init__({
            "i": In(stream.Signature(width)),
            "o": Out(stream.Signature(tile_layout(width, self._partials))),
        })

    def elaborate(self, platform):
        m = Module()
        taken = Signal()
        word, pixel_ends = counter(m, self._words, en=taken, name="word")
        columns = self._axis(m, 1, "column", taken & pixel_ends)
        rows = self._axis(m, 0, "row", taken & pixel_ends & columns.ends)
        start, _ = counter(m, self._partials, step=self._words, name="start",
                           en=taken & pixel_ends & columns.kept & columns.last)
        keep = Signal()
        m.d.comb += [
            keep.eq(columns.kept & rows.kept),
            self.o.p.data.eq(self.i.payload),
            self.o.p.first.eq(columns.first & rows.first),
            self.o.p.last.eq(columns.last & rows.last),
            self.o.p.enters.eq(columns.first),
            self.o.p.leaves.eq(columns.last),
            self.o.p.partial.eq(start + word),
            self.o.valid.eq(self.i.valid & keep),
            self.i.ready.eq(~keep | self.o.ready),
            taken.eq(self.i.valid & self.i.ready),
        ]
        return m

    def _axis(self, m, n, name, en):
        """Follow the rows (``n`` 0) or the columns; ``en`` goes to the next."""
        layer = self._layer
        size, kernel, grid, space = (sizes[n] for sizes in (layer.shape, layer.kernel, layer.grid,
                                                            layer.spacing))
        at, ends = counter(m, size, en=en, name=name)
        # Position in the window; those behind the last window count on from it.
        phase = Signal(range(max(2, space)), name=f"{name}_phase", init=layer.padding)
        with m.If(en):
            m.d.sync += phase.eq(Mux(phase == space - 1, 0, phase + 1))
            with m.If(ends):
                m.d.sync += phase.eq(layer.padding)
        kept = phase < kernel if kernel < space else C(1)
        if size + layer.padding > grid * space:
            kept &= at < grid * space - layer.padding
        first = (phase == 0) | (at == 0) if layer.padding else phase == 0
        return _Axis(kept, first, (phase == kernel - 1) | ends, ends)


class Partials:
    """Partial results of the windows in a row of tiles, one word of ``width`` bits at a time.

    The last one is in a register, ``now``; those of other windows and words are in a memory, if
    there are any. What is written in a cycle is read in a later one: the ports never meet at an
    address.

    Parameters
    ----------
    m : the module
    width : bits of a word
    depth, words : words in all, and of a pixel
    tap : of tile_layout, a cycle before it is added
    valid : that there is one, in that cycle and in the next

    Members
    -------
    before : the word so far, with ``valid[1]``; without meaning for the first tap of a window
    now : the word that :meth:`update` was given
    """

    def __init__(self, m, width, *, depth, words, tap, valid):
        self._m = m
        self._active = valid[1]
        self.now = self.before = Signal(width, name="now", reset_less=True)
        self._write = None
        if depth == 1:
            return
        m.submodules.memory = mem = memory.Memory(
            shape=width, depth=depth, init=[], attrs=buffer_attrs(depth, width))
        self._write, read = mem.write_port(), mem.read_port()
        address, enters, leaves = (
            delay(m, value, 1, name=name) for name, value in (
                ("partial", tap.partial), ("enters", tap.enters), ("leaves", tap.leaves)))
        m.d.comb += [read.addr.eq(address[0]), self._write.addr.eq(address[1])]
        if words > 1:
            m.d.comb += [read.en.eq(valid[0]), self._write.en.eq(self._active)]
            self.before = read.data
        else:
            # The window goes on with the next pixel, too soon for the memory.
            m.d.comb += [
                read.en.eq(valid[0] & enters[0]),
                self._write.en.eq(self._active & leaves[1]),
            ]
            self.before = Mux(enters[1], read.data, self.now)

    def update(self, value):
        """Let ``value`` be the word from now on."""
        with self._m.If(self._active):
            self._m.d.sync += self.now.eq(value)
        if self._write is not None:
            self._m.d.comb += self._write.data.eq(value)
