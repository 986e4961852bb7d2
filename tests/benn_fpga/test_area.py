"""The area model: what it computes exactly, what it estimates, and what it says."""

import dataclasses
import importlib
import json
import random
from pathlib import Path

import numpy as np
import pytest

import designs
import draw
from benn_fpga import api, cli, devices
from benn_fpga.errors import BennError, BennWarning
from benn_fpga.plan import area, nodes
from benn_fpga.plan.bill import FABRICS, Bill, bill, blocks, together
from benn_fpga.plan.folding import fold_for_price, fold_that_fits
from benn_fpga.plan.mapping import LIBRARIES
from benn_fpga.plan.nodes import Memory
from benn_fpga.plan.plan import plan
from benn_fpga.spec import Fold, Folding
from benn_fpga.synthesis import flow
from benn_fpga.synthesis.flow import Synthesis

ROOT = Path(__file__).resolve().parents[2]
MODEL = draw.random_model(np.random.default_rng(0), members=2, shape=(16, 3, 1), hidden=(24, 12),
                          classes=5)
UP5K, ECP5 = devices.find("ice40-up5k"), devices.find("ecp5-25k")


def folding(*folds, parallel=1, bus=32):
    return Folding(tuple(Fold(*each) for each in folds), parallel, bus)


LIMIT = 1150  # logic cells: between the smallest folding and the fastest
SMALL = folding((2, 8), (1, 4), (1, 2))


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(ROOT)
    return importlib.import_module("area")


@pytest.mark.parametrize(("family", "memory", "count", "pieces"), [
    ("ECP5", Memory(2304, 448, constant=True), 63, 5),
    ("ECP5", Memory(240, 8), 1, 1),  # 30 cells of LUTs would cost more, with what chooses
    ("ECP5", Memory(48, 8), 0, 3),
    ("ECP5", Memory(16, 112, constant=True), 0, 1),  # logic
    ("iCE40", Memory(4, 16), 1, 1),
    ("iCE40, sparing", Memory(4, 16), 0, 1),
    ("iCE40", Memory(60, 10, constant=True), 1, 1),
    ("7 series", Memory(240, 8), 0, 4),
    ("7 series", Memory(1024, 36, constant=True), 2, 1),  # one that is two
    ("7 series", Memory(512, 36), 1, 1),
])
def test_memories_are_mapped_as_by_yosys(family, memory, count, pieces):
    mapped = LIBRARIES[family].map(memory)
    assert (mapped.blocks, mapped.pieces) == (count, pieces)


def test_bits_that_do_not_vary_are_not_stored():
    memory = Memory(60, 10, constant=True)
    assert LIBRARIES["iCE40"].map(memory, bits=8).ram is None
    unit = plan(MODEL, SMALL).units[0]
    assert blocks(unit, LIBRARIES["iCE40"], {"table": [0]}) \
        == LIBRARIES["iCE40"].map(unit.memories["weights"]).blocks


def test_every_family_has_a_fabric():
    assert set(FABRICS) == {device.family.name for device in devices.DEVICES.values()}


def test_every_node_kind_has_a_bill():
    made = [plan(*designs.case(name)) for name in designs.CASES]
    for each in made:
        for node in each.nodes:
            parts = bill(node, FABRICS["ECP5"])
            assert all(count >= 0 for count in parts.values())
            kind = node.stage.layer if isinstance(node, nodes.Unit) else node
            assert parts[type(kind).__name__] == 1


def test_bills_add_up():
    assert together(Bill(a=1, b=2), Bill(b=3)) == {"a": 1, "b": 5}
    assert Bill()["nothing"] == 0


def test_registers_of_a_popcount():
    """Those of an engine's unit of 9 XNOR lanes, by hand."""
    model = draw.random_model(np.random.default_rng(0), members=1, shape=(9, 9, 1), hidden=(8,),
                              classes=2)
    unit = plan(model, folding((1, 9), (1, 1))).units[0]
    parts = bill(unit, FABRICS["iCE40"], {"table": [7]})
    threes, nines, total = 3 * 2, 4, 8
    assert parts["register"] == threes + nines + total + 1  # ``first``
    weights = 9  # behind a table in logic
    assert parts["table register"] > 0
    assert weights < parts["plain register"] < weights + 15


