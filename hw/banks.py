"""Constants of channels, one bank of them per round.

Engines that do the same to every channel are one with as many times the channels: channel 0 of
every engine, then channel 1, as streams have them.
"""

from dataclasses import replace

__all__ = ["check_banks", "interleaved", "widened", "word"]


def widened(layer, ways):
    """``layer`` with the channels of so many engines."""
    *size, channels = layer.shape
    return replace(layer, shape=(*size, channels * ways))


def interleaved(contents, n):
    """What the members of all engines store for layer ``n``: by name, per round and channel."""
    stored = [each.stored(n) for each in contents]
    return {key: [[value for channel in zip(*banks, strict=True) for value in channel]
                  for banks in zip(*(each[key] for each in stored), strict=True)]
            for key in stored[0]}


def check_banks(noun, values, *sizes):
    """Raise unless ``values`` are lists of lists ... of Python integers of these sizes."""
    if not _fit(values, sizes):
        raise ValueError(f"{noun} must be integers in lists of {', '.join(map(str, sizes))}, "
                         f"outermost first")


def _fit(values, sizes):
    if not sizes:
        return isinstance(values, int)
    return (isinstance(values, (list, tuple)) and len(values) == sizes[0]
            and all(_fit(value, sizes[1:]) for value in values))


def word(values, width):
    """``values`` side by side, the first in the low bits; negative ones in two's complement."""
    return sum((value & ((1 << width) - 1)) << (n * width) for n, value in enumerate(values))
