"""What a model and a design are: dataclasses that cannot hold an invalid one."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from benn_fpga.checks import array, one_of, whole
from benn_fpga.errors import BennError, plural
from benn_fpga.layers import MAX_SIZE, MAX_SUM, Layer, divisors, weight_bits
from benn_fpga.raw import Inputs

if TYPE_CHECKING:
    from benn_fpga.golden import Result

__all__ = ["ENCODERS", "VOTES", "Encoder", "Ensemble", "Fold", "Folding", "Member",
           "sources"]

ENCODERS = ("threshold", "thermometer", "planes")
VOTES = ("hard", "soft")

MAX_LAYERS = 256
MAX_MEMBERS = 4096
MAX_RELAYS = 4
MAX_ADDER_LEVELS = 2
MAX_CLASSES = 1 << 16  # an answer names its class in 16 bits


def _json(provenance: object) -> None:
    try:
        if not isinstance(provenance, dict):
            raise TypeError
        json.dumps(provenance, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BennError("Provenance must be a dict of JSON, without NaN and infinity") from None


@dataclass(frozen=True, eq=False)
class Encoder:
    """Turns raw values, one byte each, into the elements that the first layer reads.

    ``threshold``: element = [value >= t]. ``thermometer``: ``levels`` elements per value, element j
    = [value >= t[j]], t sorted. ``planes``: the value itself, an element of ``bits`` bits, or of
    fewer if its ``dropped`` low bits are left out.

    Parameters
    ----------
    kind : one of :data:`ENCODERS`
    shape : shape of one input, (rows, columns, channels) or (features,)
    bits : width of a raw value, 1 to 8
    thresholds : int32 (1, levels) common to all values, or (values, levels); (1, 0) for ``planes``
    dropped : low bits of a value that ``planes`` leaves out
    """

    kind: str
    shape: tuple[int, ...]
    bits: int
    thresholds: np.ndarray
    dropped: int = 0

    def __post_init__(self) -> None:
        one_of("Encoder", self.kind, ENCODERS)
        if not isinstance(self.shape, tuple) or len(self.shape) not in (1, 3):
            raise BennError(f"Input shape must be (rows, columns, channels) or (features,), "
                            f"not {self.shape!r}")
        for size in self.shape:
            whole("Input size", size, 1, MAX_SIZE)
        if self.values > MAX_SIZE:
            raise BennError(f"Input of {self.values} values is larger than the limit {MAX_SIZE}")
        whole("Encoder bits", self.bits, 1, 8)
        whole("Dropped bits", self.dropped, 0, self.bits - 1 if self.kind == "planes" else 0)
        t = self.thresholds
        if not isinstance(t, np.ndarray) or t.ndim != 2 or t.dtype != np.int32:
            raise BennError("Encoder thresholds must be an int32 array with two axes")
        if t.shape[0] not in (1, self.values):
            raise BennError(f"Encoder thresholds must have 1 or {self.values} rows, not {len(t)}")
        expected = {"planes": t.shape == (1, 0), "threshold": self.levels == 1,
                    "thermometer": 1 <= self.levels <= 256}
        if not expected[self.kind]:
            raise BennError(f"Encoder {self.kind} cannot have {self.levels} levels")
        if t.size and (t.min() < 0 or t.max() > 1 << self.bits or (np.diff(t) < 0).any()):
            raise BennError(f"Encoder thresholds must be sorted and lie in 0..{1 << self.bits}")

    @property
    def values(self) -> int:
        """Raw values (bytes) in one frame."""
        return math.prod(self.shape)

    @property
    def levels(self) -> int:
        return self.thresholds.shape[1]

    @property
    def element_bits(self) -> int:
        """Bits of one element that the first layer reads."""
        return self.bits - self.dropped if self.kind == "planes" else 1

    @property
    def elements_per_value(self) -> int:
        return self.levels if self.kind != "planes" else 1

    @property
    def outputs(self) -> int:
        """Elements in one encoded frame."""
        return self.values * self.elements_per_value

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The encoded frame; the elements of a value are channels, or features, side by side."""
        return (*self.shape[:-1], self.shape[-1] * self.elements_per_value)

    def beats(self, bus: int) -> int:
        """Beats of one frame on a bus of ``bus`` bits: a byte per value."""
        return -(-self.values * 8 // bus)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "shape": list(self.shape), "bits": self.bits,
                "dropped": self.dropped}


