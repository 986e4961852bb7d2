import numpy as np
import pytest
import torch

from benn_fpga import batchnorm
from benn_fpga.sw import quantize


def test_sign_of_zero_is_plus_one():
    y = torch.tensor([-1.0, -5e-45, -0.0, 0.0, 5e-45, 7.0])
    assert quantize.sign(y).tolist() == [-1, -1, 1, 1, 1, 1]


@pytest.mark.parametrize("levels", [1, 3, 7, 15, 63])
def test_codes_count_bounds(levels):
    y = np.arange(-20, 20.25, 0.25)
    bounds = np.array(batchnorm.bounds(levels))
    expected = (y[:, None] >= bounds).sum(axis=1)
    assert quantize.codes(torch.from_numpy(y), levels).tolist() == expected.tolist()


@pytest.mark.parametrize(("levels", "values"), [(1, [-1, -1, 1, 1]), (3, [-3, -1, 1, 3])])
def test_weight(levels, values):
    latent = torch.tensor([-1.0, -0.5, 0.0, 1.0], requires_grad=True)
    quantised = quantize.weight(latent, levels)
    quantised.sum().backward()
    assert quantised.tolist() == values
    assert latent.grad.tolist() == [levels] * 4


@pytest.mark.parametrize(("levels", "passes"), [(1, [0, 0, 1, 1, 0, 0]), (3, [0, 1, 1, 1, 1, 0])])
def test_activation_gradient_stops_where_it_saturates(levels, passes):
    y = torch.tensor([-3.5, -2.0, -0.5, 0.5, 2.0, 3.5], requires_grad=True)
    quantize.activation(y, levels).sum().backward()
    assert y.grad.tolist() == passes
