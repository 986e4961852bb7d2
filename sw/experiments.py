"""The experiments of the paper, each with the paper's own figures beside ours.

Accuracy is that of the exported integers, by the golden model, on the test part. Figures are means
over seeds with the standard deviation; differences are paired by seed, with the standard error, and
verdict.py says when they decide a claim. What a report says of its settings is collected from the
trainings that took place.
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from benn_fpga import analysis, golden, presets
from benn_fpga.errors import BennError
from benn_fpga.presets import DATA_OPTIONS, EXPERIMENTS, MEMBERS, WITHOUT_DATA
from benn_fpga.settings import Settings
from benn_fpga.sw import noise, stability
from benn_fpga.sw.report import Claim, Line, Report, mean, spread
from benn_fpga.sw.train import learn, versions
from benn_fpga.sw.verdict import best, gap

__all__ = ["FUNCTIONS", "Setting", "check", "run", "setting"]

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
class Setting:
    """What an experiment runs on.

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

    def learn(self, seed, options, watch=None):
        """:func:`~benn_fpga.sw.train.learn` with ``options`` of :class:`Settings`, on record."""
        trained = learn(self.data, Settings(seed=seed, **options), watch=watch, progress=False)
        self.trainings.append(trained.provenance)
        self.advance(1)
        return trained

    @property
    def weak(self):
        """Options of a network where nothing is said."""
        name = "quick" if self.quick else self.data.name
        return _WEAK.get(name, _WEAK["digits"])

    def options(self, **own):
        """All options of a network: defaults, then what the user gave, then the experiment's own.

        An encoder with thresholds is for kinds that read single bits.
        """
        chosen = {**self.weak, **self.given, **own}
        kind = Settings(**chosen).network_kind()
        if kind.input_bits and "encoder" not in own and "encoder" not in self.given:
            chosen.pop("encoder", None)
        return chosen

    def encoder(self, options):
        """The encoder that a network with ``options`` reads."""
        data = self.data
        return presets.encoder(Settings(**options).resolve(data).encoder, data.shape, data.bits,
                               data.high, data.x_train)


def setting(data, *, quick=False, seeds=None, members=None, **options):
    """The :class:`Setting` of an experiment on ``data``; what is None is chosen."""
    given = {key: value for key, value in options.items() if value is not None}
    return Setting(data, quick, tuple(range(3 if seeds is None else seeds)),
                   MEMBERS if members is None else members, given)


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


def measure(setting, **own):
    """:class:`Scores` of a network trained with every seed."""
    single, curves, bits, operations = [], [], 0, 0
    x, y = setting.data.x_test, setting.data.y_test
    for seed in setting.seeds:
        trained = setting.learn(seed, setting.options(**own))
        model = trained.export(setting.data.x_valid[:_PROVED])
        bits, operations = model.weight_bits, model.operations
        result = golden.run(model, x)
        single.append(float((result.member_classes == y[:, None]).mean()))
        curves.append(analysis.curve(model, result.scores, y))
    return Scores(single, curves, bits, operations)


def tuned(setting, **own):
    """``own`` with the learning rate that is best for a single network on the validation part.

    A third of the data set's, that, and three times that are tried, with the first seed, unless
    the user gave one.
    """
    if "lr" in setting.given:
        return own
    told = {**setting.options(**own), "ensemble": "single"}
    middle = Settings(**told).resolve(setting.data).lr
    right = {}
    for rate in (middle, middle / 3, middle * 3):
        trained = setting.learn(setting.seeds[0], {**told, "lr": rate})
        right[rate] = trained.provenance["scores"]["validation"]["correct"]
    return {**own, "lr": max(right, key=right.get)}


def rates(tuned_options):
    """The learning rates that were chosen among those tried, for the settings of a report."""
    chosen = {label: f"{options['lr']:.3g}" for label, options in tuned_options.items()
              if "lr" in options}
    return {"lr chosen": chosen} if chosen else {}


def _average(values):
    return sum(values) / len(values)


def _line(setting, scores, label):
    """The K-curve of a measurement."""
    longest = max(map(len, scores.curves))
    columns = [scores.at(k) for k in range(1, longest + 1)]
    return Line(label, list(range(1, longest + 1)), [100 * _average(c) for c in columns],
                [100 * float(np.std(c, ddof=1)) for c in columns]
                if len(setting.seeds) > 1 else None)


