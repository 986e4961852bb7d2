"""A design without a memory of weights, in Verilator."""

import numpy as np
import pytest

import designs
import draw
from benn_fpga.sim import harness

pytestmark = pytest.mark.sim


def test_an_answer_in_every_cycle(tmp_path):
    """Frames of 64 bytes, as those of digits, and answers of 48 are beats of 512 bits."""
    rng = np.random.default_rng(0)
    model = draw.random_model(rng, members=3, shape=(8, 8, 1), hidden=(16,), classes=10)
    design = designs.make(tmp_path / "d", model, draw.unrolled(model, bus=512))
    got = harness.simulate(design, draw.random_frames(rng, model, 200))
    got.check()
    assert got.cycles_per_frame == got.predicted_cycles_per_frame == 1
