"""What designs take of FPGAs, and how fast they are there: what `make bench-hw` prints.

    python examples/silicon.py                   all of them, in about an hour
    python examples/silicon.py small unit-ecp5   those

Weights are random, which costs more than trained ones. What was synthesised before is taken from
build/silicon; every case that was run is in docs/silicon.json and in a table of docs/measured.md.
Exits with 1 if one misses its target.
"""

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from bench import random_model
from networks import FINN

import benn_fpga
from benn_fpga import version
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.errors import BennError
from benn_fpga.hw import emit
from benn_fpga.hw.assembly import component
from benn_fpga.output import write_atomically
from benn_fpga.plan.folding import fold_for_lanes
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan
from benn_fpga.progress import bar
from benn_fpga.spec import Fold, Folding
from benn_fpga.synthesis import flow

FOLDER = Path("build/silicon")
RECORD = Path("docs/silicon.json")
PAGE = Path("docs/measured.md")
MARKS = "<!-- examples/silicon.py writes this -->\n", "<!-- until here -->\n"


@dataclass(frozen=True)
class Case:
    """A design on a device.

    Members
    -------
    text : what it is
    device : of benn_fpga.devices
    make : returns a model and a folding
    clock : MHz that placement aims at; None if it is not placed
    most, least : targets, by the name of a figure
    most_times : how many times the figure of another case, by the name of a figure
    one_node : whether the critical path should be inside one node
    unit : the unit of which layer is synthesised, without the rest; None for the whole design
    """

    text: str
    device: str
    make: object
    clock: float | None = None
    most: dict = field(default_factory=dict)
    least: dict = field(default_factory=dict)
    most_times: dict = field(default_factory=dict)
    one_node: bool = False
    unit: int | None = None


def unit():
    model = random_model("mlp:256", 1, (32, 32, 1))
    return model, Folding((Fold(16, 64), Fold(1, 1)), 1, 64)


def unrolled(members):
    """A layer whose weights are constants, all members side by side."""
    def make():
        model = random_model("mlp:64", members, (8, 12, 1))
        return model, Folding((Fold(64, 96), Fold(10, 64)), members, 64)
    return make


def digits():
    """An ensemble that answers once per cycle: a frame is a beat, and so is an answer."""
    model = random_model("mlp:32", 3, (8, 8, 1))
    return model, Folding((Fold(32, 64), Fold(10, 32)), 3, 512)


def small():
    model = random_model("mlp:32", 3, (8, 8, 1))
    return model, fold_for_lanes(model, 74, 1, 8)


def dense(net, members):
    def make():
        model = random_model(net, members)
        return model, fold_for_lanes(model)
    return make


def cnv():
    model = random_model("cnv", 1, (32, 32, 3), "planes")
    return model, Folding(tuple(Fold(*each) for each in FINN), 1, 64)


def in_turn(members):
    """Members of `tfc` one after another, in the folding of a single one."""
    def make():
        model = random_model("tfc", members)
        one = fold_for_lanes(replace(model, members=model.members[:1]))
        return model, replace(one, parallel=1)
    return make


