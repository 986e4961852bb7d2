"""Drive a component's streams in Amaranth's simulator and check the stream rules on the way."""

import random
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from unittest import mock

import numpy as np
from amaranth.hdl import (
    Assert,
    Cat,
    Const,
    Module,
    Mux,
    ResetInserter,
    ShapeCastable,
    Signal,
    Value,
)
from amaranth.sim import Simulator

from benn_fpga import golden
from benn_fpga.hw import assembly
from benn_fpga.hw.ensemble import Ensemble
from benn_fpga.hw.joints import Queue
from benn_fpga.hw.pipeline import counter
from benn_fpga.plan.answer import answer_size, decode, flags_of

__all__ = ["Answers", "Beat", "Peaks", "Watched", "after_reset", "answers", "beats_of", "stream",
           "top"]

SURPLUS_CYCLES = 40  # how long to watch for outputs that should not come
PATIENCE = 2000  # cycles in which a stream of a component must move


@dataclass(frozen=True)
class Beat:
    """A transfer: the cycle it happened in, and what was transferred."""

    cycle: int
    payload: object


_KEPT = 4  # simulators
_simulators = OrderedDict()


class _Bed:
    """A simulator of ``dut`` that benches run in, one after another.

    To make it takes longer than to run it, so that the last ones are kept.
    """

    def __init__(self, dut, has_reset):
        m, self.reset, self._is_new = Module(), Signal(), True
        m.submodules.dut = ResetInserter(self.reset)(dut) if has_reset else dut
        m.d.sync += Signal(name="clocked").eq(1)  # a joint may be wires only, benches need a clock
        self._simulator = Simulator(m)
        self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._run)

    async def _run(self, ctx):
        await self._bench(ctx)

    def run(self, bench):
        self._bench = bench
        if not self._is_new:
            self._simulator.reset()
        self._is_new = False
        try:
            self._simulator.run()
        except BaseException:
            _simulators.clear()  # its bench waits for something still
            raise

    @classmethod
    def of(cls, dut, *, has_reset=False):
        """That of ``dut``; ``reset`` does something if it ``has_reset``."""
        key = dut, has_reset
        bed = _simulators.pop(key, None) or cls(*key)
        _simulators[key] = bed
        while len(_simulators) > _KEPT:
            _simulators.popitem(last=False)
        return bed


def _pauses(rate, seed):
    """Endless draws, true on the average once in ``rate + 1`` times; rate 0 is always true."""
    rng = random.Random(seed)
    while True:
        yield not rate or rng.randrange(rate + 1) == 0


class _Player:
    """A generator that yields the values of the signals ``sets``, cycle by cycle, and is sent those
    of the signals ``sees`` in each."""

    def __init__(self, values, sets, sees):
        self._values = values
        self.sets, self.sees = ([Value.cast(each) for each in signals] for signals in (sets, sees))
        self._sizes = [len(each) for each in self.sets]
        self.size = sum(self._sizes)
        self.step(None)

    def step(self, seen):
        """The next cycle, after one in which it saw that; False if there is none."""
        try:
            values = self._values.send(seen)
        except StopIteration:
            return False
        self.word = at = 0
        for value, size in zip(values, self._sizes, strict=True):
            self.word |= value << at
            at += size
        return True


async def _play(players, at_end, ctx):
    """Run ``players`` until none goes on; ``at_end`` is called when the last of them does not.

    All that they set is set at once, since the whole design settles each time.
    """
    inputs, before = Cat(*(player.sets for player in players)), None
    ends = [*accumulate(len(player.sees) for player in players)]
    places = [slice(end - len(player.sees), end) for player, end in zip(players, ends, strict=True)]
    playing = dict(zip(players, places, strict=True))
    ticks = aiter(ctx.tick().sample(*(each for player in players for each in player.sees)))
    while playing:
        word = at = 0
        for player in players:
            word |= player.word << at
            at += player.size
        if word != before:
            ctx.set(inputs, word)
            before = word
        _, _, *seen = await anext(ticks)
        for player, place in [*playing.items()]:
            if not player.step(seen[place]):
                del playing[player]
                if at_end and player is players[-1]:
                    at_end(ctx)
    await ticks.aclose()


