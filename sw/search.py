"""Networks of limited size: drawn at random, thinned out by successive halving on validation data.

Every candidate uses as much of the limit, or of a half or a quarter of it, as its widths allow. All
are trained for a short time, the best third for longer, and the best of these as long as any
network of the data set. Nothing here looks at the test part.
"""

import dataclasses
import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from benn_fpga import nets, presets
from benn_fpga.accuracy import interval
from benn_fpga.errors import BennError
from benn_fpga.layers import weight_bits
from benn_fpga.progress import bar
from benn_fpga.settings import Settings
from benn_fpga.sw import data
from benn_fpga.sw.checkpoint import Checkpoint
from benn_fpga.sw.train import digest, learn

__all__ = ["Candidate", "Found", "Limit", "Trial", "draw", "front", "search"]

SHARES = (1, 2, 4)  # of the limit: all, a half, a quarter
MEMBERS = (1, 2, 3, 4, 5, 6, 8, 12, 16)
ENSEMBLES = ("independent", "bagging", "boost-d", "average")
LEVELS = (2, 3, 4, 6, 8)
# Hidden widths that have divisors, so that they can be folded.
WIDTHS = (4, 6, *range(8, 64, 4), *range(64, 1025, 8))
FEWER = 3  # times as many candidates in a rung as in the next, which train as much longer
RUNGS = ((9, 1), (3, 2), (1, 4))  # part of all epochs, and of how many folds
FOLDS = 4
_ENOUGH = 1000  # validation frames, of which one part will do
_SLOW = 4  # times its share of a rung's time that a training may take


@dataclass(frozen=True)
class Limit:
    """At most ``most`` of what ``cost(layers, members)`` counts, in words ``unit``."""

    most: int
    cost: Callable
    unit: str


@dataclass(frozen=True)
class Candidate:
    """A network that may be trained.

    Members
    -------
    net, width, encoder, kind, members, ensemble : as in :class:`~benn_fpga.settings.Settings`
    weight_bits : of all members
    cost : as the limit counts
    share : it was made for the limit divided by this
    """

    net: str
    width: float
    encoder: str
    kind: str
    members: int
    ensemble: str
    weight_bits: int
    cost: int
    share: int

    def settings(self, **others):
        return Settings(net=self.net, width=self.width, encoder=self.encoder, kind=self.kind,
                        members=self.members, ensemble=self.ensemble, **others)


