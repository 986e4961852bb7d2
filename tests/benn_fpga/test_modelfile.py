import dataclasses
import json
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

import draw
from benn_fpga import modelfile
from benn_fpga.errors import BennError
from benn_fpga.raw import Inputs

OLD = draw.random_model(np.random.default_rng(0), hidden=(3,), shape=(5,), classes=3)
MODEL = dataclasses.replace(OLD, reject=2, inputs=Inputs(
    "feature", np.arange(5.) - 2, np.arange(5.) / 3 + 9, ("a", "b", "c"), tuple("vwxyz")))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.benn"


@pytest.fixture
def content(path):
    MODEL.save(path)
    return path.read_bytes()


def parts(content):
    """The safetensors header as an object, and the bytes of the tensors."""
    size, = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + size]), content[8 + size:]


def join(header, tensors):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def refuses(path, content, *words):
    path.write_bytes(content)
    with pytest.raises(BennError) as caught:
        modelfile.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    for word in words:
        assert word in message


def edit(content, change):
    """The file with its ``benn`` header changed."""
    header, tensors = parts(content)
    benn = json.loads(header["__metadata__"]["benn"])
    change(benn)
    header["__metadata__"]["benn"] = json.dumps(benn)
    return join(header, tensors)


@given(draw.models(), st.none() | st.integers(1, 9))
def test_what_is_saved_is_loaded(tmp_path_factory, model, reject):
    limit = 2 * model.max_total
    model = dataclasses.replace(model, reject=min(reject, limit) if reject and limit else None)
    path = tmp_path_factory.mktemp("m") / "m.benn"
    model.save(path)
    loaded = modelfile.load(path)
    assert loaded.digest() == model.digest()
    loaded.save(path.with_suffix(".again"))
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()


def test_the_file_holds_integers_only(content):
    header, _ = parts(content)
    assert {t["dtype"] for name, t in header.items() if name != "__metadata__"} == {"U64", "I32"}


def test_truncated_anywhere(path, content):
    for size in range(len(content)):
        refuses(path, content[:size])


def test_something_after_the_end(path, content):
    refuses(path, content + b"\0")


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80])
def test_any_flipped_byte_is_noticed(path, content, flip):
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= flip
        path.write_bytes(changed)
        with pytest.raises(BennError):
            modelfile.load(path)


@pytest.mark.parametrize(("text", "message"), [
    (b"", "is not a .benn model file"),
    (b"not a model, but a text of some length\n" * 9, "is not a .benn model file"),
    (pickle.dumps({"weights": [1, 2, 3]}), "is not a .benn model file"),
    (b"PK\3\4" + bytes(60), "not a .benn model file"),
    (bytes(64), "not a .benn model file"),
])
def test_other_files(path, text, message):
    refuses(path, text, message)


def test_other_safetensors_file(path):
    save_file({"x": np.zeros(3, np.float32)}, path)
    refuses(path, path.read_bytes(), "not a .benn model file (a safetensors file of another kind)")


def test_a_pickle_is_never_run(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)
    refuses(path, pickle.dumps(Trap()))
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_are_no_numbers(path, content, number):
    header, tensors = parts(content)
    origin, metadata = '"provenance": {', header["__metadata__"]
    assert origin in metadata["benn"]
    metadata["benn"] = metadata["benn"].replace(origin, f'{origin}"x": {number}')
    refuses(path, join(header, tensors), "not a .benn model file")


def test_missing_file(tmp_path):
    with pytest.raises(BennError, match=r"cannot read .*no\.benn.*No such file or directory"):
        modelfile.load(tmp_path / "no.benn")


def test_directory(tmp_path):
    with pytest.raises(BennError, match=r"cannot read .* Is a directory; give a file that"):
        modelfile.load(tmp_path)


def test_a_huge_file_is_not_read(path, content):
    path.write_bytes(content)
    os.truncate(path, 1 << 40)  # sparse: it takes no room
    with pytest.raises(BennError, match="has 1099511627776 bytes; a model file has at most"):
        modelfile.load(path)


def test_what_is_known_of_the_inputs(path, content):
    loaded = modelfile.load(path)
    assert loaded.reject == 2
    assert loaded.inputs.describe() == MODEL.inputs.describe()
    assert loaded.inputs.low.tolist() == MODEL.inputs.low.tolist()
    assert loaded.inputs.high.tolist() == MODEL.inputs.high.tolist()


def test_a_model_that_knows_nothing_of_its_inputs_is_a_file_of_version_2(path):
    OLD.save(path)
    header, _ = parts(path.read_bytes())
    benn = json.loads(header["__metadata__"]["benn"])
    assert (benn["version"], "inputs" in benn, "reject" in benn) == (2, False, False)
    assert modelfile.load(path).inputs.scale == "unknown"


