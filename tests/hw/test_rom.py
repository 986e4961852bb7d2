# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from benn_fpga.hw.rom import Rom


@pytest.mark.parametrize("latency", [1, 2])
@pytest.mark.parametrize("depth", [2, 5, 64])
def test_rom(depth, latency):
    rng = random.Random(depth)
    words, order = [rng.getrandbits(9) for _ in range(depth)], list(range(depth))
    rng.shuffle(order)
    dut, got = Rom(words, width=9, latency=latency), []

    async def bench(ctx):
        for n, address in enumerate([*order, *[0] * latency]):
            ctx.set(dut.address, address)
            ctx.set(dut.en, 0)
            if n % 3 == 0:
                await ctx.tick()
            ctx.set(dut.en, 1)
            await ctx.tick()
            got.append(ctx.get(dut.data))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert dut.latency == latency
    assert got[latency - 1:-1] == [words[n] for n in order]


def test_one_word_is_a_constant():
    assert Rom([5], width=3).latency == 0


@pytest.mark.parametrize(("depth", "width", "block"), [
    (64, 4, False), (63, 1000, False), (64, 31, False), (64, 32, True), (1024, 1, False),
    (2048, 1, True), (256, 16, True),
])
def test_block_ram_is_asked_for_where_it_pays(depth, width, block):
    dut = Rom([1] * depth, width=width)
    assert ("rom_style" in rtlil.convert(dut)) is block


@pytest.mark.parametrize(("words", "options", "message"), [
    ([], {"width": 2}, "Words must not be empty"),
    ([1, 4], {"width": 2}, "Words must fit 2 bits"),
    ([1], {"width": 0}, "Width must be a positive integer, not 0"),
    ([1], {"width": 1, "latency": 0}, "Latency must be a positive integer, not 0"),
])
def test_wrong_parameters(words, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Rom(words, **options)
