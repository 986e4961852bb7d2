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

__all__ = ["Flow", "Schedule", "alone", "schedule", "supplies"]

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
    error_depth : frames that the design can hold, so many error flags must be queued
    queues : depth in pixels of every queue, by its name
    """

    stages: Mapping[str, int]
    cycles_per_frame: int
    latency_cycles: int
    xnor_lanes: int
    xnor_gates: int
    error_depth: int
    queues: Mapping[str, int]


def _reserve(queues: Sequence[Queue], block: int, now: int,
             meanwhile: Callable[[], None] = lambda: None) -> Generator[None, None, int]:
    """Reserve a place for ``block`` in all queues at once; returns the cycle, ``now`` or later.

    ``meanwhile`` runs whenever another process may have gone on.
    """
    for queue in queues:
        while (room := queue.room(block)) is None:
            yield
            meanwhile()
        now = max(now, room)
    for queue in queues:
        queue.starts.append(now)
    return now


def _windows(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
             queues: Sequence[Queue], latency: int) -> Process:
    """A stage that keeps pixels in a line buffer, and its gate."""
    i, = inputs
    walk, words, per = Walk(stage.window), stage.words_in, stage.reads_per_word
    part, columns = words // stage.parts, stage.windowed.kernel[1]
    frees = [(stage.words_out - 1) * per + (r * columns + c) * part + part - 1
             for r, c in walk.free_at]
    whole: list[int] = []  # cycles in which a pixel was written
    freed: list[int] = []  # ... and freed
    steps, places, offered, taken = walk.steps, walk.places, i.offered, i.taken
    reads, gives = stage.reads, [(n + 1) * per - 1 + latency for n in range(stage.words_out)]

    def fill() -> None:
        """Take what is offered and has a place."""
        now = taken[-1] if taken else -1
        for n in range(len(taken), len(offered)):
            now, free = max(offered[n], now + 1), n // words - places
            if free >= 0:
                if len(freed) <= free:
                    return
                now = max(now, freed[free] + 1)
            taken.append(now)
            if n % words == words - 1:
                whole.append(now)

    gone = last = 0
    start = -reads
    for block in count():
        step = steps[block % len(steps)]
        fill()
        while len(whole) < gone + step.need:
            yield
            fill()
        got = max(last, whole[gone + step.need - 1] + 1)
        start = yield from _reserve(queues, block, max(got + 1, start + reads), fill)
        word = frees[2 if step.ends_frame else 1 if step.ends_row else 0]
        freed += [start + word - 1 if word else got] * step.free
        gone += step.free
        last = start + reads - 1
        for o in outputs:
            o.offered += [start + n for n in gives]


def _sliding(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
             queues: Sequence[Queue], latency: int) -> Process:
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
            start = yield from _reserve(queues, block, now + 1)
            block += 1
            last = start + stage.reads - 1
            for o in outputs:
                o.offered += [start + (k + 1) * per - 1 + latency for k in range(gives)]


def _straight(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
              queues: Sequence[Queue], latency: int) -> Process:
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
                taken = yield from _reserve(queues, block, taken)
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
    [Stage, Sequence[Channel], Sequence[Channel], Sequence[Queue], int], Process]
_READERS: dict[type[nodes.Front], _Reader] = {
    nodes.Tiles: _straight, nodes.LineBuffer: _windows, nodes.SlidingWindow: _sliding}


def _reader(stage: Stage) -> _Reader:
    """The process of a stage that reads pixels: that of the last node which cuts them."""
    for kind in stage.front:
        if kind not in _READERS:
            raise TypeError(f"{kind.__name__} before layer {stage.n} has no process")
    return _READERS[stage.front[-1]] if stage.front else _straight


def _pixels(stage: Stage, inputs: Sequence[Channel], outputs: Sequence[Channel],
            queues: Sequence[Queue], latency: int) -> list[Running]:
    """The processes of a stage that reads pixels, and of what cuts windows out of them for it."""
    running: list[Running] = []
    if nodes.Tiles in stage.front and not stage.layer.is_marked:
        i, before = Channel(), inputs[0]
        running.append((_on_grid(stage, before, i), (before, i)))
        inputs = [i]
    process = _reader(stage)(stage, inputs, outputs, queues, latency)
    return [*running, (process, (*inputs, *outputs, *queues))]


def _layer(unit: nodes.Unit, i: Channel, o: Channel, latency: int) -> Process:
    """A dense layer that reads each frame once, as it comes."""
    every, pause = unit.pause
    free, per = 0, unit.stage.reads_per_word
    for n in count():
        while len(i.offered) <= n:
            yield
        now = max(i.offered[n], free)
        i.taken.append(now)
        free = now + 1 + (pause if (n + 1) % every == 0 else 0)
        if (n + 1) % per == 0:
            o.offered.append(now + latency)


def _replayed(unit: nodes.Unit, i: Channel, o: Channel, latency: int, replays: int) -> Process:
    """A dense layer and the ring of two frames before it, which sends each frame so often.

    Fold by fold: within one, words follow each other in every cycle once they are there.
    """
    words, (every, pause) = unit.stage.words_in, unit.pause
    folds = max(1, every // words)
    puts = i.taken
    gets: list[int] = []

    def fill() -> None:
        for n in range(len(puts), len(i.offered)):
            free = n - 2 * words
            if len(gets) <= free:
                return
            puts.append(max(i.offered[n], puts[-1] + 1 if puts else 0,
                            gets[free] + 1 if free >= 0 else 0))

    last = free = fold = 0
    for frame in count():
        for n in range(frame * words, (frame + 1) * words):
            while len(puts) <= n:
                fill()
                if len(puts) <= n:
                    yield
            last = max(last, puts[n] + 1) + 1
            last = max(last, free) if n == frame * words else last
        for replay in range(replays):
            if replay:
                if replay == replays - 1:
                    first = max(last + 1, free)
                    gets += [last, *range(first, first + words - 1)]
                last = max(last + 1, free) + words - 1
            fold += 1
            free = last + 1 + (pause if fold % folds == 0 else 0)
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
    guarded : beats at the guard; the last of a frame brings its error flag
    queues : the :class:`~benn_fpga.plan.processes.Queue` of every queue, by name
    """

    def __init__(self, plan: Draft, depths: Mapping[str, int] | None = None) -> None:
        self._plan = plan
        self._depths = depths
        self._processes: list[Running] = []
        self._offers: dict[str, Channel] = {}  # what a node gives
        self.guarded = Channel()
        self.queues: dict[str, Queue] = {}

    def bus(self, frames: int) -> list[int]:
        """Follow frames that come as fast as they are taken; the cycles of all score words."""
        entry = self._plan.entry
        i = self._source([0] * (frames * entry.i.words))
        self._offers[entry.name] = self._passed(entry, i)
        return self._follow()

    def paced(self, frames: int, cycles: int) -> list[int]:
        """... frames, or rounds of them, whose words come evenly to the first layer, each in so
        many cycles."""
        first = self._plan.units[0]
        converter = self._plan.converter(first)
        words = converter.o.words
        i = self._source([frame * cycles + n * cycles // words
                          for frame in range(frames) for n in range(words)])
        self._offers[converter.name] = i
        for node in self._plan.front(first):
            if isinstance(node, nodes.Ring) and not self._is_fused(node):
                self._offers[node.name] = i  # it does no more than to repeat frames for rounds
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
        """Whether a ring is followed together with the unit that reads it, fold by fold."""
        return any(unit.stage.layer.reads_frames and ring in self._plan.front(unit)
                   for unit in self._plan.units)

    def _follow(self) -> list[int]:
        """Follow the words of what is offered; returns the cycles of all score words."""
        last = self._plan.units[-1]
        for node in self._plan.followed(last):
            if node.name not in self._offers and node.reads and node.reads[0] in self._offers:
                self._offers[node.name] = self._passed(node, self._offers[node.reads[0]])
        scores = self._offers[last.name]
        self._run(processes.taken_at_once(scores), scores)
        processes.run(self._processes)
        return scores.taken

    def _passed(self, node: nodes.Node, i: Channel) -> Channel:
        """What ``node`` gives, if ``i`` comes to its first port; raises `TypeError` if it is of a
        kind that nobody follows."""
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
                return self.queues[node.name].o
            case nodes.Unit():
                return self._unit(node)
            case nodes.Ring() | nodes.Front() | nodes.Gate() | nodes.Fork() | nodes.Spread():
                return i  # followed with the unit
        raise TypeError(f"{node.name}: {type(node).__name__} has no process")

    def _unit(self, unit: nodes.Unit) -> Channel:
        """A unit, and what is followed with it."""
        plan, latency = self._plan, self._plan.latency(unit)
        inputs = [self._offers[name] for name in unit.reads]
        if unit.stage.layer.reads_frames:
            o, ring = Channel(), plan.front(unit)[0]
            if isinstance(ring, nodes.Ring):
                process = _replayed(unit, inputs[0], o, latency, ring.replays)
            else:
                process = _layer(unit, inputs[0], o, latency)
            self._run(process, inputs[0], o)
            return o
        queues, gate = plan.queues(unit), plan.gate(unit)
        outputs = [Channel() for _ in queues] or [Channel()]
        for node, i in zip(queues, outputs, strict=False):
            depth = None if self._depths is None else self._depths[node.name]
            queue = self.queues[node.name] = Queue(i, Channel(), node.count, depth)
            self._run(queue.process(), queue.i, queue.o, queue)
        reserved = [self.queues[name] for name in gate.reserves] if gate else []
        self._processes += _pixels(unit.stage, inputs, outputs, reserved, latency)
        return outputs[0]


