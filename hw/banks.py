"""Constants of channels, one bank of them per round."""

__all__ = ["check_banks", "word"]


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
