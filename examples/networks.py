"""The convolutional networks at their sizes: from training to Verilator, every layer compared.

    python examples/networks.py                  the names
    python examples/networks.py cnv alexnet      train, generate, simulate those
    python examples/networks.py 'full-*'         train and generate, without simulation

The networks are trained for one epoch on a few made images: what is shown here is hardware, not
accuracy. Exits with 1 if any layer, answer or cycle count is not as predicted.
"""

import fnmatch
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import benn_fpga
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.errors import Mismatch
from benn_fpga.spec import Fold, Folding

CLASSES = 10


@dataclass(frozen=True)
class Case:
    """A network, its size and its folding.

    Members
    -------
    net, width, members : as in `benn-fpga train`
    side : of its images, which have three colours
    cycles : target of the folding, all members in parallel, or
    folds : (PE, SIMD) by layer
    frames : to be simulated; None if it is only generated
    """

    net: str
    width: float
    side: int
    members: int
    cycles: int | None = None
    folds: tuple | None = None
    frames: int | None = None

    def options(self, model):
        if self.folds is None:
            return {"cycles": self.cycles, "parallel": self.members}
        return {"folding": Folding(tuple(Fold(*fold) for fold in self.folds), self.members, 64)}


# FINN's folding of its CNV-W1A1: 32,768 cycles at 2,273 lanes. Its pools and its last layer, of
# which it counts 4 x 1 lanes for 10 classes, are not folded that way here.
FINN = ((16, 3), (32, 32), (8, 1), (16, 32), (16, 32), (8, 1), (4, 32), (1, 32), (1, 4), (1, 8),
        (2, 1))

CASES = {
    "cnv": Case("cnv", 1, 32, 1, folds=FINN, frames=3),
    "nin": Case("nin", 0.1, 32, 4, cycles=40_000, frames=3),
    "alexnet": Case("alexnet", 1 / 8, 64, 2, cycles=50_000, frames=2),
    "resnet18": Case("resnet18", 1 / 8, 64, 2, cycles=60_000, frames=2),
    "full-alexnet": Case("alexnet", 1, 64, 1, cycles=200_000),
    "full-resnet18": Case("resnet18", 1, 64, 1, cycles=200_000),
}


def images(side, count, rng):
    """Images of a bright spot, whose place is the class, in noise."""
    y = np.arange(count) % CLASSES
    x = rng.integers(0, 128, (count, side, side, 3), np.uint8)
    step = side // CLASSES
    for image, label in zip(x, y, strict=True):
        image[:, label * step:(label + 1) * step] += 120
    return x, y


def data(side, folder):
    path = folder / f"images{side}.npz"
    if not path.exists():
        rng = np.random.default_rng(0)
        x, y = images(side, 160, rng)
        x_test, y_test = images(side, 40, rng)
        np.savez(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    return path


def run(name, folder):
    """Rows of the two tables, the second None without simulation, and what is wrong."""
    case = CASES[name]
    title = f"{name}: width {case.width:g}, {case.side} x {case.side}, K = {case.members}"
    dataset = data(case.side, folder)
    model = benn_fpga.train(str(dataset), str(folder / f"{name}.benn"), net=case.net,
                            width=case.width, members=case.members, kind="ib", epochs=1, batch=32,
                            force=True)
    start = time.perf_counter()
    design = benn_fpga.generate(model, folder / name, force=True, **case.options(model))
    facts = design.manifest
    predicted, memory = facts["predicted"], facts["memory_bits"]
    generated = (title, f"{facts['xnor_lanes']:,}", f"{memory['constants'] / 1e6:.2f}",
                 f"{memory['buffers'] / 1e6:.3f}", f"{predicted['cycles_per_frame']:,}",
                 f"{time.perf_counter() - start:.0f}")
    if case.frames is None:
        return generated, None, None
    start = time.perf_counter()
    result = benn_fpga.simulate(design, str(dataset), frames=case.frames, layers=True)
    return generated, (
        title, result.frames, result.mismatches, f"{result.layers_compared:,}",
        f"{result.predicted_cycles_per_frame:,}", f"{result.cycles_per_frame:,}",
        f"{result.predicted_latency_cycles:,}", f"{result.latency_cycles:,}",
        f"{time.perf_counter() - start:.0f}"), result.failure


GENERATED = ("network", ">lanes", ">Mbit of constants", ">Mbit of buffers", ">cycles/frame",
             ">seconds")
SIMULATED = ("network", ">frames", ">wrong", ">layers", ">cycles/frame", ">measured", ">latency",
             ">measured", ">seconds")


def main():
    patterns = sys.argv[1:]
    names = [name for name in CASES
             if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    if not names:
        raise benn_fpga.BennError(f"name one or more of {', '.join(CASES)}")
    folder = Path("build/networks")
    folder.mkdir(parents=True, exist_ok=True)
    generated, simulated, failures = zip(*(run(name, folder) for name in names), strict=True)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    tables = [console.table(f"Generated, in at most {most:,.0f} MiB of memory", GENERATED,
                            generated)]
    if any(simulated):
        tables.append(console.table("Simulated, every layer of every frame compared", SIMULATED,
                                    filter(None, simulated)))
    console.show(tables)
    wrong = [f"{name}: {failure}" for name, failure in zip(names, failures, strict=True) if failure]
    if wrong:
        raise Mismatch("; ".join(wrong))


if __name__ == "__main__":
    sys.exit(guard("networks", main))
