"""From a trained network to the model: folded exactly, proved, compared on every score."""

import numpy as np
import torch

from benn_fpga import batchnorm, bits, golden
from benn_fpga.errors import Mismatch
from benn_fpga.spec import Ensemble, Member
from benn_fpga.sw import quantize
from benn_fpga.sw.network import values

__all__ = ["check", "export", "fold"]


def export(network, encoder, x, vote="soft", vote_weights=None):
    """The :class:`Ensemble` of a trained network, and its golden result on raw values ``x``.

    Raises :class:`Mismatch` if any score of any member differs between the two.
    """
    members = fold(network, vote_weights)
    model = Ensemble(encoder, tuple(layer.shape for layer in network.layers), members, vote)
    return model, check(model, network, x)


@torch.no_grad()
def fold(network, vote_weights=None):
    """The :class:`Member` of each network; every threshold is proved for every possible sum."""
    count = network.members
    arrays = [[] for _ in range(count)]
    for n, layer in enumerate(network.layers):
        shape, integers = layer.shape, layer.integers().long().numpy()
        top = (1 << shape.weight_bits) - 1
        for k in range(count):
            codes = (integers[k] + top) // 2
            if shape.is_scores:
                table = np.zeros(shape.outputs, np.int32)
            else:
                constants = (layer.mean[k], layer.scale()[k], layer.beta[k].double())
                table, flip = batchnorm.fold(shape, *(c.numpy() for c in constants))
                batchnorm.prove(shape, table, flip, _activation(layer, k),
                                f"member {k}, layer {n}")
                codes = np.where(flip[:, None], top - codes, codes)
            arrays[k].append({"weights": bits.planes(codes, shape.weight_bits),
                              "bias" if shape.is_scores else "thresholds": table})
    vote_weights = [1] * count if vote_weights is None else vote_weights
    return tuple(Member(tuple(layers), int(vote))
                 for layers, vote in zip(arrays, vote_weights, strict=True))


def _activation(layer, k):
    """Member ``k``'s trained activation, from sums to codes."""
    return lambda sums: quantize.codes(layer.normalised(torch.from_numpy(sums), k),
                                       layer.shape.levels).long().numpy()


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
