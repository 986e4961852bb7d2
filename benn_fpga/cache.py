"""Folders in the user's cache that are made once, by one process, and then only read."""

import errno
import os
import secrets
import shutil
from pathlib import Path

from benn_fpga.output import alone

__all__ = ["once", "root"]


def root():
    """Where the user keeps caches; raises `OSError` if the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "there is no home folder", "~") from None


def once(folder, make):
    """Return ``folder``; if it is not there, ``make`` fills a new folder that becomes it.

    It appears by a rename, so it is whole, also if several processes ask at once (they wait for
    the first, where the file system has locks) or if one is killed. Raises `OSError` if it
    cannot be written, and whatever ``make`` raises.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.parent) as locked:
        if locked:  # what is there was left by a process that was killed
            for left in folder.parent.glob(f".{folder.name}.*"):
                shutil.rmtree(left, ignore_errors=True)
        if not folder.is_dir():
            _make(folder, make)
    return folder


def _make(folder, make):
    staging = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    staging.mkdir()
    try:
        make(staging)
        for file in staging.rglob("*"):
            if file.is_file():  # so that even a power cut leaves all of it or nothing
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        try:
            staging.rename(folder)
        except OSError:
            if not folder.is_dir():  # else: no locks here, and another process was faster
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
