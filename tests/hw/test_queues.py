"""Queues between stages: as deep as the cycle model says, no slot too many and none missing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import designs
import draw
import rtl
from benn_fpga.hw.assembly import component, connect
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.plan import names, nodes
from benn_fpga.plan.cycles import Flow
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan


def contents_of(model, folding):
    return [Contents(model, folding, n) for n in range(folding.parallel)]


class Engines(wiring.Component):
    """A plan from what cuts windows for its first layer to the port; frames come in the words of
    that layer, once for every round."""

    def __init__(self, plan, contents):
        self._plan = plan
        converter = plan.converter(plan.units[0])
        all_names = [node.name for node in plan.nodes]
        self._nodes = [node for node in plan.nodes[all_names.index(converter.name) + 1:]
                       if not (isinstance(node, nodes.Ring) and node.reads == (converter.name,))]
        self._parts = {node.name: component(node, contents) for node in self._nodes}
        self._before = set(all_names) - set(self._parts)
        super().__init__({"i": In(stream.Signature(converter.o.bits)),
                          "o": Out(self._parts[plan.port.name].o.signature)})

    def elaborate(self, platform):
        m = Module()
        parts = {**self._parts, **dict.fromkeys(self._before, SimpleNamespace(
            o=self.i, error=stream.Signature(1, always_valid=True).create()))}
        port = self._plan.port
        for name, part in self._parts.items():
            m.submodules[name] = part
        for node in self._nodes:
            for n in range(len(node.ports)):
                connect(m, self._plan, node, parts, n)
        for gate in self._plan.all(nodes.Gate):
            queues = [parts[name] for name in gate.reserves]
            m.d.comb += [parts[gate.name].room.eq(Cat(queue.room for queue in queues).all()),
                         *(queue.take.eq(parts[gate.name].take) for queue in queues)]
        wiring.connect(m, parts[port.name].o, wiring.flipped(self.o))
        return m


def check_paced(model, folding):
    """Frames whose words come evenly: each answer comes in its cycle, and every queue gets full."""
    design = plan(model, folding)
    timing, rounds = design.schedule, design.rounds
    words, cycles = design.converter(design.units[0]).o.words, timing.cycles_per_frame
    frames = timing.latency_cycles // cycles + 4
    answers = Flow(design, timing.queues).paced(frames, cycles)
    turn = cycles // rounds
    planned = [n * turn + k * turn // words for n in range(frames * rounds) for k in range(words)]
    with rtl.Peaks() as peaks:
        dut, size = Engines(design, contents_of(model, folding)), design.port.o.words
        beats, = rtl.stream(dut, [(dut.i, [0] * len(planned))], [(dut.o, len(answers) * size)],
                            planned=planned, limit=answers[-1] + 100, at_end=peaks.read)
    assert [beat.cycle for beat in beats[::size]] == answers
    assert set(np.diff(answers[-3:])) == {cycles}
    assert peaks.are_those_of(timing.queues)


def test_paced():
    @draw.ten(0, design=draw.designs(draw.conv_models(max_blocks=2, max_side=6), cycles=60))
    def check(design):
        check_paced(*design)


def test_residual():
    check_paced(*draw.residual())


@pytest.mark.parametrize("members", [1, 2])
def test_window_of_registers(members):
    """Behind the width converter, or behind the ring that repeats frames for rounds."""
    check_paced(*draw.registers(members))


@pytest.mark.parametrize("first", draw.STRAIGHT)
def test_first_layer_that_keeps_no_pixels(first):
    check_paced(*draw.straight(first))


@pytest.mark.parametrize("name", ["direct", "registers", "pools", "residual", *draw.STRAIGHT])
def test_room_in_queues_is_not_asked_for_at_the_bus(name):
    """Whether the encoder can go on does not depend on the queues in the same cycle."""
    (model, folding), m = designs.case(name), Module()
    design, contents = plan(model, folding), contents_of(model, folding)
    unit = design.units[0]
    way = [design["skid"], design.converter(unit), *design.front(unit)]
    parts = {node.name: component(node, contents) for node in way}
    for node in way:
        m.submodules[node.name] = parts[node.name]
    for node in way[1:]:
        connect(m, design, node, parts)
    i, gate = parts[way[0].name].i, parts[way[-1].name]

    async def bench(ctx):
        ctx.set(i.valid, 1)
        for cycle in range(200):
            seen = set()
            for room in ((0, 1), (1, 0))[cycle // 7 % 2]:
                ctx.set(gate.room, room)
                ctx.set(gate.o.ready, room)
                seen.add(ctx.get(i.ready))
            assert len(seen) == 1
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


RESIDUAL = draw.residual()
DEEPER = [name for name, depth in plan(*RESIDUAL).schedule.queues.items()
          if depth > 1 and name != names.TOTALS]


@pytest.mark.parametrize("name", DEEPER)
def test_one_slot_less_costs_cycles(name):
    model, folding = RESIDUAL
    design, frames = plan(model, folding), 5
    queue = replace(design[name], depth=design[name].depth - 1)
    dut = Ensemble(model=model, folding=folding)
    dut._plan = replace(design, nodes=tuple(queue if node.name == name else node
                                            for node in design.nodes))
    scores = Flow(design, {**design.schedule.queues, name: queue.depth}).bus(frames)
    got = rtl.answers(model, folding, draw.random_frames(np.random.default_rng(0), model, frames),
                      dut=dut)
    assert np.diff(got.answered).tolist() == np.diff(scores).tolist()
    assert got.answered[-1] - got.answered[0] > 4 * design.schedule.cycles_per_frame
