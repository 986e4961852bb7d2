"""Memories: which of them are block RAM, and what is in those that hold a model's integers.

Contents are in the order in which the folded hardware reads them. This is the border at which NumPy
ends: gateware gets lists of Python integers from here.
"""

import numpy as np

from benn_fpga import bits

__all__ = ["bias_words", "constants", "encoder_words", "is_block", "signed_bits",
           "threshold_words", "vote_weights", "weight_words"]

# LUTs would be many: a bit of 64 words is one LUT6 or four LUT4, and 2 Kbit are half of the
# smallest block (iCE40: 4 Kbit; ECP5 and 7 series: 18 Kbit).
_BLOCK_DEPTH = 64
_BLOCK_BITS = 2048


def is_block(words, width):
    """Whether a memory of so many words of ``width`` bits asks synthesis for block RAM."""
    return words >= _BLOCK_DEPTH and words * width >= _BLOCK_BITS


def _members(model, folding, engine):
    """The members that ``engine`` runs, round by round."""
    return model.members[engine::folding.parallel]


def weight_words(model, folding, engine, n):
    """Words of layer ``n``: round, output fold, input fold; in a word PE, SIMD, weight bit."""
    layer, fold = model.layers[n], folding.layers[n]
    nf, sf = layer.outputs // fold.pe, layer.inputs // fold.simd
    image = []
    for member in _members(model, folding, engine):
        codes = bits.unplanes(member.layers[n]["weights"], layer.inputs)
        codes = codes.reshape(nf, fold.pe, sf, fold.simd).transpose(0, 2, 1, 3)
        image += bits.stream_words(codes.reshape(nf * sf, -1), layer.weight_bits)
    return image


def threshold_words(model, folding, engine, n):
    """Words of thresholds on the popcount: round, output fold; in a word PE, level.

    ``s >= t`` is ``P >= ceil((t + max_sum) / 2)``, P the weighted popcount.
    """
    layer, fold = model.layers[n], folding.layers[n]
    image = []
    for member in _members(model, folding, engine):
        t = (member.layers[n]["thresholds"].astype(np.int64) + layer.max_sum + 1) // 2
        t = t.reshape(layer.outputs // fold.pe, -1)
        image += bits.stream_words(t, layer.popcount_bits)
    return image


def bias_words(model, folding, engine, n, width):
    """Words of layer ``n`` if it gives integers: ``bias - max_sum``, so that they are ``2*P +
    word``, each of ``width`` bits."""
    layer, fold = model.layers[n], folding.layers[n]
    image = []
    for member in _members(model, folding, engine):
        offset = member.layers[n]["bias"].astype(np.int64) - layer.max_sum
        codes = offset.reshape(-1, fold.pe) & ((1 << width) - 1)
        image += bits.stream_words(codes, width)
    return image


def constants(model, folding, engine, n, key):
    """What the engine's members store as ``key`` for layer ``n``, as lists, round by round."""
    return [member.layers[n][key].tolist() for member in _members(model, folding, engine)]


def signed_bits(banks):
    """Width of the widest of the numbers in ``banks``, all as signed numbers."""
    return max((value if value >= 0 else ~value).bit_length() for bank in banks
               for value in bank) + 1


def vote_weights(model, folding, engine):
    """Vote weight of the engine's member in each round."""
    return [member.vote_weight for member in _members(model, folding, engine)]


def encoder_words(encoder, lanes):
    """Words of thresholds on raw values: beat of ``lanes`` values; in a word lane, level.

    Thresholds common to all values are one word. What is past the last value is 0.
    """
    t = encoder.thresholds
    if (t == t[0]).all():
        return bits.stream_words(np.tile(t[:1], lanes), encoder.bits + 1)
    padded = np.zeros((-(-encoder.values // lanes) * lanes, encoder.levels), np.int64)
    padded[:encoder.values] = t
    return bits.stream_words(padded.reshape(-1, lanes * encoder.levels), encoder.bits + 1)
