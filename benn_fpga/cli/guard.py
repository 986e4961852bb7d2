"""One line per error: runs a program and turns whatever is raised into words and an exit code."""

import os
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager

from benn_fpga.cli.console import plain
from benn_fpga.errors import BennError, Interrupted
from benn_fpga.output import is_full

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "complain", "guard"]

# As a shell reports a process that such a signal ended.
INTERRUPTED, BROKEN_PIPE = 130, 141
# There is no SIGHUP on Windows.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def complain(program, text, severity="error"):
    print(f"{program}: {severity}: {plain(' '.join(str(text).split()))}", file=sys.stderr)


def guard(program, function, interrupted="interrupted"):
    """Call ``function``, whose result is the exit code; ``BENN_DEBUG=1`` lets errors through.

    SIGTERM, and SIGHUP of a terminal that closes, are taken as Ctrl-C: tools that run are ended,
    and folders they worked in are removed. The exit code is then 128 plus the number of the signal.
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
        return _caught(program, function, interrupted, came)


@contextmanager
def _termination():
    """Raise KeyboardInterrupt when a signal of _SIGNALS comes; yields a list that it is then in."""
    came, ours = [], []

    def end(number, frame):
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        # Others are ignored, or somebody else cares for them.
        ours = [each for each in _SIGNALS if signal.getsignal(each) is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, end)
    try:
        yield came
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _caught(program, function, interrupted, came):
    try:
        return function()
    except (KeyboardInterrupt, Interrupted) as error:
        said = str(error) if isinstance(error, Interrupted) else interrupted
        complain(program, said.replace("interrupted", "terminated", 1) if came else said)
        return 128 + came[0] if came else INTERRUPTED
    except BennError as error:
        complain(program, error)
        return error.exit_code
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
