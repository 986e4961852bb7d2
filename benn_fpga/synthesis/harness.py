"""Registers around a netlist, so that it is placed with four pins, whatever its ports.

A chain of registers feeds the inputs, registers take the outputs, and their parity goes to a pin:
nothing can be optimised away (the netlist is mapped already), and paths from and to ports are paths
between registers. Cells have names below HARNESS, so that they are not counted.
"""

from benn_fpga.synthesis.owners import HARNESS

__all__ = ["around"]

_DIRECT = ("clk", "rst")  # ports that are pins
_PARITY = f"{0x6996:016b}"  # the table of an exclusive or of four inputs


class _Around:
    def __init__(self, module, family):
        self._module = module
        self._parts = family.harness
        self._flop = family.flip_flop
        used = [bit for net in module["netnames"].values() for bit in net["bits"]
                if isinstance(bit, int)]
        used += [bit for port in module["ports"].values() for bit in port["bits"]
                 if isinstance(bit, int)]
        used += [bit for cell in module["cells"].values()
                 for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)]
        self._next = max(used) + 1
        self._clock = module["ports"]["clk"]["bits"][0]

    def wire(self):
        self._next += 1
        return self._next - 1

    def _cell(self, name, cell_type, parameters, connections, outputs):
        self._module["cells"][f"{HARNESS}.{name}"] = {
            "hide_name": 0, "type": cell_type, "parameters": parameters, "attributes": {},
            "port_directions": {port: "output" if port in outputs else "input"
                                for port in connections},
            "connections": {port: [bit] for port, bit in connections.items()},
        }

    def register(self, name, given, taken=None):
        """A register of bit ``given``; its output is ``taken``, or a new bit."""
        flop, taken = self._flop, self.wire() if taken is None else taken
        self._cell(name, flop.cell_type, dict(flop.settings),
                   {flop.clock: self._clock, flop.i: given, flop.o: taken}, (flop.o,))
        return taken

    def parity(self, name, bits):
        cell_type, table, ports = self._parts.xor
        taken = self.wire()
        bits = [*bits, *["0"] * (4 - len(bits))]
        self._cell(name, cell_type, {table: _PARITY}, dict(zip(ports, [*bits, taken], strict=True)),
                   ports[-1:])
        return taken

    def pin(self, name, direction, bit):
        """A pin, with the buffer that some families ask for."""
        if self._parts.buffers:
            cell_type, outer = self._parts.buffers[direction == "output"], self.wire()
            ends = (bit, outer) if direction == "output" else (outer, bit)
            self._cell(f"{name}_buffer", cell_type, {}, dict(zip("IO", ends, strict=True)), "O")
            bit = outer
        self._module["ports"][name] = {"direction": direction, "bits": [bit]}


def around(module, family):
    """``module``, of a netlist as JSON, with registers of a :class:`~benn_fpga.devices.Family`
    around it; it is changed in place."""
    ports, module["ports"] = module["ports"], dict(module["ports"])
    make = _Around(module, family)
    module["ports"] = {}
    shifted = make.wire()
    make.pin("shift_in", "input", shifted)
    taken = []
    for name, port in ports.items():
        for n, bit in enumerate(port["bits"]):
            if port["direction"] == "output":
                taken.append(make.register(f"{name}_{n}", bit))
            elif name in _DIRECT:
                make.pin(name, "input", bit)
            else:
                shifted = make.register(f"{name}_{n}", shifted, bit)
    while len(taken) > 1:
        level = len(taken)
        taken = [make.register(f"parity_{level}_{n}_q", make.parity(f"parity_{level}_{n}",
                                                                    taken[n:n + 4]))
                 for n in range(0, level, 4)]
    make.pin("parity", "output", taken[0])
    return module
