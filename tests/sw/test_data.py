import dataclasses
import gzip
import sys

import numpy as np
import pytest

import draw
from benn_fpga import BennError, BennWarning, presets
from benn_fpga.raw import Inputs
from benn_fpga.sw import data


def message(*args, **options):
    with pytest.raises(BennError) as caught:
        data.load(*args, **options)
    return str(caught.value)


def arrays(**changed):
    """A valid data set of 3 classes and 4 features, with some arrays changed."""
    rng = np.random.default_rng(0)
    return {"x_train": rng.integers(0, 256, (30, 4), np.uint8), "y_train": np.arange(30) % 3,
            "x_test": rng.integers(0, 256, (9, 4), np.uint8), "y_test": np.arange(9) % 3,
            **changed}


@pytest.fixture
def save(tmp_path):
    def write(**changed):
        np.savez(tmp_path / "d.npz", **arrays(**changed))
        return str(tmp_path / "d.npz")
    return write


def test_digits():
    digits = data.load("digits")
    assert (digits.shape, digits.bits, digits.high, digits.classes) == ((8, 8, 1), 5, 16, 10)
    assert digits.x_train.shape == (1078, 8, 8, 1)
    assert (len(digits.x_valid), len(digits.x_test)) == (119, 600)
    assert digits.x_train.dtype == np.uint8
    assert digits.sha256 == data.load("digits", limit=99).sha256


def test_every_class_has_its_share():
    digits = data.load("digits")
    assert np.bincount(digits.y_valid).tolist() == [12] * 8 + [11, 12]
    assert np.ptp(np.bincount(digits.y_test) - np.bincount(digits.y_train) * 600 / 1078) < 2


def test_the_parts_are_disjoint_and_complete():
    digits = data.load("digits")
    frames = np.concatenate([digits.x_train, digits.x_valid, digits.x_test]).reshape(1797, -1)
    from sklearn.datasets import load_digits
    assert sorted(map(bytes, frames)) == sorted(map(bytes, load_digits().data.astype(np.uint8)))


def test_split_seed_draws_validation_only():
    one, other = data.load("digits"), data.load("digits", split_seed=1)
    assert (one.x_test == other.x_test).all()
    assert (one.x_valid != other.x_valid).any()


def test_limit_and_valid():
    digits = data.load("digits", limit=100, valid=10)
    assert (len(digits.x_train), len(digits.x_valid), len(digits.x_test)) == (100, 10, 600)
    assert np.bincount(digits.y_train).min() >= 9


@pytest.mark.parametrize("limit", [50, 1078, 5000])
def test_validation_does_not_depend_on_the_limit(limit):
    whole, part = data.load("digits"), data.load("digits", limit=limit)
    assert (whole.x_valid == part.x_valid).all()
    assert set(map(bytes, part.x_train)) <= set(map(bytes, whole.x_train))


def test_every_data_set_has_defaults():
    assert list(data.DATASETS) == list(presets.DEFAULTS)


def test_missing_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert message("digits") == ("scikit-learn is not installed; "
                                 "run: pip install 'benn_fpga[train]'")


def test_unknown_name():
    assert message("minst") == ("unknown data set 'minst'; known: digits, mnist, fashion-mnist, "
                                "cifar10, or the path of an .npz or .csv file, see "
                                "docs/your-own-data.md")


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + b"".join(n.to_bytes(4, "big") for n in array.shape) \
        + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx_files(tmp_path, name):
    for part, frames in (("train", 60), ("t10k", 20)):
        images = np.full((frames, 28, 28), 255)
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(frames) % 10))
    found = data.load(name, tmp_path)
    assert (found.shape, found.bits, found.name) == ((28, 28, 1), 8, name)
    assert (len(found.x_train), len(found.x_valid), len(found.x_test)) == (54, 6, 20)


def test_cifar10_files(tmp_path):
    for stem in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5",
                 "test_batch"):
        records = np.full((20, 3073), 200, np.uint8)
        records[:, 0] = np.arange(20) % 10
        (tmp_path / f"{stem}.bin").write_bytes(records.tobytes())
    found = data.load("cifar10", tmp_path)
    assert found.shape == (32, 32, 3)
    assert (len(found.x_train), len(found.x_valid), len(found.x_test)) == (90, 10, 20)


