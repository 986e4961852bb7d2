"""Shifts and mirror images of encoded frames, drawn anew in every epoch."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from benn_fpga.errors import BennError
from benn_fpga.presets import whole_number

__all__ = ["Frames", "Moves", "moves"]

_PART = 8  # a frame is shifted by at most this part of its side, if no number is given


@dataclass(frozen=True)
class Moves:
    """How far images may be shifted down or up, right or left, and whether to mirror them."""

    down: int
    right: int
    flip: bool

    def draw(self, rng, count):
        """(count, 3): shift down, shift right, and whether to mirror."""
        down, right = (rng.integers(-reach, reach + 1, count) for reach in (self.down, self.right))
        return torch.from_numpy(np.stack([down, right, rng.integers(0, 1 + self.flip, count)],
                                         axis=1))


def moves(name, shape):
    """The :class:`Moves` that ``name`` means for data of ``shape``.

    ``crop`` shifts by up to an eighth of each side, ``crop:2`` by up to 2 pixels, ``flip`` mirrors;
    ``crop+flip`` does both.
    """
    parts = name.split("+")
    crop = [part for part in parts if part != "flip"]
    kind, colon, pixels = crop[0].partition(":") if crop else ("", "", "")
    reach = whole_number(pixels)
    if len(crop) > 1 or len(parts) > len(crop) + 1 or (crop and kind != "crop") or \
            (colon and not reach):
        raise BennError(f"Augment must be crop, crop:PIXELS, flip or crop+flip, not {name!r}")
    if len(shape) != 3:
        raise BennError(f"Augment moves images, but the data are rows of {shape[0]} features")
    if reach and reach >= min(shape[:2]):
        raise BennError(f"Augment cannot shift images of {shape[0]} x {shape[1]} by {pixels} "
                        f"pixels")
    down, right = (reach or (max(1, side // _PART) if crop else 0)
                   for side in shape[:2])
    return Moves(down, right, "flip" in parts)


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
        """Inputs of these frames, in float, moved by (..., 3) as :meth:`Moves.draw` gives it."""
        x = self.x[frames]
        if moves is not None:
            x = self._moved(x.flatten(0, -4), moves.flatten(0, -2)).unflatten(0, frames.shape)
        return x.float()

    def _moved(self, x, moves):
        rows, columns = x.shape[2:]
        down, right = moves[:, :2].abs().amax(0).tolist()
        padded = functional.pad(x.permute(0, 2, 3, 1), (0, 0, right, right, down, down),
                                value=1 - (1 << self.bits))
        at = torch.arange(columns).expand(len(x), -1)
        at = torch.where(moves[:, 2:] == 1, columns - 1 - at, at) + right - moves[:, 1:2]
        below = torch.arange(rows) + down - moves[:, :1]
        image = torch.arange(len(x))[:, None, None]
        return padded[image, below[:, :, None], at[:, None]].permute(0, 3, 1, 2)
