import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import designs
import draw
import verilog
from benn_fpga import presets
from benn_fpga.hw import emit
from benn_fpga.layers import Conv, Dense
from benn_fpga.plan import folding, nodes
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
    assert Folding.from_json(manifest["folding"]) == shape.filled()
    assert manifest["model_sha256"] == model.digest()
    assert manifest["xnor_lanes"] == 4 * 8 + 2 * 3 + 5 * 4
    assert manifest["ports"]["s_axis_tdata"]["width"] == 16
    assert [tap["path"] for tap in manifest["taps"]] == [f"layer{n}" for n in range(3)]
    assert [tap["engines"] for tap in manifest["taps"]] == [1] * 3


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
    shape = Folding((Fold(1, 1), Fold(1, 1)), 1, 8)
    text, _ = emit.generate(model, shape)
    blocks = re.findall(r"^  initial begin\n((?:    .*\n)+)  end\n", text, re.MULTILINE)
    assert text.count("initial begin") == len(blocks)
    assert max(block.count("\n") for block in blocks) == 256
    addresses = re.findall(r"^    memory\[(\d+)\] = ", "".join(blocks), re.MULTILINE)
    design = plan(model, shape)
    queues = [memory.words for node in (design.guard, *design.all(nodes.Queue))
              for memory in node.memories.values()]
    sizes = (2400, 4, 20, 5, 1200, 8, *queues)  # weights and tables, two frames of inputs
    assert sorted(map(int, addresses)) == sorted(n for size in sizes for n in range(size))


def planned_memories(model, shape):
    """(Words, bits) of every memory of a plan that is one, by its path; a single word is none, but
    in a queue."""
    inner = {"memory": "memory", "partials": "memory", "errors": "errors.memory",
             "partial": "partial"}
    for node in plan(model, shape).nodes:
        has_engines = isinstance(node, nodes.Unit) and isinstance(node.stage.layer, (Conv, Dense))
        for name, memory in node.memories.items():
            copies = range(memory.copies)
            paths = ([f"engine{n}.{name}.memory" for n in copies] if has_engines else
                     [f"{name}{n}.memory" for n in copies] if memory.copies > 1 else
                     [inner.get(name, f"{name}.memory")])
            for path in paths if memory.words > 1 or name == "memory" else ():
                yield f"{node.name}.{path}", (memory.words, memory.bits)


@pytest.mark.parametrize("name", ["residual", "pools", "registers", "tiled", "dense"])
def test_the_plan_says_what_memories_there_are(name):
    assert verilog.memories(generated(name)) == dict(planned_memories(*parts(name)))


@pytest.mark.parametrize("name", ["residual", "pools"])
def test_engines_share_all_but_weights(name):
    """Where three engines store what one does, words are as many and three times as wide."""
    model, shape = parts(name)
    one, three = (verilog.memories(emit.generate(
        replace(model, members=model.members[:1] * n), replace(shape, parallel=n))[0])
        for n in (1, 3))
    shared = r"guard|ring0|lines0|sliding0|voter|answers|totals"
    of_one = {path for path in one if re.match(shared, path)}
    for path, (words, width) in one.items():
        if re.search("engine0", path):
            assert [three[path.replace("engine0", f"engine{n}")] for n in range(3)] \
                == [(words, width)] * 3
        elif path not in of_one and not re.search(r"table\d", path):
            assert three[path] == (words, 3 * width)


# A refactor leaves these as they are; a change of the design or of Amaranth updates them.
PARTS = {
    "dense": "d0ed96d0402e6ae9efa58f93c7069113a058174fa98cc7850f61986e7b753973",
    "residual": "d0a70bd78ab53c5f70f7dc8a052726f36866cd2d50f9b0e8e557e5085bc7c797",
    "pools": "80a63d805f850ae354850f99b6762b90b14bea78919fac95a68ee4be05d232a0",
    "registers": "0c5bc0685e369ddabd7cecea2dba5ca7b565d5609af4ea34864501c810f8ac63",
    "direct": "4b2095d847736afcd761cead9a21f03c0355c00c964781abebcf2517f2d6de42",
    "tiled": "43c282a9223aab444c9b74b423dfe6c77e54a79c34cc7666f77932642e0e3244",
    "unrolled": "7bf4caf435e68a14f38e4314fa7ba5f7908823f5d1141a3acaade26d4fbd9ee6",
}
HASHES = {
    "tfc": "2590aec26942ad389cdfce3303f0dcf1c400e932c07c68cae68c615b3b0c4a4e",
    "sfc": "810f3357ef3d2387d18e2e1f7b80b0b5a66334b6fe9740fb6ca656632addcda1",
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
def generated(name):
    """Verilog of one of PARTS, made once."""
    return (emit.generate(*parts(name)) if name in ("dense", "residual") else
            designs.generated(name))[0]


@pytest.mark.parametrize("name", PARTS)
def test_verilog_with_all_parts(name):
    assert hashlib.sha256(generated(name).encode()).hexdigest() == PARTS[name]


@pytest.mark.parametrize("net", HASHES)
def test_verilog_of_preset(net):
    hidden = presets.MLPS[net]
    model = draw.random_model(np.random.default_rng(0), shape=(28, 28, 1), hidden=hidden,
                              classes=10, members=2, vote_weights=[1, 1])
    text, _ = emit.generate(model, folding.fold_for_lanes(model, 512))
    assert hashlib.sha256(text.encode()).hexdigest() == HASHES[net]
