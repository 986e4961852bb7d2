"""Constants of channels, one bank of them per round."""

from benn_fpga.hw.pipeline import counter

__all__ = ["bank_row", "check_banks", "word"]


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


def bank_row(m, *, rounds, groups, pixels, en, step=1):
    """Row of the constants of a group of channels, times ``step``: ``groups`` rows per bank.

    ``en`` goes to the next group; after the groups of ``pixels`` pixels comes the next bank.
    """
    size = groups * step
    group, pixel_ends = counter(m, size, step=step, en=en, name="group")
    if rounds == 1:
        return group
    _, bank_ends = counter(m, pixels, en=en & pixel_ends, name="pixel")
    bank, _ = counter(m, rounds * size, step=size, en=en & pixel_ends & bank_ends, name="bank")
    return bank + group
