"""Pools: the largest code of each window, or the sum of each window and its thresholds."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.banks import check_banks, word
from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import banked, counter, delay
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least
from benn_fpga.hw.window import tap_layout
from benn_fpga.schedule import pool_latency

__all__ = ["MaxPoolUnit", "SumPoolUnit"]


def _check_lanes(layer, lanes):
    positive(lanes=lanes)
    if layer.channels % lanes:
        raise ValueError(f"Lanes {lanes} must divide the {layer.channels} channels")


class MaxPoolUnit(wiring.Component):
    """Largest code of each window, channel by channel.

    A window comes in as channels/lanes groups of ``layer.taps`` words, and each group gives a word.
    Latency 1, one tap per cycle. A tap outside the image is 0, which is
    never larger than another.

    Parameters
    ----------
    layer : layers.MaxPool
    lanes : channels of a word

    Members
    -------
    i : In(stream of tap_layout(lanes * code_bits))
    o : Out(stream of lanes * code_bits bits)
    """

    def __init__(self, layer, *, lanes):
        _check_lanes(layer, lanes)
        self._layer = layer
        self._lanes = lanes
        width = lanes * layer.code_bits
        super().__init__({
            "i": In(stream.Signature(tap_layout(width))),
            "o": Out(stream.Signature(width)),
        })

    def elaborate(self, platform):
        m = Module()
        largest, take = Signal.like(self.o.payload, reset_less=True), Signal()
        tap, last = counter(m, self._layer.taps, en=take, name="tap")
        m.d.comb += [
            self.o.payload.eq(largest),
            self.i.ready.eq(~self.o.valid | self.o.ready),
            take.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(take & last)
        for n in range(self._lanes):
            code, best = (value.word_select(n, self._layer.code_bits)
                          for value in (self.i.p.data, largest))
            with m.If(take & ((tap == 0) | (code > best))):
                m.d.sync += best.eq(code)
        return m


class SumPoolUnit(wiring.Component):
    """Sum of each window, channel by channel, or how many thresholds it reaches.

    A window comes in as channels/lanes groups of ``layer.taps`` words of signed integers, 0 outside
    the image, and each group gives a word: sums if ``layer.output_bits`` is 0, else codes. With
    ``layer.relu`` only taps in the image that reach ``active`` are added, and the thresholds are
    those for the number of such taps. After ``layer.positions`` windows comes the next round, with
    its own constants. Latency
    ``schedule.pool_latency``, one tap per cycle. The whole pipeline stops
    while an output waits.

    Parameters
    ----------
    layer : layers.SumPool
    lanes : channels of a word
    input_bits : width of an input
    rounds : banks of constants
    thresholds : per round, channel and entry the levels; for codes
    active : per round and channel the least active input; for relu
    output_bits : width of a sum, in which all that occur must fit; for sums

    Members
    -------
    i : In(stream of tap_layout(lanes * input_bits))
    o : Out(stream of lanes * layer.output_bits bits, or lanes * output_bits for sums)
    """

    def __init__(self, layer, *, lanes, input_bits, rounds=1, thresholds=None, active=None,
                 output_bits=None):
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
        # For codes: every sum, and the threshold that none reaches.
        largest = layer.taps << (input_bits - 1)
        self._sum_bits = output_bits or Shape.cast(range(-largest, largest - layer.taps + 2)).width
        super().__init__({
            "i": In(stream.Signature(tap_layout(lanes * input_bits))),
            "o": Out(stream.Signature(lanes * (output_bits or layer.output_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        layer = self._layer
        before, _, after = pool_latency(layer, self._lanes, self._rounds)
        en, accept = Signal(), Signal()
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(en),
            accept.eq(self.i.valid & en),
        ]

        # Stage 0: a tap arrives, the constants of its channels are asked for.
        tap, last = counter(m, layer.taps, en=accept, name="tap")
        ends = accept & last
        if layer.relu:
            taps, active = self._chosen(m, en, ends)
        else:
            taps = self._integers(delay(m, self.i.p.data, before, en=en, name="data")[-1])

        # Stage ``before``: it is added.
        valid = delay(m, accept, before, en=en, name="valid", init=0)[-1]
        first = delay(m, tap == 0, before, en=en, name="first")[-1] if layer.taps > 1 else C(1)
        done = valid & delay(m, last, before, en=en, name="last")[-1]
        m.d.comb += self.o.valid.eq(delay(m, done, 1 + after, en=en, name="done", init=0)[-1])
        totals = []
        for n, value in enumerate(taps):
            total = Signal(signed(self._sum_bits), name=f"total{n}", reset_less=True)
            with m.If(en & valid):
                m.d.sync += total.eq(Mux(first, 0, total) + value)
            totals.append(delay(m, total, max(0, after - 1), en=en, name=f"total{n}")[-1])
        if not layer.output_bits:
            m.d.comb += self.o.payload.eq(Cat(totals))
            return m

        # Last stage: the thresholds are there, and compared.
        thresholds = (self._by_count(m, en, valid, first, done, active) if layer.relu else
                      self._by_channel(m, en, ends))
        payload = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += self.o.payload.eq(payload)
        with m.If(en):
            m.d.sync += [
                payload.word_select(n, layer.output_bits).eq(
                    sum(at_least(_ordered(total), t) for t in levels))
                for n, (total, levels) in enumerate(zip(totals, thresholds, strict=True))]
        return m

    def _row(self, m, en, step=1):
        return banked(m, self._layer.channels // self._lanes * step, step=step,
                      repeats=self._layer.positions, banks=self._rounds, en=en, name="row")

    def _rows(self, banks):
        """Per round and group, what ``banks`` holds for its channels."""
        return [bank[at:at + self._lanes] for bank in banks
                for at in range(0, self._layer.channels, self._lanes)]

    def _integers(self, data):
        return [data.word_select(n, self._input_bits).as_signed() for n in range(self._lanes)]

    def _chosen(self, m, en, ends):
        """Each lane's tap, 0 if it is not active, and whether it is."""
        width = self._input_bits + 1  # one value more: no input reaches it
        m.submodules.active = rom = Rom(
            [word([_clipped(t, width) for t in row], width) for row in self._rows(self._active)],
            width=self._lanes * width)
        m.d.comb += [rom.address.eq(self._row(m, ends)), rom.en.eq(en)]
        data = delay(m, self.i.p.data, rom.latency, en=en, name="data")[-1]
        inside = C(1)
        if self._layer.padding:
            inside = delay(m, self.i.p.inside, rom.latency, en=en, name="inside")[-1]
        taps, active = [], []
        for n, value in enumerate(self._integers(data)):
            reached = at_least(Cat(value, ~value[-1]), rom.entry(n, width)) & inside
            active += delay(m, reached, 1, en=en, name=f"active{n}")[1:]
            taps += delay(m, Mux(reached, value, 0), 1, en=en, name=f"tap{n}")[1:]
        return taps, active

    def _by_channel(self, m, en, ends):
        """Thresholds of each lane, asked for as soon as a tap arrives."""
        levels, width = self._layer.levels, self._sum_bits
        m.submodules.table = rom = Rom(
            [word([_clipped(t, width) for (entry,) in row for t in entry], width)
             for row in self._rows(self._thresholds)], width=self._lanes * levels * width)
        m.d.comb += [rom.address.eq(self._row(m, ends)), rom.en.eq(en)]
        return [[rom.entry(n * levels + k, width) for k in range(levels)]
                for n in range(self._lanes)]

    def _by_count(self, m, en, valid, first, done, active):
        """Thresholds of each lane, from a table of its own; its address counts active taps."""
        layer, width = self._layer, self._sum_bits
        base = self._row(m, en & done, step=layer.entries)
        thresholds = []
        for n in range(self._lanes):
            words = [word([_clipped(t, width) for t in entry], width)
                     for row in self._rows(self._thresholds) for entry in row[n]]
            m.submodules[f"table{n}"] = rom = Rom(words, width=layer.levels * width)
            address = Signal(range(len(words)), name=f"address{n}", reset_less=True)
            with m.If(en & valid):
                m.d.sync += address.eq(Mux(first, base, address) + active[n])
            m.d.comb += [rom.address.eq(address), rom.en.eq(en)]
            thresholds.append([rom.entry(k, width) for k in range(layer.levels)])
        return thresholds


def _ordered(total):
    """Signed ``total`` of n bits, plus 2**(n-1): an unsigned number, in the same order."""
    return Cat(total[:-1], ~total[-1])


def _clipped(threshold, width):
    """The same for a threshold, which outside of ``width`` bits is always or never reached."""
    half = 1 << (width - 1)
    return min(max(threshold, -half), half - 1) + half
