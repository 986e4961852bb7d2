"""A model that was trained on floats answers raw floats as it did in training, without the data."""

import subprocess
import sys

import numpy as np
import pytest

from benn_fpga.settings import Settings
from benn_fpga.sw import data, train
from benn_fpga.sw.train import evaluate

pytestmark = pytest.mark.train

FRESH = """
import sys
import numpy as np, benn_fpga
result = benn_fpga.load("m.benn").answer(np.load("x.npy"))
np.savez("answers.npz", scores=result.scores, classes=result.classes, names=result.names)
print(result.input_type, "torch" in sys.modules)
"""


def rows(rng, y):
    """A table of features whose ranges differ by orders of magnitude; one never changes."""
    x = rng.normal(size=(len(y), 7)) + y[:, None] * np.linspace(0, 1, 7)
    return x * 10. ** np.arange(-3, 4) * (np.arange(7) != 5)


def images(rng, y):
    """Colour images, single precision, each channel in a range of its own."""
    x = rng.random((len(y), 6, 5, 3)) + (np.arange(5)[:, None] == y[:, None, None, None])
    return (x * [1, .1, 30] - [.5, 0, 4]).astype(np.float32)


def sounds(rng, y):
    """Spectra over time of tones in noise: a column for each coefficient, as of cepstra."""
    time = np.arange(12 * 16) / 192
    wave = np.sin(2 * np.pi * (9 + 17 * y[:, None]) * time) + rng.normal(size=(len(y), 192))
    power = np.abs(np.fft.rfft(wave.reshape(len(y), 12, 16)))[:, :, 1:8] ** 2
    cosines = np.cos(np.pi * np.outer(np.arange(7) + .5, np.arange(7)) / 7)
    return np.log(power + 1e-3) @ cosines


@pytest.mark.parametrize(("make", "scale"), [(rows, None), (images, "channel"), (sounds, "column")])
def test_raw_floats_in_a_fresh_process(tmp_path, monkeypatch, make, scale):
    monkeypatch.chdir(tmp_path)
    y = np.arange(160) % 3
    x = make(np.random.default_rng(0), y)
    names = np.array(["low", "mid", "high"])
    np.savez("d.npz", x_train=x[:100], y_train=names[y[:100]], x_test=x[100:],
             y_test=names[y[100:]])
    found = data.load("d.npz", scale=scale)
    trained = train.learn(found, Settings("mlp:9", members=2, epochs=3))
    trained.export(found.x_valid).save("m.benn")
    np.save("x.npy", x[100:])
    (tmp_path / "d.npz").unlink()
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout == "floats False\n"
    with np.load("answers.npz") as fresh:
        assert (fresh["scores"] == evaluate(trained.network, trained.encoder, found.x_test)).all()
        assert (fresh["classes"] == trained.predict(found.x_test)).all()
        assert (fresh["names"] == np.sort(names)[fresh["classes"]]).all()