RNG = np.random.default_rng(3)
TABLE = ["u,kind,v", *(f"{u:.3f},{'cab'[n % 3]},{v:.3f}"
                       for n, (u, v) in enumerate(RNG.normal(size=(60, 2))))]


@pytest.fixture
def table(tmp_path):
    def write(lines=TABLE):
        (tmp_path / "t.csv").write_text("\n".join(lines))
        return str(tmp_path / "t.csv")
    return write


def test_a_table(table):
    found = data.load(table(), label="kind")
    assert (found.name, found.shape, found.bits, found.label) == ("t.csv", (2,), 8, "kind")
    assert (found.inputs.class_names, found.inputs.feature_names) == (("a", "b", "c"), ("u", "v"))
    assert (len(found.x_train), len(found.x_valid), len(found.x_test)) == (44, 4, 12)
    assert np.bincount(found.y_test).tolist() == [4, 4, 4]
    seen = np.concatenate([found.x_train, found.x_valid])
    assert (seen.min(axis=0).tolist(), seen.max(axis=0).tolist()) == ([0, 0], [255, 255])
    assert found.sha256 == data.load(table(), label=2).sha256


def trained_on(dataset):
    """A model that knows what training on a :class:`Dataset` tells it."""
    model = draw.random_model(np.random.default_rng(0), shape=dataset.shape, hidden=(), raw_bits=8,
                              classes=dataset.classes)
    return dataclasses.replace(model, inputs=dataset.inputs, provenance={
        "data_sha256": dataset.sha256, "label": dataset.label})


@pytest.mark.parametrize("split", presets.SPLITS)
def test_the_parts_of_a_table_are_those_of_training(table, split):
    found = data.load(table(), label="kind")
    x, y, same = data.part(trained_on(found), table(), split)
    assert (x == getattr(found, f"x_{split}")).all()
    assert (y == getattr(found, f"y_{split}")).all()
    assert same


def test_another_table_is_a_test_part(table):
    model = trained_on(data.load(table(), label="kind"))
    other = table(["v,kind,u", "1,b,2", "3,a,4"])
    with pytest.warns(BennWarning, match=r"t\.csv is taken as a test part as a whole, whether"):
        x, y, same = data.part(model, other, "test")
    assert (x == model.inputs.to_bytes([[2, 1], [4, 3]])).all()
    assert (y.tolist(), same) == ([1, 0], False)
    with pytest.raises(BennError, match="has no validation part: it is not the table that"):
        data.part(model, other, "valid")


@pytest.mark.filterwarnings("ignore::benn_fpga.BennWarning")
@pytest.mark.parametrize(("lines", "y"), [(["u,v", "1,2"], None), (["1,2,c"], [2]),
                                          (["u,v,class", "1,2,1"], [1])])
def test_labels_of_another_table(table, lines, y):
    model = dataclasses.replace(trained_on(data.load(table(), label="kind")), provenance={})
    found = data.part(model, table(lines), "test")[1]
    assert (None if found is None else found.tolist()) == y


def test_a_table_with_a_class_that_the_model_does_not_know(table):
    model = trained_on(data.load(table(), label="kind"))
    with pytest.raises(BennError, match=r"t\.csv: y has the label 'd', but the classes are"):
        data.part(model, table([*TABLE, "1,d,2"]), "test")


def test_only_a_table_has_a_column_of_labels(save):
    assert message("digits", label="x") == "`label` is for a .csv file, not for digits"


def test_npz_of_bytes(save):
    found = data.load(save())
    assert (found.name, found.shape, found.bits, found.classes) == ("d.npz", (4,), 8, 3)
    assert (len(found.x_train), len(found.x_valid), len(found.x_test)) == (27, 3, 9)


def test_npz_has_the_width_of_its_values(save):
    found = data.load(save(x_train=np.full((30, 4), 5, np.uint8), x_test=np.ones((9, 4), "u1")))
    assert (found.high, found.bits) == (5, 3)


