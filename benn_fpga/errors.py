"""The errors a user can cause or cure; the command line prints them as one line.

A message names parameters as Python does, in backquotes: `bits`, `force=True`. The command line
shows them as its options: --bits, --force.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BennError", "BennWarning", "Interrupted", "Mismatch", "MissingExtra", "about", "plural",
           "warn"]


class BennError(Exception):
    """A usage error, bad input or a missing tool. The message is one line: what, where, what to do.

    Exit code 2.
    """

    exit_code = 2


class Interrupted(BennError):
    """Ctrl-C in work that can be taken up again. Exit code 130."""

    exit_code = 130


class Mismatch(BennError):
    """It ran, but a check failed: two things that must be equal are not. Exit code 1."""

    exit_code = 1


class MissingExtra(BennError):
    """A command needs a package of an optional extra that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'benn_fpga[{extra}]'")


class BennWarning(UserWarning):
    """Something that works, but may not be what was meant. The command line prints it as a note."""


def warn(text: str) -> None:
    """Give a :class:`BennWarning`, one line like the message of an error."""
    warnings.warn(text, BennWarning, stacklevel=3)


@contextmanager
def about(name: str | Path) -> Iterator[None]:
    """Put ``name``, of a file or data set, before the message of an error."""
    try:
        yield
    except BennError as error:
        raise BennError(f"{name}: {error}") from None


def plural(count: int, noun: str = "frame") -> str:
    """``noun``, with an s unless there is one of it."""
    return noun if count == 1 else f"{noun}s"
