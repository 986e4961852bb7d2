"""How much faster members train together than one by one, both measured in one run."""

import json
import statistics
import time

import numpy as np
import torch

from benn_fpga import nets, presets
from benn_fpga.sw.augment import Frames
from benn_fpga.sw.fit import CrossEntropy, fit
from benn_fpga.sw.network import Network

__all__ = ["together"]


def together(net="tfc", members=8, batch=128, steps=25, rounds=9, threads=1):
    """Seconds to train ``members`` for ``steps`` in one graph and one by one, and their ratio.

    The data are drawn in the shape of MNIST: what a step costs does not depend on the values. The
    two sides take turns, ``rounds`` times, so that whatever else the machine does slows down both;
    seconds and ratio are medians over the rounds.
    """
    encoder = presets.encoder("threshold", (28, 28, 1), 8, 255)
    layers = nets.build(net, encoder, 10)
    rng = np.random.default_rng(0)
    frames = steps * batch
    x = torch.from_numpy(rng.integers(0, 2, (frames, encoder.outputs)).astype(np.int8) * 2 - 1)
    y = torch.from_numpy(rng.integers(0, 10, frames))

    def seconds(count):
        network = Network(layers, count).draw([rng] * count)
        start = time.perf_counter()
        fit(network, Frames(x, 1), CrossEntropy(y), [np.arange(frames)], epochs=1, lr=0.01,
            batch=batch)
        return time.perf_counter() - start

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        seconds(members)  # the first run pays for loading kernels
        times = [(seconds(members), sum(seconds(1) for _ in range(members)))
                 for _ in range(rounds)]
    finally:
        torch.set_num_threads(before)
    one_graph, one_by_one = (statistics.median(side) for side in zip(*times, strict=True))
    return {"net": net, "members": members, "batch": batch, "steps": steps,
            "together_seconds": round(one_graph, 4), "one_by_one_seconds": round(one_by_one, 4),
            "ratio": round(statistics.median(b / a for a, b in times), 2)}


if __name__ == "__main__":
    print(json.dumps(together()))