@dataclass(frozen=True)
class Trial:
    """A candidate, how long it was trained last, and on validation frames the right answers."""

    candidate: Candidate
    epochs: int
    folds: int
    correct: int
    frames: int

    @property
    def accuracy(self):
        return self.correct / self.frames

    def describe(self):
        return {**dataclasses.asdict(self.candidate), "epochs": self.epochs, "folds": self.folds,
                "correct": self.correct, "frames": self.frames, "accuracy": self.accuracy,
                "interval": list(interval(self.correct, self.frames))}


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Members
    -------
    trials : the last one of every candidate that was trained, those of the last rung first, the
        best first; the first is the winner
    drawn : number of candidates
    settings : of the winner, for its training
    stopped : what the time did not suffice for, or None
    """

    trials: list
    drawn: int
    settings: Settings
    stopped: str | None

    @property
    def winner(self):
        return self.trials[0]


def front(trials):
    """Those of the longest trained ``trials`` that none of fewer bits equals, by bits."""
    longest, chosen = max((trial.epochs, trial.folds) for trial in trials), []
    for trial in sorted(trials, key=lambda t: (t.candidate.weight_bits, -t.accuracy)):
        if (trial.epochs, trial.folds) == longest and (
                not chosen or trial.accuracy > chosen[-1].accuracy):
            chosen.append(trial)
    return chosen


class _Space:
    """The networks that there are for a data set."""

    def __init__(self, dataset, limit):
        self._dataset, self._limit = dataset, limit
        self._layers = cache(self._build)
        high, default = dataset.high, presets.defaults(dataset)
        levels = [f"thermometer:{n}" for n in LEVELS if n <= high]
        encoders = {"threshold": "ab", **dict.fromkeys(levels, "ab")}
        if dataset.bits > 1:
            encoders["planes"] = "ib"
        self.encoders = {default.encoder: "ab", **encoders}
        # Each network by its size, from the smallest.
        self.nets = {
            "linear": [("mlp:", 1.0)],
            "mlp 1": [(f"mlp:{w}", 1.0) for w in WIDTHS],
            "mlp 2": [(f"mlp:{w},{w // 2}", 1.0) for w in WIDTHS],
            "mlp 3": [(f"mlp:{w},{w},{w}", 1.0) for w in WIDTHS],
        }
        if len(dataset.shape) == 3:
            for net in ("lenet", "nin", "cnv"):
                self.nets[net] = [(net, n / 20) for n in range(1, 21)]

    def default(self):
        """The default for data that has none of its own, as wide as the limit allows."""
        return self.largest("mlp 2", next(iter(self.encoders)), presets.MEMBERS, "independent", 1)

    def smallest(self):
        """The candidate that costs least."""
        small = [self._candidate(size, encoder, 1, "single", 1)
                 for name, sizes in self.nets.items() for encoder in self.encoders
                 for size in (sizes[0],)]
        return min((candidate for candidate in small if candidate), key=lambda c: c.cost)

    def largest(self, name, encoder, members, ensemble, share):
        """The widest candidate that keeps the limit divided by ``share``; None if none does."""
        sizes, best = self.nets[name], None
        low, high = 0, len(sizes)
        while low < high:
            middle = (low + high) // 2
            candidate = self._candidate(sizes[middle], encoder, members, ensemble, share)
            if candidate is not None and candidate.cost * share <= self._limit.most:
                best, low = candidate, middle + 1
            else:
                high = middle
        return best

    def _candidate(self, size, encoder, members, ensemble, share):
        layers = self._layers(*size, encoder)
        return layers and Candidate(
            *size, encoder, self.encoders[encoder], members, ensemble,
            members * weight_bits(layers), self._limit.cost(layers, members), share)

    def _build(self, net, width, encoder):
        """The layers of a network; None if there is none for images that are so small."""
        dataset, kind = self._dataset, nets.kind(self.encoders[encoder])
        coder = presets.encoder(encoder, dataset.shape, dataset.bits, dataset.high)
        try:
            return nets.build(net, coder, dataset.classes, kind, width=width)
        except BennError:
            return None


def draw(dataset, limit, trials, seed):
    """At most ``trials`` different candidates within ``limit``, the default's shape first."""
    space, rng = _Space(dataset, limit), random.Random(seed)
    smallest = space.smallest()
    if smallest.cost > limit.most:
        raise BennError(f"no network has at most {limit.most:,} {limit.unit}: the smallest, "
                        f"{smallest.net} with encoder {smallest.encoder} and one member, has "
                        f"{smallest.cost:,}; allow more")
    drawn = {}
    for n in range(100 * trials):  # where few networks fit, most draws are in vain
        if n == 0:
            candidate = space.default()
        else:
            members = rng.choice(MEMBERS)
            candidate = space.largest(
                rng.choice(list(space.nets)), rng.choice(list(space.encoders)), members,
                "single" if members == 1 else rng.choice(ENSEMBLES),
                rng.choice((SHARES[0], *SHARES)))
        if candidate is not None:
            drawn.setdefault(dataclasses.replace(candidate, share=1), candidate)
        if len(drawn) == trials:
            break
    return list(drawn.values()) or [smallest]


class _TimeIsUp(Exception):
    pass


class _Clock:
    """Time that a search has taken, over all its runs."""

    def __init__(self, saved, seconds):
        _, tensors = saved.get("time")
        self._before = 0.0 if tensors is None else float(tensors["seconds"])
        self._start = time.monotonic()
        self.seconds = seconds

    def now(self):
        return self._before + time.monotonic() - self._start

    def keep(self, saved):
        saved.put("time", 0, {"seconds": torch.tensor(self.now(), dtype=torch.float64)}, False)


