"""How many thermometer levels digits gets: cross-validation on its training images alone.

The rule: the fewest levels whose accuracy is within one standard error of the best.
"""

import dataclasses
import math
import sys

import numpy as np

from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.settings import Settings
from benn_fpga.sw import data
from benn_fpga.sw.train import train

LEVELS = (2, 4, 6, 8, 12, 16)
FOLDS = 10


def folds():
    """The training images of digits, each tenth of them once as validation part."""
    found = data.load("digits")
    x = np.concatenate([found.x_train, found.x_valid])
    y = np.concatenate([found.y_train, found.y_valid])
    order = np.random.default_rng(0).permutation(len(x))
    for n in range(FOLDS):
        held = np.zeros(len(x), bool)
        held[order[n::FOLDS]] = True
        yield dataclasses.replace(found, x_train=x[~held], y_train=y[~held],
                                  x_valid=x[held], y_valid=y[held])


def accuracy(part, levels):
    model = train(part, Settings(encoder=f"thermometer:{levels}", members=8), progress=False)
    score = model.provenance["scores"]["validation"]
    return score["correct"] / score["frames"]


def main():
    rows = []
    for levels in LEVELS:
        scores = [accuracy(part, levels) for part in folds()]
        mean, error = np.mean(scores), np.std(scores, ddof=1) / math.sqrt(FOLDS)
        rows.append((levels, mean, error))
        print(f"{levels} levels: {console.percent(mean)} ± {console.percent(error)}", flush=True)
    _, best, error = max(rows, key=lambda row: row[1])
    chosen = next(levels for levels, mean, _ in rows if mean >= best - error)
    print(f"chosen: {chosen} levels")


if __name__ == "__main__":
    sys.exit(guard("levels", main))
