"""The harness on answers made up from the golden model, without a simulator."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import designs
import draw
from benn_fpga import golden
from benn_fpga.errors import BennError, Mismatch
from benn_fpga.plan import folder
from benn_fpga.plan.answer import REJECT, records
from benn_fpga.sim import harness
from benn_fpga.sim.answers import answer_type
from benn_fpga.sim.stream import Stream

MODEL, FOLDING = designs.case("folded")
X = draw.random_frames(np.random.default_rng(0), MODEL, 20)
FRAME = 7  # the one that goes wrong


def beats(x):
    """What the taps of right hardware carry, as integers: codes and scores in lanes, those of all
    engines side by side."""
    trace, carried, engines = golden.run(MODEL, x, trace=True), {}, FOLDING.parallel
    for tap in folder.describe(MODEL, FOLDING)["taps"]:
        n, words = tap["layer"], []
        layer, pe = MODEL.layers[n], FOLDING.layers[n].pe
        width = MODEL.score_bits if layer.is_scores else 1
        for f in range(len(x)):
            for first in range(0, len(MODEL.members), engines):
                values = np.stack([trace.scores[f, k] if layer.is_scores
                                   else trace.activations[k][n][f]
                                   for k in range(first, first + engines)], axis=-1)
                for row in values.reshape(-1, pe * engines).tolist():
                    words.append(sum((v & (1 << width) - 1) << (width * lane)
                                     for lane, v in enumerate(row)))
        carried[tap["path"]] = words
    return carried


class Hardware:
    """Stands for Verilator; ``spoil`` changes the answers, ``spoil_taps`` the beats of taps."""

    def __init__(self, spoil=lambda answers: answers, spoil_taps=lambda taps: None):
        self.spoil, self.spoil_taps = spoil, spoil_taps

    def stream(self, design, binary, x, *, alone=False, taps=(), advance=None, **_):
        order = [0] * alone + list(range(len(x)))
        for _ in order if advance else ():
            advance(1)
        data, timing = records(golden.run(MODEL, x)), design.manifest["predicted"]
        record = answer_type(28)
        answers = np.zeros(len(order), record)
        for n, f in enumerate(order):
            end = (n + 10) * timing["cycles_per_frame"]
            answers[n] = (100, end - 6, end, False, True, np.frombuffer(data[f], np.uint8))
        answers["start"][0] = answers["first"][0] - timing["latency_cycles"]
        if not taps:
            return Stream(self.spoil(answers), {})
        heard = beats(x)
        self.spoil_taps(heard)
        return Stream(answers, heard)


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    target = tmp_path_factory.mktemp("d") / "d"
    return folder.write(target, "", folder.describe(MODEL, FOLDING), MODEL)


@pytest.fixture
def simulate(design, monkeypatch):
    def simulate(x=X, y=None, layers=False, options=None, built=False, **spoils):
        monkeypatch.setattr(harness, "build", lambda *a, **k: built)
        monkeypatch.setattr(harness, "stream", Hardware(**spoils).stream)
        return harness.simulate(design, x, y, layers=layers, **(options or {}))
    return simulate


def changed(n, **fields):
    def spoil(answers):
        for name, value in fields.items():
            answers[name][n] = value
        return answers
    return spoil


def byte(n, at):
    def spoil(answers):
        answers["data"][n, at] ^= 1
        return answers
    return spoil


def test_all_right(simulate, design):
    result = simulate()
    timing = design.manifest["predicted"]
    assert (result.frames, result.mismatches, result.failure) == (20, 0, None)
    assert result.cycles_per_frame == timing["cycles_per_frame"]
    assert result.latency_cycles == timing["latency_cycles"]
    result.check()


def test_accuracy_is_that_of_the_hardware(simulate):
    y = golden.run(MODEL, X).classes
    assert (simulate().accuracy, simulate(y=y).accuracy) == (None, 1)
    y[3] = (y[3] + 1) % MODEL.classes
    assert simulate(y=y).accuracy == 19 / 20
    assert simulate(y=y, spoil=lambda answers: answers[:FRAME + 1]).accuracy == 6 / 20


def test_rejected_frames_are_those_that_the_hardware_flags(simulate):
    result = golden.run(MODEL, X)
    kept = ~result.rejected
    y = np.where(kept, result.classes, (result.classes + 1) % MODEL.classes)
    y[np.flatnonzero(kept)[0]] += 1
    found = simulate(y=y)
    assert (found.rejected, found.accuracy) == (12, 7 / 20)
    assert found.answered_accuracy == 7 / 8
    assert simulate().answered_accuracy is None
    assert simulate(X[:0:-1], spoil=lambda answers: answers[:1]).rejected == 0


def test_a_wrong_flag_is_named(simulate):
    def spoil(answers):
        answers["data"][FRAME + 1, 2] ^= REJECT
        return answers
    found = "frame 7, vote: expected flags 0, got 2 (every layer is right)"
    assert simulate(spoil=spoil).first_mismatch == found


def test_every_layer(simulate):
    result = simulate(layers=True)
    assert (result.failure, result.layers_compared) == (
        None, len(X) * len(MODEL.members) * len(MODEL.layers))
    assert simulate().layers_compared == 0


def test_a_wrong_layer_behind_right_answers(simulate):
    def spoil(taps):
        next(iter(taps.values()))[-1] ^= 1

    result = simulate(layers=True, spoil_taps=spoil)
    assert (result.mismatches, result.layers_compared) == (0, 0)
    assert result.failure.startswith("every answer is right, but not every layer; first: frame 19,")
    assert simulate(spoil_taps=spoil).failure is None


def test_few_frames_are_repeated_but_counted_once(simulate):
    result = simulate(X[:1], spoil=byte(0, 0))
    assert (result.frames, result.mismatches) == (1, 1)


@pytest.mark.parametrize("frames", [1, 20])
def test_progress_counts_the_frames_that_were_asked_for(simulate, frames):
    seen = {}

    @contextmanager
    def bar(text, total):
        seen[text, total] = 0

        def advance(steps):
            seen[text, total] += steps
        yield advance
    simulate(X[:frames], options={"bar": bar})
    assert seen == {("compile", None): 0, ("simulate", frames): frames}


def test_frames_are_called_by_their_numbers(simulate):
    numbers = [100 + 3 * n for n in range(len(X))]
    spoils = {"spoil": byte(FRAME + 1, 0), "options": {"numbers": numbers}}
    assert simulate(**spoils).first_mismatch.startswith("frame 121, vote: expected class ")
    found = simulate(spoil_taps=lambda taps: taps["layer0"].clear(), **spoils)
    assert found.first_mismatch.startswith("frame 112, member 0, layer 0, neuron 0: expected ")


def test_compile_time_is_that_of_a_build(simulate, monkeypatch):
    assert simulate().compile_seconds == 0
    monkeypatch.setattr(harness.time, "perf_counter", iter([5.0, 7.25]).__next__)
    assert simulate(built=True).compile_seconds == 2.25


@pytest.mark.parametrize("at", range(28))
def test_every_byte_of_the_record_counts(simulate, at):
    assert simulate(spoil=byte(FRAME + 1, at)).mismatches == 1


@pytest.mark.parametrize("fields", [{"user": True}, {"whole": False}])
def test_malformed_answer(simulate, fields):
    result = simulate(spoil=changed(FRAME + 1, **fields))
    assert (result.mismatches, result.first_mismatch) == (
        1, "frame 7: right numbers in a malformed answer record")


def test_missing_answers(simulate):
    result = simulate(spoil=lambda answers: answers[:FRAME + 1])
    assert (result.mismatches, result.first_mismatch) == (13, "frame 7: no answer came")


def test_no_answer_at_all(simulate):
    result = simulate(spoil=lambda answers: answers[:0])
    assert (result.mismatches, result.cycles_per_frame, result.latency_cycles) == (20, None, None)


def test_surplus_answers(simulate):
    result = simulate(spoil=lambda answers: np.append(answers, answers[-1:]))
    assert (result.mismatches, result.surplus_answers) == (0, 1)
    assert result.failure == "1 surplus answers, that no frame asked for"


def test_wrong_vote(simulate):
    result = simulate(spoil=byte(FRAME + 1, 0))
    right = int(golden.run(MODEL, X).classes[FRAME])
    assert result.first_mismatch == (f"frame 7, vote: expected class {right}, got {right ^ 1} "
                                     f"(every layer is right)")


@pytest.mark.parametrize(("tap", "beat", "bit", "where"), [
    ("layer0", 0, 0, "frame 4, member 0, layer 0, neuron 0"),
    ("layer0", 3 * 8 + 5, 1, "frame 7, member 3, layer 0, neuron 3"),
    ("layer1", 3 * 8 + 7, 2, "frame 7, member 2, layer 1, neuron 7"),
    ("layer2", 3 * 10 + 4, MODEL.score_bits, "frame 7, member 1, layer 2, neuron 4"),
])
def test_wrong_neuron(simulate, tap, beat, bit, where):
    def flip(taps):
        taps[tap][beat] ^= 1 << bit
    result = simulate(spoil=byte(FRAME + 1, 0), spoil_taps=flip)
    assert result.first_mismatch.startswith(f"{where}: expected ")


def test_silent_layer(simulate):
    def cut(taps):
        del taps["layer1"][3 * 8:]
    result = simulate(spoil=byte(FRAME + 1, 0), spoil_taps=cut)
    assert result.first_mismatch.startswith("frame 7, member 0, layer 1, neuron 0: expected ")
    assert result.first_mismatch.endswith(", got nothing")


def test_wrong_latency(simulate):
    result = simulate(spoil=changed(0, start=0))
    assert "every answer is right, but" in result.failure
    with pytest.raises(Mismatch, match="latency cycles were predicted and"):
        result.check()


def test_wrong_interval(simulate):
    def late(answers):
        answers["last"] += np.arange(len(answers), dtype=np.uint64)
        return answers
    assert "cycles per frame were predicted and" in simulate(spoil=late).failure


@pytest.mark.parametrize("change", [1, -1])
def test_one_uneven_gap(simulate, change):
    def move(answers):
        answers["last"][-3] = int(answers["last"][-3]) + change  # one gap more, the next one less
        return answers
    result = simulate(spoil=move)
    assert abs(result.cycles_per_frame - result.predicted_cycles_per_frame) == 1


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("times", "said"), [(1, []), (500, ["w.vcd will take about "])])
def test_a_large_trace_is_said_beforehand(design, monkeypatch, tmp_path, times, said):
    def stop(*_, **__):
        raise KeyboardInterrupt
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(harness, "build", stop)
    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings(record=True) as heard:
        harness.simulate(design, np.repeat(X, times, 0), waves="w.vcd")
    assert [str(each.message)[:22] for each in heard] == said


@pytest.mark.parametrize(("message", "x", "waves"), [
    (r"Inputs must have shape \(frames, 4, 4, 1\), not \(2, 5\)", np.zeros((2, 5), int), None),
    ("there are no frames to simulate", X[:0], None),
    ("the trace is a VCD file; call it w.vcd", X, "w.fst"),
    ("cannot write no/w.vcd: No such file or directory", X, "no/w.vcd"),
])
def test_wrong_use(design, message, x, waves):
    with pytest.raises(BennError, match=message):
        harness.simulate(design, x, waves=waves)
