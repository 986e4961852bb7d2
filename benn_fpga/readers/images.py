"""Image files as arrays of bytes, by Pillow."""

import struct
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benn_fpga.errors import BennError, MissingExtra
from benn_fpga.regular import open_regular

__all__ = ["in_folder", "read_images"]

_MODES = {1: "L", 3: "RGB"}  # of Pillow, by channels


def _pillow():
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtra("pillow", "images") from None
    return Image, ImageOps


def in_folder(folder):
    """Paths of the images in a folder, sorted by name."""
    image, _ = _pillow()
    known = image.registered_extensions()
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in known)
    except OSError as error:
        raise BennError(f"cannot read {folder}: {error.strerror}; give files") from None
    if not paths:
        inner = next((path.name for path in sorted(Path(folder).iterdir()) if path.is_dir()), None)
        raise BennError(f"{folder} has no images; give a folder that has" +
                        (", or files" if inner is None else f", such as {folder}/{inner}"))
    return paths


def read_images(paths, shape, resize=False):
    """Images (frames, *shape) of bytes, shape being (rows, columns, channels).

    Colours become grey, ITU-R 601, or grey becomes colours, as the channels ask for;
    transparency is dropped, and a camera's note of its orientation is followed. An image of another
    size is refused unless ``resize``, which makes it fit by bilinear interpolation.
    """
    if shape[2] not in _MODES:
        raise BennError(f"{paths[0]}: the model takes frames of {shape[2]} channels, but images "
                        f"give 1 or 3; give a .npy or .npz file")
    return np.stack([_read(path, shape, resize) for path in paths])


def _read(path, shape, resize):
    image, operations = _pillow()
    rows, columns, channels = shape
    with _words(path), open_regular(path) as stream, image.open(stream) as picture:
        if picture.mode.startswith(("I", "F")):
            raise BennError(f"{path} has more than 8 bits per value; save it with 8, or give a "
                            f".npy or .npz file")
        upright = operations.exif_transpose(picture)
        if upright.size != (columns, rows):
            if not resize:
                width, height = upright.size
                raise BennError(f"{path} is {width} x {height} pixels, but the model takes "
                                f"{columns} x {rows}; give `resize=True` to make it fit")
            # Converted first: colours of a palette cannot be interpolated.
            upright = upright.convert(_MODES[channels]).resize(
                (columns, rows), image.Resampling.BILINEAR)
        return np.asarray(upright.convert(_MODES[channels])).reshape(shape)


@contextmanager
def _words(path):
    image, _ = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", image.DecompressionBombWarning)
            yield
    except (image.DecompressionBombError, image.DecompressionBombWarning):
        raise BennError(f"{path} has too many pixels; give a smaller image") from None
    except OSError as error:
        reason = error.strerror or "it is damaged, or no image"
        raise BennError(f"cannot read {path}: {reason}; give an .npz, .npy, .csv or image "
                        f"file") from None
    except (EOFError, SyntaxError, ValueError, struct.error):
        raise BennError(f"cannot read {path}: it is damaged; give another image") from None
