import math

import numpy as np
import pytest

from benn_fpga import nets, presets
from benn_fpga.errors import BennError
from benn_fpga.sw import compare, data, experiments, noise, report, stability

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", limit=200)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(stability, "LAST", 3)


def quick(digits, **options):
    return experiments.setting(digits, quick=True, seeds=1, members=2, **{
        "net": "mlp:8", "epochs": 1, **options})


@pytest.mark.parametrize("name", presets.EXPERIMENTS)
def test_every_experiment_reports(digits, tmp_path, name):
    found = experiments.run(name, quick(digits), f"benn-fpga experiment {name}")
    assert found.rows
    assert found.claims
    assert {len(row) for row in found.rows} == {len(found.columns)}
    report.write(found, tmp_path / "r.json")
    assert report.read(tmp_path / "r.json").describe()["rows"] == found.rows
    report.draw(found, tmp_path / "r.svg")
    assert "<svg" in (tmp_path / "r.svg").read_text()


def test_names_are_those_of_the_command_line():
    assert tuple(experiments.EXPERIMENTS) == presets.EXPERIMENTS
    with pytest.raises(BennError, match=r"Experiment must be one of theory, .*, not 'x'"):
        experiments.run("x", None)


def test_the_same_plot_has_the_same_bytes(digits, tmp_path):
    found = experiments.run("theory", quick(digits))
    for name in ("a.svg", "b.svg"):
        report.draw(found, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "benn-experiment", "version": 2}'])
def test_not_a_report(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BennError, match="is not the result of an experiment; run it again"):
        report.read(tmp_path / "r.json")


@pytest.mark.parametrize("sigma", [0.1, 1.0, 1.5])
def test_flips_are_those_that_occur(sigma):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 200_000))
    changed = np.sign(x + sigma * y) - np.sign(x)
    assert noise.flips(sigma) == pytest.approx(changed.var(), rel=0.05)
    assert noise.flips(1.0) == pytest.approx(1.0)


def test_mean_and_deviation():
    assert report.mean([0.5, 0.7]) == "60.00 ± 14.14"
    assert report.mean([0.5]) == "50.00"


@pytest.mark.parametrize(("net", "members"), [("mlp:32,16", 8), ("nin", 4)])
def test_equal_width(net, members):
    encoder = presets.encoder("threshold", (8, 8, 1), 4, 15)

    def bits(width):
        return sum(layer.stored_bits for layer in nets.build(net, encoder, 10, width=width))
    width = compare.equal_width(net, encoder, 10, nets.kind("ab"), 0.25, members)
    assert bits(width) <= members * bits(0.25) < bits(width * 1.2)
    assert math.isfinite(width)
