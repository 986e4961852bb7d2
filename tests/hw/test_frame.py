from itertools import product

import pytest

import rtl
from benn_fpga.hw.frame import FrameGuard

LANES, SIZE = 4, 10
GOOD = bytes(range(1, 1 + SIZE))


def beats_of(frame):
    return [{"data": d, "keep": k, "last": e} for d, k, e in rtl.beats_of(frame, LANES)]


def rtl_guard(frames, **waits):
    """Frames out, as bytes, and their error flags. ``frames`` are byte strings of any length."""
    dut = FrameGuard(lanes=LANES, size=SIZE, depth=2)
    beats = [beat for frame in frames for beat in beats_of(frame)]
    per_frame = -(-SIZE // LANES)
    out, errors = rtl.stream(dut, [(dut.i, beats)],
                             [(dut.o, per_frame * len(frames)), (dut.error, len(frames))], **waits)
    data = b"".join(beat.payload.to_bytes(LANES, "little") for beat in out)
    size = per_frame * LANES
    return ([data[n:n + SIZE] for n in range(0, len(data), size)], [e.payload for e in errors])


@pytest.mark.parametrize(("idle", "stall"), list(product([0, 3], [0, 3])))
@pytest.mark.parametrize("size", [1, 4, 7, 8, 9, 10, 11, 12, 13, 16, 40])
def test_frame_of_another_size(size, idle, stall):
    odd = bytes(range(100, 100 + size))
    frames, errors = rtl_guard([GOOD, odd, GOOD, odd, odd, GOOD], idle=idle, stall=stall)
    assert errors == [0, size != SIZE, 0, size != SIZE, size != SIZE, 0]
    assert frames[0] == frames[2] == frames[5] == GOOD
    assert frames[1] == frames[3] == frames[4] == odd[:SIZE].ljust(SIZE, b"\0")


def test_null_byte_inside():
    dut = FrameGuard(lanes=LANES, size=SIZE, depth=2)
    beats = beats_of(GOOD)
    broken = [{**beats[0], "keep": 0b1011}, *beats[1:]]
    _, errors = rtl.stream(dut, [(dut.i, beats + broken + beats)], [(dut.o, 9), (dut.error, 3)])
    assert [e.payload for e in errors] == [0, 1, 0]


def test_frames_wait_for_room_in_the_queue():
    """No flag is lost when nobody takes them for a while."""
    odd = bytes(7)
    frames, errors = rtl_guard([GOOD, odd, odd, GOOD, odd, GOOD, odd], late=100)
    assert errors == [0, 1, 1, 0, 1, 0, 1]
    assert frames[3] == frames[5] == GOOD
