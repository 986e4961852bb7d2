"""What each member is given to learn from: which frames, in which order, by which loss."""

import itertools

import numpy as np
import pytest
import torch

from benn_fpga import nets, presets
from benn_fpga.presets import BOOSTS
from benn_fpga.sw import boost
from benn_fpga.sw.augment import Frames
from benn_fpga.sw.ensemble import Job
from benn_fpga.sw.fit import CrossEntropy, LeastSquares
from benn_fpga.sw.network import Network

pytestmark = pytest.mark.train

FRAMES, CLASSES, EPOCHS = 400, 10, 3
Y = np.arange(FRAMES) % CLASSES


class Recorder(Job):
    """A job whose members are not trained but told what to answer."""

    def _member(self, group, loss, orders, before=(), stop=None):
        seen.append((list(group), loss, list(itertools.islice(orders, EPOCHS)), list(before)))
        network = Network(self.layers, len(group), self.recipe, self.kind)
        network.scores = lambda x: answers[len(seen) - 1]
        return network


seen, answers = [], []


def wrong_on(frames):
    """Scores (frames, 1, classes) of a member that misses these frames."""
    given = Y.copy()
    given[frames] = (Y[frames] + 1) % CLASSES
    return np.eye(CLASSES)[given][:, None]


def run(ensemble, members=3, schedule="indep", reweight=None, together=False, told=()):
    seen.clear()
    answers[:] = told or [wrong_on([])] * members
    encoder = presets.encoder("threshold", (4,), 8, 255)
    job = Recorder(nets.build("mlp:2", encoder, CLASSES), "hw", nets.kind("ab"),
                   Frames(torch.zeros(FRAMES, 4), 1), torch.from_numpy(Y), seed=0, epochs=EPOCHS,
                   lr=0.1, batch=10)
    _, votes, stopped = job.run(members, ensemble, schedule, reweight, together)
    return votes, stopped


@pytest.mark.parametrize("together", [False, True])
def test_independent_members_see_every_frame_in_each_epoch(together):
    run("independent", together=together)
    assert [group for group, *_ in seen] == ([[0, 1, 2]] if together else [[0], [1], [2]])
    for _, loss, orders, _ in seen:
        assert isinstance(loss, CrossEntropy)
        assert (loss.weights, loss.joint) == (None, False)
        assert all(sorted(order) == list(range(FRAMES)) for order in orders)
        assert (orders[0] != orders[1]).any()


def test_average_has_one_loss_for_all():
    run("average", together=True)
    (group, loss, _, _), = seen
    assert group == [0, 1, 2]
    assert loss.joint


def bootstraps():
    return [[np.sort(order) for order in orders] for _, _, orders, _ in seen]


def test_bagging_draws_each_members_frames_once():
    run("bagging")
    draws = bootstraps()
    for orders in draws:
        assert all((order == orders[0]).all() for order in orders)
        assert 0.55 < len(np.unique(orders[0])) / FRAMES < 0.7  # 1 - 1/e on the average
    assert (draws[0][0] != draws[1][0]).any()
    assert (seen[0][2][0] != seen[0][2][1]).any()


def test_bagging_together_is_bagging_one_by_one():
    run("bagging")
    apart = [orders for _, _, orders, _ in seen]
    run("bagging", together=True)
    (_, _, orders, _), = seen
    for epoch, order in enumerate(orders):
        assert (order == np.stack([member[epoch] for member in apart], axis=1)).all()


@pytest.mark.parametrize("ensemble", ["independent", "bagging", "boost-d", "logitboost"])
def test_seq_gives_each_member_those_before_it(ensemble):
    told = [0.5 * (k + 1) * wrong_on([0]) for k in range(3)]
    run(ensemble, schedule="seq", told=told)
    assert [len(before) for *_, before in seen] == [0, 1, 2]
    run(ensemble, told=told)
    assert [len(before) for *_, before in seen] == [0, 0, 0]


@pytest.mark.parametrize("ensemble", BOOSTS[:-1])
def test_boosting_draws_frames_by_their_weights(ensemble):
    hard = np.arange(40)
    votes, _ = run(ensemble, members=2, reweight="sample", told=[wrong_on(hard), wrong_on([])])
    even = np.full(FRAMES, 1 / FRAMES)
    _, vote, weights = boost.step(ensemble, even, np.isin(np.arange(FRAMES), hard), CLASSES)
    assert votes[0] == vote
    shares = [np.mean([np.isin(order, hard).mean() for order in orders])
              for _, _, orders, _ in seen]
    expected = [0.1, weights[hard].sum() / weights.sum()]
    assert shares == pytest.approx(expected, abs=0.035)
    assert all(isinstance(loss, CrossEntropy) and loss.weights is None for _, loss, *_ in seen)
    assert (seen[1][2][0] != seen[1][2][1]).any()


@pytest.mark.parametrize("ensemble", BOOSTS[:-1])
def test_boosting_weighs_the_loss(ensemble):
    hard = np.arange(40)
    run(ensemble, members=2, reweight="loss", told=[wrong_on(hard), wrong_on([])])
    _, _, weights = boost.step(ensemble, np.full(FRAMES, 1 / FRAMES),
                               np.isin(np.arange(FRAMES), hard), CLASSES)
    first, second = (loss.weights.numpy() for _, loss, *_ in seen)
    assert (first == 1).all()
    assert second == pytest.approx(FRAMES * weights / weights.sum(), rel=1e-5)
    assert all(sorted(order) == list(range(FRAMES)) for _, _, orders, _ in seen
               for order in orders)


def test_boosting_stops_at_a_member_no_better_than_chance():
    votes, stopped = run("boost-a", told=[wrong_on([0]), wrong_on(np.arange(FRAMES)), None],
                         reweight="sample")
    assert len(votes) == 1
    assert "member 1 misses 100.0% of the weight" in stopped


def test_logitboost_fits_what_those_before_leave():
    told = [3 * wrong_on(np.arange(40)), 3 * wrong_on([]), 3 * wrong_on([])]
    run("logitboost", told=told)
    scale = Network(nets.build("mlp:2", presets.encoder("threshold", (4,), 8, 255), CLASSES),
                    1).score_scale
    logits = np.zeros((FRAMES, CLASSES))
    for (_, loss, orders, _), scores in zip(seen, told, strict=True):
        assert isinstance(loss, LeastSquares)
        targets, weights = boost.newton(logits, Y)
        assert loss.targets.numpy() == pytest.approx(targets, rel=1e-5)
        assert loss.weights.numpy() == pytest.approx(weights, rel=1e-5)
        assert all(sorted(order) == list(range(FRAMES)) for order in orders)
        logits = boost.add(logits, scores[:, 0] * scale)