def search(dataset, limit, *, trials, seconds, seed=0, epochs=None, checkpoint=None, resume=False,
           workers=None, progress=None):
    """Search networks for ``dataset`` within ``limit``; returns what was :class:`Found`.

    The same arguments give the same result unless ``seconds`` end, however often it was resumed.

    Parameters
    ----------
    dataset : a :class:`~benn_fpga.sw.data.Dataset`
    limit : a :class:`Limit`
    trials : candidates at the start
    seconds : that all rungs together may take; each has its share of them
    seed : of what is drawn, and of the trainings
    epochs : of the last rung; those of the data set if None
    checkpoint, resume, workers, progress : as in :func:`benn_fpga.sw.train.learn`
    """
    epochs = Settings(epochs=epochs, seed=seed).resolve(dataset).epochs
    candidates = draw(dataset, limit, trials, seed)
    saved = Checkpoint(checkpoint, {
        "limit": f"{limit.most} {limit.unit}", "data": dataset.name, "data_sha256": dataset.sha256,
        "training frames": digest(dataset), "trials": trials, "seed": seed, "epochs": epochs,
    }, resume)
    parts = _parts(dataset)
    sizes = [len(candidates), *(min(-(-len(candidates) // FEWER ** n) + len(SHARES) - 1,
                                    len(candidates)) for n in range(1, len(RUNGS)))]
    plan = [(-(-epochs // part), min(folds, len(parts)), size)
            for (part, folds), size in zip(RUNGS, sizes, strict=True)]
    clock, last, stopped = _Clock(saved, seconds), {}, None
    with bar("search", sum(e * f * n for e, f, n in plan), progress) as tick:
        for n, (length, folds, size) in enumerate(plan):
            candidates = _survivors(candidates, last, size)
            end = seconds * (n + 1) / len(plan)
            share = _SLOW * seconds / len(plan) / (len(candidates) * folds)
            done = 0
            for candidate in candidates:
                run = _Training(candidate, candidate.settings(seed=seed, epochs=length), saved,
                                clock, min(end, clock.now() + share * folds), workers)
                trial = run.trial(parts[:folds], length, tick)
                if trial is not None:
                    last[candidate], done = trial, done + 1
            if done < len(candidates):
                stopped = stopped or (f"the time was too short for {len(candidates) - done} of the "
                                      f"{len(candidates)} networks of round {n + 1}")
    if not last:
        raise BennError(f"no network could be trained in {seconds / 60:g} minutes; allow more with "
                        f"`time`, or use less data")
    ranked = sorted(last.values(), key=_rank)
    winner = ranked[0].candidate.settings(seed=seed, epochs=epochs)
    return Found(ranked, sizes[0], winner, stopped)


def _rank(trial):
    return -trial.epochs, -trial.folds, -trial.accuracy, trial.candidate.cost


def _survivors(candidates, last, count):
    """The best ``count``, among them the best of each share of the limit: what fewer bits cost is
    to be seen."""
    if not last:
        return candidates
    ranked = [trial.candidate for trial in sorted(last.values(), key=_rank)]
    best = [next((c for c in ranked if c.share == share), None) for share in SHARES]
    first = [c for c in ranked if c in best]
    return (first + [c for c in ranked if c not in best])[:count]


def _parts(dataset):
    """The data with its validation part if that is large enough, else folds of both."""
    frames = len(dataset.x_train) + len(dataset.x_valid)
    if len(dataset.x_valid) >= _ENOUGH or frames < 2 * FOLDS:
        return [dataset]
    return list(data.folds(dataset, FOLDS))


@dataclass(frozen=True)
class _Training:
    """One candidate in one rung; it must end at ``end`` of ``clock``."""

    candidate: Candidate
    settings: Settings
    saved: Checkpoint
    clock: _Clock
    end: float
    workers: int | None

    def trial(self, parts, length, tick):
        """The :class:`Trial`; None if there was no time for it."""
        correct = 0
        for n, part in enumerate(parts):
            right = self._correct(f"{self._name(length)} {n}", part)
            tick(length)
            if right is None:
                return None
            correct += right
        frames = sum(len(part.x_valid) for part in parts)
        return Trial(self.candidate, length, len(parts), correct, frames)

    def _name(self, length):
        return f"{hashlib.sha256(repr(self.candidate).encode()).hexdigest()[:16]} {length}"

    def _correct(self, name, part):
        """Right answers on the validation frames of ``part``; trained only if not known yet."""
        _, tensors = self.saved.get(name)
        if tensors is None:
            if self.clock.now() > self.end:
                return None
            right = self._train(part)
            self.clock.keep(self.saved)
            if right is None:
                return None
            tensors = {"correct": torch.tensor(right)}
            self.saved.put(name, self.settings.epochs, tensors, finished=True)
        return int(tensors["correct"])

    def _train(self, part):
        def watch(*_):
            if self.clock.now() > self.end:
                raise _TimeIsUp
        try:
            trained = learn(part, self.settings, workers=self.workers, watch=watch, progress=False)
        except _TimeIsUp:
            return None
        return trained.provenance["scores"]["validation"]["correct"]
