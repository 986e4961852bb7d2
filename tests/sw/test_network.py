import numpy as np
import pytest
import torch

from benn_fpga import BennError, presets
from benn_fpga.layers import Dense
from benn_fpga.sw import network
from benn_fpga.sw.network import Network, shapes, values

LAYERS = (Dense(9, 6), Dense(6, 5), Dense(5, 3, output_bits=0))


def make(members, layers=LAYERS):
    drawn = Network(layers, len(members)).draw([np.random.default_rng(k) for k in members])
    drawn.estimate(inputs())
    return drawn


def inputs(frames=50):
    return torch.from_numpy(np.random.default_rng(9).integers(0, 2, (frames, 9)) * 2 - 1)


def test_shapes():
    encoder = presets.encoder("planes", (9,), 4, 15)
    assert shapes(encoder, (6, 5), 3, 2, 3) == (
        Dense(9, 6, 2, 4, 3), Dense(6, 5, 2, 3, 3), Dense(5, 3, 2, 3, 0))


def test_shapes_refuse_what_float32_can_not_hold():
    encoder = presets.encoder("planes", (1 << 17,), 8, 255)
    with pytest.raises(BennError) as caught:
        shapes(encoder, (4,), 2)
    assert str(caught.value) == ("Layer 0 sums up to 33423360, which float32 holds exactly only "
                                 "to 16777216; use fewer inputs or bits")


@pytest.mark.parametrize("bits", [1, 2, 6, 7, 8])
def test_values_of_planes(bits):
    encoder = presets.encoder("planes", (1 << bits,), bits, (1 << bits) - 1)
    codes = np.arange(1 << bits, dtype=np.uint8)[None]
    assert values(encoder, codes).tolist() == [list(range(1 - (1 << bits), 1 << bits, 2))]


@pytest.mark.parametrize("chunk", [1, 13, 1 << 22])
def test_values_of_thermometers(monkeypatch, chunk):
    monkeypatch.setattr(network, "_CHUNK", chunk)
    encoder = presets.encoder("thermometer:2", (2,), 2, 3)
    assert values(encoder, np.array([[0, 1], [2, 3], [1, 2]])).tolist() == [
        [-1, -1, 1, -1], [1, 1, 1, 1], [1, -1, 1, 1]]


def test_members_do_not_mix():
    together = make([4, 5, 6]).scores(inputs())
    alone = np.concatenate([make([k]).scores(inputs()) for k in (4, 5, 6)], axis=1)
    assert (together == alone).all()


def test_join():
    joined = Network.join([make([4, 5]), make([6])])
    assert (joined.scores(inputs()) == make([4, 5, 6]).scores(inputs())).all()


def test_own_inputs_equal_shared_inputs():
    drawn, x = make([4, 5]), inputs()
    own = drawn(x.float()[:, None].expand(-1, 2, -1))
    assert (own.long().detach().numpy() == drawn.scores(x)).all()


def test_estimate_is_mean_and_variance_of_the_sums():
    drawn, x = make([4]), inputs()
    sums = x.numpy() @ drawn.layers[0].integers()[0].detach().numpy().T
    assert drawn.layers[0].mean[0].tolist() == sums.mean(0).tolist()
    assert drawn.layers[0].var[0].tolist() == pytest.approx(sums.var(0).tolist(), rel=1e-12)


def test_training_and_trained_forward_agree_on_the_training_set():
    drawn, x = make([4, 5], (LAYERS[0], Dense(6, 3, output_bits=0))), inputs()
    drawn.train()
    assert (drawn(x.float()).long().detach().numpy() == drawn.scores(x)).all()


def test_clamp():
    drawn = make([4])
    with torch.no_grad():
        drawn.layers[0].weight.fill_(-3)
        drawn.layers[0].gain.fill_(-3)
    drawn.clamp()
    assert drawn.layers[0].weight.unique().tolist() == [-1]
    assert drawn.layers[0].gain.min() > 0
