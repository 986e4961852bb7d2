"""The cycle model: how long each part of the hardware takes, to the cycle.

The gateware takes the depth of its trees, its pauses and the depths of its queues from the
functions here; the tests compare the whole with simulation, cycle by cycle. Let layer i have NF =
outputs/PE and SF = inputs/SIMD. Then

* one member keeps a dense layer busy for ``NF * SF`` cycles, T members for T times that;
* a layer of windows takes ``NF * SF`` cycles for each of them, and longer where its line buffer
  has to be filled first (:func:`~benn_fpga.plan.flow.alone`);
* a stream of frames needs as many cycles for each as the slowest layer, the input or the answer;
* a frame that meets an idle design is followed word by word from joint to joint
  (:class:`~benn_fpga.plan.flow.Flow`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from benn_fpga.layers import MaxPool, Scale, SumPool
from benn_fpga.plan.answer import answer_beats
from benn_fpga.plan.flow import Flow, alone, supplies
from benn_fpga.plan.stages import stages, stalls
from benn_fpga.plan.widths import gear

__all__ = ["Schedule", "frame_beats", "hard_latency", "latencies", "layer_latency", "max_latency",
           "pace", "pool_latency", "popcount_latency", "queues", "scale_latency", "schedule",
           "sum_latency", "tree_latency", "vote_latency"]

POPCOUNT_LEAF = 3  # bits that the first level of a popcount adds: one full adder
MEMORY_LATENCY = 2  # read register, then output register
FLAG_LATENCY = 2  # of the queue of error flags: its memory, then its output register
_FRAMES = 4  # after the first one is through, in which a stream of frames finds its rhythm


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


def max_latency(layer, lanes):
    """Cycles from the last tap of a max pool's window to its word."""
    recall, compare = int(layer.places(lanes) > 1), 1
    return recall + compare


def pool_latency(layer, lanes, rounds):
    """Registers of a sum pool before its sums, that of the sums, and those behind them."""
    read = 0 if rounds * layer.channels == lanes else MEMORY_LATENCY
    recall = int(layer.places(lanes) > 1)  # the sum so far is read from a memory
    accumulate, choose, compare = 1, 1, 1
    if not layer.output_bits:
        return recall, accumulate, 0
    if layer.relu:
        return read + choose, accumulate, MEMORY_LATENCY + compare
    return max(recall, read - 1), accumulate, compare


def scale_latency(layer, lanes, rounds):
    """Cycles from a word of integers to that word, scaled."""
    read = 0 if rounds * layer.shape[2] == lanes else MEMORY_LATENCY
    multiply, shift, clip = 1, 1, 1
    return read + multiply + shift + clip


def vote_latency(parallel, classes_per_beat):
    """Cycles from the last beat of votes to the answer."""
    multiply, accumulate, merge, margin = 1, 1, 1, 1
    return (multiply + tree_latency(parallel) + accumulate + tree_latency(classes_per_beat)
            + merge + margin)


def hard_latency(classes_per_beat, beats):
    """Cycles from the last beat of scores to the last beat of hard votes."""
    merge, hold = 1, 1
    return tree_latency(classes_per_beat) + merge + hold + beats - 1


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
    queues : depth in pixels of the queue before each port (layer, source) behind a window
    """

    stages: Mapping[str, int]
    cycles_per_frame: int
    latency_cycles: int
    xnor_lanes: int
    xnor_gates: int
    error_depth: int
    queues: Mapping[tuple[int, int], int]


def latencies(model, folding):
    """Of each stage, cycles from the last word that an output needs to that output."""
    rounds, found = folding.rounds(model), stages(model, folding)
    # What a first layer that never stops reads goes to all engines through a register.
    spread = int(not stalls(found[0], model))
    return [_latency(stage, rounds) + (spread if stage.n == 0 else 0) for stage in found]


def _latency(stage, rounds):
    layer, fold = stage.layer, stage.fold
    if stage.has_products:
        return layer_latency(layer, fold, rounds)
    if isinstance(layer, MaxPool):
        return max_latency(layer, fold.pe)
    if isinstance(layer, SumPool):
        return sum(pool_latency(layer, fold.pe, rounds))
    return scale_latency(layer, fold.pe, rounds) if isinstance(layer, Scale) else 1


def queues(model, folding, cycles):
    """Depth, in pixels, of the queue before each port (layer, source) that does not read a dense
    layer, if frames take so many cycles.

    It is what a stream of frames needs whose words come evenly.
    """
    cycles, frames, needed = cycles // folding.rounds(model), 0, _FRAMES
    while frames < needed:
        frames = needed
        flow = Flow(model, folding, latencies(model, folding), _paces(model, folding))
        scores = flow.run(flow.paced(frames, cycles))
        needed = scores[len(scores) // frames - 1] // cycles + _FRAMES
    return {key: queue.most() for key, queue in flow.queues.items()}


def _paces(model, folding):
    return [pace(model, folding, n) if stage.is_dense else None
            for n, stage in enumerate(stages(model, folding))]


_found = {}  # the last schedules


def schedule(model, folding):
    """The :class:`Schedule` of ``model`` folded by ``folding``.

    It does not depend on what members store, and the last ones are kept: those of large networks
    take seconds.
    """
    folding.check(model)
    encoder = model.encoder
    key = (model.layers, encoder.kind, encoder.shape, encoder.levels, len(model.members),
           model.vote, folding)
    if key not in _found:
        if len(_found) >= 4:
            del _found[next(iter(_found))]
        _found[key] = _schedule(model, folding)
    return _found[key]


def _schedule(model, folding):
    encoder, rounds, found = model.encoder, folding.rounds(model), stages(model, folding)
    latency, fed = latencies(model, folding), supplies(model, folding)
    busy = {"input": frame_beats(encoder, folding.bus)}
    lanes = gates = 0
    held = 4  # frames, at the most: in encoder and port, and one for the queue's own registers
    for n, stage in enumerate(found):
        busy[f"layer{n}"] = rounds * alone(stage, fed[n])
        if stage.has_products:
            lanes += stage.fold.pe * stage.fold.simd
            gates += stage.fold.pe * stage.fold.simd * stage.layer.weight_bits \
                * stage.layer.input_bits
        held += 4 + -(-latency[n] // busy[f"layer{n}"])  # two in the buffer, two in the gearbox
    last = found[-1]
    beats = last.pixels_out * last.words_out
    voting = vote_latency(folding.parallel, last.lanes_out)
    if model.vote == "hard":
        voting += hard_latency(last.lanes_out, beats)
    held += -(-voting // (rounds * beats))
    busy["answer"] = answer_beats(model.classes, folding.bus)
    cycles = max(busy.values())
    depths = {} if all(stage.is_dense for stage in found) else queues(model, folding, cycles)
    flow = Flow(model, folding, latency, _paces(model, folding), depths)
    scores = flow.run(flow.bus(1, busy["input"]))
    # The first answer may be known before its frame has come in whole; it waits for the error flag.
    voted = max(scores[rounds * beats - 1] + voting, flow.guarded.taken[-1] + FLAG_LATENCY)
    # Behind the vote come the record and the port's buffer.
    return Schedule(MappingProxyType(busy), cycles, voted + 2, folding.parallel * lanes,
                    folding.parallel * gates, held, MappingProxyType(depths))
