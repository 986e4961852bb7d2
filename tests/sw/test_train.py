import dataclasses
import hashlib
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from benn_fpga import BennError, golden
from benn_fpga.presets import ENSEMBLES
from benn_fpga.settings import Settings
from benn_fpga.sw import data
from benn_fpga.sw import train as trainer
from benn_fpga.sw.train import evaluate

pytestmark = pytest.mark.train

SMALL = {"net": "mlp:12,9", "epochs": 2, "batch": 32}
BITS = {"wqb": {"bits": 2}, "aqb": {"bits": 2}, "qnn": {"wbits": 2, "abits": 3},
        "dorefa": {"bits": 2}, "abc-net": {"bits": 2}}
KINDS = ("ab", "ib", "sb", "wqb", "aqb", "qnn")


def learn(digits, net=None, function=trainer.learn, **options):
    run = {key: options.pop(key) for key in ("checkpoint", "resume", "workers", "progress")
           if key in options}
    return function(digits, Settings(net, **options), **run)


def train(digits, net=None, **options):
    return learn(digits, net, trainer.train, **options)


_trained = {}


def trained_before(digits, **options):
    """As `train`, but a model that several tests compare with is trained once."""
    key = id(digits), repr(options)
    if key not in _trained:
        _trained[key] = train(digits, **options)
    return _trained[key]


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", limit=300)


@pytest.mark.parametrize("ensemble", ENSEMBLES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("net", "width"), [("mlp:12,9", 1.0), ("lenet", 0.1)])
def test_trained_is_what_runs(digits, net, width, kind, ensemble):
    members = 1 if ensemble == "single" else 2
    trained = learn(digits, net, width=width, kind=kind, ensemble=ensemble, members=members,
                    epochs=2, **BITS.get(kind, {}))
    result = golden.run(trained.export(digits.x_valid), digits.x_test)
    assert (result.scores == evaluate(trained.network, trained.encoder, digits.x_test)).all()
    assert (result.classes == trained.predict(digits.x_test)).all()


@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize("ensemble", ["single", "independent", "bagging", "boost-d"])
def test_provenance_says_how_well_it_does(digits, ensemble, vote):
    members = None if ensemble == "single" else 3
    model = train(digits, members=members, ensemble=ensemble, vote=vote, **SMALL)
    result = golden.run(model, digits.x_valid)
    right = result.member_classes.T == digits.y_valid
    assert model.provenance["scores"]["validation"] == {
        "frames": 119, "correct": (result.classes == digits.y_valid).sum(),
        "member_correct": right.sum(axis=1).tolist()}
    assert (len(model.members), model.vote) == (members or 1, vote)


@pytest.mark.parametrize("kind", ["bnn", "xnor-net", "dorefa", "abc-net"])
def test_networks_of_the_literature(digits, kind):
    model = train(digits, "nin", width=0.1, kind=kind, epochs=1, **BITS.get(kind, {}))
    assert len(model.members) == 1
    assert model.provenance["recipe"] == ("paper" if kind == "xnor-net" else "hw")


@pytest.mark.parametrize(("net", "width"), [("mlp:32", 1.0), ("mlp:", 1.0), ("lenet", 0.2),
                                            ("nin", 0.1), ("resnet18", 0.05)])
@pytest.mark.parametrize("kind", ["dnn", "binaryconnect"])
def test_floats_learn(digits, net, width, kind):
    epochs = 12 if net.startswith("mlp") else 6
    trained = learn(digits, net, width=width, kind=kind, ensemble="bagging", members=2,
                    epochs=epochs, batch=32)
    right = trained.predict(digits.x_valid) == digits.y_valid
    assert trained.provenance["scores"]["validation"]["correct"] == right.sum()
    assert right.mean() > 0.4


@pytest.mark.parametrize(("kind", "what"), [("dnn", "weights"), ("binaryconnect", "activations")])
def test_floats_are_not_exported(digits, kind, what):
    with pytest.raises(BennError) as caught:
        train(digits, kind=kind)
    assert str(caught.value) == (f"kind {kind} has float {what}: it can be trained and measured, "
                                 f"but not exported")


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
    model = train(digits, "mlp:4", members=4, ensemble="boost-d", encoder="threshold", epochs=3)
    votes = [member.vote_weight for member in model.members]
    assert max(votes) in (64, 128, 256, 512, 1024)
    assert len(set(votes)) > 1
    assert model.provenance["vote_rounding"] == {"changed": 0, "frames": 119}


