"""docs/your-own-data.md: all that it tells the reader to run, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "your-own-data.md"


def run(language, text, folder):
    """What a block prints."""
    command = [sys.executable, "-c", text] if language == "python" else ["sh", "-ec", text]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.sim
@pytest.mark.train
def test_the_walk_through(tmp_path):
    blocks = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    printed = [run(*block, tmp_path) for block in blocks]
    assert len(blocks) == 9
    *_, predicted, answered, simulated, bench, _, table = printed
    assert {"good", "idle", "worn"} & set(re.findall(r"\w+", predicted))
    assert "('good', 'idle', 'worn')" in answered
    assert re.search(r"mismatches +0 +0", simulated)
    assert "PASS" in bench
    assert "the label is column state, with 3 classes; rows: 54 for the test" in table
    assert "54 test frames of machines.csv" in table
