"""One model, several foldings: what each costs, and that the cycle model is right about it.

    benn-fpga train mnist --net tfc -k 8 -o build/tfc.benn
    python examples/foldings.py build/tfc.benn mnist

A folding is M members in parallel, the bus width, and PE x SIMD per layer. Exits with 1 if any
answer differs from the golden model, or any measured cycle count from the predicted one.
"""

import argparse
import sys
from pathlib import Path

import benn_fpga
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.errors import Mismatch
from benn_fpga.spec import Fold, Folding

# For 784-64-64-64-10, K = 8.
TFC = [
    Folding((Fold(1, 392), Fold(1, 32), Fold(1, 32), Fold(5, 1)), 8, 64),
    Folding((Fold(16, 49), Fold(8, 8), Fold(8, 8), Fold(10, 1)), 8, 64),
    Folding((Fold(64, 49), Fold(8, 32), Fold(8, 32), Fold(2, 32)), 1, 64),
    Folding((Fold(32, 28), Fold(16, 16), Fold(16, 16), Fold(5, 4)), 2, 32),
    Folding((Fold(8, 56), Fold(4, 16), Fold(4, 16), Fold(2, 8)), 4, 24),
    Folding((Fold(8, 16), Fold(2, 8), Fold(2, 8), Fold(1, 1)), 8, 8),
    Folding((Fold(2, 16), Fold(1, 4), Fold(1, 4), Fold(1, 1)), 1, 128),
]
# For 784-256-256-256-10, K = 2: as fast as a 64-bit bus can bring 784 bytes.
SFC = [Folding((Fold(128, 16), Fold(32, 32), Fold(32, 32), Fold(5, 8)), 2, 64)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a tfc of 8 members, or an sfc of 2")
    parser.add_argument("dataset", nargs="?", default="mnist")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path("build/foldings"))
    args = parser.parse_args()
    if args.frames < 1:
        parser.error(f"--frames must be at least 1, not {args.frames}")
    model = benn_fpga.load(args.model)
    shape = (len(model.members), *(layer.inputs for layer in model.layers))
    foldings = {(8, 784, 64, 64, 64): TFC, (2, 784, 256, 256, 256): SFC}.get(shape)
    if foldings is None:
        raise benn_fpga.BennError(f"{args.model} is neither a tfc of 8 members nor an sfc of 2, "
                                  f"with 784 inputs; train one: see {sys.argv[0]} --help")
    rows, failures = [], []
    for n, folding in enumerate(foldings):
        design = benn_fpga.generate(model, args.output / f"{args.model.split('/')[-1]}.{n}",
                                    folding=folding, force=True)
        run = benn_fpga.simulate(design, args.dataset, frames=args.frames)
        failures += [run.failure] if run.failure else []
        rows.append((
            folding.parallel, folding.rounds(model), folding.bus,
            "  ".join(f"{fold.pe}x{fold.simd}" for fold in folding.layers),
            f"{design.manifest['xnor_lanes']:,}",
            run.predicted_cycles_per_frame, run.cycles_per_frame,
            run.predicted_latency_cycles, run.latency_cycles, run.mismatches))
    columns = (">M", ">T", ">bus", "PE x SIMD", ">lanes", ">cycles/frame", ">measured",
               ">latency", ">measured", ">mismatches")
    console.show([console.table(f"{args.model}, {args.frames} frames of {args.dataset}", columns,
                                rows)])
    if failures:
        raise Mismatch("; ".join(failures))


if __name__ == "__main__":
    sys.exit(guard("foldings", main))