def test_what_was_checked(examples):
    """The figures of docs/area-model.md."""
    _, checked = examples.names()
    chosen = random.Random(0).sample(checked, 8)
    seen = 0
    for _, results in examples.errors(chosen):
        for name, taken, estimated in results:
            seen += 1
            assert estimated.bram == taken["bram"], name
            for figure in ("lut", "ff"):
                off = getattr(estimated, figure) / taken[figure] - 1
                assert abs(off) < examples.ALLOWED, (name, figure, off)
    assert seen >= 16


def test_figures_of_an_area():
    found = area.estimate(MODEL, SMALL, UP5K)
    assert found.describe() == {
        "device": "ice40-up5k", "lut": found.lut, "ff": found.ff, "bram": found.bram,
        "logic_cells": found.logic_cells, "missing": {}, "fits": True}
    assert found.lut < found.logic_cells < found.lut + found.ff
    assert found.is_safe
    assert found.needs() == ""
    tiny = dataclasses.replace(UP5K, resources={"logic_cells": 100, "bram": 30})
    found = area.estimate(MODEL, SMALL, tiny)
    assert found.missing == {"logic_cells": found.logic_cells - 100}
    assert found.needs() == f"about {found.logic_cells:,} logic cells of 100"
    assert not found.is_safe
    assert area.estimate(MODEL, SMALL, devices.find("xc7")).describe()["fits"] is None


def test_sum_of_nodes():
    found = area.estimate(MODEL, SMALL, ECP5)
    assert set(found.nodes) == {node.name for node in plan(MODEL, SMALL).nodes}
    for n, figure in enumerate((found.lut, found.ff, found.bram)):
        assert abs(sum(each[n] for each in found.nodes.values()) - figure) <= len(found.nodes)


def test_blocks_are_spared_where_there_are_too_few():
    few = dataclasses.replace(UP5K, resources={"logic_cells": 5280, "bram": 2})
    assert area.estimate(MODEL, SMALL, few).bram < area.estimate(MODEL, SMALL, UP5K).bram


def test_prices_of_another_version(monkeypatch):
    monkeypatch.setattr(area, "VERSION", 99)
    area.forget()
    with pytest.raises(BennError, match="of version 1 of the area model, which is 99;"):
        area.estimate(MODEL, SMALL, ECP5)
    area.forget()


def test_a_family_without_prices():
    with pytest.raises(BennError, match="there is no area model of LUT6; there are those of ECP5"):
        area.estimate(MODEL, SMALL, devices.find("generic-lut6"))


@pytest.mark.parametrize("seed", range(5))
def test_cheapest_of_random_foldings(seed):
    """No random folding of the same rate is cheaper than what is chosen."""
    rng = np.random.default_rng(seed)
    model = draw.random_model(rng, members=int(rng.integers(1, 5)), shape=(24, 2, 1),
                              hidden=(24, 12), classes=6)
    pricing = area.Pricing(model, ECP5)
    some = draw.random_folding(rng, model, 64)
    cycles = plan(model, some).schedule.cycles_per_frame
    chosen = fold_for_price(model, cycles, pricing)
    assert plan(model, chosen).schedule.cycles_per_frame <= cycles
    others = [draw.random_folding(rng, model, 64) for _ in range(200)]
    enough = [each for each in others if plan(model, each).schedule.cycles_per_frame <= cycles]
    assert pricing(chosen) <= min(map(pricing, [some, *enough]))


