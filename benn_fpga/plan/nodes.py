"""The nodes of a plan: every part of a design as a small frozen value.

A node says what a part does, not how it is built: ``hw`` has the component of each node kind,
cycles.py follows words through it. Streams connect nodes; a node names those that it reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Self, TypedDict, Unpack

from benn_fpga.plan import latency, names
from benn_fpga.plan.geometry import Slide, Walk
from benn_fpga.plan.memories import is_block
from benn_fpga.plan.widths import Gear, gear

if TYPE_CHECKING:
    from benn_fpga.plan.stages import Stage

__all__ = ["AnswerPort", "Converter", "Encoder", "Front", "Gate", "Guard", "HardVote",
           "LineBuffer", "Marks", "Memory", "Node", "Queue", "Ring", "Serial", "Skid",
           "SlidingWindow", "Stream", "Tiles", "TotalsQueue", "Unit", "Voter"]


class Marks(Enum):
    """What goes with every word of a stream."""

    NONE = "nothing"
    TAP = "whether it is in the image"
    TILE = "where it is in its window, and which partial result it belongs to"
    BEAT = "keep and last of the bus"


@dataclass(frozen=True)
class Stream:
    """``words`` per frame of ``lanes`` elements of ``element_bits`` each, for each of ``ways``.

    All engines do the same in the same cycles. So one stream carries what belongs to all of them:
    element by element, that of engine 0 first. What all of them share has one way.

    ``marks`` go with every word; those of tiles name one of ``partials`` partial results. A word is
    there ``ahead`` cycles after it was offered and taken: what goes with it can be read meanwhile.
    """

    words: int
    lanes: int
    element_bits: int
    marks: Marks = Marks.NONE
    partials: int = 1
    ways: int = 1
    ahead: int = 0

    @property
    def wide_bits(self) -> int:
        """Of an element, of all ways."""
        return self.element_bits * self.ways

    @property
    def bits(self) -> int:
        """Of a word, without its marks."""
        return self.lanes * self.wide_bits


@dataclass(frozen=True)
class Memory:
    """``words`` x ``bits``, so many ``copies``; ``constant`` if it is never written."""

    words: int
    bits: int
    copies: int = 1
    constant: bool = False

    @property
    def is_block(self) -> bool:
        """Whether it asks for block RAM."""
        return is_block(self.words, self.bits)

    @property
    def size(self) -> int:
        """Bits of all copies."""
        return self.words * self.bits * self.copies


@dataclass(frozen=True)
class Node:
    """A part of a design.

    Members
    -------
    name : of the instance
    reads : names of the nodes whose streams it takes, port by port
    i, o : the stream at its first port, and what it gives
    """

    name: str
    reads: tuple[str, ...]
    i: Stream
    o: Stream

    @property
    def ports(self) -> tuple[Stream, ...]:
        """The streams at all its ports."""
        return (self.i,)

    @property
    def sources(self) -> tuple[str, ...]:
        """Which stream of the node that it reads each port takes."""
        return ("o",) * len(self.ports)

    # Frames of which it can store words at the same time, beside what queues and pipelines hold.
    frames: ClassVar[int] = 0

    @property
    def memories(self) -> dict[str, Memory]:
        return {}

    @property
    def register_bits(self) -> int:
        """Registers that hold words, without their marks. Those of pipelines and behind memories
        are not counted: the latency tells them."""
        return 0

    @property
    def latency(self) -> int:
        """Cycles from the last word that an output needs to that output, if nothing waits."""
        return 0


class _Where(TypedDict):
    """What a node is called, and what it reads."""

    name: str
    reads: tuple[str, ...]


def _known(node: Node, depth: int | None) -> int:
    if depth is None:
        raise ValueError(f"{node.name} has no depth yet: it is that of a draft; plan() finds it")
    return depth


@dataclass(frozen=True)
class Skid(Node):
    """Two registers that cut the path of ``ready``."""

    frames = 2
    latency = 1

    @property
    def register_bits(self) -> int:
        return 2 * self.i.bits


@dataclass(frozen=True)
class Guard(Node):
    """Checks the length of frames; ``depth`` error flags are queued, None in a draft."""

    size: int
    depth: int | None

    @property
    def error(self) -> Stream:
        """The flag of each frame."""
        return Stream(1, 1, 1)

    @property
    def memories(self) -> dict[str, Memory]:
        return {"errors": Memory(_known(self, self.depth), 1)}


@dataclass(frozen=True)
class Encoder(Node):
    """Raw values to elements: ``threshold_words`` words of thresholds of ``threshold_bits``."""

    threshold_words: int
    threshold_bits: int

    frames = 1
    latency = 1

    @property
    def memories(self) -> dict[str, Memory]:
        if self.threshold_words < 2:
            return {}
        return {"thresholds": Memory(self.threshold_words, self.threshold_bits, constant=True)}

    @property
    def register_bits(self) -> int:
        """The word that leaves. The thresholds of the next are in the memory's own register."""
        return self.o.bits


