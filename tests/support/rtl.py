"""Drive a component's streams in Amaranth's simulator and check the stream rules on the way."""

import random
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator

from benn_fpga import golden
from benn_fpga.answer import answer_size, decode
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.schedule import schedule

__all__ = ["Answers", "Beat", "after_reset", "answers", "beats_of", "stream", "top", "until_sent"]

SURPLUS_CYCLES = 40  # how long to watch for outputs that should not come


@dataclass(frozen=True)
class Beat:
    """A transfer: the cycle it happened in, and what was transferred."""

    cycle: int
    payload: object


def _simulate(dut, *benches):
    m = Module()
    m.submodules.dut = dut
    m.d.sync += Signal(name="clocked").eq(1)  # a joint may be wires only, the benches need a clock
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    for bench in benches:
        simulator.add_testbench(bench)
    simulator.run()


def _pauses(rate, seed):
    """Endless draws, true on the average once in ``rate + 1`` times; rate 0 is always true."""
    rng = random.Random(seed)
    while True:
        yield not rate or rng.randrange(rate + 1) == 0


def stream(dut, sources, sinks, *, idle=0, stall=0, seed=0, limit=100_000):
    """Feed ``sources`` {port: payloads} and take ``sinks`` {port: count}; transfers by sink port.

    ``idle`` and ``stall`` are the mean cycles that a source or sink waits before each beat. Fails
    if a payload does not hold until it is taken, if more comes out than asked for, or on a hang.
    """
    transfers = {id(port): [] for port, _ in sinks}
    open_sinks = len(sinks)

    def source(port, payloads, seed):
        async def bench(ctx):
            pauses = _pauses(idle, seed)
            for payload in payloads:
                while not next(pauses):
                    await ctx.tick()
                ctx.set(port.valid, 1)
                ctx.set(port.payload, payload)
                await ctx.tick().until(port.ready)
                ctx.set(port.valid, 0)
        return bench

    def sink(port, count, seed):
        async def bench(ctx):
            nonlocal open_sinks
            got, waiting, cycle, pauses = transfers[id(port)], None, 0, _pauses(stall, seed)
            surplus = SURPLUS_CYCLES
            while surplus:
                surplus -= open_sinks == 0
                ready = next(pauses)
                ctx.set(port.ready, ready)
                _, _, valid, payload = await ctx.tick().sample(port.valid, port.payload)
                assert waiting is None or (valid and payload == waiting), "payload did not hold"
                waiting = payload if valid and not ready else None
                if valid and ready:
                    got.append(Beat(cycle, payload))
                    assert len(got) <= count, "more came out than should"
                    open_sinks -= len(got) == count
                cycle += 1
                assert cycle < limit, f"hang: {len(got)} of {count} came out"
        return bench

    _simulate(dut, *(source(p, v, f"{seed} i {n}") for n, (p, v) in enumerate(sources)),
              *(sink(p, c, f"{seed} o {n}") for n, (p, c) in enumerate(sinks)))
    return [transfers[id(port)] for port, _ in sinks]


def after_reset(dut, payloads, *, reset_at):
    """What comes out of ``dut`` for ``payloads`` sent, without pauses, right after a reset.

    Before it they are sent too, from the first on; the reset is cycle ``reset_at`` alone.
    """
    reset, got = Signal(), []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        sent, cycle = 0, 0
        while len(got) < len(payloads):
            ctx.set(reset, cycle == reset_at)
            ctx.set(dut.i.valid, sent < len(payloads))
            ctx.set(dut.i.payload, payloads[min(sent, len(payloads) - 1)])
            _, _, ready, valid, payload = await ctx.tick().sample(
                dut.i.ready, dut.o.valid, dut.o.payload)
            sent += ready
            if cycle == reset_at:
                sent = 0
            elif valid and cycle > reset_at:
                got.append(Beat(cycle, payload))
            cycle += 1
            assert cycle < 1000, f"hang: {len(got)} of {len(payloads)} came out"

    _simulate(ResetInserter(reset)(dut), bench)
    return got


def beats_of(frame, lanes):
    """(tdata, tkeep, tlast) of one frame of bytes."""
    frame = bytes(frame)
    parts = [frame[n:n + lanes] for n in range(0, len(frame), lanes)]
    return [(int.from_bytes(part, "little"), (1 << len(part)) - 1, n == len(parts) - 1)
            for n, part in enumerate(parts)]


