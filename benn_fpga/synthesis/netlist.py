"""What a mapped netlist takes: in all, by node of the plan, by engine."""

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field

from benn_fpga.devices import RESOURCES
from benn_fpga.synthesis.owners import HARNESS, Owner

__all__ = ["NOTHING", "Count", "count", "count_placed", "named", "read", "readers"]

NOTHING = "x"  # what an output drives that is not connected
_COUNTED = ("lut", "carry", "ff", "bram", "dsp")


@dataclass
class Count:
    """What cells take: LUTs of all uses, bits of carry chains, flip-flops, ..."""

    lut: int = 0
    carry: int = 0
    ff: int = 0
    bram: int = 0
    dsp: int = 0
    logic_cells: int | None = None
    cells: dict[str, int] = field(default_factory=dict)
    owners: dict[Owner, dict[str, int]] = field(default_factory=dict)

    def describe(self):
        return {**{name: getattr(self, name) for name in (*_COUNTED, *RESOURCES)},
                "cells": self.cells}

    def nodes(self):
        """Of each node what it takes in all engines, of None what is between nodes."""
        return _summed(self.owners, "node", lambda owner: owner.node)

    def engines(self):
        """Of each engine what it takes, of None what all of them share."""
        return _summed(self.owners, "engine", lambda owner: owner.engine)


def _summed(owners, what, key):
    sums = {}
    for owner, numbers in owners.items():
        sums.setdefault(key(owner), Counter()).update(numbers)
    return [{what: name, **{each: numbers[each] for each in _COUNTED}}
            for name, numbers in sorted(sums.items(), key=lambda item: (
                item[0] is None, item[0]))]


def read(path, top):
    """The module ``top`` of a netlist that Yosys has written as JSON; that of nextpnr is alone."""
    modules = json.loads(path.read_bytes())["modules"]
    return modules[top] if len(modules) > 1 else next(iter(modules.values()))


def named(module, owners):
    """``module`` with cells named by their node where only a wire outside is known by name, as with
    registers that drive a port of the design; it is changed in place.

    Carries that nobody reads are disconnected: nextpnr would lead them out of their chain.
    """
    reads = _reader_counts(module)
    for cell in module["cells"].values():
        if "COUT" in cell["connections"] and not reads[cell["connections"]["COUT"][0]]:
            cell["connections"]["COUT"] = [NOTHING]
    inside = {}
    for name, net in module["netnames"].items():
        if owners.of(name).node is not None:
            for bit in net["bits"]:
                before = inside.get(bit)
                if before is None or name.count(".") > before.count("."):
                    inside[bit] = name
    cells = {}
    for name, cell in module["cells"].items():
        if owners.of(name).node is None:
            driven = (bit for port, bits in cell["connections"].items()
                      if _is_output(cell, port) for bit in bits)
            net = next((inside[bit] for bit in driven if bit in inside), None)
            if net is not None:
                name = f"{net.rpartition('.')[0]}.{name.lstrip('$').replace('.', '_')}"
        cells[name] = cell
    if len(cells) != len(module["cells"]):
        raise ValueError("two cells have one name")
    module["cells"] = cells
    return module


def count(module, family, owners):
    """The :class:`Count` of a netlist; :class:`~benn_fpga.synthesis.owners.Owners` names nodes."""
    taken, total, cells = {}, Counter(), Counter()
    for name, cell in module["cells"].items():
        cost = family.cost(cell["type"])
        if cost is None:
            continue
        cells[cell["type"]] += 1
        here = taken.setdefault(owners.of(name), Counter())
        for what, number in asdict(cost).items():
            total[what] += number
            here[what] += number
    for name in _feeds(module, family.carry_cell):
        for counted in (total, taken[owners.of(name)]):
            counted.update(asdict(family.cells[family.carry_cell]))
    for name in _passed_on(module, family):
        for counted in (total, taken[owners.of(name)]):
            counted["lut"] += 1
    logic_cells = None
    if family.has_logic_cells:
        alone, packed = _logic_cells(module)
        for name in alone:  # each takes a LUT that does nothing else
            taken[owners.of(name)]["lut"] += 1
            total["lut"] += 1
        logic_cells = total["lut"] + total["ff"] - packed
    return Count(**{name: total[name] for name in _COUNTED}, logic_cells=logic_cells,
                 cells=dict(sorted(cells.items())),
                 owners={owner: {name: here[name] for name in _COUNTED}
                         for owner, here in sorted(taken.items(), key=lambda item: str(item[0]))})


