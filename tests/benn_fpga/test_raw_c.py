"""The C that feeds the hardware makes the bytes that the model was trained on."""

import subprocess

import numpy as np
import pytest

from benn_fpga.raw import Inputs
from benn_fpga.raw_c import c_text

MAIN = """
#include <stdio.h>
#include <stdint.h>
#include <stddef.h>
{text}
int main(void)
{{
    double x;
    for (size_t n = 0; fread(&x, sizeof x, 1, stdin) == 1; n++)
        putchar(benn_to_byte(x, n % {values}));
    return 0;
}}
"""
MOST = np.finfo(float).max


def in_c(inputs, shape, x, folder, *options):
    (folder / "m.c").write_text(MAIN.format(text=c_text(inputs, shape), values=np.prod(shape)))
    subprocess.run(["cc", *options, "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", folder / "m",
                    folder / "m.c"], check=True)
    done = subprocess.run([folder / "m"], input=x.astype(float).tobytes(), capture_output=True,
                          check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(x.shape)


def edges(inputs, shape, rng):
    """Values in and around the range, at its ends and halfway between two bytes."""
    low, high = inputs.bounds(shape)
    share = np.concatenate([rng.uniform(-.2, 1.2, 3000), np.arange(255) / 255,
                            (np.arange(255) + .5) / 255])
    share = share.reshape(-1, *[1] * len(shape))
    with np.errstate(over="ignore"):
        x = np.broadcast_to(low * (1 - share) + high * share, (len(share), *shape))
        x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
    for value in (0., -0., 5e-324, -5e-324, MOST, -MOST, 2.2e-308):
        x = np.concatenate([x, np.full((1, *shape), value)])
    return np.where(np.isfinite(x), x, 0)


@pytest.mark.sim
@pytest.mark.parametrize(("shape", "scale", "spread", "options"), [
    ((4,), "feature", 1, ["-std=c99", "-O2"]),
    ((4,), "all", 1e-300, ["-std=c99"]),
    ((2, 3, 2), "all", 255, ["-std=gnu11", "-O3", "-march=native"]),
    ((2, 3, 2), "channel", 1e6, ["-std=c99", "-O2"]),
    ((2, 3, 2), "column", 1e300, ["-std=c99", "-O3", "-march=native", "-ffp-contract=fast"]),
])
def test_bytes_in_c(tmp_path, shape, scale, spread, options):
    rng = np.random.default_rng(0)
    inputs = Inputs.of(rng.normal(size=(50, *shape)) * spread, scale)
    x = edges(inputs, shape, rng)
    assert len(x) >= 10_000
    assert (in_c(inputs, shape, x, tmp_path, *options) == inputs.to_bytes(x)).all()


@pytest.mark.sim
@pytest.mark.parametrize(("low", "high"), [(-MOST, MOST), (0., 1e-323), (7., 8.)])
def test_ranges_at_the_limits_in_c(tmp_path, low, high):
    inputs = Inputs("all", np.array([low]), np.array([high]))
    x = edges(inputs, (1,), np.random.default_rng(0))
    assert (in_c(inputs, (1,), x, tmp_path, "-std=c99") == inputs.to_bytes(x)).all()


@pytest.mark.sim
def test_what_is_not_a_number_is_0_in_c(tmp_path):
    inputs = Inputs("all", np.zeros(1), np.ones(1))
    x = np.array([[np.nan], [np.inf], [-np.inf]])
    assert in_c(inputs, (1,), x, tmp_path, "-std=c99").tolist() == [[0], [255], [0]]


@pytest.mark.parametrize(("scale", "words"), [
    ("bytes", "was trained on bytes, which are taken as they are"),
    ("unknown", "does not say how floats become bytes")])
def test_a_model_without_range_in_c(scale, words):
    assert c_text(Inputs(scale), (4,)) == f"/* The model {words}. */\n"
