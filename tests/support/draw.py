"""Random models, foldings and frames for every part's tests, seeded or drawn by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

from benn_fpga import bits
from benn_fpga.layers import MAX_SUM, Add, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.spec import (
    ENCODERS,
    VOTES,
    Encoder,
    Ensemble,
    Fold,
    Folding,
    Member,
    sources,
)

__all__ = ["conv_models", "divisors", "foldings", "models", "random_arrays", "random_ensemble",
           "random_folding", "random_frames", "random_model", "random_table"]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def _encoder(rng, kind, shape, raw_bits, levels, per_value):
    rows = int(np.prod(shape)) if per_value and kind != "planes" else 1
    columns = {"threshold": 1, "thermometer": levels, "planes": 0}[kind]
    thresholds = rng.integers(0, (1 << raw_bits) + 1, (rows, columns))
    dropped = int(rng.integers(raw_bits)) if kind == "planes" else 0
    return Encoder(kind, tuple(shape), raw_bits, np.sort(thresholds, axis=1).astype(np.int32),
                   dropped)


def _thresholds(rng, shape, spread, limit):
    """Around the sums that occur, now and then one of "always" or "never"; sorted."""
    table = rng.integers(-spread, spread + 1, shape)
    extreme = np.where(rng.random(shape) < 0.5, -limit, limit + 1)
    table = np.where(rng.random(shape) < 0.05, extreme, table)
    return np.sort(table.clip(-limit, limit + 1), axis=-1).astype(np.int32)


def random_table(rng, layer, bias_limit=None):
    """Thresholds or bias of a layer of products; half of the biases are ±bias_limit, if given."""
    spread = max(2, int(2 * (layer.max_sum * layer.max_sum / layer.inputs) ** 0.5))
    if layer.is_scores:
        bias = rng.integers(-spread, spread + 1, layer.outputs)
        if bias_limit is not None:
            extreme = rng.choice([-bias_limit, bias_limit], bias.shape)
            bias = np.where(rng.random(bias.shape) < 0.5, extreme, bias)
        return bias.astype(np.int32)
    return _thresholds(rng, (layer.outputs, layer.levels), spread, layer.max_sum)


def random_arrays(rng, layer, inputs, bias_limit=None):
    """What a member stores for ``layer``; ``inputs`` are the limits of its sources."""
    if isinstance(layer, (Dense, Conv)):
        codes = rng.integers(0, 1 << layer.weight_bits, (layer.outputs, layer.inputs))
        table = random_table(rng, layer, bias_limit)
        return {"weights": bits.planes(codes, layer.weight_bits),
                "bias" if layer.is_scores else "thresholds": table}
    if isinstance(layer, Scale):
        size = layer.shape[2]
        return {"gain": rng.integers(-99, 100, size).astype(np.int32),
                "bias": rng.integers(-9, 10, size).astype(np.int32)}
    arrays = {}
    if isinstance(layer, SumPool) and layer.output_bits:
        limit = layer.max_sum(inputs)
        shape, _ = layer.arrays()["thresholds"]
        arrays["thresholds"] = _thresholds(rng, shape, max(1, limit // 4), limit)
        if layer.relu:
            reach = inputs[0] // 2 + 1
            arrays["active"] = rng.integers(-reach, reach + 1, layer.channels).astype(np.int32)
    return arrays


def random_ensemble(rng, encoder, layers, *, members=1, vote="soft", vote_weights=None,
                    extreme_bias=False):
    """An ensemble of random integers with these layers, the last of them dense if with extremes."""
    if vote_weights is None:
        vote_weights = rng.choice([-4, -3, -2, -1, 1, 2, 3, 4], members).tolist()
    bias_limit = None
    if extreme_bias:
        votes = max(1, sum(map(abs, vote_weights))) if vote == "soft" else 1
        bias_limit = min(MAX_SUM // 4, MAX_SUM // 2 // votes - layers[-1].max_sum)
    drawn = []
    for vote_weight in vote_weights:
        arrays, limits = [], {None: None}
        for n, layer in enumerate(layers):
            inputs = [limits[source] for source in sources(layer, n)]
            arrays.append(random_arrays(rng, layer, inputs, bias_limit))
            limits[n] = None if layer.output_bits else layer.limit(arrays[-1], inputs)
        drawn.append(Member(tuple(arrays), vote_weight))
    return Ensemble(encoder, tuple(layers), tuple(drawn), vote, {})


def _per_layer(bits_, layers):
    return list(bits_) if isinstance(bits_, (tuple, list)) else [bits_] * layers


def random_model(rng, *, members=2, shape=(4, 4, 1), hidden=(12, 8), classes=5, weight_bits=1,
                 activation_bits=1, encoder="threshold", levels=3, raw_bits=8, vote="soft",
                 vote_weights=None, per_value=False, extreme_bias=False):
    """An ensemble of random integers.

    ``weight_bits`` is one number or one per layer, ``activation_bits`` one number or one per hidden
    layer; ``vote_weights`` one per member, else drawn from ±4 without 0. ``extreme_bias`` makes
    half of the biases as large as the specification allows.
    """
    first = _encoder(rng, encoder, shape, raw_bits, levels, per_value)
    sizes = [first.outputs, *hidden, classes]
    widths = [first.element_bits, *_per_layer(activation_bits, len(hidden)), 0]
    weight_bits = _per_layer(weight_bits, len(hidden) + 1)
    layers = tuple(Dense(sizes[n], sizes[n + 1], weight_bits[n], widths[n], widths[n + 1])
                   for n in range(len(hidden) + 1))
    return random_ensemble(rng, first, layers, members=members, vote=vote,
                           vote_weights=vote_weights, extreme_bias=extreme_bias)


def random_folding(rng, model, bus=None):
    """A folding that fits ``model``, drawn from all of them."""
    folds = tuple(Fold(*(int(rng.choice(divisors(count))) for count, _ in layer.foldable))
                  for layer in model.layers)
    parallel = int(rng.choice(divisors(len(model.members))))
    return Folding(folds, parallel, bus or int(rng.choice([8, 16, 24, 32, 64, 128])))


def random_frames(rng, model, frames):
    """Raw values uint8 (frames, *shape); the first is all 0 and the second all at the maximum."""
    x = rng.integers(0, 1 << model.encoder.bits, (frames, *model.encoder.shape), dtype=np.uint8)
    x[:1] = 0
    x[1:2] = (1 << model.encoder.bits) - 1
    return x


@st.composite
def models(draw, *, max_members=4, max_values=12, max_hidden=2, max_width=9, max_classes=5,
           max_bits=3):
    """Any small ensemble: topology, plane widths per layer, encoder, vote, its weights, biases."""
    hidden = draw(st.lists(st.integers(1, max_width), max_size=max_hidden))
    side = st.integers(1, 3)
    shape = draw(st.tuples(st.integers(1, max_values)) | st.tuples(side, side, st.just(1)))
    width = st.integers(1, max_bits)
    members = draw(st.integers(1, max_members))
    vote_weight = st.integers(-5, 5) | st.sampled_from([-(1 << 15), 0, 1 << 15])
    return random_model(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        members=members,
        shape=shape,
        hidden=tuple(hidden),
        classes=draw(st.integers(2, max_classes)),
        weight_bits=[draw(width) for _ in range(len(hidden) + 1)],
        activation_bits=[draw(width) for _ in hidden],
        encoder=draw(st.sampled_from(ENCODERS)),
        levels=draw(st.integers(1, 4)),
        raw_bits=draw(st.integers(1, 8)),
        vote=draw(st.sampled_from(VOTES)),
        vote_weights=draw(st.lists(vote_weight, min_size=members, max_size=members)),
        per_value=draw(st.booleans()),
        extreme_bias=draw(st.booleans()),
    )


@st.composite
def foldings(draw, model, buses=(8, 16, 24, 32, 64, 128)):
    """Any folding that fits ``model``."""
    folds = tuple(Fold(*(draw(st.sampled_from(divisors(count))) for count, _ in layer.foldable))
                  for layer in model.layers)
    return Folding(folds, draw(st.sampled_from(divisors(len(model.members)))),
                   draw(st.sampled_from(buses)))


@st.composite
def windows(draw, shape, *, kernel=3):
    """Kernel, stride and padding of a window that fits an image of ``shape``."""
    size = tuple(draw(st.integers(1, min(kernel, n))) for n in shape[:2])
    return {"shape": shape, "kernel": size, "stride": draw(st.integers(1, 3)),
            "padding": draw(st.integers(0, min(size) - 1))}


@st.composite
def convs(draw, shape, input_bits, output_bits, *, max_bits=2, max_width=6):
    """A convolution of an image of ``shape``; with groups now and then."""
    groups = draw(st.sampled_from(divisors(shape[2])))
    return Conv(**draw(windows(shape)), outputs=groups * draw(st.integers(1, max_width // 2)),
                weight_bits=draw(st.integers(1, max_bits)), input_bits=input_bits,
                output_bits=output_bits, groups=groups)


@st.composite
def conv_models(draw, *, max_blocks=3, max_side=7, max_bits=2, max_members=2):
    """Any small convolutional ensemble: blocks of every kind, in any order, then a head."""
    side = st.integers(1, max_side)
    encoder = _encoder(np.random.default_rng(draw(st.integers(0, 99))),
                       draw(st.sampled_from(ENCODERS)),
                       (draw(side), draw(side), draw(st.integers(1, 3))),
                       draw(st.integers(1, 4)), draw(st.integers(1, 2)), False)
    width = st.integers(1, max_bits)
    layers, shape, code_bits = [], encoder.output_shape, encoder.element_bits

    def put(layer):
        layers.append(layer)
        return layer.output_shape, layer.output_bits

    for _ in range(draw(st.integers(1, max_blocks))):
        kind = draw(st.sampled_from(["plain", "max", "sum", "relu", "residual"]))
        integers = kind in ("sum", "relu", "residual")
        shape, code_bits = put(draw(convs(shape, code_bits, 0 if integers else draw(width))))
        if kind == "max":
            shape, code_bits = put(MaxPool(**draw(windows(shape)), code_bits=code_bits))
        if kind in ("sum", "relu"):
            shape, code_bits = put(SumPool(**draw(windows(shape)), output_bits=draw(width),
                                           relu=kind == "relu"))
        if kind == "residual":
            put(Scale(shape, draw(st.integers(0, 8)), draw(st.integers(4, 12))))
            start = len(layers) - 1
            put(SumPool(shape, (1, 1), output_bits=draw(width)))
            put(Conv(shape, (3, 3), 1, 1, outputs=shape[2], input_bits=layers[-1].output_bits,
                     output_bits=0) if min(shape[:2]) > 1 else
                Conv(shape, (1, 1), outputs=shape[2], input_bits=layers[-1].output_bits,
                     output_bits=0))
            put(Scale(shape, draw(st.integers(0, 8)), draw(st.integers(4, 12))))
            put(Add(shape, other=start))
            shape, code_bits = put(SumPool(shape, (1, 1), output_bits=draw(width)))
    classes = draw(st.integers(2, 5))
    if draw(st.booleans()):
        put(Dense(int(np.prod(shape)), classes, draw(width), code_bits, 0))
    else:
        put(Conv(shape, (1, 1), outputs=classes, input_bits=code_bits, output_bits=0))
        put(SumPool((*shape[:2], classes), shape[:2]))
    return random_ensemble(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), encoder, layers,
                           members=draw(st.integers(1, max_members)),
                           vote=draw(st.sampled_from(VOTES)))
