# amaranth: UnusedElaboratable=no
"""The plan with itself; tests/hw compares it with the gateware."""

import gc
import warnings
from dataclasses import dataclass, replace

import pytest
from amaranth.hdl import UnusedElaboratable

import designs
import draw
from benn_fpga.hw.assembly import component
from benn_fpga.layers import Conv
from benn_fpga.plan import names, nodes
from benn_fpga.plan.cycles import Flow, alone
from benn_fpga.plan.memories import Contents
from benn_fpga.plan.plan import draft, plan
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import Fold


@pytest.mark.parametrize("name", designs.ALL)
def test_a_gate_reserves_what_its_unit_gives(name):
    """Every queue is reserved by one gate, that of the unit which fills it."""
    design = plan(*designs.case(name))
    reserved = {queue: unit.name for unit in design.units
                for queue in design.gate(unit).reserves}
    filled = {queue.name: queue.reads[0] for queue in design.all(nodes.Queue)}
    last = design.units[-1].name
    assert reserved == {**filled, names.ANSWERS: last, names.TOTALS: last}
    assert filled[names.ANSWERS] == filled[names.TOTALS] == names.VOTER


@pytest.mark.parametrize("name", designs.ALL)
def test_every_node_comes_after_all_that_it_reads(name):
    before = set()
    for node in plan(*designs.case(name)).nodes:
        assert before >= set(node.reads)
        before.add(node.name)


@pytest.mark.parametrize("name", designs.ALL)
def test_engines_are_one_up_to_what_their_members_store(name):
    design = plan(*designs.case(name))
    ways = [unit.o.ways for unit in design.units]
    stores = [bool(unit.stage.layer.arrays()) for unit in design.units]
    first = stores.index(True)
    assert ways == [1] * first + [design.parallel] * (len(ways) - first)
    assert {node.o.ways for node in design.nodes[:design.nodes.index(design.units[0])]} == {1}


@pytest.mark.parametrize("name", ["queue3", "guard"])
def test_a_draft_has_no_sizes(name):
    with pytest.raises(ValueError, match=rf"^{name} has no depth yet: it is that of a draft; "):
        draft(*draw.residual())[name].memories  # noqa: B018  (it raises)


def test_registers_that_hold_words():
    """Bits: skids two words, converters what they collect and emit, windows their taps."""
    design = plan(*draw.registers(1))
    assert {node.name: node.register_bits for node in design.nodes if node.register_bits} == {
        "encoder": 2 * 3, "skid": 2 * 2 * 3, "converter0": 2 * 3, "sliding0": 9 * 3,
        "converter1": 4, "sliding1": 9 * 4, "converter2": 6 * 2, "sliding2": 8 * 6 * 2,
        "converter3": 8, "serial": 21, "port": 2 * 16}


@pytest.mark.parametrize("n", [0, 7, 12])
def test_a_layer_by_its_name(n):
    assert names.layer_of(names.unit(n)) == n


@pytest.mark.parametrize("stage", ["input", "answer"])
def test_a_stage_that_is_no_layer(stage):
    assert names.layer_of(stage) is None


@dataclass(frozen=True)
class Strange(nodes.Node):
    """A kind that nobody knows."""


def with_strange(design):
    """``design`` with a strange node before the width converter of layer 1."""
    gear = design["converter1"]
    strange = Strange("strange1", gear.reads, gear.i, gear.i)
    behind = replace(gear, reads=("strange1",))
    return replace(design, nodes=tuple(part for node in design.nodes for part in (
        (strange, behind) if node is gear else (node,))))


@pytest.mark.parametrize("name", designs.ALL)
def test_a_strange_node_is_not_passed_over(name):
    model, folding = designs.case(name)
    design = with_strange(plan(model, folding))
    with pytest.raises(TypeError, match=r"^strange1: Strange has no process$"):
        Flow(design).bus(1)
    with warnings.catch_warnings():
        # Components that were made before it are never used, which Amaranth says when they go.
        warnings.simplefilter("ignore", UnusedElaboratable)
        contents = [Contents(model, folding, n) for n in range(folding.parallel)]
        with pytest.raises(TypeError, match=r"^strange1: Strange has no component$"):
            [component(node, contents) for node in design.nodes]
        gc.collect()


@pytest.mark.parametrize("front", [(nodes.Front,), (nodes.LineBuffer, nodes.SlidingWindow)])
def test_a_strange_front_is_not_passed_over(front):
    class Layer(Conv):
        def front(self, fold):
            return front

    kinds = ", ".join(node_kind.__name__ for node_kind in front)
    with pytest.raises(TypeError, match=f"^{kinds} before layer 4 has no process$"):
        alone(Stage(4, Layer((3, 3, 1), (1, 1), outputs=2), Fold(1, 1)))
