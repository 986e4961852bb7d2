import dataclasses

import numpy as np
import pytest

import draw
from benn_fpga.errors import BennError
from benn_fpga.layers import Dense
from benn_fpga.spec import Encoder, Fold, Folding


def refuses(message, make, *args, **kwargs):
    with pytest.raises(BennError) as caught:
        make(*args, **kwargs)
    assert str(caught.value) == message


def int32(*rows):
    return np.array(rows, np.int32)


ONE = int32([100])


@pytest.mark.parametrize(("message", "args"), [
    ("Encoder must be one of threshold, thermometer, planes, not 'sign'", ("sign", (4,), 8, ONE)),
    ("Input shape must be (rows, columns, channels) or (features,), not [4]",
     ("threshold", [4], 8, ONE)),
    ("Input shape must be (rows, columns, channels) or (features,), not (2, 2)",
     ("threshold", (2, 2), 8, ONE)),
    ("Input size must be a whole number from 1 to 16777216, not 0", ("threshold", (0,), 8, ONE)),
    ("Input size must be a whole number from 1 to 16777216, not 4.0",
     ("threshold", (4.0,), 8, ONE)),
    ("Input of 68719476736 values is larger than the limit 16777216",
     ("threshold", (4096, 4096, 4096), 8, ONE)),
    ("Encoder bits must be a whole number from 1 to 8, not 9", ("threshold", (4,), 9, ONE)),
    ("Encoder bits must be a whole number from 1 to 8, not True", ("threshold", (4,), True, ONE)),
    ("Encoder thresholds must be an int32 array with two axes", ("threshold", (4,), 8, [[1]])),
    ("Encoder thresholds must be an int32 array with two axes",
     ("threshold", (4,), 8, np.array([[1]]))),
    ("Encoder thresholds must have 1 or 4 rows, not 2", ("threshold", (4,), 8, int32([1], [2]))),
    ("Encoder threshold cannot have 2 levels", ("threshold", (4,), 8, int32([1, 2]))),
    ("Encoder thermometer cannot have 0 levels",
     ("thermometer", (4,), 8, np.zeros((1, 0), np.int32))),
    ("Encoder planes cannot have 1 levels", ("planes", (4,), 8, ONE)),
    ("Encoder thresholds must be sorted and lie in 0..256", ("threshold", (4,), 8, int32([257]))),
    ("Encoder thresholds must be sorted and lie in 0..256", ("threshold", (4,), 8, int32([-1]))),
    ("Encoder thresholds must be sorted and lie in 0..16", ("thermometer", (4,), 4, int32([2, 1]))),
])
def test_wrong_encoder(message, args):
    refuses(message, Encoder, *args)


@pytest.mark.parametrize(("message", "args"), [
    ("Layer inputs must be a whole number from 1 to 16777216, not 0", (0, 1)),
    ("Layer outputs must be a whole number from 1 to 16777216, not -1", (1, -1)),
    ("Weight bits must be a whole number from 1 to 8, not 0", (1, 1, 0)),
    ("Input bits must be a whole number from 1 to 8, not 9", (1, 1, 1, 9)),
    ("Output bits must be a whole number from 0 to 8, not None", (1, 1, 1, 1, None)),
    ("Layer of 65536 inputs sums up to 4261478400, over the limit 536870911; "
     "use fewer inputs or bits", (65536, 1, 8, 8)),
])
def test_wrong_layer(message, args):
    refuses(message, Dense, *args)


def test_encoder_sizes():
    encoder = Encoder("thermometer", (4, 4, 2), 8, int32([1, 2, 3]))
    assert (encoder.values, encoder.levels, encoder.outputs, encoder.element_bits) == (32, 3, 96, 1)
    planes = Encoder("planes", (5,), 6, np.zeros((1, 0), np.int32))
    assert (planes.values, planes.levels, planes.outputs, planes.element_bits) == (5, 0, 5, 6)


def test_layer_sizes():
    layer = Dense(100, 10, 2, 3, 2)
    assert (layer.max_sum, layer.levels, layer.stored_bits) == (100 * 3 * 7, 3, 2000)
    assert layer.arrays() == {"weights": ((10, 2, 2), np.uint64), "thresholds": ((10, 3), np.int32)}
    assert layer.max_sum + 1 < 1 << layer.popcount_bits


MODEL = draw.random_model(np.random.default_rng(0), members=3, vote_weights=[1, 1, 1])


def member(**changes):
    return dataclasses.replace(MODEL.members[0], **changes)


def ensemble(**changes):
    return dataclasses.replace(MODEL, **changes)


LAYERS = MODEL.members[0].layers


