"""Which memories are block RAM."""

__all__ = ["is_block"]

# LUTs would be many: a bit of 64 words is one LUT6 or four LUT4, and 2 Kbit are half of the
# smallest block (iCE40: 4 Kbit; ECP5 and 7 series: 18 Kbit).
_BLOCK_DEPTH = 64
_BLOCK_BITS = 2048


def is_block(words, bits):
    """Whether a memory of so many words of so many bits asks synthesis for block RAM."""
    return words >= _BLOCK_DEPTH and words * bits >= _BLOCK_BITS
