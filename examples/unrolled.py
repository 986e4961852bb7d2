"""An ensemble in which every weight is a constant, streamed through Verilator: an answer per cycle.

    python examples/unrolled.py

A frame of digits, 64 bytes, is one beat of a bus of 512 bits, and so is its answer. Weights are
random; examples/silicon.py has the size of the same design, `digits-unrolled`.
"""

import sys
from pathlib import Path

import numpy as np
from silicon import digits

import benn_fpga
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.sim import harness

FOLDER = Path("build/unrolled")
FRAMES = 300


def main():
    model, folding = digits()
    design = benn_fpga.generate(model, FOLDER, folding=folding, force=True, frames=0)
    frames = np.random.default_rng(0).integers(0, 256, (FRAMES, *model.encoder.shape), np.uint8)
    found = harness.simulate(design, frames)
    found.check()
    console.show([console.table("digits-unrolled", ("", ">measured", ">predicted"), [
        ("frames", found.frames, ""),
        ("mismatches", found.mismatches, 0),
        ("cycles per frame", found.cycles_per_frame, found.predicted_cycles_per_frame),
        ("latency in cycles", found.latency_cycles, found.predicted_latency_cycles)])])


if __name__ == "__main__":
    sys.exit(guard("unrolled", main))
