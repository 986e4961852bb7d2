import dataclasses
import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import draw
from benn_fpga import modelfile
from benn_fpga.errors import BennError
from benn_fpga.plan import folder as designs
from benn_fpga.plan.manifest import describe

MODEL = draw.random_model(np.random.default_rng(0))
FOLDING = draw.random_folding(np.random.default_rng(1), MODEL).filled()
MANIFEST = describe(MODEL, FOLDING)


@pytest.fixture
def folder(tmp_path):
    designs.write(tmp_path / "d", "module benn_top; endmodule\n", MANIFEST, MODEL)
    return tmp_path / "d"


def refuses(message, function, *args, **kwargs):
    with pytest.raises(BennError, match=message):
        function(*args, **kwargs)


def test_what_is_written_is_read(folder):
    found = designs.read(folder)
    assert (found.folding, found.model.digest()) == (FOLDING, MODEL.digest())
    assert found.verilog.read_text() == "module benn_top; endmodule\n"


def test_nothing_else_is_left(folder):
    assert sorted(os.listdir(folder)) == ["benn_top.v", "design.json", "model.benn"]
    assert os.listdir(folder.parent) == ["d"]


def test_a_design_is_replaced(folder):
    (folder / "sim").mkdir()
    designs.write(folder, "module other; endmodule\n", MANIFEST, MODEL)
    assert designs.read(folder).verilog.read_text() == "module other; endmodule\n"
    assert (folder / "sim").is_dir()


EXTRAS = {"benn_answer.h": "#define\n", "tb/tb.v": "module tb;\n"}


def rewrite(folder, **options):
    return designs.write(folder, "module benn_top; endmodule\n", MANIFEST, MODEL, **options)


def contents(folder):
    """The extras that are there."""
    return {name: (folder / name).read_text() for name in designs.EXTRAS
            if (folder / name).exists()}


@pytest.mark.parametrize("new", [False, True])
def test_extras_are_written_and_replaced(folder, new):
    folder = folder.parent / "new" if new else folder
    for extras in (EXTRAS, {name: text * 2 for name, text in EXTRAS.items()}):
        rewrite(folder, extras=extras)
        assert contents(designs.read(folder).directory) == extras


def test_extras_of_an_older_design_are_removed(folder):
    rewrite(folder, extras=EXTRAS)
    rewrite(folder, extras={"benn_answer.h": "#define\n"})
    assert sorted(os.listdir(folder)) == ["benn_answer.h", "benn_top.v", "design.json",
                                          "model.benn"]


def test_what_is_beside_the_bench_stays(folder):
    rewrite(folder, extras=EXTRAS)
    (folder / "tb" / "mine.v").touch()
    rewrite(folder)
    assert os.listdir(folder / "tb") == ["mine.v"]


@pytest.mark.parametrize("name", EXTRAS)
@pytest.mark.parametrize("before", [None, EXTRAS])
def test_a_changed_bench_is_not_lost(folder, name, before):
    rewrite(folder, extras=before)
    (folder / "tb").mkdir(exist_ok=True)
    (folder / name).write_text("dear to somebody")
    refuses(f"{name} has changed since it was generated; give another folder, or `force=True`",
            rewrite, folder, extras=EXTRAS)
    assert (folder / name).read_text() == "dear to somebody"
    assert designs.read(folder).folding == FOLDING
    rewrite(folder, extras=EXTRAS, force=True)
    assert contents(folder) == EXTRAS


def test_a_manifest_names_nothing_outside(folder):
    """It may come from anywhere; what it lists is removed by the next design."""
    (folder.parent / "mine").touch()
    manifest = json.loads((folder / "design.json").read_text())
    (folder / "design.json").write_text(json.dumps({**manifest, "extras": {"../mine": "0"}}))
    rewrite(folder)
    assert (folder.parent / "mine").exists()


def test_a_file_where_the_bench_should_be(folder):
    (folder / "tb").touch()
    before = (folder / "design.json").read_bytes()
    refuses("cannot write to .*: File exists", rewrite, folder, extras=EXTRAS)
    assert (folder / "design.json").read_bytes() == before


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(model, path):
        raise BennError("No space left on device")
    monkeypatch.setattr(modelfile, "save", full)
    refuses("No space left", designs.write, tmp_path / "d", "", MANIFEST, MODEL)
    assert os.listdir(tmp_path) == []


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(designs.Path, "write_bytes", full)
    refuses("cannot write to .*: No space left on device; make room", designs.write,
            tmp_path / "d", "", MANIFEST, MODEL)
    assert os.listdir(tmp_path) == []


