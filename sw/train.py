"""Training of ensembles: all members in one graph, or one after another."""

import dataclasses
import math
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn import functional

import benn_fpga
from benn_fpga import presets
from benn_fpga.errors import BennError
from benn_fpga.presets import ENSEMBLES, MEMBERS
from benn_fpga.spec import MAX_MEMBERS, VOTES, Ensemble, Member
from benn_fpga.sw import boost, export
from benn_fpga.sw.network import Network, shapes, values
from benn_fpga.sw.progress import bar

__all__ = ["ENSEMBLES", "fit", "train"]


def train(dataset, net=None, *, members=None, ensemble="independent", vote="soft", encoder=None,
          epochs=None, seed=0, lr=None, batch=None, weight_bits=1, activation_bits=1,
          together=True, threads=1, progress=None):
    """Train on ``dataset`` and return the :class:`~benn_fpga.spec.Ensemble`.

    The same arguments give the same model, bit for bit. What is None is taken from
    :mod:`benn_fpga.presets`.

    Parameters
    ----------
    dataset : a :class:`~benn_fpga.sw.data.Dataset`; its test part is not looked at
    net, encoder : names as in :mod:`benn_fpga.presets`
    members : K; 8 if None, 1 for ``single``
    ensemble : ``independent``, each member on all data; ``bagging``, each on its own bootstrap;
        ``boost-d``, see :mod:`benn_fpga.sw.boost`; or ``single``
    lr : Adam's step at the start; it follows a cosine to zero
    weight_bits, activation_bits : of all layers
    together : train members in one graph, unless each needs those before it
    threads : of PyTorch; the model depends on it, since sums of gradients are rounded in an order
        that does. One is nearly as fast as two for small networks, and gives the same model on
        every number of cores
    progress : as in :func:`benn_fpga.sw.progress.bar`
    """
    _one_of("Ensemble", ensemble, ENSEMBLES)
    _one_of("Vote", vote, VOTES)
    if members is None:
        members = 1 if ensemble == "single" else MEMBERS
    if ensemble == "single" and members != 1:
        raise BennError(f"Ensemble single has 1 member, not {members}")
    given = {"net": net, "encoder": encoder, "epochs": epochs, "batch": batch, "lr": lr}
    options = {**dataclasses.asdict(presets.defaults(dataset.name, dataset.high)),
               **{name: value for name, value in given.items() if value is not None}}
    if not 1 <= members <= MAX_MEMBERS:
        raise BennError(f"Members must be 1 to {MAX_MEMBERS}, not {members}")
    for noun, value, least in (("Epochs", options["epochs"], 1), ("Threads", threads, 1)):
        if value < least:
            raise BennError(f"{noun} must be at least {least}, not {value}")
    if options["batch"] < 2:
        raise BennError(f"Batch must be at least 2, not {options['batch']}: "
                        f"one frame has no variance to normalise by")
    if seed < 0:
        raise BennError(f"Seed must be at least 0, not {seed}")
    if not 0 < float(options["lr"]) < math.inf:
        raise BennError(f"Learning rate must be a positive number, not {options['lr']}")

    coder = presets.encoder(options["encoder"], dataset.shape, dataset.bits, dataset.high)
    layers = shapes(coder, presets.hidden(options["net"]), dataset.classes, weight_bits,
                    activation_bits)
    _blank(coder, layers, members, vote, 1 << boost.VOTE_BITS if ensemble == "boost-d" else 1)
    job = _Job(layers, values(coder, dataset.x_train), torch.from_numpy(dataset.y_train), seed,
               options["epochs"], float(options["lr"]), options["batch"])
    with _threads(threads), bar("train", members * options["epochs"], progress) as tick:
        if ensemble == "boost-d":
            network, votes = job.boosted(members, tick)
        else:
            network, votes = job.plain(members, ensemble == "bagging", together, tick), None
    model, result = export.export(network, coder, dataset.x_valid, vote, votes)
    return dataclasses.replace(model, provenance={
        "data": dataset.name,
        "data_sha256": dataset.sha256,
        "frames": {"train": len(dataset.x_train), "validation": len(dataset.x_valid)},
        "ensemble": ensemble,
        "seed": seed,
        **options,
        "lr": str(options["lr"]),
        "threads": threads,
        "scores": {"validation": {
            "frames": len(dataset.x_valid),
            "correct": int((result.classes == dataset.y_valid).sum()),
            "member_correct": (result.member_classes.T == dataset.y_valid).sum(axis=1).tolist(),
        }},
        "versions": {"benn_fpga": benn_fpga.__version__, "numpy": np.__version__,
                     "torch": str(torch.__version__)},
    })


