import numpy as np
import pytest
import torch

from benn_fpga.errors import BennError
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


@pytest.mark.parametrize(("name", "least", "most"), [
    ("crop+flip", [-4, -1, 0], [4, 1, 1]),
    ("crop", [-4, -1, 0], [4, 1, 0]),
    ("crop:2", [-2, -2, 0], [2, 2, 0]),
    ("flip+crop:7", [-7, -7, 0], [7, 7, 1]),
    ("flip", [0, 0, 0], [0, 0, 1]),
])
def test_reach(name, least, most):
    found = augment.moves(name, (32, 8, 3)).draw(np.random.default_rng(0), 9999)
    assert (found.amin(0).tolist(), found.amax(0).tolist()) == (least, most)


@pytest.mark.parametrize("name", [
    "", "turn", "crop:", "crop:0", "crop:-1", "crop:x", "crop+", "crop+crop", "flip+flip", "flip:1",
    "crop+flip+crop", "crop:1+turn",
])
def test_unknown_moves(name):
    with pytest.raises(BennError, match=f"^Augment must be crop, .* not {name!r}$".replace(
            "+", r"\+")):
        augment.moves(name, (8, 8, 1))


def test_a_shift_out_of_the_image():
    with pytest.raises(BennError, match=r"^Augment cannot shift images of 9 x 8 by 8 pixels$"):
        augment.moves("crop:8", (9, 8, 1))


def test_images_stay_channels_last():
    x = torch.zeros(2, 3, 4, 5, dtype=torch.int8).to(memory_format=torch.channels_last)
    for moves in (None, torch.zeros(2, 3, dtype=torch.int64)):
        batch = Frames(x, 1).batch(torch.tensor([1, 0]), moves)
        assert batch.is_contiguous(memory_format=torch.channels_last)
