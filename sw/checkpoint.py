"""A training run on disk: the networks that are finished and those under way.

Everything else that training draws or computes follows from its settings and these. The file is a
line, the SHA-256 of the rest, and safetensors: reading it runs no code, and damage is noticed.
"""

import hashlib
import json
import threading
import time
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from benn_fpga.errors import BennError
from benn_fpga.output import check_file, write_atomically

__all__ = ["Checkpoint", "remove"]

_MAGIC = b"benn_fpga checkpoint 1\n"
_SECONDS = 10.0  # between two writes, unless a network is finished


def remove(path):
    """Delete the checkpoint, now that what it led to is written."""
    with suppress(FileNotFoundError):
        Path(path).unlink()


class Checkpoint:
    """Networks by name, each with its tensors and the epochs that it has seen.

    Threads may use it at the same time.

    Parameters
    ----------
    path : file to write; None keeps nothing
    settings : JSON of whatever the result depends on
    resume : go on from the file if there is one
    """

    def __init__(self, path=None, settings=None, resume=False):
        self.path = None if path is None else Path(path)
        self._settings = settings
        self._networks = {}
        self._lock = threading.Lock()
        self._written = time.monotonic()
        if path is None:
            if resume:
                raise BennError("Resume needs a checkpoint to go on from")
            return
        check_file(path, force=True)  # what is there is looked at below
        if self.path.exists():
            if not resume:
                raise BennError(f"there is a checkpoint {path} of a run that did not finish; "
                                f"resume it, or remove the file to start again")
            self._read()

    def _read(self):
        content = self.path.read_bytes()
        start = len(_MAGIC) + hashlib.sha256().digest_size
        if not content.startswith(_MAGIC):
            raise BennError(f"{self.path} is not a checkpoint of this version of benn-fpga; "
                            f"remove it to start again")
        if hashlib.sha256(content[start:]).digest() != content[len(_MAGIC):start]:
            raise self.damaged()
        try:
            tensors = load(content[start:])
            header = json.loads(bytes(tensors.pop("header").tolist()))
            settings = dict(header["settings"])
            networks = {name: (int(epochs), {}) for name, epochs in header["epochs"].items()}
            for key, tensor in tensors.items():
                name, _, rest = key.partition("/")
                networks[name][1][rest] = tensor
        except (SafetensorError, KeyError, ValueError, TypeError, AttributeError):
            raise self.damaged() from None
        self._compare(settings)
        self._networks = networks

    def damaged(self):
        return BennError(f"checkpoint {self.path} is damaged; remove it to start again")

    def _compare(self, settings):
        for key in {**self._settings, **settings}:
            then, now = settings.get(key), self._settings.get(key)
            if then != now:
                raise BennError(f"checkpoint {self.path} was made with {key} {_text(then)}, "
                                f"not {_text(now)}; use the same, or remove it to start again")

    def get(self, name):
        """Epochs that network ``name`` has seen, and its tensors; (0, None) if it is not here."""
        with self._lock:
            return self._networks.get(name, (0, None))

    def put(self, name, epochs, tensors, finished):
        """Keep copies of the tensors of network ``name``, and write the file now and then."""
        if self.path is None:
            return
        copies = {key: tensor.detach().clone() for key, tensor in tensors.items()}
        with self._lock:
            self._networks[name] = epochs, copies
            if finished or time.monotonic() - self._written >= _SECONDS:
                self._write()

    def flush(self):
        """Write the file."""
        with self._lock:
            if self.path is not None and self._networks:
                self._write()

    def _write(self):
        header = {"settings": self._settings,
                  "epochs": {name: epochs for name, (epochs, _) in self._networks.items()}}
        tensors = {f"{name}/{key}": tensor for name, (_, parts) in self._networks.items()
                   for key, tensor in parts.items()}
        tensors["header"] = torch.tensor(list(json.dumps(header).encode()), dtype=torch.uint8)
        content = save(tensors)
        write_atomically(self.path, _MAGIC + hashlib.sha256(content).digest() + content,
                         force=True)
        self._written = time.monotonic()


def _text(value):
    return "nothing" if value is None else value
