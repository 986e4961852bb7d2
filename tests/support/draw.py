"""Random models, foldings and frames for every part's tests, seeded or drawn by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

from benn_fpga import bits
from benn_fpga.spec import (
    ENCODERS,
    MAX_SUM,
    VOTES,
    Dense,
    Encoder,
    Ensemble,
    Fold,
    Folding,
    Member,
)

__all__ = ["divisors", "foldings", "models", "random_folding", "random_frames", "random_model",
           "random_table"]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def _encoder(rng, kind, shape, raw_bits, levels, per_value):
    rows = int(np.prod(shape)) if per_value and kind != "planes" else 1
    columns = {"threshold": 1, "thermometer": levels, "planes": 0}[kind]
    thresholds = rng.integers(0, (1 << raw_bits) + 1, (rows, columns))
    return Encoder(kind, tuple(shape), raw_bits, np.sort(thresholds, axis=1).astype(np.int32))


def random_table(rng, layer, bias_limit=None):
    """Thresholds around the sums that occur, now and then one of "always" or "never"; or a bias.

    With ``bias_limit`` half of the biases are at ± that limit.
    """
    spread = max(2, int(2 * (layer.max_sum * layer.max_sum / layer.inputs) ** 0.5))
    table = rng.integers(-spread, spread + 1, layer.table_shape)
    if layer.is_scores:
        if bias_limit is not None:
            extreme = rng.choice([-bias_limit, bias_limit], table.shape)
            table = np.where(rng.random(table.shape) < 0.5, extreme, table)
        return table.astype(np.int32)
    extreme = np.where(rng.random(table.shape) < 0.5, -layer.max_sum, layer.max_sum + 1)
    table = np.where(rng.random(table.shape) < 0.05, extreme, table)
    return np.sort(table.clip(-layer.max_sum, layer.max_sum + 1), axis=-1).astype(np.int32)


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
    if vote_weights is None:
        vote_weights = rng.choice([-4, -3, -2, -1, 1, 2, 3, 4], members).tolist()
    bias_limit = None
    if extreme_bias:
        votes = max(1, sum(map(abs, vote_weights))) if vote == "soft" else 1
        bias_limit = min(MAX_SUM // 4, MAX_SUM // 2 // votes - layers[-1].max_sum)
    drawn = []
    for vote_weight in vote_weights:
        codes = [rng.integers(0, 1 << w.weight_bits, (w.outputs, w.inputs)) for w in layers]
        weights = [bits.planes(c, w.weight_bits) for c, w in zip(codes, layers, strict=True)]
        tables = [random_table(rng, w, bias_limit) for w in layers]
        drawn.append(Member(tuple(weights), tuple(tables), vote_weight))
    return Ensemble(first, layers, tuple(drawn), vote, {})


def random_folding(rng, model, bus=None):
    """A folding that fits ``model``, drawn from all of them."""
    folds = tuple(Fold(int(rng.choice(divisors(layer.outputs))),
                       int(rng.choice(divisors(layer.inputs)))) for layer in model.layers)
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
    folds = tuple(Fold(draw(st.sampled_from(divisors(layer.outputs))),
                       draw(st.sampled_from(divisors(layer.inputs)))) for layer in model.layers)
    return Folding(folds, draw(st.sampled_from(divisors(len(model.members)))),
                   draw(st.sampled_from(buses)))
