import numpy as np
import pytest

from benn_fpga import BennError, nets, presets


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


@pytest.mark.parametrize(("dataset", "high"), [
    ("digits", 16), ("mnist", 255), ("fashion-mnist", 255), ("cifar10", 255), ("mine.npz", 255),
    ("bits.npz", 1),
])
def test_defaults_are_valid(dataset, high):
    chosen = presets.defaults(dataset, high)
    encoder = presets.encoder(chosen.encoder, (64,), 8, high)
    assert len(nets.build(chosen.net, encoder, 10)) > 1


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
