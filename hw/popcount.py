"""Pipelined count of ones."""

from amaranth.hdl import *

from benn_fpga.hw.pipeline import delay, reduce_tree
from benn_fpga.plan.latency import popcount_groups, popcount_registers

__all__ = ["popcount"]


def popcount(m, bits, *, name, adder_levels=1):
    """Number of ones in ``bits``, ``latency.popcount_latency`` cycles later.

    Sums of three bits, sums of three of those, then a binary tree of adders, with the registers of
    ``latency.popcount_registers``. Where a bit is the XNOR of two, a sum of three has six inputs: a
    LUT6 for each of its two bits, or four LUT4. Bits that do not fill a group of nine are carried
    into the first adders. The small sums are kept bit-sliced, vector k holding bit k of all of
    them, so that a level is a few wide operations whatever its width.
    """
    groups, over = popcount_groups(len(bits))
    threes, *later = popcount_registers(len(bits), adder_levels)
    carries = delay(m, bits[:over], sum([threes, *later[:1]]), name=f"{name}_over")[-1]
    third = -(-(len(bits) - over) // 3)
    slices = _registered(m, _sum_of_three([bits[over + n * third:over + (n + 1) * third]
                                           for n in range(3)]), f"{name}_threes", threes)
    if len(bits) > 3:
        nines, *later = later
        parts = [[s[n * groups:(n + 1) * groups] for s in slices] for n in range(3)]
        low, carry = _sum_of_three([part[0] for part in parts])
        slices = _registered(m, [low, *_sum_of_four([part[1] for part in parts], carry)],
                             f"{name}_nines", nines)
    sums = [Cat(s[n] for s in slices) for n in range(groups)]
    if over:
        first, *later = later
        # The first adders take what is left over, as carried out of a bit below theirs.
        pairs = [sums[n:n + 2] for n in range(0, groups, 2)]
        added = [(Cat(C(1, 1), a) + Cat(carry, b))[1:]
                 for (a, b), carry in zip(pairs, carries, strict=False)]
        added += [sum(pair[1:], pair[0]) for pair in pairs[over:]]
        sums = [delay(m, value, int(first), name=f"{name}_first_{n}")[-1]
                for n, value in enumerate(added)]
    total, = reduce_tree(m, [(value,) for value in sums], lambda a, b: (a[0] + b[0],),
                         name=f"{name}_sum", registers=later)
    return total


def _registered(m, slices, name, register):
    return [delay(m, s, int(register), name=f"{name}_{k}")[-1] for k, s in enumerate(slices)]


def _sum_of_three(vectors):
    """Slices of ``a + b + c``, element by element; the first has the most."""
    a, b, c = vectors
    size = len(a)
    return [(a ^ b ^ c)[:size], ((a & b) | (c & (a | b)))[:size]]


def _sum_of_four(vectors, carry):
    """Slices of ``a + b + c + carry``, element by element."""
    a, b, c = vectors
    size = len(a)
    ones, twos = _sum_of_three([a, b, c])
    return [(ones ^ carry)[:size], (twos ^ (ones & carry))[:size], (twos & ones & carry)[:size]]
