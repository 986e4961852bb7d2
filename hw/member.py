"""One engine: the layers of a member, one after another."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.assembly import component, connect

__all__ = ["Member"]


class Member(wiring.Component):
    """An engine of an ensemble: it runs the members of ``contents`` in turn.

    All engines share the buffer of the first layer, so its inputs arrive ready to use: replayed
    frames for a dense layer, else the taps of windows. Every other layer reads pixels from a queue.
    A gate reserves a place there before a pixel is computed, so that a stage never stops; behind
    dense layers streams simply wait.

    Parameters
    ----------
    plan : of the whole design
    contents : a plan.memories.Contents, what the memories of this engine hold

    Members
    -------
    i : In(stream), what the first layer reads
    o : Out(stream), scores of PE classes of the last layer per word
    room : Out(1), if a gate leads to the first layer: its queues have a place
    take : In(1), reserves it
    """

    def __init__(self, *, plan, contents):
        self._plan = plan
        self._nodes = plan.engine
        self._parts = {node.name: component(node, contents) for node in self._nodes}
        first, last = plan.units[0], plan.units[-1]
        super().__init__({
            "i": self._parts[first.name].signature.members["i"],
            "o": self._parts[last.name].signature.members["o"],
            **({"room": Out(1), "take": In(1)} if plan.gate(first) else {}),
        })

    def elaborate(self, platform):
        m = Module()
        plan, parts = self._plan, self._parts
        given = {plan.units[0].reads[0]: wiring.flipped(self.i)}
        for node in self._nodes:
            m.submodules[node.name] = parts[node.name]
        for unit, own in zip(plan.units, plan.layers, strict=True):
            gate = plan.gate(unit)
            reserved = gate.reserves if gate else ()
            for port in range(1, len(unit.reads)):
                connect(m, plan, unit, parts, given, port)
            room, take = (Signal(name=f"{name}{unit.stage.n}") for name in ("room", "take"))
            for node in own:
                if node.name in reserved:
                    continue
                connect(m, plan, node, parts, given)
                if gate and node is (gate if gate in own else unit):
                    asks = parts.get(gate.name, self)  # which speaks for a gate outside
                    m.d.comb += [asks.room.eq(room), take.eq(asks.take)]
            if gate is None:
                continue
            # A place is reserved in every queue, so that none makes the others wait.
            m.d.comb += room.eq(reduce(and_, (parts[name].room for name in reserved), C(1)))
            for name in reserved:
                connect(m, plan, plan[name], parts, given)
                m.d.comb += parts[name].take.eq(take)
        wiring.connect(m, parts[plan.units[-1].name].o, wiring.flipped(self.o))
        return m
