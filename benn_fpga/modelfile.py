"""The ``.benn`` file: safetensors whose metadata has one key, ``benn``, with a JSON header.

The header holds the format version, the shapes, the encoder, the vote, the provenance, what is
known of the inputs and the digest of the whole model; the tensors hold the integers. Loading runs
no code, and every size is checked against the header, and the header against the file, before an
array is made. A file has the lowest version that can say what is in it.
"""

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from benn_fpga.errors import BennError
from benn_fpga.layers import Layer, from_json
from benn_fpga.output import write_atomically
from benn_fpga.presets import FLOAT_SCALES
from benn_fpga.raw import Inputs
from benn_fpga.regular import open_regular
from benn_fpga.spec import MAX_LAYERS, MAX_MEMBERS, Encoder, Ensemble, Member

__all__ = ["VERSION", "load", "save"]

VERSION = 3
_OLDEST = 2  # which cannot say the keys of _NEW
_NEW = {"inputs", "reject"}
_MAX_HEADER = 1 << 20
_MAX_FILE = 1 << 32
_DTYPES = {"U64": np.uint64, "I32": np.int32}


def save(model: Ensemble, path: str | Path, force: bool = False) -> None:
    """Write ``model`` to ``path``, over a file that is there only with ``force``.

    The same model gives the same bytes.
    """
    told = model.describe()
    version = VERSION if _NEW & set(told) else _OLDEST
    header = json.dumps({"format": "benn", "version": version, "digest": model.digest(), **told},
                        sort_keys=True, allow_nan=False)
    if len(header) > _MAX_HEADER // 2:
        raise BennError(f"provenance must be shorter than {_MAX_HEADER // 2} characters")
    tensors = {name: np.ascontiguousarray(a) for name, a in model.tensors().items()}
    write_atomically(path, to_bytes(tensors, {"benn": header}), force)


def load(path: str | Path) -> Ensemble:
    """Read a model file; raise :class:`BennError` if anything in it is not as it must be."""
    try:
        with open_regular(path) as file:
            prefix = file.read(8)
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BennError(f"cannot read {str(path)!r}: {reason}; "
                        f"give a file that `benn-fpga train` wrote") from None
    if size > _MAX_FILE:
        raise BennError(f"{path} has {size} bytes; a model file has at most {_MAX_FILE}")
    if len(prefix) < 8 or int.from_bytes(prefix, "little") > _MAX_HEADER:
        raise BennError(f"{path} is not a .benn model file")
    try:
        with safe_open(path, framework="np") as tensors:
            return _read(tensors)
    except (SafetensorError, OSError) as error:
        raise BennError(f"{path} is truncated or not a .benn model file ({error})") from None
    except BennError as error:
        raise BennError(f"{path}: {error}") from None


class _Tensors(Protocol):
    """What is used of an open safetensors file, which has no types of its own."""

    def metadata(self) -> dict[str, str] | None: ...
    def keys(self) -> list[str]: ...
    def get_slice(self, name: str) -> Any: ...
    def get_tensor(self, name: str) -> np.ndarray: ...


def _read(file: _Tensors) -> Ensemble:
    header = _header(file.metadata())
    encoder = header["encoder"]
    levels = _shape(file, "encoder.thresholds", np.int32, (None, None))
    shape = _list(encoder, "shape", int)
    if levels[0] > _product(shape) or levels[1] > 256:
        raise BennError("encoder thresholds do not fit its shape; the file is damaged")
    layers = tuple(_layer(n, item) for n, item in enumerate(_list(header, "layers", dict)))
    members = header["members"]
    if not isinstance(members, int) or not 1 <= members <= MAX_MEMBERS:
        raise BennError(f"members must be 1 to {MAX_MEMBERS}, not {members!r}")
    expected = {"encoder.thresholds", "vote.weights"}
    _shape(file, "vote.weights", np.int32, (members,))
    for n, layer in enumerate(layers):
        for key, (size, dtype) in layer.arrays().items():
            expected.add(f"layer{n}.{key}")
            _shape(file, f"layer{n}.{key}", dtype, (members, *size))
    inputs = header.get("inputs", {})
    if inputs.get("scale") in FLOAT_SCALES:
        expected.add("inputs.range")
        bounds = _shape(file, "inputs.range", np.uint64, (2, None))
        if bounds[1] > _product(shape):
            raise BennError("input ranges do not fit the encoder's shape; the file is damaged")
    surplus = sorted(set(file.keys()) - expected)
    if surplus:
        raise BennError(f"unknown tensor {surplus[0]!r}; the file is damaged")
    arrays = {name: file.get_tensor(name) for name in sorted(expected)}
    model = Ensemble(
        Encoder(encoder.get("kind"), tuple(shape), encoder.get("bits"),
                arrays["encoder.thresholds"], encoder.get("dropped")),
        layers,
        tuple(Member(tuple({key: arrays[f"layer{n}.{key}"][k] for key in layer.arrays()}
                           for n, layer in enumerate(layers)),
                     int(arrays["vote.weights"][k]))
              for k in range(members)),
        header["vote"],
        header["provenance"],
        _inputs(inputs, arrays.get("inputs.range")),
        header.get("reject"),
    )
    if model.digest() != header["digest"]:
        raise BennError("its digest does not match its contents: the file was changed or damaged; "
                        "train or copy it again")
    return model


