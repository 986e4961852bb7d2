import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import draw
from benn_fpga import bits, golden, layers, modelfile
from benn_fpga.errors import BennError
from benn_fpga.layers import Add, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.spec import Encoder, Ensemble, Folding, Member


def taps(layer, image, row, column):
    """(row, column, pixel) in the window at this place; the pixel is None outside the image."""
    for r, c in itertools.product(*map(range, layer.kernel)):
        y, x = row * layer.stride - layer.padding + r, column * layer.stride - layer.padding + c
        inside = 0 <= y < layer.shape[0] and 0 <= x < layer.shape[1]
        yield r, c, image[y][x] if inside else None


def codes_of(thresholds, s):
    return sum(s >= t for t in thresholds)


def plain_conv(layer, a, image, row, column, o):
    w = bits.value(bits.unplanes(a["weights"], layer.inputs), layer.weight_bits).tolist()[o]
    part, s, at = layer.channels // layer.groups, 0, 0
    first = o // (layer.outputs // layer.groups) * part
    for _, _, pixel in taps(layer, image, row, column):
        for code in pixel[first:first + part] if pixel else [0] * part:
            s += w[at] * (2 * code - (2**layer.input_bits - 1))
            at += 1
    return s + a["bias"][o] if layer.is_scores else codes_of(a["thresholds"][o], s)


def plain_sum_pool(layer, a, image, row, column, o):
    seen = [pixel[o] for _, _, pixel in taps(layer, image, row, column) if pixel]
    if layer.relu:
        seen = [s for s in seen if s >= a["active"][o]]
    if not layer.output_bits:
        return sum(seen)
    return codes_of(a["thresholds"][o][len(seen) if layer.relu else 0], sum(seen))


def plain_scale(layer, a, image, row, column, o):
    y = (image[row][column][o] * a["gain"][o] * 2 + 2**layer.shift) // 2**(layer.shift + 1)
    return min(max(y + a["bias"][o], -layer.top), layer.top)


PLAIN = {
    Conv: plain_conv,
    MaxPool: lambda layer, a, image, row, column, o:
        max(pixel[o] for _, _, pixel in taps(layer, image, row, column) if pixel),
    SumPool: plain_sum_pool,
    Scale: plain_scale,
}


def plain(layer, arrays, *inputs):
    """One layer of one frame in loops over Python integers."""
    if isinstance(layer, Add):
        return inputs[0] + inputs[1]
    arrays = {key: array if key == "weights" else array.tolist() for key, array in arrays.items()}
    if isinstance(layer, Dense):
        layer = Conv((1, 1, layer.inputs), (1, 1), outputs=layer.outputs,
                     weight_bits=layer.weight_bits, input_bits=layer.input_bits,
                     output_bits=layer.output_bits)
    image = inputs[0].reshape(layer.input_shape).tolist()
    return np.array([PLAIN[type(layer)](layer, arrays, image, *at)
                     for at in np.ndindex(*layer.output_shape)])


@given(draw.conv_models(), st.integers(0, 99))
def test_every_layer_is_that_of_plain_loops(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 3)
    result = golden.run(model, x, trace=True)
    for k, member in enumerate(model.members):
        outputs = [*result.activations[k], result.scores[:, k]]
        for n, layer in enumerate(model.layers):
            read = [n - 1 if source is None else source for source in layer.sources]
            inputs = [outputs[i][2] if i >= 0 else result.encoded[2] for i in read]
            expected = plain(layer, member.layers[n], *inputs)
            assert (outputs[n][2].ravel() == np.ravel(expected)).all()


def test_taps_outside_an_image_are_never_active():
    """Thresholds that are reached by windows of four taps only: those at the corners."""
    pool = SumPool((3, 3, 2), (3, 3), 1, 1, output_bits=1, relu=True)
    thresholds = np.full((2, 10, 1), 99, np.int32)
    thresholds[:, 4] = -99
    arrays = {"active": np.array([-5, 0], np.int32), "thresholds": thresholds}
    codes = golden.compute(pool, arrays, np.ones((1, 3, 3, 2), np.int64))
    assert codes[0, :, :, 0].tolist() == codes[0, :, :, 1].tolist() == [
        [1, 0, 1], [0, 0, 0], [1, 0, 1]]


@given(draw.conv_models(), st.integers(0, 99))
def test_integers_stay_in_their_limits(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 4)
    result = golden.run(model, x, trace=True)
    for k, member in enumerate(model.members):
        limits = member.limits(model.layers)
        for n, output in enumerate([*result.activations[k], result.scores[:, k]]):
            top = limits.get(n, model.layers[n].levels)
            assert np.abs(output.astype(np.int64)).max() <= top


