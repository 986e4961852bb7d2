"""From the nodes of a plan to components, and from what they read to connections."""

from amaranth.hdl import *

from benn_fpga import layers
from benn_fpga.hw.encoder import EncoderUnit
from benn_fpga.hw.frame import FrameGuard, beat_layout
from benn_fpga.hw.joints import Converter, Gate, Queue, Ring, Serial, SkidBuffer
from benn_fpga.hw.mvtu import MatrixVectorUnit
from benn_fpga.hw.pool import MaxPoolUnit, SumPoolUnit
from benn_fpga.hw.port import AnswerPort
from benn_fpga.hw.residual import AddUnit, ScaleUnit
from benn_fpga.hw.sliding import SlidingWindow
from benn_fpga.hw.tiles import Tiles, tile_layout
from benn_fpga.hw.vote import HardVote, Voter
from benn_fpga.hw.window import LineBuffer, tap_layout
from benn_fpga.plan import memories, nodes

__all__ = ["UNITS", "component", "connect"]

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
            return tile_layout(words.bits, words.partials)
    return unsigned(words.bits)


def component(node, contents):
    """The component of a node; ``contents`` are what the memories of each engine hold."""
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
            return Converter(i.lanes, o.lanes, frame=node.turn, element_bits=i.wide_bits)
        case nodes.Ring():
            return Ring(i.bits, words=i.words, replays=node.replays, ahead=o.ahead)
        case nodes.Tiles(stage=stage):
            return Tiles(stage.layer, lanes=i.lanes, element_bits=i.wide_bits)
        case nodes.LineBuffer(stage=stage):
            return LineBuffer(stage.window, lanes=i.lanes, element_bits=i.wide_bits,
                              replays=stage.words_out, groups=stage.parts)
        case nodes.SlidingWindow(stage=stage):
            return SlidingWindow(stage.layer, lanes=o.lanes, element_bits=i.wide_bits,
                                 replays=stage.words_out)
        case nodes.Gate():
            return Gate(payload(i), count=node.count, marked=node.marked)
        case nodes.Queue():
            return Queue(i.bits, count=node.count, depth=node.depth)
        case nodes.Serial():
            return Serial(o.bits, count=i.lanes // o.lanes)
        case nodes.HardVote():
            return HardVote(classes=i.words * i.lanes, lanes=i.lanes, score_bits=i.element_bits,
                            engines=i.ways)
        case nodes.Voter():
            return Voter(classes=i.words * i.lanes, lanes=i.lanes, vote_bits=i.element_bits,
                         total_bits=node.total_bits, block=node.block, shared=i.ways == 1,
                         weights=[each.vote_weights() for each in contents])
        case nodes.AnswerPort():
            totals = node.totals
            return AnswerPort(classes=totals.words * totals.lanes, total_bits=totals.element_bits,
                              bus=o.bits, block=totals.lanes, reject=node.reject)
    raise TypeError(f"{node.name}: {type(node).__name__} has no component")


def connect(m, plan, node, parts, port=0):
    """Connect a port of a node with the node that it reads.

    Nothing but wires: marks that the node does not want end here, a word without a mark is a tap in
    the image, and what all engines share goes to each of them.

    Parameters
    ----------
    m : the module
    plan : of the whole design
    parts : components by name
    """
    part, before = parts[node.name], plan[node.reads[port]]
    source = getattr(parts[before.name], node.sources[port])
    sink = getattr(part, _PORTS.get(type(part), ("i",))[port])
    given, wanted = getattr(before, node.sources[port]), node.ports[port]
    none = nodes.Marks.NONE
    if given.marks is wanted.marks and given.ways == wanted.ways:
        m.d.comb += Value.cast(sink.payload).eq(source.payload)
    else:
        word = source.payload if given.marks is none else source.p.data
        if given.ways != wanted.ways:
            word = Cat(word.word_select(n, given.element_bits).replicate(wanted.ways)
                       for n in range(given.lanes))
        m.d.comb += (sink.payload if wanted.marks is none else sink.p.data).eq(word)
        if wanted.marks is nodes.Marks.TAP:
            m.d.comb += sink.p.inside.eq(source.p.inside if given.marks is wanted.marks else 1)
        elif wanted.marks is nodes.Marks.TILE:
            m.d.comb += [sink.p[key].eq(source.p[key])
                         for key in ("first", "last", "enters", "leaves", "partial")]
    m.d.comb += sink.valid.eq(source.valid)
    if not isinstance(source.ready, Const):
        m.d.comb += source.ready.eq(sink.ready)


_PORTS = {AddUnit: ("a", "b"), AnswerPort: ("i", "totals", "error")}  # of those that have several
