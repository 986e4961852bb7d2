"""Pipelined count of ones."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pipeline import delay, reduce_tree
from benn_fpga.schedule import POPCOUNT_LEAF

__all__ = ["PopCount"]


class PopCount(wiring.Component):
    """``o = number of ones in i``.

    A level of full adders, then a binary adder tree, a register after each. Latency
    ``schedule.popcount_latency(width)`` cycles of ``en``, one word per cycle.

    Parameters
    ----------
    width : bits of ``i``, at least 1

    Members
    -------
    i : In(width)
    en : In(1), moves the pipeline
    o : Out(range(width + 1))
    """

    def __init__(self, width):
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"Width must be a positive integer, not {width!r}")
        self._width = width
        super().__init__({"i": In(width), "en": In(1), "o": Out(range(width + 1))})

    def elaborate(self, platform):
        m = Module()
        leaves = []
        for n in range(0, self._width, POPCOUNT_LEAF):
            bits = list(self.i[n:n + POPCOUNT_LEAF])
            total = Signal(range(len(bits) + 1), name=f"leaf{n // POPCOUNT_LEAF}")
            m.d.comb += total.eq(sum(bits))
            leaves += [(delay(m, total, 1, en=self.en, name=total.name)[-1],)]
        total, = reduce_tree(m, leaves, lambda a, b: (a[0] + b[0],), en=self.en, name="sum")
        m.d.comb += self.o.eq(total)
        return m