@dataclass(frozen=True, eq=False)
class Member:
    """The integers of one network.

    Parameters
    ----------
    layers : per layer, its arrays by name, as ``layer.arrays()`` says
    vote_weight : the integer this member's vote counts
    """

    layers: tuple[dict[str, np.ndarray], ...]
    vote_weight: int = 1

    def __post_init__(self) -> None:
        whole("Vote weight", self.vote_weight, -(1 << 15), 1 << 15)

    def check(self, layers: Sequence[Layer], name: str) -> None:
        """Raise if the arrays do not fit the layers; ``name`` goes into the message."""
        if len(self.layers) != len(layers):
            raise BennError(f"{name} must have {len(layers)} layers, not {len(self.layers)}")
        for n, (layer, arrays) in enumerate(zip(layers, self.layers, strict=True)):
            expected = layer.arrays()
            if set(arrays) != set(expected):
                raise BennError(f"{name}, layer {n} must have the arrays {sorted(expected)}, "
                                f"not {sorted(arrays)}")
            for key, (shape, dtype) in expected.items():
                array(f"{name}, layer {n}: {key}", arrays[key], shape, dtype)
        limits = self.limits(layers)
        for n, (layer, arrays) in enumerate(zip(layers, self.layers, strict=True)):
            layer.check(f"{name}, layer {n}", arrays, _read(limits, layer, n))

    def limits(self, layers: Sequence[Layer]) -> dict[int, int]:
        """Of each layer that gives integers, the largest absolute one it can give."""
        limits: dict[int, int] = {}
        for n, (layer, arrays) in enumerate(zip(layers, self.layers, strict=True)):
            if not layer.output_bits:
                limits[n] = layer.limit(arrays, _read(limits, layer, n))
        return limits


def _read(limits: dict[int, int], layer: Layer, n: int) -> list[int]:
    """Those of ``limits`` that are of what layer ``n`` reads; there are none of codes."""
    return [limits[i] for i in sources(layer, n) if i in limits]


