"""Queues between stages: as deep as the cycle model says, no place too many and none missing."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import designs
import draw
import rtl
from benn_fpga.hw.assembly import component, connect
from benn_fpga.hw.ensemble import Ensemble, feed
from benn_fpga.hw.member import Member
from benn_fpga.plan import nodes
from benn_fpga.plan.cycles import Flow
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan


class Engine(wiring.Component):
    """The first engine of a plan, and what turns pixels into the taps that it reads."""

    def __init__(self, plan, contents):
        self._plan, self._contents = plan, contents
        self._member = Member(plan=plan, contents=contents)
        super().__init__({"i": In(stream.Signature(plan.converter(plan.units[0]).o.bits)),
                          "o": Out(self._member.o.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.member = member = self._member
        first = self._plan.units[0]
        front = [node for node in self._plan.front(first) if not isinstance(node, nodes.Ring)]
        parts = {node.name: component(node, [self._contents]) for node in front}
        given = {front[0].reads[0]: wiring.flipped(self.i)}
        feed(m, self._plan, front, parts, given, [member])
        wiring.connect(m, member.o, wiring.flipped(self.o))
        return m


def check_paced(model, folding):
    """Frames whose words come evenly: each score comes in its cycle, and every queue gets full."""
    design = plan(model, folding)
    timing, rounds = design.schedule, design.rounds
    words = design.converter(design.units[0]).o.words
    cycles = timing.cycles_per_frame // rounds
    frames = rounds * timing.latency_cycles // timing.cycles_per_frame + 4
    scores = Flow(design, timing.queues).paced(frames, cycles)
    planned = [n * cycles + k * cycles // words for n in range(frames) for k in range(words)]
    with rtl.Peaks() as peaks:
        dut = Engine(design, Contents(model, folding, 0))
        beats, = rtl.stream(dut, [(dut.i, [0] * len(planned))], [(dut.o, len(scores))],
                            planned=planned, limit=scores[-1] + 100, at_end=peaks.read)
    assert [beat.cycle for beat in beats] == scores
    assert set(np.diff(scores[::-len(scores) // frames][:3])) == {-cycles}
    assert peaks.found == list(timing.queues.values())


def test_paced():
    @draw.ten(0, design=draw.designs(draw.conv_models(max_blocks=2, max_side=6), cycles=60))
    def check(design):
        check_paced(*design)


def test_residual():
    check_paced(*draw.residual())


@pytest.mark.parametrize("members", [1, 2])
def test_window_of_registers(members):
    """Behind a skid, or behind the ring that repeats frames for rounds."""
    check_paced(*draw.registers(members))


@pytest.mark.parametrize("first", draw.STRAIGHT)
def test_first_layer_that_keeps_no_pixels(first):
    check_paced(*draw.straight(first))


@pytest.mark.parametrize("name", ["skid", "registers", "pools", "residual", *draw.STRAIGHT])
def test_room_in_queues_is_not_asked_for_at_the_bus(name):
    """Whether the width converter of the first layer can go on does not depend on the queues of
    engines in the same cycle."""
    design, m = plan(*designs.case(name)), Module()
    *way, _ = design.front(design.units[0])
    parts = {node.name: component(node) for node in way}
    for node in way:
        m.submodules[node.name] = parts[node.name]
    for node in way[1:]:
        connect(m, design, node, parts, {})
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
DEEPER = [name for name, depth in plan(*RESIDUAL).schedule.queues.items() if depth > 1]


@pytest.mark.parametrize("name", DEEPER)
def test_one_place_less_costs_cycles(name):
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
