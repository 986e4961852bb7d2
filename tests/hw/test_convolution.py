"""Convolutional designs in Amaranth's simulator against the golden model and the cycle model."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import draw
import rtl
from benn_fpga import golden
from benn_fpga.schedule import schedule

WAITS = list(product([0, 3], [0, 3]))


@settings(max_examples=25)
@given(st.data())
def test_any_ensemble(data):
    model = data.draw(draw.conv_models())
    folding = data.draw(draw.foldings(model))
    idle, stall = data.draw(st.sampled_from(WAITS))
    frames = draw.random_frames(np.random.default_rng(0), model, 4)
    got = rtl.answers(model, folding, frames, idle=idle, stall=stall)
    assert got == golden.run(model, frames)


@settings(max_examples=20)
@given(st.data())
def test_any_timing(data):
    model = data.draw(draw.conv_models(max_blocks=2, max_side=6))
    folding = data.draw(draw.foldings(model))
    timing = schedule(model, folding)
    in_flight = -(-timing.latency_cycles // timing.cycles_per_frame)
    frames = draw.random_frames(np.random.default_rng(0), model, in_flight + 6)
    got = rtl.answers(model, folding, frames, alone=timing.stages["input"])
    assert got == golden.run(model, frames)
    assert got.latency == timing.latency_cycles
    assert set(np.diff(got.answered[-3:])) == {timing.cycles_per_frame}
