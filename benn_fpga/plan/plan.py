"""The plan: which parts a design has and what each reads, decided here and nowhere else.

::

    guard -> encoder -> skid -> converter0 -> [ring0] -> [tiles0] -> [lines0] -> gate0 ->
        layer0 -> queue1 -> converter1 -> [ring1] -> [tiles1] -> [lines1] -> gate1 -> layer1 -> ...
                                         -> [serial] -> [hard] -> voter -> answers -> port

Nobody stops: before a unit starts what becomes a block in the queue behind it, its gate reserves
the slot. All engines do the same in the same cycles, so one stream carries the words of all of
them, and all that is not arithmetic or weights is there once.

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
from benn_fpga.plan.answer import answer_beats, totals_per_word, word_bits
from benn_fpga.plan.cycles import Schedule
from benn_fpga.plan.latency import MEMORY_LATENCY
from benn_fpga.plan.nodes import (
    AnswerPort,
    Converter,
    Encoder,
    Gate,
    Guard,
    HardVote,
    Marks,
    Node,
    Queue,
    Ring,
    Serial,
    Skid,
    Stream,
    TotalsQueue,
    Unit,
    Voter,
)
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import Ensemble, Folding, sources

__all__ = ["Draft", "Plan", "draft", "plan"]

N = TypeVar("N", bound=Node)


@dataclass(frozen=True)
class Draft:
    """A design whose timing is not known yet. Its queues have no depth, so they have no size.

    It can be hashed, and all else in a plan follows from it.

    Members
    -------
    nodes : in the order of the data, each after all that it reads
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

    def all(self, node_kind: type[N]) -> Iterator[N]:
        """The nodes of a node kind."""
        return (node for node in self.nodes if isinstance(node, node_kind))

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

    @property
    def votes(self) -> tuple[Node, ...]:
        """What makes an answer of the scores."""
        names = [node.name for node in self.nodes]
        return self.nodes[names.index(self.units[-1].name) + 1:names.index(self.voter.name) + 1]

    def queues(self, unit: Unit) -> list[Queue]:
        """The queues that a unit fills."""
        return [queue for queue in self.all(Queue) if queue.reads == (unit.name,)]

    def feeding(self, unit: Unit) -> list[Queue]:
        """The queues from which a unit reads, through width converters."""
        leads = {self.converter(unit).reads, *(self[name].reads for name in unit.reads[1:])}
        return [queue for queue in self.all(Queue) if (queue.name,) in leads]

    def gate(self, unit: Unit) -> Gate:
        """The gate that reserves what a unit gives."""
        gate = self[unit.reads[0]]
        assert isinstance(gate, Gate)
        return gate

    def front(self, unit: Unit) -> list[Node]:
        """The nodes from the width converter that leads to a unit's first port to the unit."""
        front: list[Node] = []
        node = self[unit.reads[0]]
        while not isinstance(node, Converter):
            front.insert(0, node)
            node = self[node.reads[0]]
        return front

    def converter(self, unit: Unit) -> Converter:
        """The width converter that leads to a unit's first port."""
        node = self[[*self.front(unit), unit][0].reads[0]]
        assert isinstance(node, Converter)
        return node


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
        self._folding = folding.filled()
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

    def _input(self) -> None:
        """From the bus to what cuts windows for the first unit."""
        encoder, lanes, first = self._model.encoder, self._folding.bus // 8, self._stages[0]
        bus = Stream(encoder.beats(self._folding.bus), lanes, 8, Marks.BEAT)
        beat, encoded = replace(bus, marks=Marks.NONE), replace(
            bus, lanes=lanes * encoder.elements_per_value, element_bits=encoder.element_bits,
            marks=Marks.NONE)
        thresholds = memories.encoder_words(encoder, lanes) if encoder.levels else []
        self._guard = self._add(Guard(names.GUARD, (), bus, beat, encoder.values, None))
        self._add(Encoder(names.ENCODER, (names.GUARD,), beat, encoded, len(thresholds),
                          lanes * encoder.levels * (encoder.bits + 1)))
        # What follows may wait for room in a queue. Its ready ends here, far from the bus.
        self._add(Skid(names.SKID, (names.ENCODER,), encoded, encoded))
        node: Node = self._add(Converter(
            names.before(names.CONVERTER, 0), (names.SKID,), encoded,
            self._words(first, encoder.element_bits, 1), encoder.outputs))
        replays = self._rounds * (first.words_out if first.layer.reads_frames else 1)
        if replays > 1:
            node = self._ring(node, first, 0, replays)
        self._leads[0, 0] = node

    def _words(self, stage: Stage, element_bits: int, ways: int) -> Stream:
        """What comes to a stage, in its own words."""
        return Stream(stage.pixels_in * stage.words_in, stage.lanes_in, element_bits, ways=ways)

    def _ring(self, node: Node, reader: Stage, port: int, replays: int) -> Node:
        """A ring that sends the frames of ``node`` so often."""
        o = replace(node.o, words=node.o.words * replays,
                    ahead=MEMORY_LATENCY + self._relays(reader) if reader.layer.reads_frames else 0)
        return self._add(Ring(names.before(names.RING, reader.n, port), (node.name,), node.o, o,
                              replays))

    def _relays(self, stage: Stage) -> int:
        """Registers between the weights of a stage and what reads them, if those may be far."""
        relays, weights = self._folding.relays, stage.layer.weights(stage, self._rounds)
        assert relays is not None  # it is filled
        return relays if weights is not None and weights.is_block else 0

    def _adder_levels(self, stage: Stage) -> int:
        """Levels of adders from one register to the next, of weights that are not constants."""
        levels, weights = self._folding.adder_levels, stage.layer.weights(stage, self._rounds)
        assert levels is not None  # it is filled
        is_constant = weights is None or stage.layer.is_unrolled(stage.fold, self._rounds)
        return 1 if is_constant else levels

    def _gate(self, stage: Stage, node: Node) -> Gate:
        """What cuts windows out of the pixels of ``node``, and the gate that waits for room."""
        for node_kind in stage.front:
            name = names.before(node_kind.prefix, stage.n)
            node = self._add(node_kind.before(stage, node.o, name=name, reads=(node.name,)))
        queues = tuple(names.before(names.QUEUE, *reader) for reader in self._readers[stage.n])
        count = stage.reads_per_block
        if not queues:  # the last layer, whose scores of all rounds become an answer
            queues, count = (names.ANSWERS, names.TOTALS), self._rounds * stage.reads
        return self._add(Gate(names.before(names.GATE, stage.n), (node.name,), node.o, node.o,
                              queues, count, stage.layer.is_marked))

    def _read(self, stage: Stage, given: Stream, ways: int) -> Stream:
        """What the unit of a stage, which gives words of so many ways, reads of those ``given``."""
        marks = stage.layer.marks
        shares = stage.layer.shares_inputs
        return replace(given, marks=marks, partials=given.partials if marks is Marks.TILE else 1,
                       ways=given.ways if shares else ways)

    def _layer(self, stage: Stage) -> None:
        """What precedes a unit, the unit, and what leads to its readers."""
        n, layer = stage.n, stage.layer
        given = [self._leads[n, port] for port in range(len(layer.sources))]
        gate = self._gate(stage, given[0])
        # Engines differ by what their members store; before that they are one.
        ways = self._folding.parallel if layer.arrays() else max(node.o.ways for node in given)
        o = Stream(stage.pixels_out * stage.words_out, stage.lanes_out, self._bits[n], ways=ways)
        unit = self._add(Unit(
            names.unit(n), (gate.name, *(node.name for node in given[1:])),
            self._read(stage, gate.o, ways), o, stage, self._rounds,
            tuple(replace(node.o, ways=ways) for node in given[1:]),
            tuple(self._constants(n)), self._relays(stage), self._adder_levels(stage)))
        for reader, port in self._readers[n]:
            target = self._stages[reader]
            queue = self._add(Queue(names.before(names.QUEUE, reader, port), (unit.name,), o, o,
                                    stage.words_per_block, None))
            frames = target.layer.reads_frames
            node: Node = self._add(Converter(
                names.before(names.CONVERTER, reader, port), (queue.name,), o,
                self._words(target, self._bits[n], ways),
                (target.layer.input_shape if frames else layer.output_shape)[-1]))
            if frames and target.words_out > 1:
                node = self._ring(node, target, port, target.words_out)
            self._leads[reader, port] = node

    def _constants(self, n: int) -> Iterator[tuple[str, int]]:
        """Widths of what members store for layer ``n``, if that depends on what they store."""
        for key in self._model.layers[n].sized_by_value:
            yield key, memories.signed_bits(
                [member.layers[n][key].tolist() for member in self._model.members])

    def _serial(self, votes: Node, apart: int) -> Node:
        """``votes``, whose words are so many cycles apart, in words as narrow as that allows: all
        that follows is as wide as they are."""
        lanes = votes.o.lanes
        fewest = next(n for n in range(1, lanes + 1) if lanes % n == 0 and lanes // n <= apart)
        if fewest == lanes:
            return votes
        o = replace(votes.o, words=votes.o.words * (lanes // fewest), lanes=fewest)
        return self._add(Serial(names.SERIAL, (votes.name,), votes.o, o))

    def _vote(self) -> None:
        model, votes = self._model, self._serial(self._nodes[-1], self._stages[-1].reads_per_word)
        if model.vote == "hard":
            votes = self._add(HardVote(names.HARD, (votes.name,), votes.o,
                                       replace(votes.o, element_bits=1)))
        bus, classes, lanes = self._folding.bus, model.classes, votes.o.lanes
        decision = Stream(1, 1, (classes - 1).bit_length() + model.total_bits)
        voter = self._add(Voter(names.VOTER, (votes.name,), votes.o, decision,
                                self._folding.parallel, self._rounds, model.total_bits,
                                totals_per_word(classes, bus, lanes) // lanes))
        self._add(Queue(names.ANSWERS, (voter.name,), decision, decision, 1, None))
        totals = voter.totals
        self._add(TotalsQueue(names.TOTALS, (voter.name,), totals, totals, totals.words, None))
        self._add(AnswerPort(
            names.PORT, (names.ANSWERS, names.TOTALS, names.GUARD), decision,
            Stream(answer_beats(classes, bus), bus // 8, 8, Marks.BEAT), totals,
            self._guard.error, model.reject, *word_bits(classes, bus)))