def put(n, name, value, layers=LAYERS):
    """A member whose array ``name`` of layer ``n`` is another."""
    return member(layers=(*layers[:n], {**layers[n], name: value}, *layers[n + 1:]))


def test_wrong_vote_weight():
    refuses("Vote weight must be a whole number from -32768 to 32768, not 32769",
            member, vote_weight=32769)


@pytest.mark.parametrize(("message", "wrong"), [
    ("member 1 must have 3 layers, not 2", lambda: member(layers=LAYERS[:2])),
    ("member 1, layer 0 must have the arrays ['thresholds', 'weights'], not "
     "['bias', 'thresholds', 'weights']", lambda: put(0, "bias", 0)),
    ("member 1, layer 0: weights must be an array of uint64 (12, 1, 1), not int64 (12, 1, 1)",
     lambda: put(0, "weights", LAYERS[0]["weights"].astype(np.int64))),
    ("member 1, layer 0: weights must be an array of uint64 (12, 1, 1), not 'x'",
     lambda: put(0, "weights", "x")),
    ("member 1, layer 1: weight bits past input 11 must be 0",
     lambda: put(1, "weights", LAYERS[1]["weights"] | np.uint64(1 << 12))),
    ("member 1, layer 1: thresholds must be an array of int32 (8, 1), not int32 (7, 1)",
     lambda: put(1, "thresholds", LAYERS[1]["thresholds"][:7])),
    ("member 1, layer 2: bias must be an array of int32 (5,), not int32 (4,)",
     lambda: put(2, "bias", LAYERS[2]["bias"][:4])),
    ("member 1, layer 0: thresholds must lie in -16..17",
     lambda: put(0, "thresholds", LAYERS[0]["thresholds"] * 0 + 18)),
    ("member 1, layer 0: thresholds must lie in -16..17",
     lambda: put(0, "thresholds", LAYERS[0]["thresholds"] * 0 - 17)),
    ("member 1, layer 2: bias must lie in ±536870911",
     lambda: put(2, "bias", LAYERS[2]["bias"] * 0 + (1 << 29))),
    ("member 1, layer 2: bias must lie in ±536870911",
     lambda: put(2, "bias", np.full_like(LAYERS[2]["bias"], -(1 << 31)))),
])
def test_wrong_member(message, wrong):
    refuses(message, ensemble, members=(MODEL.members[0], wrong()))


def test_thresholds_must_be_sorted():
    model = draw.random_model(np.random.default_rng(0), activation_bits=2, members=1)
    layers = model.members[0].layers
    wrong = put(0, "thresholds", layers[0]["thresholds"][:, ::-1].copy(), layers)
    refuses("member 0, layer 0: thresholds of an output must be sorted", dataclasses.replace,
            model, members=(wrong,))


@pytest.mark.parametrize(("message", "changes"), [
    ("Vote must be one of hard, soft, not 'loud'", {"vote": "loud"}),
    ("Number of layers must be a whole number from 1 to 256, not 0", {"layers": ()}),
    ("Number of members must be a whole number from 1 to 4096, not 0", {"members": ()}),
    ("Layer 0 (dense) reads 15 elements, but the encoder gives 4 x 4 x 1",
     {"layers": (Dense(15, 12), *MODEL.layers[1:])}),
    ("Layer 1 (dense) reads codes of 2 bit, but layer 0 gives codes of 1 bit",
     {"layers": (MODEL.layers[0], Dense(12, 8, 1, 2), MODEL.layers[2])}),
    ("Layer 2 (dense) reads codes of 1 bit, but layer 1 gives integers",
     {"layers": (MODEL.layers[0], Dense(12, 8, 1, 1, 0), MODEL.layers[2])}),
    ("The last layer must give one integer per class, not 8 of codes of 1 bit",
     {"layers": MODEL.layers[:2]}),
    ("Number of classes must be a whole number from 2 to 65536, not 1",
     {"layers": (Dense(16, 1, 1, 1, 0),)}),
    ("Number of classes must be a whole number from 2 to 65536, not 65537",
     {"layers": (Dense(16, 65537, 1, 1, 0),)}),
])
def test_wrong_ensemble(message, changes):
    refuses(message, ensemble, **changes)


def test_votes_must_fit_32_bits():
    heavy = put(2, "bias", LAYERS[2]["bias"] * 0 + (1 << 29) - 1)
    heavy = dataclasses.replace(heavy, vote_weight=5)
    refuses("Votes sum up to 2684354595, over the limit 1073741823 at which a margin fits "
            "32 bits; use smaller vote weights",
            ensemble, members=(heavy,))


