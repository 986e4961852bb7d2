# amaranth: UnusedElaboratable=no
"""The plan with itself; tests/hw compares it with the gateware."""

import gc
import warnings
from dataclasses import dataclass, replace

import pytest
from amaranth.hdl import UnusedElaboratable

import designs
import draw
from benn_fpga.hw.member import Member
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
    reserved = {queue: unit.name for unit in design.units if (gate := design.gate(unit))
                for queue in gate.reserves}
    assert reserved == {queue.name: queue.reads[0] for queue in design.all(nodes.Queue)}


@pytest.mark.parametrize("name", designs.ALL)
def test_every_node_is_in_one_part(name):
    design = plan(*designs.case(name))
    parts = (*design.lead, *design.engine, *design.votes, design.voter, design.port)
    assert sorted(node.name for node in parts) == sorted(node.name for node in design.nodes)
    assert {node.name for layer in design.layers for node in layer} == {
        node.name for node in design.engine}
    assert {node.engines for node in design.engine + design.votes} == {design.parallel}


@pytest.mark.parametrize("name", ["queue3", "guard"])
def test_a_draft_has_no_sizes(name):
    with pytest.raises(ValueError, match=rf"^{name} has no depth yet: it is that of a draft; "):
        draft(*draw.residual())[name].memories  # noqa: B018  (it raises)


def test_registers_that_hold_words():
    """Bits: skids two words, converters what they collect and emit, windows their taps."""
    design = plan(*draw.registers(1))
    assert {node.name: node.register_bits for node in design.nodes if node.register_bits} == {
        "skid": 2 * 16, "encoder": 2 * 3, "gear0": 2 * 3, "skid0": 2 * 3, "window0": 9 * 3,
        "read": 9 * 3, "gear1": 4, "window1": 9 * 4, "gear2": 6 * 2, "window2": 8 * 6 * 2,
        "gear3": 8, "buffer3": 2 * 8, "port": (10 + 2) * 16}


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
    gear = design["gear1"]
    strange = Strange("strange1", gear.reads, gear.i, gear.i, gear.engines)
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
        with pytest.raises(TypeError, match=r"^strange1: Strange has no component$"):
            Member(plan=design, contents=Contents(model, folding, 0))
        gc.collect()


def test_a_strange_front_is_not_passed_over():
    class Layer(Conv):
        def front(self, fold):
            return (nodes.Tiles, nodes.Front)

    with pytest.raises(TypeError, match=r"^Front before layer 4 has no process$"):
        alone(Stage(4, Layer((3, 3, 1), (1, 1), outputs=2), Fold(1, 1)))
