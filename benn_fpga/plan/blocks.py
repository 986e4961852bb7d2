"""Block RAMs: the shapes that a block of each family has, and how many of them a memory needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from benn_fpga.layers import Layer, Products, weight_bits
from benn_fpga.plan.nodes import Memory

__all__ = ["BLOCKS", "Block", "in_turn", "of_memories", "of_weights"]


@dataclass(frozen=True)
class Block:
    """A block RAM: the ``shapes`` that it can have, each as (bits of a word, words).

    One port reads, one writes. Bits of parity count: words of 9, 18, ... bits use them.
    """

    shapes: tuple[tuple[int, int], ...]

    @property
    def bits(self) -> int:
        return max(width * depth for width, depth in self.shapes)

    def count(self, memory: Memory) -> int:
        """How many of one shape Yosys takes for one copy of ``memory``.

        Where a block is not deep enough, pieces of constants lie side by side in as few blocks as
        hold them, and a multiplexer chooses; what is written has blocks of its own for each piece.
        """
        return min(-(-pieces * memory.bits // width) if memory.constant
                   else pieces * -(-memory.bits // width)
                   for width, pieces in ((width, -(-memory.words // depth))
                                         for width, depth in self.shapes))


_18K = ((1, 16384), (2, 8192), (4, 4096), (9, 2048), (18, 1024), (36, 512))
BLOCKS = {  # by the names that presets.BRAMS explains
    "18k": Block(_18K),
    "36k": Block((*((width, 2 * depth) for width, depth in _18K), (72, 512))),
    "ecp5": Block(_18K),
    "ice40": Block(((2, 2048), (4, 1024), (8, 512), (16, 256))),
}


def of_memories(memories: Iterable[Memory]) -> dict[str, int]:
    """Blocks of all ``memories`` that ask for block RAM, for each type of block."""
    asking = [memory for memory in memories if memory.is_block]
    return {name: sum(memory.copies * block.count(memory) for memory in asking)
            for name, block in BLOCKS.items()}


def of_weights(layers: Sequence[Layer], members: int) -> dict[str, dict[str, int]]:
    """Blocks of the weights of ``members``, for each type of block: ``by_bits``, what the bits
    alone need in any design; ``in_turn``, see :func:`in_turn`."""
    bits = members * weight_bits(layers)
    return {name: {"by_bits": -(-bits // block.bits), "in_turn": in_turn(layers, members, block)}
            for name, block in BLOCKS.items()}


def in_turn(layers: Sequence[Layer], members: int, block: Block) -> int:
    """Blocks for the weights of ``members`` that one engine runs in turn, each layer in the fold
    with the fewest blocks of those that ask for block RAM."""
    return sum(min((block.count(memory) for memory in _folded(layer, members) if memory.is_block),
                   default=0)
               for layer in layers if layer.stored_bits)


def _folded(layer: Layer, members: int) -> Iterator[Memory]:
    """The memory of weights in each fold of ``layer``."""
    bits = cast(Products, layer).weight_bits
    for width in {pe * simd * bits for pe in layer.pes for simd in layer.simds}:
        yield Memory(members * layer.stored_bits // width, width, constant=True)
