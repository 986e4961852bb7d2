"""What experiments have in common: what they run on, how they train, measure and keep record."""

from dataclasses import dataclass, field

import numpy as np

from benn_fpga import analysis, golden, presets
from benn_fpga.presets import MEMBERS
from benn_fpga.settings import Settings
from benn_fpga.sw.report import Line
from benn_fpga.sw.train import learn
from benn_fpga.sw.verdict import gap

__all__ = ["VOTES_AXES", "Scores", "Study", "average", "line", "points", "rates"]

VOTES_AXES = ("members that vote", "accuracy on the test part, %")
_PROVED = 200  # validation frames on which exported and trained scores are compared
_FOUND = ("scores", "stopped", "vote_rounding", "versions")  # of a provenance, what is no setting

# Networks that experiments take where the user does not say: weak, as the paper's are.
_WEAK = {
    "quick": {"net": "mlp:32,16", "encoder": "threshold", "epochs": 12},
    "digits": {"net": "mlp:32,16", "encoder": "threshold", "epochs": 40},
    "mnist": {"net": "mlp:32,32", "encoder": "threshold:64", "epochs": 8},
    "fashion-mnist": {"net": "mlp:32,32", "encoder": "thermometer:2", "epochs": 8},
    "cifar10": {"net": "nin", "width": 0.1, "encoder": "threshold", "epochs": 5, "lr": 0.003,
                "batch": 32},
}


@dataclass(frozen=True)
class Scores:
    """Shares of test frames, one item per seed: members alone, and votes of the first 1, 2, ..."""

    single: list
    curves: list
    weight_bits: int
    operations: int

    def at(self, k):
        """The vote of the first ``k``, or of all if boosting stopped before."""
        return [curve[min(k, len(curve)) - 1] for curve in self.curves]

    @property
    def vote(self):
        return [curve[-1] for curve in self.curves]


@dataclass(frozen=True)
class Study:
    """What an experiment runs on, and the trainings that it has made.

    Parameters
    ----------
    data : a :class:`~benn_fpga.sw.data.Dataset`; None for experiments that read none
    quick : for seconds, not for figures
    seeds : each is a run of its own
    members : of the largest ensemble
    given : fields of :class:`~benn_fpga.settings.Settings` that the user asked for
    advance : called after each network that was trained
    trainings : provenance of each network that was trained
    """

    data: object
    quick: bool = False
    seeds: tuple[int, ...] = (0, 1, 2)
    members: int = MEMBERS
    given: dict = field(default_factory=dict)
    advance: object = lambda steps=1: None
    trainings: list = field(default_factory=list)

    @classmethod
    def of(cls, data, *, quick=False, seeds=None, members=None, **options):
        """The study of ``data`` with so many seeds; what is None is chosen."""
        given = {key: value for key, value in options.items() if value is not None}
        return cls(data, quick, tuple(range(3 if seeds is None else seeds)),
                   MEMBERS if members is None else members, given)

    @property
    def weak(self):
        """Options of a network where nothing is said."""
        name = "quick" if self.quick else self.data.name
        return _WEAK.get(name, _WEAK["digits"])

    def options(self, **own):
        """All options of a network: defaults, then what the user gave, then the experiment's own.

        Networks are all binary (kind ab) unless that is said otherwise. An encoder with thresholds
        is for kinds that read single bits.
        """
        chosen = {"kind": "ab", **self.weak, **self.given, **own}
        kind = Settings(**chosen).network_kind()
        if kind.input_bits and "encoder" not in own and "encoder" not in self.given:
            chosen.pop("encoder", None)
        return chosen

    def encoder(self, options):
        """The encoder that a network with ``options`` reads."""
        data = self.data
        return presets.encoder(Settings(**options).resolve(data).encoder, data.shape, data.bits,
                               data.high, data.x_train)

    def learn(self, seed, options, watch=None):
        """:func:`~benn_fpga.sw.train.learn` with ``options``, put on record."""
        trained = learn(self.data, Settings(seed=seed, **options), watch=watch, progress=False)
        self.trainings.append(trained.provenance)
        self.advance(1)
        return trained

    def measure(self, **own):
        """:class:`Scores` of a network trained with every seed."""
        single, curves, bits, operations = [], [], 0, 0
        x, y = self.data.x_test, self.data.y_test
        for seed in self.seeds:
            trained = self.learn(seed, self.options(**own))
            model = trained.export(self.data.x_valid[:_PROVED])
            bits, operations = model.weight_bits, model.operations
            result = golden.run(model, x)
            single.append(float((result.member_classes == y[:, None]).mean()))
            curves.append(analysis.curve(model, result.scores, y))
        return Scores(single, curves, bits, operations)

    def tuned(self, **own):
        """``own`` with the learning rate that is best for a single network on validation data.

        A third of the data set's, that, and three times that are tried, with the first seed,
        unless the user gave one.
        """
        if "lr" in self.given:
            return own
        told = {**self.options(**own), "ensemble": "single"}
        middle = Settings(**told).resolve(self.data).lr
        right = {}
        for rate in (middle, middle / 3, middle * 3):
            trained = self.learn(self.seeds[0], {**told, "lr": rate})
            right[rate] = trained.provenance["scores"]["validation"]["correct"]
        return {**own, "lr": max(right, key=right.get)}

    def used(self):
        """What the trainings were made with, and the frames that accuracy rests on.

        Each setting has its value, or all its values in a list if they differ; then ``trainings``
        has those of each, in the order in which they took place, once for all seeds.
        """
        told = [{key: value for key, value in each.items() if key not in _FOUND}
                for each in self.trainings]
        if not told:
            return {}
        told = [{**each, "frames": {**each["frames"], "test": len(self.data.y_test)}}
                for each in told]
        values = {key: _distinct(each[key] for each in told if key in each)
                  for key in dict.fromkeys(key for each in told for key in each)}
        seeds = values.pop("seed")
        same = {key for key, known in values.items()
                if len(known) == 1 and all(key in each for each in told)}
        apart = _distinct({key: value for key, value in each.items() if key not in {*same, "seed"}}
                          for each in told)
        return {"seeds": seeds,
                **{key: known if len(known) > 1 else known[0] for key, known in values.items()},
                **({"trainings": apart} if len(apart) > 1 else {})}


def _distinct(items):
    """Each of them once, in order; they need not be hashable."""
    known = []
    for item in items:
        if item not in known:
            known.append(item)
    return known


def rates(tuned_options):
    """The learning rates that were chosen among those tried, for the settings of a report."""
    chosen = {label: f"{options['lr']:.3g}" for label, options in tuned_options.items()
              if "lr" in options}
    return {"lr chosen": chosen} if chosen else {}


def average(values):
    return sum(values) / len(values)


def line(study, scores, label):
    """The K-curve of a measurement."""
    longest = max(map(len, scores.curves))
    columns = [scores.at(k) for k in range(1, longest + 1)]
    return Line(label, list(range(1, longest + 1)), [100 * average(c) for c in columns],
                [100 * float(np.std(c, ddof=1)) for c in columns]
                if len(study.seeds) > 1 else None)


def points(a, b):
    """By how many points a is better than b."""
    return gap(a, b, 100)
