"""Waiting for what other processes do."""

import subprocess
import time

__all__ = ["until", "until_gone"]

_SECONDS = 60  # more than anything takes on a busy machine


def until(condition):
    """Return when ``condition()`` is true; fail if that takes too long."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def until_gone(*processes):
    """... when no process has one of these numbers, but for those that are left to be asked for."""
    def are_gone():
        said = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(map(str, processes))],
                              capture_output=True, text=True, check=False)
        return all(line.startswith("Z") for line in said.stdout.split())
    until(are_gone)