def sources(layer: Layer, n: int) -> tuple[int | None, ...]:
    """Indices of the layers that layer ``n`` reads; None is the encoder."""
    return tuple((n - 1 if n else None) if source is None else source for source in layer.sources)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K members of one shape, their common encoder and their vote. This is the model.

    Parameters
    ----------
    provenance : free JSON about where it comes from (seed, data, scores); no answer
        depends on it
    inputs : how floats become raw values, and the names of classes and features
    reject : an answer whose margin is below this means "unknown"; None if every answer counts
    """

    encoder: Encoder
    layers: tuple[Layer, ...]
    members: tuple[Member, ...]
    vote: str = "soft"
    provenance: dict[str, Any] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)
    reject: int | None = None

    def __post_init__(self) -> None:
        one_of("Vote", self.vote, VOTES)
        _json(self.provenance)
        whole("Number of layers", len(self.layers), 1, MAX_LAYERS)
        whole("Number of members", len(self.members), 1, MAX_MEMBERS)
        self._check_wiring()
        whole("Number of classes", self.classes, 2, MAX_CLASSES)
        for k, member in enumerate(self.members):
            member.check(self.layers, f"member {k}")
        if self.max_total > MAX_SUM // 2:
            raise BennError(f"Votes sum up to {self.max_total}, over the limit {MAX_SUM // 2} at "
                            f"which a margin fits 32 bits; use smaller vote weights")
        self.inputs.check(self.encoder.shape, self.classes)
        if self.inputs.has_range and self.encoder.bits != 8:
            raise BennError(f"Inputs that were floats must have 8 bits, not {self.encoder.bits}")
        if self.reject is not None:
            whole("Margin of rejection", self.reject, 1, 2 * self.max_total)

    def _check_wiring(self) -> None:
        """Raise unless every layer can read what its sources give, and the last gives scores."""
        given: dict[int | None, tuple[tuple[int, ...], int, str]] = {
            None: (self.encoder.output_shape, self.encoder.element_bits, "the encoder")}
        read: set[int | None] = {len(self.layers) - 1}
        for n, layer in enumerate(self.layers):
            for source in sources(layer, n):
                if source is not None:
                    whole(f"Source of layer {n}", source, 0, n - 1)
                shape, width, name = given[source]
                read.add(source)
                if layer.input_shape != ((math.prod(shape),) if layer.reads_frames else shape):
                    raise BennError(f"Layer {n} ({layer.kind}) reads {_size(layer.input_shape)} "
                                    f"elements, but {name} gives {_size(shape)}")
                if layer.input_bits != width:
                    raise BennError(f"Layer {n} ({layer.kind}) reads {_bits(layer.input_bits)}, "
                                    f"but {name} gives {_bits(width)}")
            given[n] = layer.output_shape, layer.output_bits, f"layer {n}"
        unread = [n for n in range(len(self.layers)) if n not in read]
        if unread:
            raise BennError(f"Layer {unread[0]} is read by no other layer")
        last = self.layers[-1]
        if last.output_bits or math.prod(last.output_shape) != last.output_shape[-1]:
            raise BennError(f"The last layer must give one integer per class, not "
                            f"{_size(last.output_shape)} of {_bits(last.output_bits)}")

    @property
    def classes(self) -> int:
        return self.layers[-1].output_shape[-1]

    @property
    def vote_weights(self) -> list[int]:
        return [member.vote_weight for member in self.members]

    @property
    def max_score(self) -> int:
        """Largest absolute score of any member."""
        last = len(self.layers) - 1
        return max(member.limits(self.layers)[last] for member in self.members)

    @property
    def max_total(self) -> int:
        """Largest absolute total of the vote."""
        weight = sum(abs(m.vote_weight) for m in self.members)
        return weight * (self.max_score if self.vote == "soft" else 1)

    @property
    def score_bits(self) -> int:
        """Width of a score as a signed number."""
        return self.max_score.bit_length() + 1

    @property
    def total_bits(self) -> int:
        """Width of a vote total as a signed number."""
        return self.max_total.bit_length() + 1

    @property
    def weight_bits(self) -> int:
        """Bits of weights in all members."""
        return len(self.members) * weight_bits(self.layers)

    @property
    def operations(self) -> int:
        """One-bit products that all members compute for a frame."""
        return len(self.members) * sum(layer.operations for layer in self.layers)

    def describe(self) -> dict[str, Any]:
        """All that is not an array, as JSON; what is not known is left out, as in older files."""
        return {
            "encoder": self.encoder.describe(),
            "layers": [layer.describe() for layer in self.layers],
            "members": len(self.members),
            "vote": self.vote,
            "provenance": self.provenance,
            **({"inputs": self.inputs.describe()} if self.inputs.is_known else {}),
            **({} if self.reject is None else {"reject": self.reject}),
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Every array by the name it has in the model file, members stacked on axis 0."""
        arrays = {
            "encoder.thresholds": self.encoder.thresholds,
            "vote.weights": np.array([m.vote_weight for m in self.members], np.int32),
        }
        if self.inputs.has_range:  # as bit patterns: the file holds no floats
            arrays["inputs.range"] = np.stack([self.inputs.low, self.inputs.high]).view(np.uint64)
        for n, layer in enumerate(self.layers):
            for key in layer.arrays():
                arrays[f"layer{n}.{key}"] = np.stack([m.layers[n][key] for m in self.members])
        return arrays

    def digest(self) -> str:
        """SHA-256 of everything in the model, in hex."""
        sha = hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode())
        for name, tensor in sorted(self.tensors().items()):
            sha.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
            sha.update(np.ascontiguousarray(tensor).tobytes())
        return sha.hexdigest()

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the model file; see :func:`benn_fpga.modelfile.save`."""
        from benn_fpga import modelfile
        modelfile.save(self, path, force)

    def answer(self, x: npt.ArrayLike) -> "Result":
        """What the hardware answers for each frame of ``x``, floats or bytes, by the golden model.

        Floats become bytes by :attr:`inputs`; see :func:`benn_fpga.conversion.to_raw`, which also
        says what gives a warning. Returns the :class:`~benn_fpga.golden.Result`.
        """
        from benn_fpga import conversion, golden
        raw, given = conversion.to_raw(self, x)
        return dataclasses.replace(golden.run(self, raw), input_type=given)

    def predict(self, x: npt.ArrayLike) -> np.ndarray:
        """Class of each frame of ``x``, floats or bytes: ``answer(x).classes``."""
        return self.answer(x).classes


@dataclass(frozen=True)
class Fold:
    """How one layer is folded: ``pe`` outputs x ``simd`` inputs are handled in each cycle."""

    pe: int
    simd: int

    def __post_init__(self) -> None:
        whole("PE", self.pe, 1, MAX_SIZE)
        whole("SIMD", self.simd, 1, MAX_SIZE)


@dataclass(frozen=True)
class Folding:
    """The shape of the hardware for one ensemble.

    Parameters
    ----------
    layers : a :class:`Fold` per layer
    parallel : members side by side, M; the K members run in T = K / M rounds, and member
        ``t*M + m`` is round t of engine m
    bus : width of both AXI4-Stream buses in bits, a multiple of 8
    relays : registers on the way from block RAMs of weights to what reads them, besides their own,
        for devices so large that this way is far
    adder_levels : levels of adders of a popcount from one register to the next, at most 2: fewer
        registers, for devices whose clock is slow in any case

    Of the last two, None is left open: :meth:`filled` says what it means.
    """

    layers: tuple[Fold, ...]
    parallel: int = 1
    bus: int = 64
    relays: int | None = None
    adder_levels: int | None = None

    def __post_init__(self) -> None:
        whole("Number of folded layers", len(self.layers), 1, MAX_LAYERS)
        if not isinstance(self.layers, tuple) or not all(isinstance(f, Fold) for f in self.layers):
            raise BennError("Folded layers must be a tuple of Fold")
        whole("`parallel`", self.parallel, 1, MAX_MEMBERS)
        if isinstance(self.bus, int) and (self.bus % 8 or not self.bus):
            raise BennError(f"`bus` must be a multiple of 8, not {self.bus}")
        whole("`bus`", self.bus, 8, 1 << 16)
        if self.relays is not None:
            whole("Relays", self.relays, 0, MAX_RELAYS)
        if self.adder_levels is not None:
            whole("Adder levels", self.adder_levels, 1, MAX_ADDER_LEVELS)

    def check(self, model: Ensemble) -> Self:
        """Raise unless this folding fits ``model``; returns itself."""
        if len(self.layers) != len(model.layers):
            kinds = ", ".join(f"{n} {layer.kind}" for n, layer in enumerate(model.layers[:8]))
            raise BennError(f"Folding has {len(self.layers)} {plural(len(self.layers), 'layer')}, "
                            f"but the model has {len(model.layers)} "
                            f"({kinds}{', ...' * (len(model.layers) > 8)}); give each of them")
        for n, (fold, layer) in enumerate(zip(self.layers, model.layers, strict=True)):
            outputs, inputs = layer.foldable
            where = f"layer {n} ({layer.kind})"
            _divides(f"PE {fold.pe}", fold.pe, *outputs, where)
            _divides(f"SIMD {fold.simd}", fold.simd, *inputs, where, layer.wide_simds)
        members = len(model.members)
        _divides(f"`parallel` {self.parallel}", self.parallel, members, "members")
        return self

    def filled(self, relays: int = 0, adder_levels: int = 1) -> Self:
        """It with these where it leaves them open."""
        return dataclasses.replace(
            self, relays=relays if self.relays is None else self.relays,
            adder_levels=adder_levels if self.adder_levels is None else self.adder_levels)

    def rounds(self, model: Ensemble) -> int:
        """T, the members that each engine runs one after another."""
        return len(model.members) // self.parallel

    def describe(self) -> dict[str, Any]:
        """It as `design.json` has it, with what it leaves open as :meth:`filled` fills it."""
        whole = self.filled()
        return {"parallel": whole.parallel, "bus": whole.bus, "relays": whole.relays,
                "adder_levels": whole.adder_levels,
                "layers": [dataclasses.asdict(fold) for fold in whole.layers]}

    @classmethod
    def from_json(cls, obj: object) -> Self:
        """Build from what :meth:`describe` gives; every wrong key or type is one clear error."""
        if not isinstance(obj, dict) or not isinstance(obj.get("layers"), list):
            raise BennError('Folding must be a JSON object like {"parallel": 2, "bus": 64, '
                            '"layers": [{"pe": 8, "simd": 16}, ...]}')
        known = ("parallel", "bus", "relays", "adder_levels", "layers")
        unknown = sorted(set(obj) - set(known))
        if unknown:
            raise BennError(f"Folding has unknown key {unknown[0]!r}; known: {', '.join(known)}")
        folds = []
        for n, item in enumerate(obj["layers"]):
            if not isinstance(item, dict) or set(item) != {"pe", "simd"}:
                raise BennError(f'Folding of layer {n} must be like {{"pe": 8, "simd": 16}}, '
                                f"not {item!r}")
            try:
                folds.append(Fold(**item))
            except BennError as error:
                raise BennError(f"Folding of layer {n}: {error}") from None
        return cls(tuple(folds), obj.get("parallel", 1), obj.get("bus", 64), obj.get("relays"),
                   obj.get("adder_levels"))


def _size(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _bits(width: int) -> str:
    return f"codes of {width} bit" if width else "integers"


def _divides(what: str, part: int, whole: int, noun: str, where: str | None = None,
             more: tuple[int, ...] = ()) -> None:
    """Raise unless ``part`` divides ``whole``, or is one of ``more``."""
    if where is not None:
        if whole == 1 < part and not more:
            raise BennError(f"{what} of {where} must be 1")
        noun = f"{noun} of {where}"
    if whole % part and part not in more:
        known = (*divisors(whole), *more)
        near = {max((d for d in known if d < part), default=1),
                min((d for d in known if d > part), default=max(known))}
        wide = ", or be taps of a kernel row, rows of the kernel or all of it" if more else ""
        raise BennError(f"{what} must divide the {whole} {noun}{wide}; nearest: "
                        f"{' or '.join(map(str, sorted(near)))}")