def _number(port, payload):
    """The bits of ``payload`` as they are at ``port``."""
    shape = port.shape()
    if isinstance(shape, ShapeCastable):
        payload = shape.const(payload)
    return Const.cast(payload).value & (1 << len(Value.cast(port))) - 1


def _payload(port, number):
    """What `_number` made a number of."""
    shape = port.shape()
    return shape.from_bits(number) if isinstance(shape, ShapeCastable) else number


def _is_always_ready(port):
    return isinstance(port.ready, Const)


def stream(dut, sources, sinks, *, idle=0, stall=0, seed=0, late=0, planned=None, limit=100_000,
           i_ahead=0, o_ahead=0, prompt=(), at_end=None):
    """Feed ``sources`` (port, payloads) and take ``sinks`` (port, count); transfers of each sink.

    ``idle`` and ``stall`` are the mean cycles that a source or sink waits before each beat, but a
    sink that is always ready never waits, nor does a source in ``prompt``; no beat is sent before
    its cycle in ``planned``, if given; the last sink takes nothing in the first ``late`` cycles. A
    payload is there while it is offered, or, of sources ``i_ahead`` and of sinks ``o_ahead`` cycles
    after it was taken, for one cycle; in all others a source sends another. Fails if a payload does
    not hold until it is taken, if more comes out than asked for, or on a hang. ``at_end`` is given
    the simulator's context when all is over.
    """
    transfers = {id(port): [] for port, _ in sinks}
    open_sinks, moved = len(sinks), late

    def source(port, payloads, seed):
        """Yields (valid, payload) of each cycle, and is sent what it sees in it."""
        nonlocal moved
        payloads = [_number(port.payload, payload) for payload in payloads]
        waits = 0 if any(port is each for each in prompt) else idle
        pauses, noise = _pauses(waits, seed), random.Random(f"{seed} noise")
        sent, offered, cycle, coming = 0, False, 0, deque([None] * i_ahead)
        shown = 0
        while sent < len(payloads) or any(payload is not None for payload in coming):
            if sent < len(payloads) and not offered:
                offered = next(pauses) and not (planned and cycle < planned[sent])
                if offered:
                    moved = max(moved, cycle)
            due = coming[0] if coming else payloads[sent] if offered else None
            shown = noise.choice(payloads) if due is None else due
            ready, = yield offered, shown
            cycle += 1
            taken = offered and ready
            if coming:
                coming.popleft()
                coming.append(payloads[sent] if taken else None)
            if taken:
                sent, offered, moved = sent + 1, False, max(moved, cycle)
        yield False, shown

    def sink(port, count, seed, late=0):
        """Yields (ready,) of each cycle, if it can wait, and is sent what it sees in it."""
        nonlocal open_sinks, moved
        always = _is_always_ready(port)
        got, waiting, cycle, pauses = transfers[id(port)], None, 0, _pauses(stall, seed)
        surplus, taken = SURPLUS_CYCLES, deque()
        while surplus:
            surplus -= open_sinks == 0
            ready = always or (cycle >= late and next(pauses))
            valid, payload = yield () if always else (ready,)
            assert waiting is None or (valid and (o_ahead or payload == waiting)), \
                "payload did not hold"
            waiting = payload if valid and not ready else None
            if valid and ready:
                taken.append(cycle)
                moved = max(moved, cycle)
                assert len(got) + len(taken) <= count, "more came out than should"
            if taken and taken[0] == cycle - o_ahead:
                got.append(Beat(taken.popleft(), _payload(port.payload, payload)))
                open_sinks -= len(got) == count
            cycle += 1
            assert cycle < min(limit, moved + PATIENCE), \
                f"hang: {len(got)} of {count} came out"

    players = [
        *(_Player(source(port, payloads, f"{seed} i {n}"), (port.valid, port.payload),
                  (port.ready,))
          for n, (port, payloads) in enumerate(sources)),
        *(_Player(sink(port, count, f"{seed} o {n}", late * (n == len(sinks) - 1)),
                  () if _is_always_ready(port) else (port.ready,), (port.valid, port.payload))
          for n, (port, count) in enumerate(sinks))]
    _Bed.of(dut).run(partial(_play, players, at_end))
    return [transfers[id(port)] for port, _ in sinks]


