"""Choosing a folding: the fewest XNOR lanes that meet a rate, or the best rate in some lanes."""

from benn_fpga.answer import answer_beats
from benn_fpga.errors import BennError
from benn_fpga.schedule import frame_beats
from benn_fpga.spec import Fold, Folding

__all__ = ["DEFAULT_LANES", "fold_for_cycles", "fold_for_lanes"]

DEFAULT_LANES = 4096


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def _cheapest(layer, budget):
    """Fold of ``layer`` with the fewest lanes that takes at most ``budget`` >= 1 cycles.

    Among equals the widest SIMD wins: fewer accumulators, thresholds and outputs a cycle.
    """
    folds = []
    for simd in _divisors(layer.inputs):
        room = budget // (layer.inputs // simd)
        if room:
            pe = next(d for d in _divisors(layer.outputs) if layer.outputs // d <= room)
            folds.append(Fold(pe, simd))
    return min(folds, key=lambda fold: (fold.pe * fold.simd, -fold.simd))


def _bound(model, bus):
    """Cycles per frame that the buses need, whatever the folding."""
    return max(frame_beats(model.encoder, bus), answer_beats(model.classes, bus))


def fold_for_cycles(model, cycles, parallel=None, bus=64):
    """The smallest folding that takes at most ``cycles`` per frame."""
    parallel = parallel or len(model.members)
    least = _bound(model, bus)
    if cycles < least:
        raise BennError(f"{cycles} cycles per frame can not be met: the {bus}-bit bus alone needs "
                        f"{least}; widen the bus or lower the target")
    folding = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model)
    rounds = folding.rounds(model)
    if cycles < rounds:
        raise BennError(f"{cycles} cycles per frame can not be met with {rounds} members in turn; "
                        f"run more in parallel")
    folds = tuple(_cheapest(layer, cycles // rounds) for layer in model.layers)
    return Folding(folds, parallel, bus)


def fold_for_lanes(model, lanes=DEFAULT_LANES, parallel=None, bus=64):
    """The fastest folding with at most ``lanes`` XNOR lanes, no faster than the buses."""
    parallel = parallel or len(model.members)
    rounds = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model) \
        .rounds(model)
    low = max(_bound(model, bus), rounds)
    high = max(low, rounds * max(layer.inputs * layer.outputs for layer in model.layers))
    least = parallel * len(model.layers)
    if least > lanes:
        fewer = " or run fewer members in parallel" if parallel > 1 else ""
        raise BennError(f"Lanes must be at least {least} for {len(model.layers)} layers x "
                        f"{parallel} members in parallel, not {lanes}; allow more lanes{fewer}")
    while low < high:
        middle = (low + high) // 2
        folding = fold_for_cycles(model, middle, parallel, bus)
        if parallel * sum(fold.pe * fold.simd for fold in folding.layers) <= lanes:
            high = middle
        else:
            low = middle + 1
    return fold_for_cycles(model, low, parallel, bus)
