"""How the members of an ensemble come about: apart or one from another, by which data and loss."""

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np
import torch

from benn_fpga.presets import BOOSTS
from benn_fpga.sw import boost
from benn_fpga.sw.augment import Frames, Moves
from benn_fpga.sw.checkpoint import Checkpoint
from benn_fpga.sw.fit import CrossEntropy, LeastSquares, Teacher, diverged, fit, restore
from benn_fpga.sw.network import Network

__all__ = ["Job"]

_WEIGHTS, _ORDER, _MOVES = range(3)  # what generators are for


@dataclass(frozen=True, eq=False)
class Job:
    """What all members of a run have in common.

    Parameters
    ----------
    layers, recipe, kind : of the network
    inputs, y : training frames and their classes
    seed : all that is drawn follows from it
    epochs, lr, batch : as in :func:`benn_fpga.sw.fit.fit`
    moves : how images are moved, or None
    teacher : to learn from, or None
    workers, threads : members trained side by side, and threads of PyTorch for each
    checkpoint : what is kept of them on disk
    name : before the members' numbers there
    tick : called with a number of epochs of members
    decay : as in :func:`benn_fpga.sw.fit.fit`
    watch : called after each epoch with the numbers of members, epochs made, and their network
    """

    layers: tuple
    recipe: str
    kind: object
    inputs: Frames
    y: torch.Tensor
    seed: int
    epochs: int
    lr: float
    batch: int
    moves: Moves | None = None
    teacher: Teacher | None = None
    workers: int = 1
    threads: int = 1
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    name: str = "member"
    tick: object = lambda epochs: None
    decay: bool = True
    watch: object = lambda group, epochs, network: None

    @property
    def frames(self):
        return len(self.y)

    def run(self, members, ensemble, schedule, reweight, together):
        """The trained :class:`Network`; votes of its members or None; why it stopped or None."""
        if ensemble == "logitboost":
            return self._logitboost(members, schedule)
        if ensemble in BOOSTS:
            return self._boosted(members, ensemble, schedule, reweight)
        loss = CrossEntropy(self.y, joint=ensemble == "average")
        bagging = ensemble == "bagging"
        if schedule == "seq":
            networks = []
            for k in range(members):
                orders = self._bootstraps([k]) if bagging else self._permutations(k)
                networks.append(self._member([k], loss, orders, networks))
            return Network.join(networks), None, None
        groups = [range(members)] if together else [[k] for k in range(members)]

        def train(group, stop=None):
            orders = self._bootstraps(group) if bagging else self._permutations()
            return self._member(group, loss, orders, stop=stop)
        return Network.join(self._side_by_side(train, groups)), None, None

    def _side_by_side(self, function, items):
        """``function`` of each item; if one fails, the others stop after their next step."""
        if min(self.workers, len(items)) == 1:
            return [function(item) for item in items]
        stop = threading.Event()
        with ThreadPoolExecutor(self.workers, initializer=torch.set_num_threads,
                                initargs=(self.threads,)) as pool:
            futures = [pool.submit(function, item, stop) for item in items]
            try:
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _boosted(self, members, scheme, schedule, reweight):
        """Members one by one, each by the weights that its predecessors leave."""
        y, classes = self.y.numpy(), self.layers[-1].output_shape[-1]
        weights = np.full(self.frames, 1 / self.frames)
        networks, votes = [], []
        for k in range(members):
            share = weights / weights.sum()
            if reweight == "loss":
                loss = CrossEntropy(self.y, torch.from_numpy(share * self.frames).float())
                orders = self._permutations(k)
            else:
                loss, orders = CrossEntropy(self.y), self._draws(k, share)
            network = self._member([k], loss, orders, networks if schedule == "seq" else ())
            missed = network.scores(self.inputs.x)[:, 0].argmax(axis=1) != y
            error, vote, weights = boost.step(scheme, weights, missed, classes)
            if error >= boost.chance(scheme, classes):
                why = (f"member {k} misses {error:.1%} of the weight; {scheme} needs less than "
                       f"{boost.chance(scheme, classes):.1%}")
                return (Network.join(networks), votes, why) if networks else (network, [1.0], why)
            networks.append(network)
            votes.append(vote)
        return Network.join(networks), votes, None

    def _logitboost(self, members, schedule):
        y, classes = self.y.numpy(), self.layers[-1].output_shape[-1]
        logits = np.zeros((self.frames, classes))
        networks = []
        for k in range(members):
            loss = LeastSquares(*(torch.from_numpy(array).float()
                                  for array in boost.newton(logits, y)))
            network = self._member([k], loss, self._permutations(k),
                                   networks if schedule == "seq" else ())
            scores = network.scores(self.inputs.x)[:, 0] * network.score_scale
            before, logits = logits, boost.add(logits, scores)
            then, now = boost.log_loss(before, y), boost.log_loss(logits, y)
            if now >= then:
                why = f"member {k} takes the log loss from {then:.4f} to {now:.4f}"
                return (Network.join(networks) if networks else network), None, why
            networks.append(network)
        return Network.join(networks), None, None

    def _member(self, group, loss, orders, before=(), stop=None):
        """The trained network of the members ``group``; it starts as the last of ``before``."""
        name = f"{self.name}{group[0]}"
        network = Network(self.layers, len(group), self.recipe, self.kind)
        start, tensors = self.checkpoint.get(name)
        if tensors is not None:
            try:
                restore(tensors, network)
            except RuntimeError:  # of load_state_dict
                raise self.checkpoint.damaged() from None
        else:
            network.draw([self._rng(_WEIGHTS, k) for k in group])
            if before:
                network.load_state_dict(before[-1].state_dict())
        if start:
            self.tick(start * len(group))
        if start < self.epochs:
            def keep(epochs, tensors):
                self.watch(group, epochs, network)
                if epochs < self.epochs:
                    self.checkpoint.put(name, epochs, tensors, finished=False)
                    self.tick(len(group))
            fit(network, self.inputs, loss, orders, epochs=self.epochs, lr=self.lr,
                batch=self.batch, moves=self._moves(group), teacher=self.teacher, start=start,
                tensors=tensors, keep=keep, stop=stop, decay=self.decay)
            network.estimate(self.inputs.x)
            if not all(state.isfinite().all() for state in network.state_dict().values()):
                raise diverged(self.lr)
            self.checkpoint.put(name, self.epochs, {
                f"network.{key}": tensor for key, tensor in network.state_dict().items()}, True)
            self.tick(len(group))
        return network

    def _rng(self, *key):
        return np.random.default_rng([self.seed, *key])

    def _permutations(self, *member):
        """Each epoch all frames in a new order; the same for all members if it is read once."""
        rng = self._rng(_ORDER, *member)
        while True:
            yield rng.permutation(self.frames)

    def _bootstraps(self, members):
        """Each epoch a new order of every member's own draw of frames."""
        rngs = [self._rng(_ORDER, k) for k in members]
        draws = [rng.integers(self.frames, size=self.frames) for rng in rngs]
        while True:
            orders = [rng.permutation(draw) for rng, draw in zip(rngs, draws, strict=True)]
            yield np.stack(orders, axis=1) if len(orders) > 1 else orders[0]

    def _draws(self, k, share):
        rng = self._rng(_ORDER, k)
        while True:
            yield rng.choice(self.frames, self.frames, p=share)

    def _moves(self, group):
        if self.moves is None:
            return None

        def moves(epoch, shape):
            rng = self._rng(_MOVES, group[0], epoch)
            return self.moves.draw(rng, shape.numel()).unflatten(0, shape)
        return moves

