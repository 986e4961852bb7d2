# amaranth: UnusedElaboratable=no
import random
from itertools import pairwise

import pytest
from amaranth.hdl import *
from amaranth.sim import Simulator

from benn_fpga.hw.leaves import Leaves, Sums, coded
from benn_fpga.hw.threshold import reaches
from benn_fpga.plan.leaves import block_size, chain

WIDTHS = [*range(1, 15), 18, 24, 25, 29, 47, 96, 118]


@pytest.mark.parametrize("inputs", WIDTHS)
def test_every_bit_is_in_one_leaf(inputs):
    made = chain(inputs)
    bits = sorted(bit for leaf in made.leaves for bit in leaf.bits)
    assert bits == list(range(inputs + len(made.leaves) - 1))
    assert all(made.ready[bit] <= leaf.adder for leaf in made.leaves for bit in leaf.bits)


@pytest.mark.parametrize("inputs", WIDTHS)
def test_adders_have_room_for_their_leaves(inputs):
    """Beside the first leaf: what a LUT reads with a bit of the sum, and a carry."""
    made = chain(inputs)
    for adder in range(made.adders):
        bits = [leaf.half_bits for leaf in made.leaves if leaf.adder == adder][adder == 0:]
        assert len(bits) <= 4
        assert bits.count(2) <= 2


def test_blocks():
    assert [chain(n).adders for n in (118, 119)] == [8, 9]
    assert [block_size(n) for n in (1, 118, 119, 784)] == [1, 118, 60, 112]
    adders = [chain(n).adders for n in range(59, 119)]
    assert all(few <= more for few, more in pairwise(adders))
    assert max(chain(n).adders for n in range(1, 59)) <= adders[0]


def rtl_popcounts(made, flips, words):
    """Of each word the ``popcount(word ^ each of flips)``, one word in a cycle."""
    codes = [coded(made, each) for each in flips]
    m = Module()
    m.submodules.leaves = leaves = Leaves(made, codes)
    m.submodules.sums = sums = Sums(made, codes, leaves)
    m.d.comb += sums.halves.eq(leaves.o)
    got = []

    async def bench(ctx):
        for word in [*words, *[0] * made.latency]:
            ctx.set(leaves.x, word)
            got.append([ctx.get(sums.o.word_select(n, sums.width)) + each.offset
                        for n, each in enumerate(codes)])
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got[made.latency:]


@pytest.mark.parametrize("inputs", WIDTHS)
def test_popcounts(inputs):
    rng, ones = random.Random(inputs), (1 << inputs) - 1
    flips = [0, ones, *(rng.getrandbits(inputs) for _ in range(3))]
    words = [0, ones, *(rng.getrandbits(inputs) for _ in range(12))]
    assert rtl_popcounts(chain(inputs), flips, words) == [
        [(word ^ each).bit_count() for each in flips] for word in words]


def test_a_pattern_and_its_complement_are_one_leaf():
    made, flips = chain(6), 0b001101
    codes = [coded(made, flips), coded(made, flips ^ 0b111111)]
    assert len(Leaves(made, codes).o) == len(Leaves(made, codes[:1]).o) == 3


@pytest.mark.parametrize("threshold", range(-1, 10))
def test_reaches(threshold):
    m, value, out, got = Module(), Signal(3), Signal(), []
    m.d.comb += out.eq(reaches(value, threshold))

    async def bench(ctx):
        for n in range(8):
            ctx.set(value, n)
            got.append(ctx.get(out))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == [int(n >= threshold) for n in range(8)]
