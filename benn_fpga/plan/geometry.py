"""How a window walks over an image that comes pixel by pixel: when it may be read, what it frees.

Pixels of a frame are numbered as they come, row by row. Window p may be read when all its pixels
are there; once it was read, no pixel before ``freed(p)`` is needed again, by any later window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benn_fpga.layers import Window

__all__ = ["Slide", "Step", "Walk"]


@dataclass(frozen=True)
class Step:
    """One window.

    Members
    -------
    row, column : of its first tap, in the padded image
    last : pixels of the frame up to its last
    after : pixels of the frame that are not needed after it
    need : pixels that must have come, counted from the first that is still needed
    free : pixels that are not needed after it, but were before
    ends_row, ends_frame : it is the last of a row of windows, or of all
    """

    row: int
    column: int
    last: int
    after: int
    need: int
    free: int
    ends_row: bool
    ends_frame: bool


@dataclass(frozen=True)
class Walk:
    """The windows of a layer."""

    layer: Window

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every :class:`Step` of a frame, in order."""
        layer = self.layer
        (height, width, _), (rows, columns) = layer.shape, layer.grid
        steps, gone = [], 0
        for y in range(rows):
            for x in range(columns):
                ends_row = x == columns - 1
                ends_frame = ends_row and y == rows - 1
                if ends_frame:
                    after = height * width
                elif ends_row:
                    after = self._first(y + 1) * width
                elif self._first(y + 1) > self._first(y):
                    after = self._first(y) * width + self._first(x + 1)
                else:  # the next row of windows starts with the same row of the image
                    after = gone
                last = self._last(y, x)
                steps.append(Step(y * layer.stride, x * layer.stride, last, after, last - gone,
                                  after - gone, ends_row, ends_frame))
                gone = after
        return tuple(steps)

    def _first(self, n: int) -> int:
        """First row or column of the image in the n-th row or column of windows."""
        return max(0, n * self.layer.stride - self.layer.padding)

    def _last(self, y: int, x: int) -> int:
        """Pixels up to the last of window (y, x)."""
        (height, width, _), (kh, kw), pad = self.layer.shape, self.layer.kernel, self.layer.padding
        row = min(height, y * self.layer.stride - pad + kh) - 1
        return row * width + min(width, x * self.layer.stride - pad + kw)

    @cached_property
    def depth(self) -> int:
        """Pixels that must be held at once: (rows - 1) of the image + columns of the kernel."""
        return max(step.need for step in self.steps)

    @property
    def slots(self) -> int:
        """Pixels that the line buffer has room for.

        Of a kernel of one tap a pixel comes in while the one before it is read.
        """
        return max(2, self.depth) if self.layer.taps == 1 else self.depth

    @property
    def free_at(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Tap (row, column) after which a window has freed its pixels: inside a row of windows, at
        the end of a row, at the end of a frame."""
        (kh, kw), stride, pad = self.layer.kernel, self.layer.stride, self.layer.padding
        return ((min(pad, kh - 1), min(stride, kw) - 1), (min(stride, kh) - 1, kw - 1),
                (kh - 1, kw - 1))


@dataclass(frozen=True)
class Slide:
    """How windows of registers move over an image: one column of pixels further in each step.

    A row of the image takes ``width`` steps: more than it has columns where a row of windows is
    longer, and two where there is but one. A step takes a pixel if there is one at its position. A
    window that reaches beyond a row is complete while the next row is already coming in, and one
    that reaches below the image after all pixels are in; what is outside the image is not looked
    at.
    """

    layer: Window

    @property
    def width(self) -> int:
        """Steps of a row: two at least, so that a column is not read while it is written."""
        return max(2, self.layer.shape[1], self.layer.grid[1])

    @property
    def first(self) -> int:
        """The step that completes the first window."""
        (kh, kw), pad = self.layer.kernel, self.layer.padding
        return (kh - 1 - pad) * self.width + kw - 1 - pad

    @property
    def gaps(self) -> tuple[int, int, int]:
        """Steps from a window to the next: in a row, to the next row, to the next frame."""
        (rows, columns), stride = self.layer.grid, self.layer.stride
        across = (columns - 1) * stride
        last = self.first + (rows - 1) * stride * self.width + across
        return stride, stride * self.width - across, self.steps - last + self.first

    @property
    def steps(self) -> int:
        """Steps of a frame."""
        (height, width, _), (rows, columns) = self.layer.shape, self.layer.grid
        stride = self.layer.stride
        last = self.first + (rows - 1) * stride * self.width + (columns - 1) * stride
        return max(last + 1, (height - 1) * self.width + width)

    @cached_property
    def walk(self) -> tuple[tuple[bool, bool], ...]:
        """Of every step of a frame, whether it takes a pixel, and whether it completes a window."""
        height, width, _ = self.layer.shape
        (rows, columns), stride = self.layer.grid, self.layer.stride
        complete = {self.first + (y * self.width + x) * stride
                    for y in range(rows) for x in range(columns)}
        return tuple((n // self.width < height and n % self.width < width, n in complete)
                     for n in range(self.steps))
