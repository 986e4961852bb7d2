"""Contents of memories before and after they are written as constants and loops."""

import re

import pytest

import designs
from benn_fpga.sim.memories import compact

LOOP = re.compile(r"CONTENT_(\d+) = (\d+)'h([0-9a-f]+);\n  initial begin : fill_\1\n"
                  r"    integer n;\n    for \(n = 0; n < (\d+); n = n \+ 1\)\n"
                  r"      (\S+ ?)\[(\d+) \+ n\] = CONTENT_\1\[(\d+) \* n \+: \7\];\n  end\n")


def block(words, name="memory", width=4):
    digits = -(-width // 4)
    lines = [f"    {name}[{at}] = {width}'h{value:0{digits}x};\n" for at, value in words]
    return f"  initial begin\n{''.join(lines)}  end\n"


def expanded(text):
    """``text`` with every loop as the statements it stands for."""
    def statements(loop):
        _, size, content, count, name, first, width = loop.groups()
        assert int(size) == int(count) * int(width)
        words = [(int(first) + n, int(content, 16) >> int(width) * n & (1 << int(width)) - 1)
                 for n in range(int(count))]
        return block(words, name, int(width))
    return LOOP.sub(statements, re.sub(r"  localparam \[\d+:0\] ", "", text))


@pytest.mark.parametrize("name", designs.CASES)
def test_contents_stay_the_same(name):
    text, _ = designs.generated(name)
    assert expanded(compact(text)) == text


@pytest.mark.parametrize("first", [0, 256])
def test_a_loop_sets_the_words(first):
    text = block((first + n, 15 - n) for n in range(16))
    assert "CONTENT_0 = 64'h123456789abcdef;" in compact(text)
    assert expanded(compact(text)) == text


def test_wide_words_take_several_constants():
    text = block(((n, 1 << n) for n in range(20)), width=1 << 13)
    assert re.findall(r"CONTENT_\d = \d+", compact(text)) == [
        "CONTENT_0 = 65536", "CONTENT_1 = 65536", "CONTENT_2 = 32768"]
    assert re.sub("  end\\n  initial begin\\n", "", expanded(compact(text))) == text


@pytest.mark.parametrize("text", [
    block((n, 0) for n in range(7)),
    block(((n, 0) for n in range(9)), width=1 << 14),
    block((2 * n, 0) for n in range(9)),
    block((n, 0) for n in range(9)).replace("memory[3]", "other[3]"),
    block((n, 0) for n in range(9)).replace("4'h0;", "x;", 1),
    "  initial begin\n    state = 1'h0;\n  end\n",
])
def test_anything_else_is_left_alone(text):
    assert compact(text) == text
