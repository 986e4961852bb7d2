"""Training from a data set to a model."""

import dataclasses
import hashlib
import math
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

import benn_fpga
from benn_fpga import nets, presets
from benn_fpga.checks import one_of
from benn_fpga.errors import BennError
from benn_fpga.layers import MAX_SUM, Dense
from benn_fpga.presets import (
    BOOSTS,
    ENSEMBLES,
    FLOATS,
    MEMBERS,
    REWEIGHTS,
    RIVALS,
    SCHEDULES,
)
from benn_fpga.spec import MAX_MEMBERS, VOTES, Encoder, Ensemble, Member
from benn_fpga.sw import boost, export
from benn_fpga.sw.augment import Frames, moves
from benn_fpga.sw.checkpoint import Checkpoint
from benn_fpga.sw.ensemble import Job
from benn_fpga.sw.fit import Teacher
from benn_fpga.sw.network import Network, values
from benn_fpga.sw.progress import bar

__all__ = ["Trained", "evaluate", "learn", "train", "versions"]

TEACHERS = 3
FLOAT_LR = 1 / 3  # of the learning rate, for float weights: 1, 1/3, 1/10 and 1/30 tried on digits


def evaluate(network, encoder, x):
    """Scores (frames, members, classes) of a trained network for raw values ``x``."""
    return network.scores(values(encoder, x))


@dataclass(frozen=True, eq=False)
class Trained:
    """What :func:`learn` returns.

    Members
    -------
    network, encoder : see :func:`evaluate`
    vote, vote_weights : rule, and the whole number that each member's vote counts
    provenance : as in the model file
    """

    network: Network
    encoder: Encoder
    vote: str
    vote_weights: tuple[int, ...]
    provenance: dict

    def predict(self, x):
        """Class of each frame of raw values ``x``, by the vote."""
        return boost.decide(evaluate(self.network, self.encoder, x), self.vote_weights, self.vote)

    def export(self, x):
        """The :class:`~benn_fpga.spec.Ensemble`, compared with the network on raw values ``x``."""
        model, _ = export.export(self.network, self.encoder, x, self.vote, self.vote_weights)
        return dataclasses.replace(model, provenance=self.provenance)


def train(dataset, net=None, **options):
    """Train on ``dataset`` and return the :class:`~benn_fpga.spec.Ensemble`.

    ``options`` are those of :func:`learn`.
    """
    kind = options.get("kind", "ab")
    if kind in FLOATS:
        raise BennError(f"kind {kind} has float {FLOATS[kind]}: it can be trained and measured, "
                        f"but not exported")
    return learn(dataset, net, **options).export(dataset.x_valid)


