import io
import os
import zipfile

import numpy as np
import pytest

from benn_fpga import BennError
from benn_fpga.sw import formats

IMAGES = bytes((0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6))


def message(function, *args):
    with pytest.raises(BennError) as caught:
        function(*args)
    return str(caught.value)


def test_idx():
    assert formats.idx(IMAGES, 3, "f").tolist() == [[[1, 2, 3]], [[4, 5, 6]]]


@pytest.mark.parametrize("content", [IMAGES[:-1], IMAGES + b"x", IMAGES[:7]])
def test_idx_of_the_wrong_length(content):
    assert message(formats.idx, content, 3, "f").startswith(f"f has {len(content)} bytes, but its "
                                                            "header says ")


@pytest.mark.parametrize("content", [b"", b"\0\0\x0d\3" + IMAGES[4:], b"<html>"])
def test_idx_of_another_kind(content):
    assert message(formats.idx, content, 3, "f") == (
        f"f is not an idx file of bytes with 3 axes; it begins with {content[:4].hex()}")


def test_cifar_channel_is_fastest():
    x, y = formats.cifar(bytes([7]) + bytes([1] * 1024 + [2] * 1024 + [3] * 1024), "f")
    assert x.shape == (1, 32, 32, 3)
    assert x[0, 5, 9].tolist() == [1, 2, 3]
    assert y.tolist() == [7]


@pytest.mark.parametrize("size", [0, 3072, 3074])
def test_cifar_of_the_wrong_length(size):
    assert message(formats.cifar, bytes(size), "f") == (
        f"f has {size} bytes, not a multiple of 3073; download it again")


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


ARRAYS = {"x_train": np.zeros((2, 3)), "y_train": np.arange(2), "x_test": np.zeros((1, 3)),
          "y_test": np.arange(1)}


def test_npz(tmp_path):
    arrays, _ = formats.npz(npz(tmp_path / "d.npz", **ARRAYS))
    assert [array.shape for array in arrays] == [(2, 3), (2,), (1, 3), (1,)]


def test_npz_without_an_array(tmp_path):
    path = npz(tmp_path / "d.npz", x_train=ARRAYS["x_train"])
    assert message(formats.npz, path) == (
        f"{path} has no array 'y_train'; it must hold x_train, y_train, x_test, y_test")


def test_npz_never_unpickles(tmp_path):
    path = npz(tmp_path / "d.npz", **{**ARRAYS, "y_train": np.array([{}, print])})
    assert message(formats.npz, path) == (f"{path}: y_train must be an array of numbers, not of "
                                          "objects; save it with a number type")


def test_npz_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "d.npz")
    assert "d.npz: Not a regular file; give" in message(formats.npz, tmp_path / "d.npz")


def test_npz_that_is_missing(tmp_path):
    path = tmp_path / "d.npz"
    assert message(formats.npz, path) == (f"cannot read {path}: No such file or directory; "
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
    assert message(formats.npz, path) == (f"{path} is truncated or not an .npz file; "
                                          "write it with numpy.savez")


def test_npz_in_which_an_array_is_damaged(tmp_path):
    path = tmp_path / "d.npz"
    path.write_bytes(saved()[:90] + b"\xff" * 40 + saved()[130:])
    assert message(formats.npz, path) == f"{path}: x_train is damaged; write it with numpy.savez"


def claims(shape):
    return npy(np.arange(3)).replace(b"(3,), }" + b" " * len(shape), f"({shape},), }}".encode())


def test_npz_that_does_not_fit_the_memory(tmp_path, monkeypatch):
    def refuse(file, key):
        raise MemoryError
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", refuse)
    assert message(formats.npz, npz(tmp_path / "d.npz", **ARRAYS)).endswith(
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
    path = npz(tmp_path / "d.npz", **{key: ARRAYS[key] for key in ARRAYS if key != "x_test"})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("x_test.npy", content)
    assert message(formats.npz, path) == f"{path}: x_test {expected}; write it with numpy.savez"
