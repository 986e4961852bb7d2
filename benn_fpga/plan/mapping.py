"""What Yosys makes of a memory: block RAMs, memories in LUTs, or logic.

It chooses what costs least by the costs of its libraries (memory_libmap); here the same is computed
for memories of one port that reads and at most one that writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from benn_fpga.plan.blocks import BLOCKS

if TYPE_CHECKING:
    from benn_fpga.plan.nodes import Memory

__all__ = ["LIBRARIES", "Library", "Mapped", "Ram"]

_MUX, _DEMUX = 0.5, 0.5  # what Yosys adds for a bit that is chosen, and for a piece that is written
_FREE_PORT = 2  # ... and for a port that reads and does nothing else


@dataclass(frozen=True)
class Ram:
    """A kind of memory that a family has.

    Members
    -------
    is_block : whether it is a block RAM
    shapes : (bits of a word, words)
    cost : of one, and how much of that depends on how much of the word is used
    byte : bits that are written together; 0 for the whole word
    takes : block RAMs, or cells, that one takes
    reads_constants : whether it may hold constants
    """

    is_block: bool
    shapes: tuple[tuple[int, int], ...]
    cost: int
    scaled: int = 0
    byte: int = 0
    takes: int = 1
    reads_constants: bool = True


@dataclass(frozen=True)
class Mapped:
    """A memory as Yosys maps it.

    Members
    -------
    ram : its :class:`Ram`; None if it becomes logic
    count : how many of those
    pieces : how many words one address chooses from
    """

    ram: Ram | None
    count: int = 0
    pieces: int = 1

    @property
    def blocks(self) -> int:
        """Block RAMs."""
        return self.count * self.ram.takes if self.ram is not None and self.ram.is_block else 0


@dataclass(frozen=True)
class Library:
    """The memories of a family, and what a bit costs in logic."""

    rams: tuple[Ram, ...]
    written: float = 1
    constant: float = 1 / 16

    def map(self, memory: Memory, bits: int | None = None) -> Mapped:
        """One copy of ``memory``, of which only so many ``bits`` vary, if that is known."""
        return _mapped(self, memory.words, memory.bits if bits is None else bits, memory.constant,
                       memory.is_block)


@lru_cache(maxsize=1 << 16)
def _mapped(library: Library, words: int, bits: int, constant: bool, is_block: bool) -> Mapped:
    per_bit = library.constant if constant else library.written
    least, best = words * bits * per_bit, Mapped(None)
    if is_block:
        least = float("inf")
    for ram in library.rams:
        if (is_block and not ram.is_block) or (constant and not ram.reads_constants):
            continue
        for cost, mapped in _shapes(ram, words, bits, constant):
            if cost < least:
                least, best = cost, mapped
    return best


def _shapes(ram: Ram, words: int, bits: int, constant: bool) -> Iterable[tuple[float, Mapped]]:
    """A memory in each shape of ``ram``, and its cost."""
    for wide, deep in ram.shapes:
        pieces = -(-words // deep)
        together = 1 if constant else min(ram.byte or wide, wide)
        count = -(-pieces * -(-bits // together) * together // wide)
        cost = (ram.cost - ram.scaled) * count + ram.scaled * pieces * bits / wide \
            + (pieces - 1) * bits * _MUX + _FREE_PORT
        if pieces > 1 and not constant:
            cost += pieces * _DEMUX
        yield cost, Mapped(ram, count, pieces)


_18K, _36K = BLOCKS["18k"].shapes, BLOCKS["36k"].shapes
_ICE40 = Ram(True, BLOCKS["ice40"].shapes, 64, byte=1)

# As the libraries of Yosys have them.
LIBRARIES = {
    "ECP5": Library((
        Ram(True, BLOCKS["ecp5"].shapes, 128, byte=9),
        Ram(False, ((4, 16),), 4, reads_constants=False))),
    "iCE40": Library((_ICE40,), written=3, constant=0.125),
    "iCE40, sparing": Library((_ICE40,)),
    "Gowin": Library((
        Ram(True, _18K, 128, byte=9),
        Ram(False, ((4, 16),), 4, 4, reads_constants=False))),
    "7 series": Library((
        Ram(True, _18K, 129, byte=9),
        Ram(True, _36K, 257, byte=9, takes=2),
        Ram(False, ((6, 32),), 8, 7, takes=4, reads_constants=False),
        Ram(False, ((3, 64),), 8, 7, takes=4, reads_constants=False))),
    "LUT6": Library((
        Ram(True, _18K, 64),
        Ram(False, ((1, 64),), 1, reads_constants=False))),
}
