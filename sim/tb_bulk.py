"""Bulk bench: one frame alone, then a stream of frames at full speed; runs inside the simulator.

The folder in ``BENN_RUN`` holds ``bench.json`` and ``frames.bin``. It gets one record of
:func:`answer_type` per answer in ``answers.bin`` and, if taps are asked for, ``taps.json``. Python
is woken up for beats that are transferred, not for idle cycles.
"""

import json
import os
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import Event, First, RisingEdge, Timer
from cocotb.utils import get_sim_time

from benn_fpga.sim.answers import answer_type

PERIOD = 10


def _now():
    return get_sim_time("step") // PERIOD


def _cycles(count):
    return Timer(count * PERIOD, unit="step")


class Bench:
    """Source, sink and taps around the design."""

    def __init__(self, dut, folder):
        self.dut, self.folder = dut, folder
        self.edge = RisingEdge(dut.clk)
        self.config = config = json.loads((folder / "bench.json").read_text())
        self.lanes = config["lanes"]
        self.full = (1 << self.lanes) - 1
        self.answer = answer_type(config["answer_beats"] * self.lanes)
        frames, size = (folder / "frames.bin").read_bytes(), config["beats"] * self.lanes
        self.frames = [frames[at:at + size] for at in range(0, len(frames), size)]
        self.file = (folder / "answers.bin").open("wb", buffering=0)
        self.starts, self.answers = [], 0
        self.came = Event()

    async def reset(self):
        dut = self.dut
        for port in (dut.s_axis_tdata, dut.s_axis_tkeep, dut.s_axis_tlast, dut.s_axis_tvalid):
            port.value = 0
        dut.m_axis_tready.value = 1
        dut.rst.value = 1
        await _cycles(4)
        await self.edge
        dut.rst.value = 0
        await _cycles(4)

    async def send(self, frames):
        dut, edge, lanes = self.dut, self.edge, self.lanes
        data, keep, last = dut.s_axis_tdata, dut.s_axis_tkeep, dut.s_axis_tlast
        ready, becomes_ready = dut.s_axis_tready, RisingEdge(dut.s_axis_tready)
        await edge
        dut.s_axis_tvalid.value = 1
        for frame in frames:
            final = len(frame) - lanes
            for at in range(0, len(frame), lanes):
                data.value = int.from_bytes(frame[at:at + lanes], "little")
                if at in (0, final):
                    last.value = at == final
                    keep.value = self.config["last_keep"] if at == final else self.full
                await edge
                while ready.value != 1:
                    await becomes_ready
                    await edge
                if at == 0:
                    self.starts.append(_now())
        dut.s_axis_tvalid.value = 0

    async def receive(self):
        dut, edge = self.dut, self.edge
        valid, becomes_valid = dut.m_axis_tvalid, RisingEdge(dut.m_axis_tvalid)
        beats = []
        while True:
            await edge
            while valid.value != 1:
                await becomes_valid
                await edge
            last = dut.m_axis_tlast.value == 1
            beats.append((_now(), int(dut.m_axis_tdata.value), int(dut.m_axis_tkeep.value)))
            if last:
                self.write(beats, dut.m_axis_tuser.value == 1)
                beats = []

    def write(self, beats, user):
        keeps = [self.full] * (self.config["answer_beats"] - 1) + [self.config["answer_keep"]]
        size = self.answer["data"].itemsize
        data = b"".join(data.to_bytes(self.lanes, "little") for _, data, _ in beats)
        record = np.zeros((), self.answer)
        record["start"] = self.starts[min(self.answers, len(self.starts) - 1)]
        record["first"], record["last"] = beats[0][0], beats[-1][0]
        record["user"], record["whole"] = user, [keep for _, _, keep in beats] == keeps
        record["data"] = np.frombuffer(data[:size].ljust(size, b"\0"), np.uint8)
        self.file.write(record.tobytes())
        self.answers += 1
        self.came.set()

    async def wait_for(self, answers):
        """Wait for answers in all; give up when none has come in ``patience`` cycles."""
        before = -1
        while before < self.answers < answers:
            before = self.answers
            self.came.clear()
            await First(self.came.wait(), _cycles(self.config["patience"]))

    async def tap(self, tap, beats):
        """Record the outputs of a layer, which never wait."""
        node = self.dut
        for name in tap["path"].split("."):
            node = node[name]
        valid, payload = node["o__valid"], node["o__payload"]
        becomes_valid = RisingEdge(valid)
        while True:
            await self.edge
            while valid.value != 1:
                await becomes_valid
                await self.edge
            beats.append(hex(int(payload.value)))


@cocotb.test()
async def stream(dut):
    bench = Bench(dut, Path(os.environ["BENN_RUN"]))
    Clock(dut.clk, PERIOD, unit="step").start()
    await bench.reset()
    cocotb.start_soon(bench.receive())
    taps = {tap["path"]: [] for tap in bench.config["taps"]}
    for tap in bench.config["taps"]:
        cocotb.start_soon(bench.tap(tap, taps[tap["path"]]))
    alone = bench.config["alone"]
    if alone:
        cocotb.start_soon(bench.send(bench.frames[:1]))
        await bench.wait_for(1)
    cocotb.start_soon(bench.send(bench.frames))
    await bench.wait_for(len(bench.frames) + alone)
    await _cycles(bench.config["surplus"])
    (bench.folder / "taps.json").write_text(json.dumps(taps))
