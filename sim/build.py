"""Compiling a design for simulation, once: a build is reused while its inputs are the same."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from benn_fpga import cache, children
from benn_fpga.errors import BennError
from benn_fpga.output import alone, new_folder
from benn_fpga.plan.manifest import TOP
from benn_fpga.sim import memories
from benn_fpga.sim.verilator import compiler, toolchain

__all__ = ["build", "run"]

_SIGNALS = Path(__file__).with_name("signals.vlt")
_STAMP, _LOG = "built", "build.log"
_RUNTIME = "verilated*.o"
_SOURCE = f"{TOP}.v"
_OPTIONS = ("-O3", "--x-assign", "fast", "--no-trace-params")
_PLAIN = re.compile(r"[\w./+-]+")  # what make and its shell take for a part of a name
_MAKE = "OPT_FAST=-O1"  # compiling takes longer than running
# Files that are compiled one by one need a precompiled header, which takes longer than a small
# design.
_SMALL, _AT_ONCE = 400_000, "VM_PARALLEL_BUILDS=0"  # bytes of Verilog


class _Runner(Verilator):
    """cocotb's runner, but only the signals in signals.vlt are accessible: all are far slower.

    What is there of Verilator's runtime library is not compiled again.
    """

    def __init__(self):
        super().__init__()
        self.log.disabled = True

    def _build_command(self):
        commands = super()._build_command()
        commands[0].remove("--public-flat-rw")
        commands[-1] += [f"--assume-old={file.name}" for file in self.build_dir.glob(_RUNTIME)]
        return commands

    def _execute_cmds(self, cmds, cwd, stdout=None):
        """As cocotb's, but what a command has started ends with it: make's compilers too."""
        for command in cmds:
            code = children.run(command, cwd=cwd, env=self.env, stdout=stdout,
                                stderr=subprocess.STDOUT).returncode
            if code:
                raise RuntimeError(f"exit code {code}")


@contextmanager
def _environment(changes):
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def build(verilog, directory, *, waves=False):
    """Compile the Verilog file ``verilog`` into ``directory``; return True if it was needed.

    ``waves`` builds in the recording of a trace. The folder appears, or is replaced, as a whole.
    """
    verilator = toolchain()
    directory = Path(directory)
    key = hashlib.sha256(Path(verilog).read_bytes())
    for made_by in (_SIGNALS, Path(__file__), Path(memories.__file__)):
        key.update(made_by.read_bytes())
    key.update(f"{verilator} {metadata.version('cocotb')} {waves}".encode())
    with alone(directory.parent):  # if it has no locks, a build still appears as a whole
        stamp = directory / _STAMP
        if stamp.is_file() and stamp.read_text() == key.hexdigest():
            return False
        staging = new_folder(directory.parent, f"{directory.name}.")
        try:
            with _plain(staging) as place:
                _compile(verilator, verilog, place, waves, directory.parent / _LOG)
            (staging / _STAMP).write_text(key.hexdigest())
            shutil.rmtree(directory, ignore_errors=True)
            staging.rename(directory)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return True


@contextmanager
def _plain(folder):
    """``folder``, or one whose name has no spaces and the like, since make cannot build in others;
    what is left there is moved into ``folder``."""
    if _PLAIN.fullmatch(f"{folder.absolute()}{folder.resolve()}"):
        yield folder
        return
    if not _PLAIN.fullmatch(tempfile.gettempdir()):
        raise BennError(f"make can build neither in {str(folder.parent)!r} nor in "
                        f"{tempfile.gettempdir()!r}, for the spaces or signs in their names; set "
                        f"TMPDIR to a folder without")
    with tempfile.TemporaryDirectory(prefix="benn_fpga.") as place:
        yield Path(place)
        shutil.copytree(place, folder, dirs_exist_ok=True)


def _compile(verilator, verilog, directory, waves, failed):
    """``failed`` is where the log goes if it does not compile."""
    log, kept = directory / _LOG, _kept_runtime(verilator, waves)
    if kept:
        _copy_runtime(kept, directory)
    text = memories.compact(Path(verilog).read_text())
    (directory / _SOURCE).write_text(text)
    makeflags = " ".join([verilator.environment.get("MAKEFLAGS", ""), _MAKE,
                          *([_AT_ONCE] if len(text) < _SMALL else [])])
    with _environment({**verilator.environment, "MAKEFLAGS": makeflags}):
        try:
            _Runner().build(
                sources=[_SIGNALS, directory / _SOURCE], hdl_toplevel=TOP, build_dir=directory,
                waves=waves, timescale=("1ns", "1ns"), log_file=log, build_args=_OPTIONS)
        except RuntimeError:
            shutil.move(log, failed)
            raise BennError(f"Verilator could not build {verilog}; see {failed}") from None
    failed.unlink(missing_ok=True)
    if kept:
        with suppress(OSError):  # the next build only takes longer
            cache.once(kept, lambda folder: _copy_runtime(directory, folder))


def _kept_runtime(verilator, waves):
    """The folder, if there can be one, in which Verilator's runtime library is kept compiled.

    It is the same for all designs, and takes three times as long as a small one.
    """
    version = subprocess.run([compiler(), "--version"], capture_output=True, check=False).stdout
    flags = [{**os.environ, **verilator.environment}.get(name)
             for name in ("CPPFLAGS", "CXX", "CXXFLAGS", "VERILATOR_ROOT")]
    key = hashlib.sha256(f"{version} {verilator} {flags} {waves}".encode())
    with suppress(OSError):
        return cache.root() / "benn_fpga" / f"verilator-{verilator}-{key.hexdigest()[:12]}"


def _copy_runtime(source, target):
    for file in source.glob(_RUNTIME):
        shutil.copy(file, target)


def run(directory, module, work, *, waves=False, seed=0):
    """Run the bench ``module`` on the build in ``directory``, in the folder ``work``.

    The bench finds that folder in ``BENN_RUN``. Returns (tests, failed), since the exit status of
    the runner says nothing about failed tests.
    """
    runner = _Runner()
    runner._set_sources([])
    results, log = Path(work) / "results.xml", Path(work) / "run.log"
    try:
        runner.test(hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module=module,
                    build_dir=directory, test_dir=work, results_xml=str(results), seed=seed,
                    waves=waves, log_file=log, extra_env={"BENN_RUN": str(work)})
    except (RuntimeError, SystemExit):
        pass
    if not results.is_file():
        raise BennError(f"the simulation stopped without results; see {log}")
    return get_results(results)
