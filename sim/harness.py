"""Every answer of a design in Verilator compared with the golden model, and its cycles measured."""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benn_fpga import golden
from benn_fpga.errors import BennError, Mismatch, warn
from benn_fpga.output import check_file, check_new
from benn_fpga.plan.answer import REJECT, decode, flags_of
from benn_fpga.sim.build import build
from benn_fpga.sim.locate import first_difference
from benn_fpga.sim.stream import stream
from benn_fpga.sim.workspace import KEPT, folder_of

__all__ = ["Simulation", "simulate"]

_LARGE = 100_000_000  # bytes of a trace that one is told of beforehand
_BEFORE = 3  # frames that are streamed before the wrong one when it is looked into


@dataclass(frozen=True)
class Simulation:
    """What a run gave.

    Members
    -------
    frames, mismatches : frames streamed, and those whose answer is not the golden model's
    surplus_answers : answers that no frame asked for
    cycles_per_frame : from the end of an answer to the end of the next, with no stalls outside,
        once the pipeline is full; of all these the one that is farthest from the prediction
    latency_cycles : from the first beat of a frame alone to the first beat of its answer
    predicted_cycles_per_frame, predicted_latency_cycles : the same by the cycle model
    accuracy : share of the frames that the hardware puts into the class of their label, or None
    rejected : frames whose answer the hardware flags as rejected; None if the model rejects none
    answered_accuracy : ``accuracy`` of the frames that are not rejected; None if all are
    first_mismatch : where the first wrong answer went wrong, in words, or None
    layers_compared : layer outputs that were compared, one per frame, member and layer
    same_data : whether the model was trained on this data set, None if it is not known
    scale : how floats became bytes, as in :class:`benn_fpga.raw.Inputs`
    compile_seconds : that the design took to compile; 0 if it was compiled before
    protocol_tests : that passed; None if they were not run
    """

    frames: int
    mismatches: int
    cycles_per_frame: int | None
    latency_cycles: int | None
    predicted_cycles_per_frame: int
    predicted_latency_cycles: int
    accuracy: float | None = None
    first_mismatch: str | None = None
    layers_compared: int = 0
    surplus_answers: int = 0
    same_data: bool | None = None
    scale: str = "unknown"
    compile_seconds: float = 0.0
    rejected: int | None = None
    answered_accuracy: float | None = None
    protocol_tests: int | None = None

    @property
    def failure(self):
        """Why the answer is no, in one line, or None."""
        if self.mismatches:
            return (f"{self.mismatches} of {self.frames} frames differ from the golden model; "
                    f"first: {self.first_mismatch}")
        if self.first_mismatch:
            return f"every answer is right, but not every layer; first: {self.first_mismatch}"
        if self.surplus_answers:
            return f"{self.surplus_answers} surplus answers, that no frame asked for"
        for what, measured, predicted in (
                ("cycles per frame", self.cycles_per_frame, self.predicted_cycles_per_frame),
                ("latency cycles", self.latency_cycles, self.predicted_latency_cycles)):
            if measured != predicted:
                return (f"every answer is right, but {predicted} {what} were predicted and "
                        f"{measured} measured")
        return None

    def check(self):
        """Raise :class:`Mismatch` unless every answer and both predictions are right."""
        if self.failure:
            raise Mismatch(self.failure)