def count_placed(module, family):
    """What a netlist that nextpnr has placed takes, by the names of RESOURCES that it says better
    than the netlist before: it adds cells to carry chains and for constants."""
    left_out = (family.passing,) if family.passing else ()
    used = sum(family.placed.cells.get(cell["type"], 0) for name, cell in module["cells"].items()
               if not name.startswith(f"{HARNESS}.") and not name.endswith(left_out))
    return {family.placed.resource: used} if used else {}


def _is_output(cell, port):
    """Whether it is an output; of cells that Yosys does not know, such as memories that are only
    counted, no port is known to be one."""
    return cell.get("port_directions", {}).get(port) == "output"


def readers(module):
    """(Cell, port) of all that read a bit, by bit; (None, port) for an output of the design."""
    read_by = defaultdict(list)
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if not _is_output(cell, port):
                for bit in bits:
                    read_by[bit].append((name, port))
    for name, port in module["ports"].items():
        if port["direction"] == "output":
            for bit in port["bits"]:
                read_by[bit].append((None, name))
    return read_by


def _reader_counts(module):
    """How many read each bit that is not a constant."""
    return Counter({bit: len(by) for bit, by in readers(module).items() if isinstance(bit, int)})


def _passed_on(module, family):
    """Names of carry cells, each as often as a LUT has to pass a bit on to it."""
    if family.fed_by_luts is None:
        return
    cell_type, port = family.fed_by_luts
    of_luts = {bit for cell in module["cells"].values()
               if (cost := family.cost(cell["type"])) is not None and cost.lut
               for name, bits in cell["connections"].items()
               if _is_output(cell, name) for bit in bits}
    for name, cell in module["cells"].items():
        if cell["type"] == cell_type:
            yield from (name for bit in cell["connections"][port]
                        if isinstance(bit, int) and bit not in of_luts)


def _feeds(module, carry_cell):
    """Names of cells of carry chains before or behind which nextpnr adds one."""
    cells = [(name, cell["connections"]) for name, cell in module["cells"].items()
             if cell["type"] == carry_cell]
    carries, reads = {NOTHING, *(bits["COUT"][0] for _, bits in cells)}, _reader_counts(module)
    reads.subtract(bits["CIN"][0] for _, bits in cells)
    for name, bits in cells:
        if bits["CIN"][0] not in carries:  # a constant, or what logic gives
            yield name
        if reads[bits["COUT"][0]] > 0:
            yield name


def _logic_cells(module):
    """Of an iCE40 netlist: carries that share no cell with a LUT, and how many flip-flops share
    one, as nextpnr packs them."""
    luts, flops, carries, reads = {}, [], [], _reader_counts(module)
    for name, cell in module["cells"].items():
        cell_type, bits = cell["type"], cell["connections"]
        if cell_type == "SB_LUT4":
            luts[bits["O"][0]] = bits
        elif cell_type.startswith("SB_DFF"):
            flops.append(bits)
        elif cell_type == "SB_CARRY":
            carries.append((name, bits))
    packed = sum(bits["D"][0] in luts and reads[bits["D"][0]] == 1 for bits in flops)
    shared = {(bits["I1"][0], bits["I2"][0], bits["I3"][0]) for bits in luts.values()}
    alone = [name for name, bits in carries
             if (bits["I0"][0], bits["I1"][0], bits["CI"][0]) not in shared]
    return alone, packed
