"""Attributes of memories."""

from benn_fpga.plan.memories import is_block

__all__ = ["block_attrs", "buffer_attrs"]


def block_attrs(depth, width):
    """Attributes of a memory of ``depth`` words of ``width`` bits."""
    return {"ram_style": "block", "rom_style": "block"} if is_block(depth, width) else {}


def buffer_attrs(depth, width):
    """... of one in which a word that is being written is never used: neither port need win."""
    return {**block_attrs(depth, width), "no_rw_check": 1}
