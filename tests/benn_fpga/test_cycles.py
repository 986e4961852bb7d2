"""The cycle model with itself; tests/hw compares it with the gateware."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import designs
import draw
from benn_fpga.layers import Conv, MaxPool
from benn_fpga.plan import cycles, names, nodes
from benn_fpga.plan.cycles import Flow, alone
from benn_fpga.plan.geometry import Slide, Walk
from benn_fpga.plan.plan import plan
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import Fold


def stream(design, depths, frames):
    """Follow frames that come as fast as they are taken; the flow, and the start of each answer."""
    flow = Flow(design, depths)
    return flow, flow.bus(frames)


@settings(max_examples=40)
@given(st.one_of(draw.designs(draw.models()),
                 draw.designs(draw.conv_models(max_blocks=2, max_side=6))))
def test_frames_follow_each_other_at_the_pace_of_the_slowest_stage(design):
    design = plan(*design)
    timing = design.schedule
    frames = timing.latency_cycles // timing.cycles_per_frame + 5
    flow, starts = stream(design, timing.queues, frames)
    assert len(starts) == frames
    assert set(np.diff(starts[-3:]).tolist()) == {timing.cycles_per_frame}
    assert {key: queue.most() for key, queue in flow.queues.items()} == {
        key: depth for key, depth in timing.queues.items() if key != names.TOTALS}


@given(st.integers(2, 8), st.sampled_from([1, 2, 4]), st.integers(1, 4), st.integers(8, 50),
       st.data())
def test_rows_in_the_middle_take_as_long_as_each_other(kernel, words, stride, height, data):
    padding, width = data.draw(st.integers(0, kernel - 1)), data.draw(st.sampled_from([1, 5]))
    layer = MaxPool((height, width, 4), (kernel, padding + 1), stride, padding)
    stage = Stage(0, layer, Fold(4 // words, 1))
    emit = data.draw(st.sampled_from([n for n in (1, 2, 4) if n <= words]))
    supply = cycles.Supply(cycles.Gear(data.draw(st.integers(1, 4)), emit, words // emit),
                           stage.pixels_in)
    taken = alone(stage, supply)
    assert taken == cycles._alone(stage, supply)
    assert taken >= stage.reads * stage.pixels_out


@given(st.integers(2, 5), st.integers(1, 3), st.integers(1, 4), st.integers(8, 50), st.data())
def test_rows_of_a_window_of_registers_take_as_long_as_each_other(kernel, words, stride, height,
                                                                  data):
    padding, width = data.draw(st.integers(0, kernel - 1)), data.draw(st.sampled_from([1, 5]))
    layer = Conv((height, width, 2), (kernel, 1 + padding), stride, padding, outputs=words)
    stage = Stage(0, layer, Fold(1, data.draw(st.sampled_from(layer.wide_simds))))
    supply = cycles.Supply(cycles.Gear(data.draw(st.integers(1, 4)), 1, 1), stage.pixels_in)
    assert alone(stage, supply) == cycles._alone(stage, supply)


def test_one_slot_less_may_cost_cycles():
    """At least in one design, or the depths would be arbitrary."""
    rng = np.random.default_rng(3)
    encoder = draw.Encoder("planes", (6, 6, 2), 2, np.zeros((1, 0), np.int32))
    layers = (draw.Conv((6, 6, 2), (3, 3), outputs=4, input_bits=2),
              draw.Conv((4, 4, 4), (3, 3), outputs=4), draw.Dense(16, 3, 1, 1, 0))
    model = draw.random_ensemble(rng, encoder, layers)
    folding = draw.Folding((Fold(2, 2), Fold(1, 4), Fold(1, 1)), 1, 64)
    design = plan(model, folding)
    timing = design.schedule
    worse = [replace_one(timing.queues, key, -1) for key in timing.queues if timing.queues[key] > 1]
    slower = [stream(design, depths, 8)[1] for depths in worse]
    assert any(np.diff(starts[-3:]).max() > timing.cycles_per_frame for starts in slower)


def replace_one(depths, key, by):
    return {**depths, key: depths[key] + by}


def test_a_stage_is_known_by_its_fold():
    layer = MaxPool((8, 8, 4), (2, 2), 2)
    wide, narrow = (Stage(0, layer, Fold(pe, 1)) for pe in (4, 1))
    assert alone(wide) < alone(narrow)
    assert alone(replace(wide, n=3)) == alone(wide)


def words_before_output(design, node):
    """Words that must come to a node, and to what is followed with it, before the first leaves;
    and the cycles that it needs to read them once they are there."""
    if isinstance(node, nodes.Converter):
        return node.gear.sizes[0][0], 0
    if isinstance(node, nodes.Voter):
        return node.rounds * design.units[-1].o.words, 0
    if isinstance(node, nodes.AnswerPort):
        return 1, -node.head_beats  # a decision is taken with its last beat
    if not isinstance(node, nodes.Unit):
        return 1, 0
    stage, per = node.stage, node.stage.reads_per_word
    dropped = cycles._tiles(stage.layer).index(True) * stage.words_in \
        if nodes.Tiles in stage.front else 0
    if nodes.LineBuffer in stage.front:
        need = Walk(stage.window).steps[0].need
        assert not dropped or need == 1
        return dropped + need * stage.words_in, per - 1
    if nodes.SlidingWindow in stage.front:
        walk = Slide(stage.layer).walk
        complete = [completes for _, completes in walk].index(True)
        return sum(comes for comes, _ in walk[:complete + 1]), per - 1
    return dropped + per, 0


LATENCIES = {name: designs.case(name) for name in designs.ALL}


@pytest.mark.parametrize("name", LATENCIES)
def test_processes_take_as_long_as_nodes_say(name):
    """The first word of a frame that meets an idle design, at every node."""
    design = plan(*LATENCIES[name])
    flow = Flow(design, design.schedule.queues)
    flow.bus(1)
    for node in design.nodes[1:]:
        i, o = flow._offers[node.reads[0]], flow._offers[node.name]
        if o is i:
            continue  # followed with a unit, or with the voter
        front = design.front(node) if isinstance(node, nodes.Unit) else \
            design.votes[:-1] if node is design.voter else []
        together = [before for before in front
                    if flow._offers[before.name] is flow._offers[before.reads[0]]]
        words, reading = words_before_output(design, node)
        latency = sum(part.latency for part in (*together, node))
        assert o.offered[0] - i.taken[words - 1] == reading + latency, node.name


def test_all_kinds_are_timed():
    timed = {type(node) for case in LATENCIES.values() for node in plan(*case).nodes}
    kinds = {kind for kind in vars(nodes).values() if isinstance(kind, type)
             and issubclass(kind, nodes.Node) and kind not in (nodes.Node, nodes.Front)}
    assert kinds == timed
