"""Generated Verilog in Verilator against the golden model: bulk runs and the protocol bench."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import designs
import draw
from benn_fpga import api, cli
from benn_fpga.errors import BennError, Mismatch
from benn_fpga.plan.folder import write
from benn_fpga.plan.manifest import TOP
from benn_fpga.sim import build, harness, verilator
from benn_fpga.sim.protocol import check_protocol

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Designs by name, generated and compiled once."""
    folder, found = tmp_path_factory.mktemp("designs"), {}

    def get(name):
        if name not in found:
            found[name] = write(folder / name, *designs.generated(name), designs.case(name)[0])
        return found[name]
    return get


def frames(design, count):
    return draw.random_frames(np.random.default_rng(5), design.model, count)


@pytest.mark.parametrize("name", sorted(designs.CASES))
def test_every_answer_and_every_cycle(made, name):
    result = harness.simulate(made(name), frames(made(name), 60))
    result.check()
    assert (result.frames, result.mismatches) == (60, 0)


@pytest.mark.parametrize("name", sorted(designs.CASES))
def test_lint_is_clean(made, name):
    """But for the rules that signals.vlt waives, each for a reason."""
    found = verilator.find()
    done = subprocess.run(
        ["verilator", "--lint-only", "-Wall", "--top-module", TOP, build._SIGNALS,
         made(name).verilog], env={**os.environ, **found.environment}, capture_output=True,
        text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", sorted(designs.CASES))
def test_protocol(made, name):
    assert check_protocol(made(name), frames(made(name), 8), seed=1) == 14


@pytest.mark.parametrize("count", [1, 20])
def test_protocol_of_any_number_of_frames(made, count):
    design = made("folded")
    result = api.simulate(design, frames(design, count), protocol=True, progress=False)
    assert (result.frames, result.protocol_tests) == (count, 14)


def test_the_bench_that_comes_with_a_design(tmp_path):
    """Its last beat is not full. A bit of an answer is flipped, files are cut or missing."""
    model, folding = designs.case("planes")
    api.generate(model, tmp_path / "d", folding=folding, progress=False)
    # To compile takes longer than to run.
    run = partial(subprocess.run, ["make", "-C", tmp_path / "d" / "tb", "verilator", "IDLE=2",
                                   "STALL=2", f"PYTHON={sys.executable}", "OPT_FAST=-O0",
                                   "OPT_SLOW=-O0", "OPT_GLOBAL=-O0"],
                  capture_output=True, text=True, check=False)
    done = run()
    assert (done.returncode, "\nPASS: 10 frames in " in done.stdout) == (0, True), done.stdout
    expected = designs.flip(tmp_path / "d" / "tb" / "answers.hex", 3)
    done = run()
    assert done.returncode == 2
    assert f"FAIL: frame 3: class_index: expected {expected ^ 1}, got {expected}\n" in done.stdout
    bench = tmp_path / "d" / "tb"
    (bench / "answers.hex").unlink()
    frames = (bench / "frames.hex").read_text().splitlines(keepends=True)
    (bench / "frames.hex").write_text("".join(frames[:-1]))
    told = subprocess.check_output(["obj_dir/Vtb"], cwd=bench, text=True).splitlines()
    assert told[:2] == ["FAIL: frames.hex is not whole", "FAIL: there is no file answers.hex here"]
    assert "PASS" not in "".join(told)


def test_a_second_run_does_not_build(made, monkeypatch):
    design = made("folded")
    harness.simulate(design, frames(design, 1))
    monkeypatch.setattr(build._Runner, "build", lambda *a, **k: pytest.fail("built again"))
    harness.simulate(design, frames(design, 1)).check()


def test_the_runtime_library_is_compiled_once_at_most(made):
    logs = []
    for design in (made("folded"), made("unrolled")):
        harness.simulate(design, frames(design, 1))
        logs.append((design.directory / "sim" / "plain" / "build.log").read_text())
    assert sum("verilated.cpp" in log for log in logs) <= 1


def test_nothing_is_left_but_the_build(made):
    design = made("folded")
    harness.simulate(design, frames(design, 1))
    assert os.listdir(design.directory / "sim") == ["plain"]


def test_files_are_kept_on_request(made, tmp_path):
    design = designs.with_member(made("folded"), tmp_path / "d", 0)
    (design.directory / "sim" / "run" / "older").mkdir(parents=True)
    harness.simulate(design, frames(design, 3), keep=True, force=True)
    kept = set(os.listdir(design.directory / "sim" / "run"))
    assert {"answers.bin", "bench.json", "frames.bin", "run.log"} <= kept
    assert "older" not in kept


def test_flipped_weight_bit_is_named(made, tmp_path):
    layers = designs.changed(made("folded").model.members[2], 1, "weights", (5, 0, 0),
                             lambda word: word ^ np.uint64(1))
    design = designs.with_member(made("folded"), tmp_path / "d", 2, layers=layers)
    result = harness.simulate(design, frames(design, 60))
    assert result.mismatches
    assert ", member 2, layer 1, neuron 5: expected " in result.first_mismatch


def test_threshold_off_by_one_is_named(made, tmp_path):
    layers = designs.changed(made("folded").model.members[1], 0, "thresholds", (4, 0),
                             lambda t: t + 2)  # sums go in steps of 2
    design = designs.with_member(made("folded"), tmp_path / "d", 1, layers=layers)
    result = harness.simulate(design, frames(design, 200))
    assert ", member 1, layer 0, neuron 4: expected " in result.first_mismatch


def test_wrong_vote_weight_is_named(made, tmp_path):
    design = designs.with_member(made("folded"), tmp_path / "d", 3, vote_weight=2)
    result = harness.simulate(design, frames(design, 5))
    assert result.first_mismatch.startswith("frame 0, vote: expected ")
    with pytest.raises(Mismatch):
        result.check()


def test_protocol_bench_notices_wrong_answers(made, tmp_path):
    design = designs.with_member(made("folded"), tmp_path / "d", 3, vote_weight=2)
    with pytest.raises(Mismatch, match="of 14 protocol tests fail"):
        check_protocol(design, frames(design, 8))


def test_a_folder_with_spaces(tmp_path):
    design = write(tmp_path / "spc dir's #1", *designs.generated("folded"),
                   designs.case("folded")[0])
    harness.simulate(design, frames(design, 5), layers=True, keep=True).check()
    check_protocol(design, frames(design, 8))


def test_verilog_that_does_not_compile(made, tmp_path):
    source = tmp_path / "benn_top.v"
    source.write_text("module benn_top(input clk); nonsense endmodule\n")
    with pytest.raises(BennError, match=r"Verilator could not build .*; see .*build\.log"):
        build.build(source, tmp_path / "b")
    assert not (tmp_path / "b" / "built").exists()


def test_a_bench_that_breaks_is_not_a_pass(made, tmp_path):
    design = made("folded")
    harness.simulate(design, frames(design, 1))
    with pytest.raises(BennError, match=r"the simulation stopped without results; see .*run\.log"):
        build.run(design.directory / "sim" / "plain", "no_such_bench", tmp_path)


def test_command_line(made, tmp_path, capfd, monkeypatch):
    design = made("folded")
    x = frames(design, 40)
    np.savez(tmp_path / "x.npz", x_train=x, y_train=np.arange(40) % 5, x_test=x,
             y_test=np.arange(40) % 5)
    waves = tmp_path / "w.vcd"
    waves.write_text("of an earlier run")
    argv = ["simulate", str(design.directory), str(tmp_path / "x.npz"), "--json"]
    assert cli.main([*argv, "--frames", "3", "--waves", str(waves), "--force"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["frames"], found["mismatches"]) == (3, 0)
    assert found["cycles_per_frame"] == design.manifest["predicted"]["cycles_per_frame"]
    assert waves.read_text().startswith("$version")


def test_command_line_says_no(made, tmp_path, capfd):
    design = designs.with_member(made("folded"), tmp_path / "d", 3, vote_weight=2)
    x = frames(design, 40)
    np.savez(tmp_path / "x.npz", x_train=x, y_train=np.arange(40) % 5, x_test=x,
             y_test=np.arange(40) % 5)
    assert cli.main(["simulate", str(tmp_path / "d"), "--from", str(tmp_path / "x.npz"), "--json",
                     "--only", "30-33"]) == 1
    out, err = capfd.readouterr()
    assert (json.loads(out)["frames"], json.loads(out)["mismatches"]) == (4, 4)
    assert err.startswith("benn-fpga: error: 4 of 4 frames differ from the golden model; first: "
                          "frame 30, vote: expected ")
    assert err.count("\n") == 1