@dataclass(frozen=True, eq=False)
class Answers:
    """What the top said, frame by frame, and when: first beat of each frame and answer."""

    classes: np.ndarray
    flags: np.ndarray
    margins: np.ndarray
    totals: np.ndarray
    users: list
    started: list
    answered: list

    @property
    def latency(self):
        return self.answered[0] - self.started[0]

    def __eq__(self, expected):
        """Equal to a golden Result: all frames right, no error flag anywhere."""
        return (np.array_equal(self.totals, expected.totals)
                and np.array_equal(self.classes, expected.classes)
                and np.array_equal(self.margins, expected.margins)
                and not self.flags.any() and not any(self.users))


def top(model, folding, beats, *, count, idle=0, stall=0, seed=0, alone=0, reset_at=None,
        limit=200_000, dut=None):
    """Send AXI4-Stream ``beats`` to the ensemble and collect ``count`` answers.

    With ``count`` None, take what comes until nothing more does.

    The first ``alone`` beats are answered before more are sent. ``reset_at`` resets the design at
    the end of that cycle; sending goes on with the next beat.
    """
    dut = dut or Ensemble(model=model, folding=folding)
    lanes, size = folding.bus // 8, answer_size(model.classes)
    records, users, started, answered = [], [], [], []
    reset = Signal()

    async def bench(ctx):
        idles, stalls = _pauses(idle, f"{seed} i"), _pauses(stall, f"{seed} o")
        sent, cycle, record, held, first = 0, 0, b"", None, True
        quiet = SURPLUS_CYCLES + (0 if count else schedule(model, folding).latency_cycles)
        offered, surplus = False, quiet
        while surplus:
            surplus -= sent == len(beats) and count in (None, len(records))
            blocked = sent == len(beats) or (alone and sent == alone and not records)
            offered = not blocked and (offered or next(idles))
            ready = next(stalls)
            ctx.set(dut.s_axis_tvalid, offered)
            if offered:
                data, keep, last = beats[sent]
                ctx.set(dut.s_axis_tdata, data)
                ctx.set(dut.s_axis_tkeep, keep)
                ctx.set(dut.s_axis_tlast, last)
            ctx.set(dut.m_axis_tready, ready)
            beat = tuple(ctx.get(s) for s in (dut.m_axis_tdata, dut.m_axis_tkeep, dut.m_axis_tlast,
                                              dut.m_axis_tuser))
            valid = ctx.get(dut.m_axis_tvalid)
            assert held is None or (valid and held == beat), "answer did not hold"
            held = beat if valid and not ready else None
            if valid and ready:
                surplus = quiet
                if not record:
                    answered.append(cycle)
                record += beat[0].to_bytes(lanes, "little")[:beat[1].bit_length()]
                if beat[2]:
                    assert len(record) == size
                    records.append(record)
                    users.append(beat[3])
                    record = b""
                    assert count is None or len(records) <= count, "more answers than frames"
            if offered and ctx.get(dut.s_axis_tready):
                if first:
                    started.append(cycle)
                first = beats[sent][2]
                sent, offered = sent + 1, False
            ctx.set(reset, cycle == reset_at)
            await ctx.tick()
            if cycle == reset_at:
                held, record, first, offered = None, b"", True, False
            cycle += 1
            assert cycle < limit, f"hang: {len(records)} of {count} answers"

    _simulate(ResetInserter(reset)(dut), bench)
    data = np.frombuffer(b"".join(records), np.uint8).reshape(len(records), size)
    fields, _ = decode(data, model.classes)
    return Answers(fields["winner"], fields["flags"], fields["margin"], fields["totals"], users,
                   started, answered)


def until_sent(model, folding, frames, **options):
    """The answers that come when some may be lost: all frames are sent, then waited out."""
    frames = golden.check_input(model.encoder, frames)
    beats = [beat for frame in frames for beat in beats_of(frame, folding.bus // 8)]
    return top(model, folding, beats, count=None, **options)


def answers(model, folding, frames, **options):
    """The ensemble's answers to whole, right frames."""
    frames = golden.check_input(model.encoder, frames)
    beats = [beat for frame in frames for beat in beats_of(frame, folding.bus // 8)]
    return top(model, folding, beats, count=len(frames), **options)
