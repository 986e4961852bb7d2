"""Drawn models and foldings through Verilator; tests/hw draws many more in Amaranth's simulator."""

import numpy as np
import pytest

import designs
import draw
from benn_fpga.sim import harness
from benn_fpga.spec import ENCODERS, VOTES

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("seed", range(3))
def test_drawn_design(tmp_path, seed):
    rng = np.random.default_rng(seed)
    model = draw.random_model(
        rng, members=int(rng.integers(1, 4)), shape=(int(rng.integers(1, 20)),),
        hidden=tuple(rng.integers(1, 10, int(rng.integers(0, 3))).tolist()),
        classes=int(rng.integers(2, 7)), weight_bits=int(rng.integers(1, 4)),
        activation_bits=int(rng.integers(1, 4)), encoder=ENCODERS[seed % 3],
        raw_bits=int(rng.integers(1, 9)), vote=VOTES[seed % 2], per_value=bool(rng.integers(2)))
    design = designs.make(tmp_path / "d", model, draw.random_folding(rng, model))
    harness.simulate(design, draw.random_frames(rng, model, 100)).check()
