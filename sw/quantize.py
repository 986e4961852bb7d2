"""The one definition of sign, its multi-bit form, and their straight-through gradients.

A quantiser of ``levels`` bounds gives the odd integers ``-levels, -levels + 2, ..., levels``: the
sum of the signs of the distances to the bounds. One level is the sign itself; sign(0) is +1.
"""

import torch

from benn_fpga import batchnorm

__all__ = ["activation", "codes", "instead", "sign", "weight"]

_FEW = 7  # bounds that are compared one by one


def codes(y, levels):
    """How many of the bounds each ``y`` reaches: 0..levels, in the type of ``y``."""
    if levels > _FEW:
        bounds = torch.tensor(batchnorm.bounds(levels), dtype=y.dtype)
        return torch.bucketize(y.contiguous(), bounds, right=True).to(y.dtype)
    first, *others = batchnorm.bounds(levels)
    reached = torch.ge(y, first, out=torch.empty_like(y))
    for bound in others:
        reached += y >= bound
    return reached


def _odd(y, levels):
    return codes(y, levels).mul_(2).sub_(levels)


def sign(y):
    """+1 where ``y >= 0``, else -1."""
    return _odd(y, 1)


class _Activation(torch.autograd.Function):
    """Quantise forward; pass the gradient backward where ``y`` is inside ±levels."""

    @staticmethod
    def forward(ctx, y, levels):
        ctx.save_for_backward(y)
        ctx.levels = levels
        return _odd(y, levels)

    @staticmethod
    def backward(ctx, grad):
        y, = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(grad, y, -ctx.levels, ctx.levels), None


class _StraightThrough(torch.autograd.Function):
    """Quantise forward, pass the gradient backward as it is."""

    @staticmethod
    def forward(ctx, y, function):
        return function(y)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def activation(y, levels):
    """Odd integers of normalised sums; no gradient where they saturate."""
    return _Activation.apply(y, levels)


def weight(latent, levels):
    """Odd integers of latent weights, which the trainer keeps in -1..1."""
    scaled = latent if levels == 1 else latent * levels
    return _StraightThrough.apply(scaled, lambda y: _odd(y, levels))


def instead(y, value):
    """``value`` forward, with the gradient of ``y``."""
    return _StraightThrough.apply(y, lambda _: value)
