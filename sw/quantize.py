"""The one definition of sign, its multi-bit form, and their straight-through gradients.

A quantiser of ``levels`` bounds gives the odd integers ``-levels, -levels + 2, ..., levels``: the
sum of the signs of the distances to the bounds. One level is the sign itself; sign(0) is +1.
"""

import torch
from torch.nn import functional

from benn_fpga import batchnorm

__all__ = ["activation", "codes", "sign", "weight"]


def sign(y):
    """+1 where ``y >= 0``, else -1."""
    return y.sign().add_(0.5).sign_()


def _odd(y, levels):
    if levels == 1:
        return sign(y)
    return sum(sign(y - bound) for bound in batchnorm.bounds(levels))


def codes(y, levels):
    """How many of the bounds each ``y`` reaches: 0..levels, in the type of ``y``."""
    return (_odd(y, levels) + levels) / 2


class _StraightThrough(torch.autograd.Function):
    """Quantise forward, pass the gradient backward as it is."""

    @staticmethod
    def forward(ctx, y, levels):
        return _odd(y, levels)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def activation(y, levels):
    """Odd integers of normalised sums; no gradient where they saturate."""
    return _StraightThrough.apply(functional.hardtanh(y, -levels, levels), levels)


def weight(latent, levels):
    """Odd integers of latent weights, which the trainer keeps in -1..1."""
    return _StraightThrough.apply(latent if levels == 1 else latent * levels, levels)