CASES = {
    "unit-ecp5": Case("unit 64 x 16, without relays", "ecp5-85k", unit, 200,
                      {"lut_per_lane": 3.1, "ff_per_lane": 2.3}, {"fmax_mhz": 180}, unit=0),
    "unit-25k": Case("unit 64 x 16", "ecp5-25k", unit, 200, unit=0),
    "unit-xc7": Case("unit 64 x 16", "xc7", unit, None, {"lut_per_lane": 2.2}, unit=0),
    "unrolled-1": Case("unit 96 x 64, unrolled, K = 1", "xc7", unrolled(1), None,
                       {"lut_per_lane": 0.55}, unit=0),
    "unrolled-8": Case("unit 96 x 64, unrolled, K = 8", "xc7", unrolled(8), None,
                       {"lut_per_lane": 0.5}, unit=0),
    "unrolled-ecp5": Case("unit 96 x 64, unrolled, K = 1", "ecp5-85k", unrolled(1), unit=0),
    "unrolled-lut6": Case("unit 96 x 64, unrolled, K = 1", "generic-lut6", unrolled(1), unit=0),
    "digits-unrolled": Case("`mlp:32` on 8 x 8, K = 3, unrolled, 512-bit bus", "xc7", digits, None,
                            {"cycles": 1}),
    "small": Case("`mlp:32` on 8 x 8, K = 3, M = 1, 8-bit bus", "ice40-up5k", small, 48,
                  {"logic_cells": 1200}, {"fmax_mhz": 48}),
    "sfc": Case("`sfc`, K = 4", "ecp5-85k", dense("sfc", 4), 140,
                {"lut_per_lane": 3.8, "ff_per_lane": 3.5, "cycles": 448}, {"fmax_mhz": 140},
                one_node=True),
    "tfc": Case("`tfc`, K = 8", "ecp5-85k", dense("tfc", 8), 140),
    "cnv": Case("`cnv`, K = 1, FINN's folding", "ecp5-85k", cnv, 100),
    "sfc-xc7": Case("`sfc`, K = 4", "xc7", dense("sfc", 4)),
    "cnv-xc7": Case("`cnv`, K = 1, FINN's folding", "xc7", cnv),
    "tfc-1": Case("`tfc`, K = 1", "ecp5-25k", in_turn(1)),
    "tfc-16": Case("`tfc`, K = 16, M = 1, as folded as K = 1", "ecp5-25k", in_turn(16),
                   most_times={"lut": ("tfc-1", 1.3)}),
}


def whole(name, case):
    """The design of a case."""
    model, folding = case.make()
    return benn_fpga.generate(model, FOLDER / name, folding=folding, device=case.device, force=True,
                              frames=0)


