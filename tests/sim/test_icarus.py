"""Generated Verilog in Icarus Verilog, in both language modes, however reset begins.

Other than Verilator it knows X, and orders events at time 0 as the standard allows.
"""

import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from amaranth.back import verilog

import designs
import draw
from benn_fpga import api
from benn_fpga.hw import emit
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.plan import bench
from benn_fpga.plan.manifest import TOP
from benn_fpga.spec import Fold, Folding

pytestmark = pytest.mark.verify

# A table of features whose thresholds are in a memory.
TABLE = (draw.random_model(np.random.default_rng(3), members=3, shape=(13,), hidden=(6,), classes=3,
                           encoder="thermometer", per_value=True, vote="hard"),
         Folding((Fold(2, 3), Fold(1, 2)), 1, 16))
RESETS = {
    "declared": bench.DECLARED,
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


def icarus(folder, model, folding, text, *, mode="2012", reset=bench.DECLARED, pauses=0,
           change=("", ""), more=False):
    """The last thing that the plain bench says of the Verilog ``text``."""
    x = draw.random_frames(np.random.default_rng(5), model, 4)
    files = {"dut.v": text, **bench.files(model, folding, x, reset=reset)}
    files["tb.v"] = files["tb.v"].replace(*change)
    if more:  # the last answer is expected once more
        lines = [line for line in files["answers.hex"].splitlines() if not line.startswith("//")]
        files["answers.hex"] += "\n".join(lines[-len(lines) // len(x):]) + "\n"
    for name, content in files.items():
        (folder / name).write_text(content)
    options = [f"-g{mode}", f"-Ptb.IDLE={pauses}", f"-Ptb.STALL={pauses}"]
    for command in (["iverilog", *options, "-o", "tb", "tb.v", "dut.v"], ["vvp", "-n", "tb"]):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith(("PASS", "FAIL"))][-1]


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("mode", ["2005", "2012"])
@pytest.mark.parametrize("name", [*sorted(designs.ALL), "table"])
def test_every_answer(made, tmp_path, name, mode, reset):
    said = icarus(tmp_path, *made(name), mode=mode, reset=RESETS[reset])
    assert said.startswith("PASS: "), said


@pytest.mark.parametrize("pauses", [3, 40])
@pytest.mark.parametrize("name", [*sorted(designs.ALL), "table"])
def test_every_answer_with_pauses(made, tmp_path, name, pauses):
    said = [icarus(tmp_path, *made(name), pauses=n) for n in (0, pauses)]
    assert [line.split()[0] for line in said] == ["PASS:"] * 2
    at_once, paused = (int(line.split(" in ")[1].split()[0]) for line in said)
    # In cycles; short pauses may hide behind a layer that takes longer.
    assert paused > at_once if pauses == 40 else paused >= at_once


@pytest.mark.parametrize(("change", "said"), [
    (("ANSWERS = FRAMES", "ANSWERS = (FRAMES - 1)"), ", 3 of 4 answers, 0 wrong, 7 surplus"),
    (("ANSWERS = FRAMES", "ANSWERS = (FRAMES + 1)"), ", 4 of 4 answers, 0 wrong, 0 surplus"),
    ((".m_axis_tready(m_axis_tready)", ".m_axis_tready(1'b1)"), " wrong, 0 surplus"),
])
def test_bench_notices_answers_that_are_surplus_missing_or_not_held(made, tmp_path, change, said):
    found = icarus(tmp_path, *made("folded"), pauses=3, change=change, more="+ 1" in change[1])
    assert found.startswith("FAIL: 16 of 16 beats sent")
    assert found.endswith(said)


def test_the_bench_that_comes_with_a_design(tmp_path):
    """Its last beat is not full. A bit of an answer is flipped."""
    model, folding = designs.case("planes")
    api.generate(model, tmp_path / "d", folding=folding, progress=False)
    run = partial(subprocess.run, ["make", "-C", tmp_path / "d" / "tb", "IDLE=2", "STALL=2"],
                  capture_output=True, text=True, check=False)
    done = run()
    assert (done.returncode, "\nPASS: 10 frames in " in done.stdout) == (0, True)
    expected = designs.flip(tmp_path / "d" / "tb" / "answers.hex", 3)
    done = run()
    assert done.returncode == 2
    assert f"FAIL: frame 3: class_index: expected {expected ^ 1}, got {expected}\n" in done.stdout


def test_bench_notices_logic_that_waits_for_an_event(made, tmp_path):
    model, folding, _ = made("folded")
    text = verilog.convert(Ensemble(model=model, folding=folding), name=TOP)
    assert "always @*" in text
    assert icarus(tmp_path, model, folding, text).startswith("FAIL: ")


def test_bench_notices_a_wrong_vote_weight(made, tmp_path):
    model, folding, text = made("folded")
    changed = replace(model, members=(*model.members[:3], replace(model.members[3], vote_weight=2)))
    assert icarus(tmp_path, changed, folding, text).startswith("FAIL: 16 of 16 beats sent")
