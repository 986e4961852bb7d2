# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.sim import Simulator

from benn_fpga.hw.pe import ProcessingElement
from benn_fpga.plan import latency


def rtl_pipeline(dut, inputs, latency):
    """Outputs for a list of {port: value}, fed one per cycle."""
    got = []

    async def bench(ctx):
        for ports in [*inputs, *inputs[:1] * latency]:
            for port, value in ports.items():
                ctx.set(getattr(dut, port), value)
            await ctx.tick()
            got.append(ctx.get(dut.o))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got[latency - 1:-1] if latency > 1 else got[:-1]


@pytest.mark.parametrize("adder_levels", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 18, 19, 25, 38, 64, 100, 193])
def test_popcount(width, adder_levels):
    rng = random.Random(width)
    words = [0, (1 << width) - 1, *(rng.getrandbits(width) for _ in range(20))]
    dut = ProcessingElement(simd=width, weight_bits=1, input_bits=1, adder_levels=adder_levels)
    got = rtl_pipeline(dut, [{"w": (1 << width) - 1, "x": w} for w in words],
                       latency.popcount_latency(width, adder_levels))
    assert got == [w.bit_count() for w in words]


@pytest.mark.parametrize(("width", "adder_levels", "registers"), [
    (3, 2, 1), (9, 1, 2), (9, 2, 2), (18, 2, 2), (64, 1, 5), (64, 2, 3), (100, 2, 4)])
def test_where_registers_are(width, adder_levels, registers):
    assert latency.popcount_latency(width, adder_levels) == registers


def ref_pe(w, x, simd, q, p):
    def value(word, n, bits):
        return (word >> (n * bits)) & ((1 << bits) - 1)

    dot = sum((2 * value(w, n, q) - (1 << q) + 1) * (2 * value(x, n, p) - (1 << p) + 1)
              for n in range(simd))
    return (dot + simd * ((1 << q) - 1) * ((1 << p) - 1)) // 2


@pytest.mark.parametrize(("simd", "q", "p"),
                         [(1, 1, 1), (7, 1, 1), (16, 1, 8), (5, 2, 3), (3, 4, 1)])
def test_processing_element(simd, q, p):
    rng = random.Random(simd)
    pairs = [(rng.getrandbits(simd * q), rng.getrandbits(simd * p)) for _ in range(30)]
    pairs += [(0, 0), (0, (1 << simd * p) - 1), ((1 << simd * q) - 1, (1 << simd * p) - 1)]
    dut = ProcessingElement(simd=simd, weight_bits=q, input_bits=p)
    got = rtl_pipeline(dut, [{"w": w, "x": x} for w, x in pairs],
                       latency.sum_latency(simd, q, p))
    assert got == [ref_pe(w, x, simd, q, p) for w, x in pairs]


@pytest.mark.parametrize(("noun", "port"), [("SIMD", "simd"), ("Weight bits", "weight_bits"),
                                            ("Input bits", "input_bits")])
def test_processing_element_parameters(noun, port):
    sizes = {"simd": 1, "weight_bits": 1, "input_bits": 1, port: 0}
    with pytest.raises(ValueError, match=f"^{noun} must be a positive integer, not 0$"):
        ProcessingElement(**sizes)
