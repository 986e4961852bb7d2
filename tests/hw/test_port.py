# amaranth: UnusedElaboratable=no
import numpy as np
import pytest

import rtl
from benn_fpga.hw.port import AnswerPort
from benn_fpga.plan.answer import ERROR, REJECT, answer_fields, decode

MARGINS = (0, 1, 6, 7, 8, 63)


def flags(reject, error, bus=64, **waits):
    """The flags of answers with :data:`MARGINS`."""
    port = AnswerPort(classes=2, total_bits=6, bus=bus, reject=reject)
    answers = [{"winner": 1, "margin": margin, "totals": [-1, 5]} for margin in MARGINS]
    beats, = rtl.stream(port, [(port.i, answers), (port.error, [error] * len(answers))],
                        [(port.o, len(answers) * 128 // bus)], **waits)
    data = b"".join(int(beat.payload.beat.data).to_bytes(bus // 8, "little") for beat in beats)
    fields, _ = decode(np.frombuffer(data, np.uint8).reshape(len(answers), -1), 2)
    assert fields["margin"].tolist() == list(MARGINS)
    assert [int(beat.payload.user) for beat in beats] == [error] * len(beats)
    return fields["flags"].tolist()


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


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 1, 0)])
def test_fields_are_filled_by_name(monkeypatch, order):
    fields = [answer_fields(2)[n] for n in order]
    monkeypatch.setattr("benn_fpga.hw.port.answer_fields", lambda classes: fields)
    port = AnswerPort(classes=2, total_bits=6, bus=128)
    beats, = rtl.stream(port, [(port.i, [{"winner": 1, "margin": 6, "totals": [-1, 5]}]),
                               (port.error, [1])], [(port.o, 1)])
    values = {"class_index": [1], "flags": [ERROR], "margin": [6], "totals": [-1, 5]}
    sent = b"".join(value.to_bytes(field.bits // 8, "little", signed=True)
                    for field in fields for value in values[field.name])
    assert int(beats[0].payload.beat.data).to_bytes(16, "little") == sent


@pytest.mark.parametrize("reject", [0, -1, 1.5, True])
def test_margin_to_reject_by(reject):
    with pytest.raises(ValueError, match=rf"^Reject must be a positive integer, not {reject}$"):
        AnswerPort(classes=2, total_bits=6, bus=64, reject=reject)
