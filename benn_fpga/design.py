"""A design folder: Verilog, manifest and the model it was made from, tied together by hashes."""

import hashlib
import json
import math
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benn_fpga import answer, bits, modelfile
from benn_fpga.errors import BennError
from benn_fpga.layers import MAX_GAIN
from benn_fpga.output import umask
from benn_fpga.schedule import frame_beats, schedule
from benn_fpga.spec import Ensemble, Folding
from benn_fpga.stages import consumers, input_bits, integer_bits, stages
from benn_fpga.walk import Walk

__all__ = ["MANIFEST", "MODEL", "TOP", "VERILOG", "Design", "check_target", "describe",
           "read", "write"]

TOP = "benn_top"  # the module of the whole design
GAIN_BITS = MAX_GAIN.bit_length() + 1
VERILOG, MODEL, MANIFEST = f"{TOP}.v", "model.benn", "design.json"


@dataclass(frozen=True, eq=False)
class Design:
    """What ``benn-fpga generate`` wrote into ``directory``."""

    directory: Path
    manifest: dict
    model: Ensemble
    folding: Folding

    @property
    def verilog(self):
        return self.directory / VERILOG


def describe(model, folding):
    """The manifest of a design, but for what is known only after generation."""
    timing = schedule(model, folding)
    rounds = folding.rounds(model)
    units, widths, read = stages(model, folding), integer_bits(model), input_bits(model)
    layers = [_layer(stage, rounds, timing, read[stage.n]) for stage in units]
    queues = [{"from": source, "to": n, "port": port, "pixels": timing.queues[n, port],
               "words": timing.queues[n, port] * units[source].words_out,
               "bits": units[source].lanes_out * widths[source]}
              for source in range(len(units)) for n, port in consumers(model)[source]
              if (n, port) in timing.queues]
    return {
        "format": "benn-design",
        "version": 1,
        "top": TOP,
        "model_sha256": model.digest(),
        "bus": folding.bus,
        "values": model.encoder.values,
        "input_shape": list(model.encoder.shape),
        "classes": model.classes,
        "vote": model.vote,
        "members": len(model.members),
        "rounds": rounds,
        "encoder": model.encoder.describe(),
        "folding": folding.describe(),
        "layers": layers,
        "queues": queues,
        "memory_bits": {"constants": len(model.members) * _constants(model, widths, read),
                        "buffers": _buffers(units, layers, queues, folding, rounds)},
        "score_bits": model.score_bits,
        "total_bits": model.total_bits,
        "weight_bits": model.weight_bits,
        "xnor_lanes": timing.xnor_lanes,
        "xnor_gates": timing.xnor_gates,
        "predicted": {
            "cycles_per_frame": timing.cycles_per_frame,
            "latency_cycles": timing.latency_cycles,
            "stages": timing.stages,
        },
        "frame": {"bytes": model.encoder.values, "beats": frame_beats(model.encoder, folding.bus)},
        "answer": {
            "bytes": answer.answer_size(model.classes),
            "beats": timing.stages["answer"],
            "fields": answer.describe(model.classes),
        },
        "bit_order": [line.strip() for line in bits.__doc__.splitlines()],
        "taps": [{"member_engine": m, "layer": n, "path": f"member{m}.layer{n}"}
                 for m in range(folding.parallel) for n in range(len(model.layers))],
    }


def _layer(stage, rounds, timing, element_bits):
    """A layer in the manifest: what it is, its fold, and its memories."""
    layer, fold = stage.layer, stage.fold
    found = {**layer.describe(), "pe": fold.pe, "simd": fold.simd,
             "cycles": timing.stages[f"layer{stage.n}"]}
    word = stage.lanes_in * element_bits
    if stage.has_products:
        found["weight_memory"] = {"words": rounds * stage.reads,
                                  "bits": fold.pe * fold.simd * layer.weight_bits}
    if stage.is_dense:
        replays = stage.folds * (rounds if stage.n == 0 else 1)
        found["frame_buffer"] = {"words": 2 if replays == 1 else 2 * stage.words_in, "bits": word}
        return found
    if stage.n == 0 and rounds > 1:
        found["frame_buffer"] = {"words": 2 * stage.pixels_in * stage.words_in, "bits": word}
    if stage.is_buffered:
        found["line_buffer"] = {"words": Walk(layer).places * stage.words_in, "bits": word}
    return found


