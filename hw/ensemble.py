"""The whole accelerator: AXI4-Stream in, K members, one vote, AXI4-Stream out."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.assembly import component, connect
from benn_fpga.plan import nodes
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import plan

__all__ = ["Ensemble"]


class Ensemble(wiring.Component):
    """K members as M engines of T rounds, with the input path and the vote they share.

    ::

        s_axis -> guard -> encoder -> skid -> converter -> front -> gate -> layer 0 -> queue -> ...
                    |                                                                   |
                    |                        port <- answers, totals <- voter <- serial <- layer n
                    |                        |  |
                    +------ error flags -----+  m_axis

    The front of a dense layer is a ring of frames, that of another cuts windows (line buffer,
    window of registers or tiles). A unit computes a layer of all engines, side by side. It never
    stops: its gate reserves a slot in the queue behind it before it starts.

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
        parts = {node.name: component(node, contents) for node in plan.nodes}
        for name, part in parts.items():
            m.submodules[name] = part
        for node in plan.nodes:
            for port, _ in enumerate(node.reads):
                connect(m, plan, node, parts, port)
        for gate in plan.all(nodes.Gate):
            # A slot is reserved in every queue, so that none makes the others wait.
            queues = [parts[name] for name in gate.reserves]
            m.d.comb += parts[gate.name].room.eq(reduce(and_, (queue.room for queue in queues)))
            m.d.comb += [queue.take.eq(parts[gate.name].take) for queue in queues]

        guard, port = parts[plan.guard.name], parts[plan.port.name]
        m.d.comb += [
            guard.i.p.data.eq(self.s_axis_tdata),
            guard.i.p.keep.eq(self.s_axis_tkeep),
            guard.i.p.last.eq(self.s_axis_tlast),
            guard.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(guard.i.ready),
            self.m_axis_tdata.eq(port.o.p.beat.data),
            self.m_axis_tkeep.eq(port.o.p.beat.keep),
            self.m_axis_tlast.eq(port.o.p.beat.last),
            self.m_axis_tuser.eq(port.o.p.user),
            self.m_axis_tvalid.eq(port.o.valid),
            port.o.ready.eq(self.m_axis_tready),
        ]
        return m