@pytest.mark.parametrize(("ensemble", "needs"), [("boost-a", "50.0%"), ("boost-d", "90.0%")])
def test_boosting_stops_at_chance(digits, ensemble, needs):
    shuffled = np.random.default_rng(0).permutation(digits.y_train)
    noise = dataclasses.replace(digits, y_train=shuffled)
    model = train(noise, "mlp:", members=5, ensemble=ensemble, encoder="threshold", epochs=2,
                  lr=1e-4)
    stopped = model.provenance["stopped"]
    assert stopped["members"] == len(model.members) == 1
    assert stopped["why"].endswith(f"of the weight; {ensemble} needs less than {needs}")
    assert model.members[0].vote_weight == 1


def test_logitboost_stops_where_it_no_longer_helps(digits, monkeypatch):
    losses = iter([2.0, 1.0, 1.0, 1.5])
    monkeypatch.setattr("benn_fpga.sw.boost.log_loss", lambda logits, y: next(losses))
    model = train(digits, members=3, ensemble="logitboost", **SMALL)
    assert model.provenance["stopped"] == {
        "members": 1, "why": "member 1 takes the log loss from 1.0000 to 1.5000"}


def test_scores_too_large_for_a_vote_are_refused_before_training(digits):
    with pytest.raises(BennError) as caught:
        train(digits, "mlp:512", kind="sb", members=60, progress=pytest.fail)
    assert str(caught.value) == (
        "Scores of this network reach ±33292800, of which a soft vote can add up 32, not 60; "
        "use fewer `members`, a smaller `width` or `vote` hard")


def first_weights(model, k):
    return model.members[k].layers[0]["weights"]


def test_seq_starts_from_the_member_before(digits):
    models = [train(digits, members=2, ensemble="bagging", schedule=schedule, lr=1e-6, **SMALL)
              for schedule in ("indep", "seq")]
    apart, near = (np.bitwise_count(first_weights(m, 0) ^ first_weights(m, 1)).sum()
                   for m in models)
    assert near < apart / 10


@pytest.mark.parametrize("net", ["mlp:12", "lenet"])
def test_independent_members_do_not_depend_on_each_other(digits, net):
    one, two = (train(digits, net, width=0.1, members=k, epochs=2, together=False)
                for k in (1, 2))
    for a, b in zip(one.members[0].layers, two.members[0].layers, strict=True):
        assert all((a[key] == b[key]).all() for key in a)


@pytest.mark.parametrize("ensemble", ["independent", "bagging"])
@pytest.mark.parametrize("net", ["mlp:12", "lenet"])
def test_workers_do_not_matter(digits, net, ensemble):
    digests = {train(digits, net, width=0.2, members=3, ensemble=ensemble, epochs=2,
                     together=False, workers=workers).digest() for workers in (1, 2, 3)}
    assert len(digests) == 1


@pytest.mark.parametrize("options", [
    {"reweight": "loss", "ensemble": "boost-d"}, {"augment": "crop"}, {"augment": True},
    {"distill": True}, {"distill": 1, "augment": True}, {"distill": 1, "ensemble": "average"},
    {"distill": 1, "ensemble": "bagging", "augment": "crop"}, {"schedule": "seq"},
    {"recipe": "paper"}, {"width": 2.0}])
@pytest.mark.parametrize("net", ["mlp:12", "lenet"])
def test_every_option_changes_the_model(digits, net, options):
    plain = {"width": 0.5, "members": 2, "epochs": 2, "ensemble": "independent"}
    ensemble = options.get("ensemble", "independent")
    before = trained_before(digits, net=net, **{**plain, "ensemble": ensemble})
    after = train(digits, net, **{**plain, **options})
    again = train(digits, net, **{**plain, **options})
    assert after.digest() == again.digest()
    assert any(not np.array_equal(a, b) for a, b in zip(
        before.tensors().values(), after.tensors().values(), strict=True))


class Break(Exception):
    pass


