"""What has a name, and what each data set gets when nothing is named.

The command line shows these in its help, so nothing slow is imported here.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from benn_fpga.errors import BennError

__all__ = ["BENCH_FRAMES", "BOOSTS", "BRAMS", "DATA_OPTIONS", "DEFAULTS", "ENSEMBLES",
           "EXPERIMENTS", "FLOATS", "FLOAT_SCALES", "KINDS", "LEVELS", "MEMBERS", "MINUTES", "MLPS",
           "MOST_BITS", "NETS", "PARTS", "RECIPES", "REWEIGHTS", "RIVALS", "SCHEDULES", "SPLITS",
           "TRIALS", "WITHOUT_DATA", "Defaults", "defaults", "encoder", "mlp_bits", "spelled",
           "whole_number"]

PARTS = {"test": "test", "valid": "validation", "train": "training"}  # of a data set, in words
SPLITS = tuple(PARTS)
FLOAT_SCALES = ("all", "feature", "channel", "column")  # what has a range of its own
BOOSTS = ("boost-a", "boost-b", "boost-c", "boost-d", "logitboost")
ENSEMBLES = ("single", "independent", "bagging", *BOOSTS, "average")
SCHEDULES = ("indep", "seq")
REWEIGHTS = ("sample", "loss")
BRAMS = {"18k": "18 Kbit, Xilinx", "36k": "36 Kbit, Xilinx", "ecp5": "18 Kbit, ECP5",
         "ice40": "4 Kbit, iCE40"}  # block RAMs; their shapes are in plan/blocks.py
MEMBERS = 8
BENCH_FRAMES = 10  # that the test bench of a design sends
TRIALS, MINUTES = 27, 30.0  # of a search
MOST_BITS = 1 << 19  # of the default for data that has none of its own
LEVELS = 6  # of a thermometer where neither the user nor the data set says

MLPS = {"tfc": (64, 64, 64), "sfc": (256, 256, 256), "lfc": (1024, 1024, 1024)}
NETS = (*MLPS, "nin", "cnv", "lenet", "alexnet", "resnet18")
RECIPES = ("hw", "paper")
# Each kind of network, and the numbers of bits that it needs.
KINDS = {
    "ab": (),
    "ib": (),
    "sb": (),
    "wqb": ("bits",),
    "aqb": ("bits",),
    "qnn": ("wbits", "abits"),
    "dnn": (),
}
# Single networks of the literature: the kind and the recipe that each is, and the bits it needs.
RIVALS = {
    "bnn": ("ib", "hw", ()),
    "xnor-net": ("sb", "paper", ()),
    "binaryconnect": ("binaryconnect", "hw", ()),
    "dorefa": ("qnn", "hw", ("bits",)),
    "abc-net": ("qnn", "hw", ("bits",)),
}
_TRAINING = ("net", "width", "epochs", "lr", "batch", "augment", "recipe", "members")
_ALL = (*_TRAINING, "encoder", "kind", "bits", "wbits", "abits")


def _without(left_out, options):
    return tuple(option for option in options if option != left_out)


EXPERIMENTS = {  # and the options of training that each takes
    "theory": (),
    "robustness-random": (),
    "robustness-trained": ("net", "width", "epochs", "lr", "batch", "members", "encoder"),
    "stability": _without("recipe", _TRAINING),  # recipe paper has no float network
    "bag-vs-boost": _ALL,
    "seq-vs-indep": _ALL,
    "compression": _without("width", _ALL),
    "bit-width": _TRAINING,
    "first-last": _TRAINING,
    "bits-or-networks": _without("members", _TRAINING),
}
DATA_OPTIONS = ("dataset", "limit", "data_dir")  # every experiment takes them, but
WITHOUT_DATA = ("theory",)
FLOATS = {"dnn": "weights", "binaryconnect": "activations"}  # what keeps each from being exported


@dataclass(frozen=True)
class Defaults:
    """What training uses where the user does not say; chosen on validation data."""

    net: str
    encoder: str
    epochs: int
    batch: int
    lr: float
    kind: str = "ab"


DEFAULTS = {
    "digits": Defaults("mlp:128,64", "thermometer:6", epochs=40, batch=64, lr=0.03),
    "mnist": Defaults("tfc", "threshold:64", epochs=15, batch=128, lr=0.03),
    "fashion-mnist": Defaults("sfc", "thermometer:4", epochs=15, batch=128, lr=0.01),
    "cifar10": Defaults("sfc", "thermometer:4", epochs=15, batch=128, lr=0.01),
}


def defaults(dataset):
    """The :class:`Defaults` of a :class:`~benn_fpga.sw.data.Dataset`.

    Unknown data has those of ``digits``. If that were more than MOST_BITS in all members, values
    are read as they are, kind ``ib``, and the layers are as narrow as need be, down to a width of
    8: at equal size that is better than fewer levels, members or widths alone, docs/measured.md.
    """
    if dataset.name in DEFAULTS:
        return DEFAULTS[dataset.name]
    common = replace(DEFAULTS["digits"], encoder=spelled("thermometer", dataset.high))
    levels = int(common.encoder.partition(":")[2])
    if mlp_bits(dataset, 128, levels) <= MOST_BITS:
        return common
    width = next((width for width in range(128, 8, -8) if mlp_bits(dataset, width) <= MOST_BITS), 8)
    return replace(common, net=f"mlp:{width},{width // 2}", kind="ib")


def mlp_bits(dataset, width, levels=1):
    """Weight bits of MEMBERS networks ``mlp:width,width/2``."""
    sizes = levels * math.prod(dataset.shape), width, width // 2, dataset.classes
    return MEMBERS * sum(i * o for i, o in pairwise(sizes))


def spelled(name, high, default=""):
    """The name of an encoder for values in 0..high with its number of levels.

    ``thermometer`` alone has those of ``default``, the encoder of the data set, if that is one too.
    """
    if name != "thermometer":
        return name
    return default if default.startswith("thermometer:") else f"thermometer:{min(LEVELS, high)}"


def whole_number(text):
    """The number that ``text`` is in decimal digits, at most 18 of them; None if it is not."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def encoder(name, shape, bits, high, x=None):
    """The :class:`Encoder` that ``name`` means for values in 0..high.

    ``threshold`` compares with the middle of the range and ``threshold:100`` with 100;
    ``thermometer:4`` divides the range evenly by 4 thresholds, ``thermometer`` by 6, or as many as
    there can be; ``planes`` passes the bits, and ``planes:2`` the highest 2 of them. Rows of
    features, of which ``x`` (frames, features) are those of training, have thresholds of their
    own: they divide the frames evenly, not the range.
    """
    import numpy as np

    from benn_fpga.spec import Encoder
    kind, colon, rest = spelled(name, high).partition(":")
    number = whole_number(rest)
    dropped = 0
    if kind == "planes" and (not colon or number):
        thresholds, dropped = [], max(0, bits - (number or bits))
    elif kind == "threshold" and not colon:
        thresholds = _even(1, high)
    elif kind == "threshold" and number is not None:
        thresholds = [number]
    elif kind == "thermometer" and number is not None:
        if not 1 <= number <= high:
            raise BennError(f"Thermometer must have 1 to {high} levels for values in 0..{high}, "
                            f"not {number}")
        thresholds = _even(number, high)
    else:
        raise BennError(f"Encoder must be threshold[:VALUE], thermometer[:LEVELS] or "
                        f"planes[:BITS], not {name!r}")
    if thresholds and not 1 <= thresholds[-1] <= high:
        raise BennError(f"Threshold must lie in 1..{high}, not {thresholds[-1]}")
    table = np.array([thresholds], np.int32).reshape(1, -1)
    if x is not None and len(shape) == 1 and thresholds and (kind == "thermometer" or not colon):
        parts = np.arange(1, len(thresholds) + 1) / (len(thresholds) + 1)
        table = np.quantile(x, parts, axis=0, method="higher").T.astype(np.int32)
    return Encoder(kind, shape, bits, table, dropped)


def _even(levels, high):
    """``high * j / (levels + 1)`` for j = 1..levels, rounded."""
    parts = levels + 1
    return [max(1, (2 * high * j + parts) // (2 * parts)) for j in range(1, parts)]
