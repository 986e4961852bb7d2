"""What a design takes of an FPGA, known before it is built.

A design takes the parts of its nodes (plan/bill.py), times what a part of each family takes, which
was fitted to synthesis (examples/area.py) and is in area.json. Block RAMs are computed as Yosys
computes them. How far off this is on designs that it was not fitted to is in docs/area-model.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from benn_fpga.devices import RESOURCES, Device, Family
from benn_fpga.errors import BennError
from benn_fpga.layers import Products
from benn_fpga.plan import nodes
from benn_fpga.plan.bill import FABRICS, Bill, Fabric, Varied, bill, blocks
from benn_fpga.plan.memories import Contents, encoder_words
from benn_fpga.plan.plan import draft, plan

if TYPE_CHECKING:
    from benn_fpga.plan.mapping import Library
    from benn_fpga.plan.nodes import Node
    from benn_fpga.plan.plan import Draft
    from benn_fpga.spec import Ensemble, Folding

__all__ = ["VERSION", "Area", "Parts", "Prices", "Pricing", "estimate", "forget", "is_known",
           "parts", "prices"]

VERSION = 1  # of bills: prices are of one kind of bill only
FILLED = 0.85  # of LUTs and flip-flops that a design which must fit takes: estimates are no promise
_DEPTH = 8  # of a queue whose depth is not known yet


@dataclass(frozen=True)
class Prices:
    """What parts take in a family, by part: LUTs, flip-flops, and where LUT and flip-flop share
    a cell, cells of their own."""

    lut: dict[str, float]
    ff: dict[str, float]
    cell: dict[str, float] | None = None

    def of(self, parts: Bill) -> tuple[float, float, float]:
        """LUTs, flip-flops, and cells that have no LUT."""
        lut, ff, cell = (sum(each.get(part, 0) * count for part, count in parts.items())
                         for each in (self.lut, self.ff, self.cell or {}))
        return lut, ff, cell


@dataclass(frozen=True)
class Area:
    """What a design takes, as estimated.

    Members
    -------
    device : the FPGA
    lut, ff, bram : LUTs of all uses, flip-flops and block RAMs
    logic_cells : of devices where LUT and flip-flop share one
    nodes : LUTs, flip-flops and block RAMs of each node
    """

    device: Device
    lut: int
    ff: int
    bram: int
    logic_cells: int | None
    nodes: dict[str, tuple[int, int, int]]

    def _over(self, filled: float) -> dict[str, tuple[int, int]]:
        """Of which resources it uses more than a share, and how many it uses of how many; block
        RAMs, which are no estimate, may all be used."""
        used = {name: (getattr(self, name, None) or 0, there)
                for name, there in self.device.resources.items()}
        return {name: (count, there) for name, (count, there) in used.items()
                if count > there * (1 if name == "bram" else filled)}

    @property
    def missing(self) -> dict[str, int]:
        """How many of a resource are lacking, for those that are."""
        return {name: count - there for name, (count, there) in self._over(1).items()}

    @property
    def is_safe(self) -> bool:
        """Whether it fits even if it takes more than estimated, with room for routing."""
        return not self._over(FILLED)

    def needs(self) -> str:
        """Of what it takes more than it safely may, in words."""
        return ", ".join(f"about {count:,} {RESOURCES[name]} of {there:,}"
                         for name, (count, there) in self._over(FILLED).items())

    def describe(self) -> dict[str, Any]:
        return {"device": self.device.name, "lut": self.lut, "ff": self.ff, "bram": self.bram,
                "logic_cells": self.logic_cells, "missing": self.missing,
                "fits": not self.missing if self.device.resources else None}


@lru_cache(maxsize=1)
def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(files("benn_fpga.plan").joinpath("area.json").read_text())
    if record.get("version") != VERSION:
        raise BennError(f"area.json is of version {record.get('version')!r} of the area model, "
                        f"which is {VERSION}; run: python examples/area.py fit")
    return record


def is_known(family: Family) -> bool:
    """Whether there are prices for a family."""
    return family.name in _record()["families"]


def prices(family: Family) -> Prices:
    """The :class:`Prices` of a family; raise if there are none."""
    known = _record()["families"]
    if family.name not in known:
        raise BennError(f"there is no area model of {family.name}; there are those of "
                        f"{', '.join(known)}")
    return Prices(**known[family.name])


def forget() -> None:
    """Read prices again when they are wanted next."""
    _record.cache_clear()


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts and block RAMs of a design on a device, node by node."""

    bills: dict[str, Bill]
    blocks: dict[str, int]


