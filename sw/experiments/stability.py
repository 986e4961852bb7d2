"""Oscillation: how much the accuracy moves from epoch to epoch near the end of training."""

import copy

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.sw import boost
from benn_fpga.sw.network import values
from benn_fpga.sw.report import Claim, Line, Report, spread
from benn_fpga.sw.verdict import gap

__all__ = ["run"]

LAST = 20  # epochs at the end that are looked at
BEFORE = 5  # epochs before them, at least, if the user does not say how many
PAPER = {"single": "2.94", "single, W2 A2": "figure only", "single, W4 A4": "stable: figure only",
         "float": "-", "bagging, 5": "0.31", "boost-d, 5": "0.24", "bagging, all": "0.03 (32)",
         "boost-d, all": "0.02 (32)"}


def _epochs(study):
    given = study.given.get("epochs")
    if given is None:
        return max(BEFORE + LAST, study.weak["epochs"])
    if given < LAST:
        raise BennError(f"Experiment stability looks at the last {LAST} epochs; `epochs` must be "
                        f"at least {LAST}, not {given}")
    return given


def _watched(study, seed, **options):
    """Test scores (epochs, frames, K, classes) of each of the last epochs, and what was trained."""
    told = study.options(epochs=_epochs(study), decay=False, **options)
    seen, data = {}, study.data

    def watch(group, epochs, network):
        if epochs > told["epochs"] - LAST:
            snapshot = copy.deepcopy(network)
            snapshot.estimate(x_train)
            scores = snapshot.scores(x_test)
            for n, k in enumerate(group):
                seen.setdefault(k, []).append(scores[:, n])

    encoder = study.encoder(told)
    x_train, x_test = values(encoder, data.x_train), values(encoder, data.x_test)
    trained = study.learn(seed, told, watch)
    members = range(len(trained.vote_weights))
    return np.stack([np.stack(seen[k]) for k in members], axis=2), trained


def _deviation(scores, trained, y, members=None):
    """Standard deviation over epochs of the accuracy of the first members' vote, in points."""
    right = [boost.decide(epoch[:, :members], trained.vote_weights[:members], trained.vote) == y
             for epoch in scores]
    return 100 * float(np.mean(right, axis=1).std(ddof=1))


def run(study):
    """Deviation of the test accuracy over the last epochs, at a constant learning rate."""
    deviations = {label: [] for label in PAPER}
    y, five = study.data.y_test, min(5, study.members)
    alone = {"single": {}, "single, W2 A2": {"kind": "qnn", "wbits": 2, "abits": 2},
             "single, W4 A4": {"kind": "qnn", "wbits": 4, "abits": 4}, "float": {"kind": "dnn"}}
    for seed in study.seeds:
        for label, options in alone.items():
            deviations[label].append(_deviation(
                *_watched(study, seed, ensemble="single", **options), y))
        for name in ("bagging", "boost-d"):
            watched = _watched(study, seed, ensemble=name, members=study.members)
            deviations[f"{name}, 5"].append(_deviation(*watched, y, five))
            deviations[f"{name}, all"].append(_deviation(*watched, y))
    single, bagged = np.array(deviations["single"]), np.array(deviations["bagging, all"])
    root = single / study.members ** 0.5
    less, far = gap(single, bagged), gap(root / 2, bagged)
    bits = gap(single, deviations["single, W4 A4"])
    means = {label: float(np.mean(values)) for label, values in deviations.items()}
    return Report(
        name="stability", title=f"Deviation of the accuracy over the last {LAST} epochs",
        columns=["network", "deviation in points", "paper"],
        rows=[[label, spread(deviations[label]), PAPER[label]] for label in deviations],
        claims=[
            Claim("An ensemble moves less than one network", "2.94 to 0.03 with 32",
                  f"{means['single']:.2f} to {means['bagging, all']:.2f} with {study.members}: "
                  f"{less} points less", less.held()),
            Claim("... by far more than 1 / sqrt(K), which independent members would give: by "
                  "twice that", f"0.03 against {2.94 / 32 ** 0.5:.2f}",
                  f"{means['bagging, all']:.2f} against {root.mean():.2f}", far.held()),
            Claim("A network of 4 bits is stable, one of 1 bit is not", "figure only",
                  f"W4 A4 moves {bits} points less", bits.held()),
        ],
        lines=[Line("deviation", list(means), list(means.values()))],
        axes=("", "deviation in points"))
