"""Read-only memory for weights and tables."""

from amaranth.hdl import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from benn_fpga.hw.pipeline import delay
from benn_fpga.schedule import MEMORY_LATENCY

__all__ = ["Rom"]

_BLOCK_DEPTH = 64  # words from which a block RAM is asked for; shallower ones are cheap in LUTs


class Rom(wiring.Component):
    """``data = words[address]``, two cycles of ``en`` later; a single word is a constant.

    The second register lets the fabric hide a block RAM's slow output.

    Parameters
    ----------
    words : list of int, at least one
    width : bits of a word

    Members
    -------
    address : In(range(len(words)))
    en : In(1), moves both registers
    data : Out(width)
    """

    def __init__(self, words, *, width):
        if not words:
            raise ValueError("Words must not be empty")
        if any(not 0 <= word < 1 << width for word in words):
            raise ValueError(f"Words must fit {width} bits")
        self._words = words
        super().__init__({
            "address": In(ceil_log2(len(words))),
            "en": In(1),
            "data": Out(width),
        })

    @property
    def latency(self):
        return 0 if len(self._words) == 1 else MEMORY_LATENCY

    def elaborate(self, platform):
        m = Module()
        if len(self._words) == 1:
            m.d.comb += self.data.eq(self._words[0])
            return m
        block = len(self._words) >= _BLOCK_DEPTH
        attrs = {"ram_style": "block", "rom_style": "block"} if block else {}
        m.submodules.memory = mem = memory.Memory(
            shape=self.data.shape(), depth=len(self._words), init=self._words, attrs=attrs)
        port = mem.read_port()
        m.d.comb += [
            port.addr.eq(self.address),
            port.en.eq(self.en),
            self.data.eq(delay(m, port.data, self.latency - 1, en=self.en, name="register")[-1]),
        ]
        return m
