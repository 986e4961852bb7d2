"""Carry chains of ECP5 whose bits move up compute what they did, in a cell less."""

from itertools import product

import pytest

from benn_fpga import devices
from benn_fpga.synthesis import carries
from benn_fpga.synthesis.netlist import NOTHING, count
from benn_fpga.synthesis.owners import Owners

ECP5 = devices.find("ecp5-12k").family
ADD = 0x96AA
LEFT, RIGHT, SUM, CARRY = 100, 200, 300, 400


def adder(width, *, start="0", read=None):
    """A chain that adds two numbers of ``width`` bits, with outputs that are ``read``."""
    cells = {}
    for n in range(-(-width // 2)):
        bits = {"CIN": start if n == 0 else CARRY + n - 1, "COUT": CARRY + n}
        for half in (0, 1):
            bit = 2 * n + half
            inside = bit < width
            bits |= {f"A{half}": LEFT + bit if inside else "0",
                     f"B{half}": RIGHT + bit if inside else "0", f"C{half}": "0", f"D{half}": "1",
                     f"S{half}": SUM + bit}
        cells[f"layer0.add{n}"] = {
            "type": "CCU2C", "parameters": {f"INIT{half}": f"{ADD:016b}" for half in (0, 1)},
            "port_directions": {port: "output" if port[0] == "S" or port == "COUT" else "input"
                                for port in bits},
            "connections": {port: [bit] for port, bit in bits.items()}}
    read = [SUM + n for n in range(width)] if read is None else read
    return {"cells": cells, "ports": {"y": {"direction": "output", "bits": read}}}


def computed(module, a, b):
    """Value of every bit: the cells as Yosys describes them, of a CIN that is not there both."""
    values = {"0": 0, "1": 1}
    values |= {base + n: number >> n & 1 for base, number in ((LEFT, a), (RIGHT, b))
               for n in range(16)}
    for cell in module["cells"].values():  # in the order of the chain
        bits = {port: bit for port, (bit,) in cell["connections"].items()}
        carry = values.get(bits["CIN"])
        for half in (0, 1):
            init = int(cell["parameters"][f"INIT{half}"], 2)
            at = [values[bits[f"{port}{half}"]] for port in "ABCD"]
            passes = init >> sum(bit << n for n, bit in enumerate(at)) & 1
            makes = (init & 15) >> (at[0] + 2 * at[1]) & 1
            assert carry is not None or not passes
            values[bits[f"S{half}"]] = None if carry is None else passes ^ carry
            carry = carry if passes else makes
        values[bits["COUT"]] = carry
    return values


@pytest.mark.parametrize("start", ["0", "1"])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_bits_move_up(width, start):
    module = adder(width, start=start)
    assert carries.shift(module, ECP5) == 1
    for a, b in product(range(1 << width), repeat=2):
        values = computed(module, a, b)
        got = sum(values[SUM + n] << n for n in range(width))
        assert got == (a + b + int(start)) % (1 << width)
    assert module["cells"]["layer0.add0"]["connections"]["CIN"] == [NOTHING]
    driven = [bit for cell in module["cells"].values() for port, (bit,)
              in cell["connections"].items() if cell["port_directions"][port] == "output"]
    assert NOTHING not in driven  # Yosys takes no constant there
    assert len(set(driven)) == len(driven)


@pytest.mark.parametrize(("width", "changes"), [
    (4, {}),  # full
    (3, {"start": 77}),  # a carry that logic gives
    (3, {"read": [SUM, SUM + 1, SUM + 2, SUM + 3]}),
    (3, {"read": [CARRY + 1]}),
    (5, {"read": [SUM + 4, CARRY]}),  # logic reads a carry in the middle
])
def test_other_chains_stay(width, changes):
    module = adder(width, **changes)
    assert carries.shift(module, ECP5) == 0
    assert module == adder(width, **changes)


def test_a_chain_with_an_injected_carry_stays():
    module = adder(3)
    module["cells"]["layer0.add1"]["parameters"]["INJECT1_1"] = "YES"
    assert carries.shift(module, ECP5) == 0


def test_a_chain_is_counted_as_nextpnr_builds_it():
    owners = Owners({"nodes": [{"name": "layer0", "engines": 1, "memories": {}}]})
    module = adder(3)
    assert count(module, ECP5, owners).lut == 6
    carries.shift(module, ECP5)
    assert count(module, ECP5, owners).lut == 4
