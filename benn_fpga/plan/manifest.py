"""The manifest of a design: its nodes, how long it takes, and how to talk to it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from benn_fpga import bits
from benn_fpga.plan import answer, blocks
from benn_fpga.plan.nodes import Memory, Node
from benn_fpga.plan.plan import Plan, plan
from benn_fpga.spec import Ensemble, Folding

__all__ = ["TOP", "describe"]

TOP = "benn_top"  # the module of the whole design


def describe(model: Ensemble, folding: Folding) -> dict[str, Any]:
    """The manifest of a design, except what is known only after generation."""
    design = plan(model, folding)
    schedule = design.schedule
    return {
        "format": "benn-design",
        "version": 3,
        "top": TOP,
        "model_sha256": model.digest(),
        "bus": folding.bus,
        "values": model.encoder.values,
        "input_shape": list(model.encoder.shape),
        "classes": model.classes,
        "vote": model.vote,
        "reject": model.reject,
        "members": len(model.members),
        "rounds": design.rounds,
        "encoder": model.encoder.describe(),
        "folding": folding.describe(),
        "layers": [{**unit.stage.layer.describe(), "pe": unit.stage.fold.pe,
                    "simd": unit.stage.fold.simd, "cycles": schedule.stages[unit.name],
                    "unrolled": unit.is_unrolled}
                   for unit in design.units],
        "nodes": [_node(node) for node in design.nodes],
        "memory_bits": {
            "constants": sum(memory.size for memory in _memories(design) if memory.constant),
            "buffers": sum(memory.size for memory in _memories(design) if not memory.constant),
            "registers": sum(node.register_bits for node in design.nodes),
        },
        "block_ram": _block_ram(design),
        "score_bits": model.score_bits,
        "total_bits": model.total_bits,
        "weight_bits": model.weight_bits,
        "xnor_lanes": schedule.xnor_lanes,
        "xnor_gates": schedule.xnor_gates,
        "predicted": {
            "cycles_per_frame": schedule.cycles_per_frame,
            "latency_cycles": schedule.latency_cycles,
            "stages": dict(schedule.stages),
        },
        "frame": {"bytes": model.encoder.values, "beats": design.entry.i.words},
        "answer": {
            "bytes": answer.answer_size(model.classes),
            "beats": design.port.o.words,
            "fields": answer.describe(model.classes),
        },
        "bit_order": [line.strip() for line in (bits.__doc__ or "").splitlines()],
        "taps": [{"layer": unit.stage.n, "path": unit.name, "engines": unit.o.ways}
                 for unit in design.units],
    }


def _node(node: Node) -> dict[str, Any]:
    """A node; of its stream the words of a frame and the bits of a word, without marks. What nodes
    of its kind have beside, numbers and names, are its ``settings``."""
    common = {field.name for field in fields(Node)}
    return {
        "name": node.name,
        "kind": type(node).__name__,
        "reads": list(node.reads),
        "engines": node.o.ways,
        "words": node.o.words,
        "bits": node.o.bits,
        "latency": node.latency,
        "settings": {field.name: list(value) if isinstance(value, tuple) else value
                     for field in fields(node) if field.name not in common
                     and _is_plain(value := getattr(node, field.name))},
        "memories": {name: {"words": memory.words, "bits": memory.bits, "copies": memory.copies,
                            "block_ram": memory.is_block}
                     for name, memory in node.memories.items()},
        "register_bits": node.register_bits,
    }


def _is_plain(value: object) -> bool:
    """Whether it is a number or some names, not a stream or a stage."""
    return isinstance(value, int | None) or (
        isinstance(value, tuple) and all(isinstance(each, str) for each in value))


def _memories(design: Plan) -> list[Memory]:
    return [memory for node in design.nodes for memory in node.memories.values()]


def _block_ram(design: Plan) -> dict[str, Any]:
    """What asks for block RAM, and how many blocks that is."""
    asking = [memory for memory in _memories(design) if memory.is_block]
    return {"memories": sum(memory.copies for memory in asking),
            "bits": sum(memory.size for memory in asking),
            "blocks": blocks.of_memories(asking)}
