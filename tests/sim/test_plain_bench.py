import numpy as np

import draw
from benn_fpga import golden
from benn_fpga.plan.answer import pack
from benn_fpga.sim.plain_bench import plain_bench
from benn_fpga.spec import Fold, Folding


def files(frames):
    model = draw.random_model(np.random.default_rng(0), shape=(7,), hidden=(), classes=2)
    x = np.arange(7 * frames, dtype=np.uint8).reshape(frames, 7)
    return model, x, plain_bench(model, Folding((Fold(1, 1),), 1, 24), x)


def test_a_line_is_a_beat():
    _, _, found = files(2)
    assert found["frames.hex"].split() == [
        "0_7_020100", "0_7_050403", "1_1_000006", "0_7_090807", "0_7_0c0b0a", "1_1_00000d"]


def test_answers_are_those_of_the_golden_model():
    model, x, found = files(1)
    result = golden.run(model, x)
    record = pack(result.classes[0], 0, result.margins[0], result.totals[0]).ljust(18, b"\0")
    words = [f"{int.from_bytes(record[at:at + 3], 'little'):06x}" for at in range(0, 18, 3)]
    assert found["answers.hex"].split() == [
        *(f"0_7_{word}" for word in words[:-1]), f"1_1_{words[-1]}"]


def test_reset_begins_as_it_is_told():
    assert "  reg rst = 1;\n" in files(1)[2]["tb.v"]
