import numpy as np
import pytest

from benn_fpga.errors import BennError
from benn_fpga.raw import Inputs, scale_for, wasted

# Frames, rows, columns, channels.
IMAGES = np.arange(2 * 2 * 3 * 2, dtype=float).reshape(2, 2, 3, 2)


@pytest.mark.parametrize(("scale", "low", "high"), [
    (None, [0], [23]),
    ("all", [0], [23]),
    ("channel", [0, 1], [22, 23]),
    ("column", [0, 2, 4], [19, 21, 23]),
])
def test_ranges_of_images(scale, low, high):
    inputs = Inputs.of(IMAGES, scale)
    assert (inputs.low.tolist(), inputs.high.tolist()) == (low, high)
    inputs.check((2, 3, 2), 10)
    made = inputs.to_bytes(IMAGES)
    bounds = [np.reshape(bound, (-1, 1) if scale == "column" else -1) for bound in (low, high)]
    assert (made == np.floor((IMAGES - bounds[0]) / (bounds[1] - bounds[0]) * 255 + 0.5)).all()


@pytest.mark.parametrize(("shape", "scale", "chosen"), [
    ((3,), None, "feature"), ((3,), "all", "all"), ((4, 4, 1), None, "all")])
def test_default_scale(shape, scale, chosen):
    assert scale_for(shape, scale) == chosen


@pytest.mark.parametrize(("shape", "scale", "message"), [
    ((3,), "column", "`scale` of rows of features must be one of feature, all, not 'column'"),
    ((4, 4, 1), "feature", "`scale` of images must be one of all, channel, column, not 'feature'"),
    ((4, 4), None, r"Frames must be rows of features or images with channels, not of shape "
     r"\(4, 4\)"),
])
def test_scales_that_do_not_fit(shape, scale, message):
    with pytest.raises(BennError, match=f"^{message}$"):
        scale_for(shape, scale)


@pytest.mark.parametrize("value", [0., -0., 1., 1e300, -1.7e308, np.finfo(float).max, 5e-324])
def test_a_value_that_never_changes(value):
    inputs = Inputs.of(np.full((3, 1), value))
    assert inputs.to_bytes([[value]]).tolist() == [[255 if value == np.finfo(float).max else 0]]
    assert inputs.to_bytes([[-np.finfo(float).max]]).tolist() == [[0]]


def test_single_precision_is_widened_first():
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    inputs = Inputs.of(x)
    assert (inputs.to_bytes(x) == inputs.to_bytes(x.astype(float))).all()


def test_bytes_have_no_scale():
    assert Inputs.of(np.zeros((3, 2), np.uint8)).scale == "bytes"
    with pytest.raises(BennError, match="`scale` is for floats; the data are uint8"):
        Inputs.of(np.zeros((3, 2), np.uint8), "all")


@pytest.mark.parametrize(("scale", "why"), [
    ("bytes", "was trained on bytes, which are taken as they are"),
    ("unknown", "does not say how floats become bytes"),
])
def test_floats_for_a_model_without_range(scale, why):
    with pytest.raises(BennError, match=f"Inputs must be bytes, not float64: the model {why}"):
        Inputs(scale).to_bytes(np.zeros((1, 2)))


@pytest.mark.parametrize(("options", "message"), [
    ({"scale": "log"}, "Scale must be one of unknown, bytes, all, feature, channel, column"),
    ({"scale": "all"}, "Scale all cannot have ranges of 0 and 0 bounds"),
    ({"scale": "all", "low": np.ones(1), "high": np.ones(1)}, "Input ranges must be finite, with"),
    ({"scale": "all", "low": np.array([np.nan]), "high": np.ones(1)}, "Input ranges must be"),
    ({"scale": "all", "low": np.zeros(1, "f4"), "high": np.ones(1)}, "must be float64 arrays"),
    ({"class_names": ["a"]}, "Class names must be a tuple of strings"),
    ({"class_names": ("a", "")}, "Class name must be 1 to 200 printable characters, not ''"),
    ({"feature_names": tuple(f"{n:0190}" for n in range(1400))},
     "Feature names must have at most 262144 characters in all, not 271600; shorten them"),
    ({"feature_names": ("a", "a")}, "Feature names must differ, but 'a' is there twice"),
])
def test_wrong_inputs(options, message):
    with pytest.raises(BennError, match=message):
        Inputs(**options)


@pytest.mark.parametrize(("inputs", "message"), [
    (Inputs(class_names=("a", "b")), "There must be 3 class names, one for each, not 2"),
    (Inputs(feature_names=("a", "b")), "There must be 4 feature names, one for each, not 2"),
    (Inputs("feature", np.zeros(3), np.ones(3)), "Ranges by feature of inputs .* must be 4, not 3"),
    (Inputs("column", np.zeros(4), np.ones(4)), "`scale` of rows of features must be one of"),
])
def test_inputs_that_do_not_fit(inputs, message):
    with pytest.raises(BennError, match=message):
        inputs.check((4,), 3)


# One column of three, or one channel of two, has nearly the whole range.
COLUMNS = np.array([1., 20., 0.5]).reshape(1, 1, 3, 1) * np.linspace(0, 1, 50).reshape(-1, 1, 1, 1)


@pytest.mark.parametrize(("x", "scale", "words"), [
    (COLUMNS, None, "half of the columns take at most 14 of 256 values; try `scale` column"),
    (COLUMNS.transpose(0, 1, 3, 2), "all", "half of the channels take at most 14 of 256 values; "
                                           "try `scale` channel"),
    (COLUMNS[:, 0, :, 0], "all", "half of the features take at most 14 of 256 values; try `scale`"),
    (COLUMNS, "column", None),
    (COLUMNS[:, 0, :, 0], None, None),
    (np.random.default_rng(0).random((50, 4, 4, 3)), None, None),
])
def test_bits_that_one_range_for_all_wastes(x, scale, words):
    inputs = Inputs.of(x, scale)
    found = wasted(inputs, inputs.to_bytes(x))
    assert found is None if words is None else words in found
