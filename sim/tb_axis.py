"""Protocol bench: AXI4-Stream sources and sinks that pause, resets, and frames of wrong length.

The folder in ``BENN_RUN`` holds ``bench.json``, ``frames.bin`` and ``expected.bin``: the answer
record of each frame.
"""

import json
import os
import random
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from benn_fpga.plan.answer import ERROR, decode

PERIOD = 10


async def hold(dut):
    """What a stream offers stays until it is taken."""
    payload = (dut.m_axis_tdata, dut.m_axis_tkeep, dut.m_axis_tlast, dut.m_axis_tuser)
    waiting = None
    while True:
        await RisingEdge(dut.clk)
        if dut.rst.value == 1:
            waiting = None
            continue
        offered = [str(port.value) for port in payload] if dut.m_axis_tvalid.value == 1 else None
        assert waiting is None or offered == waiting, f"offered {waiting}, then {offered}"
        waiting = None if dut.m_axis_tready.value == 1 else offered


def pauses(rng, longest):
    """Runs of up to ``longest`` cycles of pause between transfers."""
    while True:
        for _ in range(rng.randint(0, longest)):
            yield True
        yield False


class Bench:
    """Source, sink and the expected answers."""

    def __init__(self, dut, idle=0, stall=0):
        folder = Path(os.environ["BENN_RUN"])
        told = json.loads((folder / "bench.json").read_text())
        self.dut, self.told = dut, told
        self.lanes, self.values = told["lanes"], told["values"]
        frames, size = (folder / "frames.bin").read_bytes(), told["beats"] * told["lanes"]
        self.frames = [frames[at:at + self.values] for at in range(0, len(frames), size)]
        answers = (folder / "expected.bin").read_bytes()
        size = len(answers) // len(self.frames)
        self.expected = [answers[at:at + size] for at in range(0, len(answers), size)]
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for port in (self.source, self.sink):
            port.log.setLevel("WARNING")
        rng = random.Random(cocotb.RANDOM_SEED)
        if idle:
            self.source.set_pause_generator(pauses(rng, idle))
        if stall:
            self.sink.set_pause_generator(pauses(rng, stall))
        Clock(dut.clk, PERIOD, unit="ns").start()
        cocotb.start_soon(hold(dut))

    async def reset(self):
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 1)

    async def send(self, *frames):
        for frame in frames:
            await self.source.send(frame)

    async def answer(self):
        return await with_timeout(self.sink.recv(compact=False), 16 * self.told["patience"]
                                  * PERIOD, "ns")

    async def expect(self, n):
        """The next answer is that of frame ``n``."""
        answer = await self.answer()
        data = bytes(byte for byte, keep in zip(answer.tdata, answer.tkeep, strict=True) if keep)
        assert data == self.expected[n], f"frame {n}: {data.hex()}, not {self.expected[n].hex()}"
        assert not any(answer.tuser), f"frame {n} is flagged as wrong"
        assert len(answer.tdata) == self.told["answer_beats"] * self.lanes

    async def expect_error(self):
        """The next answer says that its frame was wrong, in the record and with every beat."""
        answer = await self.answer()
        fields, _ = decode(np.frombuffer(bytes(answer.tdata), np.uint8)[None], self.told["classes"])
        assert fields["flags"][0] & ERROR, "the answer to a wrong frame has no error flag"
        assert all(answer.tuser), "a beat of the answer to a wrong frame has no TUSER"
        assert len(answer.tdata) == self.told["answer_beats"] * self.lanes

    async def nothing_more(self):
        await ClockCycles(self.dut.clk, self.told["surplus"])
        assert self.sink.empty(), "an answer came that no frame asked for"
        assert self.dut.m_axis_tvalid.value == 0, "a beat came that no frame asked for"


@cocotb.test()
@cocotb.parametrize(idle=[0, 3], stall=[0, 3])
async def back_to_back(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.reset()
    await bench.send(*bench.frames)
    for n in range(len(bench.frames)):
        await bench.expect(n)
    await bench.nothing_more()


@cocotb.test()
@cocotb.parametrize(idle=[0, 40], stall=[0, 40])
async def one_at_a_time(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.reset()
    for n, frame in enumerate(bench.frames[:3]):
        await bench.send(frame)
        await bench.expect(n)
    await bench.nothing_more()


@cocotb.test()
@cocotb.parametrize(stall=[0, 3])
async def reset_at_any_moment(dut, stall):
    """Resets during the first frame, between its beats and while its answer is on the way."""
    bench = Bench(dut, 0, stall)
    await bench.reset()
    rng = random.Random(cocotb.RANDOM_SEED)
    latency = bench.told["latency_cycles"]
    moments = [1, 2, bench.told["beats"], latency - 1, latency, latency + 1, latency + 2]
    moments += [rng.randint(1, 2 * latency) for _ in range(6)]
    for cycles in moments:
        await bench.send(*bench.frames[:3])
        await ClockCycles(dut.clk, cycles)
        bench.source.clear()
        await bench.reset()
        bench.sink.clear()
        await bench.send(bench.frames[1], bench.frames[0])
        await bench.expect(1)
        await bench.expect(0)
        await bench.nothing_more()



def _wrong_frames(frame, lanes):
    """Frames of every kind of wrong length, by name; empty ones cannot be sent."""
    size = len(frame)
    whole = (size - 1) // lanes * lanes  # all but the last beat
    cases = {
        "a byte short": frame[:-1],
        "a beat short": frame[:whole],
        "one beat only": frame[:lanes] if size > lanes else b"",
        "one byte only": frame[:1] if size > 1 else b"",
        "a byte long": frame + b"\1",
        "a beat long": frame.ljust(whole + lanes, b"\1") + bytes(lanes),
        "two frames in one": frame.ljust(whole + lanes, b"\1") + frame,
        "late by many beats": frame * 3 + bytes(5 * lanes),
    }
    cases = {name: AxiStreamFrame(data) for name, data in cases.items() if data}
    if size > 1:
        cases["a byte left out"] = AxiStreamFrame(frame, tkeep=[1] * (size // 2) + [0]
                                                  + [1] * (size - size // 2 - 1))
    return cases


@cocotb.test()
@cocotb.parametrize(idle=[0, 3], stall=[0, 3])
async def wrong_length(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.reset()
    for name, wrong in _wrong_frames(bench.frames[2], bench.lanes).items():
        cocotb.log.info(name)
        await bench.send(bench.frames[0], wrong, bench.frames[1], wrong, wrong, bench.frames[0])
        await bench.expect(0)
        await bench.expect_error()
        await bench.expect(1)
        await bench.expect_error()
        await bench.expect_error()
        await bench.expect(0)
    await bench.nothing_more()
