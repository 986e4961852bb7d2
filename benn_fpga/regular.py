"""Files that are read: regular ones only, without waiting for what is not."""

import errno
import os
import stat

__all__ = ["open_regular"]


def open_regular(path):
    """Open ``path`` to read bytes; raise :class:`OSError` if it is not a regular file."""
    # Not to block: opening a FIFO would wait for a writer.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return file