def test_the_test_part_says_only_how_wide_a_value_is(save):
    found = data.load(save(x_train=np.full((30, 4), 5, np.uint8), x_test=np.full((9, 4), 9, "u1")))
    assert (found.high, found.bits) == (5, 4)
    assert (found.x_test == 9).all()


@pytest.mark.parametrize(("shape", "expected"), [((6, 5), (6, 5, 1)), ((6, 5, 3), (6, 5, 3))])
def test_npz_of_images(save, shape, expected):
    found = data.load(save(x_train=np.ones((30, *shape), "u1"), x_test=np.ones((9, *shape), "u1")))
    assert found.shape == expected


def test_float_features_each_have_their_range(save):
    x = np.zeros((30, 2))
    x[:, 0], x[:, 1] = np.linspace(-1, 1, 30), 7
    test = np.array([[-5, 7], [0, 8], [9, 6]] * 3)
    found = data.load(save(x_train=x, x_test=test.astype(float)))
    assert found.x_test[:3].tolist() == [[0, 0], [128, 255], [255, 0]]
    assert (found.x_train[:, 1] == 0).all()


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
@pytest.mark.parametrize(("low", "high"), [(-1.7e308, 1.7e308), (0., 5e-324), (1.7e308, 1.7e308)])
def test_floats_at_the_limits(save, shape, low, high):
    x = np.full((30, *shape), low)
    x[::2] = high
    test = np.full((9, *shape), 1.79e308)
    found = data.load(save(x_train=x, x_test=test))
    assert (found.x_test == 255).all()
    assert found.x_train.min() == 0


def test_scaling_is_that_of_the_formula(save):
    x = np.random.default_rng(0).normal(size=(39, 4)).astype(np.float32)
    low, high = x[:30].min(axis=0).astype(float), x[:30].max(axis=0)
    expected = np.clip(np.floor(255 * ((x[30:] - low) / (high - low)) + 0.5), 0, 255)
    assert (data.load(save(x_train=x[:30], x_test=x[30:])).x_test == expected).all()


def test_float_images_have_one_range(save):
    x = np.zeros((30, 1, 2), np.float32)
    x[:, 0, 1] = 2
    found = data.load(save(x_train=x, x_test=np.ones((9, 1, 2), np.float32)))
    assert found.x_train[0].ravel().tolist() == [0, 255]
    assert found.x_test[0].ravel().tolist() == [128, 128]


