"""Data sets as raw integers, split into training, validation and test parts."""

import dataclasses
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benn_fpga.conversion import to_raw
from benn_fpga.errors import BennError, MissingExtra, about, warn
from benn_fpga.presets import PARTS
from benn_fpga.raw import Inputs, check_finite
from benn_fpga.readers import labelled, npz
from benn_fpga.sw import files, formats, labels

__all__ = ["DATASETS", "Dataset", "folds", "load", "part"]

CLASS_NAMES = {  # of those whose classes are not digits
    "fashion-mnist": ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
                      "sneaker", "bag", "ankle boot"),
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
                "truck"),
}
SPLIT_SEED = 0
_DIGITS_TEST = 600
_TABLE_TEST = 5  # a fifth of the rows
_MOST_VALIDATION = 5000


@dataclass(frozen=True, eq=False)
class Dataset:
    """Raw values, one byte each, and their classes.

    Members
    -------
    name : as the user named it; of an ``.npz`` the name of the file
    shape : (rows, columns, channels) or (features,)
    bits : width of a value in any part
    high : largest value of the training part, by which encoders are placed: the test part only
        says how wide a value is
    classes : labels are 0..classes - 1
    sha256 : of all values and labels, before ``limit`` and validation split
    inputs : how floats became these values, and what classes and features are called
    label : of a table, the column that has the labels, as in
        :class:`~benn_fpga.readers.labelled.Table`
    x_train, x_valid, x_test : uint8 (frames, *shape)
    y_train, y_valid, y_test : int64 (frames,)
    """

    name: str
    shape: tuple[int, ...]
    bits: int
    high: int
    classes: int
    sha256: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_valid: np.ndarray
    y_valid: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    inputs: Inputs = field(default_factory=Inputs)
    label: str | int | None = None


def load(name, data_dir=None, limit=None, valid=None, split_seed=SPLIT_SEED, show=None,
         scale=None, label=None):
    """The data set called ``name``: one of :data:`DATASETS`, or the path of an ``.npz`` or ``.csv``
    file.

    Parameters
    ----------
    data_dir : folder of its files; see :func:`benn_fpga.sw.files.read`
    limit : use that many training frames, drawn evenly from the classes; validation and test
        part do not depend on it
    valid : validation frames, drawn evenly from the classes of the training part;
        a tenth of it, at most 5000, if None
    split_seed : draws them
    show : progress of downloads, as in :func:`benn_fpga.progress.bar`
    scale : how floats become bytes, see :func:`benn_fpga.raw.scale_for`
    label : column of a ``.csv`` file that has the labels, see
        :func:`benn_fpga.readers.labelled.read_table`. A fifth of its rows is the test part
    """
    if label is not None and not _is_csv(name):
        raise BennError(f"`label` is for a .csv file, not for {name}")
    if name in DATASETS:
        arrays = DATASETS[name](data_dir, show)
        inputs = Inputs.of(arrays[0], scale, CLASS_NAMES.get(name, map(str, range(10))))
    else:
        _check_name(name)
        if _is_csv(name):
            arrays, inputs, label = _csv(Path(name), scale, label)
        else:
            arrays, inputs = _npz(Path(name), scale)
        name = Path(name).name
    x_train, y_train, x_test, y_test = arrays
    names = inputs.class_names
    classes = len(names) or None
    y_train = labels.numbers(name, "y_train", y_train, len(x_train), classes, names)
    classes = classes or max(2, int(y_train.max()) + 1)
    labels.check_every_class(name, y_train, classes, names)
    y_test = labels.numbers(name, "y_test", y_test, len(x_test), classes, names)
    shape = x_train.shape[1:]
    if x_test.shape[1:] != shape:
        raise BennError(f"{name}: x_test must have frames of shape {shape} like x_train, "
                        f"not {x_test.shape[1:]}")
    with about(name):
        inputs.check(shape, classes)
    sha256 = _digest(x_train, y_train, x_test, y_test)
    high = max(1, int(x_train.max()))
    bits = 8 if inputs.has_range else max(high, int(x_test.max())).bit_length()

    held = _held(name, y_train, valid, split_seed)
    x_valid, y_valid, x_train, y_train = x_train[held], y_train[held], x_train[~held], \
        y_train[~held]
    if limit is not None:
        if limit < 1:
            raise BennError(f"Limit must be at least 1 frame, not {limit}")
        if limit < len(x_train):
            kept = _draw(y_train, limit, split_seed)
            x_train, y_train = x_train[kept], y_train[kept]
    lost = np.flatnonzero(np.bincount(y_train, minlength=classes) == 0)
    if len(lost):
        raise BennError(f"{name}: class {lost[0]} has no frame left to train on: {len(x_train)} "
                        f"frames are used, {len(x_valid)} more for validation; use more frames")
    return Dataset(name, shape, bits, high, classes, sha256,
                   x_train, y_train, x_valid, y_valid, x_test, y_test, inputs, label)


