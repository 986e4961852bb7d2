"""The plan: which parts a design has and what each reads, decided here and nowhere else.

::

    skid -> guard -> encoder -> gear0 -> [buffer0 or skid0] -> [tiles0] -> [window0] -> [gate0] ->
        fork or read
            |
      in every engine: layer0 -> [queue1] -> gear1 -> [buffer1] -> ... -> [gate1] -> layer1 -> ...
                                                                                            |
                                                                      [hard] -> voter -> port

The gateware instantiates the nodes and connects what they read, the cycle model times them, the
manifest lists them. The number in a name is that of the layer that reads, with its port if that is
not the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

from benn_fpga.plan import cycles, memories, names
from benn_fpga.plan.answer import answer_beats
from benn_fpga.plan.cycles import Schedule
from benn_fpga.plan.nodes import (
    AnswerPort,
    Converter,
    Encoder,
    Fork,
    Gate,
    Guard,
    HardVote,
    Marks,
    Node,
    Queue,
    Skid,
    Spread,
    Stream,
    Unit,
    Voter,
    frame_buffer,
)
from benn_fpga.plan.stages import Stage
from benn_fpga.plan.widths import gear
from benn_fpga.spec import Ensemble, Folding, sources

__all__ = ["Draft", "Plan", "draft", "plan"]

N = TypeVar("N", bound=Node)


@dataclass(frozen=True)
class Draft:
    """A design whose timing is not known yet. Its queues have no depth, so they have no size.

    It can be hashed, and all else in a plan follows from it.

    Members
    -------
    nodes : layer by layer the unit, then what precedes it, then what leads to its readers
    parallel, rounds : engines side by side, and members that each runs in turn
    """

    nodes: tuple[Node, ...]
    parallel: int
    rounds: int

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def all(self, kind: type[N]) -> Iterator[N]:
        """The nodes of a kind."""
        return (node for node in self.nodes if isinstance(node, kind))

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The unit of every layer."""
        return tuple(self.all(Unit))

    @property
    def entry(self) -> Node:
        """Where frames come in."""
        return self.nodes[0]

    @property
    def guard(self) -> Guard:
        """What says of each frame whether it was right."""
        return next(self.all(Guard))

    @property
    def port(self) -> AnswerPort:
        """Where answers leave."""
        return next(self.all(AnswerPort))

    @property
    def voter(self) -> Voter:
        """What the votes of all engines come to."""
        return next(self.all(Voter))

    @cached_property
    def lead(self) -> tuple[Node, ...]:
        """What all engines share, from the entry to what they read."""
        return tuple(node for node in self.followed(self.units[0]) if not node.engines)

    @cached_property
    def votes(self) -> tuple[Node, ...]:
        """What turns the scores of an engine into votes, once beside every engine."""
        return tuple(node for node in self.followed(self.voter)
                     if node.engines and node not in self.engine)

    @cached_property
    def engine(self) -> tuple[Node, ...]:
        """What is inside every engine: all that leads to its scores."""
        inside = {node.name for node in self.followed(self.units[-1]) if node.engines}
        return tuple(node for node in self.nodes if node.name in inside)

    @cached_property
    def layers(self) -> tuple[tuple[Node, ...], ...]:
        """What an engine holds, layer by layer and in the order of the data: what cuts windows out
        of pixels and waits for room, the unit, what leads to its readers."""
        ranks = {node.name: rank for rank, node in enumerate(self.followed())}
        layers: list[list[Node]] = []
        for node in self.engine:
            if isinstance(node, Unit):
                layers.append([])
            layers[-1].append(node)
        return tuple(tuple(sorted(layer, key=lambda node: ranks[node.name])) for layer in layers)

    def queues(self, unit: Unit) -> list[Queue]:
        """The queues that a unit fills."""
        return [queue for queue in self.all(Queue) if queue.reads == (unit.name,)]

    def feeding(self, unit: Unit) -> list[Queue]:
        """The queues from which a unit reads, through width converters."""
        leads = {self.converter(unit).reads, *(self[name].reads for name in unit.reads[1:])}
        return [queue for queue in self.all(Queue) if (queue.name,) in leads]

    def gate(self, unit: Unit) -> Gate | None:
        """The gate that reserves what a unit gives; None if that has to wait instead."""
        return next((node for node in self.front(unit) if isinstance(node, Gate)), None)

    def front(self, unit: Unit) -> list[Node]:
        """The nodes from the width converter that leads to a unit's first port to the unit."""
        front: list[Node] = []
        node = self[unit.reads[0]]
        while not isinstance(node, Converter):
            front.insert(0, node)
            node = self[node.reads[0]]
        return front

    def latency(self, unit: Unit) -> int:
        """Cycles of a unit, and of the register that leads to it if there is one."""
        return unit.latency + sum(node.latency for node in self.front(unit)
                                  if isinstance(node, Spread))

    def converter(self, unit: Unit) -> Converter:
        """The width converter that leads to a unit's first port."""
        node = self[[*self.front(unit), unit][0].reads[0]]
        assert isinstance(node, Converter)
        return node

    def followed(self, *ends: Node) -> Iterator[Node]:
        """The nodes that lead to ``ends``, or all, in the order of the data: each after all that it
        reads."""
        done: set[str] = set()

        def visit(node: Node) -> Iterator[Node]:
            if node.name not in done:
                done.add(node.name)
                for name in node.reads:
                    yield from visit(self[name])
                yield node
        for node in ends or self.nodes:
            yield from visit(node)


