"""Generated Verilog in Icarus Verilog, in both language modes, however reset begins.

Other than Verilator it knows X, and orders events at time 0 as the standard allows.
"""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from amaranth.back import verilog

import designs
import draw
from benn_fpga.hw import emit
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.plan.manifest import TOP
from benn_fpga.sim.plain_bench import DECLARED, plain_bench
from benn_fpga.spec import Fold, Folding

pytestmark = pytest.mark.verify

# A table of features whose thresholds are in a memory, beside the designs that Verilator runs.
TABLE = (draw.random_model(np.random.default_rng(3), members=3, shape=(13,), hidden=(6,), classes=3,
                           encoder="thermometer", per_value=True, vote="hard"),
         Folding((Fold(2, 3), Fold(1, 2)), 1, 16))
RESETS = {
    "declared": DECLARED,
    "initial": "reg rst; initial rst = 1;",
    "0-1-0": "reg rst = 0; initial begin repeat (3) @(posedge clk); rst <= 1; end",
    "X first": """\
reg rst;
  initial begin
    #1 s_axis_tvalid = 1'bx;
    repeat (3) @(posedge clk);
    #1 rst = 1;
    s_axis_tvalid = 0;
  end""",
}


@pytest.fixture(scope="module")
def made():
    """Model, folding and Verilog of a design by its name, generated once."""
    found = {}

    def get(name):
        if name not in found:
            shape = TABLE if name == "table" else designs.case(name)
            found[name] = (*shape, emit.generate(*shape)[0])
        return found[name]
    return get


def icarus(folder, model, folding, text, *, mode="2012", reset=DECLARED):
    """What the plain bench says of the Verilog ``text``."""
    x = draw.random_frames(np.random.default_rng(5), model, 4)
    for name, content in {"dut.v": text, **plain_bench(model, folding, x, reset)}.items():
        (folder / name).write_text(content)
    for command in (["iverilog", f"-g{mode}", "-o", "tb", "tb.v", "dut.v"], ["vvp", "-n", "tb"]):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[0]


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("mode", ["2005", "2012"])
@pytest.mark.parametrize("name", [*sorted(designs.CASES), "table"])
def test_every_answer(made, tmp_path, name, mode, reset):
    said = icarus(tmp_path, *made(name), mode=mode, reset=RESETS[reset])
    assert said.startswith("PASS: "), said


def test_bench_notices_logic_that_waits_for_an_event(made, tmp_path):
    model, folding, _ = made("folded")
    text = verilog.convert(Ensemble(model=model, folding=folding), name=TOP)
    assert "always @*" in text
    assert icarus(tmp_path, model, folding, text).startswith("FAIL: ")


def test_bench_notices_a_wrong_vote_weight(made, tmp_path):
    model, folding, text = made("folded")
    changed = replace(model, members=(*model.members[:3], replace(model.members[3], vote_weight=2)))
    assert icarus(tmp_path, changed, folding, text).startswith("FAIL: 16 of 16 beats sent")