@pytest.mark.parametrize(("changed", "expected"), [
    ({"x_train": np.ones((30, 4), np.int64)}, "x_train must be uint8 or float, not int64; "
     "save x_train.astype(np.uint8), or .astype(float) if values exceed 0..255"),
    ({"x_test": np.array(["a"])}, "x_test must be uint8 or float, not <U1; save numbers"),
    ({"x_train": np.ones(30)}, "x_train must be (frames, features) or "
     "(frames, rows, columns[, channels]) and not empty, not (30,)"),
    ({"x_test": np.ones((0, 4), "u1")}, "x_test must be (frames, features) or "
     "(frames, rows, columns[, channels]) and not empty, not (0, 4)"),
    ({"x_train": np.full((30, 4), np.nan)}, "x_train must be finite, but is nan in frame 0 at "
     "0; leave such frames out, or fill them in"),
    ({"x_train": np.full((30, 4), np.finfo(np.longdouble).max)},
     "x_train must be finite, but is inf in frame 0 at 0; leave such frames out, or fill them in"),
    ({"x_test": np.where(np.arange(36).reshape(9, 4) == 13, np.inf, 1.0)},
     "x_test must be finite, but is inf in frame 3 at 1; leave such frames out, or fill them in"),
    ({"x_test": np.ones((9, 5), "u1")},
     "x_train and x_test must be alike, not uint8 (30, 4) and uint8 (9, 5); save both "
     "as the same type, with frames of the same shape"),
    ({"x_test": np.ones((9, 4))},
     "x_train and x_test must be alike, not uint8 (30, 4) and float64 (9, 4); save both "
     "as the same type, with frames of the same shape"),
    ({"y_train": np.arange(29)}, "y_train must be one label for each of the 30 frames of x_train, "
     "not an array of shape (29,)"),
    ({"y_test": np.ones((9, 1), int)}, "y_test must be one label for each of the 9 frames of "
     "x_test, not an array of shape (9, 1)"),
    ({"y_train": np.arange(30) / 2}, "y_train must be whole numbers, not 0.5; "
     "number the classes from 0"),
    ({"y_train": np.arange(30) + 1j}, "y_train must be whole numbers or text, not complex128; "
     "number the classes from 0 and save them as integers"),
    ({"y_train": np.full(30, np.nan)}, "y_train must be whole numbers, not nan; "
     "number the classes from 0"),
    ({"y_train": np.arange(30) - 1}, "y_train must be labels in 0..65535, not -1; "
     "number the classes from 0"),
    ({"x_train": np.ones((30, 3, 12, 12)), "x_test": np.ones((9, 3, 12, 12))},
     "frames of 3 x 12 x 12 seem to have their channels first; save x.transpose(0, 2, 3, 1), or if "
     "rows do come first x.transpose(0, 2, 1, 3)"),
    ({"y_test": np.arange(9)}, "y_test must be labels in 0..2, not 8; it has no training "
     "frame"),
    ({"y_train": np.full(30, 4)}, "y_train has the one class 4; at least 2 are needed"),
    ({"y_train": np.arange(30) % 3 * 2},
     "class 1 of 0..4 has no training frame; number the classes without gaps"),
    ({"y_train": np.arange(30) % 3 + 1},
     "class 0 of 0..3 has no training frame; if labels start from 1, subtract 1"),
    ({"y_train": np.arange(30) % 3 + 1, "class_names": np.array(["a", "b", "c"])},
     "y_train must be labels in 0..2, for 3 class names, not 3; labels start from 1: subtract 1"),
    ({"class_names": np.array(["a", "b"])},
     "y_train must be labels in 0..1, for 2 class names, not 2; add a name"),
    ({"class_names": np.array(["a", "b", "c", "d"])},
     "class 3 ('d') of 0..3 has no training frame; leave out its name"),
    ({"class_names": np.array(["a", "b", "a"])}, "Class names must differ, but 'a' is there twice"),
    ({"feature_names": np.array(["a", "b"])},
     "There must be 4 feature names, one for each, not 2"),
    ({"y_train": np.full(30, "a")}, "y_train has the one class a; at least 2 are needed"),
    ({"y_train": np.array(["a", "b"] * 15), "y_test": np.array(["a", "b", "c"] * 3)},
     "y_test has the label 'c', but the classes are 'a', 'b'"),
    ({"y_test": np.array(["a", "b", "c"] * 3)}, "y_test must be numbers of classes from 0, not "
     "text: there are no class names to look it up in"),
    ({"y_train": np.array([0] * 15 + [1] + [2] * 14)}, "class 1 has no frame left to train on: "
     "27 frames are used, 3 more for validation; use more frames"),
])
def test_bad_npz(save, changed, expected):
    assert message(save(**changed)) == f"d.npz: {expected}"


@pytest.mark.parametrize("dtype", [float, np.float32, np.uint8])
def test_labels_of_any_type_that_are_whole_numbers(save, dtype):
    found = data.load(save(y_train=(np.arange(30) % 3).astype(dtype)))
    assert (found.y_train.dtype, found.sha256) == (np.int64, data.load(save()).sha256)


def test_labels_that_are_text_are_sorted_into_class_names(save):
    names = np.array(["owl", "cat", "dog"])
    found = data.load(save(y_train=names[np.arange(30) % 3], y_test=names[np.arange(9) % 3]))
    assert found.inputs.class_names == ("cat", "dog", "owl")
    assert found.y_test.tolist() == [2, 0, 1] * 3


