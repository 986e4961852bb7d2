import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benn_fpga import BennError, batchnorm
from benn_fpga.layers import Dense


def exact(layer, mean, scale, beta):
    """Codes (sums, outputs) by the definition, in rational numbers."""
    table = []
    for s in range(-layer.max_sum, layer.max_sum + 1, 2):
        ys = [(s - Fraction(m)) * Fraction(g) + Fraction(b)
              for m, g, b in zip(mean, scale, beta, strict=True)]
        table.append([sum(y >= bound for bound in batchnorm.bounds(layer.levels)) for y in ys])
    return np.array(table)


def folded(layer, mean, scale, beta):
    """The same by thresholds on sums of weights that are complemented where flipped."""
    thresholds, flip = batchnorm.absorb(layer.max_sum, layer.levels, mean, scale, beta)
    sums = np.arange(-layer.max_sum, layer.max_sum + 1, 2)[:, None]
    return (np.where(flip, -sums, sums)[:, :, None] >= thresholds).sum(axis=2)


@pytest.mark.parametrize(("levels", "expected"), [(1, (0,)), (3, (-2, 0, 2)),
                                                  (7, (-6, -4, -2, 0, 2, 4, 6))])
def test_bounds(levels, expected):
    assert batchnorm.bounds(levels) == expected


NUMBERS = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 3.0, 0.5, 1e300, -1e300, 5e-324]),
                    st.floats(-20, 20))


@given(st.integers(1, 9), st.integers(1, 2), st.integers(1, 2), st.integers(1, 3),
       st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=4))
def test_fold_equals_definition(inputs, q, p, output_bits, channels):
    layer = Dense(inputs, len(channels), q, p, output_bits)
    constants = list(zip(*channels, strict=True))
    assert (folded(layer, *constants) == exact(layer, *constants)).all()


@pytest.mark.parametrize(("scale", "beta", "codes"), [
    (1.0, 0.0, [0, 0, 1, 1]),      # a tie at s = 1 is reached
    (-1.0, 0.0, [1, 1, 1, 0]),     # and so it is from the other side
    (0.0, 0.0, [1, 1, 1, 1]), (0.0, -1e-300, [0, 0, 0, 0]),
])
def test_fold_ties(scale, beta, codes):
    assert folded(Dense(3, 1), [1.0], [scale], [beta])[:, 0].tolist() == codes


RELUS = st.tuples(NUMBERS, st.floats(0, 20), NUMBERS, st.floats(0, 20), NUMBERS)


def codes_of(y, levels):
    return sum(y >= bound for bound in batchnorm.bounds(levels))


@given(st.integers(1, 9), st.integers(1, 3), st.lists(RELUS, min_size=1, max_size=4))
def test_thresholds_through_a_relu_equal_definition(limit, output_bits, channels):
    levels = (1 << output_bits) - 1
    thresholds, _ = batchnorm.absorb(limit, levels, *zip(*channels, strict=True))
    for t, constants in zip(thresholds, channels, strict=True):
        m, g, b, a, c = map(Fraction, constants)
        for s in range(-limit, limit + 1):
            expected = codes_of((max(a * s + c, Fraction(0)) - m) * g + b, levels)
            assert (s >= t).sum() == expected


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), RELUS)
def test_thresholds_of_a_pool_equal_definition(limit, taps, output_bits, constants):
    levels = (1 << output_bits) - 1
    thresholds, active = batchnorm.absorb_pool(limit, levels, taps, *([c] for c in constants))
    m, g, b, a, c = map(Fraction, constants)
    for sums in itertools.product(range(-limit, limit + 1), repeat=taps):
        relus = [max(a * s + c, Fraction(0)) for s in sums]
        seen = [s for s in sums if s >= active[0]]
        expected = codes_of((sum(relus) / taps - m) * g + b, levels)
        assert (sum(seen) >= thresholds[0, len(seen)]).sum() == expected


def test_a_negative_gain_behind_a_relu_is_refused():
    with pytest.raises(BennError, match="Gain and scale must not be negative behind a ReLU"):
        batchnorm.absorb(3, 1, [0.0], [-1.0], [0.0], [1.0], [0.0])


def test_prove_counts_comparisons():
    layer = Dense(5, 2, output_bits=2)
    constants = np.array([[0.5, -1], [0.7, -0.3], [0.1, 0.2]])
    thresholds, flip = batchnorm.absorb(layer.max_sum, layer.levels, *constants)
    table = exact(layer, *constants)
    assert batchnorm.prove(5, thresholds, lambda s: table[(s[:, 0] + 5) // 2], flip=flip) == 12


@pytest.mark.parametrize("exhaust", [0, 1 << 27])
@pytest.mark.parametrize("cells", [1, 3, 1 << 21])
def test_prove_names_the_first_difference(monkeypatch, cells, exhaust):
    monkeypatch.setattr(batchnorm, "_CELLS", cells)
    monkeypatch.setattr(batchnorm, "_EXHAUST", exhaust)
    thresholds = np.array([[-1], [3]], np.int32)
    with pytest.raises(BennError) as caught:
        batchnorm.prove(3, thresholds, lambda s: 1 * (s >= np.array([-1, 1])),
                        where="member 2, layer 0")
    assert str(caught.value) == ("member 2, layer 0: output 1 at sum 1 becomes code 0, "
                                 "but training computes 1")


@given(st.integers(1, 40), st.integers(1, 2), st.integers(-45, 45), st.integers(-45, 45),
       st.booleans())
def test_the_short_proof_finds_what_the_long_one_finds(limit, step, t, trained, flip):
    def activation(s):
        return 1 * ((-s if flip else s) >= trained)

    def proved():
        try:
            return bool(batchnorm.prove(limit, np.array([[t]]), activation, flip=flip, step=step))
        except BennError:
            return False
    t = min(max(t, -limit), limit + 1)
    whole = proved()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batchnorm, "_EXHAUST", 0)
        assert proved() == whole
