"""Oscillation: how much the accuracy moves from epoch to epoch near the end of training."""

import copy

import numpy as np
import torch

from benn_fpga import nets, presets
from benn_fpga.sw import boost
from benn_fpga.sw.augment import Frames
from benn_fpga.sw.fit import CrossEntropy, fit
from benn_fpga.sw.network import Network, values
from benn_fpga.sw.report import Claim, Line, Report

__all__ = ["stability"]

LAST = 20  # epochs at the end that are looked at
PAPER = {"single": "2.94", "bagging, 5": "0.31", "boost-d, 5": "0.24", "bagging, all": "0.03 (32)",
         "boost-d, all": "0.02 (32)"}


def _scores(network, x, test):
    """Test scores of a network in the middle of its training."""
    snapshot = copy.deepcopy(network)
    snapshot.estimate(x)
    return snapshot.scores(test)


class _Run:
    """All that the members of one seed share."""

    def __init__(self, setting, seed):
        data, options = setting.data, setting.options
        default = presets.defaults(data.name, data.high)
        encoder = presets.encoder(options.get("encoder") or default.encoder, data.shape,
                                  data.bits, data.high, data.x_train)
        self.layers = nets.build(options.get("net") or default.net, encoder, data.classes,
                                 width=options.get("width", 1.0))
        self.x, self.test = values(encoder, data.x_train), values(encoder, data.x_test)
        self.inputs = Frames(self.x, encoder.element_bits)
        self.y = torch.from_numpy(data.y_train)
        self.epochs = max(LAST + 5, options.get("epochs") or default.epochs)
        self.fit = {"lr": options.get("lr") or default.lr,
                    "batch": options.get("batch") or default.batch, "decay": False}
        self.seed = seed

    def member(self, k, weights=None):
        """A member trained at a constant rate, and its test scores in each of the last epochs."""
        network = Network(self.layers, 1).draw([np.random.default_rng([self.seed, 0, k])])
        rng, seen, frames = np.random.default_rng([self.seed, 1, k]), [], len(self.y)
        if weights is None:
            drawn = rng.integers(frames, size=frames)
            orders = (rng.permutation(drawn) for _ in iter(int, 1))
        else:
            orders = (rng.choice(frames, frames, p=weights) for _ in iter(int, 1))

        def keep(epoch, tensors):
            if epoch > self.epochs - LAST:
                seen.append(_scores(network, self.x, self.test)[:, 0])
        fit(network, self.inputs, CrossEntropy(self.y), orders, epochs=self.epochs, keep=keep,
            **self.fit)
        network.estimate(self.x)
        return network, np.stack(seen)


def _deviation(scores, votes, y):
    """Standard deviation over epochs of the accuracy of the vote, in points."""
    totals = np.tensordot(votes, scores, 1)  # epochs, frames, classes
    return 100 * float((totals.argmax(axis=2) == y).mean(axis=1).std(ddof=1))


def stability(setting):
    """Deviation of the test accuracy over the last epochs, at a constant learning rate."""
    found = {label: [] for label in PAPER}
    y, classes = setting.data.y_test, setting.data.classes
    for seed in setting.seeds:
        run = _Run(setting, seed)
        bagged = []
        for k in range(setting.members):
            bagged.append(run.member(k)[1])
            setting.advance(1)
        boosted, votes = [], []
        weights = np.full(len(run.y), 1 / len(run.y))
        for k in range(setting.members):
            network, scores = run.member(k, weights / weights.sum())
            missed = network.scores(run.x)[:, 0].argmax(axis=1) != run.y.numpy()
            _, vote, weights = boost.step("boost-d", weights, missed, classes)
            boosted.append(scores)
            votes.append(vote)
            setting.advance(1)
        bagged, boosted, votes = np.stack(bagged), np.stack(boosted), np.array(votes)
        ones, five = np.ones(len(bagged)), min(5, len(bagged))
        found["single"].append(np.mean([_deviation(b[None], [1], y) for b in bagged]))
        found["bagging, 5"].append(_deviation(bagged[:five], ones[:five], y))
        found["boost-d, 5"].append(_deviation(boosted[:five], votes[:five], y))
        found["bagging, all"].append(_deviation(bagged, ones, y))
        found["boost-d, all"].append(_deviation(boosted, votes, y))
    means = {label: float(np.mean(values_)) for label, values_ in found.items()}
    rows = [[label, f"{means[label]:.2f}", PAPER[label]] for label in found]
    root = means["single"] / setting.members ** 0.5
    return Report(
        name="stability", title=f"Deviation of the accuracy over the last {LAST} epochs",
        columns=["ensemble", "deviation in points", "paper"], rows=rows,
        claims=[
            Claim("An ensemble moves less than one network", "2.94 to 0.03 with 32",
                  f"{means['single']:.2f} to {means['bagging, all']:.2f} with {setting.members}",
                  means["bagging, all"] < means["single"]),
            Claim("... by far more than 1 / sqrt(K), which independent members would give",
                  f"0.03 against {2.94 / 32 ** 0.5:.2f}",
                  f"{means['bagging, all']:.2f} against {root:.2f}",
                  means["bagging, all"] < root / 2),
        ],
        lines=[Line("deviation", list(means), list(means.values()))],
        axes=("", "deviation in points"), settings={"rate": "constant"})
