"""The port at which answers leave."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from benn_fpga.hw.check import positive
from benn_fpga.hw.frame import beat_layout
from benn_fpga.hw.joints import Emit, SkidBuffer
from benn_fpga.hw.pipeline import counter
from benn_fpga.hw.vote import decision_layout
from benn_fpga.plan.answer import (
    ERROR_BIT,
    REJECT_BIT,
    answer_beats,
    answer_fields,
    answer_keep,
    items_per_word,
)

__all__ = ["AnswerPort"]


class AnswerPort(wiring.Component):
    """Sends an answer and its frame's error flag over the bus, laid out as plan/answer.py says.

    Totals keep their own width until they leave, and come out of their queue as the bus takes them
    (``items_per_word``); they are known to be there, so their ``valid`` is not in the way. On a bus
    whose beats do not begin with an item the whole record is sent from one register, zeros filling
    it up to the end of its last beat. A buffer of two beats keeps the path of ``o.ready`` short.
    Latency ``latency.port_latency``, and a cycle more from a flag.

    Parameters
    ----------
    classes, total_bits : of the answer
    bus : bits of a beat, a multiple of 8
    block : totals of a word that comes in
    reject : answers of a smaller margin have the flag that rejects them; None if none has

    Members
    -------
    i : In(stream of decision_layout)
    totals : In(stream of block * total_bits bits), all those of an answer are there before ``i`` is
    error : In(stream of 1 bit), one per answer
    o : Out(stream of beat and user), beat_layout, and the error flag with every beat
    """

    def __init__(self, *, classes, total_bits, bus, block, reject=None):
        positive(classes=classes, total_bits=total_bits, bus=bus, block=block,
                 **({} if reject is None else {"reject": reject}))
        if bus % 8:
            raise ValueError(f"Bus must be a multiple of 8, not {bus!r}")
        self._items = items_per_word(classes, bus)
        if block != classes and (not self._items or block % self._items or classes % block):
            raise ValueError(f"Block must be the {classes} classes, or as the bus takes them, "
                             f"not {block!r}")
        self._classes = classes
        self._total_bits = total_bits
        self._bus = bus
        self._block = block
        self._reject = reject
        super().__init__({
            "i": In(stream.Signature(decision_layout(classes, total_bits))),
            "totals": In(stream.Signature(block * total_bits)),
            "error": In(stream.Signature(1)),
            "o": Out(stream.Signature(data.StructLayout({
                "beat": beat_layout(bus // 8), "user": 1}))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = SkidBuffer(self.o.p.shape())
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        # Flags come from the other end of the design.
        m.submodules.flag = flag = SkidBuffer(1)
        wiring.connect(m, wiring.flipped(self.error), flag.i)
        flags = flag.o.payload.shift_left(ERROR_BIT)
        if self._reject is not None:
            flags |= (self.i.payload.margin < self._reject).shift_left(REJECT_BIT)
        fields = {"class_index": self.i.payload.class_index, "flags": flags,
                  "margin": self.i.payload.margin}
        *head, totals = answer_fields(self._classes)
        record = []
        for field in head:
            record.append(Signal(field.bits, name=field.name))
            m.d.comb += record[-1].eq(fields[field.name])
        if self._items:
            self._by_items(m, Cat(record), flag.o, totals.bits, skid.i)
        else:
            self._whole(m, Cat(record), flag.o, totals.bits, skid.i)
        return m

    def _extended(self, totals, bits):
        """Totals side by side, each of so many bits."""
        size = self._total_bits
        return Cat(Cat(total, total[-1].replicate(bits - size)) for total in
                   (totals.word_select(n, size) for n in range(len(totals) // size)))

    def _by_items(self, m, head, flag, bits, sink):
        """Words of some items of so many ``bits``: those of the head, then totals."""
        items, totals = self._items, wiring.flipped(self.totals)
        if self._block > items:
            m.submodules.take = take = Emit(items * self._total_bits, count=self._block // items)
            wiring.connect(m, totals, take.i)
            totals = take.o
        heads, user, moved = len(head) // (items * bits), Signal(reset_less=True), Signal()
        at, last = counter(m, heads + self._classes // items, en=moved, name="item")
        source = stream.Signature(items * bits).create(path=("word",))
        in_head, head_ends = Signal(init=1), at == heads - 1
        with m.If(moved & (head_ends | last)):
            m.d.sync += in_head.eq(last)
        m.d.comb += [
            source.payload.eq(Mux(in_head, head.word_select(at[:ceil_log2(heads)], items * bits)
                                  if heads > 1 else head,
                                  self._extended(totals.payload, bits))),
            source.valid.eq(~in_head | (self.i.valid & flag.valid)),
            moved.eq(source.valid & source.ready),
            self.i.ready.eq(moved & head_ends),
            flag.ready.eq(moved & head_ends),
            totals.ready.eq(source.ready & ~in_head),
        ]
        now = Mux(in_head, flag.payload, user)
        with m.If(moved):
            m.d.sync += user.eq(now)
        # A word that takes several beats stays where it is until its last one.
        part, whole = counter(m, max(1, items * bits // self._bus),
                              en=source.valid & sink.ready, name="part")
        m.d.comb += [
            sink.p.beat.data.eq(source.payload.word_select(part, self._bus)
                                if self._bus < items * bits else source.payload),
            sink.p.beat.keep.eq((1 << (self._bus // 8)) - 1),
            sink.p.beat.last.eq(last & whole),
            sink.p.user.eq(now),
            sink.valid.eq(source.valid),
            source.ready.eq(sink.ready & whole),
        ]

    def _whole(self, m, head, flag, bits, sink):
        """The record at once, beat by beat."""
        lanes, beats = self._bus // 8, answer_beats(self._classes, self._bus)
        source = stream.Signature(beats * self._bus).create(path=("record",))
        parts = self.i, self.totals, flag
        m.d.comb += [
            source.payload.eq(Cat(head, self._extended(self.totals.payload, bits))),
            source.valid.eq(Cat(part.valid for part in parts).all()),
            *(part.ready.eq(source.valid & source.ready) for part in parts),
        ]
        user, last = flag.payload, C(1)
        if beats > 1:
            m.submodules.emit = emit = Emit(self._bus, count=beats)
            wiring.connect(m, source, emit.i)
            user, last = Signal(reset_less=True), emit.last
            with m.If(source.valid & source.ready):
                m.d.sync += user.eq(flag.payload)
            source = emit.o
        m.d.comb += [
            sink.p.beat.data.eq(source.payload),
            sink.p.beat.keep.eq(Mux(last, answer_keep(self._classes, lanes), (1 << lanes) - 1)),
            sink.p.beat.last.eq(last),
            sink.p.user.eq(user),
            sink.valid.eq(source.valid),
            source.ready.eq(sink.ready),
        ]