def part(model, name, split, data_dir=None, show=None):
    """A part of the data set called ``name``, as ``model`` takes it.

    Returns raw values, labels, and whether it is what the model was trained on, each of the last
    two None if it is not known. Floats become bytes by the range of the model; by that of the
    data set's own training part only if the model, of an older file, has none.

    Parameters
    ----------
    model : an :class:`~benn_fpga.spec.Ensemble`
    name, data_dir, show : as in :func:`load`, but an ``.npz`` needs only the part that is asked
        for; ``x`` and ``y`` alone are a test part, and labels may be left out. A ``.csv`` that
        is not the one of training is a test part
    split : one of :data:`benn_fpga.presets.SPLITS`
    """
    if name in DATASETS:
        dataset = load(name, data_dir, show=show)
        x, y = getattr(dataset, f"x_{split}"), getattr(dataset, f"y_{split}")
        sha256 = dataset.sha256
    else:
        _check_name(name)
        read = _csv_part if _is_csv(name) else _npz_part
        x, y, sha256 = read(model, Path(name), split)
        name = Path(name).name
    with about(name):
        raw, _ = to_raw(model, x)
    if y is not None and y.max() >= model.classes:
        cure = "labels start from 1: subtract 1" \
            if (y.min(), y.max()) == (1, model.classes) else "use the data it was trained on"
        raise BennError(f"{name} has {y.max() + 1} classes, but the model knows {model.classes}; "
                        f"{cure}")
    trained_on = model.provenance.get("data_sha256")
    return raw, y, None if None in (trained_on, sha256) else sha256 == trained_on


def _npz_part(model, path, split):
    """Frames, labels and digest, as :func:`part` takes them from an ``.npz`` file."""
    with npz.opened(path) as file:
        is_lone = split == "test" and "x_test" not in file
        keys = ("x", "y") if is_lone else ("x_test", "y_test") if split == "test" else \
            ("x_train", "y_train")
        if keys[0] not in file:
            raise BennError(f"{path} has no array {'x_test or x' if is_lone else keys[0]}, of "
                            f"which the {split} part is taken")
        if split != "test":
            file.require(keys)
        arrays = {key: file.array(key) for key in (*npz.PARTS, *keys) if key in file}
        for key in npz.NAMES:
            file.check_names(key, getattr(model.inputs, key))
        class_names = model.inputs.class_names or file.names("class_names")
    y = {key: labels.numbers(path.name, key, arrays[key], sum(arrays[of].shape[:1]),
                             names=class_names)
         for key, of in zip((*npz.PARTS[1::2], "y"), (*npz.PARTS[::2], "x"), strict=True)
         if key in arrays and of in arrays}
    x = {key: array[..., None] if array.ndim == 3 else array
         for key, array in arrays.items() if key.startswith("x")}
    inputs = model.inputs
    if inputs.scale == "unknown" and x[keys[0]].dtype.kind == "f":
        inputs = _own_range(path.name, x, keys[0])
        x[keys[0]] = inputs.to_bytes(x[keys[0]])
    sha256 = None
    if set(npz.PARTS) <= set(arrays):
        sha256 = _npz_digest(inputs, model.encoder.shape, x, y)
    x, y = x[keys[0]], y.get(keys[1])
    if split == "test":
        return x, y, sha256
    held = _held(path.name, y)
    chosen = held if split == "valid" else ~held
    return x[chosen], y[chosen], sha256


def _own_range(name, x, wanted):
    """The Inputs of floats for a model that does not say how they become bytes."""
    if "x_train" not in x:
        raise BennError(f"{name} has floats, and the model, of an older file, does not say how "
                        f"they become bytes; train it again, or add x_train, whose range is taken")
    for key in ("x_train", wanted):
        check_finite(x[key], f"{name}: {key}")
    if x["x_train"].dtype.kind != "f" or x["x_train"].shape[1:] != x[wanted].shape[1:]:
        raise BennError(f"{name}: x_train and {wanted} must be alike: the range of x_train is "
                        f"taken, since the model, of an older file, has none")
    return Inputs.of(x["x_train"])


