"""Processes of the cycle model: when every word passes every joint, to the cycle.

Units are processes that pass words through channels. Of each word a channel knows the cycle in
which it is taken, and that from which it is offered, unless the word before it is still there: so
word n is offered from ``max(offered[n], taken[n - 1] + 1)`` on. A process is a generator that
mirrors one unit of the gateware; it goes as far as it can and yields when it needs a number that
another process has to find. The order in which they run does not matter, since every number depends
on earlier cycles only.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, cycle
from typing import TypeAlias

from benn_fpga.plan.widths import Gear

__all__ = ["Channel", "Process", "Queue", "Running", "answers", "collect", "converters", "emit",
           "reduced", "register", "ring", "run", "skid", "source", "taken_at_once"]

Process: TypeAlias = Iterator[None]
Running: TypeAlias = "tuple[Process, Sequence[Channel | Queue]]"  # and what it reads or writes


class Channel:
    """Cycles from which the words of a stream are offered, and in which they are taken."""

    def __init__(self) -> None:
        self.offered: list[int] = []
        self.taken: list[int] = []

    @property
    def lists(self) -> tuple[list[int], list[int]]:
        return self.offered, self.taken


def run(processes: Sequence[Running]) -> None:
    """Let all processes go on until none can. One that found anything wakes those that it shares
    something with."""
    users: dict[int, list[int]] = defaultdict(list)
    for n, (_, shared) in enumerate(processes):
        for item in shared:
            users[id(item)].append(n)
    wakes = [sorted({user for item in shared for user in users[id(item)]} - {n})
             for n, (_, shared) in enumerate(processes)]
    lists = [[cycles for item in shared for cycles in item.lists] for _, shared in processes]
    awake, is_awake = deque(range(len(processes))), [True] * len(processes)
    while awake:
        n = awake.popleft()
        is_awake[n] = False
        before = sum(map(len, lists[n]))
        next(processes[n][0], None)
        if sum(map(len, lists[n])) != before:
            for other in wakes[n]:
                if not is_awake[other]:
                    is_awake[other] = True
                    awake.append(other)


def source(o: Channel, planned: Iterable[int]) -> Process:
    """Offers a word in each of the cycles ``planned``, or as soon as the one before is taken."""
    o.offered += planned
    yield


def taken_at_once(i: Channel) -> Process:
    """Takes every word when it is offered."""
    last = -1
    for n in count():
        while len(i.offered) <= n:
            yield
        last = max(i.offered[n], last + 1)
        i.taken.append(last)


def register(i: Channel, o: Channel) -> Process:
    """One register: a word is taken if there is none, or in the cycle in which it leaves."""
    now, left = -1, 0
    for n in count():
        while len(i.offered) <= n:
            yield
        now = max(i.offered[n], now + 1, left)
        i.taken.append(now)
        o.offered.append(now + 1)
        while len(o.taken) <= n:
            yield
        left = o.taken[n]


def skid(i: Channel, o: Channel) -> Process:
    """hw.joints.SkidBuffer: two registers."""
    now = -1
    for n in count():
        while len(i.offered) <= n or len(o.taken) <= n - 2:
            yield
        now = max(i.offered[n], now + 1, o.taken[n - 2] + 1 if n > 1 else 0)
        i.taken.append(now)
        o.offered.append(now + 1)


def collect(i: Channel, o: Channel, sizes: Sequence[int]) -> Process:
    """hw.joints.Collect: some words become one; ``sizes`` of them, and then again."""
    n, now = 0, -1
    for block, size in enumerate(cycle(sizes)):
        while len(o.taken) < block:
            yield
        now = max(now, o.taken[block - 1] - 1 if block else -1)
        for _ in range(size):
            while len(i.offered) <= n:
                yield
            now = max(i.offered[n], now + 1)
            i.taken.append(now)
            n += 1
        o.offered.append(now + 1)


def emit(i: Channel, o: Channel, sizes: Sequence[int]) -> Process:
    """hw.joints.Emit: a word becomes some; ``sizes`` of them, and then again."""
    now, left, sent = -1, 0, 0
    for block, size in enumerate(cycle(sizes)):
        while len(i.offered) <= block:
            yield
        now = max(i.offered[block], now + 1, left)
        i.taken.append(now)
        o.offered += [now + 1] * size
        sent += size
        while len(o.taken) < sent:
            yield
        left = o.taken[-1]


def converters(gear: Gear) -> list[
        tuple[Callable[[Channel, Channel, Sequence[int]], Process], tuple[int, ...]]]:
    """The processes of a :class:`~benn_fpga.plan.widths.Gear`, and the sizes of their blocks."""
    collects, emits = zip(*gear.sizes, strict=True)
    return [*[(collect, collects)] * (gear.collect > 1),
            *[(emit, emits)] * (gear.emit > 1)]


def ring(i: Channel, o: Channel, words: int, replays: int) -> Process:
    """hw.joints.Ring: frames of ``words`` words, each sent ``replays`` times."""
    puts: list[int] = []
    gets: list[int] = []
    slots = 2 * words

    def put(n: int) -> bool:
        """Take word ``n``, if it is offered and its slot is known to be free."""
        if len(i.offered) <= n or (n >= slots and len(gets) <= n - slots):
            return False
        now = max(i.offered[n], puts[-1] + 1 if puts else 0,
                  gets[n - slots] + 1 if n >= slots else 0)
        i.taken.append(now)
        puts.append(now)
        return True

    left = sent = 0
    for frame in count():
        for replay in range(replays):
            for n in range(frame * words, (frame + 1) * words):
                if replay == 0:
                    while len(puts) <= n:
                        if not put(len(puts)):
                            yield
                    got = max(left, puts[n] + 1)
                else:
                    got = left
                if replay == replays - 1:
                    gets.append(got)
                o.offered.append(got + 1)
                while put(len(puts)):
                    pass
                while len(o.taken) <= sent:
                    yield
                    while put(len(puts)):
                        pass
                left = o.taken[sent]
                sent += 1


def reduced(i: Channel, o: Channel, words: int, latency: int) -> Process:
    """So many words become one, which comes ``latency`` cycles after the last of them."""
    while True:
        i.taken += i.offered[len(i.taken):]
        o.offered += [last + latency for last in i.taken[words - 1::words][len(o.offered):]]
        yield


def answers(i: Channel, o: Channel, beats_in: Channel | None, size: int, flag_latency: int,
            beats: int, latency: int, head: int) -> Process:
    """hw.port.AnswerPort: an answer leaves in ``beats`` beats, ``o`` is the first of them; ``i`` is
    taken ``head`` beats later.

    It waits for the error flag of its frame, so many cycles after the last of the ``size`` beats
    that came in, if they came from the bus.
    """
    free = 0
    for n in count():
        while len(i.offered) <= n or (beats_in and len(beats_in.taken) < (n + 1) * size):
            yield
        flag = beats_in.taken[(n + 1) * size - 1] + flag_latency if beats_in else 0
        now = max(i.offered[n], flag, free)
        i.taken.append(now + head)
        o.offered.append(now + latency)
        free = now + beats


class Queue:
    """hw.joints.Queue: blocks of ``size`` words, ``depth`` slots; None for as many as are needed.

    Members
    -------
    starts : cycles in which a slot was taken, by block; who sends them appends here
    released : cycles in which the last word of a block left the memory
    """

    def __init__(self, i: Channel, o: Channel, size: int, depth: int | None) -> None:
        self.i, self.o = i, o
        self.size = size
        self.depth = depth
        self.starts: list[int] = []
        self.released: list[int] = []

    def room(self, block: int) -> int | None:
        """First cycle with a slot for ``block``; None if that is not known yet."""
        if self.depth is None or block < self.depth:
            return 0
        free = block - self.depth
        return self.released[free] + 1 if len(self.released) > free else None

    @property
    def lists(self) -> tuple[list[int], list[int]]:
        return self.starts, self.released

    def process(self) -> Process:
        i, o, size = self.i, self.o, self.size
        while True:
            new = i.offered[len(i.taken):]
            i.taken += new
            o.offered += [now + 2 for now in new]  # a cycle for the write, one for the read
            for n in range((len(self.released) + 1) * size - 1,
                           min(len(i.taken), len(o.taken) + 1), size):
                self.released.append(max(i.taken[n] + 1, o.taken[n - 1] if n else 0))
            yield

    def most(self) -> int:
        """Slots that were taken at once."""
        most = gone = 0
        for block, start in enumerate(self.starts):
            while gone < len(self.released) and self.released[gone] < start:
                gone += 1
            most = max(most, block + 1 - gone)
        return most