def _header(metadata: dict[str, str] | None) -> dict[str, Any]:
    try:
        header = json.loads((metadata or {})["benn"], parse_constant=_refuse,
                            parse_float=_finite)
    except (KeyError, ValueError, RecursionError):
        raise BennError("not a .benn model file (a safetensors file of another kind)") from None
    if not isinstance(header, dict) or header.get("format") != "benn":
        raise BennError("not a .benn model file (a safetensors file of another kind)")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise BennError(f"format version must be a whole number, not {version!r}")
    if not _OLDEST <= version <= VERSION:
        what, do = ("newer", "upgrade benn_fpga") if version > VERSION else \
            ("older", "train the model again")
        raise BennError(f"format version {version} is {what} than this program reads "
                        f"({_OLDEST} to {VERSION}); {do}")
    types = {"format": str, "version": int, "digest": str, "encoder": dict, "layers": list,
             "members": int, "vote": str, "provenance": dict}
    for key, wanted in types.items():
        if type(header.get(key)) is not wanted:
            raise BennError(f"header key {key!r} is missing or of the wrong type")
    new = _NEW & set(header) if version > _OLDEST else set()
    if version > _OLDEST and not new:
        raise BennError(f"format version {version} must say one of {', '.join(sorted(_NEW))}; "
                        f"the file is damaged")
    if type(header.get("inputs", {})) is not dict:
        raise BennError("header key 'inputs' is of the wrong type")
    for where, got, known in (
            ("header", header, {*types, *new}),
            ("encoder", header["encoder"], {"kind", "shape", "bits", "dropped"}),
            ("inputs", header.get("inputs", {}), {"scale", "class_names", "feature_names"})):
        if set(got) - known:
            raise BennError(f"{where} has unknown key {min(set(got) - known)!r}; "
                            f"the file is damaged")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """JSON has no infinity, but 1e999 is read as one."""
    return float(text) if math.isfinite(float(text)) else _refuse(text)


def _layer(n: int, item: dict[str, Any]) -> Layer:
    try:
        return from_json(item)
    except BennError as error:
        raise BennError(f"layer {n}: {error}; the file is damaged") from None


def _inputs(told: dict[str, Any], bounds: np.ndarray | None) -> Inputs:
    """The :class:`Inputs` of a header's ``told``, and of the bit patterns of its ranges."""
    if not told:
        return Inputs()
    classes, features = told.get("class_names"), told.get("feature_names")
    if not isinstance(classes, list) or not isinstance(features, list):
        raise BennError("inputs have names of the wrong type; the file is damaged")
    low, high = [np.empty(0)] * 2 if bounds is None else [
        np.ascontiguousarray(row).view(np.float64) for row in bounds]
    scale: Any = told.get("scale")  # which Inputs checks
    return Inputs(scale, low, high, tuple(classes), tuple(features))


def _list(obj: dict[str, Any], key: str, item_type: type) -> list[Any]:
    items = obj.get(key)
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_LAYERS:
        raise BennError(f"header key {key!r} must be a list of 1 to {MAX_LAYERS} items")
    if not all(type(item) is item_type for item in items):
        raise BennError(f"header key {key!r} has an item of the wrong type")
    return items


def _product(sizes: Iterable[int]) -> int:
    product = 1
    for size in sizes:
        product *= max(size, 0)
    return product


def _shape(file: _Tensors, name: str, dtype: type[np.generic], shape: tuple[int | None, ...],
           ) -> tuple[int, ...]:
    try:
        tensor = file.get_slice(name)
    except SafetensorError:
        raise BennError(f"tensor {name!r} is missing; the file is damaged") from None
    got = tuple(tensor.get_shape())
    fits = len(got) == len(shape) and all(s in (None, g) for s, g in zip(shape, got, strict=True))
    if not fits or _DTYPES.get(tensor.get_dtype()) is not dtype:
        raise BennError(f"tensor {name!r} must be {np.dtype(dtype)} {shape}, "
                        f"not {tensor.get_dtype()} {got}")
    return got
