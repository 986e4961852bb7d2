"""From a trained network to the model: folded exactly, proved, compared on every score."""

import numpy as np
import torch

from benn_fpga import batchnorm, bits, golden
from benn_fpga.errors import Mismatch
from benn_fpga.spec import Ensemble, Member, sources
from benn_fpga.sw.network import Products, Residual, Shift, Sum, values

__all__ = ["check", "export", "fold"]


def export(network, encoder, x, vote="soft", vote_weights=None):
    """The :class:`Ensemble` of a trained network, and its golden result on raw values ``x``.

    Raises :class:`Mismatch` if any score of any member differs between the two.
    """
    model = Ensemble(encoder, network.specs, fold(network, vote_weights), vote)
    return model, check(model, network, x)


@torch.no_grad()
def fold(network, vote_weights=None):
    """The :class:`Member` of each network; every threshold is proved for every possible sum."""
    network.eval()
    votes = [1] * network.members if vote_weights is None else vote_weights
    members = []
    for k, vote in enumerate(votes):
        arrays, limits = [], {None: None}
        for n, layer in enumerate(network.layers):
            inputs = [limits[source] for source in sources(layer.spec, n)]
            arrays.append(_fold(layer, k, inputs, f"member {k}, layer {n}"))
            limits[n] = None if layer.spec.output_bits else layer.spec.limit(arrays[n], inputs)
        members.append(Member(tuple(arrays), int(vote)))
    return tuple(members)


def _fold(layer, k, inputs, where):
    """The arrays of one layer of member ``k``; ``inputs`` are the limits of its sources."""
    if isinstance(layer, Products):
        return _products(layer, k, where)
    if isinstance(layer, Sum) and layer.spec.output_bits:
        return (_relu_pool if layer.spec.relu else _pool)(layer, k, inputs[0], where)
    if isinstance(layer, Shift):
        size = layer.spec.shape[-1:]
        return {"gain": np.ones(size, np.int32), "bias": np.zeros(size, np.int32)}
    if isinstance(layer, Residual):
        gain, bias = (constant[k].numpy().astype(np.int32) for constant in layer.integers())
        return {"gain": gain, "bias": bias}
    return {}


def _constants(norm, k):
    return tuple(c[k].double().numpy() for c in (norm.mean, norm.scale(), norm.beta))


def _products(layer, k, where):
    spec = layer.spec
    top = (1 << spec.weight_bits) - 1
    codes = (layer.integers()[k].long().numpy() + top) // 2
    if not spec.output_bits:
        return {"weights": bits.planes(codes, spec.weight_bits),
                "bias": np.zeros(spec.outputs, np.int32)}
    relu = (layer.alpha()[k].double().numpy(), layer.bias[k].double().numpy()) \
        if layer.scaled else ()
    thresholds, flip = batchnorm.fold(spec.max_sum, spec.levels, *_constants(layer.norm, k), *relu)
    batchnorm.prove(spec.max_sum, thresholds, _trained(
        layer.norm, k, lambda sums: layer.activated(sums, k)), flip=flip, where=where)
    codes = np.where(flip[:, None], top - codes, codes)
    return {"weights": bits.planes(codes, spec.weight_bits), "thresholds": thresholds}


def _trained(norm, k, before):
    """Member ``k``'s trained activation from sums (values, 1) to codes (values, channels)."""
    def activation(sums):
        sums = torch.from_numpy(sums)[:, None].expand(-1, 1, norm.mean.shape[1])
        return norm.codes(before(sums), k)[:, 0].long().numpy()
    return activation


def _pool(layer, k, limit, where):
    spec, reach = layer.spec, layer.spec.taps * limit
    thresholds, flip = batchnorm.fold(reach, spec.levels, *_constants(layer.norm, k))
    if flip.any():
        raise Mismatch(f"{where}: a gain is negative behind a pool; please report this")
    batchnorm.prove(reach, thresholds, _trained(layer.norm, k, lambda sums: sums), step=1,
                    where=where)
    return {"thresholds": thresholds[:, None]}


def _relu_pool(layer, k, limit, where):
    spec, (alpha, bias) = layer.spec, layer.scale_and_bias()
    thresholds, active = batchnorm.fold_pool(
        limit, spec.levels, spec.taps, *_constants(layer.norm, k), alpha[k].numpy(),
        bias[k].numpy())
    sums = torch.arange(-limit, limit + 1)[:, None]
    trained = layer.active(sums[:, None].expand(-1, 1, spec.channels), k)[:, 0]
    if (trained.numpy() != (sums.numpy() >= active)).any():
        raise Mismatch(f"{where}: its ReLU folds to another sum; please report this")
    for count in range(spec.taps + 1):
        batchnorm.prove(spec.taps * limit, thresholds[:, count], _trained(
            layer.norm, k, lambda s, count=count: layer.average(s, count, k)), step=1,
            where=f"{where}, {count} active taps")
    return {"thresholds": thresholds, "active": active}


def check(model, network, x):
    """Golden result on raw values ``x``; raise unless the network gives the same scores."""
    result = golden.run(model, x)
    scores = network.scores(values(model.encoder, x))
    wrong = np.argwhere(result.scores != scores)
    if len(wrong):
        frame, k, c = wrong[0]
        raise Mismatch(f"export: frame {frame}, member {k}, class {c}: the model scores "
                       f"{result.scores[frame, k, c]}, but training {scores[frame, k, c]} "
                       f"({len(wrong)} of {scores.size} scores differ); nothing was written, "
                       f"please report this")
    return result
