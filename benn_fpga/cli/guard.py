"""One line per error: runs a program and turns whatever is raised into words and an exit code."""

import os
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager

from benn_fpga.cli.console import plain
from benn_fpga.errors import BennError
from benn_fpga.output import is_full

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "TERMINATED", "complain", "guard"]

# As a shell reports a process that such a signal ended.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143


def complain(program, text, severity="error"):
    print(f"{program}: {severity}: {plain(' '.join(str(text).split()))}", file=sys.stderr)


def guard(program, function, interrupted="interrupted"):
    """Call ``function``, whose result is the exit code; ``BENN_DEBUG=1`` lets errors through.

    SIGTERM is taken as Ctrl-C: tools that run are ended, and folders they worked in are removed.
    """
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
        came = before.enter_context(_termination())
        if os.environ.get("BENN_DEBUG") == "1":
            return function()
        code = _caught(program, function, interrupted)
        return TERMINATED if came and code == INTERRUPTED else code


@contextmanager
def _termination():
    """Raise KeyboardInterrupt when SIGTERM comes; yields a list that it is then in."""
    came, owner = [], os.getpid()

    def end(number, frame):
        if os.getpid() != owner:  # a process that was forked has nothing to remove
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # somebody else cares for it
        yield came
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
