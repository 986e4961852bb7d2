"""Pipelined count of ones."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import delay, reduce_tree
from benn_fpga.plan.latency import POPCOUNT_LEAF

__all__ = ["PopCount"]

_SLICED_BITS = 4  # sums up to this width are added in LUTs, wider ones on carry chains


class PopCount(wiring.Component):
    """``o = number of ones in i``.

    A level of full adders, then a binary adder tree, a register after each. The small sums of the
    first levels are kept bit-sliced, vector k holding bit k of all of them, so that a level is a
    few wide operations whatever its width. Latency ``latency.popcount_latency(width)`` cycles of
    ``en``, one word per cycle.

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
        positive(width=width)
        self._width = width
        super().__init__({"i": In(width), "en": In(1), "o": Out(range(width + 1))})

    def elaborate(self, platform):
        m = Module()

        def register(slices, name):
            return [delay(m, s, 1, en=self.en, name=f"{name}_{k}")[-1]
                    for k, s in enumerate(slices)]

        count = -(-self._width // POPCOUNT_LEAF)
        slices = register(_add([self.i[:count]], [self.i[count:2 * count]], self.i[2 * count:]),
                          "leaf")
        level = 0
        while count > 1 and len(slices) < _SLICED_BITS:
            count = (count + 1) // 2
            slices = register(_add([s[:count] for s in slices], [s[count:] for s in slices]),
                              f"level{level}")
            level += 1
        sums = [(Cat(s[n] for s in slices),) for n in range(count)]
        total, = reduce_tree(m, sums, lambda a, b: (a[0] + b[0],), en=self.en, name="sum")
        m.d.comb += self.o.eq(total)
        return m


def _add(a, b, carry=None):
    """Bit-sliced sum of two vectors of numbers; ``a`` is at least as wide as ``b``."""
    total = []
    width = len(a[0])
    for x, y in zip(a, b, strict=True):
        if carry is None:
            total.append((x ^ y)[:width])
            carry = x & y
        else:
            total.append((x ^ y ^ carry)[:width])
            carry = (x & y) | (carry & (x | y))
    return [*total, carry[:width]]
