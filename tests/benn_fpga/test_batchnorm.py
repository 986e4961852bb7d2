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
    thresholds, flip = batchnorm.fold(layer, mean, scale, beta)
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


def test_prove_counts_comparisons():
    layer = Dense(5, 2, output_bits=2)
    constants = np.array([[0.5, -1], [0.7, -0.3], [0.1, 0.2]])
    thresholds, flip = batchnorm.fold(layer, *constants)
    table = exact(layer, *constants)
    assert batchnorm.prove(layer, thresholds, flip, lambda s: table[(s[:, 0] + 5) // 2]) == 12


@pytest.mark.parametrize("cells", [1, 3, 1 << 21])
def test_prove_names_the_first_difference(monkeypatch, cells):
    monkeypatch.setattr(batchnorm, "_CELLS", cells)
    thresholds = np.array([[-1], [3]], np.int32)
    with pytest.raises(BennError) as caught:
        batchnorm.prove(Dense(3, 2), thresholds, np.array([False, False]),
                        lambda s: 1 * (s >= np.array([-1, 1])), "member 2, layer 0")
    assert str(caught.value) == ("member 2, layer 0: output 1 at sum 1 folds to code 0, "
                                 "but training computes 1")
