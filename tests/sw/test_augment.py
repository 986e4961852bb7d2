import numpy as np
import torch

from benn_fpga.sw import augment
from benn_fpga.sw.augment import Frames

# Two images of 3 rows and 4 columns, one channel, codes of 4 bits.
X = torch.arange(-11, 13, 2).reshape(1, 1, 3, 4).repeat(2, 1, 1, 1).to(torch.int8)


def moved(down, right, mirror):
    move = torch.tensor([[0, 0, 0], [down, right, mirror]])
    same, other = Frames(X, 4).batch(torch.tensor([0, 1]), move)
    assert (same == X[0]).all()
    return other[0].int().tolist()


def test_shift():
    assert moved(1, 0, 0) == [[-15] * 4, [-11, -9, -7, -5], [-3, -1, 1, 3]]
    assert moved(-1, 1, 0) == [[-15, -3, -1, 1], [-15, 5, 7, 9], [-15] * 4]


def test_mirror():
    assert moved(0, 0, 1) == [[-5, -7, -9, -11], [3, 1, -1, -3], [11, 9, 7, 5]]


def test_every_member_has_its_own_moves():
    frames, moves = torch.tensor([[0, 1]]), torch.tensor([[[1, 0, 0], [0, 0, 1]]])
    both = Frames(X, 4).batch(frames, moves)
    assert both.shape == (1, 2, 1, 3, 4)
    assert both[0, :, 0].int().tolist() == [moved(1, 0, 0), moved(0, 0, 1)]


def test_reach_is_an_eighth_of_the_side():
    moves = augment.draw(np.random.default_rng(0), 9999, (32, 8, 3), flip=True)
    assert moves.amin(0).tolist() == [-4, -1, 0]
    assert moves.amax(0).tolist() == [4, 1, 1]
    assert not augment.draw(np.random.default_rng(0), 99, (8, 8, 1), flip=False)[:, 2].any()


def test_images_stay_channels_last():
    x = torch.zeros(2, 3, 4, 5, dtype=torch.int8).to(memory_format=torch.channels_last)
    for moves in (None, torch.zeros(2, 3, dtype=torch.int64)):
        batch = Frames(x, 1).batch(torch.tensor([1, 0]), moves)
        assert batch.is_contiguous(memory_format=torch.channels_last)