def test_labels_that_are_text_follow_the_class_names_that_are_given(save):
    names = np.array(["owl", "cat", "dog"])
    found = data.load(save(y_train=names[np.arange(30) % 3], y_test=names[np.arange(9) % 3],
                           class_names=names))
    assert (found.inputs.class_names, found.y_test.tolist()) == (tuple(names), [0, 1, 2] * 3)


@pytest.mark.parametrize("shape", [(12, 3, 12), (2, 12, 12), (3, 12, 1), (1, 12, 3)])
def test_frames_whose_channels_need_not_be_first(save, shape):
    x = np.ones((39, *shape), np.uint8)
    assert data.load(save(x_train=x[:30], x_test=x[30:])).shape == shape


@pytest.mark.parametrize(("options", "expected"), [
    ({"limit": 0}, "Limit must be at least 1 frame, not 0"),
    ({"valid": 30}, "d.npz: 30 training frames cannot give 30 validation frames; use more data"),
    ({"limit": 2}, "d.npz: class 1 has no frame left to train on: 2 frames are used, "
     "3 more for validation; use more frames"),
])
def test_too_few_frames(save, options, expected):
    assert message(save(), **options) == expected


FLOATS = np.random.default_rng(1).normal(size=(39, 4))


def model(inputs, **provenance):
    base = draw.random_model(np.random.default_rng(0), shape=(4,), classes=3)
    return dataclasses.replace(base, inputs=inputs, provenance=provenance)


@pytest.fixture
def saves(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "d.npz", **arrays)
        return str(tmp_path / "d.npz")
    return write


def test_a_part_is_scaled_by_the_range_of_the_model(save):
    own = Inputs.of(FLOATS[:30])
    path = save(x_train=FLOATS[:30] * 7, x_test=FLOATS[30:])
    x, y, same = data.part(model(own, data_sha256="other"), path, "test")
    assert (x == own.to_bytes(FLOATS[30:])).all()
    assert (y.tolist(), same) == ([0, 1, 2] * 3, False)


def test_a_model_without_range_takes_that_of_the_data(save):
    path = save(x_train=FLOATS[:30], x_test=FLOATS[30:])
    x, _, _ = data.part(model(Inputs()), path, "test")
    assert (x == data.load(path).x_test).all()


@pytest.mark.parametrize("scale", [None, "all"])
@pytest.mark.parametrize("split", presets.SPLITS)
def test_the_parts_are_those_of_training(save, split, scale):
    path = save(x_train=FLOATS[:30], x_test=FLOATS[30:])
    found = data.load(path, scale=scale)
    x, y, same = data.part(model(found.inputs, data_sha256=found.sha256), path, split)
    assert (x == getattr(found, f"x_{split}")).all()
    assert (y == getattr(found, f"y_{split}")).all()
    assert same is True


@pytest.mark.parametrize("labels", [{}, {"y": np.arange(9) % 2}])
@pytest.mark.parametrize("key", ["x", "x_test"])
def test_a_part_alone_is_enough(saves, key, labels):
    path = saves(**{key: FLOATS[30:]}, **{f"y{key[1:]}": y for y in labels.values()})
    x, y, same = data.part(model(Inputs.of(FLOATS[:30]), data_sha256="x"), path, "test")
    assert (x == Inputs.of(FLOATS[:30]).to_bytes(FLOATS[30:])).all()
    assert (y is None, same) == (not labels, None)


def test_text_is_looked_up_in_the_names_of_the_model(saves):
    inputs = Inputs.of(FLOATS, class_names=["owl", "cat", "dog"])
    path = saves(x=FLOATS[:2], y=np.array(["dog", "owl"]))
    assert data.part(model(inputs), path, "test")[1].tolist() == [2, 0]


def test_labels_without_frames_are_not_looked_at(saves):
    path = saves(x_test=FLOATS, y_train=np.arange(7) / 3)
    assert data.part(model(Inputs.of(FLOATS), data_sha256="x"), path, "test")[1:] == (None, None)


