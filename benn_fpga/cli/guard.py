"""One line per error: runs a program and turns whatever is raised into words and an exit code."""

import os
import sys
from contextlib import ExitStack

from benn_fpga.cli.console import plain
from benn_fpga.errors import BennError
from benn_fpga.output import is_full

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "complain", "guard"]

INTERRUPTED, BROKEN_PIPE = 130, 141  # as a shell reports a process that such a signal ended


def complain(program, text, severity="error"):
    print(f"{program}: {severity}: {plain(' '.join(str(text).split()))}", file=sys.stderr)


def guard(program, function, interrupted="interrupted"):
    """Call ``function``, whose result is the exit code; ``BENN_DEBUG=1`` lets errors through."""
    with ExitStack() as before:
        if sys.stderr is None:  # closed; print would take stdout for it
            sys.stderr = before.enter_context(open(os.devnull, "w", encoding="utf-8"))
            before.callback(setattr, sys, "stderr", None)
        if sys.stdout is None:
            complain(program, "standard output is closed; send it to a file or to /dev/null")
            return 2
        for stream in (sys.stdout, sys.stderr):  # for names that a terminal cannot show
            if hasattr(stream, "reconfigure"):
                before.callback(stream.reconfigure, errors=stream.errors)
                stream.reconfigure(errors="backslashreplace")
        if os.environ.get("BENN_DEBUG") == "1":
            return function()
        return _caught(program, function, interrupted)


def _caught(program, function, interrupted):
    try:
        return function()
    except BennError as error:
        complain(program, error)
        return error.exit_code
    except KeyboardInterrupt:
        complain(program, interrupted)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except Exception as error:
        complain(program, _words(error))
        if isinstance(error, OSError):
            _drop_output()  # it may be what failed, and would fail again at exit
    return 2


def _drop_output():
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error):
    if isinstance(error, OSError):
        where = f"cannot use {error.filename}: " if error.filename else ""
        cure = "check the free space in the output and temporary folders" \
            if is_full(error) else "check the permissions of the files that you named"
        return f"{where}{error.strerror or error}; {cure}"
    # PyTorch has no type of its own for this.
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory; use less data or a smaller network"
    if type(error).__name__ == "YosysError":  # of Amaranth, which need not be installed
        last = (str(error).strip() or "no message").splitlines()[-1]
        return (f"Yosys failed: {last}; check the free space in the temporary folder "
                f"(BENN_DEBUG=1 shows all that it said)")
    return (f"internal error, {type(error).__name__}: {error}; please report it "
            f"(BENN_DEBUG=1 shows where)")
