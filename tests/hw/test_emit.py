import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import designs
import draw
import verilog
from benn_fpga import presets
from benn_fpga.hw import emit
from benn_fpga.plan import folding
from benn_fpga.plan.manifest import TOP
from benn_fpga.plan.plan import plan
from benn_fpga.spec import Fold, Folding

GENERATE = """
import sys
from benn_fpga import modelfile
from benn_fpga.hw import emit
from benn_fpga.spec import Fold, Folding
model = modelfile.load(sys.argv[1])
print(emit.generate(model, Folding((Fold(4, 8), Fold(2, 3), Fold(5, 4)), 1, 16)))
"""


def small():
    return draw.random_model(np.random.default_rng(0))


def test_same_bytes_in_any_process(tmp_path):
    small().save(tmp_path / "m.benn")
    texts = set()
    for seed in ("1", "2"):
        run = subprocess.run([sys.executable, "-c", GENERATE, tmp_path / "m.benn"], check=True,
                             env={**os.environ, "PYTHONHASHSEED": seed}, cwd=tmp_path,
                             capture_output=True, text=True)
        texts.add(run.stdout)
    assert len(texts) == 1


def test_verilog_names_no_path():
    text, _ = emit.generate(small(), Folding((Fold(4, 8), Fold(2, 3), Fold(5, 4)), 1, 16))
    assert "(* src" not in text
    assert os.getcwd() not in text


def test_manifest():
    model = small()
    shape = Folding((Fold(4, 8), Fold(2, 3), Fold(5, 4)), 1, 16)
    _, manifest = emit.generate(model, shape)
    assert json.loads(json.dumps(manifest)) == manifest
    assert Folding.from_json(manifest["folding"]) == shape
    assert manifest["model_sha256"] == model.digest()
    assert manifest["xnor_lanes"] == 4 * 8 + 2 * 3 + 5 * 4
    assert manifest["ports"]["s_axis_tdata"]["width"] == 16
    assert [tap["path"] for tap in manifest["taps"]] == [f"member0.layer{n}" for n in range(3)]


def test_taps_exist():
    text, manifest = emit.generate(small(), folding.fold_for_lanes(small(), 100))
    for tap in manifest["taps"]:
        assert f"module \\{TOP}.{tap['path']} " in text


# Counters of one step everywhere: SF, NF, T, beats of frame and answer, beats of classes.
EDGES = {
    "unrolled": ({}, Folding((Fold(12, 16), Fold(8, 12), Fold(5, 8)), 2, 512)),
    "unrolled, in rounds": ({}, Folding((Fold(12, 16), Fold(8, 12), Fold(5, 8)), 1, 512)),
    "hard vote at once": ({"vote": "hard"}, Folding((Fold(12, 4), Fold(4, 12), Fold(5, 8)), 1, 64)),
    "SF 1": ({}, Folding((Fold(1, 16), Fold(1, 12), Fold(1, 8)), 1, 8)),
    "NF 1": ({}, Folding((Fold(12, 1), Fold(8, 1), Fold(5, 1)), 2, 8)),
    "one class per beat": ({"vote": "hard"}, Folding((Fold(2, 2), Fold(2, 2), Fold(1, 2)), 2, 32)),
    "thresholds of one beat": ({"per_value": True},
                               Folding((Fold(2, 2), Fold(2, 2), Fold(1, 2)), 1, 128)),
    "thresholds of one value": ({"per_value": True, "encoder": "thermometer"},
                                Folding((Fold(2, 2), Fold(2, 2), Fold(5, 8)), 2, 8)),
    "smallest": ({"members": 1, "shape": (1,), "hidden": (1, 1), "classes": 2, "raw_bits": 1},
                 Folding((Fold(1, 1), Fold(1, 1), Fold(2, 1)), 1, 256)),
}


@pytest.mark.parametrize("case", EDGES)
def test_verilog_is_plain(case):
    """No vectors without bits, and nothing but Verilog: a .v file is not read as SystemVerilog."""
    options, shape = EDGES[case]
    text, _ = emit.generate(draw.random_model(np.random.default_rng(0), **options), shape)
    assert "[-1:0]" not in text
    assert not re.search(r"\bassert\b|\balways_\w+|\$write|\$display", text)


@pytest.mark.parametrize("name", designs.ALL)
def test_nothing_waits_for_an_event(name):
    """Logic in ``always @*`` has not run before one of its inputs changes; the totals are wrong in
    a simulator where reset is high from the beginning. And Icarus runs no function with such a name
    as ``\\$1``."""
    text, _ = designs.generated(name)
    heads = re.findall(r"^ *always *(.*?)(?: begin)?$", text, re.MULTILINE)
    assert len(heads) == text.count("always")
    assert set(heads) == {"@(posedge clk)"}
    assert not re.search(r"^ *function .*\\", text, re.MULTILINE)