@dataclass(frozen=True)
class Converter(Node):
    """Width converter; it starts anew after ``turn`` elements."""

    turn: int

    frames = 2  # what it collects, and what it emits

    @property
    def gear(self) -> Gear:
        return gear(self.i.lanes, self.o.lanes, self.turn)

    @property
    def turns(self) -> int:
        """How often it starts anew in a frame."""
        return self.o.words * self.o.lanes // self.turn

    @property
    def register_bits(self) -> int:
        return self.gear.elements(self.i.lanes, self.o.lanes) * self.i.wide_bits

    @property
    def latency(self) -> int:
        return (self.gear.collect > 1) + (self.gear.emit > 1)


@dataclass(frozen=True)
class Ring(Node):
    """Two frames of ``i.words``, each sent ``replays`` times."""

    replays: int

    frames = 2

    @property
    def latency(self) -> int:
        return 1 if self.o.ahead else 2

    @property
    def memories(self) -> dict[str, Memory]:
        return {"memory": Memory(2 * self.i.words, self.i.bits)}


@dataclass(frozen=True)
class Front(Node, ABC):
    """Turns the pixels that arrive into what the unit of ``stage`` reads."""

    prefix: ClassVar[str]  # of its name, before the number of the layer

    frames = 2  # pixels of the next come while the last windows of one are read

    stage: Stage

    @classmethod
    @abstractmethod
    def before(cls, stage: Stage, i: Stream, **where: Unpack[_Where]) -> Self:
        """The node that feeds the unit of ``stage`` from the stream ``i``."""


@dataclass(frozen=True)
class Tiles(Front):
    """Passes the pixels that are in a window of windows that do not overlap."""

    prefix = names.TILES

    @classmethod
    def before(cls, stage: Stage, i: Stream, **where: Unpack[_Where]) -> Self:
        layer = stage.windowed
        o = replace(i, words=layer.covered * stage.words_in, marks=Marks.TILE,
                    partials=layer.grid[1] * stage.words_in)
        return cls(i=i, o=o, stage=stage, **where)


@dataclass(frozen=True)
class LineBuffer(Front):
    """Holds the pixels that a window still needs, and sends windows word by word."""

    prefix = names.LINES

    latency = 1

    @classmethod
    def before(cls, stage: Stage, i: Stream, **where: Unpack[_Where]) -> Self:
        i = replace(i, marks=Marks.NONE, partials=1)
        o = replace(i, words=stage.pixels_out * stage.reads, marks=Marks.TAP,
                    ahead=latency.window_ahead(stage.window))
        return cls(i=i, o=o, stage=stage, **where)

    @property
    def memories(self) -> dict[str, Memory]:
        slots = Walk(self.stage.window).slots
        return {"memory": Memory(slots * self.stage.words_in, self.i.bits)}


@dataclass(frozen=True)
class SlidingWindow(Front):
    """Holds a window in registers, and sends it in words of several taps."""

    prefix = names.SLIDING

    latency = 1

    @classmethod
    def before(cls, stage: Stage, i: Stream, **where: Unpack[_Where]) -> Self:
        o = Stream(stage.pixels_out * stage.reads, stage.fold.simd, i.element_bits, ways=i.ways)
        return cls(i=i, o=o, stage=stage, **where)

    @property
    def memories(self) -> dict[str, Memory]:
        rows = self.stage.windowed.kernel[0] - 1
        width = Slide(self.stage.windowed).width
        return {"memory": Memory(width, rows * self.i.bits)} if rows else {}

    @property
    def register_bits(self) -> int:
        return self.stage.windowed.taps * self.i.bits


@dataclass(frozen=True)
class Gate(Node):
    """Lets words pass once it has reserved a slot for what they become.

    ``count`` words, if ``marked`` of those with ``last``, become a block in every queue that it
    ``reserves``, by name. The unit behind it then never has to stop.
    """

    reserves: tuple[str, ...]
    count: int
    marked: bool


