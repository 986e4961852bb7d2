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