def _npz_digest(inputs, shape, x, y):
    """The digest of a whole ``.npz``, as of the :class:`Dataset` that it is; empty if it is none
    that a model of these inputs was trained on."""
    parts = []
    for key in npz.PARTS:
        array = x.get(key, y.get(key))
        if key in x and array.dtype.kind == "f":
            if array.shape[1:] != shape or not inputs.has_range or not np.isfinite(array).all():
                return ""
            array = inputs.to_bytes(array)
        parts.append(array)
    return _digest(*parts)


def folds(dataset, count):
    """``count`` copies of a :class:`Dataset`, each with another part of its training and validation
    frames as validation part; every class has its share in each, to within one frame."""
    x = np.concatenate([dataset.x_train, dataset.x_valid])
    y = np.concatenate([dataset.y_train, dataset.y_valid])
    if not 2 <= count <= len(y):
        raise BennError(f"Folds must be 2 to the number of frames, here {len(y)}, not {count}")
    once = np.flatnonzero(np.bincount(y) == 1)
    if len(once):
        raise BennError(f"{dataset.name}: class {once[0]} has 1 frame, so there is none to train "
                        f"on in one of the folds; leave out the class, or use more data")
    order = _by_class(y, SPLIT_SEED)
    for n in range(count):
        held = np.zeros(len(y), bool)
        held[order[n::count]] = True
        yield dataclasses.replace(dataset, x_train=x[~held], y_train=y[~held], x_valid=x[held],
                                  y_valid=y[held])