def parts(model: Ensemble, folding: Folding, device: Device) -> Parts:
    """The parts of a design."""
    return _parts(plan(model, folding), device, _varied(model, folding))


def _parts(design: Draft, device: Device, varied: Callable[[Node], Varied]) -> Parts:
    """... whose tables have so many bits that vary."""
    most = device.resources.get("bram", math.inf)
    for fabric in _fabrics(device):
        taken = {node.name: blocks(node, fabric.library, varied(node)) for node in design.nodes}
        if sum(taken.values()) <= most:
            break
    return Parts({node.name: bill(node, fabric, varied(node)) for node in design.nodes}, taken)


def _fabrics(device: Device) -> Iterator[Fabric]:
    """That of a device, then that of a design which would have too many block RAMs: `synth` spends
    those of an iCE40 on small memories only as long as there are enough."""
    fabric = FABRICS[device.family.name]
    yield fabric
    if fabric.sparing is not None:
        yield replace(fabric, library=fabric.sparing)


def estimate(model: Ensemble, folding: Folding, device: Device) -> Area:
    """The :class:`Area` of a design on ``device``."""
    return _area(parts(model, folding, device), device)


def _area(found: Parts, device: Device) -> Area:
    each = prices(device.family)
    taken = {name: each.of(counted) for name, counted in found.bills.items()}
    lut, ff, cell = (sum(numbers[n] for numbers in taken.values()) for n in range(3))
    return Area(device, round(lut), round(ff), sum(found.blocks.values()),
                None if each.cell is None else round(lut + cell),
                {name: (round(luts), round(ffs), found.blocks[name])
                 for name, (luts, ffs, _) in taken.items()})


class Pricing:
    """What foldings of a model cost on a device: for a solver that asks for many of them.

    Depths of queues, which take time to find, are taken to be those of pipelines, and all bits of
    tables to vary.
    """

    def __init__(self, model: Ensemble, device: Device) -> None:
        self._model = model
        self._device = device
        self._nodes: dict[tuple[Node, Library], tuple[tuple[float, float, float], int]] = {}
        self._prices = prices(device.family)

    def filled(self, folding: Folding) -> Folding:
        """``folding`` with what the device chooses."""
        return folding.filled(self._device.relays, self._device.adder_levels)

    def __call__(self, folding: Folding) -> tuple[float, float]:
        """How many block RAMs are lacking, then what it takes: logic cells, or LUTs."""
        design = _with_depths(self._model, self.filled(folding))
        most = self._device.resources.get("bram", math.inf)
        for fabric in _fabrics(self._device):
            taken = [self._of(node, fabric) for node in design]
            brams = sum(count for _, count in taken)
            if brams <= most:
                break
        return max(0, brams - most), sum(lut + cell for (lut, _, cell), _ in taken)

    def _of(self, node: Node, fabric: Fabric) -> tuple[tuple[float, float, float], int]:
        key = node, fabric.library
        if key not in self._nodes:
            self._nodes[key] = self._prices.of(bill(node, fabric)), blocks(node, fabric.library)
        return self._nodes[key]


def _with_depths(model: Ensemble, folding: Folding) -> list[Node]:
    """The nodes of a design, with depths of queues that are about right."""
    design = draft(model, folding)

    def deep(node: Node) -> Node:
        if isinstance(node, nodes.Queue):
            unit = design[node.reads[0]]
            slots = _DEPTH if not isinstance(unit, nodes.Unit) else \
                1 + -(-(unit.latency + 2) // unit.stage.reads_per_word)
            return replace(node, depth=slots)
        return replace(node, depth=_DEPTH) if isinstance(node, nodes.Guard) else node
    return [deep(node) for node in design.nodes]


def _varied(model: Ensemble, folding: Folding) -> Callable[[Node], Varied]:
    """How many bits of the tables of a node differ from word to word."""
    contents = [Contents(model, folding, n) for n in range(folding.parallel)]

    @cache
    def of(node: Node) -> Varied:
        match node:
            case nodes.Encoder() if node.threshold_words > 1:
                return {"thresholds": [_columns(encoder_words(model.encoder, node.i.lanes))]}
            case nodes.Unit(stage=stage) if isinstance(stage.layer, Products):
                return {"table": [_columns(each.table(stage.n, node.o.element_bits))
                                  for each in contents]}
        return {}
    return of


def _columns(words: list[int]) -> int:
    """Bits that are not the same in all ``words``."""
    ones = zeros = 0
    for word in words:
        ones |= word
        zeros |= ~word
    return (ones & zeros).bit_count()
