import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benn_fpga import __version__ as version
from benn_fpga import api, golden, nets, presets
from benn_fpga.errors import BennError
from benn_fpga.settings import Settings
from benn_fpga.sw import compare, data, experiments, report
from benn_fpga.sw.experiments import (
    Study,
    common,
    robustness_random,
    robustness_trained,
    stability,
    theory,
)
from benn_fpga.sw.experiments.common import Scores
from benn_fpga.sw.train import learn

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", limit=200)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(stability, "LAST", 3)


def quick(digits, seeds=1, **options):
    return Study.of(digits, quick=True, seeds=seeds, **{"members": 2, **options})


def taken(name, options):
    return {key: value for key, value in options.items() if key in presets.EXPERIMENTS[name]}


@pytest.fixture
def calls(monkeypatch):
    """The settings of every call of learn."""
    seen, real = [], common.learn

    def spy(data, settings, **run):
        seen.append(vars(settings))
        return real(data, settings, **run)
    monkeypatch.setattr(common, "learn", spy)
    return seen


@pytest.mark.parametrize("name", presets.EXPERIMENTS)
def test_every_experiment_reports(digits, tmp_path, name):
    small = taken(name, {"net": "mlp:8", "epochs": 3})
    found = experiments.run(name, quick(digits, **small), f"benn-fpga experiment {name}")
    assert found.rows
    assert found.claims
    assert {len(row) for row in found.rows} == {len(found.columns)}
    # One seed decides nothing; the paper's table is compared with a formula.
    assert [claim.text for claim in found.claims if claim.held is not None] == \
        ["B and R as in the table of the appendix"] * (name == "theory")
    report.write(found, tmp_path / "r.json")
    assert report.read(tmp_path / "r.json").describe()["rows"] == found.rows
    report.draw(found, tmp_path / "r.svg")
    assert "<svg" in (tmp_path / "r.svg").read_text()


def test_names_are_those_of_the_command_line():
    assert tuple(experiments.FUNCTIONS) == tuple(presets.EXPERIMENTS)
    with pytest.raises(BennError, match=r"Experiment must be one of theory, .*, not 'x'"):
        experiments.check("x", {})


@pytest.mark.parametrize(("name", "given", "words"), [
    ("theory", {"net": "tfc"}, "theory does not take `net`; .* none of them"),
    ("theory", {"members": 3}, "theory does not take `members`"),
    ("theory", {"data_dir": "x"}, "theory does not take `data_dir`"),
    ("bits-or-networks", {"members": 3}, "bits-or-networks does not take `members`"),
    ("bit-width", {"kind": "ib"}, "bit-width does not take `kind`; .* `net`, `width`, `epochs`"),
    ("compression", {"width": 0.5}, "compression does not take `width`"),
])
def test_options_that_an_experiment_sets_itself(name, given, words):
    with pytest.raises(BennError, match=f"Experiment {words}"):
        experiments.check(name, given)


def test_theory_reads_no_data():
    with pytest.raises(BennError, match="theory does not take `dataset`"):
        api.experiment("theory", "digits", quick=True)
    assert "data" not in api.experiment("theory", quick=True, progress=False).settings


def test_settings_without_a_training(digits):
    found = experiments.run("theory", quick(None)).settings
    assert found.pop("versions")["benn_fpga"] == version
    assert found.pop("cpu") == torch.backends.cpu.get_cpu_capability()
    assert found == {"quick": True, "seeds": [0],
                     "samples": {"layer": 400_000, "ensemble": 100_000}}
    found = experiments.run("robustness-random", quick(digits)).settings
    assert (found["data"], found["frames"], found["seeds"]) == ("digits", {"train": 200}, [0])
    assert found["configurations"]["BENN-5"] == {"wbits": 1, "abits": 1, "members": 5}


TRAINED = [name for name, takes in presets.EXPERIMENTS.items() if takes]


@pytest.mark.parametrize("name", TRAINED)
def test_settings_are_those_of_the_trainings(digits, calls, name):
    found = experiments.run(name, quick(digits, seeds=2, net="mlp:8")).settings
    listed = {key: value if isinstance(value, list) else [value] for key, value in found.items()}
    assert listed["members"] == list(dict.fromkeys(told["members"] or 1 for told in calls))
    for key in ("epochs", "kind", "net", "ensemble", "schedule"):
        assert listed[key] == list(dict.fromkeys(told[key] for told in calls)), key
    assert found["seeds"] == sorted({told["seed"] for told in calls})
    assert found["frames"] == {"train": len(digits.x_train), "validation": len(digits.x_valid),
                               "test": len(digits.x_test)}
    assert found["versions"]["benn_fpga"] == version


