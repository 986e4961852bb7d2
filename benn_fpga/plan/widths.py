"""Width converters: how many words of one width become how many of another."""

from dataclasses import dataclass
from math import lcm

__all__ = ["Gear", "gear"]


@dataclass(frozen=True)
class Gear:
    """A width converter: ``collect`` words fill a block, which leaves in ``emit`` words.

    A frame is ``blocks`` blocks, then, if there is a ``tail``, a block of fewer words (in, out);
    what the last word of a frame holds past its end is dropped.
    """

    collect: int
    emit: int
    blocks: int
    tail: tuple[int, int] | None = None

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Words in and words out of each block of a frame."""
        return [(self.collect, self.emit)] * self.blocks + ([self.tail] if self.tail else [])

    @property
    def words(self) -> int:
        """Words in of a frame."""
        return sum(collect for collect, _ in self.sizes)

    @property
    def cycles(self) -> int:
        """Cycles per frame, if words go in and out as fast as they can: a block is collected while
        the one before it is emitted."""
        sizes = self.sizes
        return sum(max(emit, collect) for (_, emit), (collect, _) in
                   zip(sizes, sizes[1:] + sizes[:1], strict=True))

    def elements(self, i: int, o: int) -> int:
        """Elements that its registers hold, if a word in has ``i`` and one out ``o``."""
        return i * self.collect * (self.collect > 1) + o * self.emit * (self.emit > 1)


def gear(i: int, o: int, frame: int) -> Gear:
    """The :class:`Gear` from words of ``i`` elements to ``o``, for frames of ``frame`` elements."""
    block = lcm(i, o)
    blocks, rest = divmod(frame, block)
    if not blocks:
        return Gear(-(-frame // i), frame // o, 1)
    return Gear(block // i, block // o, blocks, (-(-rest // i), rest // o) if rest else None)
