"""Noise on the inputs: the paper's theory in closed form, and its Equation 1 on random networks."""

import itertools
import math

import numpy as np
import torch

from benn_fpga.sw.report import Claim, Line, Report

__all__ = ["error_change", "flips", "random_networks", "theory"]

# Table of the paper: variance of sign(x + noise) - sign(x) for x and noise normal.
PAPER_B = {1.5: 1.25, 1.0: 1.0, 0.5: 0.59, 0.1: 0.13, 0.01: 0.013, 0.001: 0.0013}


def flips(sigma):
    """Variance B of sign(x + noise) - sign(x): two correlated normals differ in sign with
    probability atan(sigma) / pi, and the difference is then ±2."""
    return 4 * math.atan(sigma) / math.pi


def theory(samples, rng):
    """B in closed form, by Monte Carlo and as the paper has it; R = sigma**2 of a float layer."""
    x = rng.standard_normal(samples)
    rows, exact, drawn = [], [], []
    for sigma, paper in PAPER_B.items():
        changed = np.sign(x + sigma * rng.standard_normal(samples)) - np.sign(x)
        closed, r = flips(sigma), sigma * sigma
        rows.append([sigma, f"{closed:.5f}", f"{changed.var():.5f}", paper, f"{r:g}",
                     math.floor(closed / r) + 1])
        exact.append(closed)
        drawn.append(float(changed.var()))
    worst = max(abs(b - paper) / paper for b, paper in zip(exact, PAPER_B.values(), strict=True))
    sigmas = list(PAPER_B)
    return Report(
        name="theory", title="One layer: binarised activations and noise on the input",
        columns=["sigma", "B = 4 atan(sigma)/pi", "B by Monte Carlo", "B of the paper", "R",
                 "members that beat a float layer"],
        rows=rows,
        claims=[
            Claim("B and R as in the table of the appendix", "six values",
                  f"within {100 * worst:.1f} % of each", worst < 0.025),
            Claim("A binary layer is the more sensitive one when sigma < 1", "B > R",
                  "B = R at sigma = 1 exactly",
                  all((flips(s) > s * s) == (s < 1) for s in sigmas if s != 1)),
            Claim("A bagged ensemble beats a float layer when K > B / R", "K > B / R",
                  "K = 13 at sigma 0.1, 128 at 0.01: B falls with sigma, R with its square", True),
        ],
        lines=[Line("B, closed form", sigmas, exact), Line("B, Monte Carlo", sigmas, drawn),
               Line("R", sigmas, [s * s for s in sigmas])],
        axes=("sigma of the noise", "variance"), scale="log",
        settings={"samples": samples})


# Weight bits, activation bits (32: float) and members.
CONFIGURATIONS = {
    "float": (32, 32, 1), "W1 A32": (1, 32, 1), "W32 A1": (32, 1, 1), "BNN (W1 A1)": (1, 1, 1),
    "W1 A2": (1, 2, 1), "W1 A4": (1, 4, 1), "W2 A1": (2, 1, 1), "W4 A1": (4, 1, 1),
    "W4 A4": (4, 4, 1), "BENN-5": (1, 1, 5), "BENN-32": (1, 1, 32), "float x 5": (32, 32, 5),
}


def _quantised(x, bits):
    """``x`` of unit variance to the nearest of the values of ``bits`` bits, of unit variance."""
    if bits == 32:
        return x
    top, scale = 2 ** bits - 1, math.sqrt((4 ** bits - 1) / 3)
    return (2 * torch.floor(x * scale / 2) + 1).clamp(-top, top) / scale


def _network(x, sizes, weight_bits, activation_bits, rng):
    """Outputs of a random network for clean and noisy inputs (2, frames, features)."""
    for n, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        if n:
            mean, std = x[0].mean(0), x[0].std(0) + 1e-9  # batch norm of the clean data
            x = _quantised((x - mean) / std, activation_bits) if activation_bits < 32 else \
                torch.relu((x - mean) / std)
        weights = torch.from_numpy(rng.standard_normal((inputs, outputs))).float()
        x = x @ _quantised(weights, weight_bits) / math.sqrt(inputs)
    return x


