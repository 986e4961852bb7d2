"""FPGAs: what is on each of them, and how the open tools are told to use it.

One place for what is known of a part. Shapes of block RAMs are in plan/blocks.py; a family names
its own there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from benn_fpga.errors import BennError

__all__ = ["DEVICES", "RESOURCES", "Cost", "Device", "Family", "FlipFlop", "Harness",
           "OutputRegister", "Placed", "find"]

RESOURCES = {  # what is counted, and what it is called
    "lut": "LUTs",
    "ff": "flip-flops",
    "bram": "block RAMs",
    "dsp": "multipliers",
    "logic_cells": "logic cells",
}


@dataclass(frozen=True)
class Cost:
    """What one cell of a netlist takes; ``carry`` are bits of carry chains."""

    lut: int = 0
    carry: int = 0
    ff: int = 0
    bram: int = 0
    dsp: int = 0


@dataclass(frozen=True)
class FlipFlop:
    """The plain flip-flop of a family, which always moves and is never reset.

    Members
    -------
    cell_type : of the netlist
    clock, i, o : its ports
    ties : constants at its other ports, if it has any
    settings : parameters of one that is added to a netlist
    """

    cell_type: str
    clock: str
    i: str
    o: str
    ties: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Harness:
    """Cells around a design beside registers, so that it can be placed without a pin for each port.

    Ports are in the order in which :mod:`synthesis.harness` connects them.
    """

    xor: tuple[str, str, tuple[str, str, str, str, str]]  # type, parameter of the table; inputs, o
    buffers: tuple[str, str] | None = None  # of input and output pins, if a netlist must have them


@dataclass(frozen=True)
class OutputRegister:
    """A register at outputs of a block RAM, which is there whether it is used or not.

    Members
    -------
    ports : outputs that it holds; a name that ends in * stands for all that begin so
    clock : port of its clock
    settings : parameters that switch it on
    ties : ports that must be 1 for it to move
    when : parameters of a block that has it, each with the numbers that it may be
    """

    ports: tuple[str, ...]
    clock: str
    settings: Mapping[str, str]
    ties: tuple[str, ...]
    when: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """What a netlist after placement says better than that before.

    Members
    -------
    resource : by its name in RESOURCES
    cells : how many of it a cell takes there, by type
    """

    resource: str
    cells: Mapping[str, int]


@dataclass(frozen=True)
class Family:
    """Devices that are synthesised alike.

    Members
    -------
    name : as in tables
    command : of Yosys, which maps a design to the cells of the family
    cells : :class:`Cost` of each type of cell; a name that ends in * stands for all that begin so
    block : name of its block RAM in plan.blocks.BLOCKS
    models : files of Yosys with the cells as Verilog, for simulation of a netlist
    own_models : a file beside synthesis/script.py with those cells of which Yosys has no more than
        the ports; empty if there is none
    nextpnr : which nextpnr places it; None if it is only counted
    harness : None if it is only counted
    has_logic_cells : whether LUT, carry and flip-flop share a cell, which then is the unit of size
    placed : its :class:`Placed`; None if it is only counted
    passing : how names of cells end that nextpnr adds in free places, as a way to another cell
    memories : of Yosys the libraries of memories and the Verilog that maps block RAMs, if
        :mod:`synthesis.script` knows how to make that faster
    lut_steps : (label, commands, label) that ``command`` runs otherwise from the first label of its
        own up to the second
    spends_blocks : command of Yosys that maps more memories to block RAMs than it would by itself
    output_registers : of block RAMs, which Yosys leaves unused, by type of cell; of those that a
        block has, the first
    flip_flop : its :class:`FlipFlop`; None if it is of no real family
    caution : what to keep in mind of its clock
    fed_by_luts : type of carry cell and its port that nothing but a LUT can drive: where none does,
        one is taken to pass the bit on
    carry_cell : type of those (ports CIN and COUT) that nextpnr adds more of: one where a chain
        starts, and one where other logic reads a carry
    """

    name: str
    command: str
    cells: Mapping[str, Cost]
    block: str
    models: tuple[str, ...]
    own_models: str = ""
    nextpnr: str | None = None
    harness: Harness | None = None
    has_logic_cells: bool = False
    placed: Placed | None = None
    passing: str = ""
    lut_steps: tuple[str, str, str] | None = None
    spends_blocks: str = ""
    output_registers: Mapping[str, tuple[OutputRegister, ...]] = field(default_factory=dict)
    flip_flop: FlipFlop | None = None
    caution: str = ""
    fed_by_luts: tuple[str, str] | None = None
    carry_cell: str | None = None
    memories: tuple[tuple[str, ...], str] | None = None

    def cost(self, cell_type: str) -> Cost | None:
        """Of a cell of this type; None for what takes nothing that is counted."""
        if cell_type in self.cells:
            return self.cells[cell_type]
        return next((cost for name, cost in self.cells.items()
                     if name.endswith("*") and cell_type.startswith(name[:-1])), None)


@dataclass(frozen=True)
class Device:
    """An FPGA, or a way to count.

    Members
    -------
    name : on the command line
    family : its :class:`Family`
    text : what it is
    resources : how many there are, by the names of RESOURCES; empty if it is only counted
    arguments : of nextpnr
    clock : target in MHz for placement if none is given: what good designs reach on it
    memory : megabytes that nextpnr takes at first (measured, rounded up), and for 1,000 LUTs more
    pins : of the ports of the harness, where nextpnr does not choose them itself
    relays : of a folding for it: block RAMs of a large one are far from what reads them
    adder_levels : of a folding for it, more than 1 if that takes less and its clock allows it
    """

    name: str
    family: Family
    text: str
    resources: Mapping[str, int] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    clock: float = 100.0
    memory: tuple[int, int] = (0, 0)
    pins: Mapping[str, str] = field(default_factory=dict)
    relays: int = 0
    adder_levels: int = 1

    def need(self, luts: int) -> int:
        """Megabytes that nextpnr will take for so many LUTs."""
        return self.memory[0] + self.memory[1] * luts // 1000


_LUT, _FF, _BRAM, _DSP = Cost(lut=1), Cost(ff=1), Cost(bram=1), Cost(dsp=1)


def _on(**settings: str) -> Mapping[str, str]:
    return MappingProxyType(settings)


# No family uses multipliers by itself: a figure in LUTs is comparable only if it holds everything.
# Wide multiplexers of LUTs (PFUMX, MUX2_LUT5, MUXF7) double the LUTs of what they select.
_ECP5 = Family(
    "ECP5", "synth_ecp5 -nowidelut -nodsp",
    {
        "LUT4": _LUT,
        "CCU2C": Cost(lut=2, carry=2),
        "TRELLIS_DPR16X4": Cost(lut=6),  # four that are read, and two at the write port
        "TRELLIS_FF": _FF,
        "DP16KD": _BRAM,
        "PDPW16KD": _BRAM,
        "MULT18X18D": _DSP,
    },
    block="ecp5", models=("+/lattice/cells_sim_ecp5.v",), own_models="ecp5.v",
    nextpnr="ecp5",
    harness=Harness(("LUT4", "INIT", ("A", "B", "C", "D", "Z"))),
    placed=Placed("lut", {"TRELLIS_COMB": 1}), carry_cell="CCU2C",
    output_registers={"DP16KD": (
        OutputRegister(("DOA*", "DOB*"), "CLKB", _on(REGMODE_A="OUTREG", REGMODE_B="OUTREG"),
               ("OCEA", "OCEB"), {"DATA_WIDTH_B": (36,)}),
        OutputRegister(("DOA*",), "CLKA", _on(REGMODE_A="OUTREG"), ("OCEA",)),
        OutputRegister(("DOB*",), "CLKB", _on(REGMODE_B="OUTREG"), ("OCEB",)))},
    # A string of digits ends in a space, or it would be a number.
    flip_flop=FlipFlop("TRELLIS_FF", "CLK", "DI", "Q", _on(LSR="0", CE="1"), _on(
        CEMUX="1 ", CLKMUX="CLK", GSR="DISABLED", LSRMUX="LSR", REGSET="RESET",
        SRMODE="LSR_OVER_CE")),
    memories=(("lattice/lutrams_trellis.txt", "lattice/brams_16kd.txt"),
              "lattice/brams_map_16kd.v"))


def _ice40(device: str) -> Family:
    return Family(
        "iCE40", f"synth_ice40 -device {device}",
        {
            "SB_LUT4": _LUT,
            "SB_CARRY": Cost(carry=1),  # lies in the logic cell of the LUT that takes its input
            "SB_DFF*": _FF,
            "SB_RAM40_4K*": _BRAM,
            "SB_MAC16": _DSP,
        },
        block="ice40", models=("+/ice40/cells_sim.v",), nextpnr="ice40",
        harness=Harness(("SB_LUT4", "LUT_INIT", ("I0", "I1", "I2", "I3", "O"))),
        flip_flop=FlipFlop("SB_DFF", "C", "D", "Q"),
        has_logic_cells=True, placed=Placed("logic_cells", {"ICESTORM_LC": 1}),
        # There are no small memories in LUTs: what is not in a block takes a cell for every bit,
        # and more to choose between them; a constant one takes about a cell for eight.
        spends_blocks="memory_libmap -lib +/ice40/brams.txt -logic-cost-ram 3 "
                      "-logic-cost-rom 0.125")


def _gowin(family: str) -> Family:
    return Family(
        "Gowin", f"synth_gowin -family {family} -nowidelut -nodsp -noiopads",
        {
            **{f"LUT{n}": _LUT for n in (1, 2, 3, 4)},
            "ALU": Cost(lut=1, carry=1),
            # A memory takes two slices whole, whatever is left free in them.
            "RAM16SDP1": Cost(lut=8),
            "RAM16SDP2": Cost(lut=8),
            "RAM16SDP4": Cost(lut=8),
            "DFF*": _FF,
            "SP": _BRAM, "SPX9": _BRAM, "SDPB": _BRAM, "SDPX9B": _BRAM, "DPB": _BRAM,
            "DPX9B": _BRAM, "pROM": _BRAM, "pROMX9": _BRAM,
            "MULT*": _DSP,
        },
        block="18k", models=("+/gowin/cells_sim.v",), own_models="gowin.v",
        nextpnr="himbaechel-gowin",
        harness=Harness(("LUT4", "INIT", ("I0", "I1", "I2", "I3", "F")), ("IBUF", "OBUF")),
        # Chains of ALUs get a head, a tail if logic reads the carry, and one more if they are odd.
        # A memory is four LUTs and itself, which keeps four others free.
        placed=Placed("lut", {**dict.fromkeys(("LUT1", "LUT2", "LUT3", "LUT4", "ALU"), 1),
                              **dict.fromkeys(("RAM16SDP1", "RAM16SDP2", "RAM16SDP4"), 4)}),
        passing="_passthrough_lut$",
        # By nextpnr those of narrower words do not work on all of these FPGAs; SDPB was not tried.
        output_registers=dict.fromkeys(("SP", "SPX9"), (OutputRegister(
            ("DO",), "CLK", _on(READ_MODE="1"), ("OCE",), {"BIT_WIDTH": (32, 36)}),)),
        flip_flop=FlipFlop("DFF", "CLK", "D", "Q"),
        caution="nextpnr times only some of the paths of Gowin devices: the clock is optimistic")


# By itself Yosys weighs LUTs by their inputs, as if small ones shared a cell. Here each is one.
_XC7_LUTS = ("map_luts", """\
opt_expr -mux_undef -noclkinv
abc -lut 6
clean
xilinx_srl -fixed -minlen 3
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx
""", "finalize")

_XC7 = Family(
    "7 series", "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -nodsp",
    {
        **{f"LUT{n}": _LUT for n in range(1, 7)},
        "INV": _LUT,
        "CARRY4": Cost(carry=4),  # beside the LUTs that feed it, see ``fed_by_luts``
        "RAM32M": Cost(lut=4), "RAM64M": Cost(lut=4), "RAM32X1D": Cost(lut=2),
        "RAM64X1D": Cost(lut=2), "RAM128X1D": Cost(lut=4), "RAM32X1S": _LUT, "RAM64X1S": _LUT,
        "SRL16E": _LUT, "SRLC32E": _LUT,
        "FDCE*": _FF, "FDPE*": _FF, "FDRE*": _FF, "FDSE*": _FF,
        "RAMB18E1": _BRAM,
        "RAMB36E1": Cost(bram=2),
        "DSP48E1": _DSP,
    },
    block="18k", models=("+/xilinx/cells_sim.v",), own_models="xc7.v",
    output_registers={name: (
        OutputRegister(("DOADO", "DOPADOP", "DOBDO", "DOPBDOP"), "CLKARDCLK", _on(DOA_REG="1"),
               ("REGCEAREGCE",), {"READ_WIDTH_A": (wide,)}),
        OutputRegister(("DOADO", "DOPADOP"), "CLKARDCLK", _on(DOA_REG="1"), ("REGCEAREGCE",)),
        OutputRegister(("DOBDO", "DOPBDOP"), "CLKBWRCLK", _on(DOB_REG="1"), ("REGCEB",)))
        for name, wide in (("RAMB18E1", 36), ("RAMB36E1", 72))},
    lut_steps=_XC7_LUTS, fed_by_luts=("CARRY4", "S"),
    flip_flop=FlipFlop("FDRE", "C", "D", "Q", _on(R="0", CE="1")))

_GENERIC = Family(
    "LUT6", "generic",
    {
        "$lut": _LUT,
        "$_DFF*": _FF, "$_SDFF*": _FF,
        "$__BENN_BLOCK_": _BRAM,
        "$__BENN_LUTRAM_": _LUT,
    },
    block="18k", models=())


def _ecp5_of(size: str, text: str, lut: int, bram: int, dsp: int, memory: int,
             relays: int = 0) -> Device:
    return Device(f"ecp5-{size}", _ECP5, text, {"lut": lut, "ff": lut, "bram": bram, "dsp": dsp},
                  (f"--{size}", "--package", "CABGA381", "--speed", "6"), 100, (memory, 30),
                  relays=relays)


# With the parts that boards carry, in their slowest speed; resources as nextpnr counts them.
DEVICES = {device.name: device for device in (
    _ecp5_of("12k", "Lattice ECP5 LFE5U-12F, speed 6; the die of the 25F", 24288, 56, 28, 300),
    _ecp5_of("25k", "Lattice ECP5 LFE5U-25F, speed 6", 24288, 56, 28, 300),
    _ecp5_of("45k", "Lattice ECP5 LFE5U-45F, speed 6", 43848, 108, 72, 350, 1),
    _ecp5_of("85k", "Lattice ECP5 LFE5U-85F, speed 6", 83640, 208, 156, 450, 1),
    Device("ice40-hx8k", _ice40("hx"), "Lattice iCE40 HX8K",
           {"logic_cells": 7680, "bram": 32}, ("--hx8k", "--package", "ct256"), 60, (300, 30)),
    Device("ice40-up5k", _ice40("u"), "Lattice iCE40 UltraPlus 5K",
           {"logic_cells": 5280, "bram": 30, "dsp": 8}, ("--up5k", "--package", "sg48"), 24,
           (300, 30), adder_levels=2),
    Device("gowin-gw1n-9", _gowin("gw1n"), "Gowin GW1NR-9C C6/I5, as on the Tang Nano 9K",
           {"lut": 8640, "ff": 6480, "bram": 26},
           ("--device", "GW1NR-LV9QN88PC6/I5", "--vopt", "family=GW1N-9C"), 60, (300, 30),
           {"clk": "52", "rst": "3", "shift_in": "4", "parity": "10"}),
    Device("gowin-gw2a-18", _gowin("gw2a"), "Gowin GW2A-18 C8/I7, as on the Tang Primer 20K",
           {"lut": 20736, "ff": 15552, "bram": 46},
           ("--device", "GW2A-LV18PG256C8/I7", "--vopt", "family=GW2A-18"), 100, (300, 30),
           {"clk": "H11", "rst": "T10", "shift_in": "A13", "parity": "C13"}),
    Device("xc7", _XC7, "Xilinx 7 series, counted only; a RAMB36 is two block RAMs"),
    Device("generic-lut6", _GENERIC, "LUTs of six inputs and no carry chains, counted only"),
)}


def find(name: str) -> Device:
    """The device of this name; raise if there is none."""
    if name not in DEVICES:
        raise BennError(f"Device must be one of {', '.join(DEVICES)}, not {name!r}")
    return DEVICES[name]
