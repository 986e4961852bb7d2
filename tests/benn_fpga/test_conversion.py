import dataclasses
import re
import warnings

import numpy as np
import pytest

import draw
from benn_fpga import golden
from benn_fpga.errors import BennError, BennWarning
from benn_fpga.raw import Inputs

RNG = np.random.default_rng(0)
FLOATS = RNG.normal(size=(40, 6)) * [1, 10, 100, 1, 1, 1000]
IMAGES = RNG.random((20, 4, 5, 2))
BASE = draw.random_model(np.random.default_rng(0), members=2, shape=(6,), classes=3)
ROWS = dataclasses.replace(BASE, inputs=Inputs.of(FLOATS, None, ["a", "b", "c"], list("uvwxyz")))
BYTES = dataclasses.replace(BASE, inputs=Inputs("bytes"))


def pictures(scale):
    model = draw.random_model(np.random.default_rng(1), shape=(4, 5, 2))
    return dataclasses.replace(model, inputs=Inputs.of(IMAGES, scale))


def same(one, other):
    return all((getattr(one, key) == getattr(other, key)).all()
               for key in ("classes", "margins", "totals", "scores"))


@pytest.mark.parametrize(("model", "x"), [
    (ROWS, FLOATS), (ROWS, FLOATS.astype(np.float32)), (pictures("all"), IMAGES),
    (pictures("column"), IMAGES), (pictures("channel"), IMAGES.astype(np.float16))])
def test_floats_become_bytes_by_the_range_of_the_model(model, x):
    raw = model.inputs.to_bytes(x)
    result = model.answer(x)
    assert (result.input_type, same(result, golden.run(model, raw))) == ("floats", True)
    assert (model.predict(x.reshape(len(x), -1)) == result.classes).all()
    given = model.answer(raw)
    assert (given.input_type, same(given, result)) == ("bytes", True)


def test_grey_images_need_no_axis_of_channels():
    model = draw.random_model(np.random.default_rng(0), shape=(4, 4, 1))
    x = draw.random_frames(np.random.default_rng(1), model, 5)
    assert (model.predict(x.reshape(5, 4, 4)) == model.predict(x.reshape(5, 4, 4, 1))).all()


def test_names_and_rejection():
    plain = ROWS.answer(FLOATS)
    level = int(np.median(plain.margins)) + 1
    strict = dataclasses.replace(ROWS, reject=level).answer(FLOATS)
    assert not plain.rejected.any()
    assert plain.names == ["abc"[n] for n in plain.classes]
    assert (strict.rejected == (plain.margins < level)).all()
    assert [name == "unknown" for name in strict.names] == strict.rejected.tolist()
    assert BYTES.answer(np.zeros((1, 6), int)).class_names == ("0", "1", "2")


def test_a_margin_as_large_as_that_of_the_model_counts():
    least = int(ROWS.answer(FLOATS).margins.max())
    assert (~dataclasses.replace(ROWS, reject=least).answer(FLOATS).rejected).any()


@pytest.mark.parametrize(("model", "x", "message"), [
    (BYTES, np.full((1, 6), .25), "Inputs must be whole numbers in 0..255, not 0.25: the model was "
     "trained on bytes; multiply values in 0..1 by the largest of training, at most "
     "255, and round"),
    (BYTES, np.full((1, 6), -1.), "Inputs must be whole numbers in 0..255, not -1.0: the model was "
     "trained on bytes; scale them as those of training were"),
    (BYTES, np.full((1, 6), np.nan), "Inputs must be whole numbers in 0..255, not nan: "),
    (BASE, np.ones((1, 6)), "Inputs must be bytes, not float64: the model does not say how "),
    (ROWS, np.full((1, 6), np.inf), "x must be finite, but is inf in frame 0 at 0; "),
    (ROWS, np.full((1, 6), 300), "Inputs must be bytes in 0..255 if they are integers, but range "
     "from 300 to 300; if they are what the model was trained on, give floats: x.astype(float)"),
    (ROWS, np.array([list("abcdef")]), "Inputs must be floats or integers, not <U1"),
    (ROWS, np.ones((1, 5)), "Inputs must have shape (frames, 6), not (1, 5)"),
    (ROWS, np.ones(6), "Inputs must have shape (frames, 6), not (6,); for one frame give x[None]"),
    (ROWS, np.empty((0, 6)), "Inputs must be at least one frame, not none"),
    (ROWS, np.float64(1), "Inputs must have shape (frames, 6), not ()"),
    (pictures("all"), np.ones((1, 2, 4, 5)), "Inputs must have shape (frames, 4, 5, 2), not "
     "(1, 2, 4, 5); the channels come last: give x.transpose(0, 2, 3, 1)"),
])
def test_what_cannot_be_meant(model, x, message):
    with pytest.raises(BennError, match="^" + re.escape(message)):
        model.answer(x)


def test_one_grey_image():
    grey = draw.random_model(np.random.default_rng(0), members=1, shape=(4, 5, 1), hidden=())
    with pytest.raises(BennError, match=r"not \(4, 5\); for one frame give x\[None\]$"):
        grey.answer(np.zeros((4, 5), np.uint8))


@pytest.mark.parametrize(("model", "x", "message"), [
    (BYTES, np.full((1, 6), 7.), "they are whole numbers and are taken as bytes"),
    (pictures("all"), IMAGES.astype(np.uint8), "if they were floats that were cast"),
    (pictures("all"), np.where(np.arange(IMAGES.size).reshape(IMAGES.shape) % 50, IMAGES,
                               99).astype(np.uint8), "if they were floats that were cast"),
    (ROWS, FLOATS.astype(np.uint8) * np.array([1, 0, 0, 1, 1, 0], np.uint8), "that were cast"),
    (ROWS, FLOATS + np.array([0, 0, 2000, 0, 0, 0]), "100 % of feature 2 (w) lie far "
     "outside the range of training, "),
    (ROWS, FLOATS * 40, ", and 5 more like it: they are clipped to it"),
    (pictures("channel"), IMAGES + np.array([0, 9]), "100 % of channel 1 lie far outside"),
    (pictures("all"), np.full((1, 4, 5, 2), 255.), "100 % of all values lie far outside the range "
     "of training, 0.000190002 to 0.999501: they are clipped to it; if they are bytes, give "
     "integers: x.astype(np.uint8)"),
])
def test_what_may_not_be_meant(model, x, message):
    with pytest.warns(BennWarning, match=re.escape(message)):
        model.answer(x)


@pytest.mark.parametrize(("model", "x"), [
    (ROWS, ROWS.inputs.to_bytes(FLOATS)),
    (pictures("all"), pictures("all").inputs.to_bytes(IMAGES)),
    (ROWS, np.concatenate([FLOATS] * 3 + [FLOATS[:1] * 1000])),
])
def test_what_is_meant(model, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.answer(x)


def test_ranges_as_wide_as_a_double():
    x = np.array([[-1.7e308], [1.7e308]])
    model = dataclasses.replace(draw.random_model(np.random.default_rng(0), shape=(1,)),
                                inputs=Inputs.of(x))
    assert model.answer(x).input_type == "floats"
