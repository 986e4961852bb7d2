"""Somebody's own files as frames: .csv, images, and all of them by what the model takes."""

import dataclasses
import os
import sys

import numpy as np
import pytest
from PIL import Image

import draw
from benn_fpga import api
from benn_fpga.errors import BennError, BennWarning
from benn_fpga.raw import Inputs
from benn_fpga.readers import frames
from benn_fpga.readers.rows import read_csv

FLOATS = np.random.default_rng(0).normal(size=(5, 3))
BYTES = np.random.default_rng(0).integers(0, 256, (5, 3), np.uint8)
GREY = np.random.default_rng(1).integers(0, 256, (4, 6), np.uint8)
COLOUR = np.random.default_rng(2).integers(0, 256, (4, 6, 3), np.uint8)


def model(shape, inputs):
    return dataclasses.replace(draw.random_model(np.random.default_rng(0), shape=shape, classes=3),
                               inputs=inputs)


ROWS = model((3,), Inputs.of(FLOATS, None, (), ["a", "b", "c"]))
PLAIN = model((3,), Inputs("bytes"))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text, name="d.csv"):
    with open(name, "w", newline="") as file:
        file.write(text)
    return name


def message(function, *args, **options):
    with pytest.raises(BennError) as caught:
        function(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize(("text", "names"), [
    ("1,2,3\n4,5,6\n", ()),
    ("1,2,3\n4,5,6", ("a", "b", "c")),
    ("\ufeffa,b,c\r\n1,2,3\r\n\r\n4,5,6\r\n", ("a", "b", "c")),
    ("c,a,b\n3,1,2\n6,4,5\n", ("a", "b", "c")),
    ("x,y,z\n1,2,3\n4,5,6\n", ()),
    ("1;2;3\n4;5;6\n", ()),
    ("1\t2\t3\n 4\t5 \t6e0\n", ()),
    ('"1","2","3"\n4,5,6\n', ()),
    ("2,0,1\n3,1,2\n6,4,5\n", ("0", "1", "2")),
])
def test_csv(text, names):
    x, left_out = read_csv(write(text), 3, names)
    assert (x.tolist(), left_out) == ([[1, 2, 3], [4, 5, 6]], [])


def test_columns_that_are_no_features_are_left_out():
    x, left_out = read_csv(write("id,b,c,a,label\nx,2,3,1,\n"), 3, ("a", "b", "c"))
    assert (x.tolist(), left_out) == ([[1, 2, 3]], ["id", "label"])


@pytest.mark.parametrize(("text", "names", "expected"), [
    ("", (), " has no rows; give one for each frame"),
    ("a,b,c\n", (), " has no rows below its header; give one for each frame"),
    ("1,2,3\n4,x,6\n", (), ", line 2, column 2: 'x' is not a number; leave the row out, or fill it "
     "in"),
    ("a,b,c\n1,2,3\n\n4,,6\n", (), ", line 4, column 2 (b): there is no value; leave the row out, "
     "or fill it in"),
    ("1,2,3\n4,nan,6\n", (), ", line 2, column 2: 'nan' is not a number; leave the row out, or "
     "fill it in"),
    ("1,2,3\n4,1_0,6\n", (), ", line 2, column 2: '1_0' is not a number; leave the row out, or "
     "fill it in"),
    (",2,3\n4,5,6\n", (), ", line 1, column 1: there is no value; leave the row out, or fill it "
     "in"),
    *((f"{cell},2,3\n4,5,6\n", (), f", line 1, column 1: {cell!r} is not a number; leave the row "
       f"out, or fill it in") for cell in ("nan", "n/a", "1e999")),
    ("1,2,3\n4,5\n", (), ", line 2: 2 columns instead of 3"),
    ("1,2,3,4\n", (), ", line 1: 4 columns instead of 3"),
    ("a,b,c,d\n1,2,3,4\n", (), ", line 1: 4 columns, but a frame of the model has 3 values"),
    ("a,b,x\n1,2,3\n", ("a", "b", "c"), " has no column 'c'; it must have one for each feature of "
     "the model, or numbers alone"),
    ("a,b,c,a\n1,2,3,4\n", ("a", "b", "c"), " has 2 columns called 'a'; keep one"),
])
def test_csv_that_cannot_be_read(text, names, expected):
    assert message(read_csv, write(text), 3, names) == f"d.csv{expected}"


def test_csv_that_is_no_text():
    with open("d.csv", "wb") as file:
        file.write(b"\xff\xfe1,2")
    assert message(read_csv, "d.csv", 3) == \
        "d.csv is not a text file in UTF-8; give a .csv file"
    assert message(read_csv, "no.csv", 3) == \
        "cannot read no.csv: No such file or directory; give a .csv file"


def test_numbers_of_a_csv_are_floats_for_a_model_of_floats():
    found = frames.read(ROWS, [write("c,a,b\n0,1,-1\n")])
    assert (found.input_type, found.sources) == ("floats", [("d.csv", 0)])
    assert (found.x == ROWS.inputs.to_bytes(np.array([[1., -1, 0]]))).all()


def test_numbers_of_a_csv_are_bytes_for_a_model_of_bytes():
    found = frames.read(PLAIN, [write("3,1,255\n")])
    assert (found.input_type, found.x.tolist()) == ("bytes", [[3, 1, 255]])


@pytest.mark.filterwarnings("ignore::benn_fpga.BennWarning")
def test_left_out_columns_are_noted():
    path = write("id,b,c,a\n7,0,0,0\n")
    with pytest.warns(BennWarning, match="the model has no feature called 'id'"):
        frames.read(ROWS, [path])


@pytest.mark.parametrize("arrays", [
    {"x": FLOATS, "x_test": FLOATS * 0, "y": np.arange(5)},
    {"x_test": FLOATS, "x_train": FLOATS * 0},
    {"x_train": FLOATS, "feature_names": np.array(["a", "b", "c"])},
])
def test_npz(arrays):
    np.savez("d.npz", **arrays)
    found = frames.read(ROWS, ["d.npz"])
    assert (found.x == ROWS.inputs.to_bytes(FLOATS)).all()
    assert found.sources == [("d.npz", n) for n in range(5)]


def test_several_files():
    np.save("d.npy", FLOATS)
    np.savez("d.npz", x=ROWS.inputs.to_bytes(FLOATS))
    found = frames.read(ROWS, ["d.npy", "d.npz"])
    assert (found.input_type, found.x[:5].tolist()) == ("floats and bytes", found.x[5:].tolist())


@pytest.mark.parametrize(("arrays", "expected"), [
    ({"z": FLOATS}, "d.npz has no array x, x_test or x_train; save the frames as x"),
    ({"x": FLOATS[:, :2]}, "d.npz: Inputs must have shape (frames, 3), not (5, 2)"),
    ({"x": FLOATS[0]}, "d.npz: Inputs must have shape (frames, 3), not (3,); for one frame give"),
    ({"x": np.float64(3)}, "d.npz: Inputs must have shape (frames, 3), not ()"),
    ({"x": FLOATS, "feature_names": np.array(["a", "c", "b"])},
     "d.npz: feature_names must be those of the model, but number 1 is 'c', not 'b'"),
])
def test_npz_that_does_not_fit(arrays, expected):
    np.savez("d.npz", **arrays)
    assert message(frames.read, ROWS, ["d.npz"]).startswith(expected)


@pytest.mark.parametrize(("saved", "channels", "expected"), [
    (GREY, 1, GREY[..., None]),
    (GREY, 3, np.stack([GREY] * 3, -1)),
    (COLOUR, 3, COLOUR),
    (COLOUR, 1, np.asarray(Image.fromarray(COLOUR).convert("L"))[..., None]),
    (np.dstack([COLOUR, GREY]), 3, COLOUR),
])
def test_images(saved, channels, expected):
    Image.fromarray(saved).save("i.png")
    found = frames.read(model((4, 6, channels), Inputs("bytes")), ["i.png"])
    assert (found.x == expected.reshape(1, -1)).all()


def test_a_folder_of_images():
    os.mkdir("f")
    for name, n in (("b.png", 2), ("a.PNG", 1), ("c.bmp", 3)):
        Image.fromarray(GREY + np.uint8(n)).save(f"f/{name}")
    write("notes", "f/readme.txt")
    found = frames.read(model((4, 6, 1), Inputs("bytes")), ["f"])
    assert found.sources == [("f/a.PNG", 0), ("f/b.png", 0), ("f/c.bmp", 0)]
    assert (found.x[2] == (GREY + np.uint8(3)).ravel()).all()


def test_resize():
    Image.new("RGB", (60, 40), (9, 90, 200)).save("i.png")
    found = frames.read(model((4, 6, 3), Inputs("bytes")), ["i.png"], resize=True)
    assert (found.x.reshape(-1, 3) == [9, 90, 200]).all()


@pytest.mark.filterwarnings("ignore::benn_fpga.BennWarning")
@pytest.mark.parametrize("top", [1., 255.])
def test_pixels_for_a_model_of_floats(top):
    inputs = Inputs.of(np.linspace(0, top, 24).reshape(1, 4, 6, 1))
    Image.fromarray(GREY).save("i.png")
    found = frames.read(model((4, 6, 1), inputs), ["i.png", "i.png"])
    assert (found.input_type, found.x.tolist()) == ("floats", [GREY.ravel().tolist()] * 2)


def test_what_pixels_are_taken_for_is_noted_once():
    Image.fromarray(GREY).save("i.png")
    known = model((4, 6, 1), Inputs("all", np.zeros(1), np.ones(1)))
    with pytest.warns(BennWarning) as caught:
        frames.read(known, ["i.png", "i.png"])
    assert [str(each.message) for each in caught] == [
        "pixels 0..255 are taken as 0..1, since the floats of training did not exceed 1"]


@pytest.mark.parametrize(("shape", "inputs", "name", "expected"), [
    ((4, 5, 1), Inputs("bytes"), "i.png", "i.png is 6 x 4 pixels, but the model takes 5 x 4; give "
     "`resize=True` to make it fit"),
    ((24,), Inputs("bytes"), "i.png", "i.png: the model takes rows of 24 values; give a .csv, "),
    ((24,), Inputs("bytes"), "empty", "empty is a folder, of which images are read, but the model "
     "takes rows of 24 values; give a .csv, .npy or .npz file"),
    ((24,), Inputs("bytes"), "no.png", "no.png does not exist; the model takes rows of 24 values"),
    ((4, 6, 2), Inputs("bytes"), "i.png", "i.png: the model takes frames of 2 channels, but "),
    ((4, 6, 1), Inputs("all", -np.ones(1), np.ones(1)), "i.png", "i.png: the floats of training "
     "went from -1 to 1, and the model does not say how pixels became these; give floats"),
    ((4, 6, 1), Inputs("bytes"), "deep.png", "deep.png has more than 8 bits per value; "),
    ((4, 6, 1), Inputs("bytes"), "text.png", "cannot read text.png: it is damaged, or no image; "),
    ((4, 6, 1), Inputs("bytes"), "half.png", "cannot read half.png: it is damaged, or no image; "),
    ((4, 6, 1), Inputs("bytes"), "no.png", "cannot read no.png: No such file or directory; give "),
    ((4, 6, 1), Inputs("bytes"), "pipe", "cannot read pipe: Not a regular file; give an .npz, "),
    ((4, 6, 1), Inputs("bytes"), "empty", "empty has no images; give a folder that has, or files"),
])
def test_images_that_cannot_be_taken(shape, inputs, name, expected):
    Image.fromarray(GREY).save("i.png")
    Image.fromarray(GREY.astype(np.uint16) * 257).save("deep.png")
    write("hello", "text.png")
    with open("i.png", "rb") as whole, open("half.png", "wb") as half:
        half.write(whole.read()[:60])
    os.mkfifo("pipe")
    os.mkdir("empty")
    assert message(frames.read, model(shape, inputs), [name]).startswith(expected)


def test_an_image_without_end(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    Image.fromarray(GREY).save("i.png")
    assert message(frames.read, model((4, 6, 1), Inputs("bytes")), ["i.png"]) == \
        "i.png has too many pixels; give a smaller image"


def test_missing_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert message(frames.read, model((4, 6, 1), Inputs("bytes")), ["i.png"]) == \
        "pillow is not installed; run: pip install 'benn_fpga[images]'"


def test_predict_is_what_the_model_answers():
    ROWS.save("m.benn")
    np.save("d.npy", FLOATS)
    found = api.predict("m.benn", "d.npy")
    assert (found.result.totals == ROWS.answer(FLOATS).totals).all()
    assert found.result.input_type == "floats"
    assert message(api.predict, ROWS, []) == "there are no files to read; give at least one"
