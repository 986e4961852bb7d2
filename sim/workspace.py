"""The folder in which a bench runs: what it is told and what it leaves."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.output import new_folder
from benn_fpga.plan.answer import answer_beats, answer_keep

__all__ = ["KEPT", "folder_of", "tell", "workspace"]


KEPT = "run"  # the folder of files that are to be kept


def folder_of(directory):
    """The folder of a design in which everything of its simulation lies."""
    folder = Path(directory) / "sim"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise BennError(f"cannot write to {folder}: {error.strerror}; copy the design to a folder "
                        f"you may write to") from None
    return folder


@contextmanager
def workspace(folder, keep=False):
    """A folder for one run; it becomes ``KEPT`` on request, and stays if a bench failed."""
    work = new_folder(folder, "run.").resolve()
    try:
        yield work
    except BennError:
        raise
    except BaseException:
        shutil.rmtree(work)
        raise
    if keep:
        shutil.rmtree(folder / KEPT, ignore_errors=True)
        work.rename(folder / KEPT)
    else:
        shutil.rmtree(work)


def tell(work, design, x, **more):
    """Write ``bench.json`` and ``frames.bin``, frames of whole beats, for frames (frames, values).

    Returns what the bench is told.
    """
    lanes, classes = design.folding.bus // 8, design.model.classes
    beats, predicted = design.manifest["frame"]["beats"], design.manifest["predicted"]
    frames = np.zeros((len(x), beats * lanes), np.uint8)
    frames[:, :x.shape[1]] = x
    frames.tofile(work / "frames.bin")
    whole = predicted["latency_cycles"] + predicted["cycles_per_frame"]
    told = {
        "lanes": lanes,
        "values": x.shape[1],
        "beats": beats,
        "last_keep": (1 << ((x.shape[1] - 1) % lanes + 1)) - 1,
        "classes": classes,
        "answer_beats": answer_beats(classes, 8 * lanes),
        "answer_keep": answer_keep(classes, lanes),
        "patience": 4 * whole + 1000,  # for an answer that should come
        "surplus": whole,  # for one that should not
        **more,
    }
    (work / "bench.json").write_text(json.dumps(told))
    return told
