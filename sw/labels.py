"""Labels as somebody saved them, as the numbers of classes."""

import numpy as np

from benn_fpga.errors import BennError

__all__ = ["check_every_class", "numbers", "sorted_names"]

_MOST = 1 << 16  # classes


def sorted_names(y):
    """The class names that labels which are text stand for, in order; none if they are not."""
    return sorted(set(y.ravel().tolist())) if y.dtype.kind == "U" else []


def numbers(name, key, y, frames, classes=None, names=()):
    """Labels ``y`` as int64 (frames,); raise if they are not labels of so many ``classes``.

    Text is looked up in ``names``; floats must be whole numbers. ``name`` and ``key``, those of
    the data set and the array, go into the message.
    """
    where, of = f"{name}: {key}", f"x{key[1:]}"
    if not frames:
        raise BennError(f"{name}: {of} is empty")
    if y.shape != (frames,):
        raise BennError(f"{where} must be one label for each of the {frames} frames of {of}, "
                        f"not an array of shape {y.shape}")
    y = _by_name(where, y, names) if y.dtype.kind == "U" else _whole(where, y)
    low, high = int(y.min()), int(y.max())
    most = (classes or _MOST) - 1
    if low < 0 or high > most:
        cure = "; number the classes from 0"
        if (low, high) == (1, most + 1):
            cure = "; labels start from 1: subtract 1"
        elif low >= 0 and classes:
            cure = "; add a name" if names else "; it has no training frame"
        named = f", for {classes} class names" if names else ""
        raise BennError(f"{where} must be labels in 0..{most}{named}, "
                        f"not {low if low < 0 else high}{cure}")
    return y


def check_every_class(name, y, classes, names=()):
    """Raise unless each of so many ``classes`` has a frame in ``y``, of the training part."""
    if y.min() == y.max():
        raise BennError(f"{name}: y_train has the one class {names[y[0]] if names else y[0]}; at "
                        f"least 2 are needed")
    absent = np.flatnonzero(np.bincount(y, minlength=classes) == 0)
    if not len(absent):
        return
    first = int(absent[0])
    cure = "leave out its name" if names else "number the classes without gaps"
    if not first:
        cure = "if labels start from 1, subtract 1"
    named = f" ({names[first]!r})" if names else ""
    raise BennError(f"{name}: class {first}{named} of 0..{classes - 1} has no training frame; "
                    f"{cure}")


def _by_name(where, y, names):
    if not names:
        raise BennError(f"{where} must be numbers of classes from 0, not text: there are no class "
                        f"names to look it up in")
    known = {name: n for n, name in enumerate(names)}
    for label in y.tolist():
        if label not in known:
            shown = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
            raise BennError(f"{where} has the label {label!r}, but the classes are {shown}")
    return np.array([known[label] for label in y.tolist()], np.int64)


def _whole(where, y):
    if y.dtype.kind not in "biuf":
        raise BennError(f"{where} must be whole numbers or text, not {y.dtype}; number the "
                        f"classes from 0 and save them as integers")
    if y.dtype.kind == "f":
        wrong = ~((y == np.floor(y)) & (np.abs(y) <= _MOST))
        if wrong.any():
            raise BennError(f"{where} must be whole numbers, not {y[wrong][0]}; number the "
                            f"classes from 0")
    return y.astype(np.int64)
