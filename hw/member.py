"""One engine: the layers of a member, one after another."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.assembly import component, connect
from benn_fpga.plan import nodes

__all__ = ["Member"]


class Member(wiring.Component):
    """An engine of an ensemble: it runs the members of ``contents`` in turn.

    What the first layer reads comes ready to use, since all engines share its buffer: replayed
    frames for a dense layer, else the taps of windows. Every other layer reads pixels from a queue,
    in which who sends them has reserved a place, so that such a stage never stops; behind dense
    layers streams simply wait.

    Parameters
    ----------
    plan : of the whole design
    contents : a plan.memories.Contents, what the memories of this engine hold

    Members
    -------
    i : In(stream), what the first layer reads
    o : Out(stream), scores of PE classes of the last layer per beat
    room : Out(1), what the first layer gives has a place; unless that is dense
    take : In(1), reserves it
    """

    def __init__(self, *, plan, contents):
        self._plan = plan
        self._nodes = [node for node in plan.nodes
                       if node.engines and not isinstance(node, nodes.HardVote)]
        self._parts = {node.name: component(node, contents) for node in self._nodes}
        first, last = plan.units[0], plan.units[-1]
        super().__init__({
            "i": self._parts[first.name].signature.members["i"],
            "o": self._parts[last.name].signature.members["o"],
            **({} if first.stage.layer.reads_frames else {"room": Out(1), "take": In(1)}),
        })

    def elaborate(self, platform):
        m = Module()
        plan, parts = self._plan, self._parts
        given = {plan.units[0].reads[0]: wiring.flipped(self.i)}
        for node in self._nodes:
            m.submodules[node.name] = parts[node.name]
        for unit in plan.units:
            room, take = (Signal(name=f"{name}{unit.stage.n}") for name in ("room", "take"))
            front = [node for node in plan.front(unit) if node.engines]
            behind, queues = plan.behind(unit), plan.queues(unit)
            further = [(unit, port) for port in range(1, len(unit.reads))]
            others = [node for node in behind if node not in queues]
            for node, port in (*further, *((node, 0) for node in (*front, unit, *others))):
                connect(m, plan, node, parts, given, port)
                if isinstance(node, nodes.Gate):
                    m.d.comb += [parts[node.name].room.eq(room), take.eq(parts[node.name].take)]
                elif node is plan.units[0] and hasattr(self, "room"):
                    m.d.comb += [self.room.eq(room), take.eq(self.take)]
            if unit.stage.layer.reads_frames:
                continue
            # A place is reserved in every queue, so that none makes the others wait.
            m.d.comb += room.eq(reduce(and_, (parts[node.name].room for node in queues), C(1)))
            for node in queues:
                connect(m, plan, node, parts, given)
                m.d.comb += parts[node.name].take.eq(take)
        wiring.connect(m, parts[plan.units[-1].name].o, wiring.flipped(self.o))
        return m