def supplies(plan: Draft) -> list[tuple[Gear, int] | None]:
    """Per unit, the (:class:`Gear`, how often a frame it turns) that brings its first port; None
    if it reads a ring of whole frames, since members run in turn."""
    supplied: list[tuple[Gear, int] | None] = []
    for unit in plan.units:
        converter = plan.converter(unit)
        kept = plan.rounds > 1 and any(isinstance(node, nodes.Ring) and not node.engines
                                       for node in plan.front(unit))
        supplied.append(None if kept else (converter.gear, converter.turns))
    return supplied


@lru_cache(maxsize=1 << 14)
def alone(stage: Stage, supply: tuple[Gear, int] | None = None) -> int:
    """Cycles per frame of a stage that waits for no others but those that supply it.

    ``supply`` is as from :func:`supplies`; if None, a word comes in each cycle.
    """
    gear, turns = supply or (Gear(1, 1, stage.words_in), stage.pixels_in)
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
        return _alone(stage, gear, turns)
    height, width, channels = layer.shape

    def with_rows(rows: int) -> int:
        shape = (height - (more - rows) * layer.stride, width, channels)
        return _alone(replace(stage, layer=replace(layer, shape=shape)), gear,
                      shape[0] * width)
    few = with_rows(0)
    return few + more * (with_rows(1) - few)


