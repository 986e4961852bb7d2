import dataclasses

import numpy as np
import pytest

from benn_fpga import api, presets
from benn_fpga.errors import BennError, Interrupted
from benn_fpga.layers import Dense, weight_bits
from benn_fpga.plan.blocks import BLOCKS, in_turn
from benn_fpga.sw import data, search
from benn_fpga.sw.search import Candidate, Limit, Trial

pytestmark = pytest.mark.train
BITS = Limit(1000, lambda layers, members: members * weight_bits(layers), "weight bits")
BIG = (Dense(600, 600), Dense(600, 10, output_bits=0))
TINY = {"trials": 3, "epochs": 1, "progress": False}


def drawn(shape, frames=90):
    rng = np.random.default_rng(0)
    y = np.arange(frames) % 3
    x = rng.integers(0, 100, (frames, *shape)) + 60 * y.reshape(-1, *(1 for _ in shape))
    return x.astype(np.uint8), y


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = drawn((6,))
    np.savez("data.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    return "data.npz"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "images.npz"
    x, y = drawn((8, 8, 1), 30)
    np.savez(path, x_train=x[:20], y_train=y[:20], x_test=x[20:], y_test=y[20:])
    return data.load(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    x, y = drawn((6,))
    np.savez(path, x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    return search.search(data.load(path), BITS, trials=9, seconds=600, epochs=2, progress=False)


@pytest.mark.parametrize(("most", "count"), [(300, 8), (4000, 40), (1_000_000, 40)])
def test_no_candidate_exceeds_the_limit(images, most, count):
    limit = dataclasses.replace(BITS, most=most)
    candidates = search.draw(images, limit, 40, 1)
    assert len({dataclasses.replace(c, share=0) for c in candidates}) == len(candidates) == count
    assert all(c.cost * c.share <= most and c.cost == c.weight_bits for c in candidates)
    assert search.draw(images, limit, 40, 1) == candidates != search.draw(images, limit, 40, 2)


def test_everything_is_drawn(images):
    candidates = search.draw(images, dataclasses.replace(BITS, most=100_000), 300, 0)
    assert {c.net.partition(":")[0] for c in candidates} == {"mlp", "lenet", "nin"}  # no cnv of 8x8
    assert {c.ensemble for c in candidates} == {"single", *search.ENSEMBLES}
    assert {c.encoder for c in candidates} >= {"threshold", "thermometer:2", "planes"}
    assert {c.members for c in candidates} == set(search.MEMBERS)


def test_the_shape_of_the_default_is_drawn_first(images):
    first = search.draw(images, dataclasses.replace(BITS, most=461_000), 1, 0)
    assert [(c.net, c.encoder, c.members) for c in first] == [("mlp:128,64", "thermometer:6", 8)]


@pytest.mark.parametrize("bram", presets.BRAMS)
def test_block_rams_are_a_limit(images, bram):
    limit = api._limit(Limit, None, 3, bram)
    candidates = search.draw(images, limit, 20, 0)
    assert all(c.cost <= 3 for c in candidates)
    assert max(c.weight_bits for c in candidates) > BLOCKS[bram].bits
    assert limit.cost(BIG, 2) == in_turn(BIG, 2, BLOCKS[bram]) > 3


def test_weights_are_those_of_the_network(found):
    for trial in found.trials:
        assert 0 < trial.candidate.weight_bits <= BITS.most


def test_rungs(found):
    """Of 9 networks 5 and then 3 go on, with more folds each time."""
    rungs = [(trial.epochs, trial.folds, trial.frames) for trial in found.trials]
    assert rungs == 3 * [(2, 4, 60)] + 2 * [(1, 2, 30)] + 4 * [(1, 1, 15)]
    assert found.winner.accuracy == max(trial.accuracy for trial in found.trials[:3])
    assert found.stopped is None
    assert found.settings == found.winner.candidate.settings(seed=0, epochs=2)


def trial(bits, correct, epochs=4, share=1):
    return Trial(Candidate("mlp:", 1.0, "threshold", "ab", 1, "single", bits, bits, share), epochs,
                 1, correct, 100)


def test_front_is_of_those_that_trained_longest():
    trials = [trial(40, 90), trial(20, 80), trial(30, 80), trial(50, 85), trial(10, 99, epochs=2)]
    assert search.front(trials) == [trials[1], trials[0]]


def test_the_best_of_each_size_survive():
    trials = [trial(9, 90), trial(8, 89), trial(7, 88), trial(4, 70, share=2),
              trial(2, 60, share=4), trial(3, 65, share=2)]
    last = {each.candidate: each for each in trials}
    kept = search._survivors([], last, 4)
    assert [candidate.weight_bits for candidate in kept] == [9, 4, 2, 8]


def test_search_writes_what_train_makes_of_the_winner(file):
    model, outcome = api.search(file, "m.benn", max_bits=500, seed=3, **TINY)
    told = {name: value for name, value in vars(outcome.settings).items() if value is not None}
    assert api.train(file, progress=False, **told).digest() == model.digest()
    assert api.load("m.benn").digest() == model.digest()
    assert model.weight_bits <= 500


def test_resume_comes_to_the_same(file, monkeypatch, tmp_path):
    whole, first = api.search(file, "whole.benn", max_bits=500, **TINY)
    learn, trained = search.learn, []

    def interrupted(part, settings, **run):
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.append(settings)
        return learn(part, settings, **run)
    monkeypatch.setattr(search, "learn", interrupted)
    with pytest.raises(Interrupted, match=r"tried is in m.benn.search: go on with `resume=True`"):
        api.search(file, "m.benn", max_bits=500, **TINY)
    with pytest.raises(BennError, match=r"checkpoint m.benn.search of a run that did not finish"):
        api.search(file, "m.benn", max_bits=500, **TINY)
    with pytest.raises(BennError, match=r"was made with limit 500 weight bits, not 501 weight"):
        api.search(file, "m.benn", max_bits=501, resume=True, **TINY)
    monkeypatch.setattr(search, "learn", lambda *args, **run: trained.append(args) or
                        learn(*args, **run))
    model, then = api.search(file, "m.benn", max_bits=500, resume=True, **TINY)
    assert (model.digest(), then) == (whole.digest(), first)
    assert len(trained) == 3 * 4  # nothing twice
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "m.benn", "whole.benn"]


def test_interrupted_while_the_winner_trains(file, monkeypatch):
    from benn_fpga.sw import train
    monkeypatch.setattr(train, "train", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(Interrupted):
        api.search(file, "m.benn", max_bits=500, **TINY)


def test_time_ends(file, monkeypatch):
    """A clock that is a minute on whenever it is read."""
    times = iter(range(0, 10**6, 60))
    monkeypatch.setattr(search.time, "monotonic", lambda: next(times))
    settings = {"trials": 9, "epochs": 2, "progress": False}
    outcome = search.search(data.load(file), BITS, seconds=3600, **settings)
    assert len(outcome.trials) < 9
    assert outcome.stopped.startswith("the time was too short for ")
    with pytest.raises(BennError, match=r"no network could be trained in 1 minutes; allow more"):
        search.search(data.load(file), BITS, seconds=60, **settings)


@pytest.mark.parametrize(("options", "message"), [
    ({"max_bits": 17}, "no network has at most 17 weight bits: the smallest, mlp: with encoder "
                       "threshold and one member, has 18; allow more"),
    ({"max_bits": 0}, "the limit must be at least 1, not 0"),
    ({"max_brams": -1}, "the limit must be at least 1, not -1"),
    ({"max_brams": 1, "bram": "9k"}, "Block RAM must be one of 18k, 36k, ecp5, ice40, not '9k'"),
    ({}, "a search needs one limit: `max_bits` or `max_brams`"),
    ({"max_bits": 1, "max_brams": 1}, "a search needs one limit: `max_bits` or `max_brams`"),
    ({"max_bits": 99, "trials": 0}, "Trials must be positive, not 0"),
    ({"max_bits": 99, "time": -1}, "Time must be positive, not -1"),
    ({"max_bits": 99, "epochs": 0}, "`epochs` must be at least 1, not 0"),
])
def test_bad_limits(file, options, message):
    with pytest.raises(BennError) as caught:
        api.search(file, "m.benn", **options)
    assert str(caught.value) == message


def test_nothing_is_replaced(file, tmp_path):
    (tmp_path / "m.benn").write_text("mine")
    with pytest.raises(BennError, match=r"^m.benn exists; give another name, or `force=True`"):
        api.search(file, "m.benn", max_bits=500)
    (tmp_path / "n.benn.checkpoint").write_text("mine")
    with pytest.raises(BennError, match=r"there is a checkpoint n.benn.checkpoint of a run that"):
        api.search(file, "n.benn", max_bits=500)