def after_reset(dut, payloads, *, reset_at, count=None, ahead=0):
    """What comes out of ``dut`` for ``payloads`` sent, without pauses, right after a reset; as many
    as these are, or ``count``, each ``ahead`` cycles after it was taken.

    Before it they are sent too, from the first on; the reset is cycle ``reset_at`` alone.
    """
    bed, got = _Bed.of(dut, has_reset=True), []
    numbers = [_number(dut.i.payload, payload) for payload in payloads]
    sets = [bed.reset, dut.i.valid, dut.i.payload,
            *([] if _is_always_ready(dut.o) else [dut.o.ready])]

    def player():
        sent, cycle, taken = 0, 0, deque()
        while len(got) < (count or len(payloads)):
            ready, valid, payload = yield (cycle == reset_at, sent < len(payloads),
                                           numbers[min(sent, len(payloads) - 1)], 1)[:len(sets)]
            sent += ready
            if cycle == reset_at:
                sent = 0
            elif valid and cycle > reset_at:
                taken.append(cycle)
            if taken and taken[0] == cycle - ahead:
                got.append(Beat(taken.popleft(), _payload(dut.o.payload, payload)))
            cycle += 1
            assert cycle < 1000, f"hang: only {len(got)} came out"

    sees = dut.i.ready, dut.o.valid, dut.o.payload
    bed.run(partial(_play, [_Player(player(), sets, sees)], None))
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
        """Equal to a golden Result: all frames right, and flagged only if they are rejected."""
        return (np.array_equal(self.totals, expected.totals)
                and np.array_equal(self.classes, expected.classes)
                and np.array_equal(self.margins, expected.margins)
                and np.array_equal(self.flags, flags_of(expected))
                and not any(self.users))


_ensembles = OrderedDict()


def _ensemble(model, folding):
    """The design of ``model``, that of before if it comes again."""
    key = model.digest(), folding
    dut = _ensembles.pop(key, None) or Ensemble(model=model, folding=folding)
    _ensembles[key] = dut
    while len(_ensembles) > _KEPT:
        _ensembles.popitem(last=False)
    return dut


def top(model, folding, beats, *, count, idle=0, stall=0, seed=0, alone=0, before=(),
        reset_at=None, limit=40_000, dut=None, at_end=None):
    """Send AXI4-Stream ``beats`` to the ensemble and collect ``count`` answers.

    The first ``alone`` beats are answered before more are sent. With ``reset_at`` the beats
    ``before`` are sent first, and in that cycle the design is reset, wherever it is. ``at_end`` is
    given the simulator's context when all is over.
    """
    if not dut:  # one that is watched is made anew
        dut = (Ensemble if at_end else _ensemble)(model=model, folding=folding)
    lanes, size = folding.bus // 8, answer_size(model.classes)
    records, users, started, answered = [], [], [], []
    bed = _Bed.of(dut, has_reset=reset_at is not None)
    noise = random.Random(f"{seed} noise")

    def player():
        idles, stalls = _pauses(idle, f"{seed} i"), _pauses(stall, f"{seed} o")
        todo = beats if reset_at is None else before
        sent, cycle, record, seen, held, first = 0, 0, b"", set(), None, True
        offered, surplus = False, SURPLUS_CYCLES
        while surplus:
            now_reset = cycle == reset_at
            over = todo is beats and sent == len(beats) and len(records) == count
            surplus -= over
            blocked = sent == len(todo) or (alone and sent == alone and not records)
            offered = not blocked and (offered or next(idles))
            ready = next(stalls)
            data, keep, last = todo[sent] if offered else \
                (noise.getrandbits(8 * lanes), noise.getrandbits(lanes), noise.getrandbits(1))
            taken, valid, *beat = yield now_reset, offered, data, keep, last, ready
            assert held is None or (valid and held == beat), "answer did not hold"
            held = beat if valid and not ready else None
            if valid and ready and todo is beats:
                if not record:
                    answered.append(cycle)
                record += _kept(beat, lanes)
                seen.add(beat[3])
                if beat[2]:
                    assert len(record) == size
                    assert len(seen) == 1, "TUSER changes within an answer"
                    records.append(record)
                    users.append(seen.pop())
                    record = b""
                    assert len(records) <= count, "more answers than frames"
            if offered and taken:
                if first:
                    started.append(cycle)
                first = last
                sent, offered = sent + 1, False
            if now_reset:
                todo, sent, held, first, offered = beats, 0, None, True, False
                started.clear()
            cycle += 1
            assert cycle < limit, f"hang: {len(records)} of {count} answers"

    sets = (bed.reset, dut.s_axis_tvalid, dut.s_axis_tdata, dut.s_axis_tkeep, dut.s_axis_tlast,
            dut.m_axis_tready)
    sees = (dut.s_axis_tready, dut.m_axis_tvalid, dut.m_axis_tdata, dut.m_axis_tkeep,
            dut.m_axis_tlast, dut.m_axis_tuser)
    bed.run(partial(_play, [_Player(player(), sets, sees)], at_end))
    data = np.frombuffer(b"".join(records), np.uint8).reshape(len(records), size)
    fields, _ = decode(data, model.classes)
    return Answers(*(fields[name] for name in fields.dtype.names), users, started, answered)


