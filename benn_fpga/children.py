"""Running a program so that what it starts ends with it."""

import os
import signal
import subprocess
from contextlib import suppress

__all__ = ["run"]

_GRACE = 2  # seconds in which a program may end by itself


def run(command, **options):
    """The `CompletedProcess` of a program without input; ``options`` are those of `Popen`.

    If it fails or is interrupted, the processes that it has started end too: abc of Yosys, the
    compilers of make.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, **options)
    try:
        out, err = process.communicate()
    finally:
        if process.returncode != 0:  # None if it still runs
            _end(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process):
    """End a process and its group: first so that they remove their temporary files."""
    try:
        _signal(process, signal.SIGTERM)
    finally:  # also after a second Ctrl-C
        _signal(process, signal.SIGKILL)


def _signal(process, number):
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, number)
        process.wait(_GRACE)
