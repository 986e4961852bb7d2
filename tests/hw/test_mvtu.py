# amaranth: UnusedElaboratable=no
from dataclasses import replace

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


def unit(model, fold, engines=1, **options):
    """The unit of layer 0, and the width of its outputs."""
    layer = model.layers[0]
    folding = Folding((fold, *(Fold(1, 1) for _ in model.layers[1:])), engines, 8)
    width = layer.output_bits or model.score_bits
    contents = [Contents(model, folding, n) for n in range(engines)]
    return MatrixVectorUnit(layer=layer, fold=fold, rounds=folding.rounds(model),
                            weights=[each.weights(0) for each in contents],
                            table=[each.table(0, width) for each in contents],
                            output_bits=width, **options), width


def input_words(model, fold, frames, repeats):
    """The words of ``frames`` (frames, ways, inputs), each frame sent so often."""
    layer = model.layers[0]
    sf = layer.inputs // fold.simd
    return [word for frame in frames for _ in range(repeats)
            for word in bits.stream_words(frame.T.reshape(sf, -1), layer.input_bits)]


def outputs_of(beats, model, width, shape):
    """What came out, (frames, rounds, outputs, engines), as the members are numbered."""
    mask, pe = (1 << width) - 1, shape[3]
    out = np.array([(beat.payload >> (n * width)) & mask for beat in beats
                    for n in range(pe * shape[4])])
    if model.layers[0].is_scores:
        out -= (out >> (width - 1)) << width
    out = out.reshape(shape).transpose(0, 1, 4, 2, 3)  # frames, rounds, engines, words, PE
    return out.reshape(shape[0], shape[1] * shape[4], -1)


def rtl_unit(model, fold, frames, *, engines=1, shared=True, ahead=0, relays=0,
             adder_levels=1, **waits):
    """Outputs of layer 0 of every member, and the cycles in which they came.

    Frames are (frames, inputs), or (frames, engines, inputs) of those that are not ``shared``.
    """
    dut, width = unit(model, fold, engines, shared=shared, ahead=ahead, relays=relays,
                      adder_levels=adder_levels)
    rounds, nf = len(model.members) // engines, model.layers[0].outputs // fold.pe
    frames = frames[:, None] if shared else frames
    beats, = rtl.stream(dut, [(dut.i, input_words(model, fold, frames, rounds * nf))],
                        [(dut.o, len(frames) * rounds * nf)], i_ahead=ahead, **waits)
    got = outputs_of(beats, model, width, (len(frames), rounds, nf, fold.pe, engines))
    return got, [beat.cycle for beat in beats]


def ref_unit(model, frames):
    layer, out = model.layers[0], []
    for member in model.members:
        out.append(golden.compute(layer, member.layers[0], frames))
    return np.stack(out, axis=1)


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize(("pe", "simd"), FOLDS)
@pytest.mark.parametrize("case", CASES)
def test_unit(case, pe, simd, idle):
    q, p, out = CASES[case]
    rng = np.random.default_rng(pe * simd)
    model = model_of(Dense(12, 6, q, p, out), rng, members=2)
    frames = rng.integers(0, 1 << p, (3, 12))
    got, cycles = rtl_unit(model, Fold(pe, simd), frames, idle=idle)
    assert np.array_equal(got, ref_unit(model, frames))
    if not idle:
        sf, latency = 12 // simd, latencies.layer_latency(model.layers[0], Fold(pe, simd), 2)
        assert cycles == [sf - 1 + latency + n * sf for n in range(len(cycles))]


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("engines", "rounds", "pe", "simd"), [
    (2, 2, 2, 4), (3, 1, 3, 6), (2, 1, 6, 12)])
