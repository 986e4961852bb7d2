import math
import threading

import numpy as np
import pytest
import torch
from torch.nn import functional

from benn_fpga.layers import Dense
from benn_fpga.sw import fit as fits
from benn_fpga.sw.augment import Frames
from benn_fpga.sw.fit import CrossEntropy, LeastSquares, Stopped, Teacher, fit
from benn_fpga.sw.network import Network

Y = torch.tensor([0, 2, 1])
FRAMES = torch.tensor([2, 0])
SCORES = torch.tensor([[[1.0, 0, 0], [0, 2, 0]], [[0, 0, 3], [1, 1, 0]]])  # (batch, K, classes)


def entropy(scores, label):
    return float(-functional.log_softmax(scores, -1)[label])


def test_cross_entropy_sums_over_members():
    expected = sum(entropy(SCORES[n, k], Y[FRAMES[n]]) for n in (0, 1) for k in (0, 1)) / 2
    assert float(CrossEntropy(Y)(SCORES, FRAMES)) == pytest.approx(expected, rel=1e-6)


def test_each_member_may_have_its_own_frames():
    own = torch.tensor([[2, 0], [0, 1]])
    expected = sum(entropy(SCORES[n, k], Y[own[n, k]]) for n in (0, 1) for k in (0, 1)) / 2
    assert float(CrossEntropy(Y)(SCORES, own)) == pytest.approx(expected, rel=1e-6)


def test_weights_of_frames():
    loss = CrossEntropy(Y, torch.tensor([0.5, 9, 2]))
    expected = sum(2 * entropy(SCORES[0, k], 1) + 0.5 * entropy(SCORES[1, k], 0)
                   for k in (0, 1)) / 2
    assert float(loss(SCORES, FRAMES)) == pytest.approx(expected, rel=1e-6)


def test_joint_loss_is_of_the_mean():
    mean = SCORES.mean(1)
    expected = (entropy(mean[0], 1) + entropy(mean[1], 0)) / 2
    assert float(CrossEntropy(Y, joint=True)(SCORES, FRAMES)) == pytest.approx(expected, rel=1e-6)


def test_distilled_loss_is_the_cross_entropy_where_they_agree():
    soft = SCORES[:, :1]
    expected = 0.1 * (entropy(SCORES[0, 0], 1) + entropy(SCORES[1, 0], 0)) / 2
    assert float(CrossEntropy(Y)(SCORES[:, :1], FRAMES, soft)) == pytest.approx(expected, rel=1e-5)


def test_distilled_loss_is_the_divergence_at_one_temperature():
    soft = torch.tensor([[[0.0, 4, 0]], [[2, 0, 0]]])
    student, teacher = (functional.log_softmax(s / 3, -1) for s in (SCORES[:, :1], soft))
    apart = functional.kl_div(student, teacher, log_target=True, reduction="none").sum(-1)
    plain = float(CrossEntropy(Y)(SCORES[:, :1], FRAMES))
    assert float(CrossEntropy(Y)(SCORES[:, :1], FRAMES, soft)) == pytest.approx(
        0.1 * plain + 0.9 * 9 * float(apart.mean()), rel=1e-6)


def test_least_squares_centres_the_scores():
    targets = torch.tensor([[0.0, 0, 0], [9, 9, 9], [2, -1, -1]])
    loss = LeastSquares(targets, torch.tensor([[1.0, 1, 2], [9, 9, 9], [1, 1, 1]]))
    scores = torch.tensor([[[5.0, 2, 2]], [[3, 0, 0]]])  # centred 2, -1, -1
    assert float(loss(scores, FRAMES)) == (0 + 4 + 1 + 2) / 2


LAYERS = (Dense(6, 5), Dense(5, 3, output_bits=0))
X = torch.from_numpy(np.random.default_rng(1).integers(0, 2, (20, 6)) * 2 - 1)
LABELS = torch.from_numpy(np.random.default_rng(2).integers(0, 3, 20))


def orders():
    rng = np.random.default_rng(3)
    while True:
        yield rng.permutation(20)


def fitted(epochs=4, network=None, **options):
    network = network or Network(LAYERS, 1).draw([np.random.default_rng(0)])
    fit(network, Frames(X, 1), CrossEntropy(LABELS), orders(), epochs=epochs, lr=0.1, batch=8,
        **options)
    return network


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(),
                                                 strict=True))


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_going_on_equals_going_through(epoch):
    kept = {}
    whole = fitted(keep=lambda epochs, tensors: kept.update({
        epochs: {key: tensor.clone() for key, tensor in tensors.items()}}))
    assert list(kept) == [1, 2, 3, 4]
    assert same(fitted(start=epoch, tensors=kept[epoch]), whole)


def test_the_step_follows_a_cosine(monkeypatch):
    seen = []

    class Adam(torch.optim.Adam):
        def step(self):
            seen.append(self.param_groups[0]["lr"])
            super().step()
    monkeypatch.setattr(fits.torch.optim, "Adam", Adam)
    fitted(epochs=2)  # of two batches each
    assert seen == [0.1 * (1 + math.cos(math.pi * n / 4)) / 2 for n in range(4)]


def test_stop():
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        fitted(stop=stop)


def test_moves_are_read_and_shared_with_the_teacher():
    seen = []

    class Seen(Teacher):
        def __init__(self):
            pass

        def logits(self, frames, moves):
            seen.append((len(frames), moves))
            return torch.zeros(len(frames), 1, 3)

    class Still(Frames):
        def batch(self, frames, moves=None):
            seen.append(moves)
            return super().batch(frames)

    network = Network(LAYERS, 1).draw([np.random.default_rng(0)])
    fit(network, Still(X, 1), CrossEntropy(LABELS), orders(), epochs=1, lr=0.1, batch=8,
        moves=lambda epoch, shape: torch.arange(shape.numel()), teacher=Seen())
    first = list(range(8))
    assert (seen[0][1].tolist(), seen[1].tolist()) == (first, first)


def test_teacher_is_the_mean_of_its_members():
    network = Network(LAYERS, 2).draw([np.random.default_rng(k) for k in (0, 1)])
    network.estimate(X)
    expected = torch.from_numpy(network.scores(X)).float().mean(1) * network.score_scale
    teacher = Teacher(network, Frames(X, 1))
    assert torch.equal(teacher.logits(torch.tensor([3, 5])), expected[[3, 5], None])
    assert torch.equal(teacher.logits(torch.tensor([[3, 5]])), expected[[3, 5]][None])
