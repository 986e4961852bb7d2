"""The examples, when they can not run: one line, exit code 2."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import draw

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUN = ("import runpy, sys\n{before}\nsys.argv = sys.argv[1:]\n"
       "runpy.run_path(sys.argv[0], run_name='__main__')")
NO_SKLEARN = "sys.modules['sklearn.datasets'] = None"
NO_LUCK = ("import benn_fpga\nfrom benn_fpga.sw import bench\n"
           "def fail(): raise benn_fpga.BennError('no luck')\nbench.together = fail")


def complaint(folder, before, name, *argv):
    done = subprocess.run([sys.executable, "-c", RUN.format(before=before), EXAMPLES / name, *argv],
                          cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    return done.stderr


@pytest.mark.parametrize(("name", "before", "words"), [
    ("demo.py", NO_SKLEARN, "demo: error: scikit-learn is not installed"),
    ("levels.py", NO_SKLEARN, "levels: error: scikit-learn is not installed"),
    ("bench.py", NO_LUCK, "bench: error: no luck"),
])
def test_what_is_missing(tmp_path, name, before, words):
    assert complaint(tmp_path, before, name).startswith(words)


def test_foldings_of_no_file(tmp_path):
    assert complaint(tmp_path, "", "foldings.py", "no.benn").startswith(
        "foldings: error: can not read 'no.benn'")


@pytest.mark.parametrize("hidden", [(), (64,), (64, 64, 63)])
def test_foldings_of_another_network(tmp_path, hidden):
    draw.random_model(np.random.default_rng(0), members=8, shape=(784,), hidden=hidden,
                      classes=10).save(tmp_path / "m.benn")
    assert complaint(tmp_path, "", "foldings.py", "m.benn").startswith(
        "foldings: error: m.benn is neither a tfc of 8 members nor an sfc of 2")
