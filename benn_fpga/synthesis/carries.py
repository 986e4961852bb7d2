"""Carry chains of an ECP5 that begin in a slot of their own.

A cell CCU2C adds two bits. What enters the first cell of a chain must come out of another one, so
nextpnr puts a cell before it even for a constant. Where the last slot of a chain is free, all bits
move up by one instead, and the first slot makes the constant: it does not read what enters.
"""

from benn_fpga.synthesis.netlist import NOTHING, readers

__all__ = ["shift"]

_INPUTS = "ABCD"
# Neither passes what enters; with all inputs 1 they give a carry of 0 or 1.
_STARTS = {"0": 0x0000, "1": 0x0008}


def shift(module, family):
    """Move the bits of chains up where that saves a cell; return how many it saves.

    ``module``, of a netlist as JSON, is changed in place.
    """
    cells = [cell for cell in module["cells"].values() if cell["type"] == family.carry_cell]
    by_carry = {cell["connections"]["CIN"][0]: cell for cell in cells}
    read_by, saved = readers(module), 0
    for first in cells:
        start = _STARTS.get(first["connections"]["CIN"][0])
        if start is None:
            continue
        chain = [first]
        while (carry := chain[-1]["connections"]["COUT"][0]) in by_carry and _is_chained(
                read_by[carry]):
            chain.append(by_carry[carry])
        last = chain[-1]["connections"]
        if read_by[last["S1"][0]] or read_by[last["COUT"][0]] or any(map(_injects, chain)):
            continue
        slots = [_slot(cell, n) for cell in chain for n in (0, 1)]
        nothing = {**{port: ["1"] for port in _INPUTS}, "S": last["S1"]}  # which nobody reads
        moved = [(nothing, f"{start:016b}"), *slots[:-1]]
        for n, slot in enumerate(moved):
            _put(chain[n // 2], n % 2, *slot)
        first["connections"]["CIN"] = [NOTHING]
        saved += 1
    return saved


def _injects(cell):
    """Whether its carry is more than what enters and what its tables say."""
    return any(cell["parameters"].get(f"INJECT1_{n}", "NO") != "NO" for n in (0, 1))


def _is_chained(reads):
    return [port for _, port in reads] == ["CIN"]


def _slot(cell, n):
    """Bits at the ports of a half of a cell, and what it computes."""
    return ({port: cell["connections"][f"{port}{n}"] for port in (*_INPUTS, "S")},
            cell["parameters"][f"INIT{n}"])


def _put(cell, n, bits, init):
    cell["connections"].update({f"{port}{n}": bit for port, bit in bits.items()})
    cell["parameters"][f"INIT{n}"] = init