def interrupted(digits, path, at, **options):
    """Train until ``at`` epochs of members are seen, then break, then go on."""
    def progress(done, total):
        if done >= at:
            raise Break
    with pytest.raises(Break):
        train(digits, checkpoint=path, progress=progress, **options)
    return train(digits, checkpoint=path, resume=True, **options)


@pytest.mark.parametrize("at", [1, 4, 5])
@pytest.mark.parametrize("options", [
    {"ensemble": "independent"}, {"ensemble": "bagging", "together": False, "workers": 2},
    {"ensemble": "boost-d", "schedule": "seq"}, {"ensemble": "logitboost"},
    {"ensemble": "average"}, {"distill": 1, "augment": "crop"},
    {"net": "lenet", "width": 0.1, "workers": 2}, {"net": "lenet", "width": 0.1,
                                                   "ensemble": "bagging", "schedule": "seq"}],
    ids=lambda options: "-".join(map(str, options.values())))
def test_resumed_is_as_if_uninterrupted(digits, tmp_path, options, at):
    options = {"net": "mlp:8", "members": 2, "epochs": 3, **options}
    resumed = interrupted(digits, tmp_path / "c", at, **options)
    assert resumed.digest() == trained_before(digits, **options).digest()


def test_a_finished_checkpoint_gives_the_model_again(digits, tmp_path):
    first = train(digits, members=2, checkpoint=tmp_path / "c", **SMALL)
    seen = []
    again = train(digits, members=2, checkpoint=tmp_path / "c", resume=True,
                  progress=lambda done, total: seen.append(done), **SMALL)
    assert again.digest() == first.digest()
    assert seen == [4]


def test_a_checkpoint_of_other_frames_is_refused(digits, tmp_path):
    train(digits, members=1, checkpoint=tmp_path / "c", **SMALL)
    other = data.load("digits", limit=300, split_seed=1)
    with pytest.raises(BennError, match=r"was made with training frames [0-9a-f]{16}, not "):
        train(other, members=1, checkpoint=tmp_path / "c", resume=True, **SMALL)


@pytest.mark.parametrize(("other", "message"), [
    ({"seed": 1}, "seed 0, not 1"), ({"kind": "ib"}, "kind ab, not ib"),
    ({"distill": 3}, "distill_epochs nothing, not 3")])
def test_a_checkpoint_of_other_settings_is_refused(digits, tmp_path, other, message):
    train(digits, members=1, checkpoint=tmp_path / "c", **SMALL)
    with pytest.raises(BennError, match=f"was made with {message}; use the same"):
        train(digits, members=1, checkpoint=tmp_path / "c", resume=True, **SMALL, **other)


SCRIPT = """
import sys
from benn_fpga.sw import data
from benn_fpga.settings import Settings
from benn_fpga.sw.train import train
for ensemble in sys.argv[1:]:
    train(data.load("digits", limit=300), Settings(
        "mlp:12,9", members=2, ensemble=ensemble, epochs=2)).save(ensemble)
"""


def test_same_seed_same_bytes(digits, tmp_path):
    """In a process of its own, with other hashes and threads."""
    ensembles = ["independent", "bagging", "boost-d"]
    subprocess.run([sys.executable, "-c", SCRIPT, *ensembles], check=True, cwd=tmp_path,
                   env={"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"})
    for ensemble in ensembles:
        train(digits, "mlp:12,9", members=2, ensemble=ensemble, epochs=2).save(tmp_path / "a",
                                                                               force=True)
        first, second = (hashlib.sha256((tmp_path / n).read_bytes()).hexdigest()
                         for n in ("a", ensemble))
        assert first == second, ensemble


def test_another_seed_another_model(digits):
    one, other = (train(digits, members=1, seed=seed, **SMALL) for seed in (0, 1))
    assert (one.members[0].layers[0]["weights"]
            != other.members[0].layers[0]["weights"]).any()


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
    assert (provenance["kind"], provenance["width"], provenance["recipe"]) == ("ab", "1.0", "hw")
    assert provenance["data_sha256"] == digits.sha256
    assert (provenance["net"], provenance["seed"], provenance["lr"]) == ("mlp:12,9", 0, "0.03")


def test_progress_counts_epochs_of_members(digits):
    seen = []
    train(digits, members=3, progress=lambda done, total: seen.append((done, total)), **SMALL)
    assert seen == [(3, 6), (6, 6)]