def _blank(encoder, layers, members, vote, most):
    """A model of zeros with the largest votes: what no model may be is refused before training."""
    blank = Member(tuple(np.zeros(layer.weight_shape, np.uint64) for layer in layers),
                   tuple(np.zeros(layer.table_shape, np.int32) for layer in layers), most)
    return Ensemble(encoder, layers, (blank,) * members, vote)


@contextmanager
def _threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _one_of(noun, value, known):
    if value not in known:
        raise BennError(f"{noun} must be one of {', '.join(known)}, not {value!r}")


@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    """What all members of a run have in common: shape, data, options."""

    layers: tuple
    x: torch.Tensor
    y: torch.Tensor
    seed: int
    epochs: int
    lr: float
    batch: int

    def rng(self, *key):
        return np.random.default_rng([self.seed, *key])

    def network(self, members):
        return Network(self.layers, len(members)).draw([self.rng(0, k) for k in members])

    def fit(self, network, orders, tick):
        fit(network, self.x, self.y, orders, epochs=self.epochs, lr=self.lr, batch=self.batch,
            tick=tick)
        network.estimate(self.x)
        if not all(state.isfinite().all() for state in network.state_dict().values()):
            raise _diverged(self.lr)

    def plain(self, members, bagging, together, tick):
        groups = [range(members)] if together else [[k] for k in range(members)]
        networks = []
        for group in groups:
            networks.append(self.network(group))
            self.fit(networks[-1], self.bootstraps(group) if bagging else self.permutations(), tick)
        return Network.join(networks)

    def permutations(self):
        """Each epoch all frames in a new order, the same for all members: it is read once."""
        rng = self.rng(1)
        while True:
            yield rng.permutation(len(self.x))

    def bootstraps(self, members):
        """Each epoch a new order of every member's own draw of frames."""
        rngs = [self.rng(1, k) for k in members]
        draws = [rng.integers(len(self.x), size=len(self.x)) for rng in rngs]
        while True:
            yield np.stack([rng.permutation(draw) for rng, draw in zip(rngs, draws, strict=True)],
                           axis=1)

    def boosted(self, members, tick):
        """Members one by one, each on draws by the weights that its predecessors leave."""
        weights = np.full(len(self.x), 1 / len(self.x))
        networks, alphas = [], []
        for k in range(members):
            network = self.network([k])
            self.fit(network, self.draws(k, weights), tick)
            missed = network.scores(self.x)[:, 0].argmax(axis=1) != self.y.numpy()
            alpha, weights = boost.samme(weights, missed, self.layers[-1].outputs)
            networks.append(network)
            alphas.append(alpha)
        return Network.join(networks), boost.integer_votes(alphas)

    def draws(self, k, weights):
        rng = self.rng(1, k)
        while True:
            yield rng.choice(len(weights), len(weights), p=weights)


def fit(network, x, y, orders, *, epochs, lr, batch, tick=lambda steps: None):
    """Train ``network`` on inputs ``x`` of classes ``y``.

    ``orders`` gives, for each epoch, the frames to see: (frames,) for all members, or
    (frames, K) if each has its own.
    """
    members = network.members
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
    batch = min(batch, len(x))
    steps = len(x) // batch
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 + math.cos(math.pi * step / (epochs * steps))) / 2)
    network.train()
    for _, order in zip(range(epochs), orders, strict=False):
        for frames in torch.from_numpy(order[:steps * batch]).split(batch):
            scores = network(x[frames].float())
            labels = y[frames].reshape(batch, -1).expand(batch, members)
            # The sum over members, so that no member's gradient depends on how many there are.
            loss = members * functional.cross_entropy(
                (scores * network.score_scale).flatten(0, 1), labels.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            network.clamp()
        if not loss.isfinite():
            raise _diverged(lr)
        tick(members)


def _diverged(lr):
    return BennError(f"training diverged with a learning rate of {lr:g}; lower --lr")
