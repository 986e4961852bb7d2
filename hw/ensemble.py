"""The whole accelerator: AXI4-Stream in, K members, one vote, AXI4-Stream out."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.encoder import EncoderUnit
from benn_fpga.hw.frame import FrameGuard, beat_layout
from benn_fpga.hw.joints import Emit, Gearbox, ReplayBuffer, SkidBuffer
from benn_fpga.hw.member import Member, feed, fork, frame_buffer
from benn_fpga.hw.vote import HardVote, Voter, answer_layout
from benn_fpga.plan import memories
from benn_fpga.plan.answer import ERROR_BIT, answer_beats, answer_fields, answer_keep
from benn_fpga.plan.schedule import schedule
from benn_fpga.plan.stages import beat_elements, stages

__all__ = ["AnswerPort", "Ensemble"]


class AnswerPort(wiring.Component):
    """Sends an answer and its frame's error flag over the bus, laid out as plan/answer.py says.

    Zeros fill the record up to the end of its last beat. A buffer of two beats keeps the path of
    ``o.ready`` short. Latency 2.

    Parameters
    ----------
    classes, total_bits : of the answer
    bus : bits of a beat, a multiple of 8

    Members
    -------
    i : In(stream of answer_layout)
    error : In(stream of 1 bit), one per answer
    o : Out(stream of beat and user), beat_layout, and the error flag with every beat
    """

    def __init__(self, *, classes, total_bits, bus):
        positive(classes=classes, total_bits=total_bits, bus=bus)
        if bus % 8:
            raise ValueError(f"Bus must be a multiple of 8, not {bus!r}")
        self._classes = classes
        self._bus = bus
        super().__init__({
            "i": In(stream.Signature(answer_layout(classes, total_bits))),
            "error": In(stream.Signature(1)),
            "o": Out(stream.Signature(data.StructLayout({
                "beat": beat_layout(bus // 8), "user": 1}))),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self._bus // 8
        values = {
            "winner": [self.i.payload.winner],
            "flags": [self.error.payload.shift_left(ERROR_BIT)],
            "margin": [self.i.payload.margin],
            "totals": list(self.i.payload.totals),
        }
        record = []
        for field in answer_fields(self._classes):
            for value in values[field.name]:
                record.append(Signal(field.bits, name=field.name))
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


class Ensemble(wiring.Component):
    """K members as M engines of T rounds, with the input path and the vote they share.

    ::

        s_axis -> skid -> guard -> encoder -> gearbox -> front -+-> engine 0 -+
                            |                                   +-> engine 1 -+-> voter
                            |                                   +-> ...      -+     |
                            +-- error flags -----------------------------------> port
                                                                                     |
                                                                                  m_axis

    The front of a dense first layer is a ring of frames and a fork. That of another cuts windows
    (line buffer or tiles), and a gate and a register lead what is read to all engines at once.

    Frames and answers are described in :class:`FrameGuard` and :class:`AnswerPort`. In a stream of
    frames each takes ``schedule(model, folding).cycles_per_frame`` cycles.

    Parameters
    ----------
    model : spec.Ensemble
    folding : spec.Folding

    Members
    -------
    s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_tvalid : In; s_axis_tready : Out
    m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser, m_axis_tvalid : Out; m_axis_tready : In
    """

    def __init__(self, *, model, folding):
        self._model = model
        self._folding = folding
        self._schedule = schedule(model, folding)
        lanes = folding.bus // 8
        super().__init__({
            "s_axis_tdata": In(8 * lanes), "s_axis_tkeep": In(lanes), "s_axis_tlast": In(1),
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1),
            "m_axis_tdata": Out(8 * lanes), "m_axis_tkeep": Out(lanes), "m_axis_tlast": Out(1),
            "m_axis_tuser": Out(1), "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        model, folding = self._model, self._folding
        encoder, lanes, engines = model.encoder, folding.bus // 8, folding.parallel
        first, last = stages(model, folding)[0], stages(model, folding)[-1]

        # Built once for all engines: port, guard, encoder, width converter, buffers.
        m.submodules.skid = skid = SkidBuffer(beat_layout(lanes))
        m.submodules.guard = guard = FrameGuard(
            lanes=lanes, size=encoder.values, depth=self._schedule.error_depth)
        m.submodules.encoder = unit = EncoderUnit(
            encoder=encoder, thresholds=memories.encoder_words(encoder, lanes), lanes=lanes)
        m.submodules.gear0 = gearbox = Gearbox(
            beat_elements(model, folding), first.lanes_in, frame=encoder.outputs,
            element_bits=encoder.element_bits)
        m.d.comb += [
            skid.i.p.data.eq(self.s_axis_tdata),
            skid.i.p.keep.eq(self.s_axis_tkeep),
            skid.i.p.last.eq(self.s_axis_tlast),
            skid.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(skid.i.ready),
        ]
        for source, sink in ((skid.o, guard.i), (guard.o, unit.i), (unit.o, gearbox.i)):
            wiring.connect(m, source, sink)
        members = [Member(model=model, folding=folding, engine=n, queues=self._schedule.queues)
                   for n in range(engines)]
        self._feed(m, first, gearbox.o, members)

        hard = model.vote == "hard"
        m.submodules.voter = voter = Voter(
            classes=model.classes, lanes=last.lanes_out,
            weights=[memories.vote_weights(model, folding, n) for n in range(engines)],
            vote_bits=1 if hard else model.score_bits, total_bits=model.total_bits)
        for n in range(engines):
            m.submodules[f"member{n}"] = members[n]
            votes = members[n].o
            if hard:
                m.submodules[f"hard{n}"] = vote = HardVote(
                    classes=model.classes, lanes=last.lanes_out, score_bits=model.score_bits)
                wiring.connect(m, votes, vote.i)
                votes = vote.o
            wiring.connect(m, votes, voter.i[n])

        m.submodules.port = port = AnswerPort(
            classes=model.classes, total_bits=model.total_bits, bus=folding.bus)
        wiring.connect(m, voter.o, port.i)
        wiring.connect(m, guard.error, port.error)
        m.d.comb += [
            self.m_axis_tdata.eq(port.o.p.beat.data),
            self.m_axis_tkeep.eq(port.o.p.beat.keep),
            self.m_axis_tlast.eq(port.o.p.beat.last),
            self.m_axis_tuser.eq(port.o.p.user),
            self.m_axis_tvalid.eq(port.o.valid),
            port.o.ready.eq(self.m_axis_tready),
        ]
        return m

    def _feed(self, m, first, source, members):
        """Lead the stream of encoded pixels to all engines, as often as they read it."""
        rounds = self._folding.rounds(self._model)
        if first.is_dense:
            m.submodules.buffer0 = buffer = frame_buffer(
                first.layer, first.fold, rounds * first.folds)
            wiring.connect(m, source, buffer.i)
            fork(m, buffer.o, members)
            return
        if rounds > 1:
            m.submodules.buffer0 = buffer = ReplayBuffer(
                len(source.payload), chunks=first.pixels_in * first.words_in, replays=rounds)
            wiring.connect(m, source, buffer.i)
            source = buffer.o
        feed(m, first, self._model.encoder.element_bits, source, members)
