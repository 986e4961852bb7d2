"""Files that are written whole or not at all, and the question beforehand whether they can be."""

import errno
import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path

from benn_fpga.errors import BennError

__all__ = ["alone", "check_apart", "check_file", "check_folder", "check_new", "is_full",
           "new_folder", "write_atomically"]


def check_file(path: str | Path, force: bool = False) -> None:
    """Raise :class:`BennError` unless ``path`` can be written, without loss unless ``force``."""
    if not os.fspath(path):
        raise BennError("the name of the file to write is empty; give one")
    if os.fspath(path).endswith(os.sep) or Path(path).is_dir():
        raise BennError(f"{path} is a folder; give the name of a file")
    path = Path(path)
    if path.exists() and not path.is_file():
        raise BennError(f"{path} is not a regular file; give the name of a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise BennError(f"cannot write {path}: it is read-only; give another name or chmod it")
    if not force:
        check_new(path)
    try:
        with tempfile.TemporaryFile(dir=_real(path).parent):
            pass
    except OSError as error:
        raise _failed(path, error) from None


def check_new(path: str | Path) -> None:
    """Raise if there is something at ``path``: what it is worth, only the user knows."""
    if os.path.exists(path):
        raise BennError(f"{path} exists; give another name, or `force=True` to replace it")


def check_apart(files: Mapping[str, str | Path | None]) -> None:
    """Raise if two of ``files``, paths by what they are, are one; those that are None are not."""
    seen = {}
    for what, path in files.items():
        if path is None:
            continue
        before = seen.setdefault(os.path.realpath(path), what)
        if before != what:
            raise BennError(f"{path} would be both {before} and {what}; give another name")


def is_full(error):
    """Whether an OSError says that there is no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _failed(path, error):
    cure = "free some space there" if is_full(error) else "give a path in a folder you may write to"
    return BennError(f"cannot write {path}: {error.strerror}; {cure}")


def check_folder(path):
    """Make the folder ``path`` if it is not there; raise unless files can be written into it."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise BennError(f"{path} is a file; give a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise BennError(f"cannot write to {path}: {error.strerror}; "
                        f"give a folder you may write to") from None


def _real(path):
    """What ``path`` leads to: a link is followed, not replaced."""
    return Path(os.path.realpath(path))


def write_atomically(path, content, force=False):
    """Write bytes to ``path`` whole or not at all: a temporary file beside it, then a rename.

    Without ``force`` a file that is there, since :func:`check_file` or before, is left alone.
    """
    target = _real(path)
    if not force:
        check_new(path)
    temporary = _unused(target.parent, f".{target.name}.")
    try:
        file = open(temporary, "xb")
        try:
            with file:
                file.write(content)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise _failed(path, error) from None


@contextmanager
def alone(folder):
    """Let one process at a time into ``folder``; the next one waits.

    Yields whether that is so: some file systems have no locks.
    """
    import fcntl  # not on Windows, where no command that locks works
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            locked = True
        except OSError:
            locked = False
        yield locked
    finally:
        os.close(handle)


def new_folder(parent: str | Path, prefix: str) -> Path:
    """Make a folder in ``parent`` whose name starts with ``prefix``; return its path.

    Unlike one of tempfile, it has the permissions of any folder that the user makes.
    """
    path = _unused(parent, prefix)
    path.mkdir()
    return path


def _unused(parent: str | Path, prefix: str) -> Path:
    return Path(parent) / f"{prefix}{secrets.token_hex(8)}"
