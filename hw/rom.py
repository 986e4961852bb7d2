"""Read-only memory for weights and tables."""

from amaranth.hdl import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from benn_fpga.hw.check import positive
from benn_fpga.hw.ram import block_attrs
from benn_fpga.plan.latency import MEMORY_LATENCY

__all__ = ["Rom"]


class Rom(wiring.Component):
    """``data = words[address]``, ``latency`` cycles of ``en`` later; a single word is a constant.

    The second of two registers lets the fabric hide a block RAM's slow output.

    Parameters
    ----------
    words : list of int, at least one
    width : bits of a word
    latency : registers on the way, at least 1

    Members
    -------
    address : In(range(len(words))), 1 bit for a single word
    en : In(1), moves all registers; always, if it is not connected
    data : Out(width)
    """

    def __init__(self, words, *, width, latency=MEMORY_LATENCY):
        positive(width=width, latency=latency)
        if not words:
            raise ValueError("Words must not be empty")
        if any(not 0 <= word < 1 << width for word in words):
            raise ValueError(f"Words must fit {width} bits")
        self._words = words
        self._latency = latency
        super().__init__({
            "address": In(max(1, ceil_log2(len(words)))),
            "en": In(1, init=1),
            "data": Out(width),
        })

    @property
    def latency(self):
        return 0 if len(self._words) == 1 else self._latency

    def entry(self, n, width):
        """Entry ``n`` of the ``width``-bit entries of ``data``, a :class:`Const` for one word."""
        if len(self._words) == 1:
            return C((self._words[0] >> (n * width)) & ((1 << width) - 1), width)
        return self.data.word_select(n, width)

    def elaborate(self, platform):
        m = Module()
        depth, shape = len(self._words), self.data.shape()
        if depth == 1:
            m.d.comb += self.data.eq(self._words[0])
            return m
        m.submodules.memory = mem = memory.Memory(
            shape=shape, depth=depth, init=self._words, attrs=block_attrs(depth, shape.width))
        port = mem.read_port()
        m.d.comb += [
            port.addr.eq(self.address),
            port.en.eq(self.en),
        ]
        data = port.data
        for n in range(self.latency - 1):
            before, data = data, Signal.like(self.data, name=f"register_{n + 1}", reset_less=True)
            with m.If(self.en):
                m.d.sync += data.eq(before)
        m.d.comb += self.data.eq(data)
        return m
