"""A progress bar on stderr, for people only: nothing is written unless it is a terminal."""

from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["bar"]


@contextmanager
def bar(text, total, show=None):
    """Gives a function ``advance(steps=1)``.

    ``show``: None draws a bar if stderr is a terminal; True and False say so; a function is called
    as ``show(done, total)`` instead.
    """
    if callable(show):
        done = 0

        def advance(steps=1):
            nonlocal done
            done += steps
            show(done, total)

        yield advance
        return
    console = Console(stderr=True, force_terminal=show or None)
    if show is False or not console.is_terminal:
        yield lambda steps=1: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(),
               TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda steps=1: progress.advance(task, steps)
