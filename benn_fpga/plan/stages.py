"""A layer and its fold: the words that it reads and gives.

A word holds some elements of one pixel; the output of a dense layer is one pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from benn_fpga.layers import Layer, Window

if TYPE_CHECKING:
    from benn_fpga.plan.nodes import Front
    from benn_fpga.spec import Fold

__all__ = ["Stage"]


@dataclass(frozen=True)
class Stage:
    """Layer ``n`` and its fold; what it does depends on these alone."""

    n: int = field(compare=False)
    layer: Layer
    fold: Fold

    @property
    def lanes_in(self) -> int:
        """Elements of a word that comes in."""
        return self.layer.lanes_in(self.fold)

    @property
    def lanes_out(self) -> int:
        return self.fold.pe

    @property
    def words_in(self) -> int:
        """Words of a pixel that it reads; of a dense layer of the whole frame."""
        return self.layer.input_shape[-1] // self.lanes_in

    @property
    def words_out(self) -> int:
        """Words of a pixel that it gives: as often it reads a window."""
        return self.layer.output_shape[-1] // self.lanes_out

    @property
    def pixels_in(self) -> int:
        return prod(self.layer.input_shape[:-1])

    @property
    def pixels_out(self) -> int:
        return prod(self.layer.output_shape[:-1])

    @property
    def front(self) -> tuple[type[Front], ...]:
        """Node kinds that cut what it reads out of the pixels that come."""
        return self.layer.front(self.fold)

    @property
    def reads_per_word(self) -> int:
        """Words that it reads for a word that it gives; of tiles the last one counts."""
        return self.layer.reads_per_word(self.fold)

    @property
    def reads(self) -> int:
        """... for a pixel that it gives."""
        return self.words_out * self.reads_per_word

    @property
    def words_per_block(self) -> int:
        """Words that it gives for one slot in a queue: of a pixel, of a frame one."""
        return 1 if self.layer.reads_frames else self.words_out

    @property
    def reads_per_block(self) -> int:
        """Words that it reads for them."""
        return self.words_per_block * self.reads_per_word

    @property
    def parts(self) -> int:
        """Parts of the channels that are read one after another."""
        return self.windowed.parts(self.fold)

    @property
    def windowed(self) -> Window:
        """The layer, which must be one that moves a window over an image."""
        if not isinstance(self.layer, Window):
            raise TypeError(f"Layer {self.n} ({self.layer.kind}) has no window")
        return self.layer

    @property
    def window(self) -> Window:
        """The layer as its line buffer sees it: of one tap, only what is on the grid."""
        layer = self.windowed
        if layer.taps > 1:
            return layer
        return replace(layer, shape=(*layer.grid, layer.channels), stride=1)
