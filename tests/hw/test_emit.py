import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import draw
from benn_fpga import design, folding, presets
from benn_fpga.hw import emit
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
        assert f"module \\{design.TOP}.{tap['path']} " in text


# A refactor leaves these as they are; a change of the design or of Amaranth updates them.
HASHES = {
    "tfc": "24b8c6f1fba409df543a4e57e369b97ffc069dcead1222b2aebfd1fb6382f065",
    "sfc": "23d5e75f7598326cbb418bffd696e27983d6cc0fce353c55516aa4191f90c8cd",
}


@pytest.mark.parametrize("net", HASHES)
def test_verilog_of_preset(net):
    hidden = presets.hidden(net)
    model = draw.random_model(np.random.default_rng(0), shape=(28, 28, 1), hidden=hidden,
                              classes=10, members=2, vote_weights=[1, 1])
    text, _ = emit.generate(model, folding.fold_for_lanes(model, 512))
    assert hashlib.sha256(text.encode()).hexdigest() == HASHES[net]
