"""Registers that move together: delay lines and reduction trees under one clock enable."""

from amaranth.hdl import *

__all__ = ["delay", "reduce_tree"]


def delay(m, value, cycles, *, en, name, init=None):
    """A list of ``value`` and its ``cycles`` delayed copies; with ``init`` they are reset to it."""
    taps = [value]
    for n in range(cycles):
        register = Signal(value.shape(), name=f"{name}_{n + 1}", init=init or 0,
                          reset_less=init is None)
        with m.If(en):
            m.d.sync += register.eq(taps[-1])
        taps.append(register)
    return taps


def reduce_tree(m, items, merge, *, en, name):
    """Reduce ``items`` pairwise, a register after each of ``tree_latency(len(items))`` levels.

    An item is a tuple of values; ``merge(a, b)`` returns the tuple that replaces a pair, ``a``
    being the one that came first. An odd item waits a level.
    """
    level = 0
    while len(items) > 1:
        pairs = [merge(*items[n:n + 2]) if n + 1 < len(items) else items[n]
                 for n in range(0, len(items), 2)]
        items = [tuple(delay(m, field, 1, en=en, name=f"{name}_l{level}_{n}_{f}")[-1]
                       for f, field in enumerate(pair))
                 for n, pair in enumerate(pairs)]
        level += 1
    return items[0]
