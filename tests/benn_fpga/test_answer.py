import numpy as np
import pytest

from benn_fpga.plan.answer import answer_keep, answer_size, decode, describe, pack


def test_record_is_little_endian():
    record = pack(0x0102, 1, -2, [3, -1])
    assert record.hex(" ") == "02 01 01 00 fe ff ff ff 03 00 00 00 ff ff ff ff"


def test_description():
    assert describe(3) == [
        "u16 class_index (a tie goes to the lowest class)",
        "u16 flags (bit 0: frame error, bit 1: rejected for its margin)",
        "i32 margin (total of the class minus that of the runner-up)", "i32 totals[3] (the vote)"]


def test_decode_inverts_pack():
    records = [pack(n, n & 1, -n, [n, 2 * n, -(1 << 31)]) for n in range(4)]
    data = np.frombuffer(b"".join(record + bytes(4) for record in records), np.uint8)
    fields, padded = decode(data.reshape(4, -1), 3)
    assert [field.tobytes() for field in fields] == records
    assert padded.all()


def test_padding_must_be_zero():
    data = np.frombuffer(pack(0, 0, 0, [0, 0]) + b"\0\1", np.uint8).reshape(1, -1)
    assert not decode(data, 2)[1].any()


@pytest.mark.parametrize(("classes", "lanes", "keep"), [
    (2, 8, 0xFF), (3, 8, 0x0F), (3, 1, 1), (2, 3, 1), (10, 64, (1 << 48) - 1),
])
def test_keep_marks_the_bytes_of_the_record(classes, lanes, keep):
    assert answer_keep(classes, lanes) == keep
    assert keep.bit_length() == (answer_size(classes) % lanes or lanes)