@dataclass(frozen=True)
class Plan(Draft):
    """A design: its nodes, how often they run, and its ``schedule``."""

    schedule: Schedule


def plan(model: Ensemble, folding: Folding) -> Plan:
    """The :class:`Plan` of ``model`` folded by ``folding``; the last ones are kept."""
    return _timed(draft(model, folding))


def draft(model: Ensemble, folding: Folding) -> Draft:
    """The :class:`Draft` of it, which takes no time to make."""
    return _Drafter(model, folding.check(model)).draft()


@lru_cache(maxsize=8)  # those of large networks take seconds
def _timed(draft: Draft) -> Plan:
    """``draft`` with its schedule, and with the depths of queues that this says."""
    schedule = cycles.schedule(draft)

    def deep(node: Node) -> Node:
        if isinstance(node, Queue):
            return replace(node, depth=schedule.queues[node.name])
        if isinstance(node, Guard):
            return replace(node, depth=schedule.error_depth)
        return node
    return Plan(tuple(map(deep, draft.nodes)), draft.parallel, draft.rounds, schedule)


class _Drafter:
    """Builds the nodes of a design."""

    def __init__(self, model: Ensemble, folding: Folding) -> None:
        self._model = model
        self._folding = folding
        self._rounds = folding.rounds(model)
        self._stages = tuple(Stage(n, layer, fold) for n, (layer, fold) in
                             enumerate(zip(model.layers, folding.layers, strict=True)))
        limits = [member.limits(model.layers) for member in model.members]
        # Width of what each layer gives: of a code, or of an integer as a signed number.
        self._bits: dict[int | None, int] = {
            n: layer.output_bits or max(limit[n] for limit in limits).bit_length() + 1
            for n, layer in enumerate(model.layers)}
        self._bits[None] = model.encoder.element_bits
        self._readers: dict[int | None, list[tuple[int, int]]] = {n: [] for n in self._bits}
        for n, layer in enumerate(model.layers):
            for port, source in enumerate(sources(layer, n)):
                self._readers[source].append((n, port))
        self._nodes: list[Node] = []
        # What leads to each port of a layer in its engine, before windows are cut.
        self._leads: dict[tuple[int, int], Node] = {}

    def draft(self) -> Draft:
        self._input()
        for stage in self._stages:
            self._layer(stage)
        self._vote()
        return Draft(tuple(self._nodes), self._folding.parallel, self._rounds)

    def _add(self, node: N) -> N:
        self._nodes.append(node)
        return node

    def _words(self, stage: Stage) -> Stream:
        """What comes to a stage, in its own words."""
        bits = self._bits[sources(stage.layer, stage.n)[0]]
        return Stream(stage.pixels_in * stage.words_in, stage.lanes_in, bits)

    def _input(self) -> None:
        """What all engines share, from the bus to the first unit."""
        encoder, lanes, first = self._model.encoder, self._folding.bus // 8, self._stages[0]
        bus = Stream(encoder.beats(self._folding.bus), lanes, 8, Marks.BEAT)
        beat, encoded = replace(bus, marks=Marks.NONE), replace(
            bus, lanes=lanes * encoder.elements_per_value, element_bits=encoder.element_bits,
            marks=Marks.NONE)
        thresholds = memories.encoder_words(encoder, lanes) if encoder.levels else []
        self._add(Skid(names.SKID, (), bus, bus, 0))
        self._add(Guard(names.GUARD, (names.SKID,), bus, beat, 0, encoder.values, None))
        self._add(Encoder(names.ENCODER, (names.GUARD,), beat, encoded, 0, len(thresholds),
                          lanes * encoder.levels * (encoder.bits + 1)))
        node: Node = self._add(Converter(names.before(names.GEAR, 0), (names.ENCODER,), encoded,
                                         self._words(first), 0, encoder.outputs))
        frames = first.layer.reads_frames
        if frames or self._rounds > 1:
            node = self._add(frame_buffer(
                node.o, self._rounds * (first.words_out if frames else 1),
                name=names.before(names.BUFFER, 0), reads=(node.name,), engines=0))
        if not frames:
            # The ready of a gate depends on the room in the queues of all engines. It must not go
            # on through converter, encoder and guard to the bus. In an engine a queue ends it.
            if not any(kind.cuts_ready for kind in (type(node), *first.front)):
                node = self._add(Skid(names.before(names.SKID, 0), (node.name,), node.o, node.o, 0))
            node = self._cut(first, node, engines=0)
        spread = Fork if self._waits(first) else Spread
        self._leads[0, 0] = self._add(spread(
            names.FORK if spread is Fork else names.READ, (node.name,), node.o,
            self._read(first, node.o), 0))

    def _cut(self, stage: Stage, node: Node, engines: int) -> Node:
        """What cuts windows out of the pixels of ``node``, and the gate that waits for room."""
        for kind in stage.front:
            node = self._add(kind.before(stage, node.o, name=names.before(kind.prefix, stage.n),
                                         reads=(node.name,), engines=engines))
        queues = tuple(names.before(names.QUEUE, *reader) for reader in self._readers[stage.n])
        return self._add(Gate(names.before(names.GATE, stage.n), (node.name,), node.o, node.o,
                              engines, queues, stage.reads, stage.layer.is_marked))

    def _waits(self, stage: Stage) -> bool:
        """Whether outputs of a stage may have to wait: behind a dense layer, and the scores.

        For all others a place in a queue is reserved before they are computed.
        """
        return stage.layer.reads_frames or stage.n == len(self._stages) - 1

    def _read(self, stage: Stage, given: Stream) -> Stream:
        """What the unit of a stage reads of the words ``given``."""
        marks = stage.layer.marks
        return replace(given, marks=marks, places=given.places if marks is Marks.TILE else 1)

    def _layer(self, stage: Stage) -> None:
        """A unit, what precedes it in its engine, and what leads to its readers."""
        n, layer, engines = stage.n, stage.layer, self._folding.parallel
        given = [self._leads[n, port] for port in range(len(layer.sources))]
        cut = n > 0 and not layer.reads_frames
        at = len(self._nodes)
        first = self._cut(stage, given[0], engines) if cut else given[0]
        i = self._read(stage, first.o)
        o = Stream(stage.pixels_out * stage.words_out, stage.lanes_out, self._bits[n])
        self._nodes.insert(at, Unit(
            names.unit(n), (first.name, *(node.name for node in given[1:])), i, o, engines, stage,
            self._rounds, tuple(node.o for node in given[1:]), self._waits(stage),
            self._pause(stage), tuple(self._constants(n))))
        for reader, port in self._readers[n]:
            target = self._stages[reader]
            node: Node = self._nodes[at]
            if not layer.reads_frames:
                node = self._add(Queue(names.before(names.QUEUE, reader, port), (node.name,), o, o,
                                       engines, stage.words_out, None))
            frames = target.layer.reads_frames
            node = self._add(Converter(
                names.before(names.GEAR, reader, port), (node.name,), o,
                Stream(target.pixels_in * target.words_in, target.lanes_in, self._bits[n]),
                engines, (target.layer.input_shape if frames else layer.output_shape)[-1]))
            if frames:
                node = self._add(frame_buffer(
                    node.o, target.words_out, name=names.before(names.BUFFER, reader, port),
                    reads=(node.name,), engines=engines))
            self._leads[reader, port] = node

    def _pause(self, stage: Stage) -> tuple[int, int]:
        """Words after which a dense layer must pause, and for how many cycles.

        Where the next layer takes the outputs of a block in more cycles than they are made in, the
        layer waits at its input. Its pipeline then never has to stop in the middle, which would
        also hold up the round behind, and no cycle is lost: the next layer is the slower one.
        """
        layer = stage.layer
        if not layer.reads_frames or not layer.output_bits:
            return 1, 0
        (reader, _), = self._readers[stage.n]
        block = gear(stage.fold.pe, self._stages[reader].lanes_in, layer.output_shape[-1])
        words = block.collect * stage.reads_per_word
        return words, max(0, block.emit - words)

    def _constants(self, n: int) -> Iterator[tuple[str, int]]:
        """Widths of what members store for layer ``n``, if that depends on what they store."""
        for key in self._model.layers[n].sized_by_value:
            yield key, memories.signed_bits(
                [member.layers[n][key].tolist() for member in self._model.members])

    def _vote(self) -> None:
        model, parallel = self._model, self._folding.parallel
        last = [node for node in self._nodes if isinstance(node, Unit)][-1]
        votes: Node = last
        if model.vote == "hard":
            o = replace(last.o, element_bits=1)
            votes = self._add(HardVote(names.HARD, (last.name,), last.o, o, parallel))
        answer = Stream(1, model.classes, model.total_bits)
        voter = self._add(Voter(names.VOTER, (votes.name,), votes.o, answer, 0, parallel,
                                self._rounds))
        beats = answer_beats(model.classes, self._folding.bus)
        self._add(AnswerPort(names.PORT, (voter.name, names.GUARD), answer, Stream(
            beats, self._folding.bus // 8, 8, Marks.BEAT), 0, model.reject))
