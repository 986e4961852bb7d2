"""Pools: the largest code of each window, or the sum of each window and its thresholds."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.banks import check_banks, interleaved, widened, word
from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import banked, counter, delay
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least
from benn_fpga.hw.tiles import Partials, tile_layout
from benn_fpga.hw.window import tap_layout
from benn_fpga.plan.latency import max_latency, pool_latency

__all__ = ["MaxPoolUnit", "SumPoolUnit"]


def _check_lanes(layer, lanes):
    positive(lanes=lanes)
    if layer.channels % lanes:
        raise ValueError(f"Lanes {lanes} must divide the {layer.channels} channels")


def _layout(layer, lanes, element_bits):
    """Payload of the stream that a pool reads."""
    width = lanes * element_bits
    return tile_layout(width, layer.partial_words(lanes)) if layer.is_tiled else tap_layout(width)


def _arrives(m, i, ahead):
    """Whether the payload of a word that was offered so many cycles ``ahead`` is there."""
    return delay(m, i.valid, ahead, name="arrives", init=0)[-1]


def _ends(m, layer, p, accept):
    """Whether the tap that ``accept`` takes is the first and the last of its window."""
    if layer.is_tiled:
        return p.first, p.last
    tap, last = counter(m, layer.taps, en=accept, name="tap")
    return tap == 0 if layer.taps > 1 else C(1), last


class MaxPoolUnit(wiring.Component):
    """Largest code of each window, channel by channel.

    Windows that overlap come in from a line buffer, as channels/lanes groups of ``layer.taps``
    words, of which each gives a word; a tap outside the image is 0, which is never larger than
    another. Others (``layer.is_tiled``) come in from :class:`~benn_fpga.hw.tiles.Tiles`, pixel by
    pixel, and the words of a window's last pixel give its words. Latency ``latency.max_latency``,
    one tap per cycle.

    Parameters
    ----------
    layer : layers.MaxPool
    lanes : channels of a word
    ahead : cycles after which the payload of ``i`` follows

    Members
    -------
    i : In(stream of tap_layout(lanes * code_bits), or tile_layout)
    o : Out(stream of lanes * code_bits bits)
    """

    def __init__(self, layer, *, lanes, ahead=0):
        _check_lanes(layer, lanes)
        self._layer = layer
        self._lanes = lanes
        self._ahead = ahead
        super().__init__({
            "i": In(stream.Signature(_layout(layer, lanes, layer.code_bits), always_ready=True)),
            "o": Out(stream.Signature(lanes * layer.code_bits, always_ready=True)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        return cls(widened(unit.stage.layer, unit.o.ways), lanes=unit.i.lanes * unit.o.ways,
                   ahead=unit.i.ahead)

    def elaborate(self, platform):
        m = Module()
        layer, lanes = self._layer, self._lanes
        accept = _arrives(m, self.i, self._ahead)
        before = max_latency(layer, lanes) - 1
        first, last = _ends(m, layer, self.i.p, accept)
        valid = delay(m, accept, before, name="valid", init=0)
        first, last, codes = (
            delay(m, value, before, name=name)[-1] for name, value in (
                ("first", first), ("last", last), ("codes", self.i.p.data)))
        partials = Partials(
            m, len(codes), depth=layer.partial_words(lanes), words=layer.channels // lanes,
            tap=self.i.p, valid=(valid[0], valid[-1]))
        largest = []
        for n in range(lanes):
            code, best = (value.word_select(n, layer.code_bits)
                          for value in (codes, partials.before))
            largest.append(Mux(first | (code > best), code, best))
        partials.update(Cat(largest))
        m.d.comb += self.o.payload.eq(partials.now)
        m.d.sync += self.o.valid.eq(valid[-1] & last)
        return m


class SumPoolUnit(wiring.Component):
    """Sum of each window, channel by channel, or how many thresholds it reaches.

    Windows come in as to :class:`MaxPoolUnit`, as words of signed integers, 0 outside the image.
    They give sums if ``layer.output_bits`` is 0, else codes. With ``layer.relu`` only taps in the
    image that reach ``active`` are added, and the thresholds are those for the number of such taps.
    After the windows of an image comes the next round, with its own constants. Latency
    ``latency.pool_latency``, one tap per cycle.

    Parameters
    ----------
    layer : layers.SumPool
    lanes : channels of a word
    input_bits : width of an input
    rounds : banks of constants
    thresholds : per round, channel and entry the levels; for codes
    active : per round and channel the least active input; for relu
    output_bits : width of a sum, in which all that occur must fit; for sums
    ahead : cycles after which the payload of ``i`` follows

    Members
    -------
    i : In(stream of tap_layout(lanes * input_bits), or tile_layout)
    o : Out(stream of lanes * layer.output_bits bits, or lanes * output_bits for sums)
    """

    def __init__(self, layer, *, lanes, input_bits, rounds=1, thresholds=None, active=None,
                 output_bits=None, ahead=0):
        _check_lanes(layer, lanes)
        positive(input_bits=input_bits, rounds=rounds)
        if (thresholds is not None) != bool(layer.output_bits):
            raise ValueError("Thresholds must be given for a pool of codes, and for no other")
        if (active is not None) != layer.relu:
            raise ValueError("Active must be given for a pool with relu, and for no other")
        if (output_bits is not None) == bool(layer.output_bits):
            raise ValueError(f"Output bits must be given for a pool of sums, and for no other, "
                             f"not {output_bits!r}")
        if layer.output_bits:
            check_banks("Thresholds", thresholds, rounds, layer.channels, layer.entries,
                        layer.levels)
        elif output_bits < input_bits:
            raise ValueError(f"Output bits must be at least the {input_bits} of an input, "
                             f"not {output_bits!r}")
        if layer.relu:
            check_banks("Active", active, rounds, layer.channels)
        self._layer = layer
        self._lanes = lanes
        self._input_bits = input_bits
        self._rounds = rounds
        self._thresholds = thresholds
        self._active = active
        self._ahead = ahead
        self._sum_bits = output_bits or layer.sum_bits(input_bits)
        super().__init__({
            "i": In(stream.Signature(_layout(layer, lanes, input_bits), always_ready=True)),
            "o": Out(stream.Signature(lanes * (output_bits or layer.output_bits),
                                      always_ready=True)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        layer, ways = widened(unit.stage.layer, unit.o.ways), unit.o.ways
        return cls(layer, lanes=unit.i.lanes * ways, input_bits=unit.i.element_bits,
                   rounds=unit.rounds, ahead=unit.i.ahead,
                   output_bits=None if layer.output_bits else unit.o.element_bits,
                   **interleaved(contents, unit.stage.n))

    def elaborate(self, platform):
        m = Module()
        layer, lanes = self._layer, self._lanes
        before, _, after = pool_latency(layer, lanes, self._rounds)
        accept = _arrives(m, self.i, self._ahead)

        # Stage 0: a tap arrives, the constants of its channels are asked for.
        first, last = _ends(m, layer, self.i.p, accept)
        p = delay(m, self.i.payload, before, name="tap")
        valid, first, last = (
            delay(m, value, before, name=name, init=init) for name, value, init in (
                ("valid", accept, 0), ("first", first, None), ("last", last, None)))
        taps, active = self._integers(p[-1].data), None
        if layer.relu:
            taps, active = self._chosen(m, accept, last[0], p)

        # Stage ``before``: it is added, and the address of its thresholds moves on.
        fields = [signed(self._sum_bits)] * lanes
        if layer.relu:
            base = self._row(m, valid[-1], last[-1], step=layer.entries)
            fields += [layer.address_bits(lanes, self._rounds)] * lanes
        early = max(0, before - 1)
        partials = Partials(
            m, sum(Shape.cast(field).width for field in fields), depth=layer.partial_words(lanes),
            words=layer.channels // lanes, tap=p[early], valid=(valid[early], valid[-1]))
        kept, now = (data.View(data.StructLayout({str(n): field for n, field in
                                                  enumerate(fields)}), value)
                     for value in (partials.before, partials.now))
        added = [Signal(field, name=f"added{n}") for n, field in enumerate(fields)]
        for n in range(lanes):
            m.d.comb += added[n].eq(Mux(first[-1], 0, kept[str(n)]) + taps[n])
            if layer.relu:
                m.d.comb += added[lanes + n].eq(
                    Mux(first[-1], base, kept[str(lanes + n)]) + active[n])
        partials.update(Cat(added))
        done = valid[-1] & last[-1]
        m.d.comb += self.o.valid.eq(delay(m, done, 1 + after, name="done", init=0)[-1])
        totals = [delay(m, now[str(n)], max(0, after - 1), name=f"total{n}")[-1]
                  for n in range(lanes)]
        if not layer.output_bits:
            m.d.comb += self.o.payload.eq(Cat(totals))
            return m

        # Last stage: the thresholds are there, and compared.
        if layer.relu:
            thresholds = self._by_count(m, [now[str(lanes + n)] for n in range(lanes)])
        else:
            thresholds = self._by_channel(m, accept, last[0])
        payload = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += self.o.payload.eq(payload)
        m.d.sync += [
            payload.word_select(n, layer.output_bits).eq(
                sum(at_least(_ordered(total), t) for t in levels))
            for n, (total, levels) in enumerate(zip(totals, thresholds, strict=True))]
        return m

    def _row(self, m, taken, last, step=1):
        """Address of what is stored for the channels of a tap; it goes on with ``taken``."""
        layer = self._layer
        en, repeats = (taken, layer.covered) if layer.is_tiled else (taken & last, layer.positions)
        return banked(m, layer.channels // self._lanes * step, step=step, repeats=repeats,
                      banks=self._rounds, en=en, name="row")

    def _rows(self, banks):
        """Per round and group, what ``banks`` holds for its channels."""
        return [bank[at:at + self._lanes] for bank in banks
                for at in range(0, self._layer.channels, self._lanes)]

    def _integers(self, data):
        return [data.word_select(n, self._input_bits).as_signed() for n in range(self._lanes)]

    def _chosen(self, m, accept, last, p):
        """Each lane's tap, 0 if it is not active, and whether it is; ``p`` came in, by stages."""
        width = self._layer.active_bits(self._input_bits)
        m.submodules.active = rom = Rom(
            [word([_clipped(t, width) for t in row], width) for row in self._rows(self._active)],
            width=self._lanes * width)
        m.d.comb += rom.address.eq(self._row(m, accept, last))
        compared = p[rom.latency]
        inside = compared.inside if self._layer.padding and not self._layer.is_tiled else C(1)
        taps, active = [], []
        for n, value in enumerate(self._integers(compared.data)):
            reached = at_least(Cat(value, ~value[-1]), rom.entry(n, width)) & inside
            active += delay(m, reached, 1, name=f"active{n}")[1:]
            taps += delay(m, Mux(reached, value, 0), 1, name=f"chosen{n}")[1:]
        return taps, active

    def _by_channel(self, m, accept, last):
        """Thresholds of each lane, asked for as soon as a tap arrives."""
        levels, width = self._layer.levels, self._sum_bits
        m.submodules.table = rom = Rom(
            [word([_clipped(t, width) for (entry,) in row for t in entry], width)
             for row in self._rows(self._thresholds)], width=self._lanes * levels * width)
        m.d.comb += rom.address.eq(self._row(m, accept, last))
        return [[rom.entry(n * levels + k, width) for k in range(levels)]
                for n in range(self._lanes)]

    def _by_count(self, m, addresses):
        """Thresholds of each lane, from a table of its own; its address counts active taps."""
        layer, width = self._layer, self._sum_bits
        thresholds = []
        for n, address in enumerate(addresses):
            words = [word([_clipped(t, width) for t in entry], width)
                     for row in self._rows(self._thresholds) for entry in row[n]]
            m.submodules[f"table{n}"] = rom = Rom(words, width=layer.levels * width)
            m.d.comb += rom.address.eq(address)
            thresholds.append([rom.entry(k, width) for k in range(layer.levels)])
        return thresholds


def _ordered(total):
    """Signed ``total`` of n bits, plus 2**(n-1): an unsigned number, in the same order."""
    return Cat(total[:-1], ~total[-1])


def _clipped(threshold, width):
    """The same for a threshold, which outside of ``width`` bits is always or never reached."""
    half = 1 << (width - 1)
    return min(max(threshold, -half), half - 1) + half
