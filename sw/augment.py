"""Shifts and mirror images of encoded frames, drawn anew in every epoch."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

__all__ = ["Frames", "draw"]

_PART = 8  # a frame is shifted by at most this part of its side


def _reach(side):
    return max(1, side // _PART)


def draw(rng, count, shape, flip):
    """(count, 3): shift down, shift right, and whether to mirror, of images of ``shape``."""
    down, right = (rng.integers(-_reach(side), _reach(side) + 1, count) for side in shape[:2])
    return torch.from_numpy(np.stack([down, right, rng.integers(0, 1 + flip, count)], axis=1))


@dataclass(frozen=True, eq=False)
class Frames:
    """Encoded inputs as from :func:`benn_fpga.sw.network.values`; outside them is code 0.

    Parameters
    ----------
    x : (frames, features) or (frames, channels, rows, columns)
    bits : of a code
    """

    x: torch.Tensor
    bits: int

    def batch(self, frames, moves=None):
        """Inputs of these frames, in float, moved by (..., 3) as :func:`draw` gives it."""
        x = self.x[frames]
        if moves is not None:
            x = self._moved(x.flatten(0, -4), moves.flatten(0, -2)).unflatten(0, frames.shape)
        return x.float()

    def _moved(self, x, moves):
        rows, columns = x.shape[2:]
        down, right = _reach(rows), _reach(columns)
        padded = functional.pad(x.permute(0, 2, 3, 1), (0, 0, right, right, down, down),
                                value=1 - (1 << self.bits))
        at = torch.arange(columns).expand(len(x), -1)
        at = torch.where(moves[:, 2:] == 1, columns - 1 - at, at) + right - moves[:, 1:2]
        below = torch.arange(rows) + down - moves[:, :1]
        image = torch.arange(len(x))[:, None, None]
        return padded[image, below[:, :, None], at[:, None]].permute(0, 3, 1, 2)