def test_other_files_are_not_written_over(tmp_path):
    (tmp_path / "thesis.tex").touch()
    refuses("is not empty and holds no design; give another folder, or `force=True`",
            designs.write, tmp_path, "", MANIFEST, MODEL)
    designs.write(tmp_path, "", MANIFEST, MODEL, force=True)
    assert (tmp_path / "thesis.tex").exists()


def test_a_changed_design_is_left_alone(folder):
    (folder / "benn_top.v").write_text("module benn_top; wire x; endmodule\n")
    refuses("benn_top.v has changed since it was generated; give another folder, or `force=True`",
            designs.check_target, folder, MODEL)
    designs.check_target(folder, MODEL, force=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_a_design_with_a_damaged_manifest_is_left_alone(folder, content):
    (folder / "design.json").write_bytes(content)
    refuses("benn_top.v has changed", designs.check_target, folder, MODEL)


def test_a_model_is_left_alone(folder):
    other = dataclasses.replace(MODEL, vote="hard")
    refuses("d holds the design of another model; give another folder, or `force=True`",
            designs.check_target, folder, other)
    (folder / "model.benn").write_bytes(b"damaged")
    refuses("d holds the design of another model", designs.check_target, folder, MODEL)


def test_target_is_a_file(tmp_path):
    (tmp_path / "f").touch()
    refuses("is a file; give a folder", designs.check_target, tmp_path / "f", MODEL)


def test_target_below_a_file(tmp_path):
    (tmp_path / "f").touch()
    refuses("cannot write to", designs.check_target, tmp_path / "f" / "d" / "e", MODEL)


def test_not_a_folder(tmp_path):
    refuses("is not a folder; give one that `benn-fpga generate` wrote", designs.read,
            tmp_path / "no")


def test_not_a_design_folder(tmp_path):
    refuses(r"is not a design folder \(no design.json\); run: benn-fpga generate MODEL -o",
            designs.read, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", "[" * 100_000, "\0"])
def test_damaged_manifest(folder, text):
    (folder / "design.json").write_text(text)
    refuses("design.json is damaged; generate the design again", designs.read, folder)


@pytest.mark.parametrize("change", [
    {"folding": {"layers": [{"pe": 0, "simd": 1}]}}, {"predicted": {"cycles_per_frame": 1}},
    {"predicted": 1}, {"verilog_sha256": None}, {"model_sha256": 3},
    {"predicted": {"cycles_per_frame": 0, "latency_cycles": 20}},
    {"predicted": {"cycles_per_frame": "10", "latency_cycles": 20}}, {"taps": []}, {"bus": 8},
    {"layers": []},
])
def test_tampered_manifest(folder, change):
    manifest = json.loads((folder / "design.json").read_text())
    (folder / "design.json").write_text(json.dumps({**manifest, **change}))
    refuses("generate the design again", designs.read, folder)


def test_changed_verilog(folder):
    (folder / "benn_top.v").write_text("module benn_top; wire x; endmodule\n")
    refuses("benn_top.v has changed since it was generated; generate the design again",
            designs.read, folder)


def test_a_folder_in_place_of_the_verilog(folder):
    (folder / "benn_top.v").unlink()
    (folder / "benn_top.v").mkdir()
    refuses("benn_top.v is a folder, in place of a file; move it away, then generate the design",
            designs.read, folder)


def test_missing_verilog(folder):
    (folder / "benn_top.v").unlink()
    refuses("benn_top.v is missing; generate the design again", designs.read, folder)


def test_missing_model(folder):
    (folder / "model.benn").unlink()
    refuses("model.benn is missing; generate the design again", designs.read, folder)


def test_model_of_another_design(folder):
    dataclasses.replace(MODEL, vote="hard").save(folder / "model.benn", force=True)
    refuses("model.benn is not the model of this design; generate the design again",
            designs.read, folder)


def test_files_are_utf8_whatever_the_locale(folder):
    program = ("from benn_fpga.plan import folder as f; import pathlib; d = f.read('d'); "
               "f.write('e', d.verilog.read_text(), d.manifest, d.model, "
               "extras={'benn_answer.h': 'n\\xe9'})")
    subprocess.run([sys.executable, "-c", program], cwd=folder.parent, check=True,
                   env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert (folder.parent / "e" / "benn_answer.h").read_bytes() == "n\xe9".encode()