def _points(a, b):
    """By how many points a is better than b."""
    return gap(a, b, 100)


VOTES_AXES = ("members that vote", "accuracy on the test part, %")


def bag_vs_boost(setting):
    """Every way to make an ensemble, members alone and their vote."""
    found = {name: measure(setting, ensemble=name,
                           members=1 if name == "single" else setting.members)
             for name in presets.ENSEMBLES}
    half = max(1, setting.members // 2)
    single, bag, seeds = found["single"], found["bagging"], found["independent"]
    gain = _points(bag.vote, single.vote)
    boost, ahead, held = best({name: _points(found[name].vote, bag.vote)
                               for name in presets.BOOSTS})
    other = _points(seeds.vote, bag.vote)
    return Report(
        name="bag-vs-boost", title="Bagging, boosting, independent seeds and joint training",
        columns=["ensemble", "member alone", f"vote of {half}", f"vote of {setting.members}",
                 "members"],
        rows=[[name, mean(s.single), mean(s.at(half)), mean(s.vote),
               "/".join(str(len(c)) for c in s.curves)] for name, s in found.items()],
        claims=[
            Claim("An ensemble is better than a single network",
                  "+4.21 to +24.16 points (32 members)", f"bagging {gain} points", gain.held()),
            Claim("Boosting beats bagging for weak networks",
                  "+2.51 (tiny) and +13.38 (nano) at the most; SB -0.12",
                  f"best of {len(presets.BOOSTS)}, {boost}: {ahead} points", held),
            Claim("Other seeds on all data beat bagging", "not in the paper",
                  f"{other} points", other.held()),
        ],
        lines=[_line(setting, s, name) for name, s in found.items() if name != "single"],
        axes=VOTES_AXES)


def seq_vs_indep(setting):
    """A member that starts from the one before it, or anew."""
    names = ("bagging", "boost-a", "boost-d")
    found = {(name, schedule): measure(setting, ensemble=name, members=setting.members,
                                       schedule=schedule)
             for name in names for schedule in presets.SCHEDULES}
    ahead = {name: _points(found[name, "seq"].vote, found[name, "indep"].vote) for name in names}
    bag = ahead.pop("bagging")
    boost, most, held = best(ahead)
    return Report(
        name="seq-vs-indep", title="Warm restart against independent members",
        columns=["ensemble", "schedule", "member alone", "vote"],
        rows=[[name, schedule, mean(s.single), mean(s.vote)]
              for (name, schedule), s in found.items()],
        claims=[
            Claim("Warm restart is better with bagging", "up to +3.9 points", f"{bag} points",
                  bag.held()),
            Claim("Warm restart is better with boosting", "up to +2.95 points",
                  f"best of {len(ahead)}, {boost}: {most} points", held),
        ],
        lines=[_line(setting, s, f"{name}, {schedule}")
               for (name, schedule), s in found.items()], axes=VOTES_AXES)


WIDTHS = {
    "1.0 (full)": (1.0, "84.91 / 89.12 / 89.00"),
    "0.5 (tiny)": (0.5, "77.20 / 84.09 / 84.32"),
    "0.1 (nano)": (0.1, "40.70 / 57.12 / 63.11 (500 members)"),
}
# A tenth of the weak network's width would be a network of single neurons.
_COMPRESSIBLE = "mlp:256,128"


def compression(setting):
    """Narrow networks: alone, bagged and boosted."""
    net = setting.given.get("net") or setting.weak["net"]
    if "net" not in setting.given and net.startswith("mlp"):
        net = _COMPRESSIBLE
    widths = {label: item for label, item in WIDTHS.items() if item[0] < 1 or net != "nin"}
    rows, gains, lines = [], {}, []
    for label, (width, paper) in widths.items():
        alone, bag, boost = (
            measure(setting, net=net, ensemble=name, width=width,
                    members=1 if name == "single" else setting.members)
            for name in ("single", "bagging", "boost-d"))
        rows.append([label, f"{alone.weight_bits:,}", mean(alone.vote), mean(bag.vote),
                     mean(boost.vote), paper])
        gains[label] = np.subtract(bag.vote, alone.vote)
        lines += [_line(setting, bag, f"bagging, width {width}"),
                  _line(setting, boost, f"boost-d, width {width}")]
    first, last = next(iter(gains)), list(gains)[-1]
    more = _points(gains[last], gains[first])
    return Report(
        name="compression", title="Networks of half and of a tenth of the width",
        columns=["width", "bits of a member", "single", "bagging", "boost-d",
                 "paper, SB on CIFAR-10: single / bagging / boosting"],
        rows=rows,
        claims=[Claim("The smaller the network, the more an ensemble gains",
                      "+4.21 (full), +6.89 (tiny), +16.42 (nano)",
                      f"{first} {100 * gains[first].mean():+.2f}, {last} "
                      f"{100 * gains[last].mean():+.2f}: {more} points more", more.held())],
        lines=lines, axes=VOTES_AXES)


def bit_width(setting):
    """More bits in one network against more networks, by weights and by activations."""
    five = min(5, setting.members)
    kinds = {label: tuned(setting, **options) for label, options in {
        "AB": {"kind": "ab"}, "AQB, Q = 2": {"kind": "aqb", "bits": 2},
        "WQB, Q = 5": {"kind": "wqb", "bits": 5}, "IB": {"kind": "ib"}, "SB": {"kind": "sb"},
    }.items()}
    alone = {label: measure(setting, ensemble="single", **options)
             for label, options in kinds.items()}
    found = {label: measure(setting, ensemble="bagging", members=setting.members, **options)
             for label, options in kinds.items()}
    one, many = alone["WQB, Q = 5"], found["AB"]
    networks = _points(many.at(five), one.vote)
    ensemble = _points(found["AQB, Q = 2"].vote, many.vote)
    sides = {label: np.subtract(alone[label].vote, alone["AB"].vote)
             for label in ("AQB, Q = 2", "WQB, Q = 5")}
    activations = _points(*sides.values())
    return Report(
        name="bit-width", title="Bits of weights and of activations",
        columns=["kind", "single", "bits of a member", f"vote of {five}",
                 f"vote of {setting.members}"],
        rows=[[label, mean(alone[label].vote), f"{alone[label].weight_bits:,}", mean(s.at(five)),
               mean(s.vote)] for label, s in found.items()],
        claims=[
            Claim("Five binary networks beat one of 5-bit weights",
                  "about 86 (SB, of more bits than WQB) against 80 %",
                  f"AB, {five * alone['AB'].weight_bits:,} bits, against WQB, "
                  f"{one.weight_bits:,} bits: {networks} points", networks.held()),
            Claim("With 2-bit activations, and input, the ensemble is better than all-binary",
                  "figure only", f"{ensemble} points", ensemble.held()),
            Claim("2 bits of activations, and input, gain more than 5 bits of weights",
                  "figure only", f"{activations} points", activations.held()),
        ],
        lines=[_line(setting, s, label) for label, s in found.items()], axes=VOTES_AXES,
        settings=rates(kinds))


def first_last(setting):
    """What binary first and last layers cost, alone and in an ensemble."""
    kinds = {kind: tuned(setting, kind=kind) for kind in ("sb", "ib", "ab")}
    alone = {kind: measure(setting, ensemble="single", **options)
             for kind, options in kinds.items()}
    found = {kind: measure(setting, ensemble="bagging", members=setting.members, **options)
             for kind, options in kinds.items()}
    paper = {"sb": "84.91 / 89.12", "ib": "80.9 / 86.8", "ab": "73.0 / 82.1"}
    cost = {kind: (np.subtract(alone["sb"].vote, alone[kind].vote),
                   np.subtract(found["sb"].vote, found[kind].vote)) for kind in ("ib", "ab")}
    none = np.zeros(len(setting.seeds))
    single = {kind: _points(each[0], none) for kind, each in cost.items()}
    less = {kind: _points(*each) for kind, each in cost.items()}
    return Report(
        name="first-last", title="First and last layer: 8 bits (SB), 8-bit input (IB), binary (AB)",
        columns=["kind", "single", f"vote of {setting.members}",
                 "paper on CIFAR-10: single / 32 members"],
        rows=[[kind.upper(), mean(alone[kind].vote), mean(s.vote), paper[kind]]
              for kind, s in found.items()],
        claims=[
            Claim("Binary first and last layers cost a single network accuracy",
                  "3.98 (IB) to 11.9 (AB) points",
                  f"IB {single['ib']}, AB {single['ab']} points", single["ab"].held()),
            Claim("They cost an ensemble less", "2.36 (IB) to 6.98 (AB) points",
                  f"IB {less['ib']}, AB {less['ab']} points less", less["ab"].held()),
        ],
        lines=[_line(setting, s, kind.upper()) for kind, s in found.items()], axes=VOTES_AXES,
        settings=rates(kinds))


def bits_or_networks(setting):
    """k-bit networks against one-bit networks of equal weight bits, and of equal operations.

    A network of k bits reads the highest k bits of each value, those of one bit a comparison with
    a threshold: it then costs k times the weight bits of a one-bit network, and k*k its products.
    As that gives the k-bit network more to see, both are compared on all bits of the input too.
    """
    depths = (1, 2, 3) if setting.quick else (1, 2, 3, 4)
    more, most = depths[1:], max(depths) ** 2
    own = {k: tuned(setting, kind="qnn", wbits=k, abits=k) if k > 1 else
           tuned(setting, kind="ab") for k in depths}
    full = {k: tuned(setting, kind="qnn", wbits=k, abits=k, encoder="planes") if k > 1 else
            tuned(setting, kind="ib") for k in depths}
    one = measure(setting, ensemble="independent", members=most, **own[1])
    seeing = measure(setting, ensemble="independent", members=max(depths), **full[1])
    several, all_bits = ({k: measure(setting, ensemble="single", **kinds[k]) for k in more}
                         for kinds in (own, full))

    def network(k, found, ensemble):
        return found[k].vote if k > 1 else ensemble.at(1)

    def claim(text, paper, gaps):
        verdicts = {item.held(len(gaps)) for item in gaps.values()}
        held = False if False in verdicts else None if None in verdicts else True
        return Claim(text, paper, "; ".join(f"k = {k}: {item}" for k, item in gaps.items())
                     + " points", held)

    each = one.weight_bits // most, one.operations // most
    return Report(
        name="bits-or-networks", title="More bits per network, or more networks per bit?",
        columns=["k", "weight bits of the k-bit network", "of k one-bit networks",
                 "k-bit network", "k one-bit networks", "products of the k-bit network",
                 "of k*k one-bit networks", "k*k one-bit networks",
                 "k-bit network, all bits of the input", "k one-bit networks, all bits"],
        rows=[[k, *(f"{bits:,}" for bits in (several[k].weight_bits if k > 1 else each[0],
                                            k * each[0])),
               mean(network(k, several, one)), mean(one.at(k)),
               *(f"{products:,}" for products in (several[k].operations if k > 1 else each[1],
                                                 k * k * each[1])),
               mean(one.at(k * k)), mean(network(k, all_bits, seeing)), mean(seeing.at(k))]
              for k in depths],
        claims=[
            claim("k one-bit networks beat one k-bit network of as many weight bits",
                  "the question of the title: yes",
                  {k: _points(one.at(k), several[k].vote) for k in more}),
            claim("k*k one-bit networks beat one k-bit network of as many one-bit products",
                  "cost k of the ensemble, k*k of the k-bit network",
                  {k: _points(one.at(k * k), several[k].vote) for k in more}),
            claim("k one-bit networks beat one k-bit network of as many weight bits where all read "
                  "all bits of the input", "not in the paper",
                  {k: _points(seeing.at(k), all_bits[k].vote) for k in more}),
        ],
        lines=[Line(label, list(depths), [100 * _average(values(k)) for k in depths])
               for label, values in (
                   ("one k-bit network", lambda k: network(k, several, one)),
                   ("k one-bit networks", one.at),
                   ("k*k one-bit networks", lambda k: one.at(k * k)),
                   ("one k-bit network, all bits of the input",
                    lambda k: network(k, all_bits, seeing)),
                   ("k one-bit networks, all bits of the input", seeing.at))],
        axes=("k", "accuracy on the test part, %"),
        settings=rates({f"{k} bit{suffix}": options for kinds, suffix in (
            (own, ""), (full, ", all of the input")) for k, options in kinds.items()}))


def robustness_trained(setting):
    """Equation 2: change of the classification error under noise on the input."""
    large = setting.members
    sizes = {k: f"BENN-{k}" if k > 1 else "BNN" for k in (1, min(5, large), large)}
    floats = {"float network": "planes", "float network, binary input": None}
    found = {label: [] for label in (*floats, *sizes.values())}
    for seed in setting.seeds:
        benn = setting.learn(seed, setting.options(ensemble="independent", members=large))
        networks = {label: (benn, members) for members, label in sizes.items()}
        for label, encoder in floats.items():
            networks[label] = setting.learn(seed, setting.options(
                ensemble="single", kind="dnn", encoder=encoder or benn.provenance["encoder"])), 1
        for label, (trained, members) in networks.items():
            found[label].append([noise.error_change(
                trained, members, setting.data, variance, 5 if setting.quick else 20,
                np.random.default_rng([seed, n])) for n, variance in enumerate(noise.VARIANCES)])
    found = {label: np.array(values) for label, values in found.items()}
    plain, coarse, bnn, best_ = (
        found[label][:, noise.VARIANCES.index(noise.MAIN)]
        for label in (*floats, sizes[1], sizes[large]))
    sensitive, cured, same = gap(bnn, plain), gap(bnn, best_), gap(coarse, best_)
    return Report(
        name="robustness-trained", title="Equation 2: trained networks, noise on the input",
        columns=["network", *(f"variance {v}" for v in noise.VARIANCES)],
        rows=[[label, *(spread(list(column)) for column in values.T)]
              for label, values in found.items()],
        claims=[
            Claim("A binary network is more sensitive than a float one", "figure only",
                  f"{bnn.mean():.2f} against {plain.mean():.2f} %² at variance {noise.MAIN}: "
                  f"{sensitive}", sensitive.held()),
            Claim("The ensemble is less sensitive than one of its members", "figure only",
                  f"{sizes[large]} {best_.mean():.2f} against {bnn.mean():.2f} %²: {cured}",
                  cured.held()),
            Claim("... and less than a float network that reads the same binary input",
                  "figure only: \"cures\"", f"{best_.mean():.2f} against {coarse.mean():.2f} %²: "
                  f"{same}", same.held()),
        ],
        lines=[Line(label, list(noise.VARIANCES), values.mean(axis=0).tolist())
               for label, values in found.items()],
        axes=("variance of the noise", "mean square change of the error, %²"), scale="log")


def theory(setting):
    """B and R of the appendix in closed form."""
    return noise.theory(400_000 if setting.quick else 4_000_000, setting.seeds, setting.advance)


def robustness_random(setting):
    """Equation 1 on networks with random weights."""
    data = setting.data
    x = data.x_train[:500].reshape(-1, data.x_train[0].size) / (data.high / 2) - 1
    sizes = (x.shape[1], 128, 64, data.classes)
    report = noise.random_networks(x, sizes, 3 if setting.quick else 20, setting.seeds,
                                   setting.advance)
    return replace(report, settings={"data": data.name, "data_sha256": data.sha256,
                                     "frames": {"train": len(x)}, **report.settings})


FUNCTIONS = {
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


def check(name, given):
    """Raise unless there is an experiment ``name`` that takes the options ``given``."""
    if name not in EXPERIMENTS:
        raise BennError(f"Experiment must be one of {', '.join(EXPERIMENTS)}, not {name!r}")
    takes = EXPERIMENTS[name] if name in WITHOUT_DATA else (*DATA_OPTIONS, *EXPERIMENTS[name])
    for option in given:
        if option not in takes:
            known = ", ".join(map(_flag, takes)) or "none of them"
            raise BennError(f"Experiment {name} does not take {_flag(option)}; of the options of "
                            f"data and training it takes {known}")


def _flag(option):
    return f"--{option.replace('_', '-')}"


def used(trainings):
    """Each setting of ``trainings``: its value, or all its values in a list if they differ."""
    values = {}
    for told in trainings:
        for key, value in told.items():
            known = values.setdefault(key, [])
            if key not in _FOUND and value not in known:
                known.append(value)
    seeds = {"seeds": values.pop("seed")} if "seed" in values else {}
    return seeds | {key: known if len(known) > 1 else known[0] for key, known in values.items()
                    if known}


def run(name, setting, command=""):
    """The :class:`~benn_fpga.sw.report.Report` of the experiment called ``name``."""
    check(name, setting.given)
    start = time.perf_counter()
    setting = replace(setting, trainings=[])
    report = FUNCTIONS[name](setting)
    return replace(report, command=command, seconds=round(time.perf_counter() - start, 1),
                   settings={**used(setting.trainings), **report.settings, "quick": setting.quick,
                             "versions": versions()})
