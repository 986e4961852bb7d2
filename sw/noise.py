"""Noise on the inputs: the paper's theory in closed form, its Equations 1 and 2."""

import itertools
import math

import numpy as np
import torch

from benn_fpga.sw.report import Claim, Line, Report, spread
from benn_fpga.sw.verdict import gap

__all__ = ["error_change", "flips", "random_networks", "theory"]

# Table of the paper: variance of sign(x + noise) - sign(x) for x and noise normal.
PAPER_B = {1.5: 1.25, 1.0: 1.0, 0.5: 0.59, 0.1: 0.13, 0.01: 0.013, 0.001: 0.0013}
_CROSSED = (0.5, 0.1)  # sigmas at which the number of members is tried out
_INPUTS = 16


def flips(sigma):
    """Variance B of sign(x + noise) - sign(x): two correlated normals differ in sign with
    probability atan(sigma) / pi, and the difference is then ±2."""
    return 4 * math.atan(sigma) / math.pi


def _flipped(sigma, shape, rng):
    x = rng.standard_normal(shape)
    return np.sign(x + sigma * rng.standard_normal(shape)) - np.sign(x)


def ensemble_variance(sigma, members, samples, rng):
    """Variance, per input, of the change of the mean of binary layers with weights of their own."""
    changed = _flipped(sigma, (samples, _INPUTS), rng)
    outputs = sum((changed * rng.choice([-1.0, 1.0], changed.shape)).sum(axis=1)
                  for _ in range(members)) / members
    return float(outputs.var()) / _INPUTS


def theory(samples, seeds, advance):
    """B in closed form, by Monte Carlo and as the paper has it; R = sigma**2 of a float layer."""
    rngs = [np.random.default_rng(seed) for seed in seeds]
    drawn = {sigma: [float(_flipped(sigma, samples, rng).var()) for rng in rngs]
             for sigma in PAPER_B}
    advance(1)
    rows = [[sigma, f"{flips(sigma):.5f}", spread(drawn[sigma], 5), paper, f"{sigma ** 2:g}",
             math.floor(flips(sigma) / sigma ** 2) + 1] for sigma, paper in PAPER_B.items()]
    worst = max(abs(flips(sigma) - paper) / paper for sigma, paper in PAPER_B.items())
    seen, crossed = [], []
    for sigma in _CROSSED:
        few = math.floor(flips(sigma) / sigma ** 2)
        ratios = {members: np.mean([ensemble_variance(sigma, members, samples // 20, rng)
                                    for rng in rngs]) / sigma ** 2 for members in (few, few + 1)}
        seen.append(f"sigma {sigma}: " + ", ".join(
            f"{members} members {ratio:.3f}" for members, ratio in ratios.items()))
        crossed.append(ratios[few] > 1 > ratios[few + 1])
        advance(1)
    sigmas = list(PAPER_B)
    above = {sigma: gap(drawn[sigma], [sigma ** 2] * len(seeds)) for sigma in sigmas if sigma != 1}
    return Report(
        name="theory", title="One layer: binarised activations and noise on the input",
        columns=["sigma", "B = 4 atan(sigma)/pi", "B by Monte Carlo", "B of the paper", "R",
                 "members that beat a float layer"],
        rows=rows,
        claims=[
            Claim("B and R as in the table of the appendix", "six values",
                  f"within {100 * worst:.1f} % of each", worst < 0.025),
            Claim("A binary layer is the more sensitive one when sigma < 1", "B > R",
                  "by Monte Carlo at each sigma but 1; in closed form B = R at 1",
                  all(item.held(len(above)) is (sigma < 1) for sigma, item in above.items())),
            Claim("The mean of K binary layers beats a float layer when K > B / R", "K > B / R",
                  f"variance by Monte Carlo, divided by that of a float layer: {'; '.join(seen)}",
                  all(crossed)),
        ],
        lines=[Line("B, closed form", sigmas, [flips(s) for s in sigmas]),
               Line("B, Monte Carlo", sigmas, [float(np.mean(drawn[s])) for s in sigmas]),
               Line("R", sigmas, [s * s for s in sigmas])],
        axes=("sigma of the noise", "variance"), scale="log",
        settings={"seeds": list(seeds), "samples": samples})


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


def random_networks(x, sizes, rounds, seeds, advance):
    """Equation 1: mean square of f(x + noise) - f(x) over random weights and noise.

    Beside it the ratio to the variance of f over the frames, which tells a network that is robust
    from one whose outputs are small.
    """
    changes, ratios = ({label: {v: [] for v in VARIANCES} for label in CONFIGURATIONS}
                       for _ in range(2))
    for label, configuration in CONFIGURATIONS.items():
        for seed, variance in itertools.product(seeds, VARIANCES):
            moved, varied = change(x, sizes, configuration, variance, rounds,
                                   np.random.default_rng([seed, int(variance * 1e6)]))
            changes[label][variance].append(moved)
            ratios[label][variance].append(moved / varied)
        advance(1)
    at, ratio = ({label: np.array(values[MAIN]) for label, values in found.items()}
                 for found in (changes, ratios))
    bnn = at["BNN (W1 A1)"]
    finer = {label: gap(bnn, at[label]) for label, (_, bits, members) in CONFIGURATIONS.items()
             if bits > 1 and members == 1}
    helped = gap(ratio["W4 A1"] - ratio["W1 A4"], 0 * bnn)
    cured, honest = gap(bnn, at["BENN-32"]), gap(ratio["BNN (W1 A1)"], ratio["BENN-32"])
    verdicts = {item.held(len(finer)) for item in finer.values()}
    return Report(
        name="robustness-random", title="Equation 1: random networks, noise on the input",
        columns=["network", *(f"change at variance {v}" for v in VARIANCES),
                 *(f"ratio at {v}" for v in VARIANCES)],
        rows=[[label, *(spread(changes[label][v], 3) for v in VARIANCES),
               *(spread(ratios[label][v], 3) for v in VARIANCES)] for label in CONFIGURATIONS],
        claims=[
            Claim("A binary network changes its output more than any with more activation bits",
                  "figure only", f"{np.mean(bnn / at['float']):.0f} times the float network's",
                  False if False in verdicts else None if None in verdicts else True),
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
        settings={"seeds": list(seeds), "rounds": rounds, "layers": list(sizes)})


def error_change(trained, members, data, variance, draws, rng):
    """Mean square change, in %², of the test error when noise is added to the input.

    ``trained`` is as from :func:`benn_fpga.sw.train.learn`; its first ``members`` vote. Noise of
    ``variance`` is that of values in -1..1, and is not rounded to whole values.
    """
    x = torch.from_numpy(data.x_test.reshape(len(data.x_test), -1).astype(np.float64))
    noise = math.sqrt(variance) * data.high / 2
    clean = error(trained, members, x, data.y_test)
    changes = [error(trained, members, x + noise * torch.from_numpy(
        rng.standard_normal(x.shape)), data.y_test) - clean for _ in range(draws)]
    return float(np.mean(np.square(changes)))


@torch.no_grad()
def error(trained, members, x, y):
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
