# amaranth: UnusedElaboratable=no
from itertools import chain, product

import numpy as np
import pytest

import draw
import rtl
from benn_fpga import golden
from benn_fpga.hw.encoder import EncoderUnit
from benn_fpga.plan import memories
from benn_fpga.spec import ENCODERS

WAITS = list(product([0, 3], [0, 3]))


def case(seed, frames, **options):
    rng = np.random.default_rng(seed)
    model = draw.random_model(rng, shape=(10,), **options)
    return model.encoder, draw.random_frames(rng, model, frames)


def rtl_encoder(encoder, frames, lanes, **waits):
    """Element codes frame by frame, and the cycles in which the beats came."""
    words = memories.encoder_words(encoder, lanes)
    dut = EncoderUnit(encoder=encoder, thresholds=words, lanes=lanes)
    beats = [beat[0] for frame in frames for beat in rtl.beats_of(frame, lanes)]
    out, = rtl.stream(dut, [(dut.i, beats)], [(dut.o, len(beats))], **waits)
    return elements(encoder, out, lanes), [beat.cycle for beat in out]


def elements(encoder, beats, lanes):
    """Element codes frame by frame, without what the last beat of a frame holds too much."""
    width, per_beat = encoder.element_bits, lanes * encoder.elements_per_value
    codes = [[(beat.payload >> (n * width)) & ((1 << width) - 1) for n in range(per_beat)]
             for beat in beats]
    per_frame = -(-encoder.values // lanes)
    return [list(chain(*codes[at:at + per_frame]))[:encoder.outputs]
            for at in range(0, len(codes), per_frame)]


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_encoder(kind, lanes, idle, stall):
    encoder, frames = case(lanes, 4, encoder=kind, raw_bits=5)
    got, _ = rtl_encoder(encoder, frames, lanes, idle=idle, stall=stall)
    assert got == golden.encode(encoder, frames).tolist()


@pytest.mark.parametrize(("idle", "stall"), WAITS)
@pytest.mark.parametrize("kind", ["threshold", "thermometer"])
@pytest.mark.parametrize(("lanes", "raw_bits"), [(1, 8), (2, 1), (3, 5), (5, 8), (10, 8), (16, 4)])
def test_thresholds_per_value(lanes, raw_bits, kind, idle, stall):
    encoder, frames = case(lanes, 9, encoder=kind, raw_bits=raw_bits, per_value=True)
    got, cycles = rtl_encoder(encoder, frames, lanes, idle=idle, stall=stall)
    assert got == golden.encode(encoder, frames).tolist()
    if not idle and not stall:
        assert set(np.diff(cycles)) == {1}


@pytest.mark.parametrize("lanes", [1, 3, 5, 10])
@pytest.mark.parametrize("reset_at", range(8))
def test_reset_in_a_frame(lanes, reset_at):
    """The first beat after it is a frame's first again, even in the very next cycle."""
    encoder, frames = case(0, 3, encoder="thermometer", per_value=True)
    words = memories.encoder_words(encoder, lanes)
    dut = EncoderUnit(encoder=encoder, thresholds=words, lanes=lanes)
    beats = [beat[0] for frame in frames for beat in rtl.beats_of(frame, lanes)]
    out = rtl.after_reset(dut, beats, reset_at=reset_at)
    assert elements(encoder, out, lanes) == golden.encode(encoder, frames).tolist()


def test_words_are_as_wide_as_they_must_be():
    encoder, _ = case(0, 1, encoder="thermometer", per_value=True, raw_bits=3, levels=2)
    words = memories.encoder_words(encoder, 4)
    assert len(words) == 3
    assert max(words).bit_length() <= 4 * 2 * (3 + 1)


def test_wrong_lanes():
    encoder, _ = case(0, 1)
    with pytest.raises(ValueError, match=r"^Lanes must be a positive integer, not 0$"):
        EncoderUnit(encoder=encoder, thresholds=[1], lanes=0)