def simulate(design, x, y=None, *, numbers=None, layers=False, waves=None, keep=False, force=False,
             netlist=None, bar=None):
    """Stream frames ``x`` of raw values through a :class:`~benn_fpga.plan.folder.Design`.

    Parameters
    ----------
    y : labels of the frames
    numbers : by which to call them; from 0 if None
    layers : compare what every layer of every member gives too, in a second run
    waves : path of a .vcd file to record
    keep : leave the bench's files in the folder sim/run of the design
    force : replace a trace, or kept files, of another run
    netlist : path of the Verilog to run in place of the design's own, as synthesis has made it: the
        same ports, but no layers inside
    bar : context manager ``bar(text, total)`` that gives ``advance(steps)``, to show progress
    """
    model, predicted = design.model, design.manifest["predicted"]
    if not len(x):
        raise BennError("there are no frames to simulate; give at least one")
    x = golden.check_input(model.encoder, x)
    if waves is not None:
        _check_waves(waves, force)
    folder = folder_of(design.directory)
    if keep and not force:
        check_new(folder / KEPT)
    numbers = range(len(x)) if numbers is None else numbers
    bar = bar or (lambda text, total: nullcontext(None))
    binary = folder / "-".join([
        *([] if netlist is None else ["netlist"]), "plain" if waves is None else "waves"])
    # However few frames there are, repeat them until the pipeline is in its steady state.
    in_flight = -(-predicted["latency_cycles"] // predicted["cycles_per_frame"])
    least = 2 * in_flight + 8
    order = np.concatenate([[0], np.arange(max(len(x), least)) % len(x)])
    if waves is not None:
        size = _trace_bytes(design, len(order))
        if size > _LARGE:
            fewer = "; `frames` or `only` takes fewer frames" if len(x) > least else ""
            warn(f"{waves} will take about {size / 1e6:,.0f} MB{fewer}")
    start = time.perf_counter()
    with bar("compile", None):
        built = build(netlist or design.verilog, binary, waves=waves is not None)
    compile_seconds = time.perf_counter() - start if built else 0.0
    with bar("simulate", len(x)) as advance:
        out = stream(design, binary, x[order[1:]], alone=True, waves=waves, keep=keep,
                     advance=_asked(advance, len(x)))
    right = _right(model, out.answers, x, order)
    wrong = np.flatnonzero(~right)
    rejected = _rejected(model, out.answers[1:len(x) + 1])
    first = None
    if len(wrong):
        with bar("look for the first difference", None):
            first = _explain(design, binary, x, numbers, order, out.answers, int(wrong[0]),
                             netlist is None)
    elif layers:
        with bar("compare layers", len(x)) as advance:
            first = _difference(design, binary, x, numbers, advance)
    return Simulation(
        frames=len(x),
        mismatches=len(np.unique(order[wrong])),
        cycles_per_frame=_interval(out.answers["last"][1:len(order)],
                                   predicted["cycles_per_frame"]),
        latency_cycles=int(out.answers["first"][0] - out.answers["start"][0])
        if len(out.answers) else None,
        predicted_cycles_per_frame=predicted["cycles_per_frame"],
        predicted_latency_cycles=predicted["latency_cycles"],
        accuracy=None if y is None else _accuracy(model, out.answers[1:len(x) + 1], y),
        rejected=None if model.reject is None else int(rejected.sum()),
        answered_accuracy=None if model.reject is None or y is None or rejected.all() else
        _accuracy(model, out.answers[1:len(x) + 1][~rejected], y[:len(rejected)][~rejected]),
        first_mismatch=first,
        layers_compared=len(x) * len(model.members) * len(model.layers)
        if layers and first is None else 0,
        surplus_answers=max(0, len(out.answers) - len(order)),
        compile_seconds=round(compile_seconds, 3),
    )


def _check_waves(waves, force):
    if Path(waves).suffix != ".vcd":
        raise BennError(f"the trace is a VCD file; call it {Path(waves).with_suffix('.vcd')}")
    check_file(waves, force)


def _trace_bytes(design, frames):
    """About as many as a trace has: measured on six designs of 2 to 3,624 XNOR gates, dense and
    convolutional, which this estimate met within a factor of 3."""
    predicted = design.manifest["predicted"]
    cycles = frames * predicted["cycles_per_frame"] + 2 * predicted["latency_cycles"]
    return cycles * (300 + 6 * design.manifest["xnor_gates"])


def _asked(advance, frames):
    """``advance``, called for the frames that were asked for: not for the first answer, which is to
    the frame that went alone, and not for frames that are repeated."""
    if advance is None:
        return None
    came = 0

    def count(answers):
        nonlocal came
        before, came = came, came + answers
        steps = min(max(came - 1, 0), frames) - min(max(before - 1, 0), frames)
        if steps:
            advance(steps)
    return count


def _right(model, answers, x, order):
    """Which of the expected answers, in ``order`` of frames, came and are right."""
    golden_result = golden.run(model, x)
    answers = answers[:len(order)]
    fields, padding = decode(answers["data"], model.classes)
    frames = order[:len(answers)]
    right = np.zeros(len(order), bool)
    right[:len(answers)] = (
        answers["whole"] & ~answers["user"] & padding
        & (fields["flags"] == flags_of(golden_result)[frames])
        & (fields["class_index"] == golden_result.classes[frames])
        & (fields["margin"] == golden_result.margins[frames])
        & (fields["totals"] == golden_result.totals[frames]).all(axis=1))
    return right


def _accuracy(model, answers, y):
    """Share of the frames with label ``y`` whose answer came and names it."""
    fields, _ = decode(answers["data"], model.classes)
    return float(np.count_nonzero(fields["class_index"] == y[:len(answers)]) / len(y))


def _rejected(model, answers):
    """Which answers have the flag that rejects them."""
    fields, _ = decode(answers["data"], model.classes)
    return fields["flags"] & REJECT != 0


def _interval(ends, predicted):
    """Of the cycles between answers in the second half, those farthest from ``predicted``."""
    gaps = np.diff(ends[len(ends) // 2:].astype(np.int64))
    return int(gaps[np.abs(gaps - predicted).argmax()]) if len(gaps) else None


def _difference(design, binary, x, frames, advance=None):
    """The first difference in any layer, as in :func:`first_difference`."""
    taps = design.manifest["taps"]
    out = stream(design, binary, x, taps=taps, advance=advance)
    return first_difference(design.model, design.folding, taps, out.taps, x, frames)


def _explain(design, binary, x, numbers, order, answers, n, has_layers):
    """Say what is wrong with answer ``n``: stream its frame again, with every layer tapped."""
    model, frame = design.model, numbers[order[n]]
    window = order[max(0, n - _BEFORE):n + 1]
    difference = has_layers and _difference(design, binary, x[window], [numbers[f] for f in window])
    if difference:
        return difference
    if n >= len(answers):
        return f"frame {frame}: no answer came"
    result = golden.run(model, x[order[n]:order[n] + 1])
    expected = (int(result.classes[0]), int(flags_of(result)[0]), int(result.margins[0]),
                result.totals[0].tolist())
    fields, _ = decode(answers["data"][n:n + 1], model.classes)
    for what, e, g in zip(("class", "flags", "margin", "totals"), expected, fields[0].tolist(),
                          strict=True):
        if list(np.ravel(e)) != list(np.ravel(g)):
            more = " (every layer is right)" if has_layers else ""
            return f"frame {frame}, vote: expected {what} {e}, got {g}{more}"
    return f"frame {frame}: right numbers in a malformed answer record"