class Alone(wiring.Component):
    """A unit with ports that are signals, each with its width."""

    def __init__(self, name, unit):
        self._name = name
        self._unit = unit
        super().__init__({"x": In(len(unit.i.payload)), "x_valid": In(1),
                          "y": Out(len(unit.o.payload)), "y_valid": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules[self._name] = unit = self._unit
        m.d.comb += [
            unit.i.payload.eq(self.x),
            unit.i.valid.eq(self.x_valid),
            self.y.eq(unit.o.payload),
            self.y_valid.eq(unit.o.valid),
        ]
        return m


def alone(name, case):
    """The unit of a layer, as if it were a design."""
    model, folding = case.make()
    node = plan(model, folding).units[case.unit]
    contents = [Contents(model, folding, n) for n in range(folding.parallel)]
    text = emit.verilog(Alone(node.name, component(node, contents)))
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    path = FOLDER / name / "benn_top.v"
    path.write_text(text)
    return SimpleNamespace(directory=FOLDER / name, verilog=path, manifest={
        "verilog_sha256": hashlib.sha256(text.encode()).hexdigest(), "xnor_lanes": node.xnor_lanes,
        "predicted": {"cycles_per_frame": node.stage.reads},
        "nodes": [{"name": node.name, "engines": folding.parallel, "memories": {
            key: {"words": memory.words} for key, memory in node.memories.items()}}]})


def run(name, known):
    """Figures of a case; those of others are ``known``."""
    case = CASES[name]
    design = whole(name, case) if case.unit is None else alone(name, case)
    found = flow.run(design, case.device, pnr=case.clock is not None, clock=case.clock, bar=bar)
    figures = {key: getattr(found, key) for key in (
        "device", "xnor_lanes", "lut", "ff", "bram", "logic_cells", "lut_per_lane", "ff_per_lane",
        "fmax_mhz", "critical_path", "steps", "tools")}
    figures["cycles"] = design.manifest["predicted"]["cycles_per_frame"]
    missed = {key: [figures[key], limit] for limits, sign in ((case.most, 1), (case.least, -1))
              for key, limit in limits.items() if sign * figures[key] > sign * limit}
    for key, (other, times) in case.most_times.items():
        if other not in known:
            raise BennError(f"{name} is compared with {other}; run that first")
        if figures[key] > times * known[other][key]:
            missed[f"{key} of {other}"] = [figures[key] / known[other][key], times]
    if case.one_node:
        nodes = {segment["node"].partition(".")[0]
                 for segment in figures["critical_path"]["segments"]}
        if len(nodes) > 1:
            missed["nodes of the critical path"] = [len(nodes), 1]
    return {"text": case.text, "versions": version.describe(), "clock": case.clock, **figures,
            "missed": missed}


def row(name, found):
    path = found["critical_path"]
    return (name, found["text"], found["device"], f"{found['xnor_lanes']:,}",
            f"{found['cycles']:,}", f"{found['logic_cells'] or found['lut']:,}",
            f"{found['lut_per_lane']:.2f}", f"{found['ff']:,}", f"{found['ff_per_lane']:.2f}",
            found["bram"], found["fmax_mhz"] or "",
            f"{path['from']} to {path['to']}" if path else "",
            "; ".join(f"{key} {value:g}, not {limit:g}"
                      for key, (value, limit) in found["missed"].items()) or "yes")


COLUMNS = ("case", "design", "device", ">lanes", ">cycles", ">LUTs or logic cells", ">per lane",
           ">flip-flops", ">per lane", ">block RAMs", ">MHz", "critical path", "targets met")


def page(known):
    """The table of docs/measured.md, and which targets are missed."""
    lines = ["| NAME | design | device | lanes | cycles | LUTs | per lane | flip-flops | per lane "
             "| block RAMs | MHz | critical path |", "|" + "---|" * 12]
    for name, each in known.items():
        cells = f" ({each['logic_cells']:,} logic cells)" if each["logic_cells"] else ""
        path = each["critical_path"]
        ends = f"{path['from']} to {path['to']}" if path else ""
        lines.append(
            f"| `{name}` | {each['text']} | `{each['device']}` | {each['xnor_lanes']:,} "
            f"| {each['cycles']:,} | {each['lut']:,}{cells} | {each['lut_per_lane']:.2f} "
            f"| {each['ff']:,} | {each['ff_per_lane']:.2f} | {each['bram']} "
            f"| {each['fmax_mhz'] or ''} | {ends} |")
    missed = [f"`{name}`: {key} {value:g}, not {limit:g}" for name, each in known.items()
              for key, (value, limit) in each["missed"].items()]
    return "\n".join([*lines, "", f"Missed: {'; '.join(missed)}." if missed else
                      "No target is missed.", _commits(known), ""])


def _commits(known):
    """Of which commits the rows are."""
    by_commit = {}
    for name, each in known.items():
        commit = (each.get("versions") or {}).get("commit") or "no commit"
        by_commit.setdefault(commit, []).append(f"`{name}`")
    if len(by_commit) == 1:
        return f"All rows are of commit {next(iter(by_commit))}."
    listed = "; ".join(f"{commit}: {', '.join(names)}" for commit, names in by_commit.items())
    return f"Rows by commit: {listed}."


def write(known):
    """Write the record, and the table of it into the page."""
    text = json.dumps(known, indent=1)
    write_atomically(RECORD, text.encode() + b"\n", force=True)
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    write_atomically(PAGE, "".join((before, MARKS[0], page(known), MARKS[1], after)).encode(),
                     force=True)


def main():
    names = sys.argv[1:] or list(CASES)
    if unknown := set(names) - set(CASES):
        raise BennError(f"no case {sorted(unknown)[0]!r}; there are {', '.join(CASES)}")
    if not PAGE.is_file():
        raise BennError(f"there is no {PAGE} here; run it in the root of the repository")
    known = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    for name in names:
        known[name] = run(name, known)
        write({key: known[key] for key in CASES if key in known})
    console.show([console.table("Silicon", COLUMNS, [row(name, known[name]) for name in names])])
    return any(known[name]["missed"] for name in names)


if __name__ == "__main__":
    sys.exit(guard("silicon", main))
