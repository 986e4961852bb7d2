# amaranth: UnusedElaboratable=no
import random
from itertools import product

import pytest
from amaranth.hdl import Assert, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import rtl
from benn_fpga.hw.joints import (
    Collect,
    Converter,
    Emit,
    Gate,
    Queue,
    Ring,
    Serial,
    SkidBuffer,
)
from benn_fpga.hw.pipeline import delay
from benn_fpga.plan import processes
from benn_fpga.plan.latency import MEMORY_LATENCY
from benn_fpga.plan.memories import is_block
from benn_fpga.plan.widths import gear

WAITS = list(product([0, 3], [0, 3]))


def words(width, count, seed=0):
    rng = random.Random(seed)
    return [rng.getrandbits(width) for _ in range(count)]


def rtl_joint(dut, payloads, count, **waits):
    beats, = rtl.stream(dut, [(dut.i, payloads)], [(dut.o, count)], **waits)
    return [beat.payload for beat in beats], [beat.cycle for beat in beats]


@pytest.mark.parametrize(("idle", "stall"), WAITS)
def test_skid_buffer(idle, stall):
    sent = words(9, 60)
    got, cycles = rtl_joint(SkidBuffer(9), sent, 60, idle=idle, stall=stall)
    assert got == sent
    if not idle and not stall:
        assert cycles == list(range(1, 61))


