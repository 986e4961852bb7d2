import dataclasses
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from benn_fpga import BennError, golden
from benn_fpga.sw import data
from benn_fpga.sw.train import ENSEMBLES, train

pytestmark = pytest.mark.train

SMALL = {"net": "mlp:12,9", "epochs": 2, "batch": 32}


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", limit=240)


@pytest.mark.parametrize("encoder", ["threshold", "thermometer:3", "planes"])
@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_trained_is_what_runs(digits, ensemble, vote, encoder):
    members = None if ensemble == "single" else 3
    model = train(digits, members=members, ensemble=ensemble, vote=vote, encoder=encoder, **SMALL)
    result = golden.run(model, digits.x_valid)
    right = result.member_classes.T == digits.y_valid
    assert model.provenance["scores"]["validation"] == {
        "frames": 119, "correct": (result.classes == digits.y_valid).sum(),
        "member_correct": right.sum(axis=1).tolist()}
    assert (len(model.members), model.vote) == (members or 1, vote)


@pytest.mark.parametrize(("q", "p"), [(2, 1), (1, 2), (2, 2)])
def test_bits(digits, q, p):
    model = train(digits, members=2, weight_bits=q, activation_bits=p, **SMALL)
    assert [(layer.weight_bits, layer.output_bits) for layer in model.layers] == [
        (q, p), (q, p), (q, 0)]


def test_it_learns(digits):
    model = train(digits, "mlp:64", epochs=20, batch=32)
    assert (model.predict(digits.x_test) == digits.y_test).mean() > 0.85


def test_values_of_one_bit(digits):
    binary = dataclasses.replace(digits, name="mine.npz", bits=1, high=1,
                                 x_train=digits.x_train // 16, x_valid=digits.x_valid // 16)
    assert train(binary, members=1, **SMALL).encoder.thresholds.tolist() == [[1]]


def test_linear(digits):
    assert len(train(digits, "mlp:", members=2, epochs=1).layers) == 1


def test_boosting_votes_are_integers(digits):
    model = train(digits, "mlp:4", members=4, ensemble="boost-d", encoder="threshold", epochs=1)
    votes = [member.vote_weight for member in model.members]
    assert max(votes) == 64
    assert min(votes) >= 0
    assert len(set(votes)) > 1


SCRIPT = """
import sys
from benn_fpga.sw import data
from benn_fpga.sw.train import train
train(data.load("digits", limit=240), "mlp:12,9", members=2, ensemble=sys.argv[1],
      epochs=2).save(sys.argv[2])
"""


@pytest.mark.parametrize("ensemble", ["independent", "bagging", "boost-d"])
def test_same_seed_same_bytes(digits, tmp_path, ensemble):
    train(digits, "mlp:12,9", members=2, ensemble=ensemble, epochs=2).save(tmp_path / "a")
    subprocess.run([sys.executable, "-c", SCRIPT, ensemble, str(tmp_path / "b")], check=True,
                   env={"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"})
    first, second = (hashlib.sha256((tmp_path / n).read_bytes()).hexdigest() for n in "ab")
    assert first == second


def test_another_seed_another_model(digits):
    one, other = (train(digits, members=1, seed=seed, **SMALL) for seed in (0, 1))
    assert (one.members[0].weights[0] != other.members[0].weights[0]).any()


def test_the_test_part_is_not_looked_at(digits):
    blind = dataclasses.replace(digits, x_test=None, y_test=None)
    assert train(blind, members=1, **SMALL).digest() == train(digits, members=1, **SMALL).digest()


def test_global_state_is_left_alone(digits):
    before = (torch.get_num_threads(), torch.random.get_rng_state().tolist(),
              np.random.get_state()[1].tolist())
    train(digits, members=1, **SMALL)
    assert before == (torch.get_num_threads(), torch.random.get_rng_state().tolist(),
                      np.random.get_state()[1].tolist())


def numbers(tree):
    if isinstance(tree, dict):
        return [number for value in tree.values() for number in numbers(value)]
    return [number for value in tree for number in numbers(value)] if isinstance(tree, list) \
        else [tree]


def test_provenance_is_json_without_floats(digits):
    provenance = train(digits, members=1, **SMALL).provenance
    assert json.loads(json.dumps(provenance)) == provenance
    assert {type(number) for number in numbers(provenance)} == {int, str}
    assert provenance["data_sha256"] == digits.sha256
    assert (provenance["net"], provenance["seed"], provenance["lr"]) == ("mlp:12,9", 0, "0.03")


def test_progress_counts_epochs_of_members(digits):
    seen = []
    train(digits, members=3, progress=lambda done, total: seen.append((done, total)), **SMALL)
    assert seen == [(3, 6), (6, 6)]


def test_interrupt_passes_out(digits):
    def interrupt(done, total):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        train(digits, members=1, progress=interrupt, **SMALL)


@pytest.mark.parametrize(("options", "message"), [
    ({"ensemble": "boost-a"},
     "Ensemble must be one of single, independent, bagging, boost-d, not 'boost-a'"),
    ({"vote": "loud"}, "Vote must be one of hard, soft, not 'loud'"),
    ({"ensemble": "single", "members": 2}, "Ensemble single has 1 member, not 2"),
    ({"members": 0}, "Members must be 1 to 4096, not 0"),
    ({"members": 99999999}, "Members must be 1 to 4096, not 99999999"),
    ({"net": "mlp:" + ",".join("1" * 300)},
     "Number of layers must be a whole number from 1 to 256, not 301"),
    ({"epochs": 0}, "Epochs must be at least 1, not 0"),
    ({"batch": 1}, "Batch must be at least 2, not 1: one frame has no variance to normalise by"),
    ({"threads": 0}, "Threads must be at least 1, not 0"),
    ({"seed": -1}, "Seed must be at least 0, not -1"),
    ({"lr": 0}, "Learning rate must be a positive number, not 0"),
    ({"lr": float("nan")}, "Learning rate must be a positive number, not nan"),
    ({"net": "vgg"}, "Network must be lfc, sfc, tfc or mlp:WIDTH,WIDTH,..., not 'vgg'"),
    ({"weight_bits": 9}, "Weight bits must be a whole number from 1 to 8, not 9"),
])
def test_wrong_options(digits, monkeypatch, options, message):
    monkeypatch.setattr("benn_fpga.sw.train.fit", lambda *a, **k: pytest.fail("too late"))
    with pytest.raises(BennError) as caught:
        train(digits, **options)
    assert str(caught.value) == message


def test_divergence(digits):
    with pytest.raises(BennError) as caught:
        train(digits, "mlp:9", members=1, epochs=2, lr=1e300)
    assert str(caught.value) == "training diverged with a learning rate of 1e+300; lower --lr"


def test_votes_that_may_not_fit(digits):
    wide = {"net": "mlp:400000", "members": 4000, "vote": "soft"}
    with pytest.raises(BennError, match=r"Votes sum up to .*, over the limit"):
        train(digits, **wide)
