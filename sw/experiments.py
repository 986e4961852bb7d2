"""The experiments of the paper, each with the paper's own figures beside ours.

Accuracy is that of the exported integers on the test part: every network is exported, which proves
its scores, before it is measured. Figures are means over seeds, with the standard deviation.
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from benn_fpga import analysis, nets, presets
from benn_fpga.errors import BennError
from benn_fpga.sw import noise, stability
from benn_fpga.sw.report import Claim, Line, Report, mean
from benn_fpga.sw.train import evaluate, learn

__all__ = ["EXPERIMENTS", "Setting", "run", "setting"]

_PROVED = 200  # validation frames on which exported and trained scores are compared


@dataclass(frozen=True)
class Setting:
    """What an experiment runs on.

    Parameters
    ----------
    data : a :class:`~benn_fpga.sw.data.Dataset`
    quick : for seconds, not for figures
    seeds : each is a run of its own
    members : of the largest ensemble
    options : of :func:`benn_fpga.sw.train.learn`, for every network: net, width, epochs, ...
    advance : called after each network that was trained
    """

    data: object
    quick: bool = False
    seeds: tuple[int, ...] = (0, 1, 2)
    members: int = 8
    options: dict = field(default_factory=dict)
    advance: object = lambda steps=1: None

    def describe(self):
        return {"data": self.data.name, "quick": self.quick, "seeds": list(self.seeds),
                "members": self.members,
                **{key: value if isinstance(value, (int, bool)) else str(value)
                   for key, value in self.options.items()}}


# What experiments run with where the user does not say: weak networks, as the paper's are.
_QUICK = {"net": "mlp:32,16", "encoder": "threshold", "epochs": 12}
_WHOLE = {
    "digits": {"net": "mlp:32,16", "encoder": "threshold", "epochs": 40},
    "mnist": {"net": "mlp:32,32", "encoder": "threshold:64", "epochs": 8},
    "fashion-mnist": {"net": "mlp:32,32", "encoder": "thermometer:2", "epochs": 8},
    "cifar10": {"net": "nin", "width": 0.1, "epochs": 20},
}


def setting(data, *, quick=False, seeds=None, members=None, **options):
    """The :class:`Setting` of an experiment on ``data``; what is None is chosen."""
    chosen = _QUICK if quick else _WHOLE.get(data.name, _WHOLE["digits"])
    if len(data.shape) != 3 and chosen.get("net") == "nin":
        chosen = _WHOLE["digits"]
    given = {key: value for key, value in options.items() if value is not None}
    return Setting(data, quick, tuple(range(seeds or (2 if quick else 3))), members or 8,
                   {**chosen, **given})


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


def _measure(setting, **options):
    """Train with every seed and measure on the test part."""
    single, curves, bits, operations = [], [], 0, 0
    for seed in setting.seeds:
        trained = learn(setting.data, seed=seed, progress=False, **_fitting(setting, options))
        model = trained.export(setting.data.x_valid[:_PROVED])
        bits, operations = model.weight_bits, model.operations
        scores = evaluate(trained.network, trained.encoder, setting.data.x_test)
        single.append(float((scores.argmax(axis=2) == setting.data.y_test[:, None]).mean()))
        curves.append(analysis.curve(model, scores, setting.data.y_test))
        setting.advance(1)
    return Scores(single, curves, bits, operations)


def _fitting(setting, options):
    """All options of a network; an encoder with thresholds is for kinds that read single bits."""
    kind = nets.kind(options.get("kind", "ab"), **{key: options.get(key)
                                                   for key in ("bits", "wbits", "abits")})
    own = dict(setting.options)
    if kind.input_bits and "encoder" not in options:
        own.pop("encoder", None)
    return {**own, **options}


def _average(values):
    return sum(values) / len(values)


def _points(setting, scores, label):
    """The K-curve of a measurement."""
    longest = max(map(len, scores.curves))
    columns = [scores.at(k) for k in range(1, longest + 1)]
    return Line(label, list(range(1, longest + 1)), [100 * _average(c) for c in columns],
                [100 * float(np.std(c, ddof=1)) for c in columns]
                if len(setting.seeds) > 1 else None)


def _gap(a, b):
    """By how many points a is better than b, seed by seed: mean and standard error."""
    gaps = 100 * (np.array(a) - np.array(b))
    error = float(gaps.std(ddof=1)) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
    return float(gaps.mean()), error


def _points_text(gap):
    return f"{gap[0]:+.2f} ± {gap[1]:.2f} points"


def _better(gap):
    """Whether a gap is above zero by more than its standard error."""
    return gap[0] > gap[1]


VOTES_AXES = ("members that vote", "accuracy on the test part, %")


def bag_vs_boost(setting):
    """Every way to make an ensemble, members alone and their vote."""
    found = {name: _measure(setting, ensemble=name, members=setting.members)
             for name in presets.ENSEMBLES if name != "single"}
    half = max(1, setting.members // 2)
    rows = [[name, mean(s.single), mean(s.at(half)), mean(s.vote),
             "/".join(str(len(c)) for c in s.curves)] for name, s in found.items()]
    bag = found["bagging"]
    boosts = {name: s for name, s in found.items() if name in presets.BOOSTS}
    best = max(boosts, key=lambda name: _average(boosts[name].vote))
    gain = _gap(bag.vote, bag.single)
    return Report(
        name="bag-vs-boost", title="Bagging, boosting, independent seeds and joint training",
        columns=["ensemble", "member alone", f"vote of {half}", f"vote of {setting.members}",
                 "members"],
        rows=rows,
        claims=[
            Claim("An ensemble is better than its members", "+4.21 to +24.16 points (32 members)",
                  f"bagging {_points_text(gain)}", _better(gain)),
            Claim("Boosting beats bagging for weak networks",
                  "+2.51 (tiny) and +13.38 (nano) at the most; SB -0.12",
                  f"best of them, {best}: {_points_text(_gap(boosts[best].vote, bag.vote))}",
                  _better(_gap(boosts[best].vote, bag.vote))),
            Claim("Other seeds on all data (not in the paper) do as well as bagging",
                  "not shown",
                  _points_text(_gap(found["independent"].vote, bag.vote)),
                  _gap(found["independent"].vote, bag.vote)[0]
                  > -_gap(found["independent"].vote, bag.vote)[1]),
        ],
        lines=[_points(setting, s, name) for name, s in found.items()], axes=VOTES_AXES)


def seq_vs_indep(setting):
    """A member that starts from the one before it, or anew."""
    found = {(name, schedule): _measure(setting, ensemble=name, members=setting.members,
                                        schedule=schedule)
             for name in ("bagging", "boost-a", "boost-d") for schedule in presets.SCHEDULES}
    rows = [[name, schedule, mean(s.single), mean(s.vote)]
            for (name, schedule), s in found.items()]
    gaps = {name: _gap(found[name, "seq"].vote, found[name, "indep"].vote)
            for name in ("bagging", "boost-a", "boost-d")}
    boost = max(("boost-a", "boost-d"), key=lambda name: gaps[name][0])
    return Report(
        name="seq-vs-indep", title="Warm restart against independent members",
        columns=["ensemble", "schedule", "member alone", "vote"], rows=rows,
        claims=[
            Claim("Warm restart is better with bagging", "up to +3.9 points",
                  _points_text(gaps["bagging"]), _better(gaps["bagging"])),
            Claim("Warm restart is better with boosting", "up to +2.95 points",
                  f"{boost}: {_points_text(gaps[boost])}", _better(gaps[boost])),
        ],
        lines=[_points(setting, s, f"{name}, {schedule}")
               for (name, schedule), s in found.items()], axes=VOTES_AXES)


WIDTHS = {
    "1.0 (full)": (1.0, "84.91 / 89.12 / 89.00"),
    "0.5 (tiny)": (0.5, "77.20 / 84.09 / 84.32"),
    "0.1 (nano)": (0.1, "40.70 / 57.12 / 63.11 (500 members)"),
}


def compression(setting):
    """Narrow networks: alone, bagged and boosted."""
    widths = dict(list(WIDTHS.items())[1:]) if not setting.quick \
        and setting.options.get("net") == "nin" else WIDTHS
    rows, gains, lines = [], {}, []
    for label, (width, paper) in widths.items():
        bag, boost = (_measure(setting, ensemble=name, members=setting.members, width=width)
                      for name in ("bagging", "boost-d"))
        alone = _measure(setting, ensemble="single", members=1, width=width)
        rows.append([label, f"{bag.weight_bits // setting.members:,}", mean(alone.vote),
                     mean(bag.vote), mean(boost.vote), paper])
        gains[label] = _gap(bag.vote, alone.vote)
        lines += [_points(setting, bag, f"bagging, width {width}"),
                  _points(setting, boost, f"boost-d, width {width}")]
    first, last = next(iter(gains)), list(gains)[-1]
    return Report(
        name="compression", title="Networks of half and of a tenth of the width",
        columns=["width", "bits of a member", "single", "bagging", "boost-d",
                 "paper, SB on CIFAR-10: single / bagging / boosting"],
        rows=rows,
        claims=[Claim("The smaller the network, the more an ensemble gains",
                      "+4.21 (full), +6.89 (tiny), +16.42 (nano)",
                      f"{first}: {_points_text(gains[first])}; {last}: "
                      f"{_points_text(gains[last])}", gains[last][0] > gains[first][0])],
        lines=lines, axes=VOTES_AXES)


def bit_width(setting):
    """More bits in one network against more networks, by weights and by activations."""
    five = min(5, setting.members)
    configurations = {
        "AB": {"kind": "ab"}, "AQB, Q = 2": {"kind": "aqb", "bits": 2},
        "WQB, Q = 5": {"kind": "wqb", "bits": 5}, "IB": {"kind": "ib"}, "SB": {"kind": "sb"},
    }
    found = {label: _measure(setting, ensemble="bagging", members=setting.members, **options)
             for label, options in configurations.items()}
    rows = [[label, mean(s.single), mean(s.at(five)), mean(s.vote),
             f"{s.weight_bits // setting.members:,}"] for label, s in found.items()]
    wqb = _gap(found["SB"].at(five), found["WQB, Q = 5"].single)
    aqb = _gap(found["AQB, Q = 2"].vote, found["AB"].vote)
    activations = _gap(found["AQB, Q = 2"].single, found["AB"].single)
    weights = _gap(found["WQB, Q = 5"].single, found["AB"].single)
    return Report(
        name="bit-width", title="Bits of weights and of activations",
        columns=["kind", "member alone", f"vote of {five}", f"vote of {setting.members}",
                 "bits of a member"],
        rows=rows,
        claims=[
            Claim("Five networks (SB) beat one of 5-bit weights (WQB)", "about 86 against 80 %",
                  _points_text(wqb), _better(wqb)),
            Claim("With 2-bit activations the ensemble is much better than all-binary",
                  "figure only", _points_text(aqb), _better(aqb)),
            Claim("Bits of activations matter more than bits of weights", "figure only",
                  f"AQB-2 {_points_text(activations)}, WQB-5 {_points_text(weights)}",
                  activations[0] > weights[0]),
        ],
        lines=[_points(setting, s, label) for label, s in found.items()], axes=VOTES_AXES)


def first_last(setting):
    """What binary first and last layers cost, alone and in an ensemble."""
    found = {kind: _measure(setting, ensemble="bagging", members=setting.members, kind=kind)
             for kind in ("sb", "ib", "ab")}
    rows = [[kind.upper(), mean(s.single), mean(s.vote), paper] for (kind, s), paper in
            zip(found.items(), ("84.91 / 89.12", "80.9 / 86.8", "73.0 / 82.1"), strict=True)]
    alone = {kind: _gap(found["sb"].single, found[kind].single) for kind in ("ib", "ab")}
    voted = {kind: _gap(found["sb"].vote, found[kind].vote) for kind in ("ib", "ab")}
    return Report(
        name="first-last", title="First and last layer: 8 bits (SB), 8-bit input (IB), binary (AB)",
        columns=["kind", "member alone", f"vote of {setting.members}",
                 "paper on CIFAR-10: single / 32 members"],
        rows=rows,
        claims=[
            Claim("Binary first and last layers cost a single network accuracy",
                  "3.98 (IB) to 11.9 (AB) points",
                  f"IB {_points_text(alone['ib'])}, AB {_points_text(alone['ab'])}",
                  _better(alone["ab"])),
            Claim("They cost an ensemble less", "2.36 (IB) to 6.98 (AB) points",
                  f"IB {_points_text(voted['ib'])}, AB {_points_text(voted['ab'])}",
                  voted["ab"][0] < alone["ab"][0]),
        ],
        lines=[_points(setting, s, kind.upper()) for kind, s in found.items()], axes=VOTES_AXES)


def bits_or_networks(setting):
    """k-bit networks against one-bit networks of equal weight bits, and of equal operations.

    All read the input as it is.
    """
    depths = (1, 2, 3) if setting.quick else (1, 2, 3, 4)
    most = max(depths)
    one = _measure(setting, ensemble="independent", members=most * most, kind="ib")
    several = {k: _measure(setting, ensemble="single", members=1, kind="qnn", wbits=k, abits=k,
                           encoder="planes")
               for k in depths if k > 1}
    each = one.weight_bits // (most * most), one.operations // (most * most)
    rows, wins = [], []
    for k in depths:
        network = several[k].vote if k > 1 else one.at(1)
        cost = (several[k].weight_bits, several[k].operations) if k > 1 else each
        rows.append([k, f"{cost[0]:,}", f"{cost[1]:,}", mean(network), mean(one.at(k)),
                     mean(one.at(k * k))])
        if k > 1:
            wins.append((k, _gap(one.at(k), network), _gap(one.at(k * k), network)))
    bits = "; ".join(f"{k}: {_points_text(gap)}" for k, gap, _ in wins)
    work = "; ".join(f"{k}: {_points_text(gap)}" for k, _, gap in wins)
    return Report(
        name="bits-or-networks", title="More bits per network, or more networks per bit?",
        columns=["k", "weight bits of the k-bit network", "its one-bit products per frame",
                 "k-bit network", "k one-bit networks: equal weight bits",
                 "k*k one-bit networks: equal products"],
        rows=rows,
        claims=[
            Claim("k one-bit networks beat one k-bit network of as many weight bits",
                  "the question of the title: yes", bits, all(_better(gap) for _, gap, _ in wins)),
            Claim("... and of as many one-bit products k*k of them do",
                  "cost k of the ensemble, k*k of the k-bit network", work,
                  all(_better(gap) for _, _, gap in wins)),
        ],
        lines=[Line("k one-bit networks", list(depths),
                    [100 * _average(one.at(k)) for k in depths]),
               Line("k*k one-bit networks", list(depths),
                    [100 * _average(one.at(k * k)) for k in depths]),
               Line("one k-bit network", list(depths),
                    [100 * _average(several[k].vote if k > 1 else one.at(1)) for k in depths])],
        axes=("k", "accuracy on the test part, %"))


VARIANCES = (0.001, 0.01, 0.1)  # of noise on values in -1..1


def robustness_trained(setting):
    """Equation 2: change of the classification error under noise on the input."""
    rng = np.random.default_rng(0)
    large = max(5, setting.members)
    found = {"float network": [], "float network, binary input": [], "BNN": [], "BENN-5": [],
             f"BENN-{large}": []}
    for seed in setting.seeds:
        common = {**setting.options, "seed": seed, "progress": False}
        plain = learn(setting.data, ensemble="single", kind="dnn", **{
            **common, "encoder": None})
        benn = learn(setting.data, ensemble="independent", members=large, **common)
        coarse = learn(setting.data, ensemble="single", kind="dnn", **{
            **common, "encoder": benn.provenance["encoder"]})
        setting.advance(3)
        for label, trained, members in (
                ("float network", plain, 1), ("float network, binary input", coarse, 1),
                ("BNN", benn, 1), ("BENN-5", benn, 5), (f"BENN-{large}", benn, large)):
            found[label].append([noise.error_change(
                trained, members, setting.data, variance, 5 if setting.quick else 20, rng)
                for variance in VARIANCES])
    means = {label: np.mean(values, axis=0).tolist() for label, values in found.items()}
    rows = [[label, *(f"{v:.2f}" for v in values)] for label, values in means.items()]
    bnn, best, plain = means["BNN"], means[f"BENN-{large}"], means["float network"]
    return Report(
        name="robustness-trained", title="Equation 2: trained networks, noise on the input",
        columns=["network", *(f"variance {v}" for v in VARIANCES)], rows=rows,
        claims=[
            Claim("A binary network is more sensitive than a float one", "figure only",
                  f"{bnn[1]:.2f} against {plain[1]:.2f} %² at variance 0.01", bnn[1] > plain[1]),
            Claim("The ensemble cures that", "figure only",
                  f"BENN-{large} {best[1]:.2f} against {bnn[1]:.2f} %²", best[1] < bnn[1]),
        ],
        lines=[Line(label, list(VARIANCES), values) for label, values in means.items()],
        axes=("variance of the noise", "mean square change of the error, %²"), scale="log")


def theory(setting):
    """B and R of the appendix in closed form."""
    return noise.theory(400_000 if setting.quick else 4_000_000, np.random.default_rng(0))


def robustness_random(setting):
    """Equation 1 on networks with random weights."""
    x = setting.data.x_train[:500].reshape(-1, setting.data.x_train[0].size)
    x = x / (setting.data.high / 2) - 1
    sizes = (x.shape[1], 128, 64, setting.data.classes)
    return noise.random_networks(x, sizes, 0.01, 10 if setting.quick else 60,
                                 np.random.default_rng(0), setting.advance)


EXPERIMENTS = {
    "theory": theory,
    "robustness-random": robustness_random,
    "robustness-trained": robustness_trained,
    "stability": stability.stability,
    "bag-vs-boost": bag_vs_boost,
    "seq-vs-indep": seq_vs_indep,
    "compression": compression,
    "bit-width": bit_width,
    "first-last": first_last,
    "bits-or-networks": bits_or_networks,
}


def run(name, setting, command=""):
    """The :class:`~benn_fpga.sw.report.Report` of the experiment called ``name``."""
    if name not in EXPERIMENTS:
        raise BennError(f"Experiment must be one of {', '.join(EXPERIMENTS)}, not {name!r}")
    start = time.perf_counter()
    report = EXPERIMENTS[name](setting)
    return replace(report, command=command, seconds=round(time.perf_counter() - start, 1),
                   settings={**setting.describe(), **report.settings})