def test_settings_that_differ_are_those_of_a_training(digits):
    frames = {"train": 5, "validation": 3}
    told = [{"frames": frames, "seed": seed, "kind": kind, "scores": seed, **more}
            for kind, more in (("ab", {}), ("qnn", {"wbits": 2})) for seed in (0, 1)]
    assert Study(digits, trainings=told).used() == {
        "seeds": [0, 1], "frames": {**frames, "test": len(digits.y_test)}, "kind": ["ab", "qnn"],
        "wbits": 2, "trainings": [{"kind": "ab"}, {"kind": "qnn", "wbits": 2}]}
    assert Study(digits, trainings=told[:2]).used() == {
        "seeds": [0, 1], "frames": {**frames, "test": len(digits.y_test)}, "kind": "ab"}


# Values that nothing has by default; bits are for other kinds than wbits and abits.
ODD = {"net": "mlp:7", "width": 0.9, "epochs": 4, "lr": 0.0123, "batch": 48, "augment": "flip",
       "recipe": "paper", "members": 7, "encoder": "planes:2", "kind": "aqb", "bits": 2}
OTHER = {"net": "mlp:7", "epochs": 4, "kind": "qnn", "wbits": 2, "abits": 3}


@pytest.mark.parametrize(("name", "given"), [
    *((name, ODD) for name in TRAINED),
    *((name, OTHER) for name in TRAINED if "wbits" in presets.EXPERIMENTS[name]),
])
def test_every_option_is_used(digits, calls, name, given):
    given = taken(name, given)
    if "kind" not in given and "encoder" in given:
        given["encoder"] = "threshold:5"
    found = experiments.run(name, quick(digits, **given)).settings
    for key, value in given.items():
        used = [told[key] == value for told in calls]
        assert any(used) if key in ("members", "encoder") else all(used), key
        assert str(value) in str(found[key])


def test_every_option_is_tried():
    assert {key for takes in presets.EXPERIMENTS.values() for key in takes} == {*ODD, *OTHER}


def test_stability_refuses_fewer_epochs_than_it_looks_at(digits):
    with pytest.raises(BennError, match="last 3 epochs; `epochs` must be at least 3, not 2"):
        experiments.run("stability", quick(digits, epochs=2))


def test_robustness_has_as_many_members_as_asked_for(digits):
    found = experiments.run("robustness-trained", quick(digits, net="mlp:8", epochs=1))
    assert [row[0] for row in found.rows][2:] == ["BNN", "BENN-2"]


@pytest.mark.parametrize(("given", "own", "encoder"), [
    ({}, {}, "threshold"),
    ({}, {"kind": "ib"}, None),
    ({"kind": "ib"}, {}, None),
    ({"encoder": "thermometer:2"}, {}, "thermometer:2"),
    ({"encoder": "planes:3"}, {"kind": "ib"}, "planes:3"),
])
def test_encoder_suits_the_kind(digits, given, own, encoder):
    assert quick(digits, **given).options(**own).get("encoder") == encoder


def test_measure_is_the_golden_model(digits):
    study = quick(digits, seeds=2, net="mlp:8", epochs=2)
    found = study.measure(ensemble="bagging", members=3)
    for seed in (0, 1):
        trained = learn(digits, Settings("mlp:8", seed=seed, epochs=2, encoder="threshold",
                                         ensemble="bagging", members=3), progress=False)
        result = golden.run(trained.export(digits.x_valid), digits.x_test)
        assert found.vote[seed] == (result.classes == digits.y_test).mean()
        assert found.single[seed] == pytest.approx(
            (result.member_classes == digits.y_test[:, None]).mean())
    assert (found.weight_bits, found.operations) == (3 * (64 * 8 + 80), 3 * (64 * 8 + 80))


def test_tuned_takes_the_rate_that_is_best_on_validation(digits, monkeypatch):
    seen = {0.03: 5, 0.01: 3, 0.09: 8}

    def fake(data, settings, **run):
        assert settings.ensemble == "single"
        valid = {"correct": seen[round(settings.lr, 6)]}
        return SimpleNamespace(provenance={"scores": {"validation": valid}})
    monkeypatch.setattr(common, "learn", fake)
    assert quick(digits).tuned(kind="ib") == {"kind": "ib", "lr": pytest.approx(0.09)}
    assert quick(digits, lr=0.5).tuned(kind="ib") == {"kind": "ib"}


