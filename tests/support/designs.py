"""Small designs on disk, for tests that simulate them or a slightly different model."""

import dataclasses
import shutil
from functools import cache

import numpy as np

import draw
from benn_fpga.hw import emit
from benn_fpga.hw.assembly import component
from benn_fpga.plan import folder
from benn_fpga.plan.manifest import describe
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan
from benn_fpga.spec import Fold, Folding

__all__ = ["ALL", "CASES", "case", "changed", "flip", "generated", "make", "planned_unit",
           "with_member"]

# Rounds and engines, folded layers, soft vote; partial last beat, bit planes, hard vote; frames of
# one beat and everything unrolled; a residual, in rounds; every other way to read pixels; several
# taps in a word. The first two reject some answers: by a margin that many have, and ties.
CASES = {
    "folded": ({"members": 4, "vote_weights": [1, 2, -1, 3], "encoder": "thermometer",
                "reject": 9},
               Folding((Fold(3, 24), Fold(2, 3), Fold(1, 2)), 2, 32)),
    "planes": ({"members": 3, "shape": (7,), "encoder": "planes", "raw_bits": 4, "hidden": (6,),
                "weight_bits": 2, "activation_bits": 2, "vote": "hard", "vote_weights": [2, 1, 1],
                "reject": 1},
               Folding((Fold(2, 7), Fold(5, 2)), 1, 24)),
    "unrolled": ({"members": 2, "shape": (5,), "hidden": (4,), "classes": 3, "per_value": True},
                 Folding((Fold(4, 5), Fold(3, 4)), 2, 64)),
    "residual": draw.residual(members=2),
    "pools": draw.pools(),
    "registers": draw.registers(),
}
# With those that differ before the first unit alone, and that Verilator does not compile: a
# width converter before a window of registers, and before each first layer that keeps no pixels;
# and block RAMs of weights that are far away.
ALL = {
    **CASES,
    "direct": draw.registers(1),
    "relayed": draw.relayed(),
    **{first: draw.straight(first) for first in draw.STRAIGHT},
}


def case(name):
    made, folding = ALL[name]
    if isinstance(made, dict):
        made = draw.random_model(np.random.default_rng(3), **made)
    return made, folding


@cache
def generated(name):
    """Verilog and manifest of a case, made once."""
    return emit.generate(*case(name))


def make(directory, model, folding):
    return folder.write(directory, *emit.generate(model, folding), model)


def planned_unit(made, n, *, engines, rounds):
    """Layer ``n`` of a design, its network drawn anew for so many engines and rounds: the unit of
    the plan, its component, and per engine and round what the layer stores. Words are there when
    they are offered."""
    network, folding = made
    model = draw.random_ensemble(np.random.default_rng(n), network.encoder, network.layers,
                                 members=engines * rounds, vote=network.vote)
    folding = dataclasses.replace(folding, parallel=engines)
    contents = [Contents(model, folding, engine) for engine in range(engines)]
    unit = plan(model, folding).units[n]
    unit = dataclasses.replace(unit, i=dataclasses.replace(unit.i, ahead=0))
    return unit, component(unit, contents), [[member.layers[n] for member in each.members]
                                             for each in contents]


def flip(path, frame):
    """Flip bit 0 of an answer in the file of a test bench; the class that it had."""
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"// frame {frame}:")) + 1
    lines[at] = lines[at][:-1] + f"{int(lines[at][-1], 16) ^ 1:x}"
    path.write_text("\n".join(lines) + "\n")
    return int(lines[at - 1].split("class ")[1].split(",")[0])


def changed(member, n, name, index, change):
    """The layers of ``member``, one number of array ``name`` of layer ``n`` changed."""
    layers = [dict(arrays) for arrays in member.layers]
    layers[n][name] = layers[n][name].copy()
    layers[n][name][index] = change(layers[n][name][index])
    return tuple(layers)


def with_member(made, directory, k, **changes):
    """A copy of a built design whose model has member ``k`` changed, but whose Verilog has not."""
    shutil.copytree(made.directory, directory)
    members = list(made.model.members)
    members[k] = dataclasses.replace(members[k], **changes)
    model = dataclasses.replace(made.model, members=tuple(members))
    manifest = {**made.manifest, **describe(model, made.folding)}
    return folder.write(directory, made.verilog.read_text(), manifest, model, force=True)