def test_no_comparison_that_can_not_fail():
    """Thresholds of 0 that are constants: Verilator refuses ``x >= 0`` of an unsigned x."""
    model = small()
    layers = [{key: array if key == "weights" else np.full_like(array, -layer.max_sum)
               for key, array in arrays.items()}
              for layer, arrays in zip(model.layers, model.members[0].layers, strict=True)]
    member = replace(model.members[0], layers=tuple(layers))
    encoder = replace(model.encoder, thresholds=np.zeros((1, 1), np.int32))
    text, _ = emit.generate(replace(model, encoder=encoder, members=(member,)),
                            Folding((Fold(12, 16), Fold(8, 12), Fold(5, 8)), 1, 512))
    assert not re.search(r">= \d+'h0+\b", text)


def test_memories_are_filled_in_pieces():
    """Yosys needs minutes for one block of ten thousands of statements."""
    model = draw.random_model(np.random.default_rng(0), members=1, shape=(600,), hidden=(4,))
    text, _ = emit.generate(model, Folding((Fold(1, 1), Fold(1, 1)), 1, 8))
    blocks = re.findall(r"^  initial begin\n((?:    .*\n)+)  end\n", text, re.MULTILINE)
    assert text.count("initial begin") == len(blocks)
    assert max(block.count("\n") for block in blocks) == 256
    places = re.findall(r"^    memory\[(\d+)\] = ", "".join(blocks), re.MULTILINE)
    sizes = (2400, 4, 20, 5, 1200, 8)  # weights and tables, two frames of inputs
    assert sorted(map(int, places)) == sorted(n for size in sizes for n in range(size))


def planned_memories(model, shape):
    """(Words, bits) of every memory of a plan that is one, by its path; a single word is none."""
    for node in plan(model, shape).nodes:
        parents = [f"member{n}." for n in range(node.engines)] or [""]
        for name, memory in node.memories.items():
            inner = {"memory": "memory", "partials": "memory", "errors": "errors.storage",
                     "partial": "partial"}.get(name)
            copies = range(memory.copies) if memory.copies > 1 else [""]
            for parent, copy in product(parents, copies):
                if memory.words > 1:
                    yield (f"{parent}{node.name}.{inner or f'{name}{copy}.memory'}",
                           (memory.words, memory.bits))


@pytest.mark.parametrize("name", ["residual", "pools", "registers", "tiled", "dense"])
def test_the_plan_says_what_memories_there_are(name):
    assert verilog.memories(text_of(name)) == dict(planned_memories(*parts(name)))


# A refactor leaves these as they are; a change of the design or of Amaranth updates them.
PARTS = {
    "dense": "3b8ebaca34cec8a8dfe13f981ebcdb692b0e59db125db42daea88dbfbbd79091",
    "residual": "45f8ed342718e58d684df7426088acd711088631029c616ee306e9e68cfef5ac",
    "pools": "d6cbc45dc3673d7d2064633f9f835ac4914f9a3581d31706d98f598899049d59",
    "registers": "700e370a855c01b7f02e80e514d78591417ae89cfd189eaa05e559679cbe7baa",
    "skid": "5e294480f563aeb60263d12fd2bbc398ecb3afc25727cefa030f599380ae7024",
    "tiled": "2077d1f15fbe2ad988f81686db9ffb317a206659dddd217a36121cae8b33282f",
}
HASHES = {
    "tfc": "be9a2009dcfaddfd54b5b0ed48423d65358d6458f3d5a7cde5249a08823abeb7",
    "sfc": "3da79469ab90aa4acc4926485aa6ff8b2f8ded57996100af3bd1e71a7a7522ac",
}


def all_parts():
    """Thresholds in a memory, hard votes, rounds that are added up: what presets do not have."""
    model = draw.random_model(np.random.default_rng(0), members=4, hidden=(12,), vote="hard",
                              encoder="thermometer", per_value=True, vote_weights=[1, 2, 3, -1])
    return model, Folding((Fold(3, 8), Fold(1, 4)), 2, 24)


def parts(name):
    """Model and folding of one of PARTS."""
    if name in ("dense", "residual"):
        return all_parts() if name == "dense" else draw.residual()
    return designs.case(name)


@cache
def text_of(name):
    """The Verilog of one of PARTS, made once."""
    return (emit.generate(*parts(name)) if name in ("dense", "residual")
            else designs.generated(name))[0]


@pytest.mark.parametrize("name", PARTS)
def test_verilog_with_all_parts(name):
    assert hashlib.sha256(text_of(name).encode()).hexdigest() == PARTS[name]


@pytest.mark.parametrize("net", HASHES)
def test_verilog_of_preset(net):
    hidden = presets.MLPS[net]
    model = draw.random_model(np.random.default_rng(0), shape=(28, 28, 1), hidden=hidden,
                              classes=10, members=2, vote_weights=[1, 1])
    text, _ = emit.generate(model, folding.fold_for_lanes(model, 512))
    assert hashlib.sha256(text.encode()).hexdigest() == HASHES[net]
