"""From a trained network to the model: absorbed exactly, proved, compared on every score."""

import numpy as np
import torch

from benn_fpga import golden
from benn_fpga.errors import Mismatch
from benn_fpga.spec import Ensemble, Member, sources
from benn_fpga.sw.network import values

__all__ = ["check", "export", "members"]


def export(network, encoder, x, vote="soft", vote_weights=None):
    """The :class:`Ensemble` of a trained network, and its golden result on raw values ``x``.

    Raises :class:`Mismatch` if any score of any member differs between the two.
    """
    model = Ensemble(encoder, network.specs, members(network, vote_weights), vote)
    return model, check(model, network, x)


@torch.no_grad()
def members(network, vote_weights=None):
    """The :class:`Member` of each network; every threshold is proved for every possible sum."""
    network.eval()
    votes = [1] * network.members if vote_weights is None else vote_weights
    members = []
    for k, vote in enumerate(votes):
        arrays, limits = [], {None: None}
        for n, layer in enumerate(network.layers):
            inputs = [limits[source] for source in sources(layer.spec, n)]
            arrays.append(layer.arrays(k, inputs, f"member {k}, layer {n}"))
            limits[n] = None if layer.spec.output_bits else layer.spec.limit(arrays[n], inputs)
        members.append(Member(tuple(arrays), int(vote)))
    return tuple(members)


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
