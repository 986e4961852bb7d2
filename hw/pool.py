"""Pools: the largest code of each window, or the sum of each window and its thresholds."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from benn_fpga.hw.banks import bank_row, check_banks, word
from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter, delay
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least
from benn_fpga.hw.window import tap_layout
from benn_fpga.schedule import MEMORY_LATENCY

__all__ = ["MaxPoolUnit", "SumPoolUnit", "max_pool_latency", "sum_pool_latency"]


def max_pool_latency(layer):
    """Cycles from the last tap of a group of channels to its largest codes."""
    return 1


def sum_pool_latency(layer, lanes, rounds):
    """Cycles from the last tap of a group of ``lanes`` channels to its sums or codes."""
    accumulate, choose, compare = 1, 1, 1
    if not layer.output_bits:
        return accumulate
    table = 0 if rounds * layer.channels == lanes else MEMORY_LATENCY
    if layer.relu:
        return table + choose + accumulate + MEMORY_LATENCY + compare
    return max(table, accumulate) + compare


def _groups(layer, lanes):
    positive(lanes=lanes)
    if layer.channels % lanes:
        raise ValueError(f"Lanes {lanes} must divide the {layer.channels} channels")
    return layer.channels // lanes


class MaxPoolUnit(wiring.Component):
    """Largest code of each window, channel by channel.

    A window comes in as channels/lanes groups of ``layer.taps`` words, and each group gives a word.
    Latency :func:`max_pool_latency`, one tap per cycle. A tap outside the image is 0, which is
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
        _groups(layer, lanes)
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
    """Sum of each window, channel by channel, and how many thresholds it reaches.

    A window comes in as channels/lanes groups of ``layer.taps`` words of signed integers, 0 outside
    the image, and each group gives a word: sums if ``layer.output_bits`` is 0, else codes. With
    ``layer.relu`` only taps in the image that reach ``active`` are added, and the thresholds are
    those for the number of such taps. After ``layer.positions`` windows comes the next round, with
    its own constants. Latency :func:`sum_pool_latency`, one tap per cycle. The whole pipeline stops
    while an output waits.

    Parameters
    ----------
    layer : layers.SumPool
    lanes : channels of a word
    input_bits : width of an input
    rounds : banks of constants
    thresholds : per round, channel and entry the levels; for codes only
    active : per round and channel the least active input; for relu only
    output_bits : width of a sum, if sums are given

    Members
    -------
    i : In(stream of tap_layout(lanes * input_bits))
    o : Out(stream of lanes * layer.output_bits bits, or lanes * output_bits for sums)
    """

    def __init__(self, layer, *, lanes, input_bits, rounds=1, thresholds=None, active=None,
                 output_bits=None):
        self._groups = _groups(layer, lanes)
        positive(input_bits=input_bits, rounds=rounds)
        if bool(layer.output_bits) != (output_bits is None):
            raise ValueError(f"Output bits must be given for sums only, not {output_bits!r}")
        if bool(layer.output_bits) != (thresholds is not None):
            raise ValueError("Thresholds must be given for codes only")
        if layer.relu != (active is not None):
            raise ValueError("Active must be given for relu only")
        if thresholds is not None:
            check_banks("Thresholds", thresholds, rounds, layer.channels, layer.entries,
                        layer.levels)
        if active is not None:
            check_banks("Active", active, rounds, layer.channels)
        if output_bits is not None and output_bits < input_bits:
            raise ValueError(f"Output bits must be {input_bits} at least, as the inputs are, "
                             f"not {output_bits}")
        self._layer = layer
        self._lanes = lanes
        self._rounds = rounds
        self._input_bits = input_bits
        self._thresholds = thresholds
        self._active = active
        # Room for every sum, and for the threshold that is never reached.
        self._sum_bits = output_bits or 1 + bits_for(layer.taps << (input_bits - 1))
        super().__init__({
            "i": In(stream.Signature(tap_layout(lanes * input_bits))),
            "o": Out(stream.Signature(lanes * (output_bits or layer.output_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        layer = self._layer
        en, accept = Signal(), Signal()
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(en),
            accept.eq(self.i.valid & en),
        ]
        tap, last = counter(m, layer.taps, en=accept, name="tap")

        # What is added is there ``wait`` cycles after its tap was taken, its sum a cycle later.
        added, table, wait = self._chosen(m, en, accept & last) if layer.relu else \
            self._all(m, en, accept & last)
        valid = delay(m, accept, wait, en=en, name="valid", init=0)[-1]
        first = delay(m, tap == 0, wait, en=en, name="first")[-1] if layer.taps > 1 else C(1)
        done = valid & delay(m, last, wait, en=en, name="last")[-1]
        totals = []
        for n, value in enumerate(added):
            total = Signal(signed(self._sum_bits), name=f"total{n}", reset_less=True)
            with m.If(en & valid):
                m.d.sync += total.eq(Mux(first, 0, total) + value)
            totals.append(total)

        outputs, after = totals, 1
        if layer.relu:
            entry = self._counted(m, table, en=en, valid=valid, first=first, done=done)
            totals = [delay(m, total, MEMORY_LATENCY, en=en, name=f"counted{n}")[-1]
                      for n, total in enumerate(totals)]
            after += MEMORY_LATENCY
        elif layer.output_bits:
            entry = [[table.entry(n * layer.levels + k, self._sum_bits)
                      for k in range(layer.levels)] for n in range(self._lanes)]
        return m
