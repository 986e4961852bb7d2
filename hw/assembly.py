"""From the nodes of a plan to components, and from what they read to connections."""

from amaranth.hdl import *
from amaranth.lib import wiring

from benn_fpga import layers
from benn_fpga.hw.encoder import EncoderUnit
from benn_fpga.hw.frame import FrameGuard, beat_layout
from benn_fpga.hw.joints import Fork, Gate, Gearbox, Queue, ReplayBuffer, SkidBuffer
from benn_fpga.hw.mvtu import MatrixVectorUnit
from benn_fpga.hw.pool import MaxPoolUnit, SumPoolUnit
from benn_fpga.hw.port import AnswerPort
from benn_fpga.hw.residual import AddUnit, ScaleUnit
from benn_fpga.hw.sliding import SlidingWindow
from benn_fpga.hw.tiles import Tiles, tile_layout
from benn_fpga.hw.vote import HardVote, Voter
from benn_fpga.hw.window import LineBuffer, tap_layout
from benn_fpga.plan import memories, nodes

__all__ = ["UNITS", "component", "connect", "convey", "payload"]

UNITS = {
    layers.Dense: MatrixVectorUnit,
    layers.Conv: MatrixVectorUnit,
    layers.MaxPool: MaxPoolUnit,
    layers.SumPool: SumPoolUnit,
    layers.Scale: ScaleUnit,
    layers.Add: AddUnit,
}


def payload(words):
    """Shape of the payload of a plan's stream."""
    match words.marks:
        case nodes.Marks.BEAT:
            return beat_layout(words.lanes)
        case nodes.Marks.TAP:
            return tap_layout(words.bits)
        case nodes.Marks.TILE:
            return tile_layout(words.bits, words.places)
    return unsigned(words.bits)


def component(node, contents=None):
    """The component of a node.

    ``contents`` are what memories hold: of the engine that the node is in, or, if all share it, of
    all engines.
    """
    i, o = node.i, node.o
    match node:
        case nodes.Unit(stage=stage):
            return UNITS[type(stage.layer)].planned(node, contents)
        case nodes.Skid():
            return SkidBuffer(payload(i))
        case nodes.Guard():
            return FrameGuard(lanes=i.lanes, size=node.size, depth=node.depth)
        case nodes.Encoder():
            encoder = contents[0].model.encoder
            return EncoderUnit(encoder=encoder, lanes=i.lanes,
                               thresholds=memories.encoder_words(encoder, i.lanes))
        case nodes.Converter():
            return Gearbox(i.lanes, o.lanes, frame=node.turn, element_bits=i.element_bits)
        case nodes.Ring():
            return ReplayBuffer(i.bits, words=i.words, replays=node.replays)
        case nodes.Tiles(stage=stage):
            return Tiles(stage.layer, lanes=i.lanes, element_bits=i.element_bits)
        case nodes.LineBuffer(stage=stage):
            return LineBuffer(stage.window, lanes=i.lanes, element_bits=i.element_bits,
                              replays=stage.words_out, groups=stage.parts)
        case nodes.SlidingWindow(stage=stage):
            return SlidingWindow(stage.layer, lanes=o.lanes, element_bits=i.element_bits,
                                 replays=stage.words_out)
        case nodes.Gate():
            return Gate(payload(i), count=node.count, marked=node.marked)
        case nodes.Fork():
            return Fork(payload(o), ways=len(contents))
        case nodes.Spread():
            return None  # registers beside the engines
        case nodes.Queue():
            return Queue(i.bits, count=node.count, depth=node.depth)
        case nodes.HardVote():
            return HardVote(classes=i.words * i.lanes, lanes=i.lanes, score_bits=i.element_bits)
        case nodes.Voter():
            return Voter(classes=o.lanes, lanes=i.lanes, vote_bits=i.element_bits,
                         total_bits=o.element_bits,
                         weights=[each.vote_weights() for each in contents])
        case nodes.AnswerPort():
            return AnswerPort(classes=i.lanes, total_bits=i.element_bits, bus=o.bits,
                              reject=node.reject)
    raise TypeError(f"{node.name}: {type(node).__name__} has no component")


def convey(m, source, given, sink, wanted):
    """Connect two streams of the plan, without the marks that the sink does not want; a word
    without a mark is a tap in the image."""
    none = nodes.Marks.NONE
    word = source.payload if given.marks is none else source.p.data
    if given.marks is wanted.marks:
        m.d.comb += sink.payload.eq(source.payload)
    elif wanted.marks is none:
        m.d.comb += sink.payload.eq(word)
    else:
        m.d.comb += [sink.p.data.eq(word), sink.p.inside.eq(1)]
    m.d.comb += sink.valid.eq(source.valid)
    if not isinstance(source.ready, Const):
        m.d.comb += source.ready.eq(sink.ready)


def connect(m, plan, node, parts, given, port=0):
    """Connect a port of a node with the node that it reads.

    Marks end before a line buffer and behind a gate, and a queue is always ready; other streams are
    connected as they are.

    Parameters
    ----------
    m : the module
    plan : of the whole design
    parts : components by name
    given : streams of nodes that are outside, by name
    """
    part, before = parts[node.name], plan[node.reads[port]]
    source = given[before.name] if before.name in given else parts[before.name].o
    sink = getattr(part, _PORTS.get(type(part), "i")[port])
    if isinstance(node, (nodes.LineBuffer, nodes.Queue)) or isinstance(before, nodes.Gate):
        convey(m, source, before.o, sink, node.ports[port])
    else:
        wiring.connect(m, source, sink)


_PORTS = {AddUnit: "ab"}  # of those that have several