@pytest.mark.parametrize("case", ["binary", "two bits", "scores"])
def test_engines(case, engines, rounds, pe, simd, shared, idle):
    """Member n is round n // engines of engine n % engines."""
    q, p, out = CASES[case]
    rng = np.random.default_rng(engines)
    model = model_of(Dense(12, 6, q, p, out), rng, members=engines * rounds)
    frames = rng.integers(0, 1 << p, (3, 12) if shared else (3, engines, 12))
    got, cycles = rtl_unit(model, Fold(pe, simd), frames, engines=engines, shared=shared,
                           idle=idle)
    own = [frames if shared else frames[:, n % engines] for n in range(engines * rounds)]
    assert np.array_equal(got, np.stack([ref_unit(model, x)[:, n] for n, x in enumerate(own)], 1))
    if not idle:
        latency = latencies.layer_latency(model.layers[0], Fold(pe, simd), rounds)
        assert cycles[0] == 12 // simd - 1 + latency


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize("members", [1, 2])  # of one the weights are constants
@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize(("case", "simd"), [("binary", 12), ("two bits", 12), ("scores", 4)])
def test_words_that_come_after_they_were_offered(case, simd, ahead, members, idle):
    """While they are on their way weights are read, which takes no time of its own then."""
    q, p, out = CASES[case]
    rng, fold = np.random.default_rng(ahead), Fold(6, simd)
    model = model_of(Dense(12, 6, q, p, out), rng, members=members)
    frames = rng.integers(0, 1 << p, (5, 12))
    got, cycles = rtl_unit(model, fold, frames, ahead=ahead, idle=idle)
    assert np.array_equal(got, ref_unit(model, frames))
    if not idle:
        layer = model.layers[0]
        late = max(0, ahead - latencies.weights_latency(layer, fold, members))
        latency = late + latencies.layer_latency(layer, fold, members)
        assert cycles == [(n + 1) * 12 // simd - 1 + latency for n in range(5 * members)]


@pytest.mark.parametrize("ahead", [0, 2, 3, 5])
@pytest.mark.parametrize("case", ["binary", "two bits", "scores"])
def test_relays(case, ahead):
    """Registers behind the weights; words that come later than the weights wait for nothing."""
    q, p, out = CASES[case]
    rng, fold, relays = np.random.default_rng(ahead), Fold(2, 4), 2
    model = model_of(Dense(12, 6, q, p, out), rng, members=2)
    frames = rng.integers(0, 1 << p, (3, 12))
    got, cycles = rtl_unit(model, fold, frames, ahead=ahead, relays=relays)
    assert np.array_equal(got, ref_unit(model, frames))
    layer = model.layers[0]
    weights = latencies.weights_latency(layer, fold, 2) + relays
    late = max(0, ahead - weights)
    assert cycles[0] == 2 + late + latencies.layer_latency(layer, fold, 2) + relays


@pytest.mark.parametrize("simd", [4, 12, 36])
@pytest.mark.parametrize("case", ["binary", "two bits", "scores"])
def test_fewer_registers_between_adders(case, simd):
    q, p, out = CASES[case]
    rng, fold = np.random.default_rng(simd), Fold(2, simd)
    model = model_of(Dense(36, 6, q, p, out), rng, members=2)
    frames = rng.integers(0, 1 << p, (3, 36))
    got, cycles = rtl_unit(model, fold, frames, adder_levels=2)
    assert np.array_equal(got, ref_unit(model, frames))
    latency = latencies.layer_latency(model.layers[0], fold, 2, 2)
    assert cycles[0] == 36 // simd - 1 + latency


@pytest.mark.parametrize("levels", ["always", "never"])
@pytest.mark.parametrize("bits_", [1, 2])
def test_thresholds_at_the_limits(bits_, levels):
    """All inputs agree with the weights, or none does."""
    rng, layer = np.random.default_rng(0), Dense(8, 2, 1, 1, bits_)
    model = model_of(layer, rng, members=1)
    limit = -layer.max_sum if levels == "always" else layer.max_sum + 1
    arrays = model.members[0].layers[0]
    arrays = {**arrays, "thresholds": np.full_like(arrays["thresholds"], limit)}
    member = replace(model.members[0], layers=(arrays, *model.members[0].layers[1:]))
    model = replace(model, members=(member,))
    agree = bits.unplanes(arrays["weights"], 8)[0]
    frames = np.array([agree, 1 - agree, np.zeros(8, int)])
    got, _ = rtl_unit(model, Fold(1, 4), frames)
    assert np.array_equal(got, ref_unit(model, frames))
    assert set(got.ravel()) == {layer.levels if levels == "always" else 0}


@pytest.mark.parametrize("reset_at", [1, 3, 6, 10])
@pytest.mark.parametrize("case", ["binary", "two bits", "scores"])
def test_reset(case, reset_at):
    """After it all is as at the start, to the cycle."""
    q, p, out = CASES[case]
    rng, fold = np.random.default_rng(0), Fold(3, 4)
    model = model_of(Dense(12, 6, q, p, out), rng, members=2)
    frames = rng.integers(0, 1 << p, (2, 12))
    (dut, width), words = unit(model, fold), input_words(model, fold, frames[:, None], 4)
    beats = rtl.after_reset(dut, words, reset_at=reset_at, count=8)
    got = outputs_of(beats, model, width, (2, 2, 2, 3, 1))
    assert np.array_equal(got, ref_unit(model, frames))
    latency = latencies.layer_latency(model.layers[0], fold, 2)
    assert beats[0].cycle == reset_at + 1 + 2 + latency


def test_constant_weights():
    rng = np.random.default_rng(0)
    model = model_of(Dense(9, 5, 1, 1, 1), rng, members=1)
    frames = rng.integers(0, 2, (20, 9))
    got, cycles = rtl_unit(model, Fold(5, 9), frames)
    assert np.array_equal(got, ref_unit(model, frames))
    latency = latencies.layer_latency(model.layers[0], Fold(5, 9), 1)
    assert cycles == list(range(latency, latency + 20))


@pytest.mark.parametrize(("options", "message"), [
    ({"weights": [[0] * 3]},
     "Memories must hold 4 words of weights and 2 of the table, not 3 and 2"),
    ({"weights": [[0] * 4] * 2, "table": [[0] * 2, [0]]},
     "Memories must hold 4 words of weights and 2 of the table, not 4 and 1"),
    ({"rounds": 0}, "Rounds must be a positive integer, not 0"),
    ({"output_bits": 0}, "Output bits must be a positive integer, not 0"),
])
def test_wrong_parameters(options, message):
    options = {"rounds": 1, "weights": [[0] * 4], "table": [[0] * 2], "output_bits": 1, **options}
    with pytest.raises(ValueError, match=f"^{message}$"):
        MatrixVectorUnit(layer=Dense(4, 2), fold=Fold(1, 2), **options)


def test_a_table_for_every_engine():
    with pytest.raises(ValueError, match="shorter"):
        MatrixVectorUnit(layer=Dense(4, 2), fold=Fold(1, 2), rounds=1, weights=[[0] * 4] * 2,
                         table=[[0] * 2], output_bits=1)
