"""A design folder: Verilog, manifest and the model it was made from, tied together by hashes.

Beside them are a C header and a test bench, which a user may change: nothing reads them.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benn_fpga import modelfile
from benn_fpga.errors import BennError
from benn_fpga.output import new_folder
from benn_fpga.plan import bench, header
from benn_fpga.plan.manifest import TOP, describe
from benn_fpga.spec import Ensemble, Folding

__all__ = ["BENCH", "EXTRAS", "MANIFEST", "MODEL", "VERILOG", "Design", "check_target", "read",
           "write"]

VERILOG, MODEL, MANIFEST = f"{TOP}.v", "model.benn", "design.json"
BENCH = "tb"  # the folder of the test bench
EXTRAS = (header.NAME, *(f"{BENCH}/{name}" for name in bench.NAMES))


@dataclass(frozen=True, eq=False)
class Design:
    """What ``benn-fpga generate`` wrote into ``directory``."""

    directory: Path
    manifest: dict[str, Any]
    model: Ensemble
    folding: Folding

    @property
    def verilog(self) -> Path:
        return self.directory / VERILOG


def check_target(directory: str | Path, model: Ensemble, force: bool = False,
                 extras: Collection[str] = ()) -> None:
    """Raise unless a design of ``model`` may be written to ``directory``, with ``extras`` of
    ``EXTRAS`` and without loss unless ``force``; call it before the long work."""
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise BennError(f"{directory} is a file; give a folder")
    if directory.is_dir() and any(directory.iterdir()) and not force \
            and not (directory / MANIFEST).is_file():
        raise BennError(f"{directory} is not empty and holds no design; "
                        f"give another folder, or `force=True` to write there anyway")
    if not force:
        _check_loss(directory, model, extras)
    base = directory if directory.is_dir() else directory.parent
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base, prefix=f".{directory.name}."):
            pass
    except OSError as error:
        raise BennError(f"cannot write to {base}: {error.strerror}; "
                        f"give a folder you may write to") from None


def _check_loss(directory: Path, model: Ensemble, extras: Collection[str]) -> None:
    """Raise if a design of ``model`` would replace what cannot be generated again: another model,
    of which this may be the only copy, or a file that somebody has changed or made."""
    again = "give another folder, or `force=True` to replace it"
    old, generated = directory / MODEL, _generated(directory / MANIFEST)
    if old.exists() and not _is_same(old, model):
        raise BennError(f"{directory} holds the design of another model; {again}")
    for name in (VERILOG, *EXTRAS):
        path = directory / name
        if (name in generated or name in (VERILOG, *extras)) and path.exists() \
                and (not path.is_file() or _sha256(path.read_bytes()) != generated.get(name)):
            raise BennError(f"{path} has changed since it was generated; {again}")


def _is_same(path: Path, model: Ensemble) -> bool:
    try:
        return modelfile.load(path).digest() == model.digest()
    except BennError:
        return False


def _generated(manifest: Path) -> dict[str, str]:
    """The hashes of Verilog and extras as they were generated, as far as the manifest says."""
    try:
        told = json.loads(manifest.read_bytes())
        # Of the names only those that are known: a manifest may come from anywhere.
        extras = {name: told["extras"][name] for name in EXTRAS if name in told.get("extras", {})}
        return {VERILOG: told["verilog_sha256"], **extras}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def write(directory: str | Path, verilog: str, manifest: dict[str, Any], model: Ensemble,
          force: bool = False, extras: Mapping[str, str] | None = None) -> Design:
    """Write a design whole or not at all; returns the :class:`Design`.

    ``extras`` are texts by names of ``EXTRAS``; of an older design those that are not among them
    are removed. A new folder appears by one rename. In a folder that exists each file is replaced
    by a rename, the manifest last: until then its hashes do not fit, and :func:`read` says so.
    """
    directory, extras = Path(os.path.abspath(directory)), extras or {}
    check_target(directory, model, force, extras)
    manifest = {**manifest, "verilog_sha256": _sha256(verilog.encode()),
                "extras": {name: _sha256(text.encode()) for name, text in extras.items()}}
    staging = None
    try:
        base = directory if directory.is_dir() else directory.parent
        staging = new_folder(base, f".{directory.name}.")
        (staging / VERILOG).write_bytes(verilog.encode())
        modelfile.save(model, staging / MODEL)
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        (staging / MANIFEST).write_bytes(text.encode())
        for name, text in extras.items():
            (staging / name).parent.mkdir(exist_ok=True)
            (staging / name).write_bytes(text.encode())
        if directory.is_dir():
            stale = _generated(directory / MANIFEST).keys() - {VERILOG, *extras}
            for name in extras:
                (directory / name).parent.mkdir(exist_ok=True)
            for name in (VERILOG, MODEL, *extras):
                os.replace(staging / name, directory / name)
            for name in stale:
                (directory / name).unlink(missing_ok=True)
            with suppress(OSError):  # it holds something, or is not there
                (directory / BENCH).rmdir()
            os.replace(staging / MANIFEST, directory / MANIFEST)
        else:
            os.rename(staging, directory)
    except OSError as error:
        raise BennError(f"cannot write to {directory}: {error.strerror}; "
                        f"make room, or give another folder") from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return read(directory)


def read(directory: str | Path) -> Design:
    """Read a design folder; raise :class:`BennError` if its parts do not belong together."""
    directory = Path(directory)
    if not directory.is_dir():
        raise BennError(f"{directory} is not a folder; give one that `benn-fpga generate` wrote")
    if not (directory / MANIFEST).is_file():
        raise BennError(f"{directory} is not a design folder (no {MANIFEST}); "
                        f"run: benn-fpga generate MODEL -o {directory}")
    again = "generate the design again"
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        hashes = manifest["verilog_sha256"], manifest["model_sha256"]
        folding = Folding.from_json(manifest["folding"])
    except (ValueError, KeyError, TypeError, RecursionError, BennError):
        raise BennError(f"{directory / MANIFEST} is damaged; {again}") from None
    for name in (VERILOG, MODEL):
        if (directory / name).is_dir():
            raise BennError(f"{directory / name} is a folder, in place of a file; move it away, "
                            f"then {again}")
        if not (directory / name).is_file():
            raise BennError(f"{directory / name} is missing; {again}")
    if _sha256((directory / VERILOG).read_bytes()) != hashes[0]:
        raise BennError(f"{directory / VERILOG} has changed since it was generated; {again}")
    model = modelfile.load(directory / MODEL)
    if model.digest() != hashes[1]:
        raise BennError(f"{directory / MODEL} is not the model of this design; {again}")
    try:
        expected = describe(model, folding.check(model))
    except BennError as error:
        raise BennError(f"{directory / MANIFEST}: {error}; {again}") from None
    for key, value in expected.items():
        if json.dumps(manifest.get(key), sort_keys=True) != json.dumps(value, sort_keys=True):
            raise BennError(f"{directory / MANIFEST}: {key!r} is not what this version makes of "
                            f"the model and its folding; {again}")
    return Design(directory, manifest, model, folding)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