def measured(monkeypatch, answer):
    """Let ``answer(options)`` give (accuracy of a member, K-curve, weight bits, operations)."""
    def fake(study, **own):
        single, curve, bits, products = answer(own)
        off = [n / 1000 for n, _ in enumerate(study.seeds)]
        return Scores([single + o for o in off], [[c + o for c in curve] for o in off], bits,
                      products)
    monkeypatch.setattr(Study, "measure", fake)
    monkeypatch.setattr(Study, "tuned", lambda study, **own: own)


def claims(digits, name, **options):
    found = experiments.run(name, quick(digits, seeds=3, **options))
    return [(claim.ours, claim.held) for claim in found.claims], found.rows


def test_bag_vs_boost(digits, monkeypatch):
    votes = {"single": 0.7, "independent": 0.9, "bagging": 0.8, "boost-c": 0.82}
    measured(monkeypatch, lambda own: (0.6, [0.6, votes.get(own["ensemble"], 0.75)], 1, 1))
    found, rows = claims(digits, "bag-vs-boost")
    assert found == [("bagging +10.00 ± 0.00 points", True),
                     ("best of 5, boost-c: +2.00 ± 0.00 points", True),
                     ("+10.00 ± 0.00 points", True)]
    assert rows[1][:4] == ["independent", "60.10 ± 0.10", "60.10 ± 0.10", "90.10 ± 0.10"]


def test_seq_vs_indep(digits, monkeypatch):
    gains = {"bagging": -0.01, "boost-a": 0.03, "boost-d": 0.02}
    measured(monkeypatch, lambda own: (
        0.5, [0.5, 0.8 + gains[own["ensemble"]] * (own["schedule"] == "seq")], 1, 1))
    found, _ = claims(digits, "seq-vs-indep")
    assert found == [("-1.00 ± 0.00 points", False),
                     ("best of 2, boost-a: +3.00 ± 0.00 points", True)]


@pytest.mark.parametrize(("tiny", "ours", "held"), [
    (0.02, "0.5 (tiny) +2.00, 0.1 (nano) +5.00: +1.00 ± 0.00, +3.00 ± 0.00", True),
    (0.00, "0.5 (tiny) +0.00, 0.1 (nano) +5.00: -1.00 ± 0.00, +5.00 ± 0.00", False),
])
def test_compression(digits, monkeypatch, tiny, ours, held):
    def answer(own):
        assert own["net"] == "mlp:256,128"  # a tenth of the weak network has no neurons left
        gain = {1.0: 0.01, 0.5: tiny, 0.1: 0.05}[own["width"]] * (own["ensemble"] != "single")
        return 0.5, [0.5 + gain], 10, 1
    measured(monkeypatch, answer)
    found, _ = claims(digits, "compression")
    assert found == [(f"1.0 (full) +1.00, {ours} points more than the wider", held)]


def test_bit_width(digits, monkeypatch):
    def answer(own):
        alone = {"ab": 0.6, "aqb": 0.65, "wqb": 0.7, "ib": 0.7, "sb": 0.8}[own["kind"]]
        bits = 5 if own["kind"] == "wqb" else 1
        return (alone, [alone], bits, 1) if own["ensemble"] == "single" else \
            (alone, [alone, alone + 0.2], 2 * bits, 1)
    measured(monkeypatch, answer)
    found, _ = claims(digits, "bit-width")
    assert found == [("AB, 2 bits, against WQB, 5 bits: +10.00 ± 0.00 points", True),
                     ("+5.00 ± 0.00 points", True), ("-5.00 ± 0.00 points", False)]


def test_first_last(digits, monkeypatch):
    cost = {"sb": (0.0, 0.0), "ib": (0.04, 0.06), "ab": (0.1, 0.03)}
    measured(monkeypatch, lambda own: (
        0, [0.9 - cost[own["kind"]][own["ensemble"] != "single"]], 1, 1))
    found, _ = claims(digits, "first-last")
    assert found == [("IB +4.00 ± 0.00, AB +10.00 ± 0.00 points", True),
                     ("IB -2.00 ± 0.00, AB +7.00 ± 0.00 points less", False)]


