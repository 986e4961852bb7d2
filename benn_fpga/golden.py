"""The golden model: what the hardware must compute, on packed words, in plain NumPy.

Everything follows from one formula (bits.py says what a plane is)::

    dot(w, x) = sum over i < q, j < p of 2**(i+j) * (2*popcount(xnor(w_i, x_j)) - n)

and ``popcount(xnor(a, b)) = n - popcount(a ^ b)``, in which the zero bits past the end of a packed
vector cancel. layers.py says what each kind of layer computes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benn_fpga import bits
from benn_fpga.errors import BennError
from benn_fpga.layers import (
    Add,
    Conv,
    Dense,
    Layer,
    MaxPool,
    Products,
    Scale,
    SumPool,
    Window,
)
from benn_fpga.spec import Encoder, Ensemble, Member, sources

__all__ = ["UNKNOWN", "Result", "activate", "check_input", "compute", "encode", "forward", "run",
           "sums", "vote", "windows"]

UNKNOWN = "unknown"  # the name of an answer whose margin is too small
_CHUNK_WORDS = 1 << 22  # words of scratch memory in one step
_CHUNK_VALUES = 1 << 25  # elements of all windows of a layer in one step

_Arrays: TypeAlias = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Result:
    """What :func:`run` and ``model.answer`` return; F frames, K members, C classes.

    Members
    -------
    classes, margins : (F,) the class, and its total minus the runner-up's
    totals : (F, C) the vote
    scores : (F, K, C) of each member
    rejected : (F,) the margin is below that of the model, so the answer means "unknown"; never,
        if the model has none
    class_names : of all C classes; their numbers if the model has no names
    input_type : "floats" or "bytes", which the frames were
    encoded : codes (F, elements) that the first layer read, or None
    activations : per member, the output (F, *shape) of each layer but the last, or None
    """

    classes: np.ndarray
    margins: np.ndarray
    totals: np.ndarray
    scores: np.ndarray
    rejected: np.ndarray
    class_names: tuple[str, ...]
    input_type: str = "bytes"
    encoded: np.ndarray | None = None
    activations: tuple[tuple[np.ndarray, ...], ...] | None = None

    @property
    def member_classes(self) -> np.ndarray:
        """(F, K) each member's own answer."""
        return self.scores.argmax(axis=2)

    @property
    def names(self) -> list[str]:
        """(F,) the name of the class, or "unknown" where the answer is rejected."""
        return [UNKNOWN if no else self.class_names[n]
                for n, no in zip(self.classes.tolist(), self.rejected.tolist(), strict=True)]


def check_input(encoder: Encoder, x: npt.ArrayLike) -> np.ndarray:
    """Raw values as uint8 (frames, values); raise if they cannot be streamed to this encoder."""
    x = np.asarray(x)
    if x.dtype.kind not in "iu":
        raise BennError(f"Inputs must be integers in 0..{(1 << encoder.bits) - 1}, not {x.dtype}")
    if x.shape[1:] not in (encoder.shape, (encoder.values,)):
        raise BennError(f"Inputs must have shape (frames, {', '.join(map(str, encoder.shape))}), "
                        f"not {x.shape}")
    if x.size and (x.min() < 0 or x.max() >> encoder.bits):
        raise BennError(f"Inputs must lie in 0..{(1 << encoder.bits) - 1}, "
                        f"but range from {x.min()} to {x.max()}; scale them as in training")
    return x.reshape(len(x), -1).astype(np.uint8)


def encode(encoder: Encoder, x: np.ndarray) -> np.ndarray:
    """Codes (frames, elements) of raw values (frames, values)."""
    if encoder.kind == "planes":
        return x.astype(np.uint8) >> encoder.dropped
    codes = x[:, :, None].astype(np.int32) >= encoder.thresholds[None]
    return codes.reshape(len(x), -1).astype(np.uint8)


