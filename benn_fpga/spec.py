"""What a model and a design are: dataclasses that can not hold an invalid one."""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field

import numpy as np

from benn_fpga import bits
from benn_fpga.errors import BennError

__all__ = ["ENCODERS", "VOTES", "Dense", "Encoder", "Ensemble", "Fold", "Folding", "Member"]

ENCODERS = ("threshold", "thermometer", "planes")
VOTES = ("hard", "soft")

# Bounds that keep a hostile file from asking for unreasonable memory, and every sum in 32 bits.
MAX_SIZE = 1 << 24
MAX_BITS = 8
MAX_LAYERS = 256
MAX_MEMBERS = 4096
MAX_SUM = (1 << 31) - 1
MAX_CLASSES = 1 << 16  # an answer names its class in 16 bits


def _whole(noun, value, low, high):
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BennError(f"{noun} must be a whole number from {low} to {high}, not {value!r}")


def _array(noun, value, shape, dtype):
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise BennError(f"{noun} must be an array of {np.dtype(dtype)} {shape}, not {got}")


def _json(provenance):
    try:
        if not isinstance(provenance, dict):
            raise TypeError
        json.dumps(provenance, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BennError("Provenance must be a dict of JSON, without NaN and infinity") from None


def _one_of(noun, value, known):
    if value not in known:
        raise BennError(f"{noun} must be one of {', '.join(known)}, not {value!r}")


@dataclass(frozen=True, eq=False)
class Encoder:
    """Turns raw values, one byte each, into the elements that the first layer reads.

    ``threshold``: element = [value >= t]. ``thermometer``: ``levels`` elements per value, element j
    = [value >= t[j]], t sorted. ``planes``: the value itself, an element of ``bits`` bits.

    Parameters
    ----------
    kind : one of :data:`ENCODERS`
    shape : shape of one input, (rows, columns, channels) or (features,)
    bits : width of a raw value, 1 to 8
    thresholds : int32 (1, levels) common to all values, or (values, levels); (1, 0) for ``planes``
    """

    kind: str
    shape: tuple[int, ...]
    bits: int
    thresholds: np.ndarray

    def __post_init__(self):
        _one_of("Encoder", self.kind, ENCODERS)
        if not isinstance(self.shape, tuple) or len(self.shape) not in (1, 3):
            raise BennError(f"Input shape must be (rows, columns, channels) or (features,), "
                            f"not {self.shape!r}")
        for size in self.shape:
            _whole("Input size", size, 1, MAX_SIZE)
        if self.values > MAX_SIZE:
            raise BennError(f"Input of {self.values} values is larger than the limit {MAX_SIZE}")
        _whole("Encoder bits", self.bits, 1, 8)
        t = self.thresholds
        if not isinstance(t, np.ndarray) or t.ndim != 2 or t.dtype != np.int32:
            raise BennError("Encoder thresholds must be an int32 array with two axes")
        if t.shape[0] not in (1, self.values):
            raise BennError(f"Encoder thresholds must have 1 or {self.values} rows, not {len(t)}")
        expected = {"planes": t.shape == (1, 0), "threshold": self.levels == 1,
                    "thermometer": 1 <= self.levels <= 256}
        if not expected[self.kind]:
            raise BennError(f"Encoder {self.kind} can not have {self.levels} levels")
        if t.size and (t.min() < 0 or t.max() > 1 << self.bits or (np.diff(t) < 0).any()):
            raise BennError(f"Encoder thresholds must be sorted and lie in 0..{1 << self.bits}")

    @property
    def values(self):
        """Raw values (bytes) in one frame."""
        return math.prod(self.shape)

    @property
    def levels(self):
        return self.thresholds.shape[1]

    @property
    def element_bits(self):
        """Bits of one element that the first layer reads."""
        return self.bits if self.kind == "planes" else 1

    @property
    def elements_per_value(self):
        return self.levels if self.kind != "planes" else 1

    @property
    def outputs(self):
        """Elements in one encoded frame."""
        return self.values * self.elements_per_value

    def describe(self):
        return {"kind": self.kind, "shape": list(self.shape), "bits": self.bits}


@dataclass(frozen=True)
class Dense:
    """A fully connected layer: ``s = dot(w, x)`` per output, then thresholds or a bias.

    ``output_bits`` of 0 makes it the score layer: ``s + bias``, no thresholds.
    """

    inputs: int
    outputs: int
    weight_bits: int = 1
    input_bits: int = 1
    output_bits: int = 1

    def __post_init__(self):
        _whole("Layer inputs", self.inputs, 1, MAX_SIZE)
        _whole("Layer outputs", self.outputs, 1, MAX_SIZE)
        _whole("Weight bits", self.weight_bits, 1, MAX_BITS)
        _whole("Input bits", self.input_bits, 1, MAX_BITS)
        _whole("Output bits", self.output_bits, 0, MAX_BITS)
        if self.max_sum > MAX_SUM // 4:
            raise BennError(f"Layer of {self.inputs} inputs sums up to {self.max_sum}, "
                            f"over the limit {MAX_SUM // 4}; use fewer inputs or bits")

    @property
    def max_sum(self):
        """``s`` lies in -max_sum..max_sum, in steps of 2."""
        return self.inputs * ((1 << self.weight_bits) - 1) * ((1 << self.input_bits) - 1)

    @property
    def levels(self):
        """Thresholds per output."""
        return (1 << self.output_bits) - 1

    @property
    def is_scores(self):
        return self.output_bits == 0

    @property
    def popcount_bits(self):
        """Width of the weighted popcount ``P = (s + max_sum) / 2`` and of its thresholds."""
        return (self.max_sum + 1).bit_length()

    @property
    def weight_shape(self):
        return (self.outputs, self.weight_bits, bits.words(self.inputs))

    @property
    def table_shape(self):
        """Shape of what follows the sum: thresholds (outputs, levels) or bias (outputs,)."""
        return (self.outputs,) if self.is_scores else (self.outputs, self.levels)

    @property
    def stored_bits(self):
        """Bits of weights."""
        return self.inputs * self.outputs * self.weight_bits

    def describe(self):
        return dataclasses.asdict(self)


@dataclass(frozen=True, eq=False)
class Member:
    """The integers of one network.

    Parameters
    ----------
    weights : per layer, uint64 planes of shape ``layer.weight_shape``
    tables : per layer, int32 of shape ``layer.table_shape``: thresholds; bias of the score layer
    vote_weight : the integer this member's vote counts
    """

    weights: tuple[np.ndarray, ...]
    tables: tuple[np.ndarray, ...]
    vote_weight: int = 1

    def __post_init__(self):
        _whole("Vote weight", self.vote_weight, -(1 << 15), 1 << 15)

    def check(self, layers, name):
        """Raise if the arrays do not fit the layers; ``name`` goes into the message."""
        if len(self.weights) != len(layers) or len(self.tables) != len(layers):
            raise BennError(f"{name} must have {len(layers)} layers, not {len(self.weights)}")
        for n, (layer, w, t) in enumerate(zip(layers, self.weights, self.tables, strict=True)):
            where = f"{name}, layer {n}"
            _array(f"{where}: weights", w, layer.weight_shape, np.uint64)
            tail = layer.inputs % bits.WORD
            if tail and (w[..., -1] >> np.uint64(tail)).any():
                raise BennError(f"{where}: weight bits past input {layer.inputs - 1} must be 0")
            kind = "bias" if layer.is_scores else "thresholds"
            _array(f"{where}: {kind}", t, layer.table_shape, np.int32)
            limit = layer.max_sum
            if layer.is_scores:
                if (np.abs(t.astype(np.int64)) > MAX_SUM // 4).any():
                    raise BennError(f"{where}: bias must lie in ±{MAX_SUM // 4}")
            elif (t < -limit).any() or (t > limit + 1).any():
                raise BennError(f"{where}: thresholds must lie in {-limit}..{limit + 1}")
            elif (np.diff(t, axis=1) < 0).any():
                raise BennError(f"{where}: thresholds of an output must be sorted")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K members of one shape, their common encoder and their vote. This is the model.

    ``provenance`` is free JSON about where it comes from (seed, data, scores); nothing reads it to
    compute.
    """

    encoder: Encoder
    layers: tuple[Dense, ...]
    members: tuple[Member, ...]
    vote: str = "soft"
    provenance: dict = field(default_factory=dict)

    def __post_init__(self):
        _one_of("Vote", self.vote, VOTES)
        _json(self.provenance)
        _whole("Number of layers", len(self.layers), 1, MAX_LAYERS)
        _whole("Number of members", len(self.members), 1, MAX_MEMBERS)
        size, width, source = self.encoder.outputs, self.encoder.element_bits, "encoder"
        for n, layer in enumerate(self.layers):
            if (layer.inputs, layer.input_bits) != (size, width):
                raise BennError(f"Layer {n} reads {layer.inputs} elements of {layer.input_bits} "
                                f"bit, but the {source} gives {size} of {width} bit")
            if layer.is_scores != (n == len(self.layers) - 1):
                raise BennError(f"Layer {n}: the last layer, and only it, has output_bits 0")
            size, width, source = layer.outputs, layer.output_bits, f"layer {n}"
        _whole("Number of classes", self.classes, 2, MAX_CLASSES)
        for k, member in enumerate(self.members):
            member.check(self.layers, f"member {k}")
        if self.max_total > MAX_SUM // 2:
            raise BennError(f"Votes sum up to {self.max_total}, over the limit {MAX_SUM // 2} at "
                            f"which a margin fits 32 bits; use smaller vote weights")

    @property
    def classes(self):
        return self.layers[-1].outputs

    @property
    def max_score(self):
        """Largest absolute score of any member."""
        bias = max(int(np.abs(m.tables[-1].astype(np.int64)).max()) for m in self.members)
        return self.layers[-1].max_sum + bias

    @property
    def max_total(self):
        """Largest absolute total of the vote."""
        weight = sum(abs(m.vote_weight) for m in self.members)
        return weight * (self.max_score if self.vote == "soft" else 1)

    @property
    def score_bits(self):
        """Width of a score as a signed number."""
        return self.max_score.bit_length() + 1

    @property
    def total_bits(self):
        """Width of a vote total as a signed number."""
        return self.max_total.bit_length() + 1

    @property
    def weight_bits(self):
        """Bits of weights in all members."""
        return len(self.members) * sum(layer.stored_bits for layer in self.layers)

    def describe(self):
        """All that is not an array, as JSON."""
        return {
            "encoder": self.encoder.describe(),
            "layers": [layer.describe() for layer in self.layers],
            "members": len(self.members),
            "vote": self.vote,
            "provenance": self.provenance,
        }

    def tensors(self):
        """Every array by the name it has in the model file, members stacked on axis 0."""
        arrays = {
            "encoder.thresholds": self.encoder.thresholds,
            "vote.weights": np.array([m.vote_weight for m in self.members], np.int32),
        }
        for n in range(len(self.layers)):
            arrays[f"layer{n}.weights"] = np.stack([m.weights[n] for m in self.members])
            arrays[f"layer{n}.tables"] = np.stack([m.tables[n] for m in self.members])
        return arrays

    def digest(self):
        """SHA-256 of everything in the model, in hex."""
        sha = hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode())
        for name, array in sorted(self.tensors().items()):
            sha.update(f"{name} {array.dtype.str} {array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

    def save(self, path):
        """Write the model file; see :mod:`benn_fpga.modelfile`."""
        from benn_fpga import modelfile
        modelfile.save(self, path)

    def predict(self, x):
        """Class of each input, by the golden model. ``x``: raw values (frames, ...)."""
        from benn_fpga import golden
        return golden.run(self, x).classes


@dataclass(frozen=True)
class Fold:
    """How one layer is folded: ``pe`` outputs x ``simd`` inputs are handled in each cycle."""

    pe: int
    simd: int

    def __post_init__(self):
        _whole("PE", self.pe, 1, MAX_SIZE)
        _whole("SIMD", self.simd, 1, MAX_SIZE)


@dataclass(frozen=True)
class Folding:
    """The shape of the hardware for one ensemble.

    Parameters
    ----------
    layers : a :class:`Fold` per layer
    parallel : members side by side, M; the K members run in T = K / M rounds, and member
        ``t*M + m`` is round t of engine m
    bus : width of both AXI4-Stream buses in bits, a multiple of 8
    """

    layers: tuple[Fold, ...]
    parallel: int = 1
    bus: int = 64

    def __post_init__(self):
        _whole("Number of folded layers", len(self.layers), 1, MAX_LAYERS)
        if not isinstance(self.layers, tuple) or not all(isinstance(f, Fold) for f in self.layers):
            raise BennError("Folded layers must be a tuple of Fold")
        _whole("Members in parallel", self.parallel, 1, MAX_MEMBERS)
        _whole("Bus width", self.bus, 8, 1 << 16)
        if self.bus % 8:
            raise BennError(f"Bus width must be a multiple of 8, not {self.bus}")

    def check(self, model):
        """Raise unless this folding fits ``model``; returns itself."""
        if len(self.layers) != len(model.layers):
            raise BennError(f"Folding has {len(self.layers)} layers, "
                            f"but the model has {len(model.layers)}")
        for n, (fold, layer) in enumerate(zip(self.layers, model.layers, strict=True)):
            _divides(f"PE {fold.pe}", fold.pe, layer.outputs, f"outputs of layer {n}")
            _divides(f"SIMD {fold.simd}", fold.simd, layer.inputs, f"inputs of layer {n}")
        members = len(model.members)
        _divides(f"Parallel {self.parallel}", self.parallel, members, "members")
        return self

    def rounds(self, model):
        """T, the members that each engine runs one after another."""
        return len(model.members) // self.parallel

    def describe(self):
        return {"parallel": self.parallel, "bus": self.bus,
                "layers": [dataclasses.asdict(fold) for fold in self.layers]}

    @classmethod
    def from_json(cls, obj):
        """Build from what :meth:`describe` gives; every wrong key or type is one clear error."""
        if not isinstance(obj, dict) or not isinstance(obj.get("layers"), list):
            raise BennError('Folding must be a JSON object like {"parallel": 2, "bus": 64, '
                            '"layers": [{"pe": 8, "simd": 16}, ...]}')
        unknown = sorted(set(obj) - {"parallel", "bus", "layers"})
        if unknown:
            raise BennError(f"Folding has unknown key {unknown[0]!r}; known: parallel, bus, layers")
        folds = []
        for n, item in enumerate(obj["layers"]):
            if not isinstance(item, dict) or set(item) != {"pe", "simd"}:
                raise BennError(f'Folding of layer {n} must be like {{"pe": 8, "simd": 16}}, '
                                f"not {item!r}")
            try:
                folds.append(Fold(**item))
            except BennError as error:
                raise BennError(f"Folding of layer {n}: {error}") from None
        return cls(tuple(folds), obj.get("parallel", 1), obj.get("bus", 64))


def _divides(what, part, whole, noun):
    if whole % part:
        below = next(d for d in range(min(part, whole), 0, -1) if whole % d == 0)
        above = next((d for d in range(part, whole + 1) if whole % d == 0), whole)
        near = f"{below} or {above}" if below != above else f"{below}"
        raise BennError(f"{what} must divide the {whole} {noun}; nearest: {near}")
