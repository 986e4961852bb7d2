"""The layers of a network: what each reads, gives and stores, and how large its numbers can be.

A layer reads the output of the one before it, or of layer ``source``. What passes between layers
is a vector (features,) or an image (rows, columns, channels) of *codes* of some bits, each standing
for an odd integer as bits.py says, or of plain *integers* (bits 0). The formulas, for one output
channel; taps are the elements of a window, and those outside the image are as stated:

========  =======================  ============================================================
layer     from, to                 computes
========  =======================  ============================================================
Dense     codes, codes             how many thresholds ``s = sum of w * x`` reaches
..        codes, integers          ``s + bias``
Conv      codes, codes             the same for each window; outside taps are code 0
..        codes, integers
MaxPool   codes, codes             largest code of the window; outside taps are ignored
SumPool   integers, codes          how many thresholds ``S = sum of taps`` reaches; outside taps
                                   are 0. With ``relu`` only taps that reach ``active`` are added,
                                   and the thresholds are those for the number of such taps
..        integers, integers       ``S``
Scale     integers, integers       ``((gain * x + half) >> shift) + bias``, kept in ``bits`` bits
Add       integers, integers       sum of two layers
========  =======================  ============================================================
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from benn_fpga import bits
from benn_fpga.checks import whole
from benn_fpga.errors import BennError
from benn_fpga.plan import latency
from benn_fpga.plan.nodes import Front, LineBuffer, Marks, Memory, SlidingWindow, Tiles, Unit

if TYPE_CHECKING:
    from benn_fpga.plan.stages import Stage
    from benn_fpga.spec import Fold

__all__ = ["LAYER_KINDS", "MAX_SIZE", "MAX_SUM", "Add", "Conv", "Dense", "Layer", "MaxPool",
           "Products", "Scale", "SumPool", "Window", "divisors", "from_json", "weight_bits"]

# Bounds that keep a hostile file from asking for unreasonable memory, and every sum in 32 bits.
MAX_SIZE = 1 << 24
MAX_BITS = 8
MAX_SUM = (1 << 31) - 1
MAX_GAIN = (1 << 15) - 1
MAX_SHIFT = 31
MAX_INTEGER_BITS = 24

_Arrays: TypeAlias = Mapping[str, np.ndarray]
_Stored: TypeAlias = dict[str, tuple[tuple[int, ...], type[np.generic]]]  # shape and type


def divisors(n: int) -> tuple[int, ...]:
    """All divisors of ``n``, the smallest first."""
    return tuple(d for d in range(1, n + 1) if n % d == 0)


def _shape(shape: tuple[int, int, int]) -> None:
    if not isinstance(shape, tuple) or len(shape) != 3:
        raise BennError(f"Shape must be (rows, columns, channels), not {shape!r}")
    for noun, size in zip(("Rows", "Columns", "Channels"), shape, strict=True):
        whole(noun, size, 1, MAX_SIZE)
    if math.prod(shape) > MAX_SIZE:
        raise BennError(f"Image of {math.prod(shape)} elements is over the limit {MAX_SIZE}")


def _limit(noun: str, value: int, most: int = MAX_SUM // 4) -> None:
    if value > most:
        raise BennError(f"{noun} up to {value}, over the limit {most}; use fewer inputs or bits")


def _thresholds(where: str, t: np.ndarray, limit: int) -> None:
    if t.size and (t.min() < -limit or t.max() > limit + 1):
        raise BennError(f"{where}: thresholds must lie in {-limit}..{limit + 1}")
    if (np.diff(t, axis=-1) < 0).any():
        raise BennError(f"{where}: thresholds of an output must be sorted")


@dataclass(frozen=True)
class Layer(ABC):
    """What all layers have in common; ``source`` is the index of the layer it reads."""

    kind: ClassVar[str]
    reads_frames: ClassVar[bool] = False  # a frame is one vector; else it is read pixel by pixel

    _: KW_ONLY
    source: int | None = None

    @property
    def sources(self) -> tuple[int | None, ...]:
        """Indices of the layers it reads; None is the one before."""
        return (self.source,)

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]: ...

    @property
    def input_bits(self) -> int:
        """Bits of a code that it reads, 0 if it reads integers."""
        return 0

    @property
    def output_bits(self) -> int:
        """... that it gives."""
        return 0

    @property
    def weight_bits(self) -> int:
        """Bits of a weight, 0 if it has none."""
        return 0

    @property
    def elements_read(self) -> int:
        """Elements of a frame that it reads, each as often as it is in a window."""
        return math.prod(self.input_shape)

    @property
    def foldable(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """What PE must divide, and what SIMD must, each with its name."""
        return (self.output_shape[-1], "channels"), (1, "inputs")

    @property
    def wide_simds(self) -> tuple[int, ...]:
        """More values that SIMD may have."""
        return ()

    @property
    def pes(self) -> tuple[int, ...]:
        """All values that PE may have."""
        return divisors(self.foldable[0][0])

    @property
    def simds(self) -> tuple[int, ...]:
        """All values that SIMD may have."""
        return (*divisors(self.foldable[1][0]), *self.wide_simds)

    @property
    def levels(self) -> int:
        """Thresholds per output."""
        return (1 << self.output_bits) - 1

    @property
    def stored_bits(self) -> int:
        """Bits of weights."""
        return 0

    @property
    def operations(self) -> int:
        """One-bit products per frame, one for each pair of bit planes."""
        return 0

    def arrays(self) -> _Stored:
        """Shape and type of each array that a member stores for this layer, by name."""
        return {}

    def check(self, where: str, arrays: _Arrays,  # noqa: B027  (some have nothing to check)
              inputs: Sequence[int]) -> None:
        """Raise if the numbers in ``arrays`` are out of bounds; ``inputs``: limits of sources."""

    def limit(self, arrays: _Arrays, inputs: Sequence[int]) -> int:
        """Largest absolute integer that it gives; ``inputs`` as in :meth:`check`."""
        raise NotImplementedError(f"{self.kind} gives codes")

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self)}

    # What it becomes in the plan, folded by a spec.Fold: PE channels in and out, unless it says
    # otherwise, and a register.

    def lanes_in(self, fold: Fold) -> int:
        """Elements of a word that comes in."""
        return fold.pe

    def front(self, fold: Fold) -> tuple[type[Front], ...]:
        """Node kinds that cut what it reads out of the pixels that come."""
        return ()

    def reads_per_word(self, fold: Fold) -> int:
        """Words that it reads for a word that it gives."""
        return 1

    def xnor_lanes(self, fold: Fold) -> int:
        """Products that it computes in a cycle."""
        return 0

    def bits_beside(self, fold: Fold) -> int:
        """Bits that a fold needs beside its lanes, roughly: to compare folds of as many lanes."""
        return 0

    @property
    def xnor_planes(self) -> int:
        """XNOR gates of a product."""
        return 0

    @property
    def marks(self) -> Marks:
        """What its unit must know of a word."""
        return Marks.NONE

    @property
    def is_marked(self) -> bool:
        """Whether only words that are marked as last become a pixel."""
        return False

    sized_by_value: ClassVar[tuple[str, ...]] = ()  # arrays whose width depends on what they hold
    # Whether its unit reads inputs once that all engines share, and knows of inputs to come.
    shares_inputs: ClassVar[bool] = False

    def latency(self, fold: Fold, rounds: int, adder_levels: int) -> int:
        """Cycles from the last word that an output needs to that output."""
        return 1

    def reads_ahead(self, fold: Fold, rounds: int) -> int:
        """Of these, the first in which it need not have the word yet."""
        return 0

    def memories(self, unit: Unit) -> dict[str, Memory]:
        """Memories of its unit, by name."""
        return {}

    def weights(self, stage: Stage, rounds: int) -> Memory | None:
        """That of the weights of an engine which runs so many members in turn."""
        return None

    def is_unrolled(self, fold: Fold, rounds: int) -> bool:
        """Whether these are constants: a single word."""
        return False


def weight_bits(layers: Iterable[Layer]) -> int:
    """Bits of the weights of one member."""
    return sum(layer.stored_bits for layer in layers)


def _table(unit: Unit, bits_: int, copies: int = 1, entries: int = 1) -> Memory:
    """A memory of constants, in which every word of a pixel has one word per round."""
    return Memory(unit.rounds * unit.stage.words_out * entries, bits_, copies, constant=True)


class Products(Layer):
    """``outputs`` sums of ``inputs`` products each: what Dense and Conv share."""

    shares_inputs = True

    outputs: int
    weight_bits: int

    if TYPE_CHECKING:  # a field of Dense, which a property here would keep from being set
        @property
        def inputs(self) -> int: ...

    def _check_bits(self) -> None:
        whole("Layer outputs", self.outputs, 1, MAX_SIZE)
        whole("Weight bits", self.weight_bits, 1, MAX_BITS)
        whole("Input bits", self.input_bits, 1, MAX_BITS)
        whole("Output bits", self.output_bits, 0, MAX_BITS)
        _limit(f"Layer of {self.inputs} inputs sums", self.max_sum)

    @property
    def positions(self) -> int:
        """Number of windows."""
        return 1

    @property
    def max_sum(self) -> int:
        """``s`` lies in -max_sum..max_sum, in steps of 2."""
        return self.inputs * ((1 << self.weight_bits) - 1) * ((1 << self.input_bits) - 1)

    @property
    def is_scores(self) -> bool:
        return self.output_bits == 0

    @property
    def popcount_bits(self) -> int:
        """Width of the weighted popcount ``P = (s + max_sum) / 2`` and of its thresholds."""
        return (self.max_sum + 1).bit_length()

    def entry_bits(self, output_bits: int) -> int:
        """Width of what is stored for an output, which has ``output_bits``, beside its weights:
        its offset, what is missing to its threshold with a bit that says it is reached, or its
        thresholds."""
        if self.is_scores:
            return output_bits
        if self.levels == 1:
            return self.max_sum.bit_length() + 1
        return self.levels * self.popcount_bits

    @property
    def stored_bits(self) -> int:
        return self.inputs * self.outputs * self.weight_bits

    @property
    def operations(self) -> int:
        return self.stored_bits * self.input_bits * self.positions

    def arrays(self) -> _Stored:
        weights = (self.outputs, self.weight_bits, bits.words(self.inputs))
        if self.is_scores:
            return {"weights": (weights, np.uint64), "bias": ((self.outputs,), np.int32)}
        return {"weights": (weights, np.uint64),
                "thresholds": ((self.outputs, self.levels), np.int32)}

    def check(self, where: str, arrays: _Arrays, inputs: Sequence[int]) -> None:
        tail = self.inputs % bits.WORD
        if tail and (arrays["weights"][..., -1] >> np.uint64(tail)).any():
            raise BennError(f"{where}: weight bits past input {self.inputs - 1} must be 0")
        if not self.is_scores:
            _thresholds(where, arrays["thresholds"], self.max_sum)
        elif (np.abs(arrays["bias"].astype(np.int64)) > MAX_SUM // 4).any():
            raise BennError(f"{where}: bias must lie in ±{MAX_SUM // 4}")

    def limit(self, arrays: _Arrays, inputs: Sequence[int]) -> int:
        return self.max_sum + int(np.abs(arrays["bias"].astype(np.int64)).max())

    def lanes_in(self, fold: Fold) -> int:
        return fold.simd

    def reads_per_word(self, fold: Fold) -> int:
        return self.inputs // fold.simd

    def xnor_lanes(self, fold: Fold) -> int:
        return fold.pe * fold.simd

    def bits_beside(self, fold: Fold) -> int:
        """Each output has an accumulator, with an adder and what it starts from; each input is
        collected, held in a buffer and read from it. The weights rank folds of `sfc` on an ECP5."""
        return 5 * fold.pe * self.popcount_bits + 3 * fold.simd * self.input_bits

    @property
    def xnor_planes(self) -> int:
        return self.weight_bits * self.input_bits

    def latency(self, fold: Fold, rounds: int, adder_levels: int) -> int:
        return latency.layer_latency(self, fold, rounds, adder_levels)

    def reads_ahead(self, fold: Fold, rounds: int) -> int:
        return latency.weights_latency(self, fold, rounds)

    def memories(self, unit: Unit) -> dict[str, Memory]:
        fold, ways = unit.stage.fold, unit.o.ways
        return {"weights": dataclasses.replace(self.weights(unit.stage, unit.rounds), copies=ways),
                "table": _table(unit, fold.pe * self.entry_bits(unit.o.element_bits), ways)}

    def weights(self, stage: Stage, rounds: int) -> Memory:
        return Memory(rounds * stage.reads, stage.fold.pe * stage.fold.simd * self.weight_bits,
                      constant=True)

    def is_unrolled(self, fold: Fold, rounds: int) -> bool:
        return (self.outputs // fold.pe) * (self.inputs // fold.simd) * rounds == 1


@dataclass(frozen=True)
class Dense(Products):
    """A fully connected layer. ``output_bits`` of 0 gives integers, as the score layer does.

    An image is read as the vector that bits.py says it is.
    """

    kind = "dense"
    reads_frames = True

    inputs: int
    outputs: int
    weight_bits: int = 1
    input_bits: int = 1
    output_bits: int = 1

    def __post_init__(self) -> None:
        whole("Layer inputs", self.inputs, 1, MAX_SIZE)
        self._check_bits()

    @property
    def foldable(self) -> tuple[tuple[int, str], tuple[int, str]]:
        return (self.outputs, "outputs"), (self.inputs, "inputs")

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.inputs,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outputs,)


@dataclass(frozen=True)
class _Image(Layer):
    """A layer that reads images of ``shape``, and gives images of that shape by default."""

    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        _shape(self.shape)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.shape


@dataclass(frozen=True)
class Window(_Image):
    """A layer that moves a window over an image."""

    kernel: tuple[int, int]
    stride: int = 1
    padding: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, tuple) or len(self.kernel) != 2:
            raise BennError(f"Kernel must be (rows, columns), not {self.kernel!r}")
        whole("Padding", self.padding, 0, MAX_SIZE)
        whole("Stride", self.stride, 1, MAX_SIZE)
        for noun, size, kernel in zip(("rows", "columns"), self.shape, self.kernel, strict=False):
            whole(f"Kernel {noun}", kernel, 1, MAX_SIZE)
            if kernel > size + 2 * self.padding:
                raise BennError(f"Kernel of {kernel} {noun} is larger than the image of {size}"
                                + (f" padded by {self.padding}" if self.padding else ""))
            if self.padding >= kernel:
                raise BennError(f"Padding {self.padding} must be less than the kernel's "
                                f"{kernel} {noun}")

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of windows."""
        rows, columns = ((size + 2 * self.padding - kernel) // self.stride + 1
                         for size, kernel in zip(self.shape, self.kernel, strict=False))
        return rows, columns

    @property
    def positions(self) -> int:
        """Number of windows."""
        return math.prod(self.grid)

    @property
    def elements_read(self) -> int:
        return self.positions * self.taps * self.channels

    @property
    def spacing(self) -> tuple[int, int]:
        """Rows and columns from a window to the next; where there is but one, at least its own."""
        rows, columns = (self.stride if count > 1 else max(self.stride, kernel)
                         for count, kernel in zip(self.grid, self.kernel, strict=True))
        return rows, columns

    @property
    def channels(self) -> int:
        return self.shape[2]

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (*self.grid, self.channels)

    def parts(self, fold: Fold) -> int:
        """Parts of the channels that are read one after another."""
        return self.channels // fold.pe

    @property
    def covered(self) -> int:
        """Pixels that are in a window, if windows do not overlap."""
        return math.prod(
            sum(min(size, n * self.stride - self.padding + kernel)
                - max(0, n * self.stride - self.padding) for n in range(count))
            for size, kernel, count in zip(self.shape, self.kernel, self.grid, strict=False))

    @property
    def _thinned(self) -> tuple[type[Front], ...]:
        """It reads one tap here and there; pixels between them are dropped at once."""
        return (Tiles,) if self.taps == 1 and self.stride > 1 else ()


