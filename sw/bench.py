"""How much faster members train together than one by one, all ways measured in one run."""

import dataclasses
import json
import os
import statistics
import time

import numpy as np

from benn_fpga.settings import Settings
from benn_fpga.sw.data import Dataset
from benn_fpga.sw.train import learn

__all__ = ["WAYS", "together"]

# How the same members come about: settings, and workers.
WAYS = {
    "one by one": ({"together": False}, 1),
    "in one graph": ({"together": True}, None),
    "side by side": ({"together": False}, None),
}


def drawn(shape, frames):
    """A data set of random values: what a step costs does not depend on them."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (frames, *shape), np.uint8)
    y = np.arange(frames) % 10
    few = x[:16], y[:16]
    return Dataset("drawn", shape, 8, 255, 10, "", x, y, *few, *few)


def together(net="tfc", shape=(28, 28, 1), encoder="threshold", members=8, width=1.0, batch=128,
             steps=20, epochs=5, rounds=5, ways=tuple(WAYS)):
    """Median seconds to train ``members`` in each of ``ways``, for ``epochs`` of ``steps``, and
    how many times faster that is than the first of them.

    The ways take turns, ``rounds`` times, so that whatever else the machine does slows down all.
    """
    data = drawn(shape, steps * batch)
    common = Settings(net=net, encoder=encoder, members=members, width=width, batch=batch,
                      epochs=epochs, lr=0.01)

    def seconds(way):
        start = time.perf_counter()
        settings, workers = WAYS[way]
        learn(data, dataclasses.replace(common, **settings), workers=workers, progress=False)
        return time.perf_counter() - start

    for way in ways:
        seconds(way)  # the first run pays for loading kernels
    times = [[seconds(way) for way in ways] for _ in range(rounds)]
    columns = list(zip(*times, strict=True))
    return {"net": net, "members": members, "width": width, "batch": batch,
            "steps": steps * epochs,
            "cores": len(os.sched_getaffinity(0)),
            "seconds": {way: round(statistics.median(column), 4)
                        for way, column in zip(ways, columns, strict=True)},
            "faster": {way: round(statistics.median(a / b for a, b in
                                                    zip(columns[0], column, strict=True)), 2)
                       for way, column in zip(ways[1:], columns[1:], strict=True)}}


if __name__ == "__main__":
    print(json.dumps(together()))
