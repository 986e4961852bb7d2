"""The whole accelerator: AXI4-Stream in, K members, one vote, AXI4-Stream out."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.assembly import component, connect, convey, payload
from benn_fpga.hw.member import Member
from benn_fpga.plan import names, nodes
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan

__all__ = ["Ensemble", "feed"]


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
    (line buffer, window of registers or tiles), and a gate and a register lead what is read to all
    engines at once.

    Frames and answers are described in :class:`FrameGuard` and :class:`AnswerPort`. In a stream of
    frames each takes ``plan(model, folding).schedule.cycles_per_frame`` cycles.

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
        self._plan = plan(model, folding)
        lanes = folding.bus // 8
        super().__init__({
            "s_axis_tdata": In(8 * lanes), "s_axis_tkeep": In(lanes), "s_axis_tlast": In(1),
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1),
            "m_axis_tdata": Out(8 * lanes), "m_axis_tkeep": Out(lanes), "m_axis_tlast": Out(1),
            "m_axis_tuser": Out(1), "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        plan = self._plan
        contents = [Contents(self._model, self._folding, n) for n in range(plan.parallel)]
        members = [Member(plan=plan, contents=each) for each in contents]

        # Built once for all engines: from the port to what all of them read.
        shared = {node.name: component(node, contents) for node in plan.nodes if not node.engines}
        skid, guard, voter, port = (shared[node.name] for node in (
            plan.entry, plan.guard, plan.voter, plan.port))
        m.submodules[plan.entry.name] = skid
        m.d.comb += [
            skid.i.p.data.eq(self.s_axis_tdata),
            skid.i.p.keep.eq(self.s_axis_tkeep),
            skid.i.p.last.eq(self.s_axis_tlast),
            skid.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(skid.i.ready),
        ]
        feed(m, plan, plan.lead[1:], shared, {}, members)

        m.submodules[plan.voter.name] = voter
        for n, member in enumerate(members):
            m.submodules[names.engine(n)] = member
            votes = member.o
            for node in plan.votes:
                m.submodules[names.beside(node.name, n)] = vote = component(node)
                wiring.connect(m, votes, vote.i)
                votes = vote.o
            wiring.connect(m, votes, voter.i[n])

        m.submodules[plan.port.name] = port
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


def feed(m, plan, chosen, parts, given, members):
    """Add the nodes ``chosen``; the last of them leads what is read to all engines.

    ``parts`` are their components and ``given`` the streams from outside, both by name.
    """
    *before, last = chosen
    for node in before:
        m.submodules[node.name] = parts[node.name]
    for node in before:
        connect(m, plan, node, parts, given)
    source = given.get(last.reads[0]) or parts[last.reads[0]].o
    if plan.gate(plan.units[0]):  # which reserves places in queues of every engine
        gate = parts[plan.gate(plan.units[0]).name]
        m.d.comb += gate.room.eq(reduce(and_, (member.room for member in members)))
        m.d.comb += [member.take.eq(gate.take) for member in members]
    if isinstance(last, nodes.Fork):
        m.submodules[last.name] = fork = parts[last.name]
        convey(m, source, last.i, fork.i, last.o)
        for member, o in zip(members, fork.o, strict=True):
            wiring.connect(m, o, member.i)
        return
    now = stream.Signature(payload(last.o), always_ready=True).create(path=(last.name,))
    word, valid = Signal.like(now.payload, reset_less=True), Signal()
    convey(m, source, last.i, now, last.o)
    m.d.sync += [word.eq(now.payload), valid.eq(now.valid)]
    for member in members:
        m.d.comb += [member.i.payload.eq(word), member.i.valid.eq(valid)]
