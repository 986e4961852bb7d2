"""Whether a file can be written, asked before the long work that fills it."""

import tempfile
from pathlib import Path

from benn_fpga.errors import BennError

__all__ = ["check_file"]


def check_file(path):
    """Raise :class:`BennError` unless ``path`` can be written."""
    path = Path(path)
    if path.is_dir():
        raise BennError(f"{path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise BennError(f"{path} is not a regular file; give the name of a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise BennError(f"can not write {path}: {error.strerror}; "
                        f"give a path in a folder you may write to") from None