@pytest.mark.parametrize(("inputs", "split", "changed", "expected"), [
    (Inputs.of(FLOATS), "test", {"x": np.float64(1), "y": np.arange(3)}, "d.npz: x is empty"),
    (Inputs.of(FLOATS), "test", {"x": np.float64(1)}, "must have shape (frames, 4), not ()"),
    (Inputs.of(FLOATS), "valid", {}, "d.npz has no array x_train, of which the valid part is "),
    (Inputs.of(FLOATS), "test", {"x": None, "z": FLOATS},
     "d.npz has no array x_test or x, of which the test part is taken"),
    (Inputs.of(FLOATS), "train", {"x_train": FLOATS}, "d.npz has no array 'y_train'; it must hold"),
    (Inputs(), "test", {}, "d.npz has floats, and the model, of an older file, does not say how "
     "they become bytes; train it again, or add x_train, whose range is taken"),
    (Inputs(), "test", {"x_train": FLOATS[:, :3]}, "d.npz: x_train and x must be alike: "),
    (Inputs(), "test", {"x_train": FLOATS * np.nan}, "d.npz: x_train must be finite, but is nan "),
    (Inputs.of(FLOATS), "test", {"x": FLOATS[:, :3]},
     "d.npz: Inputs must have shape (frames, 4), not (39, 3)"),
    (Inputs.of(FLOATS), "test", {"y": np.arange(39) % 5}, "d.npz has 5 classes, but the model "),
    (Inputs.of(FLOATS), "test", {"y": np.arange(39) % 3 + 1},
     "d.npz has 4 classes, but the model knows 3; labels start from 1: subtract 1"),
    (Inputs("bytes"), "test", {}, "d.npz: Inputs must be whole numbers in 0..255, not "),
    (Inputs.of(FLOATS, class_names=["a", "b", "c"]), "test",
     {"class_names": np.array(["a", "c", "b"])},
     "d.npz: class_names must be those of the model, but number 1 is 'c', not 'b'"),
    (Inputs.of(FLOATS, feature_names=list("abcd")), "test", {"feature_names": np.array(["a"])},
     "d.npz: feature_names must be those of the model, but number 1 is nothing, not 'b'"),
])
def test_parts_that_cannot_be_taken(saves, inputs, split, changed, expected):
    path = saves(**{key: array for key, array in {"x": FLOATS, **changed}.items()
                    if array is not None})
    with pytest.raises(BennError) as caught:
        data.part(model(inputs), path, split)
    assert expected in str(caught.value)


def test_folds_hold_every_frame_once(save):
    x = np.arange(31 * 4, dtype=np.uint8).reshape(31, 4)
    y = np.array([0] * 2 + [1] * 9 + [2] * 20)
    found = data.load(save(x_train=x, y_train=y))
    parts = list(data.folds(found, 5))
    held = np.concatenate([part.x_valid for part in parts])
    assert np.sort(held, axis=0).tolist() == x.tolist()
    assert [np.bincount(part.y_valid, minlength=3)[2] for part in parts] == [4] * 5
    for part in parts:
        assert not set(map(bytes, part.x_train)) & set(map(bytes, part.x_valid))
        assert len(part.x_train) + len(part.x_valid) == 31
        assert set(part.y_train) == {0, 1, 2}


@pytest.mark.parametrize(("count", "message"), [
    (1, "Folds must be 2 to the number of frames, here 30, not 1"),
    (31, "Folds must be 2 to the number of frames, here 30, not 31")])
def test_no_folds(save, count, message):
    with pytest.raises(BennError, match=message):
        next(data.folds(data.load(save()), count))


def test_a_class_that_no_fold_could_train(save):
    found = data.load(save(y_train=np.array([1] * 15 + [2] * 14 + [0])))
    with pytest.raises(BennError, match="class 0 has 1 frame, so there is none to train"):
        next(data.folds(found, 3))


def test_one_row_may_be_channels_that_come_first(save):
    with pytest.warns(BennWarning, match="frames of 1 x 49 x 10 are taken as 1 row of 49 columns"):
        found = data.load(save(x_train=np.ones((30, 1, 49, 10)), x_test=np.ones((9, 1, 49, 10))))
    assert found.shape == (1, 49, 10)