def _alone(stage: Stage, gear: Gear, turns: int) -> int:
    frames, i, o = 3, Channel(), Channel()
    run: list[Running] = [(processes.source(i, [0] * (frames * turns * gear.words)), [i])]
    for process, sizes in processes.converters(gear):
        i, before = Channel(), i
        run.append((process(before, i, sizes), [before, i]))
    run += [*_pixels(stage, [i], [o], [], 0), (processes.taken_at_once(o), [o])]
    processes.run(run)
    per_frame = stage.pixels_out * stage.words_out
    return o.taken[frames * per_frame - 1] - o.taken[(frames - 1) * per_frame - 1]


def schedule(plan: Draft) -> Schedule:
    """The :class:`Schedule` of a plan whose depths are not known yet; it says them."""
    rounds, fed = plan.rounds, supplies(plan)
    busy = {"input": plan.entry.i.words}
    held = 4  # frames, at the most: in encoder and port, and one for the queue's own registers
    for unit, supply in zip(plan.units, fed, strict=True):
        busy[unit.name] = rounds * alone(unit.stage, supply)
        held += 4 + -(-plan.latency(unit) // busy[unit.name])  # two in the buffer, two converted
    words = plan.units[-1].o.words
    voting = sum(node.latency for node in (*plan.votes, plan.voter))
    held += -(-voting // (rounds * words))
    busy["answer"] = plan.port.o.words
    cycles = max(busy.values())
    depths = _depths(plan, cycles)
    flow = Flow(plan, depths)
    scores = flow.bus(1)
    # The first answer may be known before its frame has come in whole; it waits for the error flag.
    voted = max(scores[rounds * words - 1] + voting, flow.guarded.taken[-1] + FLAG_LATENCY)
    return Schedule(busy, cycles, voted + plan.port.latency,
                    sum(unit.engines * unit.lanes for unit in plan.units),
                    sum(unit.engines * unit.gates for unit in plan.units),
                    held, depths)


def _depths(plan: Draft, cycles: int) -> dict[str, int]:
    """Depth, in pixels, of every queue, if frames take so many cycles.

    It is what a stream of frames needs whose words come evenly.
    """
    if not any(plan.all(nodes.Queue)):
        return {}
    cycles, frames, needed = cycles // plan.rounds, 0, _FRAMES
    while frames < needed:
        frames = needed
        flow = Flow(plan)
        scores = flow.paced(frames, cycles)
        needed = scores[len(scores) // frames - 1] // cycles + _FRAMES
    return {name: queue.most() for name, queue in flow.queues.items()}
