"""Random models, foldings and frames: what tests, benchmarks and the area model are made from."""

import numpy as np

from benn_fpga import bits
from benn_fpga.layers import MAX_SUM, Conv, Dense, Scale, SumPool, divisors
from benn_fpga.spec import Encoder, Ensemble, Fold, Folding, Member, sources

__all__ = ["random_arrays", "random_encoder", "random_ensemble", "random_folding", "random_frames",
           "random_model", "random_table"]


def random_encoder(rng, kind, shape, raw_bits, levels, per_value):
    """An encoder of ``raw_bits``, of as many ``levels`` if it is a thermometer; its thresholds are
    the same for all values, or drawn ``per_value``."""
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
                    extreme_bias=False, reject=None):
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
    return Ensemble(encoder, tuple(layers), tuple(drawn), vote, {}, reject=reject)


def _per_layer(bits_, layers):
    return list(bits_) if isinstance(bits_, (tuple, list)) else [bits_] * layers


def random_model(rng, *, members=2, shape=(4, 4, 1), hidden=(12, 8), classes=5, weight_bits=1,
                 activation_bits=1, encoder="threshold", levels=3, raw_bits=8, vote="soft",
                 vote_weights=None, per_value=False, extreme_bias=False, reject=None):
    """An ensemble of random integers.

    ``weight_bits`` is one number or one per layer, ``activation_bits`` one number or one per hidden
    layer; ``vote_weights`` one per member, else drawn from ±4 without 0. ``extreme_bias`` makes
    half of the biases as large as the specification allows.
    """
    first = random_encoder(rng, encoder, shape, raw_bits, levels, per_value)
    sizes = [first.outputs, *hidden, classes]
    widths = [first.element_bits, *_per_layer(activation_bits, len(hidden)), 0]
    weight_bits = _per_layer(weight_bits, len(hidden) + 1)
    layers = tuple(Dense(sizes[n], sizes[n + 1], weight_bits[n], widths[n], widths[n + 1])
                   for n in range(len(hidden) + 1))
    return random_ensemble(rng, first, layers, members=members, vote=vote,
                           vote_weights=vote_weights, extreme_bias=extreme_bias, reject=reject)


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