def test_bits_or_networks(digits, monkeypatch):
    def answer(own):
        if own["ensemble"] == "single":
            k = own["wbits"]
            return 0, [0.7 + 0.01 * k + (0.05 if own.get("encoder") else 0)], k * 7, k * k * 7
        k = own["members"]
        start = 0.8 if own["kind"] == "ib" else 0.6
        return 0, [start + 0.02 * n for n in range(k)], k * 7, k * 7
    measured(monkeypatch, answer)
    found, rows = claims(digits, "bits-or-networks")
    assert found == [("k = 2: -10.00 ± 0.00; k = 3: -9.00 ± 0.00 points", False),
                     ("k = 2: -6.00 ± 0.00; k = 3: +3.00 ± 0.00 points", False),
                     ("k = 2: +5.00 ± 0.00; k = 3: +6.00 ± 0.00 points", True)]
    assert [row[1:3] + row[5:7] for row in rows] == [
        ["7"] * 4, ["14", "14", "28", "28"], ["21", "21", "63", "63"]]


def test_equal_products_are_equal(digits):
    """What the table says of cost is what exported models have."""
    found = experiments.run("bits-or-networks", quick(digits, net="mlp:8", epochs=1))
    for row in found.rows:
        assert row[1] == row[2]
        assert row[5] == row[6]


def test_robustness_trained(digits, monkeypatch):
    changes = {("dnn", 1): 1.0, ("ab", 1): 9.0, ("ab", 5): 3.0}

    def fake(trained, members, data, variance, draws, rng):
        more = 2.0 if trained.kind == "dnn" and trained.coarse else 0.0
        return changes[trained.kind, members] + more + 10 * (variance != robustness_random.MAIN)
    monkeypatch.setattr(robustness_trained, "error_change", fake)
    monkeypatch.setattr(common, "learn", lambda data, settings, **run: SimpleNamespace(
        kind=settings.kind, coarse=settings.encoder != "planes",
        provenance={"encoder": settings.encoder, "frames": {}, "seed": settings.seed}))
    found, _ = claims(digits, "robustness-trained", members=5)
    assert found == [("9.00 against 1.00 %² at variance 0.01: +8.00 ± 0.00", True),
                     ("BENN-5 3.00 against 9.00 %²: +6.00 ± 0.00", True),
                     ("3.00 against 3.00 %²: +0.00 ± 0.00", None)]


def test_stability_of_known_scores(digits, monkeypatch):
    y = digits.y_test
    right = np.eye(10)[y]

    def fake(study, seed, **options):
        # Epochs with 0, 1 and 2 wrong frames of a member; the vote of both has half of each.
        members = options.get("members", 1)
        epochs = np.repeat(right[None], 3, axis=0)
        for epoch in (1, 2):
            epochs[epoch, :epoch] = np.eye(10)[(y[:epoch] + 1) % 10]
        other = np.repeat(right[None] * 2, 3, axis=0)
        return np.stack([epochs, other][:members], axis=2), SimpleNamespace(
            vote="soft", vote_weights=(1,) * members)
    monkeypatch.setattr(stability, "_watched", fake)
    _, rows = claims(digits, "stability")
    shown = {row[0]: row[1] for row in rows}
    assert shown["single"] == f"{100 * np.std([0, 1 / len(y), 2 / len(y)], ddof=1):.2f} ± 0.00"
    assert shown["bagging, all"] == "0.00 ± 0.00"


def test_watched_scores_are_those_of_the_last_epochs(digits):
    study = quick(digits, net="mlp:8", epochs=8)
    scores, watched = stability._watched(study, 0, ensemble="bagging", members=2)
    assert scores.shape == (3, len(digits.y_test), 2, 10)
    trained = learn(digits, Settings("mlp:8", encoder="threshold", ensemble="bagging", members=2,
                                     epochs=8, decay=False), progress=False)
    last = trained.network.scores(torch.from_numpy(
        2 * golden.encode(trained.encoder, digits.x_test.reshape(len(digits.x_test), -1))
        .astype(np.int8) - 1))
    assert (scores[-1] == last).all()
    assert watched.vote_weights == trained.vote_weights == (1, 1)