@dataclass(frozen=True)
class Unit(Node):
    """Computes a layer.

    Members
    -------
    stage : the layer and its fold
    rounds : members that an engine runs in turn
    others : the streams at its further ports
    constants : widths of what members store, by name, where the layer does not say it
    relays : registers between its weights and what reads them, besides those of a memory
    adder_levels : of its popcounts, from one register to the next
    """

    stage: Stage
    rounds: int
    others: tuple[Stream, ...]
    constants: tuple[tuple[str, int], ...]
    relays: int
    adder_levels: int

    @property
    def ports(self) -> tuple[Stream, ...]:
        return (self.i, *self.others)

    @property
    def memories(self) -> dict[str, Memory]:
        return self.stage.layer.memories(self)

    @property
    def is_unrolled(self) -> bool:
        """Whether its weights are constants."""
        return self.stage.layer.is_unrolled(self.stage.fold, self.rounds)

    @property
    def latency(self) -> int:
        """It asks for constants while the words that it was offered are on their way."""
        layer, fold = self.stage.layer, self.stage.fold
        late = max(0, self.i.ahead - layer.reads_ahead(fold, self.rounds) - self.relays)
        return late + layer.latency(fold, self.rounds, self.adder_levels) + self.relays

    @property
    def xnor_lanes(self) -> int:
        """XNOR lanes of all engines; a product of several bits is one."""
        return self.o.ways * self.stage.layer.xnor_lanes(self.stage.fold)

    @property
    def xnor_gates(self) -> int:
        """XNOR gates: each product of bit planes is one."""
        return self.xnor_lanes * self.stage.layer.xnor_planes


@dataclass(frozen=True)
class Queue(Node):
    """``depth`` blocks of ``count`` words, each reserved beforehand; None in a draft."""

    # Whether its slots make words wait; else it has slots for all that can come, and more.
    is_timed: ClassVar[bool] = True

    count: int
    depth: int | None

    latency = 2

    @property
    def memories(self) -> dict[str, Memory]:
        return {"memory": Memory(self.count * _known(self, self.depth), self.i.bits)}


@dataclass(frozen=True)
class Serial(Node):
    """Turns a word into several narrower ones. It never makes the one before it wait: that gives
    words at least so many cycles apart."""

    @property
    def register_bits(self) -> int:
        return self.i.bits

    @property
    def latency(self) -> int:
        """To the last of them."""
        return self.i.lanes // self.o.lanes


@dataclass(frozen=True)
class HardVote(Node):
    """Scores to the vote of each member."""

    @property
    def latency(self) -> int:
        return latency.hard_latency(self.i.lanes, self.i.words)


@dataclass(frozen=True)
class Voter(Node):
    """Adds up the votes of ``parallel`` engines and ``rounds``.

    It gives a decision, the class and the margin, and before that totals of ``total_bits``,
    ``block`` words of them together.
    """

    parallel: int
    rounds: int
    total_bits: int
    block: int

    @property
    def totals(self) -> Stream:
        return Stream(self.i.words // self.block, self.i.lanes * self.block, self.total_bits)

    @property
    def memories(self) -> dict[str, Memory]:
        """Totals so far, if they come in several words and rounds."""
        if self.rounds == 1 or self.i.words == 1:
            return {}
        return {"partial": Memory(self.i.words, self.i.lanes * self.total_bits)}

    @property
    def register_bits(self) -> int:
        """Totals that wait for those they leave with, and totals so far that are one word."""
        so_far = self.rounds > 1 and self.i.words == 1
        return (self.totals.bits * (self.block > 1)
                + self.i.lanes * self.total_bits * so_far)

    @property
    def latency(self) -> int:
        return latency.vote_latency(self.parallel, self.i.lanes)


@dataclass(frozen=True)
class TotalsQueue(Queue):
    """Totals of answers that wait for the port."""

    is_timed = False

    @property
    def sources(self) -> tuple[str, ...]:
        return ("totals",)


@dataclass(frozen=True)
class AnswerPort(Node):
    """Sends decisions and ``totals`` over the bus, through a buffer of two beats.

    Members
    -------
    totals, error : the streams of them, and of the flags of frames
    reject : answers of a smaller margin are flagged; None if none is
    word_bits : of what leaves together
    heads : such words that the decision takes; 0 if the whole record is one
    """

    totals: Stream
    error: Stream
    reject: int | None
    word_bits: int
    heads: int

    frames = 1

    @property
    def ports(self) -> tuple[Stream, ...]:
        return (self.i, self.totals, self.error)

    @property
    def sources(self) -> tuple[str, ...]:
        return ("o", "o", "error")

    @property
    def head_beats(self) -> int:
        """Beats of the decision before the one with which it is taken."""
        return max(0, self.heads * max(1, self.word_bits // self.o.bits) - 1)

    @property
    def _beats_at_once(self) -> int:
        """Of a record that is sent whole; 0 if it is sent word by word."""
        return 0 if self.heads else self.o.words

    @property
    def latency(self) -> int:
        return latency.port_latency(self._beats_at_once)

    @property
    def register_bits(self) -> int:
        """Of a record that is sent whole, of totals that take several words, and the buffer."""
        words = self.o.words * self.o.bits // self.word_bits - self.heads
        return (self.word_bits * (self._beats_at_once > 1)
                + self.totals.bits * (self.heads > 0 and words > self.totals.words)
                + 2 * self.o.bits)
