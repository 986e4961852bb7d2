"""XNOR-popcount processing element."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import reduce_tree
from benn_fpga.hw.popcount import popcount

__all__ = ["ProcessingElement"]


class ProcessingElement(wiring.Component):
    """``o = sum over i, j of 2**(i+j) * popcount(xnor(w_i, x_j))``, planes i of w and j of x.

    Latency ``latency.sum_latency`` of the parameters, one word per cycle. Bit 1 is +1.

    Parameters
    ----------
    simd : elements handled in a cycle
    weight_bits, input_bits : bits of an element of ``w`` and ``x``
    adder_levels : of a popcount, from one register to the next

    Members
    -------
    w : In(simd * weight_bits), stream layout
    x : In(simd * input_bits), stream layout
    o : Out, 0 to simd * (2**weight_bits - 1) * (2**input_bits - 1)
    """

    def __init__(self, *, simd, weight_bits, input_bits, adder_levels=1):
        positive(SIMD=simd, weight_bits=weight_bits, input_bits=input_bits,
                 adder_levels=adder_levels)
        self._simd = simd
        self._weight_bits = weight_bits
        self._input_bits = input_bits
        self._adder_levels = adder_levels
        largest = simd * ((1 << weight_bits) - 1) * ((1 << input_bits) - 1)
        super().__init__({
            "w": In(simd * weight_bits),
            "x": In(simd * input_bits),
            "o": Out(range(largest + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        products = []
        for i in range(self._weight_bits):
            for j in range(self._input_bits):
                w = Cat(self.w[i::self._weight_bits])
                x = Cat(self.x[j::self._input_bits])
                ones = popcount(m, ~(w ^ x), name=f"count_{i}_{j}",
                                adder_levels=self._adder_levels)
                products.append((ones << (i + j),))
        total, = reduce_tree(m, products, lambda a, b: (a[0] + b[0],), name="sum")
        m.d.comb += self.o.eq(total)
        return m
