"""Reading generated Verilog."""

import re

from benn_fpga.plan.manifest import TOP

__all__ = ["memories"]


def memories(text):
    """(Words, bits) of every memory of a Verilog, by its path below the top module."""
    found, path = {}, None
    for line in text.splitlines():
        if start := re.match(r"module \\?(\S+?) ?\(", line):
            path = start[1].removeprefix(f"{TOP}.")
        if size := re.match(r" *reg (?:\[(\d+):0\] )?(\S+) \[(\d+):0\];", line):
            found[f"{path}.{size[2]}"] = int(size[3]) + 1, int(size[1] or 0) + 1
    return found