def learn(dataset, net=None, *, members=None, ensemble=None, schedule="indep", reweight=None,
          kind="ab", bits=None, wbits=None, abits=None, width=1.0, recipe=None, vote="soft",
          encoder=None, epochs=None, seed=0, lr=None, batch=None, augment=None, distill=None,
          checkpoint=None, resume=False, together=None, workers=None, threads=1, decay=True,
          watch=None, progress=None):
    """Train on ``dataset`` and return what can be measured, and exported if nothing is float.

    The same arguments give the same numbers, bit for bit, whatever ``workers`` and however often
    the run was resumed.

    Parameters
    ----------
    dataset : a :class:`~benn_fpga.sw.data.Dataset`; its test part is not looked at
    net, encoder, epochs, batch, lr : if None, those of the data set in
        :mod:`benn_fpga.presets`, but an encoder that suits the kind. ``lr`` is Adam's step at the
        start; it follows a cosine to zero. Float weights take a third of the data set's
    members : K; 8 if None, 1 for ``single``
    ensemble : ``single``; ``independent``, each member on all data; ``bagging``, each on its own
        bootstrap; ``boost-a`` to ``boost-d`` and ``logitboost``, see :mod:`benn_fpga.sw.boost`;
        ``average``, one loss on the mean of the members' scores. If None, ``independent``, or
        ``single`` for a network of the literature
    schedule : ``indep``, every member starts anew; ``seq``, from the one before it
    reweight : boosting gives frames their weights by ``sample``, drawing them anew in each epoch,
        or in the ``loss``; logitboost always by the loss, the others by ``sample`` if None
    kind, bits, wbits, abits : see :func:`benn_fpga.nets.kind`
    width, recipe : see :func:`benn_fpga.nets.build`
    vote : ``soft``, sums of scores, or ``hard``
    augment : see :func:`benn_fpga.sw.augment.moves`; True is ``crop+flip``
    distill : True to learn from an ensemble of float networks too, which is trained first, for as
        many epochs; or a number of epochs for it
    checkpoint : file to go on from after an interruption, with ``resume``; it is left for
        :func:`benn_fpga.sw.checkpoint.remove`
    together : train members in one graph if none needs those before it; if None, networks of
        dense layers only: with convolutions side by side is faster
    workers : members trained side by side, if not together; as many as there are cores if None
    threads : of PyTorch, for each. The numbers depend on it, since sums of gradients are rounded
        in an order that does
    decay : False keeps the learning rate as it is
    watch : called after each epoch of members with their numbers, the epochs made, and the network
        that is being trained, which it must not change
    progress : as in :func:`benn_fpga.sw.progress.bar`
    """
    chosen = nets.kind(kind, bits=bits, wbits=wbits, abits=abits)
    ensemble = ensemble or ("single" if kind in RIVALS else "independent")
    recipe, reweight, augment = _settle(kind, recipe, ensemble, schedule, reweight, vote, augment,
                                        distill)
    if members is None:
        members = 1 if ensemble == "single" else MEMBERS
    if ensemble == "single" and members != 1:
        raise BennError(f"Ensemble single has 1 member, not {members}")
    default = presets.defaults(dataset.name, dataset.high)
    options = {"net": net or default.net, "encoder": encoder or chosen.encoder(default.encoder),
               "epochs": default.epochs if epochs is None else epochs,
               "batch": default.batch if batch is None else batch,
               "lr": default.lr * (FLOAT_LR if chosen.float_weights else 1) if lr is None else lr}
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    teacher_epochs = options["epochs"] if distill is True else distill or 0
    _check_numbers(members, options, threads, workers, seed, distill)
    moved = None if augment in (None, False) else moves(augment, dataset.shape)

    coder = presets.encoder(options["encoder"], dataset.shape, dataset.bits, dataset.high,
                            dataset.x_train)
    chosen.check_encoder(options["encoder"], coder)
    layers = nets.build(options["net"], coder, dataset.classes, chosen, width=width, recipe=recipe)
    most = _most_votes(chosen, coder, layers, members, vote)
    if together is None:
        together = all(isinstance(layer, Dense) for layer in layers)
    together = ensemble == "average" or (together and schedule == "indep"
                                         and ensemble not in BOOSTS)
    settings = {
        "data": dataset.name,
        "data_sha256": dataset.sha256,
        "frames": {"train": len(dataset.x_train), "validation": len(dataset.x_valid)},
        "ensemble": ensemble,
        "members": members,
        "schedule": schedule,
        **({"reweight": reweight} if reweight else {}),
        "kind": kind,
        **{key: value for key, value in (("bits", bits), ("wbits", wbits), ("abits", abits))
           if value is not None},
        "width": str(width),
        "recipe": recipe,
        "vote": vote,
        "seed": seed,
        **options,
        "lr": str(options["lr"]),
        **({"augment": augment} if augment else {}),
        **({"distill_epochs": teacher_epochs} if teacher_epochs else {}),
        **({} if decay else {"decay": "no"}),
        "together": "yes" if together else "no",
        "threads": threads,
    }
    saved = Checkpoint(checkpoint, {**settings, "training frames": _digest(dataset)}, resume)
    job = Job(layers, recipe, chosen, Frames(values(coder, dataset.x_train), coder.element_bits),
              torch.from_numpy(dataset.y_train), seed, options["epochs"], float(options["lr"]),
              options["batch"], moved, workers=workers, threads=threads, checkpoint=saved)
    total = members * options["epochs"] + TEACHERS * teacher_epochs
    try:
        with _threads(threads), bar("train", total, progress) as tick:
            job = dataclasses.replace(job, tick=_one_at_a_time(tick))
            if teacher_epochs:
                job = dataclasses.replace(job, teacher=_teacher(
                    dataset, job, options["net"], width, teacher_epochs, default.lr))
            job = dataclasses.replace(job, decay=decay, watch=watch or job.watch)
            network, votes, stopped = job.run(members, ensemble, schedule, reweight, together)
    except BaseException:
        saved.flush()
        raise
    return _trained(dataset, network, coder, vote, votes, most, settings, stopped)