def test_the_same_plot_has_the_same_bytes(digits, tmp_path):
    found = experiments.run("theory", quick(digits))
    for name in ("a.svg", "b.svg"):
        report.draw(found, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    drawn = (tmp_path / "a.svg").read_text()
    assert ">0.001</text>" in drawn
    assert "mathdefault" not in drawn


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
    assert theory.flips(sigma) == pytest.approx(changed.var(), rel=0.05)
    assert theory.flips(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("members", [1, 4])
def test_ensemble_variance_falls_with_members(members):
    found = theory.ensemble_variance(0.5, members, 100_000, np.random.default_rng(0))
    assert found == pytest.approx(theory.flips(0.5) / members, rel=0.03)


def test_equation_1_of_one_layer():
    """Of a float layer of unit weights the change is noise variance x outputs, whatever x is; the
    mean of K such has 1/K of it, and so has the variance of the output."""
    x = np.random.default_rng(0).uniform(-1, 1, (400, 64))
    rng = np.random.default_rng(1)
    moved, varied = robustness_random.change(x, (64, 50), (32, 32, 1), 0.01, 20, rng)
    assert moved == pytest.approx(0.01 * 50, rel=0.05)
    assert varied == pytest.approx(50 / 3, rel=0.05)  # variance of even values in -1..1
    few, less = robustness_random.change(x, (64, 50), (32, 32, 4), 0.01, 20, rng)
    assert (few, less) == pytest.approx((moved / 4, varied / 4), rel=0.1)


def test_equation_1_of_binary_inputs():
    """Even values in -1..1 change sign with probability E|noise| / 2, from ±0.5 to ∓0.5."""
    x = np.random.default_rng(0).uniform(-1, 1, (400, 64))
    moved, _ = robustness_random.change(x, (64, 50), (1, 1, 1), 0.01, 20, np.random.default_rng(1))
    assert moved == pytest.approx(50 * 0.1 * math.sqrt(2 / math.pi) / 2, rel=0.05)


@pytest.mark.parametrize("bits", [1, 2, 4, 32])
def test_drawn_weights_have_unit_variance(bits):
    weights = robustness_random._drawn_weights((400, 400), bits, np.random.default_rng(0))
    assert float(weights.std()) == pytest.approx(1, rel=1e-3)
    assert len(weights.unique()) == (2 ** bits if bits < 32 else 160_000) or bits == 32


def test_equation_2_is_the_square_change_of_the_error(digits):
    """By hand: the errors with and without noise, in percent."""
    trained = learn(digits, Settings("mlp:8", encoder="threshold", epochs=2, members=2),
                    progress=False)
    found = robustness_trained.error_change(trained, 2, digits, 0.1, 3, np.random.default_rng(5))
    flat = digits.x_test.reshape(len(digits.x_test), -1)
    rng, errors = np.random.default_rng(5), []
    for draw in range(4):
        x = flat + (math.sqrt(0.1) * 8 * rng.standard_normal(flat.shape) if draw else 0)
        codes = x >= trained.encoder.thresholds[0, 0]
        scores = trained.network.scores(torch.from_numpy(2 * codes.astype(np.int8) - 1))
        errors.append(100 * (scores.sum(1).argmax(1) != digits.y_test).mean())
    assert found == pytest.approx(np.mean([(e - errors[0]) ** 2 for e in errors[1:]]))
    assert robustness_trained.error(trained, 2, torch.from_numpy(flat).double(), digits.y_test) == \
        pytest.approx(errors[0])


@pytest.mark.parametrize("encoder", ["planes", "planes:3", "thermometer:3"])
def test_error_without_noise_is_that_of_the_network(digits, encoder):
    kind = "ab" if "thermo" in encoder else "dnn"
    trained = learn(digits, Settings("mlp:8", encoder=encoder, epochs=2, members=2, kind=kind),
                    progress=False)
    flat = torch.from_numpy(digits.x_test.reshape(len(digits.x_test), -1)).double()
    if encoder == "planes:3":  # values that the encoder does not round
        flat = (flat // 4) * 4
    rounded = flat.numpy().astype(np.uint8)
    expected = 100 * (trained.predict(rounded) != digits.y_test).mean()
    found = robustness_trained.error(trained, 2, flat, digits.y_test)
    assert found == pytest.approx(expected, abs=1e-6)


def test_mean_and_deviation():
    assert report.mean([0.5, 0.7]) == "60.00 ± 14.14"
    assert report.mean([0.5]) == "50.00"
    assert report.spread([1.0, 3.0], 1) == "2.0 ± 1.4"


@pytest.mark.parametrize(("net", "members"), [("mlp:32,16", 8), ("nin", 4), ("mlp:32", 64)])
def test_equal_width(net, members):
    encoder = presets.encoder("threshold", (8, 8, 1), 4, 15)

    def bits(width):
        return sum(layer.stored_bits for layer in nets.build(net, encoder, 10, width=width))
    width = compare.equal_width(net, encoder, 10, nets.kind("ab"), 0.25, members)
    assert bits(width) <= members * bits(0.25) < bits(width * 1.2)
    assert math.isfinite(width)
