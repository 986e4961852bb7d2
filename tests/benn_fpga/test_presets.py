from types import SimpleNamespace

import numpy as np
import pytest

from benn_fpga import BennError, nets, presets
from benn_fpga.layers import weight_bits


@pytest.mark.parametrize(("name", "high", "thresholds"), [
    ("threshold", 255, [[128]]), ("threshold", 16, [[8]]), ("threshold", 1, [[1]]),
    ("threshold:100", 255, [[100]]), ("thermometer:4", 16, [[3, 6, 10, 13]]),
    ("thermometer:3", 255, [[64, 128, 191]]), ("thermometer:3", 3, [[1, 2, 2]]),
    ("planes", 255, [[]]), ("thermometer", 3, [[1, 2, 2]]),
    ("thermometer", 255, [[36, 73, 109, 146, 182, 219]]),
])
def test_encoder(name, high, thresholds):
    encoder = presets.encoder(name, (8, 8, 1), high.bit_length(), high)
    assert encoder.thresholds.tolist() == thresholds
    assert encoder.kind == name.partition(":")[0]


@pytest.mark.parametrize("name", ["sign", "planes:", "planes:0", "thermometer:",
                                  "threshold:", "threshold:x"])
def test_encoder_unknown(name):
    with pytest.raises(BennError) as caught:
        presets.encoder(name, (64,), 8, 255)
    assert str(caught.value) == ("Encoder must be threshold[:VALUE], thermometer[:LEVELS] or "
                                 f"planes[:BITS], not {name!r}")


@pytest.mark.parametrize(("name", "message"), [
    ("threshold:0", "Threshold must lie in 1..16, not 0"),
    ("threshold:17", "Threshold must lie in 1..16, not 17"),
    ("thermometer:0", "Thermometer must have 1 to 16 levels for values in 0..16, not 0"),
    ("thermometer:17", "Thermometer must have 1 to 16 levels for values in 0..16, not 17"),
])
def test_encoder_out_of_range(name, message):
    with pytest.raises(BennError) as caught:
        presets.encoder(name, (64,), 5, 16)
    assert str(caught.value) == message


def default_bits(name, high, shape, classes=10):
    """The network that is the default, and its bits in all members."""
    chosen = presets.defaults(SimpleNamespace(name=name, high=high, shape=shape, classes=classes))
    kind = nets.kind(chosen.kind)
    encoder = presets.encoder(kind.encoder(chosen.encoder), shape, high.bit_length(), high)
    kind.check_encoder(chosen.encoder, encoder)
    layers = nets.build(chosen.net, encoder, classes, kind)
    return chosen.net, presets.MEMBERS * weight_bits(layers)


@pytest.mark.parametrize(("name", "high"), [
    ("digits", 16), ("mnist", 255), ("fashion-mnist", 255), ("cifar10", 255), ("mine.npz", 255),
    ("bits.npz", 1),
])
def test_defaults_are_valid(name, high):
    assert default_bits(name, high, (64,))[1] > 0


@pytest.mark.parametrize(("shape", "classes", "net", "bits"), [
    ((64,), 10, "mlp:128,64", 463_872),     # as digits
    ((74,), 2, "mlp:128,64", 521_216),      # the most that is read by thresholds
    ((75,), 2, "mlp:128,64", 143_360),
    ((447,), 2, "mlp:128,64", 524_288),     # all bits there may be
    ((448,), 2, "mlp:120,60", 488_640),
    ((49, 10, 1), 10, "mlp:112,56", 493_696),
    ((256, 256, 3), 10, "mlp:8,4", 12_583_488),
])
def test_defaults_of_unknown_data_are_no_larger_than_need_be(shape, classes, net, bits):
    assert default_bits("mine.npz", 255, shape, classes) == (net, bits)


@pytest.mark.parametrize(("bits", "name", "kept"), [(8, "planes", 8), (8, "planes:2", 2),
                                                    (3, "planes:5", 3)])
def test_planes_keep_the_highest_bits(bits, name, kept):
    assert presets.encoder(name, (4,), bits, (1 << bits) - 1).element_bits == kept


def test_features_have_thresholds_of_their_own():
    x = np.array([[0, 10, 7], [1, 20, 7], [2, 30, 7], [9, 200, 7]], np.uint8)
    found = presets.encoder("thermometer:3", (3,), 8, 200, x)
    assert found.thresholds.tolist() == [[1, 2, 9], [20, 30, 200], [7, 7, 7]]
    assert presets.encoder("threshold", (3,), 8, 200, x).thresholds.tolist() == [[2], [30], [7]]
    assert presets.encoder("threshold:5", (3,), 8, 200, x).thresholds.tolist() == [[5]]


def test_pixels_share_thresholds():
    x = np.zeros((4, 2, 2, 1), np.uint8)
    assert presets.encoder("thermometer:3", (2, 2, 1), 8, 255, x).thresholds.shape == (1, 3)