def _settle(kind, recipe, ensemble, schedule, reweight, vote, augment, distill):
    """Recipe, reweighting and augmentation as they are used; raise if options contradict."""
    one_of("Ensemble", ensemble, ENSEMBLES)
    one_of("Schedule", schedule, SCHEDULES)
    one_of("Vote", vote, VOTES)
    if kind in RIVALS and kind not in FLOATS and recipe not in (None, RIVALS[kind][1]):
        raise BennError(f"Kind {kind} has recipe {RIVALS[kind][1]}, not {recipe}; "
                        f"for another use kind {RIVALS[kind][0]}")
    if schedule == "seq" and ensemble in ("single", "average"):
        raise BennError(f"Schedule seq starts each member from the one before it, which ensemble "
                        f"{ensemble} does not have; use schedule indep")
    if ensemble in ("logitboost", "average") and vote == "hard":
        raise BennError(f"Ensemble {ensemble} trains members for the sum of their scores, which a "
                        f"hard vote does not see; use vote soft")
    if reweight is not None:
        one_of("Reweight", reweight, REWEIGHTS)
        if ensemble not in BOOSTS:
            raise BennError(f"Reweight is for boosting; ensemble {ensemble} does not weigh frames")
        if ensemble == "logitboost" and reweight == "sample":
            raise BennError("Ensemble logitboost has a weight for each class of a frame, so it can "
                            "not draw frames by them; use reweight loss")
    elif ensemble in BOOSTS:
        reweight = "loss" if ensemble == "logitboost" else "sample"
    if augment is True:
        augment = "crop+flip"
    if distill and ensemble == "logitboost":
        raise BennError("Ensemble logitboost fits a step of its own, not classes; it can not "
                        "distill")
    return recipe or (RIVALS[kind][1] if kind in RIVALS else "hw"), reweight, augment


def _check_numbers(members, options, threads, workers, seed, distill):
    if not 1 <= members <= MAX_MEMBERS:
        raise BennError(f"Members must be 1 to {MAX_MEMBERS}, not {members}")
    for noun, value, least in (("Epochs", options["epochs"], 1), ("Threads", threads, 1),
                               ("Workers", workers, 1), ("Seed", seed, 0)):
        if value < least:
            raise BennError(f"{noun} must be at least {least}, not {value}")
    if options["batch"] < 2:
        raise BennError(f"Batch must be at least 2, not {options['batch']}: "
                        f"one frame has no variance to normalise by")
    if distill is not None and distill < 0:
        raise BennError(f"Distill must be a number of epochs, not {distill}")
    if not 0 < float(options["lr"]) < math.inf:
        raise BennError(f"Learning rate must be a positive number, not {options['lr']}")


def _most_votes(kind, coder, layers, members, vote):
    """What the votes may sum up to; raise before training if the model would be refused."""
    if not kind.exports:
        return MAX_SUM // 2
    zeros = Member(tuple({key: np.zeros(*array) for key, array in layer.arrays().items()}
                         for layer in layers))
    largest = Ensemble(coder, layers, (zeros,)).max_score if vote == "soft" else 1
    most = MAX_SUM // 2 // largest
    if members > most:
        raise BennError(f"Scores of this network reach ±{largest}, of which a soft vote can add up "
                        f"{most}, not {members}; use fewer members, a smaller width or vote hard")
    return most


def _digest(dataset):
    """Of the frames that are trained on: which they are depends on the split too."""
    digest = hashlib.sha256(np.ascontiguousarray(dataset.x_train).data)
    digest.update(dataset.y_train.data)
    return digest.hexdigest()[:16]


@contextmanager
def _threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _one_at_a_time(function):
    lock = threading.Lock()

    def call(*args):
        with lock:
            function(*args)
    return call


def _teacher(dataset, job, net, width, epochs, lr):
    """Float networks of the same shape that read the values as they are, trained."""
    kind = nets.kind("dnn")
    coder = presets.encoder("planes", dataset.shape, dataset.bits, dataset.high)
    layers = nets.build(net, coder, dataset.classes, kind, width=width)
    inputs = Frames(values(coder, dataset.x_train), coder.element_bits)
    job = dataclasses.replace(job, layers=layers, recipe="hw", kind=kind, inputs=inputs,
                              epochs=epochs, lr=lr * FLOAT_LR, name="teacher")
    together = all(isinstance(layer, Dense) for layer in layers)
    network, _, _ = job.run(TEACHERS, "independent", "indep", None, together)
    return Teacher(network, inputs)


def _trained(dataset, network, coder, vote, votes, most, settings, stopped):
    """The :class:`Trained` network, measured on the validation part."""
    scores = evaluate(network, coder, dataset.x_valid)
    frames, found = len(scores), {}
    weights = [1] * network.members
    if votes is not None:
        weights, changed = boost.integer_votes(votes, scores, vote, most)
        found["vote_rounding"] = {"changed": changed, "frames": frames}
    if stopped:
        found["stopped"] = {"members": network.members, "why": stopped}
    right = boost.decide(scores, weights, vote) == dataset.y_valid
    each = scores.argmax(axis=2).T == dataset.y_valid
    return Trained(network, coder, vote, tuple(weights), {
        **settings,
        **found,
        "scores": {"validation": {
            "frames": frames,
            "correct": int(right.sum()),
            "member_correct": each.sum(axis=1).tolist(),
        }},
        "versions": versions(),
    })


def versions():
    """Of what the numbers depend on."""
    return {"benn_fpga": benn_fpga.__version__, "numpy": np.__version__,
            "torch": str(torch.__version__)}
