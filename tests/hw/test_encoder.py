# amaranth: UnusedElaboratable=no
from itertools import chain, product

import numpy as np
import pytest

import draw
import rtl
from benn_fpga import golden, images
from benn_fpga.hw.encoder import EncoderUnit
from benn_fpga.spec import ENCODERS


@pytest.mark.parametrize(("idle", "stall"), list(product([0, 3], [0, 3])))
@pytest.mark.parametrize(("kind", "per_value"), [*((kind, False) for kind in ENCODERS),
                                                 ("threshold", True), ("thermometer", True)])
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_encoder(kind, per_value, lanes, idle, stall):
    rng = np.random.default_rng(lanes)
    model = draw.random_model(rng, shape=(10,), encoder=kind, per_value=per_value, raw_bits=5)
    encoder, frames = model.encoder, draw.random_frames(rng, model, 4)
    dut = EncoderUnit(encoder=encoder, thresholds=images.encoder_thresholds(encoder), lanes=lanes)
    beats = [beat[0] for frame in frames for beat in rtl.beats_of(frame, lanes)]
    out, = rtl.stream(dut, [(dut.i, beats)], [(dut.o, len(beats))], idle=idle, stall=stall)
    assert elements(encoder, out, lanes) == golden.encode(encoder, frames).tolist()


def elements(encoder, beats, lanes):
    """Element codes frame by frame, without what the last beat of a frame holds too much."""
    width, per_beat = encoder.element_bits, lanes * encoder.elements_per_value
    codes = [[(beat.payload >> (n * width)) & ((1 << width) - 1) for n in range(per_beat)]
             for beat in beats]
    per_frame = -(-encoder.values // lanes)
    return [list(chain(*codes[at:at + per_frame]))[:encoder.outputs]
            for at in range(0, len(codes), per_frame)]


def test_wrong_lanes():
    encoder = draw.random_model(np.random.default_rng(0)).encoder
    with pytest.raises(ValueError, match=r"^Lanes must be a positive integer, not 0$"):
        EncoderUnit(encoder=encoder, thresholds=[(1,)], lanes=0)
