"""The folding in a JSON file."""

import json

from benn_fpga.errors import BennError
from benn_fpga.regular import open_regular

__all__ = ["read"]


def read(path, model, *, parallel=None, bus=None):
    """The Folding in a JSON file, or in a manifest; ``parallel`` and ``bus`` if it has none."""
    from benn_fpga.spec import Folding
    try:
        with open_regular(path) as file:
            told = json.loads(file.read(), object_pairs_hook=_once, parse_int=_short)
    except OSError as error:
        raise BennError(f"cannot read {path}: {error.strerror}; give a JSON file with PE and "
                        f"SIMD of each layer") from None
    except UnicodeDecodeError:
        raise BennError(f"{path} is not a text file; give a JSON file with PE and SIMD of "
                        f"each layer") from None
    except (ValueError, RecursionError) as error:
        raise BennError(f"{path} is not JSON: {error}; correct the file") from None
    if isinstance(told, dict) and "folding" in told:
        told = told["folding"]
    if isinstance(told, dict):
        for key, value, default in (("parallel", parallel, len(model.members)),
                                    ("bus", bus, 64)):
            if value is not None and told.setdefault(key, value) != value:
                raise BennError(f"{path} says {key} {told[key]}, but --{key} {value}; "
                                f"leave out one of them")
            told.setdefault(key, default)
    try:
        return Folding.from_json(told).check(model)
    except BennError as error:
        # What it names in backquotes is a key of the file here, and no option.
        raise BennError(f"{path}: {str(error).replace('`', '')}") from None


def _once(pairs):
    items = {}
    for key, value in pairs:
        if key in items:
            raise ValueError(f"key {key!r} appears twice")
        items[key] = value
    return items


def _short(text):
    if len(text) > 18:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)
