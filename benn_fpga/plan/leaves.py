"""How bits are counted where weights are constants: in leaves, which a chain of adders adds up.

Nothing here depends on what the weights are, so that all outputs of a layer, and all members that
read the same inputs, can share leaves. This module imports nothing of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

__all__ = ["Chain", "Leaf", "block_size", "chain"]

WIDE, NARROW = 6, 3  # bits of a leaf: what a LUT reads; what gives half a count of one bit
_WIDE_PER_ADDER, _NARROW_PER_ADDER = 2, 2  # with a bit of the sum they are what a LUT reads
_MOST_INPUTS = 118  # of a chain: in more than 8 adders, most of an adder would only pass carries


@dataclass(frozen=True)
class Leaf:
    """A few bits that are counted together: ``2*half + parity`` is how many of them are 1.

    Members
    -------
    bits : numbers of the bits: inputs, and behind them the parities of the leaves before it
    adder : which adder of the chain takes its half
    """

    bits: tuple[int, ...]
    adder: int

    @property
    def half_bits(self) -> int:
        return 1 if len(self.bits) <= NARROW else 2

    @property
    def offset(self) -> int:
        """Of ``2*~half + ~parity``, which counts the zeros, to their number."""
        return len(self.bits) + 1 - (2 << self.half_bits)


@dataclass(frozen=True)
class Chain:
    """Leaves and adders that count ``inputs`` bits: ``2*sum of halves + last parity``.

    Members
    -------
    leaves : in the order of their parities; all parities but the last are bits of later leaves
    ready : of each bit, inputs and parities, in which cycle it is there
    """

    inputs: int
    leaves: tuple[Leaf, ...]
    ready: tuple[int, ...]

    @property
    def adders(self) -> int:
        return self.leaves[-1].adder + 1 if self.leaves else 0

    @property
    def latency(self) -> int:
        """Registered levels to the sum: of the leaves, then one per adder."""
        return 1 + self.adders


@cache
def chain(inputs: int) -> Chain:
    """The chain for so many inputs.

    An adder takes two leaves of six bits and two of three, the first adder one of six more: each
    replaces its bits by a parity, until a single one is left. A parity is a bit as any other one
    cycle after its bits; in which cycle the halves are added does not matter.
    """
    ready = [0] * inputs
    waiting, leaves, adder = list(range(inputs)), [], 0
    while len(waiting) > 1:
        wide, narrow = _WIDE_PER_ADDER + (adder == 0), _NARROW_PER_ADDER
        while wide + narrow:
            there = [bit for bit in waiting if ready[bit] <= adder]
            is_wide = wide and (len(there) > NARROW or not narrow)
            size = min(WIDE if is_wide else NARROW, len(there)) if is_wide or narrow else 0
            if size < 2:
                break
            bits = tuple(there[:size])
            leaves.append(Leaf(bits, adder))
            waiting = [bit for bit in waiting if bit not in bits] + [len(ready)]
            ready.append(1 + max(ready[bit] for bit in bits))
            wide, narrow = (wide - 1, narrow) if is_wide else (wide, narrow - 1)
        adder += 1
    return Chain(inputs, tuple(leaves), tuple(ready))


def block_size(inputs: int) -> int:
    """Inputs of a chain where several count ``inputs`` bits; the last may have fewer."""
    blocks = -(-inputs // _MOST_INPUTS)
    return -(-inputs // blocks)