def test_hard_votes_sum_up_to_the_weights():
    weights = [member(vote_weight=w) for w in (3, -4)]
    assert ensemble(members=tuple(weights), vote="hard").max_total == 7


def test_ensemble_sizes():
    assert MODEL.classes == 5
    assert MODEL.weight_bits == 3 * (16 * 12 + 12 * 8 + 8 * 5)
    assert -(1 << MODEL.score_bits - 1) <= -MODEL.max_score
    assert MODEL.max_score < 1 << MODEL.score_bits - 1
    assert MODEL.max_total < 1 << MODEL.total_bits - 1


def test_digest_sees_every_part():
    def digests():
        yield MODEL
        yield ensemble(vote="hard")
        yield ensemble(provenance={"seed": 1})
        yield ensemble(members=MODEL.members[:2])
        yield ensemble(members=(member(vote_weight=2), *MODEL.members[1:]))
        for n, arrays in enumerate(LAYERS):
            for name, array in arrays.items():
                moved = array.copy()
                moved.flat[0] -= np.sign(array.flat[0]) or -1
                yield ensemble(members=(put(n, name, moved), *MODEL.members[1:]))
    found = [model.digest() for model in digests()]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("message", "make"), [
    ("PE must be a whole number from 1 to 16777216, not 0", lambda: Fold(0, 1)),
    ("SIMD must be a whole number from 1 to 16777216, not 1.5", lambda: Fold(1, 1.5)),
    ("Number of folded layers must be a whole number from 1 to 256, not 0", lambda: Folding(())),
    ("`parallel` must be a whole number from 1 to 4096, not 0",
     lambda: Folding((Fold(1, 1),), 0)),
    ("`bus` must be a multiple of 8, not 4",
     lambda: Folding((Fold(1, 1),), 1, 4)),
    ("`bus` must be a multiple of 8, not 12", lambda: Folding((Fold(1, 1),), 1, 12)),
    ("Relays must be a whole number from 0 to 4, not 5",
     lambda: Folding((Fold(1, 1),), 1, 8, relays=5)),
    ("Adder levels must be a whole number from 1 to 2, not 3",
     lambda: Folding((Fold(1, 1),), 1, 8, adder_levels=3)),
])
def test_wrong_folding(message, make):
    refuses(message, make)


@pytest.mark.parametrize(("message", "folding"), [
    ("Folding has 1 layer, but the model has 3 (0 dense, 1 dense, 2 dense); give each of them",
     Folding((Fold(1, 1),))),
    ("PE 5 must divide the 12 outputs of layer 0 (dense); nearest: 4 or 6",
     Folding((Fold(5, 1), Fold(1, 1), Fold(1, 1)))),
    ("SIMD 24 must divide the 12 inputs of layer 1 (dense); nearest: 12",
     Folding((Fold(1, 1), Fold(1, 24), Fold(1, 1)))),
    ("`parallel` 2 must divide the 3 members; nearest: 1 or 3",
     Folding((Fold(1, 1), Fold(1, 1), Fold(1, 1)), 2)),
])
def test_folding_that_does_not_divide(message, folding):
    refuses(message, folding.check, MODEL)


def test_folding_survives_json():
    folding = Folding((Fold(2, 4), Fold(1, 3)), 2, 32, relays=1, adder_levels=2)
    assert Folding.from_json(folding.describe()) == folding


def test_what_a_folding_leaves_open():
    folding = Folding((Fold(2, 4),), relays=0)
    assert folding.filled(1, 2) == Folding((Fold(2, 4),), relays=0, adder_levels=2)
    assert folding.describe() == folding.filled().describe()
    assert (folding.filled().relays, folding.filled().adder_levels) == (0, 1)


@pytest.mark.parametrize(("message", "obj"), [
    ('Folding must be a JSON object like {"parallel": 2, "bus": 64, "layers": '
     '[{"pe": 8, "simd": 16}, ...]}', []),
    ('Folding must be a JSON object like {"parallel": 2, "bus": 64, "layers": '
     '[{"pe": 8, "simd": 16}, ...]}', {"parallel": 2}),
    ("Folding has unknown key 'pe'; known: parallel, bus, relays, "
     "adder_levels, layers", {"layers": [], "pe": 1}),
    ('Folding of layer 0 must be like {"pe": 8, "simd": 16}, not {\'pe\': 8}',
     {"layers": [{"pe": 8}]}),
    ("Folding of layer 0: PE must be a whole number from 1 to 16777216, not '8'",
     {"layers": [{"pe": "8", "simd": 1}]}),
])
def test_wrong_folding_json(message, obj):
    refuses(message, Folding.from_json, obj)


