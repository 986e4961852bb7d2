"""The training loop: Adam along a cosine to zero, latent weights kept in range; and its losses.

A loss reads scaled scores (batch, K, classes), the frames they are of, (batch,) or (batch, K), and
the teacher's logits or None. It is a sum over members, so that no member's gradient depends on how
many there are.
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from benn_fpga.errors import BennError

__all__ = ["CrossEntropy", "LeastSquares", "Stopped", "Teacher", "fit", "restore"]

TEMPERATURE = 3.0
DISTILLED = 0.9  # share of the teacher in the loss


class Stopped(Exception):
    """Another thread of the same run has failed, or was interrupted."""


@dataclass(frozen=True, eq=False)
class CrossEntropy:
    """Cross entropy with the classes ``y``, or with them and the teacher.

    Parameters
    ----------
    y : (frames,) classes
    weights : (frames,) how much each frame counts, of mean 1; None for all the same
    joint : of the mean of the members' scores, instead of each member's own
    """

    y: torch.Tensor
    weights: torch.Tensor | None = None
    joint: bool = False

    def __call__(self, scores, frames, soft=None):
        if self.joint:
            scores = scores.mean(1, keepdim=True)
        members = scores.shape[1]
        labels = self.y[frames].reshape(len(scores), -1).expand(-1, members).flatten()
        if self.weights is None and soft is None:
            return members * functional.cross_entropy(scores.flatten(0, 1), labels)
        loss = functional.cross_entropy(scores.flatten(0, 1), labels, reduction="none")
        loss = loss.unflatten(0, scores.shape[:2])
        if soft is not None:
            student, teacher = (functional.log_softmax(logits / TEMPERATURE, -1)
                                for logits in (scores, soft))
            apart = (teacher.exp() * (teacher - student)).sum(-1)
            loss = (1 - DISTILLED) * loss + DISTILLED * TEMPERATURE ** 2 * apart
        if self.weights is not None:
            loss = loss * self.weights[frames].reshape(len(scores), -1)
        return loss.sum(1).mean()


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Weighted square of what scores, less their mean over classes, lack to ``targets``.

    Parameters
    ----------
    targets, weights : (frames, classes)
    """

    targets: torch.Tensor
    weights: torch.Tensor

    def __call__(self, scores, frames, soft=None):
        off = self.targets[frames, None] - (scores - scores.mean(-1, keepdim=True))
        return (self.weights[frames, None] * off ** 2).sum((1, 2)).mean()


class Teacher:
    """The mean of a trained network's members, on its own encoding of the same frames."""

    def __init__(self, network, inputs):
        self._network = network
        self._inputs = inputs
        self._logits = self._mean(torch.from_numpy(network.scores(inputs.x)))

    def _mean(self, scores):
        return scores.float().mean(1) * self._network.score_scale

    @torch.no_grad()
    def logits(self, frames, moves=None):
        """(batch, 1, classes) or (batch, K, classes), as ``frames`` are."""
        if moves is None:
            return self._logits[frames].reshape(len(frames), -1, self._logits.shape[1])
        x = self._inputs.batch(frames.flatten(), moves.flatten(0, -2))
        return self._mean(self._network(x)).reshape(len(frames), -1, self._logits.shape[1])


def _tensors(network, optimizer):
    """Everything that the next step depends on, by name."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for n, state in optimizer.state_dict()["state"].items():
        tensors.update({f"optimizer.{n}.{name}": tensor for name, tensor in state.items()})
    return tensors


def restore(tensors, network, optimizer=None):
    """Put back what :func:`fit` gave to its ``keep``."""
    network.load_state_dict({name.removeprefix("network."): tensor
                             for name, tensor in tensors.items() if name.startswith("network.")})
    if optimizer is not None:
        state = optimizer.state_dict()
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, n, key = name.split(".")
                state["state"].setdefault(int(n), {})[key] = tensor.clone()
        optimizer.load_state_dict(state)


def diverged(lr):
    return BennError(f"training diverged with a learning rate of {lr:g}; lower `lr`")


def fit(network, inputs, loss, orders, *, epochs, lr, batch, moves=None, teacher=None, start=0,
        tensors=None, keep=None, stop=None, decay=True):
    """Train ``network``.

    Parameters
    ----------
    inputs : :class:`~benn_fpga.sw.augment.Frames`
    orders : gives, for each epoch, the frames to see: (frames,) for all members, or (frames, K)
        if each has its own
    moves : function of the epoch and the shape of its order that gives (*shape, 3), how each
        frame is moved
    teacher : :class:`Teacher` that the loss is to read
    start, tensors : epochs already made, and what ``keep`` got after them
    keep : called after each epoch with the number of epochs made and all that the next depends on
    stop : threading.Event at which to raise :class:`Stopped`
    decay : the learning rate follows a cosine to zero, else it stays
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
    if tensors is not None:
        restore(tensors, network, optimizer)
    batch = min(batch, len(inputs.x))
    steps = len(inputs.x) // batch
    network.train()
    for epoch, order in itertools.islice(zip(range(epochs), orders, strict=False), start, None):
        order = torch.from_numpy(order[:steps * batch])
        moved = itertools.repeat(None) if moves is None else \
            moves(epoch, order.shape).split(batch)
        for n, (frames, move) in enumerate(zip(order.split(batch), moved, strict=False)):
            if stop is not None and stop.is_set():
                raise Stopped
            step = epoch * steps + n
            if decay:
                optimizer.param_groups[0]["lr"] = \
                    lr * (1 + math.cos(math.pi * step / (epochs * steps))) / 2
            soft = None if teacher is None else teacher.logits(frames, move)
            scores = network(inputs.batch(frames, move)) * network.score_scale
            optimizer.zero_grad(set_to_none=True)
            lost = loss(scores, frames, soft)
            lost.backward()
            optimizer.step()
            network.clamp()
        if not lost.isfinite():
            raise diverged(lr)
        if keep is not None:
            keep(epoch + 1, _tensors(network, optimizer))
