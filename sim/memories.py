"""Contents of memories, written so that a simulator compiles them fast.

Generated Verilog sets every word of a memory by a statement of its own, and a C++ compiler takes
longer for tens of thousands of these than for all the rest of a small design. Here a block of them
becomes a constant and a loop over its words.
"""

import re

__all__ = ["compact"]

_BLOCK = re.compile(r"  initial begin\n((?:    \S+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+)  end\n")
_WORD = re.compile(r"    (\S+ ?)\[(\d+)\] = (\d+)'h([0-9a-f]+);\n")
_FEWEST = 8  # words for which a loop is worth it
_MOST_BITS = 1 << 16  # of a constant; Verilator takes twice as many


def compact(text):
    """The Verilog ``text``; memories have the same contents."""
    numbers = iter(range(len(text)))
    return _BLOCK.sub(lambda block: _loops(block, numbers), text)


def _loops(block, numbers):
    words = [(name, int(at), int(width), int(value, 16))
             for name, at, width, value in _WORD.findall(block[1])]
    name, first, width, _ = words[0]
    if [word[:3] for word in words] != [(name, first + n, width) for n in range(len(words))]:
        return block[0]  # not one word after another of one memory
    step = _MOST_BITS // width
    if min(step, len(words)) < _FEWEST:
        return block[0]
    return "".join(_loop(next(numbers), name, width, words[at:at + step])
                   for at in range(0, len(words), step))


def _loop(number, name, width, words):
    content = "".join(f"{value:0{width}b}" for *_, value in reversed(words))
    size = len(content)
    return (f"  localparam [{size - 1}:0] CONTENT_{number} = {size}'h{int(content, 2):x};\n"
            f"  initial begin : fill_{number}\n"
            f"    integer n;\n"
            f"    for (n = 0; n < {len(words)}; n = n + 1)\n"
            f"      {name}[{words[0][1]} + n] = CONTENT_{number}[{width} * n +: {width}];\n"
            f"  end\n")