@dataclass(frozen=True)
class Conv(Window, Products):
    """A convolution. Its weights are ordered as a window is: row, column, channel fastest.

    With ``groups`` G, output o reads the o // (outputs / G)-th part of the channels.
    """

    kind = "conv"

    outputs: int = 0
    weight_bits: int = 1
    input_bits: int = 1
    output_bits: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("Groups", self.groups, 1, MAX_SIZE)
        for noun, size in (("channels", self.channels), ("outputs", self.outputs)):
            if size % self.groups:
                raise BennError(f"Groups {self.groups} must divide the {size} {noun}")
        self._check_bits()

    @property
    def foldable(self) -> tuple[tuple[int, str], tuple[int, str]]:
        group = " in a group" if self.groups > 1 else ""
        return ((self.outputs // self.groups, f"outputs{group}"),
                (self.channels // self.groups, f"channels{group}"))

    @property
    def inputs(self) -> int:
        """Products in a sum."""
        return self.taps * (self.channels // self.groups)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (*self.grid, self.outputs)

    def parts(self, fold: Fold) -> int:
        return self.groups

    def lanes_in(self, fold: Fold) -> int:
        return min(fold.simd, self.channels)

    def front(self, fold: Fold) -> tuple[type[Front], ...]:
        if fold.simd > self.channels:
            return (SlidingWindow,)
        replayed = self.taps > 1 or self.outputs > fold.pe
        return (*self._thinned, *((LineBuffer,) if replayed else ()))

    @property
    def wide_simds(self) -> tuple[int, ...]:
        """SIMD of more than a tap: taps of a row, rows, the window; there are none with groups."""
        rows, columns = self.kernel
        taps = {*divisors(columns), *(columns * n for n in divisors(rows))} - {1}
        return tuple(self.channels * n for n in sorted(taps)) if self.groups == 1 else ()


@dataclass(frozen=True)
class _Pool(Window):
    """A window that gives one number per channel."""

    @property
    def is_tiled(self) -> bool:
        """Whether windows, of some taps, do not overlap: then pixels need not be kept."""
        return self.taps > 1 and all(
            space >= kernel for space, kernel in zip(self.spacing, self.kernel, strict=True))

    def partial_words(self, lanes: int) -> int:
        """Words of ``lanes`` channels in which partial results are held."""
        return self.grid[1] * (self.channels // lanes) if self.is_tiled else 1

    @property
    def marks(self) -> Marks:
        return Marks.TILE if self.is_tiled else Marks.TAP

    @property
    def is_marked(self) -> bool:
        return self.is_tiled

    def front(self, fold: Fold) -> tuple[type[Front], ...]:
        if self.is_tiled:
            return (Tiles,)
        return (LineBuffer,) if self.taps > 1 else self._thinned

    def reads_per_word(self, fold: Fold) -> int:
        return self.taps if self.front(fold) == (LineBuffer,) else 1

    def _partials(self, unit: Unit, bits_: int) -> dict[str, Memory]:
        """Partial results of tiles."""
        lanes = unit.stage.fold.pe
        return {"partials": Memory(self.partial_words(lanes), lanes * unit.o.ways * bits_)
                } if self.is_tiled else {}


@dataclass(frozen=True)
class MaxPool(_Pool):
    """The largest code of each window, channel by channel."""

    kind = "maxpool"

    code_bits: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("Code bits", self.code_bits, 1, MAX_BITS)

    @property
    def input_bits(self) -> int:
        return self.code_bits

    @property
    def output_bits(self) -> int:
        return self.code_bits

    def latency(self, fold: Fold, rounds: int, adder_levels: int) -> int:
        return latency.max_latency(self, fold.pe)

    def memories(self, unit: Unit) -> dict[str, Memory]:
        return self._partials(unit, self.code_bits)


@dataclass(frozen=True)
class SumPool(_Pool):
    """The sum of each window, channel by channel; then thresholds if ``output_bits`` is not 0.

    An average pool before batch norm is this, with the division in the thresholds. A window of one
    tap is the thresholds alone.
    """

    kind = "sumpool"

    output_bits: int = 0
    relu: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("Output bits", self.output_bits, 0, MAX_BITS)
        if not isinstance(self.relu, bool):
            raise BennError(f"Relu must be true or false, not {self.relu!r}")
        if self.relu and not self.output_bits:
            raise BennError("A pool with relu must have thresholds: output bits from 1")

    @property
    def entries(self) -> int:
        """Sets of thresholds: one for each number of active taps, or one."""
        return self.taps + 1 if self.relu else 1

    def sum_bits(self, input_bits: int) -> int:
        """Width of a threshold: as a signed number, every sum of integers of so many bits, and the
        threshold that none reaches."""
        largest = self.taps << (input_bits - 1)
        return max(largest - 1, largest - self.taps + 1).bit_length() + 1

    @staticmethod
    def active_bits(input_bits: int) -> int:
        """Width of the least active input: one value more, which no input reaches."""
        return input_bits + 1

    def address_bits(self, lanes: int, rounds: int) -> int:
        """Width of an address in the thresholds that a lane has."""
        return max(1, (rounds * (self.channels // lanes) * self.entries - 1).bit_length())

    def arrays(self) -> _Stored:
        if not self.output_bits:
            return {}
        thresholds = (self.channels, self.entries, self.levels)
        if self.relu:
            return {"thresholds": (thresholds, np.int32), "active": ((self.channels,), np.int32)}
        return {"thresholds": (thresholds, np.int32)}

    def max_sum(self, inputs: Sequence[int]) -> int:
        """Largest absolute sum of a window."""
        return self.taps * inputs[0]

    def check(self, where: str, arrays: _Arrays, inputs: Sequence[int]) -> None:
        _limit(f"{where}: windows of {self.taps} sum", self.max_sum(inputs), MAX_SUM - 1)
        if self.output_bits:
            _thresholds(where, arrays["thresholds"], self.max_sum(inputs))
        if self.relu and (np.abs(arrays["active"].astype(np.int64)) > inputs[0] + 1).any():
            raise BennError(f"{where}: active must lie in ±{inputs[0] + 1}")

    def limit(self, arrays: _Arrays, inputs: Sequence[int]) -> int:
        return self.max_sum(inputs)

    def latency(self, fold: Fold, rounds: int, adder_levels: int) -> int:
        return sum(latency.pool_latency(self, fold.pe, rounds))

    def memories(self, unit: Unit) -> dict[str, Memory]:
        if not self.output_bits:
            return self._partials(unit, unit.o.element_bits)
        lanes, ways, input_bits = unit.stage.fold.pe, unit.o.ways, unit.i.element_bits
        width = self.sum_bits(input_bits)
        if not self.relu:
            return {"table": _table(unit, lanes * ways * self.levels * width),
                    **self._partials(unit, width)}
        # Every lane has a table of its own, since it counts its own active taps.
        return {"table": _table(unit, self.levels * width, copies=lanes * ways,
                                entries=self.entries),
                "active": _table(unit, lanes * ways * self.active_bits(input_bits)),
                **self._partials(unit, width + self.address_bits(lanes, unit.rounds))}


@dataclass(frozen=True)
class Scale(_Image):
    """Integers brought to another scale: ``((gain * x + half) >> shift) + bias`` per channel.

    ``half`` is half of ``1 << shift``; the result is kept in ±(2**(integer_bits - 1) - 1).
    """

    kind = "scale"
    sized_by_value = ("gain", "bias")

    shift: int
    integer_bits: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("Shift", self.shift, 0, MAX_SHIFT)
        whole("Integer bits", self.integer_bits, 2, MAX_INTEGER_BITS)

    @property
    def top(self) -> int:
        return (1 << (self.integer_bits - 1)) - 1

    def arrays(self) -> _Stored:
        return {"gain": (self.shape[-1:], np.int32), "bias": (self.shape[-1:], np.int32)}

    def check(self, where: str, arrays: _Arrays, inputs: Sequence[int]) -> None:
        if (np.abs(arrays["gain"].astype(np.int64)) > MAX_GAIN).any():
            raise BennError(f"{where}: gain must lie in ±{MAX_GAIN}")
        if (np.abs(arrays["bias"].astype(np.int64)) > MAX_SUM // 4).any():
            raise BennError(f"{where}: bias must lie in ±{MAX_SUM // 4}")

    def limit(self, arrays: _Arrays, inputs: Sequence[int]) -> int:
        return self.top

    def latency(self, fold: Fold, rounds: int, adder_levels: int) -> int:
        return latency.scale_latency(self, fold.pe, rounds)

    def memories(self, unit: Unit) -> dict[str, Memory]:
        return {key: _table(unit, unit.stage.fold.pe * unit.o.ways * width)
                for key, width in unit.constants}


@dataclass(frozen=True)
class Add(_Image):
    """The sum of two layers' integers, of layer ``source`` and layer ``other``."""

    kind = "add"

    _: KW_ONLY
    other: int

    @property
    def sources(self) -> tuple[int | None, ...]:
        return (self.source, self.other)

    def check(self, where: str, arrays: _Arrays, inputs: Sequence[int]) -> None:
        _limit(f"{where}: sums are", sum(inputs), MAX_SUM - 1)

    def limit(self, arrays: _Arrays, inputs: Sequence[int]) -> int:
        return sum(inputs)


LAYER_KINDS: dict[str, type[Layer]] = {
    layer_kind.kind: layer_kind for layer_kind in (Dense, Conv, MaxPool, SumPool, Scale, Add)}


def from_json(item: Mapping[str, Any]) -> Layer:
    """The layer that :meth:`describe` wrote; every wrong key or type is one clear error."""
    name = item.get("kind")
    layer_kind = LAYER_KINDS.get(name) if isinstance(name, str) else None
    if layer_kind is None:
        raise BennError(f"kind of layer must be one of {', '.join(LAYER_KINDS)}, not {name!r}")
    fields = {f.name for f in dataclasses.fields(layer_kind)}
    if set(item) - {"kind"} != fields:
        raise BennError(f"{layer_kind.kind} layer must have the keys {', '.join(sorted(fields))}, "
                        f"not {', '.join(sorted(set(item) - {'kind'}))}")
    item = {key: tuple(value) if isinstance(value, list) else value
            for key, value in item.items() if key != "kind"}
    return layer_kind(**item)
