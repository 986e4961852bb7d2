"""Models of block RAMs, by width and mode, against the memories that Yosys maps to them."""

import json
import os
import subprocess

import pytest

from benn_fpga import devices
from benn_fpga.plan.manifest import TOP
from benn_fpga.sim import verilator
from benn_fpga.synthesis import registers, script, toolchain

# (Width, depth) of a block of each width, by device.
WIDTHS = ((1, 16384), (2, 8192), (4, 4096), (9, 2048), (18, 1024), (36, 512))
SHAPES = {
    "ecp5-12k": WIDTHS,
    "gowin-gw1n-9": WIDTHS,
    "xc7": (*WIDTHS, (1, 32768), (36, 1024), (72, 512)),
}
KINDS = ("rom", "ram", "rom_register", "ram_register")
CYCLES = 20_000

MEMORY = """
module {name} (input clk, en, write, input [15:0] from, to, input [71:0] d,
               output [{width} - 1:0] q);
  (* ram_style = "block", rom_style = "block", no_rw_check *)
  reg [{width} - 1:0] words [0:{depth} - 1];
  reg [{width} - 1:0] read = 0, register = 0;
  initial $readmemh("{file}", words);
  always @(posedge clk) begin
    register <= read;
    if (en) read <= words[from];
    {write}
  end
  assign q = {output};
endmodule
"""
# Words of few addresses are written, so that they are read again. None is read as it is written:
# our designs never do that.
BENCH = """
module bench (input clk);
  reg en = 0, write = 0;
  reg [63:0] x = 64'h9e3779b97f4a7c15;
  wire [63:0] y = x ^ (x << 13), z = y ^ (y >> 7);
  reg [15:0] any = 0, from = 0, to = 0;
  reg [71:0] d = 0;
  wire [{bits} - 1:0] a, b;
  {top} mapped (clk, en, write, any, from, to, d, a);
  memories asked (clk, en, write, any, from, to, d, b);
  always @(posedge clk) begin
    x <= z ^ (z << 17);
    {{en, write}} <= {{x[0] | x[1], x[2]}};
    any <= x[60:45];
    from <= {{x[7:4], 6'b0, x[13:8]}};
    to <= {{x[7:4], 6'b0, x[31:27], ~x[8]}};
    d <= {{x[40:32], x[63:1]}};
    if (a != b) begin
      $display("differs: %h", a ^ b);
      $stop;
    end
  end
endmodule
"""
MAIN = f"""
#include "Vbench.h"
int main() {{
  Vbench bench;
  for (int n = 0; n < {2 * CYCLES}; ++n) {{
    bench.clk = n & 1;
    bench.eval();
  }}
}}
"""
PORTS = "input clk, en, write, input [15:0] any, from, to, input [71:0] d"


def memories(folder, shapes, top):
    """A module ``top`` with a memory of each shape and kind, and how many bits it shows."""
    parts, instances, bits = [], [], 0
    for width, depth in shapes:
        file = f"{width}x{depth}.hex"
        (folder / file).write_text("\n".join(
            f"{n * 0x9e3779b97f4a7c15f39cc0605cedc835 >> 17 & (1 << width) - 1:x}"
            for n in range(1, depth + 1)))
        for kind in KINDS:
            is_written, name = kind.startswith("ram"), f"{kind}_{width}x{depth}"
            parts.append(MEMORY.format(
                name=f"{top}_{name}", width=width, depth=depth, file=file,
                write="if (write) words[to] <= d;" if is_written else "",
                output="register" if kind.endswith("register") else "read"))
            instances.append(f"  {top}_{name} {name} (clk, en, write, "
                             f"{'from' if is_written else 'any'}, to, d, q[{bits} +: {width}]);")
            bits += width
    return "\n".join([*parts, f"module {top} ({PORTS}, output [{bits} - 1:0] q);", *instances,
                      "endmodule"]), bits


def yosys(folder, commands):
    (folder / "run.ys").write_text(commands)
    toolchain.yosys().run(["-q", "-s", "run.ys"], folder, folder / "log")


def with_models(folder, family):
    yosys(folder, script.simulation(family, folder))


