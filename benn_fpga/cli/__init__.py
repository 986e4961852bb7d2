"""The command line: ``benn-fpga COMMAND``, one line per error."""

import json
import sys
import time
import warnings
from contextlib import contextmanager

from benn_fpga.cli import console, guard, parser, verbs
from benn_fpga.errors import BennError, BennWarning, Interrupted

__all__ = ["main"]


def main(argv=None):
    """Run the command line; returns the exit code."""
    def run():
        args = parser.build().parse_args(argv)
        args.told = (sys.argv[1:] if argv is None else list(argv))[1:]
        try:
            return _run(args)
        except BennError as error:
            error.args = (parser.with_options(str(error), args),)
            raise
    return guard.guard(parser.PROGRAM, run, "interrupted; nothing was written")


def _run(args):
    start, notes = time.perf_counter(), []

    def note(text):
        text = parser.with_options(str(text), args)
        if text in notes:  # two steps may look at the same data
            return
        notes.append(text)
        if not args.json:
            guard.complain(parser.PROGRAM, text, "note")

    with _warnings_to(note):
        outcome = verbs.VERBS[args.verb](args)
    try:
        if not args.json:
            if outcome.text is None:
                console.show(outcome.tables)
            else:
                print(outcome.text, end="")
            sys.stdout.flush()
        if outcome.note:
            note(outcome.note)
        if args.json:
            seconds = round(time.perf_counter() - start, 3)
            print(json.dumps({**outcome.data, "notes": notes, "seconds": seconds},
                             allow_nan=False), flush=True)
    except KeyboardInterrupt:
        raise Interrupted(outcome.interrupted) from None
    if outcome.finish is not None:
        outcome.finish()
    if outcome.failure:
        guard.complain(parser.PROGRAM, outcome.failure)
    return 1 if outcome.failure else 0


@contextmanager
def _warnings_to(note):
    """Call ``note`` with each :class:`BennWarning`; others are shown as ever."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message, category, *rest, **options):
            if issubclass(category, BennWarning):
                note(message)
            else:
                shown(message, category, *rest, **options)

        warnings.simplefilter("always", BennWarning)
        warnings.showwarning = show
        yield
