"""Choosing a folding: the fewest XNOR lanes that meet a rate, or the best rate in some lanes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from benn_fpga.errors import BennError, plural
from benn_fpga.layers import Layer, divisors
from benn_fpga.plan.answer import answer_beats
from benn_fpga.plan.cycles import alone, supplies
from benn_fpga.plan.plan import draft, plan
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import Ensemble, Fold, Folding

__all__ = ["DEFAULT_LANES", "Price", "bottleneck", "fold_for_cycles",
           "fold_for_lanes", "fold_for_price", "fold_that_fits"]

DEFAULT_LANES = 4096
Price: TypeAlias = tuple[float, ...]


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
            if _in_time(Stage(n, layer, fold), budget):
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
    folding = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model)
    least = _bound(model, bus)
    if cycles < least:
        raise BennError(f"{_met(cycles)}: the {bus}-bit bus alone needs {least}; widen `bus` or "
                        f"allow more `cycles`")
    rounds = folding.rounds(model)
    if cycles < rounds:
        raise BennError(f"{_met(cycles)} with {rounds} members in turn; run more in `parallel`")
    budget = allowed = cycles // rounds
    folds = [_cheapest(n, layer, allowed) for n, layer in enumerate(model.layers)]
    while True:
        folding = Folding(tuple(folds), parallel, bus)
        taken = _busy(model, folding)
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


def fold_for_price(model: Ensemble, cycles: int, price: Callable[[Folding], Price],
                   parallel: int | None = None, bus: int = 64) -> Folding:
    """The folding of the least ``price`` that takes at most ``cycles`` per frame, over all numbers
    of engines if ``parallel`` is None.

    Layer by layer the fold is taken that makes the whole cheapest, until none does.
    """
    found, failure = [], None
    for engines in divisors(len(model.members)) if parallel is None else [parallel]:
        try:
            start = _for_cycles(model, cycles, engines, bus)
        except BennError as error:
            failure = error
            continue
        found.append(_cheaper(model, start, cycles // start.rounds(model), price))
    if not found:
        assert failure is not None
        raise failure
    return min(found, key=lambda each: each[0])[1]


def _cheaper(model: Ensemble, folding: Folding, allowed: int,
             price: Callable[[Folding], Price]) -> tuple[Price, Folding]:
    """The cheapest folding that is reached by changing a layer at a time, and its price; each stage
    takes at most the cycles that are ``allowed``."""
    least, tried = price(folding), {folding}
    choices = [_choices(n, layer, allowed) for n, layer in enumerate(model.layers)]
    while True:
        before = least
        for n, folds in enumerate(choices):
            for fold in folds:
                layers = (*folding.layers[:n], fold, *folding.layers[n + 1:])
                trial = replace(folding, layers=layers)
                if trial in tried:
                    continue
                tried.add(trial)
                cost = price(trial)
                if cost < least and max(_busy(model, trial)) <= allowed:
                    least, folding = cost, trial
        if not least < before:
            return least, folding


def _choices(n: int, layer: Layer, allowed: int) -> list[Fold]:
    """For every SIMD the fold of the fewest PE in time, and the widest, whose weights may be
    constants."""
    widest = Fold(max(layer.pes), max(layer.simds))
    folds = [next((fold for pe in layer.pes if _in_time(Stage(n, layer, fold := Fold(pe, simd)),
                                                        allowed)), None) for simd in layer.simds]
    return list(dict.fromkeys([*filter(None, folds), widest]))


def _in_time(stage: Stage, allowed: int) -> bool:
    return stage.reads * stage.pixels_out <= allowed and alone(stage) <= allowed


def _busy(model: Ensemble, folding: Folding) -> list[int]:
    """Cycles of every stage. One whose words come slowly takes longer to fill its line buffer."""
    design = draft(model, folding)
    return [alone(unit.stage, supply)
            for unit, supply in zip(design.units, supplies(design), strict=True)]


def _met(cycles: int) -> str:
    return f"{cycles} {plural(cycles, 'cycle')} per frame cannot be met"


def fold_for_lanes(model: Ensemble, lanes: float = DEFAULT_LANES, parallel: int | None = None,
                   bus: int = 64) -> Folding:
    """The fastest folding with at most ``lanes`` XNOR lanes, no faster than the buses."""
    parallel = parallel or len(model.members)
    ones = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel, bus).check(model)
    rounds = ones.rounds(model)

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

    cycles = _least(*_range(model, bus, rounds, rounds), fits)
    return _for_cycles(model, cycles, parallel, bus)


def fold_that_fits(model: Ensemble, price: Callable[[Folding], Price],
                   fits: Callable[[Folding], bool], parallel: int | None = None,
                   bus: int = 64) -> Folding | None:
    """The fastest folding that ``fits``, of those of the least ``price``; None if there is none.

    Parameters as of :func:`fold_for_price`.
    """
    found: dict[int, Folding] = {}
    members = len(model.members)
    fewest, most = (1, members) if parallel is None else (members // parallel,) * 2

    def possible(cycles: int) -> bool:
        try:
            folding = fold_for_price(model, cycles, price, parallel, bus)
        except BennError:  # words come too slowly
            return False
        if fits(folding):
            found[cycles] = folding
        return cycles in found

    _least(*_range(model, bus, fewest, most), possible)
    return found[min(found)] if found else None


def _range(model: Ensemble, bus: int, fewest: int, most: int) -> tuple[int, int]:
    """Cycles per frame of the fastest and more than those of the slowest folding, if an engine runs
    from the ``fewest`` to the ``most`` members in turn."""
    def slowest(folds: Iterable[Fold]) -> int:
        return max(alone(Stage(n, layer, fold)) for n, (layer, fold) in
                   enumerate(zip(model.layers, folds, strict=True)))
    quickest = [_fastest(n, layer).fold for n, layer in enumerate(model.layers)]
    low = max(_bound(model, bus), fewest * slowest(quickest))
    return low, max(low, 2 * most * slowest([Fold(1, 1)] * len(model.layers)))


def _least(low: int, high: int, possible: Callable[[int], bool]) -> int:
    """The least number from ``low`` to ``high`` that is ``possible``, if larger ones are too."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if possible(middle) else (middle + 1, high)
    return low
