"""One run of the bulk bench: frames in, answers, cycle stamps and taps out."""

import json
import shutil
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.sim import build
from benn_fpga.sim.answers import answer_type
from benn_fpga.sim.workspace import tell, workspace

__all__ = ["Stream", "stream"]

_BENCH = "benn_fpga.sim.tb_bulk"
_POLL_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class Stream:
    """What came out: records of :func:`answer_type`, and per tap the integers of its beats."""

    answers: np.ndarray
    taps: dict[str, list[int]]


def stream(design, binary, x, *, alone=False, taps=(), waves=None, keep=False, advance=None):
    """Stream frames uint8 (frames, values) through the build ``binary`` of ``design``.

    Parameters
    ----------
    alone : send frame 0 by itself first, so that there is one answer more than frames
    taps : of the manifest, layers whose outputs are recorded
    waves : path of the trace to record
    keep : leave the bench's files in the folder ``run`` beside the build
    advance : called with the number of answers that came since the last call
    """
    with workspace(binary.parent, keep) as work:
        told = tell(work, design, x, alone=alone, taps=list(taps))
        record = answer_type(told["answer_beats"] * told["lanes"])
        with _watch(work / "answers.bin", record.itemsize, advance):
            tests, failed = build.run(binary, _BENCH, work, waves=waves is not None)
        if failed or not tests:
            raise BennError(f"the bench failed; see {work / 'run.log'}")
        answers = np.fromfile(work / "answers.bin", record)
        if waves is not None:
            shutil.move(work / "dump.vcd", waves)
        heard = json.loads((work / "taps.json").read_text())
    return Stream(answers, {path: [int(word, 16) for word in words]
                            for path, words in heard.items()})


@contextmanager
def _watch(path, size, advance):
    """Report how many records of ``size`` bytes have been written to ``path``."""
    if advance is None:
        yield
        return
    done = threading.Event()

    def poll():
        seen, over = 0, False
        while not over:
            over = done.wait(_POLL_SECONDS)
            now = path.stat().st_size // size if path.exists() else 0
            advance(now - seen)
            seen = now
    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