@pytest.mark.parametrize("together", [True, False])
def test_interrupt_passes_out(digits, together):
    def interrupt(done, total):
        raise KeyboardInterrupt
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        train(digits, members=4, progress=interrupt, together=together, workers=2, **SMALL)
    assert threading.active_count() == before


@pytest.mark.parametrize(("options", "message"), [
    ({"ensemble": "boost-e"}, "`ensemble` must be one of single, independent, bagging, boost-a, "
      "boost-b, boost-c, boost-d, logitboost, average, not 'boost-e'"),
    ({"schedule": "par"}, "`schedule` must be one of indep, seq, not 'par'"),
    ({"schedule": "seq", "ensemble": "average"}, "`schedule` seq starts each member from the "
      "one before it, which `ensemble` average does not have; use `schedule` indep"),
    ({"reweight": "gradient", "ensemble": "boost-a"},
     "`reweight` must be one of sample, loss, not 'gradient'"),
    ({"reweight": "loss"}, "`reweight` is for boosting; `ensemble` independent does not weigh "
      "frames"),
    ({"reweight": "sample", "ensemble": "logitboost"}, "`ensemble` logitboost has a weight for "
      "each class of a frame, so it cannot draw frames by them; use `reweight` loss"),
    ({"vote": "hard", "ensemble": "logitboost"}, "`ensemble` logitboost trains members for the "
      "sum of their scores, which a hard vote does not see; use `vote` soft"),
    ({"distill": True, "ensemble": "logitboost"}, "`ensemble` logitboost fits a step of its own, "
      "not classes; leave out `distill`"),
    ({"distill": -1}, "`distill` must be a number of epochs, not -1"),
    ({"augment": "turn"}, "Augment must be crop, crop:PIXELS, flip or crop+flip, not 'turn'"),
    ({"kind": "xnor-net", "recipe": "hw"},
     "`kind` xnor-net has `recipe` paper, not hw; for another use `kind` sb"),
    ({"kind": "dorefa", "recipe": "x", "bits": 2},
     "`kind` dorefa has `recipe` hw, not x; for another use `kind` qnn"),
    ({"kind": "ib", "encoder": "threshold"}, "Kind ib reads inputs of 5 bit, but encoder threshold "
      "gives 1; use planes, or another kind"),
    ({"resume": True}, "Resume needs a checkpoint to go on from"),
    ({"width": 0}, "Width must be a number above 0, at most 1024, not 0"),
    ({"vote": "loud"}, "`vote` must be one of hard, soft, not 'loud'"),
    ({"ensemble": "single", "members": 2}, "`ensemble` single has 1 member, not 2; leave out "
      "`members` or use `ensemble` independent"),
    ({"members": 0}, "`members` must be 1 to 4096, not 0"),
    ({"epochs": 0}, "`epochs` must be at least 1, not 0"),
    ({"batch": 1}, "`batch` must be at least 2, not 1: one frame has no variance to normalise "
      "by"),
    ({"threads": 0}, "`threads` must be at least 1, not 0"),
    ({"workers": 0}, "Workers must be at least 1, not 0"),
    ({"seed": -1}, "`seed` must be at least 0, not -1"),
    ({"lr": 0}, "`lr` must be a positive number, not 0"),
    ({"lr": float("nan")}, "`lr` must be a positive number, not nan"),
    ({"net": "vgg"}, "Network must be tfc, sfc, lfc, nin, cnv, lenet, alexnet, resnet18 or "
      "mlp:WIDTH,WIDTH,..., not 'vgg'"),
    ({"kind": "wqb", "bits": 9}, "`bits` must be a whole number from 1 to 8, not 9"),
])
def test_wrong_options(digits, options, message):
    with pytest.raises(BennError) as caught:
        train(digits, **options)
    assert str(caught.value) == message


def test_rows_of_features_are_not_moved(digits):
    rows = dataclasses.replace(digits, shape=(64,), x_train=digits.x_train.reshape(-1, 64))
    with pytest.raises(BennError, match=r"^Augment moves images, but the data are rows of 64 fea"):
        train(rows, augment=True)


def test_divergence(digits):
    with pytest.raises(BennError) as caught:
        train(digits, "mlp:9", members=1, epochs=2, lr=1e300)
    assert str(caught.value) == "training diverged with a learning rate of 1e+300; lower `lr`"
