"""What `make bench` prints: training eight members together against one by one, and generation.

Both sides of a ratio are measured in one run. Generation takes random weights: its time depends on
how many there are, not on what they are.
"""

import resource
import sys
import time

import numpy as np

from benn_fpga import bits, console, presets
from benn_fpga.folding import fold_for_lanes
from benn_fpga.guard import guard
from benn_fpga.hw import emit
from benn_fpga.spec import Dense, Ensemble, Member
from benn_fpga.sw import bench


def random_model(net, members, seed=0):
    """An ensemble for 28x28 images and 10 classes with random weights."""
    rng = np.random.default_rng(seed)
    encoder = presets.encoder("threshold", (28, 28, 1), 8, 255)
    widths = [encoder.outputs, *presets.hidden(net), 10]
    layers = tuple(Dense(widths[n], widths[n + 1], output_bits=int(n < len(widths) - 2))
                   for n in range(len(widths) - 1))
    drawn = tuple(
        Member(tuple(bits.pack(rng.integers(0, 2, (w.outputs, 1, w.inputs), np.uint8))
                     for w in layers),
               tuple(np.zeros(w.table_shape, np.int32) for w in layers))
        for _ in range(members))
    return Ensemble(encoder, layers, drawn)


def generation():
    rows = []
    for net, members in (("sfc", 8), ("lfc", 2), ("lfc", 8)):
        model = random_model(net, members)
        folding = fold_for_lanes(model)
        start = time.perf_counter()
        text, manifest = emit.generate(model, folding)
        rows.append((net, members, f"{model.weight_bits / 1e6:.2f}", manifest["xnor_lanes"],
                     f"{time.perf_counter() - start:.1f}", f"{len(text) / 1e6:.1f}",
                     resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
    columns = ("net", ">K", ">Mbit of weights", ">lanes", ">seconds", ">MB of Verilog",
               ">peak MiB so far")
    return console.table("Generation of Verilog", columns, rows)


def training():
    result = bench.together()
    rows = [(result["net"], result["members"], result["together_seconds"],
             result["one_by_one_seconds"], f"{result['ratio']:.2f}")]
    columns = ("net", ">K", ">s together", ">s one by one", ">times faster")
    return console.table(f"Training, {result['steps']} steps of {result['batch']} images", columns,
                         rows)


if __name__ == "__main__":
    sys.exit(guard("bench", lambda: console.show([training(), generation()])))
