from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import draw
from benn_fpga.errors import BennError
from benn_fpga.plan.folding import bottleneck, fold_for_cycles, fold_for_lanes
from benn_fpga.plan.plan import plan
from benn_fpga.spec import Fold, Folding

MODEL = draw.random_model(np.random.default_rng(0), members=4, shape=(6,), hidden=(4,), classes=3)


def all_foldings(model, parallel, bus):
    choices = [[Fold(pe, simd) for pe in draw.divisors(layer.outputs)
                for simd in draw.divisors(layer.inputs)] for layer in model.layers]
    return [Folding(folds, parallel, bus) for folds in product(*choices)]


def lanes(folding):
    return plan(MODEL, folding).schedule.xnor_lanes


def cycles(folding):
    return plan(MODEL, folding).schedule.cycles_per_frame


@pytest.mark.parametrize("parallel", [1, 2, 4])
@pytest.mark.parametrize("target", [6, 8, 12, 20, 48, 96, 200])
def test_cycles_are_met_with_the_fewest_lanes(parallel, target):
    chosen = fold_for_cycles(MODEL, target, parallel, 64)
    enough = [f for f in all_foldings(MODEL, parallel, 64) if cycles(f) <= target]
    assert cycles(chosen) <= target
    assert lanes(chosen) == min(map(lanes, enough))


@pytest.mark.parametrize("parallel", [1, 2, 4])
@pytest.mark.parametrize("budget", [8, 13, 30, 100, 4096])
def test_lanes_are_kept_with_the_fewest_cycles(parallel, budget):
    chosen = fold_for_lanes(MODEL, budget, parallel, 64)
    allowed = [f for f in all_foldings(MODEL, parallel, 64) if lanes(f) <= budget]
    assert lanes(chosen) <= budget
    assert cycles(chosen) == min(map(cycles, allowed))


@settings(max_examples=50)
@given(draw.models(), st.integers(0, 2000), st.sampled_from([8, 64, 256]))
def test_whatever_is_chosen_fits_the_model(model, more, bus):
    budget = len(model.members) * len(model.layers) + more
    folding = fold_for_lanes(model, budget, bus=bus).check(model)
    assert plan(model, folding).schedule.xnor_lanes <= budget


@pytest.mark.parametrize("target", [6, 12, 48, 96, 97, 200, 400])
def test_cycles_are_met_with_the_fewest_lanes_of_all_numbers_of_engines(target):
    chosen = fold_for_cycles(MODEL, target)
    enough = [f for parallel in (1, 2, 4) for f in all_foldings(MODEL, parallel, 64)
              if cycles(f) <= target]
    assert cycles(chosen) <= target
    assert lanes(chosen) == min(map(lanes, enough))
    assert chosen.parallel == min(f.parallel for f in enough if lanes(f) == lanes(chosen))


def test_all_members_are_parallel_unless_said():
    assert fold_for_lanes(MODEL).parallel == 4


@pytest.mark.parametrize(("message", "choose"), [
    ("4 cycles per frame cannot be met: the 8-bit bus alone needs 20; "
     "widen `bus` or allow more `cycles`", lambda: fold_for_cycles(MODEL, 4, bus=8)),
    ("3 cycles per frame cannot be met with 4 members in turn; run more in `parallel`",
     lambda: fold_for_cycles(MODEL, 3, parallel=1)),
    ("`parallel` 3 must divide the 4 members; nearest: 2 or 4",
     lambda: fold_for_lanes(MODEL, parallel=3)),
    ("`lanes` must be at least 8 for 2 layers x 4 members in parallel, not 7; allow more, or run "
     "fewer members in `parallel`", lambda: fold_for_lanes(MODEL, 7)),
    ("`lanes` must be at least 2 for 2 layers x 1 member in parallel, not 1; allow more",
     lambda: fold_for_lanes(MODEL, 1, parallel=1)),
])
def test_what_can_not_be_met(message, choose):
    with pytest.raises(BennError) as caught:
        choose()
    assert str(caught.value) == message


def strided(members):
    encoder = draw.Encoder("planes", (15, 16, 3), 8, np.zeros((1, 0), np.int32))
    layers = (draw.Conv((15, 16, 3), (3, 3), outputs=4, stride=3, input_bits=8),
              draw.Dense(100, 3, 1, 1, 0))
    return draw.random_ensemble(np.random.default_rng(0), encoder, layers, members=members,
                                vote_weights=[1] * members)


def test_members_in_turn_read_a_frame_that_is_there():
    """What the bus needs for a frame does not slow a convolution that reads it from a buffer."""
    model = strided(4)
    folding = fold_for_cycles(model, 1620, parallel=1, bus=8)
    assert plan(model, folding).schedule.cycles_per_frame <= 1620


def test_several_taps_in_a_word_if_one_is_too_slow():
    fold = fold_for_cycles(strided(1), 760, bus=8).layers[0]
    assert fold.simd in strided(1).layers[0].wide_simds
    assert fold_for_cycles(strided(1), 760, bus=64).layers[0].simd <= 3


def test_the_widest_fold_is_not_always_the_fastest():
    """A line buffer skips pixels that no window reads, a window of registers does not."""
    encoder = draw.Encoder("planes", (24, 1, 2), 2, np.zeros((1, 0), np.int32))
    conv = draw.Conv((24, 1, 2), (2, 1), 6, outputs=2, input_bits=2)
    model = draw.random_ensemble(np.random.default_rng(0), encoder, (
        conv, draw.Dense(8, 3, 1, 1, 0)))
    folding = fold_for_lanes(model, 4096, bus=64)
    assert folding.layers[0] == Fold(2, 2)
    assert bottleneck(model, folding) == ("layer0", False)


def test_a_layer_that_is_fed_slowly_is_named():
    encoder = draw.Encoder("planes", (15, 16, 3), 2, np.zeros((1, 0), np.int32))
    layers = (draw.MaxPool((15, 16, 3), (3, 3), 2, code_bits=2), draw.Dense(147, 3, 1, 2, 0))
    model = draw.random_ensemble(np.random.default_rng(0), encoder, layers)
    with pytest.raises(BennError) as caught:
        fold_for_cycles(model, 760, bus=8)
    assert str(caught.value) == ("760 cycles per frame cannot be met: layer 0 (maxpool) takes "
                                 "877, since its inputs come slowly; allow more `cycles`")


@pytest.mark.parametrize(("folds", "bus", "expected"), [
    (((12, 20), (6, 12), (4, 6)), 8, ("answer", False)),
    (((12, 20), (1, 1), (4, 6)), 64, ("layer1", True)),
    (((12, 20), (6, 12), (4, 6)), 192, ("input", False)),  # as slow as every layer
])
def test_bottleneck(folds, bus, expected):
    model = draw.random_model(np.random.default_rng(0), members=1, shape=(20,), hidden=(12, 6),
                              classes=4)
    folding = Folding(tuple(Fold(*fold) for fold in folds), 1, bus)
    assert bottleneck(model, folding) == expected


def test_bottleneck_that_no_folding_mends():
    model, _ = draw.residual()
    folds = tuple(Fold(max(layer.pes), max(layer.simds)) for layer in model.layers)
    assert bottleneck(model, Folding(folds, 1, 64)) == ("layer0", False)
