"""Building without a compiler: one at a time, whole or not at all."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

from benn_fpga.errors import BennError
from benn_fpga.sim import build
from benn_fpga.sim.verilator import Verilator


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The folders in which a compiler ran; it runs as ``compiled.act`` says."""
    class Compiled(list):
        def act(self, folder):
            (folder / "benn_top").write_text("new")

    folders = Compiled()

    def compile_(verilator, verilog, folder, waves, failed):
        folders.append(folder)
        folders.act(folder)
    monkeypatch.setattr(build, "toolchain", lambda: Verilator((5, 48)))
    monkeypatch.setattr(build, "_compile", compile_)
    (tmp_path / "x.v").touch()
    (tmp_path / "sim").mkdir()
    return folders


def run(tmp_path):
    return build.build(tmp_path / "x.v", tmp_path / "sim" / "plain")


def test_a_second_build_waits_for_the_first(compiled, tmp_path):
    compiled.act = lambda folder: time.sleep(0.3)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(run, [tmp_path] * 2)) == [False, True]
    assert len(compiled) == 1


def test_a_new_design_replaces_the_build(compiled, tmp_path):
    assert run(tmp_path)
    (tmp_path / "x.v").write_text("changed")
    assert run(tmp_path)
    assert sorted(os.listdir(tmp_path / "sim")) == ["plain"]


@pytest.mark.parametrize("before", [False, True])
def test_control_c_leaves_what_was_there(compiled, tmp_path, before):
    if before:
        run(tmp_path)
        (tmp_path / "x.v").write_text("changed")

    def interrupt(folder):
        (folder / "half").touch()
        raise KeyboardInterrupt
    compiled.act = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert os.listdir(tmp_path / "sim") == ["plain"] * before


@pytest.mark.parametrize("name", ["a b", "a#b", "a$b", "a'b", "a:b"])
def test_a_folder_in_which_make_cannot_build(compiled, tmp_path, name):
    """It is compiled elsewhere, and nothing is left there."""
    (tmp_path / name / "sim").mkdir(parents=True)
    (tmp_path / name / "x.v").touch()
    assert run(tmp_path / name)
    assert not run(tmp_path / name)
    folder, = compiled
    assert name not in str(folder)
    assert not folder.exists()
    assert sorted(os.listdir(tmp_path / name / "sim" / "plain")) == ["benn_top", "built"]


def test_a_link_to_such_a_folder(compiled, tmp_path):
    (tmp_path / "a b" / "sim").mkdir(parents=True)
    (tmp_path / "a b" / "x.v").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    assert run(tmp_path / "link")
    assert not compiled[0].exists()


def test_nowhere_to_build(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path / "t t"))
    (tmp_path / "a b" / "sim").mkdir(parents=True)
    (tmp_path / "a b" / "x.v").touch()
    with pytest.raises(BennError, match=r"make can build neither in '.*/a b/sim' nor in '.*/t t', "
                                        r"for the spaces or signs in their names; set TMPDIR"):
        run(tmp_path / "a b")
    assert not compiled


@pytest.fixture
def seen(monkeypatch, tmp_path):
    """What lies in the folders of builds before they begin; each compiles the runtime library."""
    found = []

    def compile_(self, *, build_dir, **_):
        found.append([name for name in os.listdir(build_dir) if name.endswith(".o")])
        (build_dir / "verilated.o").touch()
    monkeypatch.setattr(build._Runner, "build", compile_)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


def compile_in(folder, waves=False):
    folder.mkdir()
    (folder.parent / "x.v").touch()
    build._compile(Verilator((5, 48)), folder.parent / "x.v", folder, waves,
                   folder.parent / "build.log")


def test_the_runtime_library_is_kept(seen, tmp_path):
    for n, waves in enumerate((False, False, True, True)):
        compile_in(tmp_path / f"{n}", waves)
    assert seen == [[], ["verilated.o"]] * 2


def test_nowhere_to_keep_the_runtime_library(seen, tmp_path):
    (tmp_path / "cache").touch()
    compile_in(tmp_path / "0")
    compile_in(tmp_path / "1")
    assert seen == [[], []]


def test_no_home_to_keep_the_runtime_library_in(seen, tmp_path, monkeypatch):
    monkeypatch.setattr(build.cache, "root", mock.Mock(side_effect=OSError))
    compile_in(tmp_path / "0")
    assert seen == [[]]


def test_a_command_that_fails(monkeypatch):
    """It ends what it has started, as test_children.py shows."""
    ran = mock.Mock(return_value=subprocess.CompletedProcess([], 3))
    monkeypatch.setattr(build.children, "run", ran)
    runner = build._Runner()
    runner.env = {}
    with pytest.raises(RuntimeError, match="exit code 3"):
        runner._execute_cmds([["make"]], ".")
    assert ran.call_args.args == (["make"],)