@given(draw.conv_models(), st.integers(0, 99))
def test_chunks_do_not_show(model, seed):
    x = draw.random_frames(np.random.default_rng(seed), model, 5)
    whole = golden.run(model, x, trace=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(golden, "_CHUNK_VALUES", 1)
        parts = golden.run(model, x, trace=True)
    assert (whole.totals == parts.totals).all()
    for one, other in zip(whole.activations, parts.activations, strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))


@given(draw.models(max_bits=4), st.integers(0, 99))
def test_planes_and_values_give_the_same_sums(model, seed):
    layer, arrays = model.layers[0], model.members[0].layers[0]
    codes = np.random.default_rng(seed).integers(0, 1 << layer.input_bits, (5, layer.inputs))
    assert (golden._by_planes(layer, arrays["weights"], codes)
            == golden._by_values(layer, arrays["weights"], codes)).all()


@given(draw.conv_models())
def test_a_model_survives_its_file(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("m") / "m.benn"
    model.save(path)
    again = modelfile.load(path)
    assert again.layers == model.layers
    assert again.digest() == model.digest()


@pytest.mark.parametrize("layer", [
    Dense(3, 4, 2, 3, 1), Conv((5, 4, 6), (3, 2), 2, 1, outputs=4, groups=2),
    MaxPool((4, 4, 2), (2, 2), 2, code_bits=2), SumPool((4, 4, 2), (3, 3), 2, 1, output_bits=1,
                                                        relu=True),
    Scale((4, 4, 2), 8, 12, source=1), Add((4, 4, 2), other=0)])
def test_a_layer_survives_json(layer):
    text = {key: list(value) if isinstance(value, tuple) else value
            for key, value in layer.describe().items()}
    assert layers.from_json(text) == layer


def test_sizes():
    layer = Conv((32, 30, 6), (5, 3), 2, 2, outputs=8, weight_bits=2, input_bits=3, groups=2)
    assert (layer.grid, layer.output_shape, layer.inputs) == ((16, 16), (16, 16, 8), 45)
    assert (layer.max_sum, layer.stored_bits) == (45 * 3 * 7, 45 * 8 * 2)
    assert layer.operations == 16 * 16 * 45 * 8 * 2 * 3
    pool = SumPool((7, 7, 3), (3, 3), 2, 1, output_bits=2, relu=True)
    assert pool.arrays() == {"thresholds": ((3, 10, 3), np.int32), "active": ((3,), np.int32)}


@pytest.mark.parametrize(("message", "kind", "options"), [
    ("Shape must be (rows, columns, channels), not (4, 4)", MaxPool, {"shape": (4, 4)}),
    ("Rows must be a whole number from 1 to 16777216, not 0", MaxPool, {"shape": (0, 4, 1)}),
    ("Image of 67108864 elements is over the limit 16777216", MaxPool,
     {"shape": (8192, 8192, 1)}),
    ("Kernel must be (rows, columns), not 3", MaxPool, {"kernel": 3}),
    ("Kernel of 6 rows is larger than the image of 5", MaxPool, {"kernel": (6, 1)}),
    ("Kernel of 9 columns is larger than the image of 4 padded by 2", MaxPool,
     {"kernel": (3, 9), "padding": 2}),
    ("Padding 2 must be less than the kernel's 2 columns", MaxPool,
     {"kernel": (3, 2), "padding": 2}),
    ("Stride must be a whole number from 1 to 16777216, not 0", MaxPool, {"stride": 0}),
    ("Code bits must be a whole number from 1 to 8, not 0", MaxPool, {"code_bits": 0}),
    ("Layer outputs must be a whole number from 1 to 16777216, not 0", Conv, {}),
    ("Groups 4 must divide the 6 channels", Conv, {"outputs": 4, "groups": 4}),
    ("Groups 3 must divide the 4 outputs", Conv, {"outputs": 4, "groups": 3}),
    ("A pool with relu must have thresholds: output bits from 1", SumPool, {"relu": True}),
    ("Relu must be true or false, not 1", SumPool, {"relu": 1}),
])
def test_wrong_layer(message, kind, options):
    with pytest.raises(BennError) as caught:
        kind(**{"shape": (5, 4, 6), "kernel": (2, 2), **options})
    assert str(caught.value) == message


IMAGE = Encoder("threshold", (4, 4, 1), 8, np.array([[128]], np.int32))


@pytest.mark.parametrize(("message", "chain"), [
    ("Layer 0 (conv) reads 4 x 4 x 2 elements, but the encoder gives 4 x 4 x 1",
     [Conv((4, 4, 2), (3, 3), outputs=2)]),
    ("Layer 1 (add) reads 4 x 4 x 3 elements, but layer 0 gives 4 x 4 x 2",
     [Conv((4, 4, 1), (1, 1), outputs=2, output_bits=0), Add((4, 4, 3), other=0)]),
    ("Layer 0 (sumpool) reads integers, but the encoder gives codes of 1 bit",
     [SumPool((4, 4, 1), (4, 4))]),
    ("Source of layer 1 must be a whole number from 0 to 0, not 1",
     [Conv((4, 4, 1), (1, 1), outputs=2, output_bits=0), SumPool((4, 4, 2), (4, 4), source=1)]),
    ("Source of layer 1 must be a whole number from 0 to 0, not -1",
     [Conv((4, 4, 1), (1, 1), outputs=2), Dense(32, 2, output_bits=0, source=-1)]),
    ("Layer 1 is read by no other layer",
     [Conv((4, 4, 1), (1, 1), outputs=2), MaxPool((4, 4, 2), (1, 1)),
      Dense(32, 2, output_bits=0, source=0)]),
    ("The last layer must give one integer per class, not 4 x 4 x 2 of integers",
     [Conv((4, 4, 1), (1, 1), outputs=2, output_bits=0)]),
])
def test_wrong_wiring(message, chain):
    with pytest.raises(BennError) as caught:
        Ensemble(IMAGE, tuple(chain), (Member(()),))
    assert str(caught.value) == message


def residual(**changes):
    """A model with every kind of array, and what ``changes`` makes of its last ones."""
    chain = [Conv((4, 4, 1), (1, 1), outputs=2, output_bits=0), Scale((4, 4, 2), 4, 9),
             SumPool((4, 4, 2), (3, 3), output_bits=1, relu=True),
             Dense(8, 3, output_bits=0)]
    model = draw.random_ensemble(np.random.default_rng(0), IMAGE, chain, vote_weights=[1])
    arrays = [{key: changes.get(f"{layer.kind}_{key}", value) for key, value in a.items()}
              for layer, a in zip(model.layers, model.members[0].layers, strict=True)]
    member = dataclasses.replace(model.members[0], layers=tuple(arrays))
    return dataclasses.replace(model, members=(member,))


@pytest.mark.parametrize(("message", "changes"), [
    ("member 0, layer 1: gain must lie in ±32767", {"scale_gain": np.int32([1, 32768])}),
    ("member 0, layer 1: bias must lie in ±536870911", {"scale_bias": np.int32([1, 1 << 29])}),
    ("member 0, layer 2: active must lie in ±256", {"sumpool_active": np.int32([257, 0])}),
    ("member 0, layer 2: thresholds must lie in -2295..2296",
     {"sumpool_thresholds": np.full((2, 10, 1), 2297, np.int32)}),
])
def test_wrong_arrays(message, changes):
    with pytest.raises(BennError) as caught:
        residual(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(("n", "fold", "message"), [
    (0, {"pe": 1, "simd": 2}, "SIMD 2 of layer 0 (conv) must be 1"),
    (1, {"pe": 3, "simd": 1}, "PE 3 must divide the 2 channels of layer 1 (scale); nearest: 2"),
    (2, {"pe": 2, "simd": 2}, "SIMD 2 of layer 2 (sumpool) must be 1"),
])
def test_wrong_foldings(n, fold, message):
    folds = [{"pe": 1, "simd": 1}] * 4
    folds[n] = fold
    with pytest.raises(BennError) as caught:
        Folding.from_json({"layers": folds}).check(residual())
    assert str(caught.value) == message


@pytest.mark.parametrize(("layer", "read", "weight_bits"), [
    (Dense(6, 2, 3), 6, 3),
    (Conv((4, 4, 6), (3, 2), 1, 1, outputs=2, weight_bits=2, groups=2), 4 * 5 * 6 * 6, 2),
    (MaxPool((5, 4, 3), (2, 2), 2), 2 * 2 * 4 * 3, 0),
    (SumPool((5, 4, 3), (1, 1), output_bits=1), 5 * 4 * 3, 0),
    (Scale((5, 4, 3), 4, 8), 5 * 4 * 3, 0),
    (Add((5, 4, 3), other=1), 5 * 4 * 3, 0),
])
def test_what_it_reads_of_a_frame(layer, read, weight_bits):
    assert (layer.elements_read, layer.weight_bits) == (read, weight_bits)
