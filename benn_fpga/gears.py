"""Width converters: how many beats of one width become how many of another."""

from dataclasses import dataclass
from math import lcm

__all__ = ["Gear", "gear"]


@dataclass(frozen=True)
class Gear:
    """A width converter: ``collect`` beats fill a block, which leaves in ``emit`` beats.

    A frame is ``blocks`` blocks. Where beats and frame do not share a block size, the block is the
    whole frame and its surplus is dropped.
    """

    collect: int
    emit: int
    blocks: int

    def last_beat(self, first, spacing):
        """When the last beat of a frame comes out, if beats go in at ``first + n*spacing``."""
        return (first + (self.collect - 1) * spacing + (self.collect > 1) + (self.emit > 1)
                + (self.blocks - 1) * max(self.collect * spacing, self.emit) + self.emit - 1)


def gear(i, o, frame):
    """The :class:`Gear` from beats of ``i`` elements to ``o``, for frames of ``frame`` elements."""
    block = lcm(i, o)
    if frame % block:
        return Gear(-(-frame // i), -(-frame // o), 1)
    return Gear(block // i, block // o, frame // block)
