"""Somebody's own files as the frames that a model takes."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benn_fpga.conversion import to_raw
from benn_fpga.errors import BennError, about, warn
from benn_fpga.readers import images, npz, rows

__all__ = ["Frames", "read"]

_ARRAYS = ("x", "x_test", "x_train")  # of an .npz; the first that is there


@dataclass(frozen=True, eq=False)
class Frames:
    """What :func:`read` returns.

    Members
    -------
    x : raw values (frames, values)
    input_type : "floats" or "bytes", which they were; "floats and bytes" of several files
    sources : of each frame its file, and its number there
    """

    x: np.ndarray
    input_type: str
    sources: list[tuple[str, int]]


def read(model, files, resize=False):
    """The :class:`Frames` in ``files``: ``.npz`` (x, else x_test, else x_train), ``.npy``,
    ``.csv``, images, and folders of images.

    ``resize``: make images of another size fit.
    """
    files = [Path(file) for file in files]
    if not files:
        raise BennError("there are no files to read; give at least one")
    parts, types, sources = [], set(), []
    for reader, paths in _grouped(files, model.encoder.shape):
        x, more = reader(model, paths, resize)
        with about(paths[0]):
            raw, given = to_raw(model, x)
        parts.append(raw)
        types.add(given)
        sources += more
    return Frames(np.concatenate(parts), " and ".join(sorted(types, reverse=True)), sources)


def _grouped(files, shape):
    """(function that reads, paths); images are one group, so that a note on them comes once."""
    groups, pictures = [], []
    for file in files:
        reader = _READERS.get(file.suffix.lower())
        if reader and not file.is_dir():
            groups.append((reader, [file]))
            continue
        if len(shape) == 1:
            what = " is a folder, of which images are read, but" if file.is_dir() else \
                ":" if file.exists() else " does not exist;"
            raise BennError(f"{file}{what} the model takes rows of {shape[0]} values; give a .csv, "
                            f".npy or .npz file")
        if not pictures:
            groups.append((_images, pictures))
        pictures += images.in_folder(file) if file.is_dir() else [file]
    return groups


def _npz(model, paths, resize):
    path, = paths
    with npz.opened(path) as file:
        key = next((key for key in _ARRAYS if key in file), None)
        if key is None:
            raise BennError(f"{path} has no array {', '.join(_ARRAYS[:-1])} or {_ARRAYS[-1]}; "
                            f"save the frames as x")
        file.check_names("feature_names", model.inputs.feature_names)
        x = file.array(key)
    return x, _numbered(path, x)


def _npy(model, paths, resize):
    path, = paths
    x = npz.read_npy(path)
    return x, _numbered(path, x)


def _csv(model, paths, resize):
    path, = paths
    x, left_out = rows.read_csv(path, model.encoder.values, model.inputs.feature_names)
    if left_out:
        warn(f"{path}: the model has no feature called {', '.join(map(repr, left_out[:8]))}"
              f"{', ...' * (len(left_out) > 8)}; columns that are not features are left out")
    if not model.inputs.has_range and (x == np.floor(x)).all() and np.abs(x).max() < 1 << 31:
        x = x.astype(np.int64)  # text has no types: whole numbers are the bytes of this model
    return x, _numbered(path, x)


def _images(model, paths, resize):
    x = images.read_images(paths, model.encoder.shape, resize)
    sources = [(os.fspath(path), 0) for path in paths]
    inputs = model.inputs
    if not inputs.has_range:
        return x, sources
    low, high = inputs.low.min(), inputs.high.max()
    if low < 0 or high > 255:
        raise BennError(f"{paths[0]}: the floats of training went from {low:g} to {high:g}, and "
                        f"the model does not say how pixels became these; give floats in a .npy "
                        f"or .npz file")
    if high > 1:
        return x.astype(np.float64), sources
    warn("pixels 0..255 are taken as 0..1, since the floats of training did not exceed 1")
    return x / 255, sources


_READERS = {".npz": _npz, ".npy": _npy, ".csv": _csv}


def _numbered(path, x):
    return [(os.fspath(path), n) for n in range(len(x) if x.ndim else 0)]
