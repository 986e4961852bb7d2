# amaranth: UnusedElaboratable=no
import numpy as np
import pytest

import rtl
from benn_fpga.hw.port import AnswerPort
from benn_fpga.plan.answer import (
    ERROR,
    REJECT,
    answer_beats,
    answer_fields,
    answer_keep,
    decode,
    word_bits,
)
from benn_fpga.plan.latency import port_latency

MARGINS = (0, 1, 6, 7, 8, 63)


def words(totals, block):
    """Lists of totals of 6 bits as words of ``block`` each."""
    codes = [total & 63 for answer in totals for total in answer]
    return [sum(code << (6 * n) for n, code in enumerate(codes[at:at + block]))
            for at in range(0, len(codes), block)]


def rtl_answers(classes, bus, block, errors, reject=None, **waits):
    """The fields of answers with :data:`MARGINS`, their beats, and their totals."""
    rng = np.random.default_rng(bus)
    totals = rng.integers(-32, 32, (len(MARGINS), classes)).tolist()
    port = AnswerPort(classes=classes, total_bits=6, bus=bus, block=block, reject=reject)
    decisions = [{"class_index": n % classes, "margin": margin}
                 for n, margin in enumerate(MARGINS)]
    per_answer = answer_beats(classes, bus)
    beats, = rtl.stream(port, [(port.i, decisions), (port.totals, words(totals, block)),
                               (port.error, errors)], [(port.o, len(MARGINS) * per_answer)],
                        prompt=[port.totals], **waits)
    data = b"".join(int(beat.payload.beat.data).to_bytes(bus // 8, "little") for beat in beats)
    fields, is_zero = decode(np.frombuffer(data, np.uint8).reshape(len(MARGINS), -1), classes)
    assert is_zero.all()
    assert fields["margin"].tolist() == list(MARGINS)
    assert fields["class_index"].tolist() == [n % classes for n in range(len(MARGINS))]
    assert fields["totals"].tolist() == totals
    assert [int(beat.payload.user) for beat in beats] == [e for e in errors
                                                          for _ in range(per_answer)]
    last = [int(beat.payload.beat.last) for beat in beats]
    assert last == [n % per_answer == per_answer - 1 for n in range(len(beats))]
    keep = [int(beat.payload.beat.keep) for beat in beats[per_answer - 1::per_answer]]
    assert set(keep) == {answer_keep(classes, bus // 8)}
    return fields, beats


def flags(reject, error, bus=64, **waits):
    """The flags of answers with :data:`MARGINS`."""
    fields, _ = rtl_answers(2, bus, 2, [error] * len(MARGINS), reject, **waits)
    return fields["flags"].tolist()


@pytest.mark.parametrize(("idle", "stall"), [(0, 0), (0, 3), (3, 0), (3, 3)])
@pytest.mark.parametrize(("classes", "bus", "block"), [
    (6, 8, 1), (6, 8, 3), (6, 8, 6), (6, 16, 2), (6, 32, 1), (6, 32, 6), (6, 64, 2), (6, 64, 6),
    (5, 64, 5), (6, 24, 6), (6, 40, 6), (6, 128, 6), (6, 1024, 6), (2, 64, 2)])
def test_records(classes, bus, block, idle, stall):
    fields, beats = rtl_answers(classes, bus, block, [0, 1, 1, 0, 1, 0], idle=idle, stall=stall)
    assert fields["flags"].tolist() == [0, 1, 1, 0, 1, 0]
    if not idle and not stall:
        whole = not word_bits(classes, bus)[1]
        settled = [beat.cycle for beat in beats[len(beats) // 2:]]
        assert settled == list(range(settled[0], settled[0] + len(settled)))
        assert beats[0].cycle == 1 + port_latency(whole * answer_beats(classes, bus))  # its flag


@pytest.mark.parametrize(("bus", "block"), [(64, 3), (24, 2), (64, 4)])
def test_wrong_block(bus, block):
    with pytest.raises(ValueError, match=rf"^Block must be the 6 classes, or as the bus takes "
                                         rf"them, not {block}$"):
        AnswerPort(classes=6, total_bits=6, bus=bus, block=block)


@pytest.mark.parametrize("reject", [1, 7, 63])
def test_flags(reject):
    assert flags(reject, 0) == [REJECT * (margin < reject) for margin in MARGINS]


def test_a_wrong_frame_is_flagged_as_such_too():
    assert flags(7, 1) == [ERROR | REJECT * (margin < 7) for margin in MARGINS]


@pytest.mark.parametrize("error", [0, 1])
def test_nothing_is_rejected_without_a_margin(error):
    assert flags(None, error) == [ERROR * error] * len(MARGINS)


@pytest.mark.parametrize(("bus", "idle", "stall"), [(8, 0, 3), (32, 3, 0), (128, 3, 3)])
def test_flags_on_any_bus(bus, idle, stall):
    assert flags(7, 0, bus, idle=idle, stall=stall) == flags(7, 0)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 1, 0, 3)])
def test_fields_are_filled_by_name(monkeypatch, order):
    fields = [answer_fields(2)[n] for n in order]
    monkeypatch.setattr("benn_fpga.hw.port.answer_fields", lambda classes: fields)
    port = AnswerPort(classes=2, total_bits=6, bus=128, block=2)
    beats, = rtl.stream(port, [(port.i, [{"class_index": 1, "margin": 6}]),
                               (port.totals, words([[-1, 5]], 2)), (port.error, [1])],
                        [(port.o, 1)])
    values = {"class_index": [1], "flags": [ERROR], "margin": [6], "totals": [-1, 5]}
    sent = b"".join(value.to_bytes(field.bits // 8, "little", signed=True)
                    for field in fields for value in values[field.name])
    assert int(beats[0].payload.beat.data).to_bytes(16, "little") == sent


@pytest.mark.parametrize("reject", [0, -1, 1.5, True])
def test_margin_to_reject_by(reject):
    with pytest.raises(ValueError, match=rf"^Reject must be a positive integer, not {reject}$"):
        AnswerPort(classes=2, total_bits=6, bus=64, block=2, reject=reject)
