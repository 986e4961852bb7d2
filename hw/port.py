"""The port at which answers leave."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.frame import beat_layout
from benn_fpga.hw.joints import Emit, SkidBuffer
from benn_fpga.hw.vote import answer_layout
from benn_fpga.plan.answer import ERROR_BIT, REJECT_BIT, answer_beats, answer_fields, answer_keep

__all__ = ["AnswerPort"]

_SIGNALS = {"class_index": "winner"}  # of fields that are called otherwise in answer_layout


class AnswerPort(wiring.Component):
    """Sends an answer and its frame's error flag over the bus, laid out as plan/answer.py says.

    Zeros fill the record up to the end of its last beat. A buffer of two beats keeps the path of
    ``o.ready`` short. Latency 2.

    Parameters
    ----------
    classes, total_bits : of the answer
    bus : bits of a beat, a multiple of 8
    reject : answers of a smaller margin have the flag that rejects them; None if none has

    Members
    -------
    i : In(stream of answer_layout)
    error : In(stream of 1 bit), one per answer
    o : Out(stream of beat and user), beat_layout, and the error flag with every beat
    """

    def __init__(self, *, classes, total_bits, bus, reject=None):
        positive(classes=classes, total_bits=total_bits, bus=bus,
                 **({} if reject is None else {"reject": reject}))
        if bus % 8:
            raise ValueError(f"Bus must be a multiple of 8, not {bus!r}")
        self._classes = classes
        self._bus = bus
        self._reject = reject
        super().__init__({
            "i": In(stream.Signature(answer_layout(classes, total_bits))),
            "error": In(stream.Signature(1)),
            "o": Out(stream.Signature(data.StructLayout({
                "beat": beat_layout(bus // 8), "user": 1}))),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self._bus // 8
        flags = self.error.payload.shift_left(ERROR_BIT)
        if self._reject is not None:
            flags |= (self.i.payload.margin < self._reject).shift_left(REJECT_BIT)
        values = {
            "class_index": [self.i.payload.winner],
            "flags": [flags],
            "margin": [self.i.payload.margin],
            "totals": list(self.i.payload.totals),
        }
        record = []
        for field in answer_fields(self._classes):
            for value in values[field.name]:
                record.append(Signal(field.bits, name=_SIGNALS.get(field.name, field.name)))
                m.d.comb += record[-1].eq(value)
        m.submodules.emit = emit = Emit(self._bus, count=answer_beats(self._classes, self._bus))
        m.submodules.skid = skid = SkidBuffer(self.o.p.shape())
        m.d.comb += [
            emit.i.payload.eq(Cat(record)),
            emit.i.valid.eq(self.i.valid & self.error.valid),
            self.i.ready.eq(emit.i.ready & self.error.valid),
            self.error.ready.eq(emit.i.ready & self.i.valid),
            skid.i.p.beat.data.eq(emit.o.payload),
            skid.i.p.beat.keep.eq(Mux(emit.last, answer_keep(self._classes, lanes),
                                      (1 << lanes) - 1)),
            skid.i.p.beat.last.eq(emit.last),
            skid.i.valid.eq(emit.o.valid),
            emit.o.ready.eq(skid.i.ready),
        ]
        user = Signal(reset_less=True)
        m.d.comb += skid.i.p.user.eq(user)
        with m.If(emit.i.ready):
            m.d.sync += user.eq(self.error.payload)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        return m
