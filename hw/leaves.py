"""Popcounts of inputs whose weights are constants."""

from typing import NamedTuple

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pipeline import delay
from benn_fpga.plan.leaves import Chain

__all__ = ["Coded", "Leaves", "Sums", "coded"]


class Coded(NamedTuple):
    """What is the own of a popcount in a chain: ``2*sum + parity + offset`` is the count.

    Members
    -------
    patterns : of each leaf, which of its bits are inverted, the first never
    inverted : of each leaf, whether its half is
    parity : whether the last parity is inverted
    offset : what the count is more
    """

    patterns: tuple[int, ...]
    inverted: tuple[int, ...]
    parity: int
    offset: int


def coded(chain, flips):
    """The :class:`Coded` of ``popcount(x ^ flips)``.

    Zeros are counted instead of ones where that makes the first bit of a leaf plain: a pattern and
    its complement then are the same leaf.
    """
    bits = [(flips >> n) & 1 for n in range(chain.inputs)]
    patterns, inverted, offset = [], [], 0
    for leaf in chain.leaves:
        zeros = bits[leaf.bits[0]]
        pattern = sum((bits[bit] ^ zeros) << n for n, bit in enumerate(leaf.bits))
        patterns.append(pattern)
        inverted.append(zeros)
        offset += zeros * leaf.offset
        bits.append((pattern.bit_count() & 1) ^ zeros)
    return Coded(tuple(patterns), tuple(inverted), bits[-1], offset)


class Leaves(wiring.Component):
    """Halves of the counts of all leaves of a chain, each for every pattern that a popcount has.

    The halves of leaf n are there ``1 + leaf.adder`` cycles after the inputs, in time for their
    adder, and the last parity ``chain.latency`` cycles after them. Each is a LUT of at most six
    inputs and a register, whatever number of popcounts reads it.

    Parameters
    ----------
    chain : plan.leaves.Chain
    popcounts : list of Coded

    Members
    -------
    x : In(chain.inputs)
    o : Out, the last parity, then the halves as ``slices`` tells them apart
    """

    def __init__(self, chain: Chain, popcounts):
        self._chain = chain
        self._patterns = [sorted({each.patterns[n] for each in popcounts})
                          for n in range(len(chain.leaves))]
        width = 1 + sum(leaf.half_bits * len(patterns)
                        for leaf, patterns in zip(chain.leaves, self._patterns, strict=True))
        super().__init__({"x": In(chain.inputs), "o": Out(width)})

    def slices(self, o):
        """Of each leaf the slices of its halves in ``o``: slice k has bit k of all patterns."""
        at = 1
        for leaf, patterns in zip(self._chain.leaves, self._patterns, strict=True):
            size = len(patterns)
            yield [o[at + k * size:at + (k + 1) * size] for k in range(leaf.half_bits)]
            at += leaf.half_bits * size

    def column(self, leaf, pattern):
        """Which element of the slices of a leaf, by its number, is for a pattern."""
        return self._patterns[leaf].index(pattern)

    def elaborate(self, platform):
        m = Module()
        chain, bit = self._chain, _bits_in_time(m, self._chain, self.x)
        halves = []
        for n, (leaf, patterns) in enumerate(zip(chain.leaves, self._patterns, strict=True)):
            # Vector k holds bit k as each pattern wants it, so that all are counted together.
            vectors = [bit(source, leaf.adder).replicate(len(patterns))
                       ^ C(_column(patterns, k), len(patterns))
                       for k, source in enumerate(leaf.bits)]
            for k, half in enumerate(_half(vectors)[:leaf.half_bits]):
                halves.append(delay(m, half, 1, name=f"half{n}_{k}")[-1])
        last = bit(len(chain.ready) - 1, chain.latency)
        m.d.comb += self.o.eq(Cat(last, *halves))
        return m


def _column(patterns, k):
    """Bit ``k`` of all patterns."""
    return sum(((pattern >> k) & 1) << n for n, pattern in enumerate(patterns))


def _bits_in_time(m, chain, x):
    """A function that returns bit ``n`` of a chain, an input or a parity, as it is in a cycle.

    All bits that are ready together move together: what nothing reads, synthesis removes.
    """
    lines, column = [], {}

    def bit(n, cycle):
        ready = chain.ready[n]
        return lines[ready][cycle - ready][column[n]]

    for cycle in range(max(chain.ready) + 1):
        numbers = [n for n, ready in enumerate(chain.ready) if ready == cycle]
        if cycle:
            leaves = [chain.leaves[n - chain.inputs] for n in numbers]
            parities = Cat(Cat(bit(n, cycle - 1) for n in leaf.bits).xor() for leaf in leaves)
            x = delay(m, parities, 1, name=f"parities_{cycle}")[-1]
        column.update({n: k for k, n in enumerate(numbers)})
        lines.append(delay(m, x, chain.latency - cycle, name=f"bits_{cycle}"))
    return bit


