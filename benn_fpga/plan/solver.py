"""Choosing a folding by what is wanted: lanes, cycles, or a device that it must fit."""

from __future__ import annotations

import math
from collections.abc import Callable

from benn_fpga import devices
from benn_fpga.errors import BennError
from benn_fpga.plan import area
from benn_fpga.plan.folding import (
    DEFAULT_LANES,
    fold_for_cycles,
    fold_for_lanes,
    fold_for_price,
    fold_that_fits,
)
from benn_fpga.plan.plan import plan
from benn_fpga.progress import bar
from benn_fpga.spec import Ensemble, Fold, Folding

__all__ = ["choose_folding", "fastest"]


def choose_folding(model: Ensemble, *, parallel: int | None = None, bus: int = 64,
                   lanes: float | None = None, cycles: int | None = None,
                   device: str | None = None, fit: bool = False,
                   progress: bool | Callable[[int, int | None], object] | None = False
                   ) -> Folding:
    """A folding by its target; the default is 4096 lanes.

    With a ``device`` that of ``cycles`` is not the one of the fewest XNOR lanes, but of the fewest
    LUTs there; with ``fit`` it is the fastest that fits the device. Either takes some seconds of a
    large model; ``progress`` as in :func:`benn_fpga.progress.bar`.
    """
    ones = Folding(tuple(Fold(1, 1) for _ in model.layers), parallel or 1, bus).check(model)
    if fit and device is None:
        raise BennError("what is to `fit` needs a `device`; name one")
    target = None if device is None else devices.find(device)
    if target is not None and fit:
        with bar("folding", None, progress):
            return _that_fits(model, target, parallel, ones)
    if cycles is None:
        return fold_for_lanes(model, DEFAULT_LANES if lanes is None else lanes, parallel, bus)
    if target is None or not area.is_known(target.family):
        return fold_for_cycles(model, cycles, parallel, bus)
    with bar("folding", None, progress):
        return fold_for_price(model, cycles, area.Pricing(model, target), parallel, bus)


def _that_fits(model: Ensemble, device: devices.Device, parallel: int | None,
               ones: Folding) -> Folding:
    """The fastest folding that fits, or raise; ``ones`` is the slowest of all."""
    if not device.resources:
        raise BennError(f"anything fits {device.name}, which is only counted; take a real device")
    pricing = area.Pricing(model, device)

    def estimated(folding: Folding) -> area.Area:
        return area.estimate(model, pricing.filled(folding), device)
    folding = fold_that_fits(model, pricing, lambda each: estimated(each).is_safe, parallel,
                             ones.bus)
    if folding is not None:
        return folding
    least = fold_for_price(model, plan(model, ones).schedule.cycles_per_frame, pricing,
                           ones.parallel, ones.bus)
    taken = estimated(least)
    larger = [each.name for each in devices.DEVICES.values()
              if each.family.name == device.family.name and each.resources
              and area.estimate(model, least, each).is_safe]
    raise BennError(f"no folding fits {device.name}: even the smallest needs {taken.needs()}; "
                    + (f"it fits {larger[0]}" if larger else "take a smaller model"))


def fastest(model: Ensemble, *, parallel: int | None = None, bus: int = 64) -> Folding:
    """The smallest of the fastest foldings."""
    return fold_for_lanes(model, math.inf, parallel, bus)