def _constants(model, widths, read):
    """Bits of weights, thresholds, biases and gains of a member, as the hardware stores them."""
    bits_ = 0
    for n, layer in enumerate(model.layers):
        bits_ += layer.stored_bits
        for key, (shape, _) in layer.arrays().items():
            if key == "weights":
                continue
            if key == "thresholds":
                width = layer.popcount_bits if hasattr(layer, "popcount_bits") else \
                    (layer.taps << (read[n] - 1)).bit_length() + 1
            else:
                width = {"bias": widths[n], "active": read[n], "gain": GAIN_BITS}[key]
            bits_ += math.prod(shape) * width
    return bits_


def _buffers(units, layers, queues, folding, rounds):
    """Bits of line buffers, frame buffers and queues; those of the first layer are shared."""
    total = 0
    for stage, layer in zip(units, layers, strict=True):
        engines = 1 if stage.n == 0 else folding.parallel
        total += engines * sum(layer[key]["words"] * layer[key]["bits"]
                               for key in ("line_buffer", "frame_buffer") if key in layer)
    return total + folding.parallel * sum(queue["words"] * queue["bits"] for queue in queues)


def check_target(directory, force=False):
    """Raise unless a design may be written to ``directory``; call it before the long work."""
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise BennError(f"{directory} is a file; give a folder with -o")
    if directory.is_dir() and any(directory.iterdir()) and not force \
            and not (directory / MANIFEST).is_file():
        raise BennError(f"{directory} is not empty and holds no design; "
                        f"give another folder, or --force to write there anyway")
    place = directory if directory.is_dir() else directory.parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=f".{directory.name}."):
            pass
    except OSError as error:
        raise BennError(f"can not write to {place}: {error.strerror}; "
                        f"give a folder you may write to") from None


def write(directory, verilog, manifest, model, force=False):
    """Write a design whole or not at all; returns the :class:`Design`.

    A new folder appears by one rename. In a folder that exists each file is replaced by a rename,
    the manifest last: until then its hashes do not fit, and :func:`read` says so.
    """
    directory = Path(os.path.abspath(directory))
    check_target(directory, force)
    manifest = {**manifest, "verilog_sha256": _sha256(verilog.encode())}
    staging = None
    try:
        place = directory if directory.is_dir() else directory.parent
        staging = Path(tempfile.mkdtemp(dir=place, prefix=f".{directory.name}."))
        staging.chmod(0o777 & ~umask())
        (staging / VERILOG).write_text(verilog)
        modelfile.save(model, staging / MODEL)
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        if directory.is_dir():
            for name in (VERILOG, MODEL, MANIFEST):
                os.replace(staging / name, directory / name)
        else:
            os.rename(staging, directory)
    except OSError as error:
        raise BennError(f"can not write to {directory}: {error.strerror}; "
                        f"make room, or give another folder") from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return read(directory)


def read(directory):
    """Read a design folder; raise :class:`BennError` if its parts do not belong together."""
    directory = Path(directory)
    if not directory.is_dir():
        raise BennError(f"{directory} is not a folder; give one that `benn-fpga generate` wrote")
    if not (directory / MANIFEST).is_file():
        raise BennError(f"{directory} is not a design folder (no {MANIFEST}); "
                        f"run: benn-fpga generate MODEL -o {directory}")
    again = "generate the design again"
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
        hashes = manifest["verilog_sha256"], manifest["model_sha256"]
        folding = Folding.from_json(manifest["folding"])
    except (ValueError, KeyError, TypeError, RecursionError, BennError):
        raise BennError(f"{directory / MANIFEST} is damaged; {again}") from None
    for name in (VERILOG, MODEL):
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


def _sha256(content):
    return hashlib.sha256(content).hexdigest()