def sums(layer: Products, weights: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``s`` (rows, outputs) of planes ``weights`` and codes (rows, inputs)."""
    # Many pairs of planes take longer than the products of the values; both are exact.
    by = _by_planes if layer.weight_bits * layer.input_bits <= 2 else _by_values
    step = max(1, _CHUNK_WORDS // (len(weights) * bits.words(codes.shape[1])))
    out = np.empty((len(codes), len(weights)), np.int64)
    for at in range(0, len(codes), step):
        out[at:at + step] = by(layer, weights, codes[at:at + step])
    return out


def _by_planes(layer: Products, weights: np.ndarray, codes: np.ndarray) -> np.ndarray:
    n, x = codes.shape[1], bits.planes(codes, layer.input_bits)
    s = np.zeros((len(codes), len(weights)), np.int64)
    for i in range(layer.weight_bits):
        for j in range(layer.input_bits):
            differ = np.bitwise_count(weights[None, :, i] ^ x[:, None, j]).sum(-1, np.int64)
            s += (1 << (i + j)) * (2 * (n - differ) - n)
    return s


def _by_values(layer: Products, weights: np.ndarray, codes: np.ndarray) -> np.ndarray:
    w = bits.value(bits.unplanes(weights, codes.shape[1]), layer.weight_bits)
    x = bits.value(codes, layer.input_bits)
    return x.astype(np.float64) @ w.astype(np.float64).T  # below 2**53, so exact


def windows(layer: Window, x: np.ndarray, fill: int | bool) -> np.ndarray:
    """(frames, rows, columns, *kernel, channels) of images ``x``; ``fill`` lies outside them."""
    pad = (layer.padding, layer.padding)
    x = np.pad(x, ((0, 0), pad, pad, (0, 0)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, layer.kernel, (1, 2))
    return view[:, ::layer.stride, ::layer.stride].transpose(0, 1, 2, 4, 5, 3)


def activate(thresholds: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Codes: how many of the output's thresholds (..., outputs, levels) its sum reaches."""
    codes = np.zeros(s.shape, np.uint8)
    for level in np.moveaxis(thresholds, -1, 0):
        codes += s >= level
    return codes


def _finished(layer: Products, arrays: _Arrays, s: np.ndarray) -> np.ndarray:
    """What Dense and Conv make of their sums."""
    return s + arrays["bias"] if layer.is_scores else activate(arrays["thresholds"], s)


def _dense(layer: Dense, arrays: _Arrays, x: np.ndarray) -> np.ndarray:
    return _finished(layer, arrays, sums(layer, arrays["weights"], x))


def _conv(layer: Conv, arrays: _Arrays, x: np.ndarray) -> np.ndarray:
    groups = zip(np.split(arrays["weights"], layer.groups),
                 np.split(windows(layer, x, fill=0), layer.groups, axis=-1), strict=True)
    s = np.concatenate([sums(layer, weights, codes.reshape(-1, layer.inputs))
                        for weights, codes in groups], axis=1)
    return _finished(layer, arrays, s.reshape(len(x), *layer.output_shape))


def _max_pool(layer: MaxPool, arrays: _Arrays, x: np.ndarray) -> np.ndarray:
    return windows(layer, x, fill=0).max(axis=(3, 4))


def _sum_pool(layer: SumPool, arrays: _Arrays, x: np.ndarray) -> np.ndarray:
    """SumPool; code 0 of a set of thresholds is for no active tap, and so on."""
    x = windows(layer, x, fill=0)
    if not layer.relu:
        s = x.sum(axis=(3, 4))
        return activate(arrays["thresholds"][:, 0], s) if layer.output_bits else s
    # A tap outside the image is never active.
    inside = windows(layer, np.ones((1, *layer.shape), bool), fill=False)
    active = (x >= arrays["active"]) & inside
    s, count = (x * active).sum(axis=(3, 4)), active.sum(axis=(3, 4))
    return activate(arrays["thresholds"][np.arange(layer.channels), count], s)


def _scale(layer: Scale, arrays: _Arrays, x: np.ndarray) -> np.ndarray:
    half = (1 << layer.shift) >> 1
    y = ((x * arrays["gain"].astype(np.int64) + half) >> layer.shift) + arrays["bias"]
    return y.clip(-layer.top, layer.top)


def _add(layer: Add, arrays: _Arrays, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    return x + other


_COMPUTE: dict[type[Layer], Callable[..., np.ndarray]] = {
    Dense: _dense, Conv: _conv, MaxPool: _max_pool, SumPool: _sum_pool, Scale: _scale, Add: _add}


def compute(layer: Layer, arrays: _Arrays, *inputs: np.ndarray) -> np.ndarray:
    """Output (frames, *output_shape) of one layer: codes as uint8, or integers as int64."""
    shaped = (x.reshape(len(x), *layer.input_shape) for x in inputs)
    return _COMPUTE[type(layer)](layer, arrays, *shaped)


def forward(layers: Sequence[Layer], member: Member, codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Output of every layer of a member, for codes (frames, elements) from the encoder."""
    outputs: dict[int | None, np.ndarray] = {None: codes}
    for n, layer in enumerate(layers):
        outputs[n] = compute(layer, member.layers[n], *(outputs[i] for i in sources(layer, n)))
    return tuple(outputs[n] for n in range(len(layers)))


def ballots(scores: np.ndarray, weights: Sequence[int], rule: str) -> np.ndarray:
    """What each member adds to every total, (frames, members, classes): its weight times its
    ``scores``, or times 1 for its best class if the ``rule`` is hard."""
    if rule == "hard":
        scores = scores.argmax(axis=2)[:, :, None] == np.arange(scores.shape[2])
    return scores * np.asarray(weights)[:, None]


def vote(model: Ensemble, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes, margins and totals of the vote over ``scores`` (frames, members, classes).

    Every tie goes to the lowest class index: ``argmax`` returns the first maximum.
    """
    totals = ballots(scores, model.vote_weights, model.vote).sum(axis=1)
    classes = totals.argmax(axis=1)
    best_two = np.sort(totals, axis=1)[:, -2:]
    return classes, best_two[:, 1] - best_two[:, 0], totals


def run(model: Ensemble, x: npt.ArrayLike, trace: bool = False) -> Result:
    """Run the ensemble on raw values ``x`` (frames, ...); ``trace`` keeps every intermediate."""
    x = check_input(model.encoder, x)
    step = max(1, _CHUNK_VALUES // max(layer.elements_read for layer in model.layers))
    parts = [_part(model, x[at:at + step], trace) for at in range(0, max(1, len(x)), step)]
    encoded, each, hidden = zip(*parts, strict=True)
    scores = np.concatenate(each)
    classes, margins, totals = vote(model, scores)
    result = Result(classes, margins, totals, scores, margins < (model.reject or 0),
                    tuple(map(model.inputs.name_of, range(model.classes))))
    if not trace:
        return result
    members = (zip(*member, strict=True) for member in zip(*hidden, strict=True))
    return replace(result, encoded=np.concatenate(encoded), activations=tuple(
        tuple(map(np.concatenate, layers)) for layers in members))


def _part(model: Ensemble, x: np.ndarray, trace: bool,
          ) -> tuple[np.ndarray, np.ndarray, list[Sequence[np.ndarray]]]:
    """Codes, scores (frames, members, classes) and hidden outputs of a few frames."""
    codes = encode(model.encoder, x)
    scores: list[np.ndarray] = []
    hidden: list[Sequence[np.ndarray]] = []
    for member in model.members:
        *before, last = forward(model.layers, member, codes)
        scores.append(last.reshape(len(x), model.classes))
        hidden.append(before if trace else ())
    return codes, np.stack(scores, axis=1), hidden
