import io
import os
import zipfile

import numpy as np
import pytest

from benn_fpga import BennError
from benn_fpga.readers import npz


def read(path):
    with npz.opened(path) as file:
        file.require(npz.PARTS)
        return [file.array(key) for key in npz.PARTS]


def message(function, *args):
    with pytest.raises(BennError) as caught:
        function(*args)
    return str(caught.value)


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


ARRAYS = {"x_train": np.zeros((2, 3)), "y_train": np.arange(2), "x_test": np.zeros((1, 3)),
          "y_test": np.arange(1)}


def test_npz(tmp_path):
    arrays = read(save(tmp_path / "d.npz", **ARRAYS))
    assert [array.shape for array in arrays] == [(2, 3), (2,), (1, 3), (1,)]


def test_npz_without_an_array(tmp_path):
    path = save(tmp_path / "d.npz", x_train=ARRAYS["x_train"])
    assert message(read, path) == (
        f"{path} has no array 'y_train'; it must hold x_train, y_train, x_test, y_test")


def test_npz_never_unpickles(tmp_path):
    path = save(tmp_path / "d.npz", **{**ARRAYS, "y_train": np.array([{}, print])})
    assert message(read, path) == (f"{path}: y_train must be an array of numbers, not of "
                                          "objects; save it with a number type, or text as str")


def test_npz_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "d.npz")
    assert "d.npz: Not a regular file; give" in message(read, tmp_path / "d.npz")


def test_npz_that_is_missing(tmp_path):
    path = tmp_path / "d.npz"
    assert message(read, path) == (f"cannot read {path}: No such file or directory; "
                                          "give a file that numpy.savez wrote")


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def saved():
    file = io.BytesIO()
    np.savez_compressed(file, **ARRAYS)
    return file.getvalue()


@pytest.mark.parametrize("content", [b"", b"hello", npy(np.arange(3)), saved()[:-30]])
def test_npz_that_is_no_zip(tmp_path, content):
    path = tmp_path / "d.npz"
    path.write_bytes(content)
    assert message(read, path) == (f"{path} is truncated or not an .npz file; "
                                          "write it with numpy.savez")


def test_npz_in_which_an_array_is_damaged(tmp_path):
    path = tmp_path / "d.npz"
    path.write_bytes(saved()[:90] + b"\xff" * 40 + saved()[130:])
    assert message(read, path) == f"{path}: x_train is damaged; write it with numpy.savez"


def claims(shape):
    return npy(np.arange(3)).replace(b"(3,), }" + b" " * len(shape), f"({shape},), }}".encode())


def test_npz_that_does_not_fit_the_memory(tmp_path, monkeypatch):
    def refuse(file, key):
        raise MemoryError
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", refuse)
    assert message(read, save(tmp_path / "d.npz", **ARRAYS)).endswith(
        "x_train is damaged, or larger than the memory; write it with numpy.savez")


@pytest.mark.parametrize(("content", "expected"), [
    (b"hello", "is not an array"),
    (claims("4"), "is damaged"),
    (claims("9999999999"), "is damaged"),
    (claims("99999999999999999999999"), "is damaged"),
    (npy(np.arange(3))[:9], "is damaged"),
    (npy(np.arange(3)).replace(b"'<i8'", b"'<i8 "), "is damaged"),
    (npy(np.arange(3)).replace(b"{", b"("), "is damaged"),
    (npy(np.arange(3)).replace(b"\x01\x00v", b"\x07\x00v"), "is damaged"),
])
def test_npz_with_a_member_that_is_no_array(tmp_path, content, expected):
    path = save(tmp_path / "d.npz", **{key: ARRAYS[key] for key in ARRAYS if key != "x_test"})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("x_test.npy", content)
    assert message(read, path) == f"{path}: x_test {expected}; write it with numpy.savez"


def test_names(tmp_path):
    path = save(tmp_path / "d.npz", class_names=np.array(["a", "b"]), feature_names=np.arange(3))
    with npz.opened(path) as file:
        assert (file.names("class_names"), file.names("x")) == (["a", "b"], [])
        assert "feature_names must be an array of strings" in message(file.names, "feature_names")


def test_npy(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    assert (npz.read_npy(tmp_path / "x.npy") == np.eye(3)).all()


@pytest.mark.parametrize(("content", "expected"), [
    (b"", "is truncated or not an .npy file; write it with numpy.save"),
    (saved(), "is truncated or not an .npy file; write it with numpy.save"),
    (claims("4"), "is damaged, or holds objects; write it with numpy.save"),
    (npy(np.array([{}])), "is damaged, or holds objects; write it with numpy.save"),
])
def test_npy_that_is_none(tmp_path, content, expected):
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert message(npz.read_npy, path) == f"{path} {expected}"
