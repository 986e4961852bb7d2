"""The golden convolution and pools against PyTorch's own."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import draw
from benn_fpga import bits, golden
from benn_fpga.layers import MaxPool, SumPool


@st.composite
def convolutions(draw_):
    shape = tuple(draw_(st.integers(1, size)) for size in (9, 9, 5))
    return draw_(draw.convs(shape, draw_(st.integers(1, 4)), 0, max_bits=4))


@given(convolutions(), st.integers(0, 99))
def test_convolution(layer, seed):
    rng = np.random.default_rng(seed)
    arrays = draw.random_arrays(rng, layer, [None])
    codes = rng.integers(0, 1 << layer.input_bits, (3, *layer.shape), np.uint8)
    low = -(2**layer.input_bits - 1)
    x = torch.from_numpy(bits.value(codes, layer.input_bits)).permute(0, 3, 1, 2).double()
    w = bits.value(bits.unplanes(arrays["weights"], layer.inputs), layer.weight_bits)
    w = torch.from_numpy(w).reshape(layer.outputs, *layer.kernel, -1).permute(0, 3, 1, 2).double()
    padded = functional.pad(x, (layer.padding,) * 4, value=low)
    expected = functional.conv2d(padded, w, torch.from_numpy(arrays["bias"]).double(),
                                 stride=layer.stride, groups=layer.groups)
    assert np.array_equal(golden.compute(layer, arrays, codes),
                          expected.permute(0, 2, 3, 1).long().numpy())


@st.composite
def pools(draw_, kind, **options):
    shape = tuple(draw_(st.integers(1, size)) for size in (9, 9, 3))
    size = draw_(st.integers(1, min(4, *shape[:2])))
    return kind(shape, (size, size), draw_(st.integers(1, 3)), draw_(st.integers(0, size // 2)),
                **options)


@given(pools(MaxPool, code_bits=3), st.integers(0, 99))
def test_max_pool(layer, seed):
    codes = np.random.default_rng(seed).integers(0, 8, (3, *layer.shape), np.uint8)
    x = torch.from_numpy(codes).permute(0, 3, 1, 2).double()
    expected = functional.max_pool2d(x, layer.kernel, layer.stride, layer.padding)
    assert np.array_equal(golden.compute(layer, {}, codes), expected.permute(0, 2, 3, 1).numpy())


@given(pools(SumPool), st.integers(0, 99))
def test_sum_pool(layer, seed):
    x = np.random.default_rng(seed).integers(-99, 100, (3, *layer.shape))
    expected = functional.avg_pool2d(torch.from_numpy(x).permute(0, 3, 1, 2).double(),
                                     layer.kernel, layer.stride, layer.padding, divisor_override=1)
    assert np.array_equal(golden.compute(layer, {}, x), expected.permute(0, 2, 3, 1).numpy())
