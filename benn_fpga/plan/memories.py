"""Memories: which of them are block RAM, and what is in those that hold a model's integers.

Contents are in the order in which the folded hardware reads them. This is the border at which NumPy
ends: gateware gets lists of Python integers from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from benn_fpga import bits

if TYPE_CHECKING:
    from benn_fpga.layers import Products
    from benn_fpga.spec import Encoder, Ensemble, Fold, Folding, Member

__all__ = ["Contents", "encoder_words", "is_block", "signed_bits"]

# LUTs would be many: a bit of 64 words is one LUT6 or four LUT4, and 2 Kbit are half of the
# smallest block (iCE40: 4 Kbit; ECP5 and 7 series: 18 Kbit).
_BLOCK_DEPTH = 64
_BLOCK_BITS = 2048


def is_block(words: int, width: int) -> bool:
    """Whether a memory of so many words of ``width`` bits asks synthesis for block RAM."""
    return words >= _BLOCK_DEPTH and words * width >= _BLOCK_BITS


@dataclass(frozen=True, eq=False)
class Contents:
    """What the memories of one engine hold: the integers of the members that it runs, round by
    round."""

    model: Ensemble
    folding: Folding
    engine: int

    @property
    def members(self) -> tuple[Member, ...]:
        return self.model.members[self.engine::self.folding.parallel]

    def _products(self, n: int) -> tuple[Products, Fold]:
        """Layer ``n``, which stores weights, and its fold."""
        return cast("Products", self.model.layers[n]), self.folding.layers[n]

    def weights(self, n: int) -> list[int]:
        """Words of layer ``n``: round, output word, input word; in each PE, SIMD, weight bit."""
        layer, fold = self._products(n)
        nf, sf = layer.outputs // fold.pe, layer.inputs // fold.simd
        words: list[int] = []
        for member in self.members:
            codes = bits.unplanes(member.layers[n]["weights"], layer.inputs)
            codes = codes.reshape(nf, fold.pe, sf, fold.simd).transpose(0, 2, 1, 3)
            words += bits.stream_words(codes.reshape(nf * sf, -1), layer.weight_bits)
        return words

    def table(self, n: int, output_bits: int) -> list[int]:
        """Words of what layer ``n``, whose outputs have ``output_bits``, stores beside weights:
        round, output word; in each PE. With P the weighted popcount, ``s = 2*P - max_sum``,

        * an integer is ``2*P + entry``: bias - max_sum;
        * one threshold is reached if ``P + entry`` reaches the top bit of the entry;
        * several thresholds are those on P: ``s >= t`` is ``P >= ceil((t + max_sum) / 2)``.
        """
        layer, fold = self._products(n)
        width = layer.entry_bits(output_bits)
        words: list[int] = []
        for member in self.members:
            if layer.is_scores:
                entries = member.layers[n]["bias"].astype(np.int64) - layer.max_sum
            else:
                entries = (member.layers[n]["thresholds"].astype(np.int64) + layer.max_sum + 1) // 2
                if layer.levels == 1:
                    entries = (1 << (width - 1)) - entries
                else:
                    width = layer.popcount_bits
            codes = entries.reshape(layer.outputs // fold.pe, -1) & ((1 << width) - 1)
            words += bits.stream_words(codes, width)
        return words

    def stored(self, n: int) -> dict[str, list[Any]]:
        """What members store for layer ``n``, by name, as lists, round by round."""
        return {key: [member.layers[n][key].tolist() for member in self.members]
                for key in self.model.layers[n].arrays()}

    def vote_weights(self) -> list[int]:
        """Vote weight of the member in each round."""
        return [member.vote_weight for member in self.members]


def signed_bits(banks: Iterable[Iterable[int]]) -> int:
    """Width of the widest of the numbers in ``banks``, all as signed numbers."""
    return max((value if value >= 0 else ~value).bit_length() for bank in banks
               for value in bank) + 1


def encoder_words(encoder: Encoder, lanes: int) -> list[int]:
    """Words of thresholds on raw values: beat of ``lanes`` values; in a word lane, level.

    Thresholds common to all values are one word. What is past the last value is 0.
    """
    t = encoder.thresholds
    if (t == t[0]).all():
        return bits.stream_words(np.tile(t[:1], lanes), encoder.bits + 1)
    padded = np.zeros((-(-encoder.values // lanes) * lanes, encoder.levels), np.int64)
    padded[:encoder.values] = t
    return bits.stream_words(padded.reshape(-1, lanes * encoder.levels), encoder.bits + 1)
