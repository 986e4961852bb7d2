# amaranth: UnusedElaboratable=no
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

import draw
import rtl
from benn_fpga import bits, golden
from benn_fpga.hw.mvtu import MatrixVectorUnit
from benn_fpga.layers import Dense
from benn_fpga.plan import latency as latencies
from benn_fpga.plan.memories import Contents
from benn_fpga.spec import Encoder, Fold, Folding

FOLDS = [(1, 1), (1, 12), (6, 1), (2, 4), (3, 6), (6, 12)]
CASES = {"binary": (1, 1, 1), "8-bit input": (1, 8, 1), "two bits": (2, 2, 2), "scores": (1, 1, 0),
         "2-bit scores": (2, 1, 0)}


def model_of(layer, rng, members):
    """An ensemble whose only interesting layer is ``layer``."""
    encoder = Encoder("planes", (layer.inputs,), layer.input_bits, np.zeros((1, 0), np.int32))
    head = Dense(layer.outputs, 2, 1, layer.output_bits or 1, 0)
    layers = (layer,) if layer.is_scores else (layer, head)
    return draw.random_ensemble(rng, encoder, layers, members=members)


def unit(model, fold):
    """That of layer 0 for every member in turn."""
    layer = model.layers[0]
    folding = Folding((fold, *(Fold(1, 1) for _ in model.layers[1:])), 1, 8)
    scores, contents = layer.is_scores, Contents(model, folding, 0)
    return MatrixVectorUnit(
        layer=layer, fold=fold, rounds=len(model.members), weights=contents.weights(0),
        table=contents.offsets(0, model.score_bits) if scores else contents.thresholds(0),
        score_bits=model.score_bits if scores else None)


def rtl_unit(dut, model, fold, frames, **waits):
    """Outputs of layer 0 of every member in turn, and the cycles in which they came."""
    layer, rounds, scores = model.layers[0], len(model.members), model.layers[0].is_scores
    sf, nf = layer.inputs // fold.simd, layer.outputs // fold.pe
    chunks = [chunk for frame in frames for _ in range(rounds * nf)
              for chunk in bits.stream_words(frame.reshape(sf, -1), layer.input_bits)]
    beats, = rtl.stream(dut, [(dut.i, chunks)], [(dut.o, len(frames) * rounds * nf)], **waits)
    width = model.score_bits if scores else layer.output_bits
    out = [(beat.payload >> (n * width)) & ((1 << width) - 1) for beat in beats
           for n in range(fold.pe)]
    out = np.array(out).reshape(len(frames), rounds, layer.outputs)
    if scores:
        out -= (out >> (width - 1)) << width
    return out, [beat.cycle for beat in beats]


def ref_unit(model, frames):
    layer, out = model.layers[0], []
    for member in model.members:
        out.append(golden.compute(layer, member.layers[0], frames))
    return np.stack(out, axis=1)


@lru_cache(1)
def drawn(case, fold):
    """A unit of its own, its model and frames for it."""
    q, p, out = CASES[case]
    rng = np.random.default_rng(fold.pe * fold.simd)
    model = model_of(Dense(12, 6, q, p, out), rng, members=2)
    return unit(model, fold), model, rng.integers(0, 1 << p, (3, 12))


@pytest.mark.parametrize(("idle", "stall"), list(product([0, 3], [0, 3])))
@pytest.mark.parametrize(("pe", "simd"), FOLDS)
@pytest.mark.parametrize("case", CASES)
def test_unit(case, pe, simd, idle, stall):
    dut, model, frames = drawn(case, Fold(pe, simd))
    got, cycles = rtl_unit(dut, model, Fold(pe, simd), frames, idle=idle, stall=stall)
    assert np.array_equal(got, ref_unit(model, frames))
    if not idle and not stall:
        sf, latency = 12 // simd, latencies.layer_latency(model.layers[0], Fold(pe, simd), 2)
        assert cycles == [sf - 1 + latency + n * sf for n in range(len(cycles))]


def test_constant_weights():
    rng = np.random.default_rng(0)
    model = model_of(Dense(9, 5, 1, 1, 1), rng, members=1)
    frames = rng.integers(0, 2, (20, 9))
    got, cycles = rtl_unit(unit(model, Fold(5, 9)), model, Fold(5, 9), frames)
    assert np.array_equal(got, ref_unit(model, frames))
    latency = latencies.layer_latency(model.layers[0], Fold(5, 9), 1)
    assert cycles == list(range(latency, latency + 20))


def test_wrong_images():
    layer, fold = Dense(4, 2), Fold(1, 2)
    with pytest.raises(ValueError, match=r"^Images must hold 4 words of weights and 2 of the "
                                         r"table, not 3 and 2$"):
        MatrixVectorUnit(layer=layer, fold=fold, rounds=1, weights=[0] * 3, table=[0] * 2)
    with pytest.raises(ValueError, match=r"^Score bits must be given for the score layer only"):
        MatrixVectorUnit(layer=layer, fold=fold, rounds=1, weights=[0] * 4, table=[0] * 2,
                         score_bits=4)
