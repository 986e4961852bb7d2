"""Equation 1: networks with random weights, and noise on their inputs."""

import itertools
import math

import numpy as np
import torch

from benn_fpga.sw.report import Claim, Line, Report, spread
from benn_fpga.sw.verdict import every, gap

__all__ = ["MAIN", "VARIANCES", "change", "run"]

# Weight bits, activation bits (32: float) and members.
CONFIGURATIONS = {
    "float": (32, 32, 1), "W1 A32": (1, 32, 1), "W32 A1": (32, 1, 1), "BNN (W1 A1)": (1, 1, 1),
    "W1 A2": (1, 2, 1), "W1 A4": (1, 4, 1), "W2 A1": (2, 1, 1), "W4 A1": (4, 1, 1),
    "W4 A4": (4, 4, 1), "BENN-5": (1, 1, 5), "BENN-32": (1, 1, 32), "float x 5": (32, 32, 5),
}
VARIANCES = (0.001, 0.01, 0.1)  # of noise on values in -1..1
MAIN = 0.01  # the one that claims are decided by, as in the paper's figure


def _rounded(x, bits, step):
    """The nearest of the odd multiples of ``step / 2`` that ``bits`` bits have."""
    if bits == 32:
        return x
    top = 2 ** bits - 1
    return (2 * torch.floor(x / step) + 1).clamp(-top, top) * step / 2


def _quantised(x, bits):
    """Normal ``x`` of unit variance in ``bits`` bits, with steps for codes evenly spread."""
    return _rounded(x, bits, 2 / math.sqrt((4 ** bits - 1) / 3)) if bits < 32 else x


def _drawn_weights(shape, bits, rng):
    """Random weights in ``bits`` bits, of unit variance."""
    weights = _quantised(torch.from_numpy(rng.standard_normal(shape)).float(), bits)
    return weights / weights.std()


def _network(x, sizes, weight_bits, activation_bits, rng):
    """Outputs of a random network for clean and noisy inputs (2, frames, features)."""
    for n, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        if n:
            mean, std = x[0].mean(0), x[0].std(0) + 1e-9  # batch norm of the clean data
            x = _quantised((x - mean) / std, activation_bits) if activation_bits < 32 else \
                torch.relu((x - mean) / std)
        x = x @ _drawn_weights((inputs, outputs), weight_bits, rng) / math.sqrt(inputs)
    return x


def change(x, sizes, configuration, variance, rounds, rng):
    """Mean square of f(x + noise) - f(x), and the variance of f over the frames ``x``.

    ``x`` lies in -1..1, and so do the even steps in which it is quantised.
    """
    weight_bits, activation_bits, members = configuration
    plain, changed, varied = torch.from_numpy(x).float(), 0.0, 0.0
    for _ in range(rounds):
        noise = torch.from_numpy(rng.normal(0, math.sqrt(variance), x.shape)).float()
        both = _rounded(torch.stack([plain, plain + noise]), activation_bits,
                        2 / 2 ** activation_bits)
        clean, noisy = sum(_network(both, sizes, weight_bits, activation_bits, rng)
                           for _ in range(members)) / members
        changed += float((noisy - clean).square().sum(1).mean()) / rounds
        varied += float(clean.var(0).sum()) / rounds
    return changed, varied


def run(study):
    """Equation 1: mean square of f(x + noise) - f(x) over random weights and noise.

    Beside it the ratio to the variance of f over the frames, which tells a network that is robust
    from one whose outputs are small.
    """
    data, seeds, rounds = study.data, study.seeds, 3 if study.quick else 20
    x = data.x_train[:500].reshape(-1, data.x_train[0].size) / (data.high / 2) - 1
    sizes = (x.shape[1], 128, 64, data.classes)
    changes, ratios = ({label: {v: [] for v in VARIANCES} for label in CONFIGURATIONS}
                       for _ in range(2))
    for label, configuration in CONFIGURATIONS.items():
        for seed, variance in itertools.product(seeds, VARIANCES):
            moved, varied = change(x, sizes, configuration, variance, rounds,
                                   np.random.default_rng([seed, int(variance * 1e6)]))
            changes[label][variance].append(moved)
            ratios[label][variance].append(moved / varied)
        study.advance(1)
    at, ratio = ({label: np.array(values[MAIN]) for label, values in figures.items()}
                 for figures in (changes, ratios))
    bnn = at["BNN (W1 A1)"]
    finer = {label: gap(bnn, at[label]) for label, (_, bits, members) in CONFIGURATIONS.items()
             if bits > 1 and members == 1}
    helped = gap(ratio["W4 A1"] - ratio["W1 A4"], 0 * bnn)
    cured, honest = gap(bnn, at["BENN-32"]), gap(ratio["BNN (W1 A1)"], ratio["BENN-32"])
    return Report(
        name="robustness-random", title="Equation 1: random networks, noise on the input",
        columns=["network", *(f"change at variance {v}" for v in VARIANCES),
                 *(f"ratio at {v}" for v in VARIANCES)],
        rows=[[label, *(spread(changes[label][v], 3) for v in VARIANCES),
               *(spread(ratios[label][v], 3) for v in VARIANCES)] for label in CONFIGURATIONS],
        claims=[
            Claim("A binary network changes its output more than any with more activation bits",
                  "figure only", f"{np.mean(bnn / at['float']):.0f} times the float network's",
                  every(finer)),
            Claim("Bits of activations help, bits of weights do not", "figure only",
                  f"ratio of W1 A4 {ratio['W1 A4'].mean():.2f}, of W4 A1 "
                  f"{ratio['W4 A1'].mean():.2f}, of the BNN {ratio['BNN (W1 A1)'].mean():.2f}",
                  helped.held()),
            Claim("An ensemble changes its output less than one of its members", "figure only",
                  f"BENN-32 {np.mean(at['BENN-32'] / bnn):.2f} of one network's change",
                  cured.held()),
            Claim("... and not only because an average of random outputs is smaller",
                  "not in the paper", f"ratio {ratio['BENN-32'].mean():.3f} against "
                  f"{ratio['BNN (W1 A1)'].mean():.3f}", honest.held()),
        ],
        lines=[Line(label, list(VARIANCES), [float(np.mean(values[v])) for v in VARIANCES])
               for label, values in changes.items()],
        axes=("variance of the noise", "mean square change"), scale="log",
        settings={"data": data.name, "data_sha256": data.sha256, "frames": {"train": len(x)},
                  "seeds": list(seeds), "rounds": rounds, "layers": list(sizes),
                  "configurations": {label: dict(zip(("wbits", "abits", "members"), each,
                                                     strict=True))
                                     for label, each in CONFIGURATIONS.items()}})
