"""The command line: ``benn-fpga COMMAND``, one line per error."""

import json
import sys
import time

from benn_fpga.cli import console, guard, parser, verbs
from benn_fpga.errors import BennError

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
    start = time.perf_counter()
    outcome = verbs.VERBS[args.verb](args)
    _print(outcome, args.json, time.perf_counter() - start)
    if outcome.note and not args.json:
        guard.complain(parser.PROGRAM, outcome.note, "note")
    if outcome.failure:
        guard.complain(parser.PROGRAM, outcome.failure)
    return 1 if outcome.failure else 0


def _print(outcome, as_json, seconds):
    if as_json:
        print(json.dumps({**outcome.data, "seconds": round(seconds, 3)}, allow_nan=False))
    else:
        console.show(outcome.tables)
    sys.stdout.flush()
