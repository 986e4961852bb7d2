"""Choosing a folding: the fewest XNOR lanes that meet a rate, or the best rate in some lanes."""

import math
from collections.abc import Iterable

from benn_fpga.errors import BennError, plural
from benn_fpga.layers import Layer, divisors
from benn_fpga.plan.answer import answer_beats
from benn_fpga.plan.cycles import alone, supplies
from benn_fpga.plan.plan import draft, plan
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import Ensemble, Fold, Folding

__all__ = ["DEFAULT_LANES", "bottleneck", "fold_for_cycles", "fold_for_lanes"]

DEFAULT_LANES = 4096


def _fastest(n: int, layer: Layer) -> Stage:
    """The quickest of all folds of ``layer``.

    The widest SIMD is not always that: a window of registers takes a step for every pixel, a line
    buffer skips those that no window reads.
    """
    return min((Stage(n, layer, Fold(max(layer.pes), simd)) for simd in layer.simds), key=alone)


def _cheapest(n: int, layer: Layer, budget: int) -> Fold:
    """Fold of ``layer`` with the fewest lanes that takes at most ``budget`` cycles.

    Among equals the one with the fewest bits beside its lanes wins. But one of several taps needs
    a window of registers, and wins only if it saves lanes.
    """
    best, least = None, (math.inf, False, 0)
    for simd in layer.simds:
        for pe in layer.pes:
            fold = Fold(pe, simd)
            cost = pe * simd, simd in layer.wide_simds, layer.bits_beside(fold)
            if cost[0] > least[0]:
                break
            stage = Stage(n, layer, fold)
            if stage.reads * stage.pixels_out <= budget and alone(stage) <= budget:
                if cost < least:
                    best, least = fold, cost
                break
    if best is None:
        raise BennError(f"{budget} {plural(budget, 'cycle')} for a member cannot be met: layer {n} "
                        f"({layer.kind}) takes {alone(_fastest(n, layer))} at the least; allow "
                        f"more `cycles`")
    return best


def _bound(model: Ensemble, bus: int) -> int:
    """Cycles per frame that the buses need, whatever the folding."""
    return max(model.encoder.beats(bus), answer_beats(model.classes, bus))


def _xnor_lanes(model: Ensemble, folding: Folding) -> int:
    """XNOR lanes of an engine."""
    return sum(layer.xnor_lanes(fold)
               for layer, fold in zip(model.layers, folding.layers, strict=True))


def bottleneck(model: Ensemble, folding: Folding) -> tuple[str, bool]:
    """Which of the slowest stages of a design bounds it: a bus, else a layer that cannot be
    faster, else any; and whether another folding of that stage would be faster."""
    design = plan(model, folding)
    busy = design.schedule.stages
    most = [name for name, cycles in busy.items() if cycles == max(busy.values())]
    stages = {unit.name: unit.stage for unit in design.units}
    fixed = [name for name in most if name not in stages] + [
        name for name, stage in stages.items()
        if name in most and alone(stage) <= alone(_fastest(stage.n, stage.layer))]
    return (fixed[0], False) if fixed else (most[0], True)


def fold_for_cycles(model: Ensemble, cycles: int, parallel: int | None = None,
                    bus: int = 64) -> Folding:
    """The smallest folding that takes at most ``cycles`` per frame.

    If ``parallel`` is None, that of the fewest XNOR lanes over all numbers of engines; among equals
    that of the fewest engines.
    """
    if parallel is not None:
        return _for_cycles(model, cycles, parallel, bus)
    engines = divisors(len(model.members))
    chosen = [_for_cycles(model, cycles, engines[-1], bus)]  # the most likely to meet it
    for fewer in reversed(engines[:-1]):
        try:
            chosen.insert(0, _for_cycles(model, cycles, fewer, bus))
        except BennError:
            break
    return min(chosen, key=lambda folding: folding.parallel * _xnor_lanes(model, folding))


def _for_cycles(model: Ensemble, cycles: int, parallel: int, bus: int) -> Folding:
    """The smallest folding of so many engines that takes at most ``cycles`` per frame."""
    least = _bound(model, bus)
    if cycles < least:
        raise BennError(f"{_met(cycles)}: the {bus}-bit bus alone needs {least}; widen `bus` or "
                        f"allow more `cycles`")
    folding = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model)
    rounds = folding.rounds(model)
    if cycles < rounds:
        raise BennError(f"{_met(cycles)} with {rounds} members in turn; run more in `parallel`")
    budget = allowed = cycles // rounds
    folds = [_cheapest(n, layer, allowed) for n, layer in enumerate(model.layers)]
    while True:
        folding = Folding(tuple(folds), parallel, bus)
        # A stage whose words come slowly takes longer to fill its line buffer.
        design = draft(model, folding)
        taken = [alone(unit.stage, supply)
                 for unit, supply in zip(design.units, supplies(design), strict=True)]
        over = max(taken) - allowed
        if over <= 0:
            return folding
        budget -= over
        try:
            folds = [_cheapest(n, layer, budget) for n, layer in enumerate(model.layers)]
        except BennError:
            n = taken.index(max(taken))
            raise BennError(
                f"{_met(cycles)}: layer {n} ({model.layers[n].kind}) takes {rounds * max(taken)}, "
                f"since its inputs come slowly; allow more `cycles`") from None


def _met(cycles: int) -> str:
    return f"{cycles} {plural(cycles, 'cycle')} per frame cannot be met"


def fold_for_lanes(model: Ensemble, lanes: float = DEFAULT_LANES, parallel: int | None = None,
                   bus: int = 64) -> Folding:
    """The fastest folding with at most ``lanes`` XNOR lanes, no faster than the buses."""
    parallel = parallel or len(model.members)
    ones = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model)
    rounds = ones.rounds(model)

    def slowest(folds: Iterable[Fold]) -> int:
        return rounds * max(alone(Stage(n, layer, fold)) for n, (layer, fold) in
                            enumerate(zip(model.layers, folds, strict=True)))
    quickest = [_fastest(n, layer).fold for n, layer in enumerate(model.layers)]
    low = max(_bound(model, bus), slowest(quickest))
    high = max(low, 2 * slowest(ones.layers))
    least = parallel * _xnor_lanes(model, ones)
    if least > lanes:
        fewer = ", or run fewer members in `parallel`" if parallel > 1 else ""
        layers = least // parallel
        raise BennError(f"`lanes` must be at least {least} for {layers} {plural(layers, 'layer')} "
                        f"x {parallel} {plural(parallel, 'member')} in parallel, not {lanes}; "
                        f"allow more{fewer}")

    def fits(cycles: int) -> bool:
        try:
            return parallel * _xnor_lanes(model, _for_cycles(model, cycles, parallel, bus)) <= lanes
        except BennError:  # words come too slowly
            return False

    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return _for_cycles(model, low, parallel, bus)
