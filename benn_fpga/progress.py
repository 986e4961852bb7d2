"""Progress on stderr: a bar on a terminal, else a plain line now and then."""

import sys
import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["bar"]

_QUIET = 5.0  # seconds between plain lines, at least
_LINES = 10  # plain lines between start and end, at most


@contextmanager
def bar(text, total, show=None):
    """Gives a function ``advance(steps=1)``.

    ``total`` of None: not known. ``show``: None draws a bar if stderr is a terminal and writes
    plain lines if not; True draws a bar; False writes nothing; a function is called as
    ``show(done, total)`` instead.
    """
    if show is False:
        yield lambda steps=1: None
    elif callable(show):
        yield _counter(lambda done: show(done, total))
    else:
        console = Console(stderr=True, force_terminal=show)
        shown = _drawn(text, total, console) if console.is_terminal else _lines(text, total)
        with shown as advance:
            yield advance


def _counter(report):
    done = 0

    def advance(steps=1):
        nonlocal done
        done += steps
        report(done)

    return advance


@contextmanager
def _drawn(text, total, console):
    known = (TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(),
               *((TimeElapsedColumn(),) if total is None else known))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda steps=1: progress.advance(task, steps)


@contextmanager
def _lines(text, total):
    """For logs: one line at the start, one for each tenth unless they come fast, one at the end."""
    start = last = time.monotonic()
    shown = 0

    def say(words):
        print(f"{text}: {words}", file=sys.stderr, flush=True)

    def report(done):
        nonlocal last, shown
        now = time.monotonic()
        tenth = _LINES * done // total if total else 0
        if shown < tenth < _LINES and now - last >= _QUIET:
            last, shown = now, tenth
            say(f"{done:,} of {total:,} ({100 * done // total} %), {now - start:.0f} s")

    say("started")
    yield _counter(report)
    say(f"done, {time.monotonic() - start:.0f} s")
