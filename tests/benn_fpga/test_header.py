"""The C header, read by the C and C++ compilers."""

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import draw
from benn_fpga.plan import answer
from benn_fpga.plan.header import NAME, header
from benn_fpga.raw import Inputs

NAMES = ('say "a"', "why??", "c\\d")
INPUTS = Inputs("feature", np.arange(7.), np.arange(7.) * 3 + 10, NAMES)
MODEL = dataclasses.replace(draw.random_model(np.random.default_rng(0), shape=(7,), hidden=(),
                                              classes=3), inputs=INPUTS)
RECORDS = [(2, 0, 5, [1, -7, 6]), (0xFFFE, answer.ERROR, -(1 << 31), [(1 << 31) - 1, -1, 0x1234])]
PROGRAM = """\
#include <stdio.h>
#include <string.h>
#include "benn_answer.h"

int main(void)
{
    uint8_t bytes[BENN_ANSWER_BYTES];
    struct benn_answer answer;
    while (fread(bytes, 1, sizeof bytes, stdin) == sizeof bytes) {
        benn_answer_decode(&answer, bytes);
        printf("%d %d ", answer.class_index, (answer.flags & BENN_FLAG_ERROR) != 0);
        printf("%d", answer.margin);
        for (int n = 0; n < BENN_CLASSES; n++)
            printf(" %d", answer.totals[n]);
        printf(" %d\\n", sizeof answer == sizeof bytes);
    }
    printf("%d %d %d\\n", BENN_FRAME_BYTES, BENN_VALUE_MAX, benn_to_byte(20.25, 6));
    for (int n = 0; n < BENN_CLASSES; n++)
        puts(benn_class_names[n]);
    return 0;
}
"""


@pytest.mark.sim
@pytest.mark.parametrize(("compiler", "name"), [(["cc", "-std=c99"], "p.c"), (["g++"], "p.cpp")])
def test_a_program_reads_records(tmp_path, compiler, name):
    assert shutil.which(compiler[0])
    (tmp_path / NAME).write_text(header(MODEL))
    (tmp_path / name).write_text(PROGRAM)
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "p", name],
                   cwd=tmp_path, check=True)
    done = subprocess.run(["./p"], cwd=tmp_path, capture_output=True, check=True,
                          input=b"".join(answer.pack(*record) for record in RECORDS))
    *numbers, a, b, c = done.stdout.decode().splitlines()
    byte = INPUTS.to_bytes(np.full((1, 7), 20.25))[0, 6]
    assert [list(map(int, line.split())) for line in numbers] == [
        *([*record[:3], *record[3], 1] for record in RECORDS), [7, 255, byte]]
    assert (a, b, c) == NAMES


def test_docs_show_the_structure():
    struct = re.search(r"^struct benn_answer \{$.*?^\};$", header(MODEL), re.M | re.S).group()
    docs = Path(__file__).parents[2] / "docs" / "hardware.md"
    assert f"\n```c\n{struct}\n```\n" in docs.read_text()


def test_header_knows_every_flag_and_field(monkeypatch):
    monkeypatch.setitem(answer.FLAGS, "unsure", (3, "too close"))
    text = header(MODEL)
    assert "#define BENN_FLAG_UNSURE 0x0008u /* too close */" in text
    assert all(f"; /* {field.text} */" in text for field in answer.answer_fields(MODEL.classes))
