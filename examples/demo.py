"""The whole way in one file: train, evaluate, generate, simulate, and one table at the end."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import benn_fpga
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.errors import Mismatch
from benn_fpga.sw import data

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
    step("training on floats, and asking a fresh process that has the model alone")
    differ = floats_alone()
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
            ("answers to raw floats that differ", 0, differ),
        ])])
    run.check()
    if differ:
        raise Mismatch(f"{differ} answers to raw floats are not those of training")


def floats_alone():
    """Train on floats; how many frames a fresh process, given raw floats and the model, answers
    otherwise than training did."""
    dataset = data.load(DATASET)
    # Each column in a range of its own, as cepstra of sound have; nothing knows these numbers.
    scale, offset = np.geomspace(.01, 100, 8).reshape(8, 1), np.arange(-4, 4.).reshape(8, 1)
    x = {part: getattr(dataset, f"x_{part}") * scale + offset for part in ("train", "test")}
    np.savez(OUT / "floats.npz", x_train=x["train"], y_train=dataset.y_train, x_test=x["test"],
             y_test=dataset.y_test)
    model = benn_fpga.train(OUT / "floats.npz", OUT / "floats.benn", scale="column", members=2,
                            epochs=5, force=True)
    answers = model.answer(data.load(OUT / "floats.npz", scale="column").x_test)
    np.save(OUT / "x.npy", x["test"])
    (OUT / "floats.npz").unlink()
    told = subprocess.run([sys.executable, "-m", "benn_fpga", "predict", OUT / "floats.benn",
                           OUT / "x.npy", "--json"], capture_output=True, text=True, check=True)
    fresh = np.array([answer["totals"] for answer in json.loads(told.stdout)["answers"]])
    return int((fresh != answers.totals).any(axis=1).sum())


if __name__ == "__main__":
    sys.exit(guard("demo", main))