def synthesise(folder, family, text):
    """The block RAMs of a Verilog, by name, which then is the file simulation.v."""
    (folder / "design.v").write_text(text)
    yosys(folder, script.script(family, toolchain.yosys(), folder))
    whole = json.loads((folder / "netlist.json").read_bytes())
    registers.absorb(whole["modules"][TOP], family)
    (folder / "netlist.json").write_text(json.dumps(whole))
    yosys(folder, script.VERILOG)
    with_models(folder, family)
    return {name.partition(".")[0]: cell for name, cell in whole["modules"][TOP]["cells"].items()
            if (cost := family.cost(cell["type"])) and cost.bram}


def simulate(folder, *sources):
    found = verilator.toolchain()
    (folder / "main.cpp").write_text(MAIN)
    for command in (["verilator", "--cc", "--exe", "--build", "-Wno-fatal", "--x-assign", "fast",
                     "--top", "bench", *sources, "main.cpp"], ["obj_dir/Vbench"]):
        run = subprocess.run(command, cwd=folder, env={**os.environ, **found.environment},
                             capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]


def widths(cell):
    return {int(value, 2) for name, value in cell["parameters"].items() if "_WIDTH" in name}


def uses_register(cell):
    return any(cell["parameters"].get(name, "").endswith(value) for name, value in (
        ("REGMODE_A", "OUTREG"), ("REGMODE_B", "OUTREG"), ("READ_MODE", "1"), ("DOA_REG", "1"),
        ("DOB_REG", "1")))


@pytest.mark.sim
@pytest.mark.verify
@pytest.mark.parametrize("device", SHAPES)
def test_every_width_with_and_without_a_register(device, tmp_path):
    """Registers move where those of the blocks work: on Gowin into memories of 36 bits that are
    read only."""
    text, _ = memories(tmp_path, SHAPES[device], TOP)
    cells = synthesise(tmp_path, devices.find(device).family, text)
    for width, depth in SHAPES[device]:
        for kind in KINDS:
            cell = cells[f"{kind}_{width}x{depth}"]
            works = not device.startswith("gowin") or (kind, width) == ("rom_register", 36)
            assert width in widths(cell)
            assert uses_register(cell) == (kind.endswith("register") and works)
    text, bits = memories(tmp_path, SHAPES[device], "memories")
    (tmp_path / "bench.v").write_text(text + BENCH.format(bits=bits, top=TOP))
    simulate(tmp_path, "simulation.v", "bench.v")


@pytest.mark.parametrize(("device", "cell", "settings"), [
    ("ecp5-12k", "DP16KD", {"WRITEMODE_A": '"WRITETHROUGH"'}),
    ("ecp5-12k", "DP16KD", {"DATA_WIDTH_A": 8}),
    ("ecp5-12k", "DP16KD", {"CLKBMUX": '"INV"'}),
    ("ecp5-12k", "DP16KD", {"CSDECODE_A": '"0b001"'}),
    ("ecp5-12k", "DP16KD", {"DATA_WIDTH_B": 36, "REGMODE_B": '"OUTREG"'}),
    ("gowin-gw1n-9", "SP", {"WRITE_MODE": 3}),
    ("gowin-gw1n-9", "SDPB", {"BIT_WIDTH_1": 9}),
    ("gowin-gw1n-9", "DPX9B", {"RESET_MODE": '"NONE"'}),
    ("xc7", "RAMB18E1", {"READ_WIDTH_A": 18, "WRITE_WIDTH_A": 18}),
    ("xc7", "RAMB18E1", {"READ_WIDTH_B": 3}),
    ("xc7", "RAMB36E1", {"RAM_EXTENSION_A": '"LOWER"'}),
])
def test_a_mode_without_a_model(device, cell, settings, tmp_path):
    parameters = ", ".join(f".{name}({value})" for name, value in settings.items())
    (tmp_path / "netlist.v").write_text(f"module {TOP}; {cell} #({parameters}) ram (); endmodule")
    with pytest.raises(toolchain.ToolFailed, match="benn_has_no_model_of_this_mode"):
        with_models(tmp_path, devices.find(device).family)


@pytest.mark.parametrize(("device", "cell"), [
    ("ecp5-12k", "PDPW16KD"), ("xc7", "RAMB18E1 #(.IS_CLKARDCLK_INVERTED(1))")])
def test_a_cell_or_a_parameter_without_a_model(device, cell, tmp_path):
    (tmp_path / "netlist.v").write_text(f"module {TOP}; {cell} ram (); endmodule")
    with pytest.raises(toolchain.ToolFailed, match="failed with exit code 1"):
        with_models(tmp_path, devices.find(device).family)
