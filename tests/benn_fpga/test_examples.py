"""The examples: one line and exit code 2 when they cannot run, and what the long ones leave."""

import contextlib
import importlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

import draw
from benn_fpga import cli
from benn_fpga.errors import BennError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUN = ("import runpy, sys\n{before}\nsys.argv = sys.argv[1:]\n"
       "runpy.run_path(sys.argv[0], run_name='__main__')")
NO_SKLEARN = "sys.modules['sklearn.datasets'] = None"
NO_LUCK = ("import benn_fpga\nfrom benn_fpga.sw import bench\n"
           "def fail(): raise benn_fpga.BennError('no luck')\nbench.together = fail")


def complaint(folder, before, name, *argv):
    done = subprocess.run([sys.executable, "-c", RUN.format(before=before), EXAMPLES / name, *argv],
                          cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    return done.stderr


@pytest.mark.parametrize(("name", "before", "words"), [
    ("demo.py", NO_SKLEARN, "demo: error: scikit-learn is not installed"),
    ("levels.py", NO_SKLEARN, "levels: error: scikit-learn is not installed"),
    ("bench.py", NO_LUCK, "bench: error: no luck"),
])
def test_what_is_missing(tmp_path, name, before, words):
    assert complaint(tmp_path, before, name).startswith(words)


def test_advice_without_data(tmp_path):
    assert complaint(tmp_path, NO_SKLEARN, "advice.py", "kept").startswith(
        "advice: error: scikit-learn is not installed")


def test_foldings_of_no_file(tmp_path):
    assert complaint(tmp_path, "", "foldings.py", "no.benn").startswith(
        "foldings: error: cannot read 'no.benn'")


@pytest.mark.parametrize("hidden", [(), (64,), (64, 64, 63)])
def test_foldings_of_another_network(tmp_path, hidden):
    draw.random_model(np.random.default_rng(0), members=8, shape=(784,), hidden=hidden,
                      classes=10).save(tmp_path / "m.benn")
    assert complaint(tmp_path, "", "foldings.py", "m.benn").startswith(
        "foldings: error: m.benn is neither a tfc of 8 members nor an sfc of 2")


@pytest.mark.parametrize(("name", "words"), [
    ("runs.py", "runs: error: no run is called zzz; there are mnist-tfc-1, "),
    ("networks.py", "networks: error: name one or more of cnv, "),
])
def test_unknown_names(tmp_path, name, words):
    assert complaint(tmp_path, "", name, "zzz").startswith(words)


def test_silicon_is_on_its_page(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    silicon, root = importlib.import_module("silicon"), EXAMPLES.parent
    record, text = (root / silicon.RECORD).read_text(), (root / silicon.PAGE).read_text()
    start, end = silicon.MARKS
    assert f"{start}{silicon.page(json.loads(record))}{end}" in text


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """examples/runs.py in an empty folder, with one short run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    found = importlib.import_module("runs")
    told = found.Run("digits", "--net mlp:16 -k 2 --epochs 1 --limit 300", 5.0)
    monkeypatch.setattr(found, "RUNS", {"digits-mlp-2": told})
    return found


@pytest.fixture
def in_process(runs, monkeypatch):
    """Let commands of a run start no process."""
    def benn_fpga(*command, **_):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            if cli.main(list(command)):
                raise BennError("failed")
        return out.getvalue()
    return lambda: monkeypatch.setattr(runs, "benn_fpga", benn_fpga)


def test_a_run_leaves_a_record(runs, in_process, monkeypatch):
    assert runs.record("digits-mlp-2") is None
    runs.run("digits-mlp-2")
    found = runs.record("digits-mlp-2")
    assert found["command"] == ("benn-fpga train digits --net mlp:16 -k 2 --epochs 1 --limit 300 "
                                "-o m.benn")
    assert (found["members"], len(found["curve"]), found["cpu_seconds"] >= 0) == (2, 2, True)
    assert found["cpu"]
    assert found["curve"][-1] == found["accuracy"]
    # Its model is not trained again, and a record of another command is none.
    monkeypatch.setattr(runs, "_train", None)
    in_process()
    runs.run("digits-mlp-2")
    assert runs.record("digits-mlp-2") == found
    monkeypatch.setitem(runs.RUNS, "digits-mlp-2", runs.Run("digits", "--net mlp:8"))
    assert runs.record("digits-mlp-2") is None


def test_a_run_that_was_interrupted_goes_on(runs, in_process):
    in_process()
    path = runs.MODELS / "digits-mlp-2.benn"
    runs.run("digits-mlp-2")
    whole = path.read_bytes()
    path.unlink()
    Path(f"{path}.checkpoint").write_bytes(b"no checkpoint")
    with pytest.raises(BennError):  # it does start from the checkpoint
        runs.run("digits-mlp-2")
    Path(f"{path}.checkpoint").unlink()
    runs.run("digits-mlp-2")
    assert path.read_bytes() == whole


def test_the_page_of_results_is_what_the_records_say(monkeypatch, tmp_path):
    docs = EXAMPLES.parent / "docs"
    shutil.copytree(docs / "results", tmp_path / "docs/results",
                    ignore=shutil.ignore_patterns("*.svg"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    importlib.import_module("results").main()
    assert (tmp_path / "docs/results.md").read_text() == (docs / "results.md").read_text()
    drawn = {path.name for path in (tmp_path / "docs/results").glob("*.svg")}
    assert drawn == {path.name for path in (docs / "results").glob("*.svg")}


@pytest.fixture
def keywords(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("keywords")


def test_keywords_are_told_apart_by_their_coefficients(keywords):
    rng = np.random.default_rng(0)
    up, again, down = (keywords.mfcc(keywords.speak(word, rng) / 32767)
                       for word in ("up", "up", "down"))
    assert up.shape == (49, 10)
    assert np.isfinite(up).all()
    assert np.abs(up.mean(0) - again.mean(0)).sum() != 0
    assert not (up == down).all()


@pytest.mark.parametrize(("kind", "scale", "offset"), [
    (np.int16, 32768, 0), (np.uint8, 128, 128), (np.int32, 2 ** 31, 0), (np.float32, 1, 0)])
def test_recordings_of_any_width_sound_the_same(keywords, tmp_path, kind, scale, offset):
    tone = np.sin(np.arange(16000) / 9) / 2
    wavfile.write(tmp_path / "t.wav", 16000, (tone * scale + offset).astype(kind))
    heard = keywords.read(tmp_path / "t.wav")
    assert heard.shape == (8000,)
    assert np.abs(heard[100:-100] - tone[::2][100:-100]).max() < 0.02


def test_a_folder_of_recordings_becomes_a_data_set(keywords, tmp_path):
    rng = np.random.default_rng(0)
    for word in ("yes", "no"):
        (tmp_path / word).mkdir()
        for n in range(5):
            wavfile.write(tmp_path / word / f"{n}.wav", 8000, keywords.speak(word, rng))
    made = keywords.dataset(tmp_path)
    assert made["class_names"].tolist() == ["no", "yes"]
    assert (made["x_train"].shape, made["x_test"].shape) == ((8, 49, 10), (2, 49, 10))
    assert (made["y_train"].tolist(), made["y_test"].tolist()) == ([0] * 4 + [1] * 4, [0, 1])


@pytest.mark.parametrize(("make", "words"), [
    (lambda folder: folder.write_text(""), "is not a folder; give one with a folder of WAV files"),
    (lambda folder: folder.mkdir(), "must have a folder of WAV files for each of at least 2 words"),
    (lambda folder: [((folder / word).mkdir(parents=True), (folder / word / "0.wav").write_text(""))
                     for word in "ab"], "0.wav is not a WAV file that can be read"),
])
def test_folders_that_are_not_of_recordings(tmp_path, make, words):
    make(tmp_path / "r")
    assert words in complaint(tmp_path, "", "keywords.py", "r")
    assert not (tmp_path / "keywords.npz").exists()


def test_recordings_to_ask_about(keywords, tmp_path):
    wavfile.write(tmp_path / "a.wav", 8000, keywords.speak("on", np.random.default_rng(0)))
    arrays, text = keywords.made([tmp_path / "a.wav"] * 2)
    assert (list(arrays), arrays["x"].shape, text) == (
        ["x"], (2, 49, 10), "2 recordings to ask about")


def test_keywords_that_are_there(tmp_path):
    (tmp_path / "keywords.npz").write_text("mine")
    assert complaint(tmp_path, "", "keywords.py") == \
        "keywords: error: keywords.npz exists; give another name, or --force to replace it\n"