def random_networks(x, sizes, variance, rounds, rng, advance):
    """Equation 1: mean square of f(x + noise) - f(x) over random weights and noise.

    ``x``: frames in -1..1. Beside it the ratio to the variance of f over the frames, which tells
    a network that is robust from one whose outputs are small.
    """
    rows, shown, plain = [], {}, torch.from_numpy(x).float()
    for label, (weight_bits, activation_bits, members) in CONFIGURATIONS.items():
        change = spread = 0.0
        for _ in range(rounds):
            noise = torch.from_numpy(rng.normal(0, math.sqrt(variance), x.shape)).float()
            both = torch.stack([plain, plain + noise])
            if activation_bits < 32:
                both = _quantised(both, activation_bits)
            clean, noisy = sum(_network(both, sizes, weight_bits, activation_bits, rng)
                               for _ in range(members)) / members
            change += float((noisy - clean).square().sum(1).mean()) / rounds
            spread += float(clean.var(0).sum()) / rounds
        shown[label] = change, change / spread
        rows.append([label, f"{change:.3f}", f"{change / spread:.3f}"])
        advance(1)
    bnn, plain_net = shown["BNN (W1 A1)"], shown["float"]
    return Report(
        name="robustness-random",
        title="Equation 1: random networks, noise on the input",
        columns=["network", "mean square change", "divided by the variance of the output"],
        rows=rows,
        claims=[
            Claim("Binary networks change their output most", "figure only",
                  f"{bnn[0] / plain_net[0]:.0f} times the float network's",
                  bnn[0] > plain_net[0]),
            Claim("Bits of activations help a lot, bits of weights little", "figure only",
                  f"W1 A4 {shown['W1 A4'][0] / bnn[0]:.2f}, W4 A1 {shown['W4 A1'][0] / bnn[0]:.2f} "
                  f"of the binary network's",
                  shown["W1 A4"][0] < 0.5 * bnn[0] < shown["W4 A1"][0]),
            Claim("An ensemble is more robust than one of its members", "figure only",
                  f"BENN-32 {shown['BENN-32'][0] / bnn[0]:.2f} of one network's change",
                  shown["BENN-32"][0] < bnn[0]),
            Claim("... and not only because an average of random outputs is smaller",
                  "not looked at", f"ratio {shown['BENN-32'][1]:.2f} against {bnn[1]:.2f}",
                  shown["BENN-32"][1] < 0.9 * bnn[1]),
        ],
        lines=[Line("mean square change", list(shown), [v[0] for v in shown.values()]),
               Line("ratio to the output's variance", list(shown),
                    [v[1] for v in shown.values()])],
        axes=("", "mean square change"),
        settings={"variance": str(variance), "rounds": rounds, "layers": list(sizes)})


def error_change(trained, members, data, variance, draws, rng):
    """Mean square change, in %², of the test error when noise is added to the input.

    ``trained`` is as from :func:`benn_fpga.sw.train.learn`; its first ``members`` vote. Noise of
    ``variance`` is that of values in -1..1, and is not rounded to whole values.
    """
    x = torch.from_numpy(data.x_test.reshape(len(data.x_test), -1)).double()
    noise = math.sqrt(variance) * data.high / 2
    clean = _error(trained, members, x, data.y_test)
    changes = [_error(trained, members, x + noise * torch.from_numpy(
        rng.standard_normal(x.shape)), data.y_test) - clean for _ in range(draws)]
    return float(np.mean(np.square(changes)))


@torch.no_grad()
def _error(trained, members, x, y):
    """Percent of the frames of real values ``x`` that the first members get wrong."""
    encoder = trained.encoder
    if encoder.kind == "planes":
        codes = x / (1 << encoder.dropped)
        elements = 2 * codes - ((1 << encoder.element_bits) - 1)
    else:
        levels = torch.from_numpy(encoder.thresholds)
        elements = 2.0 * (x[:, :, None] >= levels).double().flatten(1) - 1
    if len(encoder.output_shape) == 3:
        elements = elements.unflatten(1, encoder.output_shape).permute(0, 3, 1, 2)
    network = trained.network.eval()
    scores = torch.cat([network(part)[:, :members] for part in elements.split(256)]).double()
    votes = torch.tensor(trained.vote_weights[:members]).double()
    return 100 * float(((scores * votes[:, None]).sum(1).argmax(1).numpy() != y).mean())