def _half(vectors):
    """Slices of half the number of ones in two to six vectors, element by element, rounded down."""
    size = len(vectors[0])
    a, b, c, d, e, f = (*vectors, *[C(0, size)] * (6 - len(vectors)))
    twos = [_majority(a, b, c), _majority(d, e, f), (a ^ b ^ c) & (d ^ e ^ f)]
    return [(twos[0] ^ twos[1] ^ twos[2])[:size], _majority(*twos)[:size]]


def _majority(a, b, c):
    return (a & b) | (c & (a | b))


class Sums(wiring.Component):
    """``o[n] = 2*sum of halves + last parity``, of each popcount, ``chain.latency`` cycles after
    the inputs; a new one every cycle.

    An adder adds to the sum before it two halves of two bits and a half of one bit, all three in
    the LUT that its carry chain has for each bit, and another half of one bit as its carry in.

    Parameters
    ----------
    chain : plan.leaves.Chain
    popcounts : list of Coded
    leaves : Leaves that have what they need

    Members
    -------
    halves : In, ``leaves.o``
    o : Out(len(popcounts) * width)
    """

    def __init__(self, chain: Chain, popcounts, leaves):
        self._chain = chain
        self._popcounts = popcounts
        self._leaves = leaves
        most = sum((1 << leaf.half_bits) - 1 for leaf in chain.leaves)
        self.width = 1 + most.bit_length()
        super().__init__({"halves": In(leaves.o.shape()), "o": Out(len(popcounts) * self.width)})

    def elaborate(self, platform):
        m = Module()
        # A bit is taken from a signal that is not wider than it must be: generation is faster.
        slices = [[_named(m, each, f"leaf{n}_{k}") for k, each in enumerate(leaf)]
                  for n, leaf in enumerate(self._leaves.slices(self.halves))]
        sums, most = [C(0, 0)] * len(self._popcounts), 0
        for adder in range(self._chain.adders):
            numbers = [n for n, leaf in enumerate(self._chain.leaves) if leaf.adder == adder]
            most += sum((1 << len(slices[n])) - 1 for n in numbers)
            halves = [self._halves(m, n, slices[n]) for n in numbers]
            if adder == 0:
                sums = _elements(halves.pop(0))
            added, carry = self._added(m, halves, f"added{adder}")
            sums = [_sum(total, operand, carry[n], most.bit_length())
                    for n, (total, operand) in enumerate(zip(sums, added, strict=True))]
            sums = [delay(m, total, 1, name=f"sum{adder}_{n}")[-1] for n, total in enumerate(sums)]
        parity = self.halves[0]
        m.d.comb += self.o.eq(Cat(
            Cat(~parity if each.parity else parity, total) for each, total in zip(
                self._popcounts, sums, strict=True)))
        return m

    def _halves(self, m, n, slices):
        """Slices of the half of leaf ``n``, each with an element of every popcount."""
        columns = [self._leaves.column(n, each.patterns[n]) for each in self._popcounts]
        inverted = _column([each.inverted[n] for each in self._popcounts], 0)
        return [_named(m, Cat(each[column] for column in columns) ^ C(inverted, len(columns)),
                       f"half{n}_{k}")
                for k, each in enumerate(slices)]

    def _added(self, m, halves, name):
        """The sums of ``halves``, but for one of a single bit, and that one, the carry; each of
        every popcount."""
        singles = [half for half in halves if len(half) == 1]
        carry = singles[-1][0] if singles else C(0, len(self._popcounts))
        rest = [half for half in halves if not singles or half is not singles[-1]]
        nothing = C(0, len(self._popcounts))
        ones = _filled([half[0] for half in rest], nothing)
        over = _majority(*ones)
        twos = _filled([half[1] for half in rest if len(half) > 1] + [over], nothing)
        if not rest:
            return [C(0, 0)] * len(self._popcounts), carry
        return _elements([_named(m, value[:len(nothing)], f"{name}_{k}") for k, value in enumerate((
            ones[0] ^ ones[1] ^ ones[2], twos[0] ^ twos[1] ^ twos[2], _majority(*twos)))]), carry


def _named(m, value, name):
    """``value`` as a signal, which is computed once."""
    signal = Signal(value.shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def _filled(vectors, nothing):
    """``vectors``, three of them."""
    return [*vectors, *[nothing] * (3 - len(vectors))]


def _elements(slices):
    """Of each element its bits, which ``slices`` hold."""
    return [Cat(each) for each in zip(*slices, strict=True)]


def _sum(total, added, carry, width):
    """``total + added + carry``, of ``width`` bits.

    In a bit below them the carry is added to itself: that takes no LUT and no inverter. It is a
    difference, since synthesis may exchange the operands of a sum: carry chains read the first one
    directly, so it must be a register and not what is computed in the LUTs before the chain.
    """
    above = max(0, width - len(added))
    minus = Cat(~carry, ~added[:width], C((1 << above) - 1, above))
    return (Cat(carry, total) - minus)[1:width + 1]
