"""The stages of an engine as processes of timing.py, from the first beat of a frame to its scores.

All engines of a design do the same in the same cycles, so one of them is followed.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import count, cycle

from benn_fpga.plan import timing
from benn_fpga.plan.geometry import Walk
from benn_fpga.plan.stages import beat_elements, consumers, stages, turn
from benn_fpga.plan.timing import Channel, Queue
from benn_fpga.plan.widths import Gear, gear
from benn_fpga.spec import sources

__all__ = ["Flow", "alone", "converters", "supplies"]


def _windows(stage, i, outputs, queues, latency):
    """A stage that keeps pixels in a hw.window.LineBuffer, and its gate."""
    walk, words, per = Walk(stage.window), stage.words_in, stage.reads_per_word
    part, columns = words // stage.groups, stage.layer.kernel[1]
    frees = [(stage.folds - 1) * per + (r * columns + c) * part + part - 1
             for r, c in walk.free_at]
    whole, freed = [], []  # cycles in which a pixel was written, and freed
    steps, places, offered, taken = walk.steps, walk.places, i.offered, i.taken
    reads, gives = stage.reads, [(n + 1) * per - 1 + latency for n in range(stage.words_out)]

    def fill():
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
        start = max(got + 1, start + reads)
        for queue in queues:
            while (room := queue.room(block)) is None:
                yield
                fill()
            start = max(start, room)
        for queue in queues:
            queue.starts.append(start)
        word = frees[2 if step.ends_frame else 1 if step.ends_row else 0]
        freed += [start + word - 1 if word else got] * step.free
        gone += step.free
        last = start + reads - 1
        for o in outputs:
            o.offered += [start + n for n in gives]


def _straight(stage, inputs, outputs, queues, latency):
    """A stage that reads every pixel once, as it comes, and its gate; those outside of tiles are
    dropped, and the last of a tile gives a pixel."""
    per, words = stage.reads_per_word, stage.words_in
    plan = _tiles(stage.layer) if stage.is_tiled else [True]
    taken = n = block = 0
    for gives in cycle(plan):
        for word in range(words):
            for i in inputs:
                while len(i.offered) <= n:
                    yield
                taken = max(taken, i.offered[n])
            if gives and word == 0:
                for queue in queues:
                    while (room := queue.room(block)) is None:
                        yield
                    taken = max(taken, room)
                for queue in queues:
                    queue.starts.append(taken)
                block += 1
            for i in inputs:
                i.taken.append(taken)
            if gives and (word + 1) % per == 0:
                for o in outputs:
                    o.offered.append(taken + latency)
            taken += 1
            n += 1


def _tiles(layer):
    """Of each pixel, whether it is the last of its window in windows that do not overlap."""
    ends = []
    for size, kernel, grid in zip(layer.shape, layer.kernel, layer.grid, strict=False):
        stops = (n * layer.stride - layer.padding + kernel for n in range(grid))
        ends.append({min(size, stop) - 1 for stop in stops})
    return [y in ends[0] and x in ends[1]
            for y in range(layer.shape[0]) for x in range(layer.shape[1])]


def _on_grid(stage, i, o):
    """hw.tiles.Tiles for one tap: pixels that are not on the grid are dropped."""
    now, n = -1, 0
    for keep in cycle(_tiles(stage.layer)):
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


def _pixels(stage, inputs, outputs, queues, latency):
    """The processes of a stage that reads pixels."""
    processes = []
    if stage.is_thinned:
        i, before = Channel(), inputs[0]
        processes.append((_on_grid(stage, before, i), (before, i)))
        inputs = [i]
    process = (_windows(stage, inputs[0], outputs, queues, latency) if stage.is_buffered else
               _straight(stage, inputs, outputs, queues, latency))
    return [*processes, (process, (*inputs, *outputs, *queues))]


def _layer(stage, i, o, latency, pace):
    """A dense layer that reads each frame once, as it comes."""
    chunks, pause = pace
    free, per = 0, stage.reads_per_word
    for n in count():
        while len(i.offered) <= n:
            yield
        now = max(i.offered[n], free)
        i.taken.append(now)
        free = now + 1 + (pause if (n + 1) % chunks == 0 else 0)
        if (n + 1) % per == 0:
            o.offered.append(now + latency)


def _replayed(stage, i, o, latency, pace, replays):
    """A dense layer and the ring of two frames before it, which sends each frame so often.

    Fold by fold: within one, words follow each other in every cycle once they are there.
    """
    words, pause, every = stage.words_in, pace[1], max(1, pace[0] // stage.words_in)
    puts, gets = i.taken, []

    def fill():
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
            free = last + 1 + (pause if fold % every == 0 else 0)
            o.offered.append(last + latency)
            fill()


def converters(found):
    """The processes of a :class:`~benn_fpga.plan.widths.Gear`, and the sizes of their blocks."""
    collects, emits = zip(*found.sizes, strict=True)
    return [*[(timing.collect, collects)] * (found.collect > 1),
            *[(timing.emit, emits)] * (found.emit > 1)]


class Flow:
    """The processes of a design.

    Parameters
    ----------
    latency : of each stage, from the last word that an output needs to that output
    pace : of each dense stage, as in schedule.pace
    depths : of every queue, by (layer, port); as many as are needed if None

    Members
    -------
    guarded : beats at the guard; the last of a frame brings its error flag
    """

    def __init__(self, model, folding, latency, pace, depths=None):
        self._model = model
        self._folding = folding
        self._latency = latency
        self._pace = pace
        self._depths = depths
        self._processes = []
        self.guarded = None
        self.queues = {}
        self.stages = stages(model, folding)
        self.rounds = folding.rounds(model)

    def _run(self, process, *shared):
        self._processes.append((process, shared))

    def _add(self, process, i, *args):
        o = Channel()
        self._run(process(i, o, *args), i, o)
        return o

    def _geared(self, i, lanes_in, lanes_out, frame):
        found = gear(lanes_in, lanes_out, frame)
        for process, sizes in converters(found):
            i = self._add(process, i, sizes)
        return i

    def bus(self, frames, beats):
        """Frames that come as fast as they are taken, from the bus to the first stage."""
        folding, encoder, first = self._folding, self._model.encoder, self.stages[0]
        i = Channel()
        self._run(timing.source(i, [0] * (frames * beats)), i)
        self.guarded = self._add(timing.skid, i)
        i = self._add(timing.register, self.guarded)
        i = self._geared(i, beat_elements(self._model, folding), first.lanes_in, encoder.outputs)
        if first.is_dense or self.rounds == 1:
            return i
        chunks = first.pixels_in * first.words_in
        return self._add(timing.ring, i, chunks, self.rounds)

    def paced(self, frames, cycles):
        """Frames, or rounds of them, whose words come evenly, each in so many cycles."""
        i, first = Channel(), self.stages[0]
        words = first.pixels_in * first.words_in
        self._run(timing.source(i, [frame * cycles + n * cycles // words
                                    for frame in range(frames) for n in range(words)]), i)
        return i

    def run(self, start):
        """Follow the words of the channel ``start``; returns the cycles of all score words."""
        readers = consumers(self._model)
        inputs = {(0, 0): start}
        for n, stage in enumerate(self.stages):
            ports = [inputs[n, port] for port in range(len(stage.layer.sources))]
            if stage.is_dense:
                found = [self._dense(stage, ports[0])]
                for reader, port in readers[n]:
                    inputs[reader, port] = self._read(stage, self.stages[reader], found[0])
            else:
                found, queues = [], []
                for reader, port in readers[n]:
                    found.append(Channel())
                    queue = Queue(found[-1], Channel(), stage.words_out,
                                  None if self._depths is None else self._depths[reader, port])
                    self._run(queue.process(), queue.i, queue.o, queue)
                    self.queues[reader, port] = queue
                    queues.append(queue)
                    inputs[reader, port] = self._read(stage, self.stages[reader], queue.o)
                found = found or [Channel()]
                self._processes += _pixels(stage, ports, found, queues, self._latency[n])
        scores, = found
        self._run(timing.taken_at_once(scores), scores)
        timing.run(self._processes)
        return scores.taken

    def _dense(self, stage, i):
        """A dense stage, and what hw.member.frame_buffer is before it."""
        o, latency, pace = Channel(), self._latency[stage.n], self._pace[stage.n]
        replays = stage.folds * (self.rounds if stage.n == 0 else 1)
        if replays == 1:
            i = self._add(timing.skid, i)
            self._run(_layer(stage, i, o, latency, pace), i, o)
        else:
            self._run(_replayed(stage, i, o, latency, pace, replays), i, o)
        return o

    def _read(self, stage, reader, o):
        """From a stage, or its queue, to the stage that reads it."""
        return self._geared(o, stage.lanes_out, reader.lanes_in, turn(stage, reader))


def supplies(model, folding):
    """Per stage, the (:class:`Gear`, how often a frame it turns) of its first port; None if it
    reads a buffer that holds the whole frame, since members run in turn."""
    found, units = [], stages(model, folding)
    for stage in units:
        source, = sources(stage.layer, stage.n)[:1]
        if source is None and folding.rounds(model) > 1:
            found.append(None)
            continue
        if source is None:
            found.append((gear(beat_elements(model, folding), stage.lanes_in,
                               model.encoder.outputs), 1))
            continue
        before = units[source]
        found.append((gear(before.lanes_out, stage.lanes_in, turn(before, stage)),
                      1 if stage.is_dense else stage.pixels_in))
    return found


@lru_cache(maxsize=1 << 14)
def alone(stage, supply=None):
    """Cycles per frame of a stage that waits for no others but those that supply it.

    ``supply`` is as from :func:`supplies`; if None, a word comes in each cycle.
    """
    found, turns = supply or (Gear(1, 1, stage.words_in), stage.pixels_in)
    fed = turns * found.cycles
    if stage.is_dense:
        return max(stage.reads, fed)
    if not stage.is_buffered:
        return max(stage.pixels_in * stage.words_in, fed)
    layer = stage.layer
    # Rows of windows at either edge, which reach into the padding, and more than fill the buffer;
    # each further row takes as long as the one before, if words come evenly.
    edge, kernel = (-(-size // layer.stride) for size in (layer.padding, layer.kernel[0]))
    more = layer.grid[0] - (2 * edge + kernel + 3)
    if more <= 1 or turns == 1 or (found.collect > 1 and found.emit > 1):
        return _alone(stage, found, turns)
    height, width, channels = layer.shape

    def with_rows(rows):
        shape = (height - (more - rows) * layer.stride, width, channels)
        return _alone(replace(stage, layer=replace(layer, shape=shape)), found,
                      shape[0] * width)
    few = with_rows(0)
    return few + more * (with_rows(1) - few)


def _alone(stage, found, turns):
    frames, i, o = 3, Channel(), Channel()
    processes = [(timing.source(i, [0] * (frames * turns * found.beats)), [i])]
    for process, sizes in converters(found):
        i, before = Channel(), i
        processes.append((process(before, i, sizes), [before, i]))
    processes += [*_pixels(stage, [i], [o], [], 0), (timing.taken_at_once(o), [o])]
    timing.run(processes)
    per_frame = stage.pixels_out * stage.words_out
    return o.taken[frames * per_frame - 1] - o.taken[(frames - 1) * per_frame - 1]
