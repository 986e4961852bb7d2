"""Registers behind block RAMs moved into them.

Block RAMs have registers at their outputs, which cost nothing and are much faster than the way to
one elsewhere. Yosys does not use them; what the generator writes behind each memory of weights is
one (hw/rom.py): it always moves and is never reset.
"""

from benn_fpga.synthesis.netlist import readers

__all__ = ["absorb"]


def absorb(module, family):
    """Use the registers at outputs of block RAMs for flip-flops behind them, where all outputs that
    anybody reads go to one; return how many flip-flops that saves.

    ``module``, of a netlist as JSON, is changed in place.
    """
    if not family.output_registers:
        return 0
    read_by = readers(module)
    gone = set()
    for cell in module["cells"].values():
        left = set(cell["connections"])
        for register in family.output_registers.get(cell["type"], ()):
            if any(int(cell["parameters"][name], 2) not in numbers
                   for name, numbers in register.when.items()):
                continue
            ports = sorted(port for port in left if _is_of(register, port))
            left -= set(ports)  # a register for all of them is instead of one for each half
            taken = _behind(module, family, cell, register, ports, read_by)
            if taken:
                for port in ports:
                    cell["connections"][port] = [
                        module["cells"][taken[bit]]["connections"][family.flip_flop.o][0]
                        if bit in taken else bit for bit in cell["connections"][port]]
                cell["parameters"].update(register.settings)
                for port in register.ties:
                    cell["connections"][port] = ["1"]
                gone |= set(taken.values())
    for name in gone:
        del module["cells"][name]
    return len(gone)


def _is_of(register, port):
    return any(port == name or (name.endswith("*") and port.startswith(name[:-1])
               and port[len(name) - 1:].isdigit()) for name in register.ports)


def _behind(module, family, cell, register, ports, read_by):
    """Name of the flip-flop behind each bit that is read, or nothing if one of them has none that
    can be moved."""
    plain = family.flip_flop
    flops = {}
    for bit in (bit for port in ports for bit in cell["connections"][port]):
        if not read_by[bit]:
            continue
        if len(read_by[bit]) > 1:
            return {}
        name, port = read_by[bit][0]
        behind = None if name is None else module["cells"][name]
        if behind is None or port != plain.i or behind["type"] != plain.cell_type or \
                behind["connections"][plain.clock] != cell["connections"][register.clock] or \
                any(behind["connections"].get(other, [value]) != [value]
                    for other, value in plain.ties.items()) or not _starts_at_zero(behind) \
                or _is_inverted(behind):
            return {}
        flops[bit] = name
    return flops


def _is_inverted(flop):
    """Whether clock, enable or reset of a flip-flop pass an inverter of its own."""
    return any(value == "INV" or (name.startswith("IS_") and "1" in value)
               for name, value in flop["parameters"].items())


def _starts_at_zero(flop):
    return flop["parameters"].get("REGSET", "RESET") == "RESET" and \
        "1" not in flop["parameters"].get("INIT", "0")
