import subprocess
from functools import partial

import numpy as np
import pytest

import draw
from benn_fpga import golden
from benn_fpga.plan import bench
from benn_fpga.plan.answer import pack
from benn_fpga.spec import Fold, Folding

MODEL = draw.random_model(np.random.default_rng(0), shape=(7,), hidden=(), classes=2)
FOLDING = Folding((Fold(1, 1),), 1, 24)


def files(frames, **options):
    x = np.arange(7 * frames, dtype=np.uint8).reshape(frames, 7)
    return x, bench.files(MODEL, FOLDING, x, **options)


def beats(text):
    return [line for line in text.splitlines() if not line.startswith("//")]


def test_a_line_is_a_beat():
    assert beats(files(2)[1]["frames.hex"]) == [
        "0_7_020100", "0_7_050403", "1_1_000006", "0_7_090807", "0_7_0c0b0a", "1_1_00000d"]


def test_answers_are_those_of_the_golden_model():
    x, found = files(1)
    result = golden.run(MODEL, x)
    record = pack(result.classes[0], 0, result.margins[0], result.totals[0]).ljust(18, b"\0")
    words = [f"{int.from_bytes(record[at:at + 3], 'little'):06x}" for at in range(0, 18, 3)]
    assert beats(found["answers.hex"]) == [
        *(f"0_7_{word}" for word in words[:-1]), f"1_1_{words[-1]}"]


def test_comments_say_where_frames_come_from_and_what_they_are():
    x, found = files(2, labels=[1, 0], source="two frames")
    result = golden.run(MODEL, x)
    frames, answers = (found[name].splitlines() for name in ("frames.hex", "answers.hex"))
    assert (frames[:2], frames[5]) == (["// two frames", "// frame 0, label 1"],
                                       "// frame 1, label 0")
    assert answers[0] == (f"// frame 0: class {result.classes[0]}, margin {result.margins[0]}, "
                          f"label 1")


@pytest.mark.parametrize("reset", [bench.DECLARED, "reg rst; initial rst = 1;"])
def test_reset_begins_as_it_is_told(reset):
    assert f"  {reset}\n" in files(1, reset=reset)[1]["tb.v"]


@pytest.mark.parametrize(("option", "words"), [
    ("IDLE=x", 'not "x" and "0"'), ("STALL=", 'not "0" and ""'), ("STALL=1 2", 'not "0" and "1 2"'),
    ("IDLE=-1", 'not "-1" and "0"')])
def test_pauses_are_whole_numbers(tmp_path, option, words):
    (tmp_path / "Makefile").write_text(files(1)[1]["Makefile"])
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run(["make", "-n", "icarus", "IDLE=12", "STALL=9999"]).returncode == 0
    done = run(["make", "-n", "icarus", option])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"IDLE and STALL must be whole numbers, {words}." in done.stderr


def test_drawn_frames_are_those_of_the_model():
    x = bench.drawn(MODEL, 500)
    assert (x.shape, x.dtype) == ((500, 7), np.uint8)
    assert (x.min(), x.max()) == (0, (1 << MODEL.encoder.bits) - 1)
    assert (bench.drawn(MODEL, 500) == x).all()
    other = draw.random_model(np.random.default_rng(1), shape=(7,), hidden=(), classes=2)
    assert (bench.drawn(other, 500) != x).any()
