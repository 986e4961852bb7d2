"""Queues between stages: as deep as the cycle model says, no place too many and none missing."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

import draw
import rtl
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.hw.member import Member, feed
from benn_fpga.plan.flow import Flow
from benn_fpga.plan.schedule import latencies, pace, schedule
from benn_fpga.plan.stages import stages


class Engine(wiring.Component):
    """The first engine of a design, and what turns pixels into the taps that it reads."""

    def __init__(self, model, folding, queues):
        self._first, self._bits = stages(model, folding)[0], model.encoder.element_bits
        self._member = Member(model=model, folding=folding, engine=0, queues=queues)
        super().__init__({"i": In(stream.Signature(self._first.lanes_in * self._bits)),
                          "o": Out(self._member.o.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.member = member = self._member
        feed(m, self._first, self._bits, wiring.flipped(self.i), [member])
        wiring.connect(m, member.o, wiring.flipped(self.o))
        return m


def flow_of(model, folding, queues):
    paces = [pace(model, folding, stage.n) if stage.is_dense else None
             for stage in stages(model, folding)]
    return Flow(model, folding, latencies(model, folding), paces, queues)


def check_paced(model, folding):
    """Frames whose words come evenly: each score comes in its cycle, and every queue gets full."""
    timing, first = schedule(model, folding), stages(model, folding)[0]
    rounds, words = folding.rounds(model), first.pixels_in * first.words_in
    cycles = timing.cycles_per_frame // rounds
    frames = rounds * timing.latency_cycles // timing.cycles_per_frame + 4
    flow = flow_of(model, folding, timing.queues)
    scores = flow.run(flow.paced(frames, cycles))
    planned = [n * cycles + k * cycles // words for n in range(frames) for k in range(words)]
    with rtl.Peaks() as peaks:
        dut = Engine(model, folding, timing.queues)
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


RESIDUAL = draw.residual()
DEEPER = [key for key, depth in schedule(*RESIDUAL).queues.items() if depth > 1]


@pytest.mark.parametrize("key", DEEPER)
def test_one_place_less_costs_cycles(key):
    model, folding = RESIDUAL
    timing, frames = schedule(model, folding), 5
    dut = Ensemble(model=model, folding=folding)
    dut._schedule = replace(timing, queues={**timing.queues, key: timing.queues[key] - 1})
    flow = flow_of(model, folding, dut._schedule.queues)
    scores = flow.run(flow.bus(frames, timing.stages["input"]))
    got = rtl.answers(model, folding, draw.random_frames(np.random.default_rng(0), model, frames),
                      dut=dut)
    assert np.diff(got.answered).tolist() == np.diff(scores).tolist()
    assert got.answered[-1] - got.answered[0] > 4 * timing.cycles_per_frame
