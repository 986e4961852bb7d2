"""What Yosys is told."""

import shutil
from pathlib import Path

from benn_fpga.plan.manifest import TOP

__all__ = ["script"]

_GENERIC = Path(__file__).with_name("generic.txt")

# Memories first, then as for any LUTs; carry chains are none's in particular, so there are none.
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


def script(family, work):
    """The commands for the file design.v in the folder ``work``, which gets what else they read."""
    if family.command == "generic":
        shutil.copy(_GENERIC, work)
        command = _COUNT_LUT6
    else:
        command = f"{family.command} -top {TOP}\n"
    return f"read_verilog design.v\n{command}{_END}"
