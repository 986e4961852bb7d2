"""The whole way in one file: train, evaluate, generate, simulate, and one table at the end."""

import sys
import time
from pathlib import Path

import benn_fpga
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard

OUT = Path("build/demo")
DATASET = "digits"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()

    def step(text):
        print(f"[{time.perf_counter() - start:5.1f} s] {text}", flush=True)

    step(f"training 8 binary networks on {DATASET}")
    model = benn_fpga.train(DATASET, OUT / f"{DATASET}.benn", members=8, seed=0,
                            force=True)
    step("evaluating the golden model on the test images")
    score = benn_fpga.eval(model, DATASET)
    step("generating Verilog")
    design = benn_fpga.generate(model, OUT / "design", force=True)
    step("compiling and simulating every test image")
    run = benn_fpga.simulate(design, DATASET)
    step("done")

    mean = sum(score.member_accuracy) / len(score.member_accuracy)
    console.show([console.table(
        f"{len(model.members)} members, {score.frames} test images of {DATASET}",
        ("", ">predicted", ">measured"), [
            ("accuracy of a single member, mean", "", console.percent(mean)),
            ("accuracy of the ensemble", "", console.percent(score.accuracy)),
            ("weight bits", "", f"{model.weight_bits:,}"),
            ("XNOR lanes", "", f"{design.manifest['xnor_lanes']:,}"),
            ("cycles per frame", run.predicted_cycles_per_frame, run.cycles_per_frame),
            ("latency in cycles", run.predicted_latency_cycles, run.latency_cycles),
            ("frames simulated", "", run.frames),
            ("mismatches", 0, run.mismatches),
        ])])
    run.check()


if __name__ == "__main__":
    sys.exit(guard("demo", main))
