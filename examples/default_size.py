"""How the default for somebody's own data keeps to half a megabit: four ways, on three data sets.

Two are drawn here: spectra of 49 x 10 that shift in time, and rows of 200 features. The third is
MNIST, 6000 images of it, as if it were unknown. In about 10 minutes.
"""

import dataclasses
import math
import sys
import tempfile
from pathlib import Path

import numpy as np

from benn_fpga import presets
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.settings import Settings
from benn_fpga.sw import data
from benn_fpga.sw.train import learn

EPOCHS = 15
# Encoder, and bits of all members; the network is as wide as they allow, at most mlp:128,64.
WAYS = {"as digits": ("thermometer:6", None), "narrower": ("thermometer:6", presets.MOST_BITS),
        "one level": ("thermometer:1", presets.MOST_BITS), "planes": ("planes", presets.MOST_BITS)}


def spectra(rng, frames=2400, classes=10):
    ideal = rng.normal(0, 1, (classes, 2, 49, 10))
    for _ in range(3):
        ideal = (ideal + np.roll(ideal, 1, 2) + np.roll(ideal, -1, 2)) / 2
    y = np.arange(frames) % classes
    x = ideal[y, rng.integers(0, 2, frames)]
    x = np.stack([np.roll(frame, step, 0)
                  for frame, step in zip(x, rng.integers(-4, 5, frames), strict=True)])
    return x + rng.normal(0, 3.6, x.shape), y


def rows(rng, frames=3000, classes=6):
    centres = rng.normal(0, 1, (3 * classes, 12))
    cluster = rng.integers(0, len(centres), frames)
    hidden = centres[cluster] + rng.normal(0, 0.55, (frames, 12))
    x = np.tanh(hidden @ rng.normal(0, 1, (12, 200)) / 3)
    return x + rng.normal(0, 0.5, x.shape), cluster % classes


def drawn(name, x, y):
    """The data set of these frames, a quarter of them for testing."""
    test = len(x) // 4
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.npz"
        np.savez(file, x_train=x[test:], y_train=y[test:], x_test=x[:test], y_test=y[:test])
        return data.load(file)


def mnist():
    dataset = data.load("mnist", limit=6000)
    return dataclasses.replace(dataset, name="mnist.npz", x_test=dataset.x_test[:3000],
                               y_test=dataset.y_test[:3000])


def widest(dataset, levels, most):
    """The widest mlp:w,w/2 of at most ``most`` bits in all members."""
    return next(width for width in range(128, 0, -8) if most is None or
                presets.mlp_bits(dataset, width, levels) <= most)


def main():
    rng = np.random.default_rng(0)
    for dataset in (drawn("spectra", *spectra(rng)), drawn("rows", *rows(rng)), mnist()):
        for way, (encoder, most) in WAYS.items():
            levels = int(encoder.partition(":")[2] or 1)
            width = widest(dataset, levels, most)
            trained = learn(dataset, Settings(f"mlp:{width},{width // 2}", encoder=encoder,
                                              kind="ib" if encoder == "planes" else "ab",
                                              epochs=EPOCHS), progress=False)
            right = (trained.predict(dataset.x_test) == dataset.y_test).mean()
            print(f"{dataset.name} ({math.prod(dataset.shape)} values), {way}: mlp:{width},"
                  f"{width // 2}, {presets.mlp_bits(dataset, width, levels):,} bits, "
                  f"{console.percent(right)}", flush=True)


if __name__ == "__main__":
    sys.exit(guard("default_size", main))
