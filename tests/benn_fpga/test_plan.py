"""The plan with itself; tests/hw compares it with the gateware."""

import pytest

import designs
from benn_fpga.plan import nodes
from benn_fpga.plan.plan import plan


@pytest.mark.parametrize("name", designs.CASES)
def test_a_gate_reserves_what_its_unit_gives(name):
    """Every queue is reserved by one gate, that of the unit which fills it."""
    design = plan(*designs.case(name))
    reserved = {queue: unit.name for unit in design.units if (gate := design.gate(unit))
                for queue in gate.reserves}
    assert reserved == {queue.name: queue.reads[0] for queue in design.all(nodes.Queue)}


@pytest.mark.parametrize("name", designs.CASES)
def test_every_node_is_in_one_part(name):
    design = plan(*designs.case(name))
    parts = (*design.lead, *design.engine, *design.votes, design.voter, design.port)
    assert sorted(node.name for node in parts) == sorted(node.name for node in design.nodes)
    assert {node.name for layer in design.layers for node in layer} == {
        node.name for node in design.engine}
    assert {node.engines for node in design.engine + design.votes} == {design.parallel}
