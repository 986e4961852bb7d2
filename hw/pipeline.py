"""Registers that move together: counters, delay lines and reduction trees."""

from amaranth.hdl import *

__all__ = ["banked", "counter", "delay", "reduce_tree", "stock"]


def counter(m, stop, *, en, name, step=1):
    """A count 0, ``step``, ... below ``stop``, going round, and whether it is at its last value.

    It moves with ``en``. ``step`` divides ``stop``; a count of one value is a constant, since a
    signal for it would have no bits.
    """
    if stop == step:
        return C(0), C(1)
    count, last = Signal(range(stop), name=name), Signal(name=f"{name}_last")
    m.d.comb += last.eq(count == stop - step)
    with m.If(en):
        m.d.sync += count.eq(Mux(last, 0, count + step))
    return count, last


def banked(m, size, *, repeats, banks, en, name, step=1):
    """Addresses 0, ``step``, ... of ``banks`` of ``size`` each, every bank gone through ``repeats``
    times before the next.

    It moves with ``en``.
    """
    if repeats == 1 or banks == 1:
        return counter(m, size * (banks if repeats == 1 else 1), en=en, name=name, step=step)[0]
    word, end = counter(m, size, en=en, name=name, step=step)
    _, done = counter(m, repeats, en=en & end, name=f"{name}_repeat")
    bank, _ = counter(m, size * banks, en=en & end & done, name=f"{name}_bank", step=size)
    return bank + word


def stock(m, most, *, comes, goes, name, full=False):
    """Whether any are there, of ``most`` at the most, if one ``comes`` or ``goes`` in a cycle.

    Both may. One that starts ``full`` learns last whether one comes, another whether one goes. That
    is no part of the sum: it only enables the register. It counts one less than there are, so that
    its sign is the answer.
    """
    count = Signal(range(-1, most), name=name, init=most - 1 if full else -1)
    with m.If(comes != goes):
        m.d.sync += count.eq(count + (Mux(goes, -1, 1) if full else Mux(comes, 1, -1)))
    return ~count[-1]


def delay(m, value, cycles, *, name, init=None):
    """A list of ``value`` and its ``cycles`` delayed copies; with ``init`` they are reset to it.

    A constant needs no registers, nor does None.
    """
    if value is None or isinstance(value, Const):
        return [value] * (cycles + 1)
    taps = [value]
    for n in range(cycles):
        register = Signal(value.shape(), name=f"{name}_{n + 1}", init=init,
                          reset_less=init is None)
        m.d.sync += register.eq(taps[-1])
        taps.append(register)
    return taps


def reduce_tree(m, items, merge, *, name, registers=None):
    """Reduce ``items`` pairwise, a register after each of ``tree_latency(len(items))`` levels, or
    after those that ``registers`` says.

    An item is a tuple of values; ``merge(a, b)`` returns the tuple that replaces a pair, ``a``
    being the one that came first. An odd item waits a level.
    """
    level = 0
    while len(items) > 1:
        pairs = [merge(*items[n:n + 2]) if n + 1 < len(items) else items[n]
                 for n in range(0, len(items), 2)]
        cycles = 1 if registers is None else int(registers[level])
        items = [tuple(delay(m, field, cycles, name=f"{name}_l{level}_{n}_{f}")[-1]
                       for f, field in enumerate(pair))
                 for n, pair in enumerate(pairs)]
        level += 1
    return items[0]
