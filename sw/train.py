"""Training from a data set to a model."""

import dataclasses
import hashlib
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from benn_fpga import nets, presets, version
from benn_fpga.errors import BennError
from benn_fpga.layers import MAX_SUM
from benn_fpga.presets import BOOSTS, FLOATS
from benn_fpga.progress import bar
from benn_fpga.raw import Inputs
from benn_fpga.settings import FLOAT_LR
from benn_fpga.spec import Encoder, Ensemble, Member
from benn_fpga.sw import boost, export
from benn_fpga.sw.augment import Frames, moves
from benn_fpga.sw.checkpoint import Checkpoint
from benn_fpga.sw.ensemble import Job
from benn_fpga.sw.fit import Teacher
from benn_fpga.sw.network import Network, values

__all__ = ["Trained", "cpu", "digest", "evaluate", "learn", "train", "versions"]

TEACHERS = 3


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
    provenance, inputs : as in the model file
    """

    network: Network
    encoder: Encoder
    vote: str
    vote_weights: tuple[int, ...]
    provenance: dict
    inputs: Inputs

    def predict(self, x):
        """Class of each frame of raw values ``x``, by the vote."""
        return boost.decide(evaluate(self.network, self.encoder, x), self.vote_weights, self.vote)

    def export(self, x):
        """The :class:`~benn_fpga.spec.Ensemble`, compared with the network on raw values ``x``."""
        model, _ = export.export(self.network, self.encoder, x, self.vote, self.vote_weights)
        return dataclasses.replace(model, provenance=self.provenance, inputs=self.inputs)


def train(dataset, settings, **run):
    """Train on ``dataset`` and return the :class:`~benn_fpga.spec.Ensemble`.

    ``settings`` and ``run`` are as in :func:`learn`.
    """
    kind = settings.kind
    if kind in FLOATS:
        raise BennError(f"kind {kind} has float {FLOATS[kind]}: it can be trained and measured, "
                        f"but not exported")
    return learn(dataset, settings, **run).export(dataset.x_valid)


def learn(dataset, settings, *, checkpoint=None, resume=False, workers=None, watch=None,
          progress=None):
    """Train on ``dataset`` and return what can be measured, and exported if nothing is float.

    The same settings give the same numbers, bit for bit, whatever the other arguments and however
    often the run was resumed; but PyTorch rounds sums in another order on a CPU with other vector
    instructions.

    Parameters
    ----------
    dataset : a :class:`~benn_fpga.sw.data.Dataset`; its test part is not looked at
    settings : a :class:`~benn_fpga.settings.Settings`
    checkpoint : file to go on from after an interruption, with ``resume``; it is left for
        :func:`benn_fpga.sw.checkpoint.remove`
    workers : members trained side by side, if not together; as many as there are cores if None
    watch : called after each epoch of members with their numbers, the epochs made, and the network
        that is being trained, which it must not change
    progress : as in :func:`benn_fpga.progress.bar`
    """
    made_by = versions()  # before files of a checkout change
    settings = settings.resolve(dataset)
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    if workers < 1:
        raise BennError(f"Workers must be at least 1, not {workers}")
    moved = settings.augment and moves(settings.augment, dataset.shape)
    kind = settings.network_kind()
    coder = presets.encoder(settings.encoder, dataset.shape, dataset.bits, dataset.high,
                            dataset.x_train)
    kind.check_encoder(settings.encoder, coder)
    layers = nets.build(settings.net, coder, dataset.classes, kind, width=settings.width,
                        recipe=settings.recipe)
    most = _most_votes(kind, coder, layers, settings)
    settings = dataclasses.replace(settings, together=_together(settings, layers))
    told = {
        "data": dataset.name,
        "data_sha256": dataset.sha256,
        **({} if dataset.label is None else {"label": dataset.label}),
        "frames": {"train": len(dataset.x_train), "validation": len(dataset.x_valid)},
        **settings.describe(),
    }
    saved = Checkpoint(checkpoint, {**told, "training frames": digest(dataset)}, resume)
    job = Job(layers, settings.recipe, kind,
              Frames(values(coder, dataset.x_train), coder.element_bits),
              torch.from_numpy(dataset.y_train), settings.seed, settings.epochs,
              float(settings.lr), settings.batch, moved, workers=workers,
              threads=settings.threads, checkpoint=saved)
    total = settings.members * settings.epochs + TEACHERS * (settings.distill or 0)
    try:
        with _threads(settings.threads), bar("train", total, progress) as tick:
            job = dataclasses.replace(job, tick=_one_at_a_time(tick))
            if settings.distill:
                job = dataclasses.replace(job, teacher=_teacher(dataset, job, settings))
            job = dataclasses.replace(job, decay=settings.decay, watch=watch or job.watch)
            network, votes, stopped = job.run(settings.members, settings.ensemble,
                                              settings.schedule, settings.reweight,
                                              settings.together)
    except BaseException:
        saved.flush()
        raise
    return _trained(dataset, network, coder, settings.vote, votes, most, told, stopped,
                    made_by)


def _together(settings, layers):
    """Whether all members are in one graph."""
    apart = settings.schedule == "seq" or settings.ensemble in BOOSTS
    asked = _dense(layers) if settings.together is None else settings.together
    return settings.ensemble == "average" or (asked and not apart)


def _dense(layers):
    return all(layer.reads_frames for layer in layers)


def _most_votes(kind, coder, layers, settings):
    """What the votes may sum up to; raise before training if the model would be refused."""
    if not kind.exports:
        return MAX_SUM // 2
    zeros = Member(tuple({key: np.zeros(*array) for key, array in layer.arrays().items()}
                         for layer in layers))
    largest = Ensemble(coder, layers, (zeros,)).max_score if settings.vote == "soft" else 1
    most = MAX_SUM // 2 // largest
    if settings.members > most:
        raise BennError(f"Scores of this network reach ±{largest}, of which a soft vote can add up "
                        f"{most}, not {settings.members}; use fewer `members`, a smaller "
                        f"`width` or `vote` hard")
    return most


def digest(dataset):
    """Of the frames that are trained on: which they are depends on the split too."""
    key = hashlib.sha256(np.ascontiguousarray(dataset.x_train).data)
    key.update(dataset.y_train.data)
    return key.hexdigest()[:16]


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


def _teacher(dataset, job, settings):
    """Float networks of the same shape that read the values as they are, trained."""
    kind = nets.kind("dnn")
    coder = presets.encoder("planes", dataset.shape, dataset.bits, dataset.high)
    layers = nets.build(settings.net, coder, dataset.classes, kind, width=settings.width)
    lr = presets.defaults(dataset).lr * FLOAT_LR
    inputs = Frames(values(coder, dataset.x_train), coder.element_bits)
    job = dataclasses.replace(job, layers=layers, recipe="hw", kind=kind, inputs=inputs,
                              epochs=settings.distill, lr=lr, name="teacher")
    network, _, _ = job.run(TEACHERS, "independent", "indep", None, _dense(layers))
    return Teacher(network, inputs)


def _trained(dataset, network, coder, vote, votes, most, told, stopped, made_by):
    """The :class:`Trained` network, measured on the validation part."""
    scores = evaluate(network, coder, dataset.x_valid)
    frames, notes = len(scores), {}
    weights = [1] * network.members
    if votes is not None:
        weights, changed = boost.integer_votes(votes, scores, vote, most)
        notes["vote_rounding"] = {"changed": changed, "frames": frames}
    if stopped:
        notes["stopped"] = {"members": network.members, "why": stopped}
    right = boost.decide(scores, weights, vote) == dataset.y_valid
    each = scores.argmax(axis=2).T == dataset.y_valid
    return Trained(network, coder, vote, tuple(weights), {
        **told,
        **notes,
        "scores": {"validation": {
            "frames": frames,
            "correct": int(right.sum()),
            "member_correct": each.sum(axis=1).tolist(),
        }},
        "versions": made_by,
    }, dataset.inputs)


def versions():
    """Of what the numbers depend on."""
    return {**version.describe(), "numpy": np.__version__, "torch": str(torch.__version__)}


def cpu():
    """The vector instructions that PyTorch found: in which order it rounds sums depends on them."""
    return torch.backends.cpu.get_cpu_capability()
