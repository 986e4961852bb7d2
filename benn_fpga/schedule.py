"""The cycle model: how long each part of the hardware takes, to the cycle.

The gateware takes the depth of its trees, its width converters and its pauses from the functions
here; the tests compare the whole with simulation, cycle by cycle. Let layer i have NF = outputs/PE
and SF = inputs/SIMD. Then

* one member keeps it busy for ``NF * SF`` cycles, T members for T times that;
* a stream of frames needs ``max(input beats, T * NF * SF of any layer, answer beats)`` cycles each;
* a frame that meets an idle design is followed from joint to joint (:func:`schedule`): beats leave
  layer i every SF cycles, and the T rounds follow each other at the pace of the slowest layer.
"""

from dataclasses import dataclass
from math import lcm

from benn_fpga.answer import answer_beats

__all__ = ["Gear", "Schedule", "frame_beats", "gear", "hard_latency", "layer_latency", "pace",
           "popcount_latency", "schedule", "sum_latency", "tree_latency", "vote_latency"]

POPCOUNT_LEAF = 3  # bits that the first level of a popcount adds: one full adder
MEMORY_LATENCY = 2  # read register, then output register


def tree_latency(n):
    """Registered levels of a binary tree that reduces ``n`` items."""
    return (n - 1).bit_length()


def popcount_latency(n):
    """Registered levels of a popcount of ``n`` bits."""
    return 1 + tree_latency(-(-n // POPCOUNT_LEAF))


def sum_latency(simd, weight_bits, input_bits):
    """Registered levels from a word of ``simd`` weights and inputs to its weighted popcount."""
    return popcount_latency(simd) + tree_latency(weight_bits * input_bits)


def layer_latency(layer, fold, rounds):
    """Cycles from the last input chunk of an output fold to that fold's outputs."""
    one_word = (layer.outputs // fold.pe) * (layer.inputs // fold.simd) * rounds == 1
    weights = 0 if one_word else MEMORY_LATENCY
    sums = sum_latency(fold.simd, layer.weight_bits, layer.input_bits)
    accumulate, compare = 1, 1
    return weights + sums + accumulate + compare


def vote_latency(parallel, classes_per_beat):
    """Cycles from the last beat of votes to the answer."""
    multiply, accumulate, merge, margin = 1, 1, 1, 1
    return (multiply + tree_latency(parallel) + accumulate + tree_latency(classes_per_beat)
            + merge + margin)


def hard_latency(classes_per_beat, beats):
    """Cycles from the last beat of scores to the last beat of hard votes."""
    merge, hold = 1, 1
    return tree_latency(classes_per_beat) + merge + hold + beats - 1


@dataclass(frozen=True)
class Gear:
    """A width converter: ``collect`` beats fill a block, which leaves in ``emit`` beats.

    A frame is ``blocks`` blocks. Where beats and frame do not share a block size, the block is the
    whole frame and its surplus is dropped.
    """

    collect: int
    emit: int
    blocks: int

    def last_beat(self, first, spacing):
        """When the last beat of a frame comes out, if beats go in at ``first + n*spacing``."""
        return (first + (self.collect - 1) * spacing + (self.collect > 1) + (self.emit > 1)
                + (self.blocks - 1) * max(self.collect * spacing, self.emit) + self.emit - 1)


def gear(i, o, frame):
    """The :class:`Gear` from beats of ``i`` elements to ``o``, for frames of ``frame`` elements."""
    block = lcm(i, o)
    if frame % block:
        return Gear(-(-frame // i), -(-frame // o), 1)
    return Gear(block // i, block // o, frame // block)


def pace(model, folding, n):
    """Chunks after which layer ``n`` must pause, and for how many cycles.

    Where the next layer takes the outputs of a block in more cycles than they are made in, the
    layer waits at its input. Its pipeline then never has to stop in the middle, which would also
    hold up the round behind, and no cycle is lost: the next layer is the slower one.
    """
    layer, fold = model.layers[n], folding.layers[n]
    if layer.is_scores:
        return 1, 0
    block = gear(fold.pe, folding.layers[n + 1].simd, layer.outputs)
    chunks = block.collect * (layer.inputs // fold.simd)
    return chunks, max(0, block.emit - chunks)


def frame_beats(encoder, bus):
    """Beats of one input frame: a byte per value."""
    return -(-encoder.values * 8 // bus)


@dataclass(frozen=True)
class Schedule:
    """Predicted timing and size of a design.

    Members
    -------
    stages : cycles that each stage is busy per frame, by name
    cycles_per_frame : in a stream of frames; the slowest stage
    latency_cycles : from the first input beat to the first beat of the answer, design idle before
    xnor_lanes : PE x SIMD over all layers and engines (a multi-bit product is one lane)
    xnor_gates : the same, each bit plane product counted
    error_depth : frames that the design can hold, so many error flags must be queued
    """

    stages: dict[str, int]
    cycles_per_frame: int
    latency_cycles: int
    xnor_lanes: int
    xnor_gates: int
    error_depth: int


def schedule(model, folding):
    """The :class:`Schedule` of ``model`` folded by ``folding``."""
    folding.check(model)
    encoder, rounds = model.encoder, folding.rounds(model)
    stages = {"input": frame_beats(encoder, folding.bus)}
    # Cycle 0 takes the first beat; the input buffer and the encoder are one register each.
    now, spacing, width = 2, 1, folding.bus // 8 * encoder.elements_per_value
    slowest, lanes, gates = 0, 0, 0
    held = 4  # frames, at the most: in encoder and port, and one for the queue's own registers
    for n, (layer, fold) in enumerate(zip(model.layers, folding.layers, strict=True)):
        nf, sf = layer.outputs // fold.pe, layer.inputs // fold.simd
        slowest = max(slowest, nf * sf)
        stages[f"layer{n}"] = rounds * nf * sf
        lanes += fold.pe * fold.simd
        gates += fold.pe * fold.simd * layer.weight_bits * layer.input_bits
        written = gear(width, fold.simd, layer.inputs).last_beat(now, spacing)
        replays = nf * (rounds if n == 0 else 1)
        buffered = 1 if replays == 1 else 2
        latency = layer_latency(layer, fold, rounds)
        now = written + buffered + latency
        held += 4 + -(-latency // stages[f"layer{n}"])  # two in the buffer, two in the gearbox
        spacing, width = sf, fold.pe
    now += (nf - 1) * sf + (rounds - 1) * slowest
    voting = vote_latency(folding.parallel, fold.pe)
    if model.vote == "hard":
        voting += hard_latency(fold.pe, nf)
    held += -(-voting // (rounds * nf))
    stages["answer"] = answer_beats(model.classes, folding.bus)
    now += voting + 2  # the record, and the port's buffer
    return Schedule(stages, max(stages.values()), now, folding.parallel * lanes,
                    folding.parallel * gates, held)
