import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benn_fpga import bits


@st.composite
def codes(draw):
    p, rows, n = draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.integers(1, 200))
    seed = draw(st.integers(0, 2**32 - 1))
    return p, np.random.default_rng(seed).integers(0, 1 << p, (rows, n))


def test_words():
    assert [bits.words(n) for n in (0, 1, 63, 64, 65, 128)] == [0, 1, 1, 1, 2, 2]


def test_value_of_one_bit_is_plus_minus_one():
    assert bits.value([0, 1], 1).tolist() == [-1, 1]


def test_value_is_the_sum_of_its_bipolar_bits():
    for u in range(8):
        assert bits.value(u, 3) == sum((1 << i) * (2 * (u >> i & 1) - 1) for i in range(3))


def test_element_0_is_the_least_significant_bit():
    assert bits.pack([1, 0, 0, 1]).tolist() == [0b1001]


def test_element_64_starts_the_second_word():
    vector = np.zeros(65, np.uint8)
    vector[64] = 1
    assert bits.pack(vector).tolist() == [0, 1]


def test_bits_past_the_end_are_0():
    assert bits.pack(np.ones(65, np.uint8)).tolist() == [2**64 - 1, 1]


def test_plane_j_holds_bit_j():
    assert bits.planes(np.array([1, 2, 3]), 2).tolist() == [[0b101], [0b110]]


def test_stream_keeps_the_bits_of_an_element_together():
    assert bits.stream_words([[1, 2, 3]], 2) == [0b111001]


@given(codes())
def test_unplanes_inverts_planes(drawn):
    p, u = drawn
    assert (bits.unplanes(bits.planes(u, p), u.shape[1]) == u).all()


@given(codes())
def test_stream_words_hold_the_elements_in_order(drawn):
    p, u = drawn
    for row, word in zip(u.tolist(), bits.stream_words(u, p), strict=True):
        assert [word >> (e * p) & ((1 << p) - 1) for e in range(len(row))] == row
        assert word >> (p * len(row)) == 0