def _draw(y, count, seed):
    """Mask of ``count`` frames in which each class has its share, to within one frame."""
    order = _by_class(y, seed)
    mask = np.zeros(len(y), bool)
    mask[order[(2 * np.arange(count) + 1) * len(y) // (2 * count)]] = True
    return mask


def _by_class(y, seed):
    """Indices of ``y``, class by class, in a random order within each."""
    # RandomState: its numbers are the same under every version of NumPy.
    order = np.random.RandomState(seed).permutation(len(y))
    return order[np.argsort(y[order], kind="stable")]


def _held(name, y, valid=None, seed=SPLIT_SEED):
    """Mask of the frames of a training part that are kept for validation."""
    if valid is None:
        valid = max(1, min(len(y) // 10, _MOST_VALIDATION))
    if not 1 <= valid < len(y):
        raise BennError(f"{name}: {len(y)} training frames cannot give {valid} validation "
                        f"frames; use more data")
    return _draw(y, valid, seed)


def _digest(*arrays):
    """SHA-256 of frames and labels, training part first."""
    sha256 = hashlib.sha256(str(arrays[0].shape[1:]).encode())
    for array in arrays:
        sha256.update(np.ascontiguousarray(array).data)
    return sha256.hexdigest()


def _digits(data_dir, show):
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn", "train") from None
    x, y = load_digits(return_X_y=True)
    x = x.astype(np.uint8).reshape(-1, 8, 8, 1)
    test = _draw(y, _DIGITS_TEST, SPLIT_SEED)
    return x[~test], y[~test], x[test], y[test]


def _idx(name):
    def read(data_dir, show):
        stems = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
        contents = files.read(name, stems, data_dir, show)
        arrays = [formats.idx(content, 3 if "images" in stem else 1, f"{name}: {stem}")
                  for stem, content in zip(stems, contents, strict=True)]
        return arrays[0][..., None], arrays[1], arrays[2][..., None], arrays[3]
    return read


def _cifar10(data_dir, show):
    stems = (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin")
    contents = files.read("cifar10", stems, data_dir, show)
    *train, test = (formats.cifar(content, f"cifar10: {stem}")
                    for stem, content in zip(stems, contents, strict=True))
    x, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return x, y, *test


def _is_csv(name):
    return str(name).lower().endswith(".csv")


def _check_name(name):
    if not str(name).lower().endswith((".npz", ".csv")):
        raise BennError(f"unknown data set {str(name)!r}; known: {', '.join(DATASETS)}, or the "
                        f"path of an .npz or .csv file, see docs/your-own-data.md")


def _csv(path, scale, label):
    """As :func:`_npz`, of a ``.csv`` file, and the column of its labels."""
    table = labelled.read_table(path, label)
    with about(path.name):
        inputs = Inputs("bytes", class_names=table.class_names, feature_names=table.feature_names)
    y = labels.numbers(path.name, "y", table.y, len(table.x), names=inputs.class_names)
    test = _tested(y)
    inputs = Inputs.of(table.x[~test], scale, inputs.class_names, inputs.feature_names)
    x = inputs.to_bytes(table.x)
    return (x[~test], y[~test], x[test], y[test]), inputs, table.label


def _tested(y):
    """Mask of the rows of a table that are its test part."""
    return _draw(y, max(1, len(y) // _TABLE_TEST), SPLIT_SEED)


def _csv_part(model, path, split):
    """Frames, labels and digest, as :func:`part` takes them from a ``.csv`` file."""
    inputs = model.inputs
    table = labelled.read_frames(path, model.encoder.values, inputs.feature_names,
                                 model.provenance.get("label"))
    x, y, sha256 = table.x, None, None
    if table.y is not None:
        texts = table.y.tolist()
        is_number = not inputs.class_names or not set(texts) & set(inputs.class_names)
        y = labels.numbers(path.name, "y", table.y.astype(np.int64) if is_number and all(
            text.lstrip("-").isdecimal() and len(text) < 18 for text in texts) else table.y,
            len(x), names=inputs.class_names)
    if y is not None and inputs.has_range:
        test, raw = _tested(y), inputs.to_bytes(x).reshape(len(x), *model.encoder.shape)
        sha256 = _digest(raw[~test], y[~test], raw[test], y[test])
        if sha256 == model.provenance.get("data_sha256"):
            if split == "test":
                return x[test], y[test], sha256
            x, y = x[~test], y[~test]
            held = _held(path.name, y)
            chosen = held if split == "valid" else ~held
            return x[chosen], y[chosen], sha256
    if split != "test":
        raise BennError(f"{path} has no {PARTS[split]} part: it is not the table that the model "
                        f"was trained on, so all of it is a test part")
    warn(f"{path} is taken as a test part as a whole, whether the model has seen its rows or not")
    if not inputs.has_range and (x == np.floor(x)).all() and np.abs(x).max() < 1 << 31:
        x = x.astype(np.int64)
    return x, y, sha256


def _npz(path, scale):
    """Frames and labels of an ``.npz`` file, and its :class:`~benn_fpga.raw.Inputs`.

    Labels that are text give class names, in alphabetical order, if the file has none.
    """
    with npz.opened(path) as file:
        file.require(npz.PARTS)
        x_train, y_train, x_test, y_test = map(file.array, npz.PARTS)
        class_names, feature_names = map(file.names, npz.NAMES)
    for key, x in (("x_train", x_train), ("x_test", x_test)):
        if x.dtype.kind != "f" and x.dtype != np.uint8:
            cure = (f"save {key}.astype(np.uint8), or .astype(float) if values exceed 0..255"
                    if x.dtype.kind in "biu" else "save numbers")
            raise BennError(f"{path.name}: {key} must be uint8 or float, not {x.dtype}; {cure}")
        if x.ndim not in (2, 3, 4) or 0 in x.shape:
            raise BennError(f"{path.name}: {key} must be (frames, features) or "
                            f"(frames, rows, columns[, channels]) and not empty, not {x.shape}")
        if x.dtype.kind == "f":
            check_finite(x, f"{path.name}: {key}")
    if x_train.dtype.kind != x_test.dtype.kind or x_train.shape[1:] != x_test.shape[1:]:
        raise BennError(f"{path.name}: x_train and x_test must be alike, not {x_train.dtype} "
                        f"{x_train.shape} and {x_test.dtype} {x_test.shape}; save both as the "
                        f"same type, with frames of the same shape")
    _check_channels(path.name, x_train.shape[1:])
    if x_train.ndim == 3:
        x_train, x_test = x_train[..., None], x_test[..., None]
    with about(path.name):
        inputs = Inputs.of(x_train, scale, class_names or labels.sorted_names(y_train),
                           feature_names)
    if inputs.has_range:
        x_train, x_test = inputs.to_bytes(x_train), inputs.to_bytes(x_test)
    return (x_train, y_train, x_test, y_test), inputs


def _check_channels(name, shape):
    """Raise if frames seem to have their channels first, which is a guess; of one row that is
    possible too, and gives a warning."""
    if len(shape) == 3 and shape[0] in (1, 3) and min(shape[1:]) > 4:
        size = " x ".join(map(str, shape))
        if shape[0] == 1:
            warn(f"{name}: frames of {size} are taken as 1 row of {shape[1]} columns and "
                 f"{shape[2]} channels; if they are {shape[1]} x {shape[2]} pixels, save x[:, 0]")
            return
        raise BennError(f"{name}: frames of {size} seem to have their channels first; save "
                        f"x.transpose(0, 2, 3, 1), or if rows do come first "
                        f"x.transpose(0, 2, 1, 3)")


DATASETS = {"digits": _digits, "mnist": _idx("mnist"), "fashion-mnist": _idx("fashion-mnist"),
            "cifar10": _cifar10}