def test_newer_version(path, content):
    refuses(path, edit(content, lambda h: h.update(version=4)),
            "format version 4 is newer than this program reads (2 to 3); upgrade benn_fpga")


def test_older_version(path, content):
    refuses(path, edit(content, lambda h: h.update(version=1)),
            "format version 1 is older than this program reads (2 to 3); train the model again")


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.0])
def test_wrong_version(path, content, version):
    refuses(path, edit(content, lambda h: h.update(version=version)),
            f"format version must be a whole number, not {version!r}")


@pytest.mark.parametrize("key", ["encoder", "layers", "members", "vote", "provenance", "digest"])
@pytest.mark.parametrize("value", [None, 1.5, [[]]])
def test_wrong_header_key(path, content, key, value):
    refuses(path, edit(content, lambda h: h.update({key: value})), key)


@pytest.mark.parametrize("change", [
    lambda h: h["encoder"].update(kind="sign"),
    lambda h: h["encoder"].update(kind=["threshold"]),
    lambda h: h["encoder"].update(bits=0),
    lambda h: h["encoder"].update(bits="8"),
    lambda h: h["encoder"].update(shape=[]),
    lambda h: h["encoder"].update(shape=[-5]),
    lambda h: h["encoder"].update(shape=[5.0]),
    lambda h: h["encoder"].update(shape=[1 << 60]),
    lambda h: h["encoder"].update(shape=[1 << 20, 1 << 20, 1 << 20]),
    lambda h: h.update(layers=[]),
    lambda h: h.update(layers=h["layers"] * 1000),
    lambda h: h["layers"][0].update(inputs=1 << 40),
    lambda h: h["layers"][0].update(outputs=1 << 24),
    lambda h: h["layers"][0].update(inputs=True),
    lambda h: h["layers"][0].update(surplus=1),
    lambda h: h["layers"][0].pop("inputs"),
    lambda h: h.update(members=1 << 40),
    lambda h: h.update(members=0),
    lambda h: h.update(members=True),
    lambda h: h.update(vote="loud"),
    lambda h: h.update(provenance={"seed": 2}),
    lambda h: h.update(digest="0" * 64),
    lambda h: h.update(version=2),
    lambda h: h.update(reject=0),
    lambda h: h.update(reject="2"),
    lambda h: h.update(inputs=None),
    lambda h: h.update(inputs=[]),
    lambda h: h["inputs"].update(scale="all"),
    lambda h: h["inputs"].update(scale="bytes"),
    lambda h: h["inputs"].update(scale=["feature"]),
    lambda h: h["inputs"].update(class_names=["a", "b"]),
    lambda h: h["inputs"].update(class_names=["a", "a", "b"]),
    lambda h: h["inputs"].update(class_names=["a", "b", "\n"]),
    lambda h: h["inputs"].update(class_names="abc"),
    lambda h: h["inputs"].update(feature_names=[1, 2, 3, 4, 5]),
    lambda h: h["inputs"].update(surplus=1),
])
def test_tampered_header(path, content, change):
    refuses(path, edit(content, change))


def test_huge_sizes_take_no_memory(path, content):
    changed = edit(content, lambda h: h["layers"][0].update(inputs=1 << 24, outputs=1 << 24))
    tracemalloc.start()
    refuses(path, changed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_huge_header_is_not_read(path):
    refuses(path, struct.pack("<Q", 1 << 40) + b"{}", "is not a .benn model file")


def test_deep_header(path, content):
    header, tensors = parts(content)
    header["__metadata__"]["benn"] = "[" * 100_000
    refuses(path, join(header, tensors), "not a .benn model file")


@pytest.mark.parametrize("name", ["encoder.thresholds", "vote.weights", "inputs.range",
                                  "layer1.weights", "layer0.thresholds"])
def test_tensor_missing_or_of_another_type(path, name):
    header = json.dumps({"format": "benn", "version": modelfile.VERSION, "digest": MODEL.digest(),
                         **MODEL.describe()})
    tensors = MODEL.tensors()
    save_file({**tensors, name: tensors[name].astype(np.int16)}, path, {"benn": header})
    refuses(path, path.read_bytes(), name)
    del tensors[name]
    save_file(tensors, path, {"benn": header})
    refuses(path, path.read_bytes(), f"tensor {name!r} is missing")
    save_file({**MODEL.tensors(), "surplus": np.zeros(1, np.int32)}, path, {"benn": header})
    refuses(path, path.read_bytes(), "unknown tensor 'surplus'")


def test_saving_into_a_missing_folder(tmp_path):
    with pytest.raises(BennError, match="No such file or directory; give a path in a folder you"):
        MODEL.save(tmp_path / "no" / "m.benn")


def test_a_failed_write_leaves_the_old_file(path, content, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BennError, match="No space left on device"):
        MODEL.save(path, force=True)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_permissions_follow_the_umask(path):
    before = os.umask(0o027)
    MODEL.save(path, force=True)
    os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