def _kept(beat, lanes):
    """The bytes of an answer's beat; all are kept but those at the end of the last one, 0."""
    data, keep, last, _ = beat
    count = keep.bit_length()
    assert keep == (1 << count) - 1, "TKEEP has holes"
    assert last or count == lanes, "a beat before the last is not full"
    assert not data >> (8 * count), "what is not kept is not 0"
    return data.to_bytes(lanes, "little")[:count]


def answers(model, folding, frames, **options):
    """The ensemble's answers to whole, right frames."""
    frames = golden.check_input(model.encoder, frames)
    beats = [beat for frame in frames for beat in beats_of(frame, folding.bus // 8)]
    return top(model, folding, beats, count=len(frames), **options)


class Watched(Queue):
    """Counts the slots that are taken, on its own; ``most`` is the largest number so far. Fails
    when more are taken than there are, or a word comes for which none is."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        read, = m.submodules.memory.read_ports
        _, whole = counter(m, self._count, en=read.en, name="left")
        taken, now, self.most = (Signal(range(self._depth + 2)) for _ in range(3))
        _, filled = counter(m, self._count, en=self.i.valid, name="filled")
        coming = Signal(range(self._depth + 1))  # slots whose block has not come in whole
        m.d.comb += now.eq(taken + self.take)
        m.d.sync += [taken.eq(now - (read.en & whole)),
                     coming.eq(coming + self.take - (self.i.valid & filled)),
                     self.most.eq(Mux(now > self.most, now, self.most)),
                     Assert(now <= self._depth, "no slot is free"),
                     Assert(~self.i.valid | (coming + self.take != 0), "no slot was taken")]
        return m


class Peaks:
    """The most slots that were taken at once in each queue of the designs built inside.

    ::

        with Peaks() as peaks:
            answers(..., at_end=peaks.read)
        peaks.found  # in the order of Schedule.queues
    """

    def __init__(self):
        self.found = None
        self._queues = []
        self._patch = mock.patch.object(assembly, "Queue", self._make)

    def _make(self, *args, **options):
        self._queues.append(Watched(*args, **options))
        return self._queues[-1]

    def __enter__(self):
        self._patch.start()
        return self

    def __exit__(self, *_):
        self._patch.stop()

    def are_those_of(self, depths):
        """Whether every queue got full, as the schedule says; totals have some slots more."""
        *found, totals = self.found
        *expected, slots = depths.values()
        return found == expected and totals <= slots

    def read(self, ctx):
        self.found = [ctx.get(queue.most) for queue in self._queues]
