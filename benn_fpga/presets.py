"""What has a name, and what each data set gets when nothing is named.

The command line shows these in its help, so nothing slow is imported here.
"""

from dataclasses import dataclass, replace

from benn_fpga.errors import BennError

__all__ = ["DEFAULTS", "ENSEMBLES", "MEMBERS", "NETS", "SPLITS", "Defaults", "defaults", "encoder",
           "hidden"]

SPLITS = ("test", "valid", "train")
ENSEMBLES = ("single", "independent", "bagging", "boost-d")
MEMBERS = 8
NETS = {"tfc": (64, 64, 64), "sfc": (256, 256, 256), "lfc": (1024, 1024, 1024)}


@dataclass(frozen=True)
class Defaults:
    """What training uses where the user does not say; chosen on validation data."""

    net: str
    encoder: str
    epochs: int
    batch: int
    lr: float


DEFAULTS = {
    "digits": Defaults("mlp:128,64", "thermometer:6", epochs=40, batch=64, lr=0.03),
    "mnist": Defaults("tfc", "threshold:64", epochs=15, batch=128, lr=0.03),
    "fashion-mnist": Defaults("sfc", "thermometer:4", epochs=15, batch=128, lr=0.01),
    "cifar10": Defaults("sfc", "thermometer:4", epochs=15, batch=128, lr=0.01),
}


def defaults(dataset, high):
    """The :class:`Defaults` of a data set with values in 0..high; if unknown, as for ``digits``."""
    unknown = replace(DEFAULTS["digits"], encoder=f"thermometer:{min(6, high)}")
    return DEFAULTS.get(dataset, unknown)


def _whole(text):
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def hidden(name):
    """Hidden widths of a network: a preset, or ``mlp:256,128``; ``mlp:`` has none, it is linear."""
    if name in NETS:
        return NETS[name]
    kind, colon, rest = name.partition(":")
    widths = [_whole(width) for width in rest.split(",")] if rest else []
    if kind != "mlp" or not colon or not all(widths):
        raise BennError(f"Network must be {', '.join(sorted(NETS))} or mlp:WIDTH,WIDTH,..., "
                        f"not {name!r}")
    return tuple(widths)


def encoder(name, shape, bits, high):
    """The :class:`Encoder` that ``name`` means for values in 0..high.

    ``threshold`` compares with the middle of the range and ``threshold:100`` with 100;
    ``thermometer:4`` divides the range evenly by 4 thresholds; ``planes`` passes the bits.
    """
    import numpy as np

    from benn_fpga.spec import Encoder
    kind, colon, rest = name.partition(":")
    number = _whole(rest)
    if kind == "planes" and not colon:
        thresholds = []
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
        raise BennError(f"Encoder must be threshold, threshold:VALUE, thermometer:LEVELS or "
                        f"planes, not {name!r}")
    if thresholds and not 1 <= thresholds[-1] <= high:
        raise BennError(f"Threshold must lie in 1..{high}, not {thresholds[-1]}")
    return Encoder(kind, shape, bits, np.array([thresholds], np.int32).reshape(1, -1))


def _even(levels, high):
    """``high * j / (levels + 1)`` for j = 1..levels, rounded."""
    parts = levels + 1
    return [max(1, (2 * high * j + parts) // (2 * parts)) for j in range(1, parts)]
