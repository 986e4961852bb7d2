"""Which memories ask for a block RAM."""

__all__ = ["block_attrs", "buffer_attrs"]

# A block RAM is asked for where LUTs would be many: a bit of 64 words is one LUT6 or four LUT4, and
# 2 Kbit are half of the smallest block (iCE40: 4 Kbit; ECP5 and 7 series: 18 Kbit).
_BLOCK_DEPTH = 64
_BLOCK_BITS = 2048


def block_attrs(depth, width):
    """Attributes of a memory of ``depth`` words of ``width`` bits."""
    if depth >= _BLOCK_DEPTH and depth * width >= _BLOCK_BITS:
        return {"ram_style": "block", "rom_style": "block"}
    return {}


def buffer_attrs(depth, width):
    """... of one of which a word that is being written is never used: neither port need win."""
    return {**block_attrs(depth, width), "no_rw_check": 1}
