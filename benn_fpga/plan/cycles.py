"""The cycle model: how long a plan takes, to the cycle.

Let a layer have NF = outputs/PE and SF = inputs/SIMD. Then

* one member keeps a dense layer busy for ``NF * SF`` cycles, T members for T times that;
* a layer of windows takes ``NF * SF`` cycles for each of them, and longer where its line buffer
  has to be filled first (:func:`alone`);
* a stream of frames needs as many cycles for each as the slowest layer, the input or the answer;
* a frame that meets an idle design is followed word by word from node to node (:class:`Flow`).

All engines of a design do the same in the same cycles, so one of them is followed. The tests
compare the whole with simulation, cycle by cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, cycle
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias

from benn_fpga.layers import Window
from benn_fpga.plan import nodes, processes
from benn_fpga.plan.geometry import Slide, Walk
from benn_fpga.plan.latency import FLAG_LATENCY
from benn_fpga.plan.processes import Channel, Process, Queue, Running
from benn_fpga.plan.stages import Stage
from benn_fpga.plan.widths import Gear

if TYPE_CHECKING:
    from benn_fpga.plan.plan import Draft

__all__ = ["Flow", "Schedule", "Supply", "alone", "schedule", "supplies"]

P = ParamSpec("P")

_FRAMES = 4  # after the first one is through, in which a stream of frames finds its rhythm


@dataclass(frozen=True)
class Schedule:
    """Predicted timing and size of a design.

    Members
    -------
    stages : cycles that each stage is busy per frame, by name
    cycles_per_frame : in a stream of frames; the slowest stage
    latency_cycles : from the first input beat to the first beat of the answer, design idle before
    xnor_lanes : PE x SIMD over all layers and engines (a multi-bit product is one lane)
    xnor_gates : the same, each bit plane product counted
    error_depth : at least the frames that the design can hold: so many error flags are queued
    queues : depth in blocks of every queue, by its name
    """

    stages: Mapping[str, int]
    cycles_per_frame: int
    latency_cycles: int
    xnor_lanes: int
    xnor_gates: int
    error_depth: int
    queues: Mapping[str, int]


class _Room:
    """Slots that a gate reserves in ``queues``: one in each for ``every`` blocks."""

    def __init__(self, queues: Sequence[Queue], every: int = 1) -> None:
        self.queues = queues
        self._every = every

    def reserve(self, block: int, now: int,
                meanwhile: Callable[[], None] = lambda: None) -> Generator[None, None, int]:
        """Reserve a slot for ``block``; returns the cycle, ``now`` or later.

        ``meanwhile`` runs whenever another process may have gone on.
        """
        slot, more = divmod(block, self._every)
        if more:
            return now
        for queue in self.queues:
            while (room := queue.room(slot)) is None:
                yield
                meanwhile()
            now = max(now, room)
        for queue in self.queues:
            queue.starts.append(now)
        return now


def _windows(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
             room: _Room, latency: int) -> Process:
    """A stage that keeps pixels in a line buffer, and its gate."""
    i, = inputs
    walk, words, per = Walk(stage.window), stage.words_in, stage.reads_per_word
    part, columns = words // stage.parts, stage.windowed.kernel[1]
    frees = [(stage.words_out - 1) * per + (r * columns + c) * part + part - 1
             for r, c in walk.free_at]
    whole: list[int] = []  # cycles in which a pixel was written
    freed: list[int] = []  # ... and freed
    steps, slots, offered, taken = walk.steps, walk.slots, i.offered, i.taken
    reads, gives = stage.reads, [(n + 1) * per - 1 + latency for n in range(stage.words_out)]

    def fill() -> None:
        """Take what is offered and has a slot."""
        now = taken[-1] if taken else -1
        for n in range(len(taken), len(offered)):
            now, free = max(offered[n], now + 1), n // words - slots
            if free >= 0:
                if len(freed) <= free:
                    return
                now = max(now, freed[free] + 1)
            taken.append(now)
            if n % words == words - 1:
                whole.append(now)

    gone = 0
    start = -reads
    for block in count():
        step = steps[block % len(steps)]
        fill()
        while len(whole) < gone + step.need:
            yield
            fill()
        start = yield from room.reserve(
            block, max(whole[gone + step.need - 1] + 1, start + reads), fill)
        word = frees[2 if step.ends_frame else 1 if step.ends_row else 0]
        freed += [start + word] * step.free
        gone += step.free
        for o in outputs:
            o.offered += [start + n for n in gives]


def _sliding(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
             room: _Room, latency: int) -> Process:
    """A stage whose window is in registers, and its gate: the next step comes with the last word of
    a window, and a window is read from the cycle after its last step."""
    i, = inputs
    per, gives = stage.reads_per_word, stage.words_out
    now = last = -1
    n = block = 0
    for comes, completes in cycle(Slide(stage.windowed).walk):
        now = max(now + 1, last)
        if comes:
            while len(i.offered) <= n:
                yield
            now = max(now, i.offered[n])
            i.taken.append(now)
            n += 1
        if completes:
            start = yield from room.reserve(block, now + 1)
            block += 1
            last = start + stage.reads - 1
            for o in outputs:
                o.offered += [start + (k + 1) * per - 1 + latency for k in range(gives)]


def _straight(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
              room: _Room, latency: int) -> Process:
    """A stage that reads every pixel once, as it comes, and its gate; those outside of tiles are
    dropped, and the last of a tile gives a pixel."""
    per, words = stage.reads_per_word, stage.words_in
    ends = _tiles(stage.windowed) if stage.layer.is_marked else [True]
    taken = n = block = 0
    for gives in cycle(ends):
        for word in range(words):
            for i in inputs:
                while len(i.offered) <= n:
                    yield
                taken = max(taken, i.offered[n])
            if gives and word == 0:
                taken = yield from room.reserve(block, taken)
                block += 1
            for i in inputs:
                i.taken.append(taken)
            if gives and (word + 1) % per == 0:
                for o in outputs:
                    o.offered.append(taken + latency)
            taken += 1
            n += 1


def _tiles(layer: Window) -> list[bool]:
    """Of each pixel, whether it is the last of its window in windows that do not overlap."""
    ends = []
    for size, kernel, grid in zip(layer.shape, layer.kernel, layer.grid, strict=False):
        stops = (n * layer.stride - layer.padding + kernel for n in range(grid))
        ends.append({min(size, stop) - 1 for stop in stops})
    return [y in ends[0] and x in ends[1]
            for y in range(layer.shape[0]) for x in range(layer.shape[1])]


def _on_grid(stage: Stage, i: Channel, o: Channel) -> Process:
    """hw.tiles.Tiles for one tap: pixels that are not on the grid are dropped."""
    now, n = -1, 0
    for keep in cycle(_tiles(stage.windowed)):
        for _ in range(stage.words_in):
            while len(i.offered) <= n:
                yield
            now = max(i.offered[n], now + 1)
            if keep:
                o.offered.append(now)
                while len(o.taken) < len(o.offered):
                    yield
                now = o.taken[-1]
            i.taken.append(now)
            n += 1


_Reader: TypeAlias = Callable[
    [Stage, Sequence[Channel], Sequence[Channel], _Room, int], Process]
# By what cuts windows for a stage; tiles of one tap have a process of their own, _on_grid.
_READERS: dict[tuple[type[nodes.Front], ...], _Reader] = {
    (): _straight,
    (nodes.Tiles,): _straight,
    (nodes.LineBuffer,): _windows,
    (nodes.Tiles, nodes.LineBuffer): _windows,
    (nodes.SlidingWindow,): _sliding,
}


def _reader(stage: Stage) -> _Reader:
    """The process of a stage that reads pixels, with the last node which cuts them."""
    if stage.front not in _READERS:
        kinds = ", ".join(node_kind.__name__ for node_kind in stage.front)
        raise TypeError(f"{kinds} before layer {stage.n} has no process")
    return _READERS[stage.front]


def _pixels(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
            room: _Room, latency: int) -> list[Running]:
    """The processes of a stage that reads pixels, and of what cuts windows out of them for it."""
    running: list[Running] = []
    if nodes.Tiles in stage.front and not stage.layer.is_marked:
        i, before = Channel(), inputs[0]
        running.append((_on_grid(stage, before, i), (before, i)))
        inputs = [i]
    process = _reader(stage)(stage, inputs, outputs, room, latency)
    return [*running, (process, (*inputs, *outputs, *room.queues))]


def _replayed(stage: Stage, i: Channel, outputs: Sequence[Channel], room: _Room, latency: int,
              replays: int, ahead: int) -> Process:
    """A stage that reads whole frames, its gate, and the ring of two frames before it, which sends
    each frame so often, words so many cycles after it was asked for them.

    Output word by output word: for one, words follow each other in every cycle once they are there.
    """
    words = stage.words_in
    puts = i.taken
    gets: list[int] = []  # cycles in which a word was taken from the ring for the last time

    def fill() -> None:
        for n in range(len(puts), len(i.offered)):
            free = n - 2 * words
            if len(gets) <= free:
                return
            puts.append(max(i.offered[n], puts[-1] + 1 if puts else 0,
                            gets[free] + ahead if free >= 0 else 0))

    block, last = 0, -1
    for frame in count():
        for replay in range(replays):
            for n in range(frame * words, (frame + 1) * words) if replay == 0 else (0,):
                while replay == 0 and len(puts) <= n:
                    fill()
                    if len(puts) <= n:
                        yield
                last = max(last, puts[n] if replay == 0 else 0) + 1
                if replay or n == frame * words:
                    last = yield from room.reserve(block, last, fill)
                if replay == replays - 1:
                    gets.append(last)
            if replay:
                if replay == replays - 1:
                    gets += range(last + 1, last + words)
                last += words - 1
            block += 1
            for o in outputs:
                o.offered.append(last + latency)
            fill()


class Flow:
    """The processes of a plan.

    Parameters
    ----------
    plan : what is followed
    depths : of every queue, by name; as many as are needed if None

    Members
    -------
    guarded : beats at the guard, if frames come from the bus; the last of a frame brings its error
        flag
    queues : the :class:`~benn_fpga.plan.processes.Queue` of every queue, by name
    """

    def __init__(self, plan: Draft, depths: Mapping[str, int] | None = None) -> None:
        self._plan = plan
        self._depths = depths
        self._processes: list[Running] = []
        self._offers: dict[str, Channel] = {}  # what a node gives
        self.guarded: Channel | None = None
        self.queues: dict[str, Queue] = {}

    def bus(self, frames: int) -> list[int]:
        """Follow frames that come as fast as they are taken; the cycles in which answers begin."""
        entry = self._plan.entry
        i = self._source([0] * (frames * entry.i.words))
        self._offers[entry.name] = self._passed(entry, i)
        return self._follow()

    def paced(self, frames: int, cycles: int) -> list[int]:
        """... whose words come evenly to the first layer, each frame in so many cycles."""
        first = self._plan.units[0]
        converter = self._plan.converter(first)
        words = converter.o.words
        rings = [node for node in self._plan.front(first)
                 if isinstance(node, nodes.Ring) and not self._is_fused(node)]
        for ring in rings:  # which does no more than to repeat frames for rounds
            frames, cycles = frames * ring.replays, cycles // ring.replays
        i = self._source([frame * cycles + n * cycles // words
                          for frame in range(frames) for n in range(words)])
        self._offers[converter.name] = i
        for ring in rings:
            self._offers[ring.name] = i
        return self._follow()

    def _source(self, planned: Iterable[int]) -> Channel:
        o = Channel()
        self._run(processes.source(o, planned), o)
        return o

    def _run(self, process: Process, *shared: Channel | Queue) -> None:
        self._processes.append((process, shared))

    def _add(self, process: Callable[Concatenate[Channel, Channel, P], Process], i: Channel,
             *args: P.args, **kwargs: P.kwargs) -> Channel:
        o = Channel()
        self._run(process(i, o, *args, **kwargs), i, o)
        return o

    def _is_fused(self, ring: nodes.Ring) -> bool:
        """Whether a ring is followed together with the unit that reads it, word by word."""
        return any(unit.stage.layer.reads_frames and ring in self._plan.front(unit)
                   for unit in self._plan.units)

    def _follow(self) -> list[int]:
        """Follow the words of what is offered; returns the cycles in which answers begin."""
        plan = self._plan
        for each in self._timed_queues():
            depth = None if self._depths is None else self._depths[each.name]
            queue = self.queues[each.name] = Queue(Channel(), Channel(), each.count, depth)
            self._run(queue.process(), queue.i, queue.o, queue)
        for node in plan.nodes:
            if node.name not in self._offers and node.reads and node.reads[0] in self._offers:
                self._offers[node.name] = self._passed(node, self._offers[node.reads[0]])
        answers = self._offers[plan.port.name]
        processes.run(self._processes)
        return answers.offered

    def _passed(self, node: nodes.Node, i: Channel) -> Channel:
        """What ``node`` gives, if ``i`` comes to its first port; raises `TypeError` if it is of a
        node kind that nobody follows."""
        match node:
            case nodes.Skid():
                return self._add(processes.skid, i)
            case nodes.Guard():
                self.guarded = i
                return i
            case nodes.Encoder():
                return self._add(processes.register, i)
            case nodes.Converter():
                for process, sizes in processes.converters(node.gear):
                    i = self._add(process, i, sizes)
                return i
            case nodes.Ring() if not self._is_fused(node):
                return self._add(processes.ring, i, node.i.words, node.replays)
            case nodes.Queue():
                return self.queues[node.name].o if node.is_timed else i
            case nodes.Unit():
                return self._unit(node)
            case nodes.Voter():
                return self._voted(node, i)
            case nodes.AnswerPort():
                return self._answered(node, i)
            case nodes.Ring() | nodes.Front() | nodes.Gate() | nodes.Serial() | nodes.HardVote():
                return i  # followed with the unit, or with the voter
        raise TypeError(f"{node.name}: {type(node).__name__} has no process")

    def _timed_queues(self) -> list[nodes.Queue]:
        return [queue for queue in self._plan.all(nodes.Queue) if queue.is_timed]

    def _unit(self, unit: nodes.Unit) -> Channel:
        """A unit, and what is followed with it."""
        plan, gate, stage = self._plan, self._plan.gate(unit), unit.stage
        inputs = [self._offers[name] for name in unit.reads]
        room = _Room([self.queues[name] for name in gate.reserves if name in self.queues],
                     gate.count // stage.reads_per_block)
        outputs = [self.queues[node.name].i for node in plan.queues(unit)] or [Channel()]
        ring = next((node for node in plan.front(unit) if isinstance(node, nodes.Ring)
                     and self._is_fused(node)), None)
        if ring is None:
            self._processes += _pixels(stage, inputs, outputs, room, unit.latency)
        else:
            self._run(_replayed(stage, inputs[0], outputs, room, unit.latency, ring.replays,
                                ring.o.ahead),
                      *inputs, *outputs, *room.queues)
        return outputs[0]

    def _voted(self, voter: nodes.Voter, i: Channel) -> Channel:
        """The answers to the scores of ``i``."""
        answers = next(queue for queue in self._timed_queues() if queue.reads == (voter.name,))
        o = self.queues[answers.name].i
        self._run(processes.reduced(i, o, voter.rounds * self._plan.units[-1].o.words,
                                    sum(node.latency for node in self._plan.votes)), i, o)
        return o

    def _answered(self, port: nodes.AnswerPort, i: Channel) -> Channel:
        """The first beats of the answers. Those of frames from the bus wait for their error flags;
        the first answer may be known before its frame has come in whole."""
        o, flags = Channel(), self.guarded
        beats = self._plan.entry.i.words if flags is not None else 0
        self._run(processes.answers(i, o, flags, beats, FLAG_LATENCY, port.o.words, port.latency,
                                    port.head_beats), *filter(None, (i, o, flags)))
        return o


@dataclass(frozen=True)
class Supply:
    """What brings words to a unit: a :class:`Gear` that turns so often in a frame."""

    gear: Gear
    turns: int

    @property
    def words(self) -> int:
        """Words in of a frame."""
        return self.turns * self.gear.words


def supplies(plan: Draft) -> list[Supply | None]:
    """Per unit, what brings its first port; None if it reads a ring of whole frames, since members
    run in turn."""
    supplied: list[Supply | None] = []
    for unit in plan.units:
        converter, front = plan.converter(unit), plan.front(unit)
        kept = plan.rounds > 1 and unit is plan.units[0] and any(
            isinstance(node, nodes.Ring) for node in front)
        supplied.append(None if kept else Supply(converter.gear, converter.turns))
    return supplied


@lru_cache(maxsize=1 << 14)
def alone(stage: Stage, supply: Supply | None = None) -> int:
    """Cycles per frame of a stage that waits for no others but those that supply it.

    If ``supply`` is None, a word comes in each cycle.
    """
    supply = supply or Supply(Gear(1, 1, stage.words_in), stage.pixels_in)
    gear, turns = supply.gear, supply.turns
    fed = turns * gear.cycles
    if stage.layer.reads_frames:
        return max(stage.reads, fed)
    if _reader(stage) is _straight:
        return max(stage.pixels_in * stage.words_in, fed)
    layer = stage.windowed
    # Rows of windows at either edge, which reach into the padding, and more than fill the buffer;
    # each further row takes as long as the one before, if words come evenly.
    edge, kernel = (-(-size // layer.stride) for size in (layer.padding, layer.kernel[0]))
    more = layer.grid[0] - (2 * edge + kernel + 3)
    if more <= 1 or turns == 1 or (gear.collect > 1 and gear.emit > 1):
        return _alone(stage, supply)
    height, width, channels = layer.shape

    def with_rows(rows: int) -> int:
        shape = (height - (more - rows) * layer.stride, width, channels)
        return _alone(replace(stage, layer=replace(layer, shape=shape)),
                      replace(supply, turns=shape[0] * width))
    few = with_rows(0)
    return few + more * (with_rows(1) - few)


def _alone(stage: Stage, supply: Supply) -> int:
    frames, i, o = 3, Channel(), Channel()
    run: list[Running] = [(processes.source(i, [0] * (frames * supply.words)), [i])]
    for process, sizes in processes.converters(supply.gear):
        i, before = Channel(), i
        run.append((process(before, i, sizes), [before, i]))
    run += [*_pixels(stage, [i], [o], _Room([]), 0), (processes.taken_at_once(o), [o])]
    processes.run(run)
    per_frame = stage.pixels_out * stage.words_out
    return o.taken[frames * per_frame - 1] - o.taken[(frames - 1) * per_frame - 1]


def schedule(plan: Draft) -> Schedule:
    """The :class:`Schedule` of a plan whose depths are not known yet; it says them."""
    busy = {"input": plan.entry.i.words}
    for unit, supply in zip(plan.units, supplies(plan), strict=True):
        busy[unit.name] = plan.rounds * alone(unit.stage, supply)
    busy["answer"] = plan.port.o.words
    cycles = max(busy.values())
    depths = _depths(plan, cycles)
    first, = Flow(plan, depths).bus(1)
    return Schedule(busy, cycles, first,
                    sum(unit.xnor_lanes for unit in plan.units),
                    sum(unit.xnor_gates for unit in plan.units),
                    _held(plan, busy, depths), depths)


def _held(plan: Draft, busy: Mapping[str, int], depths: Mapping[str, int]) -> int:
    """Frames that a design can hold, at the most: in what stores words, in its queues, in the
    pipelines of its units, and in the vote."""
    held = sum(node.frames for node in plan.nodes)
    for unit in plan.units:
        held += -(-unit.latency // busy[unit.name])
    for queue in plan.all(nodes.Queue):
        if queue.is_timed:
            held += -(-depths[queue.name] * queue.count // queue.o.words)
    voting = sum(node.latency for node in plan.votes)
    return held + -(-voting // (plan.rounds * plan.units[-1].o.words))


def _depths(plan: Draft, cycles: int) -> dict[str, int]:
    """Depth, in blocks, of every queue, if frames take so many cycles.

    It is what a stream of frames needs whose words come evenly. A stage that reads whole frames
    may give many words at a time, and wait while they leave: slots for what is under way will do.
    """
    frames, needed = 0, _FRAMES
    while frames < needed:
        frames = needed
        flow = Flow(plan)
        needed = flow.paced(frames, cycles)[0] // cycles + _FRAMES
    depths = {name: queue.most() for name, queue in flow.queues.items()}
    for unit in plan.units:
        if unit.stage.layer.reads_frames:
            under_way = 1 + -(-(unit.latency + 2) // unit.stage.reads_per_word)
            for queue in plan.queues(unit):
                depths[queue.name] = min(depths[queue.name], under_way)
    # Totals leave while the port sends, after their decision did.
    sending = -(-plan.port.o.words // cycles)
    decided = max(depth for name, depth in depths.items() if plan[name].reads == (plan.voter.name,))
    depths |= {queue.name: decided + sending + 1 for queue in plan.all(nodes.TotalsQueue)}
    return depths
