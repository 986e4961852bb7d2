"""How many thermometer levels digits gets: cross-validation on its training images alone.

The rule: the fewest levels whose accuracy is within one standard error of the best.
"""

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


def accuracy(part, levels):
    model = train(part, Settings(encoder=f"thermometer:{levels}", members=8), progress=False)
    score = model.provenance["scores"]["validation"]
    return score["correct"] / score["frames"]


def main():
    rows = []
    parts = list(data.folds(data.load("digits"), FOLDS))
    for levels in LEVELS:
        scores = [accuracy(part, levels) for part in parts]
        mean, error = np.mean(scores), np.std(scores, ddof=1) / math.sqrt(FOLDS)
        rows.append((levels, mean, error))
        print(f"{levels} levels: {console.percent(mean)} ± {console.percent(error)}", flush=True)
    _, best, error = max(rows, key=lambda row: row[1])
    chosen = next(levels for levels, mean, _ in rows if mean >= best - error)
    print(f"chosen: {chosen} levels")


if __name__ == "__main__":
    sys.exit(guard("levels", main))