class Checked(Ring):
    """Fails when a word is read while its slot is written, which no_rw_check says never is."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        (write,), (read,) = m.submodules.memory.write_ports, m.submodules.memory.read_ports
        reads = read.en
        if self._ahead:  # it reads in every cycle
            in_block = is_block(2 * self._words, len(self.i.payload))
            reads = delay(m, self.o.valid & self.o.ready, int(not in_block), name="reads",
                          init=0)[-1]
        m.d.sync += Assert(~(write.en & reads & (write.addr == read.addr)), "ports met")
        return m


def replayed(sent, count, replays):
    """The frames of ``sent``, each so often."""
    frames = [sent[n:n + count] for n in range(0, len(sent), count)]
    return [word for frame in frames for _ in range(replays) for word in frame]


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize(("count", "replays"), [(1, 1), (1, 3), (4, 1), (3, 2), (5, 4)])
def test_replay_buffer(count, replays, idle, stall):
    sent = words(7, 6 * count)
    expected = replayed(sent, count, replays)
    dut = Checked(7, words=count, replays=replays)
    got, cycles = rtl_joint(dut, sent, len(expected), idle=idle, stall=stall)
    assert got == expected
    if not idle and not stall:
        assert cycles == list(range(2, 2 + len(expected)))


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize(("width", "count", "replays"), [
    (7, 1, 3), (7, 2, 1), (7, 4, 1), (7, 3, 2), (7, 5, 4), (32, 32, 2)])  # the last in block RAM
def test_replay_buffer_ahead(width, count, replays, idle, stall):
    """A word is offered a cycle after it came, and is there two cycles after it was taken."""
    sent = words(width, 6 * count)
    expected = replayed(sent, count, replays)
    dut = Checked(width, words=count, replays=replays, ahead=MEMORY_LATENCY)
    got, cycles = rtl_joint(dut, sent, len(expected), idle=idle, stall=stall,
                            o_ahead=MEMORY_LATENCY)
    assert got == expected
    if not idle and not stall:
        assert cycles == list(range(1, 1 + len(expected)))


@pytest.mark.parametrize("reset_at", [1, 3, 8, 13])
@pytest.mark.parametrize("ahead", [0, MEMORY_LATENCY])
def test_replay_buffer_reset(ahead, reset_at):
    sent = words(7, 12)
    dut = Checked(7, words=3, replays=2, ahead=ahead)
    got = rtl.after_reset(dut, sent, reset_at=reset_at, count=24, ahead=ahead)
    assert [beat.payload for beat in got] == replayed(sent, 3, 2)
    assert got[0].cycle == reset_at + 1 + (1 if ahead else 2)


class Reserved(wiring.Component):
    """A gate, what never stops for ``latency`` cycles, and a queue: a block passes when a slot is
    free for it."""

    def __init__(self, width, *, count, depth, latency):
        self.gate = Gate(width, count=count)
        self.queue = rtl.Watched(width, count=count, depth=depth)
        self._latency = latency
        super().__init__({"i": In(self.gate.i.signature.flip()), "o": Out(self.queue.o.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate, m.submodules.queue = gate, queue = self.gate, self.queue
        wiring.connect(m, wiring.flipped(self.i), gate.i)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        m.d.comb += [
            gate.o.ready.eq(1),
            queue.i.valid.eq(delay(m, gate.o.valid, self._latency, name="valid", init=0)[-1]),
            queue.i.payload.eq(delay(m, gate.o.payload, self._latency, name="payload")[-1]),
            gate.room.eq(queue.room),
            queue.take.eq(gate.take),
        ]
        return m


@pytest.mark.parametrize("latency", [0, 5])
@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize(("count", "depth"), [(1, 1), (1, 3), (3, 1), (4, 2), (2, 5)])
def test_what_has_a_slot_never_waits(count, depth, idle, stall, latency):
    sent = words(7, 12 * count)
    dut = Reserved(7, count=count, depth=depth, latency=latency)
    got, cycles = rtl_joint(dut, sent, len(sent), idle=idle, stall=stall)
    assert got == sent
    if not idle and not stall:
        assert cycles[0] == 2 + latency
        if depth * count >= 4 + latency:  # enough until a slot is seen to be free
            assert cycles == list(range(2 + latency, 2 + latency + len(sent)))


@pytest.mark.parametrize("latency", [0, 5])
def test_gate_holds(latency):
    """While nobody takes what is in the queue no more comes to it than there are slots."""
    dut, seen = Reserved(7, count=2, depth=3, latency=latency), []
    got, cycles = rtl_joint(dut, words(7, 20), 20, late=100,
                            at_end=lambda ctx: seen.append(ctx.get(dut.queue.most)))
    assert got == words(7, 20)
    assert cycles[0] == 100
    assert seen == [3]


def test_gate_takes_when_a_word_passes():
    """Not while it is only offered, and once for a block."""
    gate, seen = Gate(7, count=3), []

    async def bench(ctx):
        for valid, ready, room in product([0, 1], repeat=3):
            ctx.set(gate.i.valid, valid)
            ctx.set(gate.o.ready, ready)
            ctx.set(gate.room, room)
            assert ctx.get(gate.take) == (valid & ready & room)
            assert ctx.get(gate.o.valid) == (valid & room)
            assert ctx.get(gate.i.ready) == (ready & room)
        for _ in range(6):
            seen.append(ctx.get(gate.take))
            await ctx.tick()

    simulator = Simulator(gate)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [1, 0, 0, 1, 0, 0]


class Marked(wiring.Component):
    """A gate before a queue that takes what is marked, a block of ``count`` beats at a time."""

    def __init__(self, *, count, depth):
        shape = data.StructLayout({"data": 7, "last": 1})
        self.gate = Gate(shape, count=count, marked=True)
        self.queue = rtl.Watched(7, count=count, depth=depth)
        super().__init__({"i": In(self.gate.i.signature.flip()), "o": Out(self.queue.o.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate, m.submodules.queue = gate, queue = self.gate, self.queue
        wiring.connect(m, wiring.flipped(self.i), gate.i)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        m.d.comb += [
            gate.o.ready.eq(1),
            queue.i.payload.eq(gate.o.p.data),
            queue.i.valid.eq(gate.o.valid & gate.o.p.last),
            gate.room.eq(queue.room),
            queue.take.eq(gate.take),
        ]
        return m


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize(("count", "depth"), [(1, 1), (2, 3), (3, 1)])
def test_marked_gate(count, depth, idle, stall):
    """Only what is marked waits for a slot, and none is lost."""
    rng, sent = random.Random(0), []
    for _ in range(20):
        sent += [{"data": rng.getrandbits(7), "last": 0} for _ in range(rng.randrange(4))]
        sent += [{"data": rng.getrandbits(7), "last": 1} for _ in range(count)]
    expected = [beat["data"] for beat in sent if beat["last"]]
    got, _ = rtl_joint(Marked(count=count, depth=depth), sent, len(expected), idle=idle,
                       stall=stall)
    assert got == expected


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_collect_and_emit(count, idle, stall):
    sent = words(6, 8 * count)
    blocks = [sum(word << (6 * n) for n, word in enumerate(sent[at:at + count]))
              for at in range(0, len(sent), count)]
    waits = {"idle": idle, "stall": stall}
    assert rtl_joint(Collect(6, count=count), sent, len(blocks), **waits)[0] == blocks
    assert rtl_joint(Emit(6, count=count), blocks, len(sent), **waits)[0] == sent


def ref_gearbox(beats, i, o, frame, bits):
    """Elements of each frame, regrouped; what is past the end of a frame's last beat is lost."""
    per_frame, mask, out = -(-frame // i), (1 << bits) - 1, []
    for at in range(0, len(beats), per_frame):
        elements = [(beat >> (n * bits)) & mask for beat in beats[at:at + per_frame]
                    for n in range(i)][:frame]
        out += [sum(e << (n * bits) for n, e in enumerate(elements[k:k + o]))
                for k in range(0, frame, o)]
    return out


def modelled(found, beats):
    """Cycles in which the words of a gear leave, if ``beats`` come as fast as they are taken."""
    i = processes.Channel()
    run = [(processes.source(i, [0] * beats), [i])]
    for process, sizes in processes.converters(found):
        before, i = i, processes.Channel()
        run.append((process(before, i, sizes), [before, i]))
    processes.run([*run, (processes.taken_at_once(i), [i])])
    return i.taken


@pytest.mark.parametrize(("i", "o", "frame", "registers"), [
    (8, 3, 227 * 227 * 3, 24 + 24),  # the least common multiple, however long the frame
    (8, 1, 29 * 29, 8), (3, 24, 48, 24), (4, 4, 12, 0), (8, 5, 5, 0)])
def test_gear_registers(i, o, frame, registers):
    assert gear(i, o, frame).elements(i, o) == registers


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize(("i", "o", "frame", "bits"), [
    (4, 4, 12, 1), (2, 6, 12, 1), (6, 2, 12, 2), (4, 6, 24, 1), (4, 6, 12, 3), (3, 4, 8, 1),
    (8, 5, 5, 2), (1, 1, 1, 1), (5, 7, 14, 1), (3, 1, 7, 8), (3, 2, 28, 2), (8, 3, 27, 1),
    (4, 6, 42, 2), (5, 3, 33, 1)])
def test_gearbox(i, o, frame, bits, idle, stall):
    beats = words(i * bits, 5 * -(-frame // i))
    expected = ref_gearbox(beats, i, o, frame, bits)
    dut = Converter(i, o, frame=frame, element_bits=bits)
    got, cycles = rtl_joint(dut, beats, len(expected), idle=idle, stall=stall)
    assert got == expected
    if not idle and not stall:
        assert cycles == modelled(gear(i, o, frame), len(beats))
        assert cycles[-1] - cycles[-1 - frame // o] == gear(i, o, frame).cycles


@pytest.mark.parametrize("count", [2, 3, 5])
def test_serial(count):
    """Blocks come as close as they may, and further apart."""
    sent = words(4 * count, 6)
    dut, got = Serial(4, count=count), []
    at = [0, count, 2 * count, 4 * count, 5 * count + 1, 7 * count]

    async def bench(ctx):
        for cycle in range(at[-1] + count + 3):
            ctx.set(dut.i.valid, cycle in at)
            ctx.set(dut.i.payload, sent[at.index(cycle)] if cycle in at else 0)
            if ctx.get(dut.o.valid):
                got.append((cycle, ctx.get(dut.o.payload)))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == [(start + 1 + n, block >> 4 * n & 15)
                   for start, block in zip(at, sent, strict=True) for n in range(count)]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Ring(4, words=2, replays=1, ahead=1), "Ahead must be 0 or at least 2, not 1"),
    (lambda: Queue(4, count=1, depth=0), "Depth must be a positive integer, not 0"),
    (lambda: Gate(4, count=0), "Count must be a positive integer, not 0"),
    (lambda: Ring(4, words=0, replays=1), "Words must be a positive integer, not 0"),
    (lambda: Converter(4, 3, frame=8), "Word of 3 elements must divide the frame of 8"),
    (lambda: Emit(0, count=2), "Width must be a positive integer, not 0"),
    (lambda: Serial(4, count=1), "Count must be at least 2, not 1"),
])
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()
