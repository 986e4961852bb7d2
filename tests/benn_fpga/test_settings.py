from types import SimpleNamespace

import pytest

from benn_fpga import api, presets
from benn_fpga.errors import BennError
from benn_fpga.settings import OPTIONS, Settings

DIGITS = SimpleNamespace(name="digits", high=16)
LARGE = SimpleNamespace(name="mine.npz", high=255, shape=(49, 10, 1), classes=10)
RESOLVED = [
    Settings(), Settings(kind="dnn"), Settings(kind="xnor-net", augment=True, distill=True),
    Settings("mlp:8", members=3, ensemble="logitboost", kind="qnn", wbits=2, abits=3, width=0.5,
             lr=0.1, threads=2, decay=False), Settings(augment=False, distill=0, ensemble="single")]


@pytest.mark.parametrize("settings", RESOLVED, ids=range(len(RESOLVED)))
def test_what_is_resolved_stays(settings):
    found = settings.resolve(DIGITS)
    assert found.resolve(SimpleNamespace(name="mnist", high=255)) == found
    assert Settings.read(found.describe()).resolve(DIGITS) == \
        Settings.read({**found.describe(), "data": "x", "scores": {}})


@pytest.mark.parametrize(("settings", "expected"), [
    (Settings(), {"net": "mlp:128,64", "encoder": "thermometer:6", "epochs": 40, "batch": 64,
                  "lr": 0.03, "members": 8, "ensemble": "independent", "recipe": "hw",
                  "reweight": None}),
    (Settings(kind="ib", ensemble="boost-a"), {"encoder": "planes", "reweight": "sample"}),
    (Settings(kind="xnor-net"), {"ensemble": "single", "members": 1, "recipe": "paper"}),
    (Settings(kind="dnn"), {"lr": pytest.approx(0.01)}),
    (Settings(epochs=3, distill=True, augment=True), {"distill": 3, "augment": "crop+flip"}),
    (Settings(encoder="thermometer"), {"encoder": "thermometer:6"}),
    (Settings(ensemble="logitboost", lr=0.5), {"reweight": "loss", "lr": 0.5}),
])
def test_what_is_chosen(settings, expected):
    found = settings.resolve(DIGITS)
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(("dataset", "high", "levels"), [
    ("fashion-mnist", 255, 4), ("mnist", 255, 6), ("mine.npz", 255, 6), ("bits.npz", 1, 1)])
def test_a_thermometer_alone_has_the_levels_of_the_data_set(dataset, high, levels):
    data = SimpleNamespace(name=dataset, high=high, shape=(4,), classes=2)
    found = Settings(encoder="thermometer").resolve(data)
    assert found.encoder == f"thermometer:{levels}"


@pytest.mark.parametrize(("settings", "expected"), [
    (Settings(), ("ib", "planes", "mlp:112,56")),
    (Settings("tfc"), ("ib", "planes", "tfc")),
    (Settings(encoder="threshold"), ("ab", "threshold", "mlp:112,56")),
    (Settings(kind="ab"), ("ab", "thermometer:6", "mlp:112,56")),
])
def test_large_frames_are_read_as_they_are(settings, expected):
    found = settings.resolve(LARGE)
    assert (found.kind, found.encoder, found.net) == expected


def test_unknown_options_list_the_known_ones():
    with pytest.raises(BennError, match=r"^unknown option 'layers' of training; known: net, memb"):
        api.train("digits", layers=3)
    with pytest.raises(BennError, match="unknown option 'k' of training"):
        api.measure("digits", k=3)


@pytest.mark.parametrize("provenance", [{}, {"width": "x", "lr": "1", "together": "no"}])
def test_a_model_that_does_not_say_how_it_was_trained(provenance):
    with pytest.raises(BennError, match="does not say how it was trained; use one that"):
        Settings.read(provenance)


def test_experiments_take_known_options():
    assert {key for takes in presets.EXPERIMENTS.values() for key in takes} <= set(OPTIONS)
