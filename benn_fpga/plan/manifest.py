"""The manifest of a design: what is in it, how long it takes, where its parts are."""

import math

from benn_fpga import bits
from benn_fpga.layers import Scale, SumPool
from benn_fpga.plan import answer, memories
from benn_fpga.plan.geometry import Walk
from benn_fpga.plan.memories import is_block
from benn_fpga.plan.schedule import frame_beats, schedule
from benn_fpga.plan.stages import (
    beat_elements,
    consumers,
    input_bits,
    integer_bits,
    stages,
    stalls,
    turn,
)
from benn_fpga.plan.widths import gear

__all__ = ["TOP", "describe"]

TOP = "benn_top"  # the module of the whole design


def describe(model, folding):
    """The manifest of a design, but for what is known only after generation."""
    timing = schedule(model, folding)
    rounds = folding.rounds(model)
    units, widths, read = stages(model, folding), integer_bits(model), input_bits(model)
    layers = [_layer(stage, rounds, timing, read[stage.n], widths[stage.n]) for stage in units]
    queues, gears = _joints(model, folding, units, timing, widths)
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
        "gears": gears,
        "memory_bits": {"constants": _constants(model, folding, widths, read),
                        "buffers": _bits(_memories(layers, queues, folding, _BUFFERS)),
                        "gears": sum(found["bits"] * (folding.parallel if found["to"] else 1)
                                     for found in gears)},
        "block_ram": _block_ram(_memories(layers, queues, folding, (
            *_BUFFERS, "weight_memory", "table_memory"))),
        "score_bits": model.score_bits,
        "total_bits": model.total_bits,
        "weight_bits": model.weight_bits,
        "xnor_lanes": timing.xnor_lanes,
        "xnor_gates": timing.xnor_gates,
        "predicted": {
            "cycles_per_frame": timing.cycles_per_frame,
            "latency_cycles": timing.latency_cycles,
            "stages": dict(timing.stages),
        },
        "frame": {"bytes": model.encoder.values, "beats": frame_beats(model.encoder, folding.bus)},
        "answer": {
            "bytes": answer.answer_size(model.classes),
            "beats": timing.stages["answer"],
            "fields": answer.describe(model.classes),
        },
        "bit_order": [line.strip() for line in bits.__doc__.splitlines()],
        "taps": [{"member_engine": m, "layer": stage.n, "path": f"member{m}.layer{stage.n}",
                  "has_ready": stalls(stage, model)}
                 for m in range(folding.parallel) for stage in units],
    }


def _layer(stage, rounds, timing, input_bits, output_bits):
    """A layer in the manifest: what it is, its fold, and its memories."""
    layer, fold = stage.layer, stage.fold
    found = {**layer.describe(), "pe": fold.pe, "simd": fold.simd,
             "cycles": timing.stages[f"layer{stage.n}"]}
    word = stage.lanes_in * input_bits
    if stage.has_products:
        found["weight_memory"] = _memory(rounds * stage.reads,
                                         fold.pe * fold.simd * layer.weight_bits)
        width = output_bits if layer.is_scores else layer.levels * layer.popcount_bits
        found["table_memory"] = _memory(rounds * stage.folds, fold.pe * width)
    if stage.is_dense:
        replays = stage.folds * (rounds if stage.n == 0 else 1)
        found["frame_buffer"] = _memory(2 if replays == 1 else 2 * stage.words_in, word)
        return found
    if stage.n == 0 and rounds > 1:
        found["frame_buffer"] = _memory(2 * stage.pixels_in * stage.words_in, word)
    if stage.is_buffered:
        found["line_buffer"] = _memory(Walk(stage.window).places * stage.words_in, word)
    if isinstance(layer, SumPool) and layer.output_bits:
        # With relu, as many memories as lanes.
        width, lanes = layer.levels * layer.sum_bits(input_bits), 1 if layer.relu else fold.pe
        found["table_memory"] = {**_memory(rounds * stage.folds * layer.entries, lanes * width),
                                 **({"copies": fold.pe} if layer.relu else {})}
    if stage.is_tiled:
        bits_ = output_bits
        if isinstance(layer, SumPool) and layer.output_bits:
            bits_ = layer.sum_bits(input_bits)
            bits_ += layer.address_bits(fold.pe, rounds) if layer.relu else 0
        found["partials"] = _memory(layer.places(fold.pe), fold.pe * bits_)
    return found


def _memory(words, bits_):
    return {"words": words, "bits": bits_, "block_ram": is_block(words, bits_)}


def _joints(model, folding, units, timing, widths):
    """Queues and width converters; layer None is the encoder."""
    encoder, first = model.encoder, units[0]
    queues, gears = [], [_gear(None, 0, 0, beat_elements(model, folding), first.lanes_in,
                               encoder.outputs, encoder.element_bits)]
    for source, unit in enumerate(units):
        for n, port in consumers(model)[source]:
            if (n, port) in timing.queues:
                pixels = timing.queues[n, port]
                queues.append({"from": source, "to": n, "port": port, "pixels": pixels,
                               **_memory(pixels * unit.words_out,
                                         unit.lanes_out * widths[source])})
            gears.append(_gear(source, n, port, unit.lanes_out, units[n].lanes_in,
                               turn(unit, units[n]), widths[source]))
    return queues, [found for found in gears if found["bits"]]


def _gear(source, n, port, i, o, frame, element_bits):
    bits_ = gear(i, o, frame).elements(i, o) * element_bits
    return {"from": source, "to": n, "port": port, "bits": bits_}


def _constants(model, folding, widths, read):
    """Bits of weights, thresholds, biases and gains, each as wide as the hardware stores it."""
    total = 0
    for n, layer in enumerate(model.layers):
        total += len(model.members) * layer.stored_bits
        for key, (shape, _) in layer.arrays().items():
            if key != "weights":
                total += math.prod(shape) * folding.rounds(model) * sum(
                    _width(model, folding, engine, n, key, widths[n], read[n])
                    for engine in range(folding.parallel))
    return total


def _width(model, folding, engine, n, key, output_bits, input_bits):
    """Bits of a constant in the memory of an engine."""
    layer = model.layers[n]
    if isinstance(layer, Scale):
        return memories.signed_bits(memories.constants(model, folding, engine, n, key))
    if isinstance(layer, SumPool):
        return (layer.sum_bits if key == "thresholds" else layer.active_bits)(input_bits)
    return layer.popcount_bits if key == "thresholds" else output_bits


_BUFFERS = ("line_buffer", "frame_buffer", "partials")


def _memories(layers, queues, folding, keys):
    """(How often it is there, memory) of queues and of ``keys`` of layers; what stands before the
    first layer is shared."""
    found = [(folding.parallel, queue) for queue in queues]
    for n, layer in enumerate(layers):
        for key in keys:
            if key in layer:
                shared = n == 0 and key in ("line_buffer", "frame_buffer")
                found.append((1 if shared else folding.parallel, layer[key]))
    return [(times * memory.get("copies", 1), memory) for times, memory in found]


def _bits(memories):
    return sum(times * memory["words"] * memory["bits"] for times, memory in memories)


def _block_ram(memories):
    """What asks for block RAM."""
    blocks = [(times, memory) for times, memory in memories if memory["block_ram"]]
    return {"memories": sum(times for times, _ in blocks), "bits": _bits(blocks)}
