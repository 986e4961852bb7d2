"""What `make bench` prints: training members together against one by one, and generation.

Both sides of a ratio are measured in one run. Members of dense layers gain by one graph, in which
their small products become one large. Convolutions gain less by it than by being trained side by
side, one per core: K times the activations leave the cache. Generation takes random weights: its
time depends on how many there are, not on what they are.
"""

import resource
import sys
import time

import numpy as np

from benn_fpga import bits, nets, presets
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.hw import emit
from benn_fpga.plan.folding import fold_for_lanes
from benn_fpga.spec import Ensemble, Member
from benn_fpga.sw import bench


def random_model(net, members, shape=(28, 28, 1), encoder="threshold", seed=0):
    """An ensemble for images and 10 classes, of random weights, thresholds and biases."""
    rng = np.random.default_rng(seed)
    encoder = presets.encoder(encoder, shape, 8, 255)
    layers = nets.build(net, encoder, 10)
    drawn = []
    for _ in range(members):
        arrays = []
        for layer in layers:
            own = {key: np.zeros(*array) for key, array in layer.arrays().items()}
            if "weights" in own:
                codes = rng.integers(0, 1 << layer.weight_bits, (layer.outputs, layer.inputs))
                own["weights"] = bits.planes(codes, layer.weight_bits)
            for key in {"thresholds", "bias"} & set(own):
                spread = int(layer.inputs ** 0.5)
                table = rng.integers(-spread, spread + 1, own[key].shape)
                own[key] = np.sort(table, axis=-1).astype(own[key].dtype)
            arrays.append(own)
        drawn.append(Member(tuple(arrays)))
    return Ensemble(encoder, layers, tuple(drawn))


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


TRAINED = {
    "tfc": {},
    "nin of width 0.1": {"net": "nin", "shape": (32, 32, 3), "members": 4, "width": 0.1,
                         "batch": 64, "steps": 4, "epochs": 4, "rounds": 3},
}


def training():
    rows = []
    for label, options in TRAINED.items():
        timed = bench.together(**options)
        rows += [(label, timed["members"], way, f"{seconds:.2f}",
                  timed["faster"].get(way, "1")) for way, seconds in timed["seconds"].items()]
    columns = ("net", ">K", "members", ">seconds", ">times faster")
    return console.table(f"Training, on {timed['cores']} cores", columns, rows)


if __name__ == "__main__":
    sys.exit(guard("bench", lambda: console.show([training(), generation()])))
