"""Equation 2: the error of trained networks, and noise on their inputs."""

import math

import numpy as np
import torch

from benn_fpga.sw import boost
from benn_fpga.sw.experiments.robustness_random import MAIN, VARIANCES
from benn_fpga.sw.report import Claim, Line, Report, spread
from benn_fpga.sw.verdict import gap

__all__ = ["error", "error_change", "run"]


def run(study):
    """Equation 2: change of the classification error under noise on the input."""
    large, draws = study.members, 5 if study.quick else 20
    sizes = {k: f"BENN-{k}" if k > 1 else "BNN" for k in (1, min(5, large), large)}
    floats = {"float network": "planes", "float network, binary input": None}
    changes = {label: [] for label in (*floats, *sizes.values())}
    for seed in study.seeds:
        benn = study.learn(seed, study.options(ensemble="independent", members=large))
        networks = {label: (benn, members) for members, label in sizes.items()}
        for label, encoder in floats.items():
            networks[label] = study.learn(seed, study.options(
                ensemble="single", kind="dnn", encoder=encoder or benn.provenance["encoder"])), 1
        for label, (trained, members) in networks.items():
            changes[label].append([error_change(
                trained, members, study.data, variance, draws,
                np.random.default_rng([seed, n])) for n, variance in enumerate(VARIANCES)])
    changes = {label: np.array(values) for label, values in changes.items()}
    plain, coarse, bnn, best_ = (
        changes[label][:, VARIANCES.index(MAIN)]
        for label in (*floats, sizes[1], sizes[large]))
    sensitive, cured, same = gap(bnn, plain), gap(bnn, best_), gap(coarse, best_)
    return Report(
        name="robustness-trained", title="Equation 2: trained networks, noise on the input",
        columns=["network", *(f"variance {v}" for v in VARIANCES)],
        rows=[[label, *(spread(list(column)) for column in values.T)]
              for label, values in changes.items()],
        claims=[
            Claim("A binary network is more sensitive than a float one", "figure only",
                  f"{bnn.mean():.2f} against {plain.mean():.2f} %² at variance {MAIN}: "
                  f"{sensitive}", sensitive.held()),
            Claim("The ensemble is less sensitive than one of its members", "figure only",
                  f"{sizes[large]} {best_.mean():.2f} against {bnn.mean():.2f} %²: {cured}",
                  cured.held()),
            Claim("... and less than a float network that reads the same binary input",
                  "figure only: \"cures\"", f"{best_.mean():.2f} against {coarse.mean():.2f} %²: "
                  f"{same}", same.held()),
        ],
        lines=[Line(label, list(VARIANCES), values.mean(axis=0).tolist())
               for label, values in changes.items()],
        axes=("variance of the noise", "mean square change of the error, %²"), scale="log",
        settings={"draws": draws})


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
    classes = boost.decide(scores.numpy(), trained.vote_weights[:members], trained.vote)
    return 100 * float((classes != y).mean())
