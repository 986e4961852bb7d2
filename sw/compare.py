"""What an ensemble is measured against: one wide network of as many bits, and other seeds."""

import dataclasses
import math

from benn_fpga import nets
from benn_fpga.errors import BennError
from benn_fpga.layers import weight_bits
from benn_fpga.settings import Settings
from benn_fpga.sw.train import learn

__all__ = ["baselines", "equal_width"]

_STEPS = 32  # of the bisection: finer than any width that makes a difference


def _bits(net, encoder, classes, kind, width):
    """Weight bits of a network; without end if there can be no such network."""
    try:
        layers = nets.build(net, encoder, classes, kind, width=width)
    except BennError:
        return math.inf
    return weight_bits(layers)


def equal_width(net, encoder, classes, kind, width, members):
    """The width of one network that has at most as many weight bits as ``members`` of ``width``."""
    target = members * _bits(net, encoder, classes, kind, width)
    low, high = width, float(nets.MAX_WIDTH)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _bits(net, encoder, classes, kind, middle) <= target:
            low = middle
        else:
            high = middle
    return low


def baselines(dataset, model, progress=None):
    """Networks to compare ``model`` with, by name, trained as its provenance says it was.

    ``single``: one member; ``equal bits``: one network, as wide as the bits of all members allow
    (a network without hidden layers has no width); ``independent``: as many members, which differ
    in their seeds alone.
    """
    told = dataclasses.replace(Settings.read(model.provenance), schedule="indep", reweight=None,
                               together=None)
    wide = equal_width(told.net, model.encoder, model.classes, told.network_kind(), told.width,
                       len(model.members))
    single = dataclasses.replace(told, ensemble="single", members=1)
    chosen = {
        "single": single,
        "equal bits": dataclasses.replace(single, width=wide),
        "independent": dataclasses.replace(told, ensemble="independent",
                                           members=len(model.members)),
    }
    return {name: learn(dataset, settings, progress=progress)
            for name, settings in chosen.items()}