def test_fastest_that_fits():
    pricing = area.Pricing(MODEL, UP5K)

    def cells(each):
        return area.estimate(MODEL, each, UP5K).logic_cells
    chosen = fold_that_fits(MODEL, pricing, lambda each: cells(each) <= LIMIT)
    assert cells(chosen) <= LIMIT
    cycles = plan(MODEL, chosen).schedule.cycles_per_frame
    faster = fold_for_price(MODEL, cycles - 1, pricing)
    assert cells(faster) > LIMIT
    assert fold_that_fits(MODEL, pricing, lambda each: False) is None


def test_nothing_fits(monkeypatch):
    tiny = dataclasses.replace(UP5K, resources={"logic_cells": 100, "bram": 30})
    monkeypatch.setitem(devices.DEVICES, "ice40-up5k", tiny)
    with pytest.raises(BennError, match=r"no folding fits ice40-up5k: even the smallest needs "
                                        r"about [\d,]+ logic cells of 100; it fits ice40-hx8k"):
        api.choose_folding(MODEL, device="ice40-up5k", fit=True)
    with pytest.raises(BennError, match="anything fits xc7, which is only counted"):
        api.choose_folding(MODEL, device="xc7", fit=True)
    with pytest.raises(BennError, match="what is to `fit` needs a `device`"):
        api.choose_folding(MODEL, fit=True)


def test_generate(tmp_path, capsys):
    MODEL.save(tmp_path / "m.benn")
    argv = ["generate", str(tmp_path / "m.benn"), "-o", str(tmp_path / "d"), "--frames", "0"]
    assert cli.main([*argv, "--device", "ice40-up5k", "--fit", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    found = api.estimate(api.designs.read(tmp_path / "d"), "ice40-up5k")
    assert {key: data[key] for key in found.describe()} == found.describe()
    assert found.is_safe
    assert cli.main([*argv, "--fit"]) == 2
    assert "--fit needs the device that it must fit" in capsys.readouterr().err


def test_generate_what_does_not_fit(tmp_path, capsys, monkeypatch):
    tiny = dataclasses.replace(UP5K, resources={"logic_cells": 100, "bram": 30})
    monkeypatch.setitem(devices.DEVICES, "ice40-up5k", tiny)
    MODEL.save(tmp_path / "m.benn")
    argv = ["generate", str(tmp_path / "m.benn"), "-o", str(tmp_path / "d"), "--frames", "0"]
    assert cli.main([*argv, "--device", "ice40-up5k"]) == 0
    out, err = capsys.readouterr()
    assert "the design will hardly fit ice40-up5k: it needs about" in err
    assert "fits ice40-up5k, as estimated" in out


def synthesis(lut, estimated):
    fields = {field.name: None for field in dataclasses.fields(Synthesis)}
    return Synthesis(**{**fields, "lut": lut, "missing": {}, "missing_around": {},
                        "estimated": estimated and {"lut": estimated}})


@pytest.mark.parametrize(("lut", "estimated", "surprise", "vanished"), [
    (1024, None, None, False), (10, 250, None, False), (960, 1024, None, False),
    (1344, 1024, 0.3125, False), (704, 1024, -0.3125, False), (511, 1024, -0.5009765625, True),
])
def test_surprises(lut, estimated, surprise, vanished):
    result = synthesis(lut, estimated)
    assert result.surprise == surprise
    assert result.vanished is vanished
    assert bool(result.failure) is vanished
    if vanished:
        assert "511 LUTs where about 1,024 were expected" in result.failure


@pytest.mark.parametrize(("times", "words"), [(2, "100% more than the"), (0.625, "fewer than the")])
def test_a_surprising_netlist_gets_a_note(tmp_path, monkeypatch, times, words):
    design = api.generate(MODEL, tmp_path / "d", folding=SMALL, frames=0)
    expected = api.estimate(design, "ecp5-25k").lut
    monkeypatch.setattr(flow, "run", lambda *args, **options: synthesis(
        int(times * expected), None))
    with pytest.warns(BennWarning, match=f"{words} {expected:,} that were estimated"):
        assert api.synth(design, "ecp5-25k").failure is None
