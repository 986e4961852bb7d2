import numpy as np
import pytest
import torch
from torch.nn import functional

from benn_fpga import nets, presets
from benn_fpga.layers import LAYER_KINDS, MAX_GAIN, Conv, Dense
from benn_fpga.nets import UNIT
from benn_fpga.sw import network
from benn_fpga.sw.modules import EPSILON, MODULES, Products, Residual
from benn_fpga.sw.network import Network, values

LAYERS = (Dense(9, 6), Dense(6, 5), Dense(5, 3, output_bits=0))


def make(members, layers=LAYERS):
    drawn = Network(layers, len(members)).draw([np.random.default_rng(k) for k in members])
    drawn.estimate(inputs())
    return drawn


def inputs(frames=50):
    return torch.from_numpy(np.random.default_rng(9).integers(0, 2, (frames, 9)) * 2 - 1)


def test_every_kind_of_layer_has_a_module():
    assert set(MODULES) == set(LAYER_KINDS.values())


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
    assert drawn.layers[0].norm.mean[0].tolist() == sums.mean(0).tolist()
    assert drawn.layers[0].norm.var[0].tolist() == pytest.approx(sums.var(0).tolist(), rel=1e-12)


def test_training_and_trained_forward_agree_on_the_training_set():
    drawn, x = make([4, 5], (LAYERS[0], Dense(6, 3, output_bits=0))), inputs()
    drawn.train()
    assert (drawn(x.float()).long().detach().numpy() == drawn.scores(x)).all()


def test_clamp():
    drawn = make([4])
    with torch.no_grad():
        drawn.layers[0].weight.fill_(-3)
        drawn.layers[0].norm.gain.fill_(-3)
    drawn.clamp()
    assert drawn.layers[0].weight.unique().tolist() == [-1]
    assert drawn.layers[0].norm.gain.min() > 0


IMAGES = presets.encoder("thermometer:2", (8, 8, 2), 4, 15)


def made(name, members, recipe="hw"):
    """A convolutional network whose members are drawn from these seeds, and its inputs."""
    layers = nets.build(name, IMAGES, 3, width=0.1, recipe=recipe)
    drawn = Network(layers, len(members), recipe)
    drawn.draw([np.random.default_rng(k) for k in members]).clamp()
    x = values(IMAGES, np.random.default_rng(9).integers(0, 16, (20, 8, 8, 2)))
    drawn.estimate(x)
    return drawn, x


@pytest.mark.parametrize(("name", "recipe"), [("nin", "hw"), ("nin", "paper"), ("lenet", "hw"),
                                              ("resnet18", "hw")])
def test_members_of_convolutional_networks_do_not_mix(name, recipe):
    together, x = made(name, [4, 5], recipe)
    alone = np.concatenate([made(name, [k], recipe)[0].scores(x) for k in (4, 5)], axis=1)
    assert (together.scores(x) == alone).all()
    own = together(x[:, None].expand(-1, 2, -1, -1, -1))
    assert (own.long().detach().numpy() == alone).all()


@pytest.mark.parametrize("budget", [1, 1 << 28])
def test_estimate_keeps_within_its_budget(monkeypatch, budget):
    monkeypatch.setattr(network, "_ESTIMATE", budget)
    drawn, x = made("lenet", [4])
    seen = drawn.layers[0].sums(x[:1 if budget == 1 else None].float()).double()
    assert drawn.layers[0].norm.mean[0].tolist() == seen.mean((0, 2, 3)).tolist()


@pytest.mark.parametrize("name", ["nin", "lenet", "resnet18"])
@pytest.mark.parametrize("recipe", ["hw", "paper"])
def test_every_parameter_learns(name, recipe):
    if (name, recipe) == ("resnet18", "paper"):
        return
    drawn, x = made(name, [4, 5], recipe)
    drawn.train()
    drawn(x).square().sum().backward()
    still = [label for label, p in drawn.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


FLOATS = nets.kind("dnn")


def test_floats_by_hand():
    drawn = Network(LAYERS[1:], 1, kind=FLOATS).draw([np.random.default_rng(0)])
    x = inputs()[:, :6].float()
    drawn.estimate(x)
    first, last = (layer.weight[0].detach().double() for layer in drawn.layers)
    sums = x.double() @ first.T
    hidden = ((sums - sums.mean(0)) / (sums.var(0, correction=0) + EPSILON).sqrt()).relu()
    expected = (hidden @ last.T).numpy()
    assert drawn.scores(x)[:, 0] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_float_weights_are_not_clamped():
    drawn = Network(LAYERS, 1, kind=FLOATS)
    with torch.no_grad():
        drawn.layers[0].weight.fill_(-3)
        drawn.layers[0].norm.gain.fill_(-3)
    drawn.clamp()
    assert drawn.layers[0].weight.unique().tolist() == [-3]
    assert drawn.layers[0].norm.gain.unique().tolist() == [-3]


@pytest.mark.parametrize(("kind", "outside"), [("dnn", [-1, 0]), ("ab", [-1, -1])])
def test_outside_an_image_is_the_least_that_occurs(kind, outside):
    layers = nets.build("nin", IMAGES, 3, nets.kind(kind), width=0.1)
    drawn = Network(layers, 1, kind=nets.kind(kind))
    assert [drawn.layers[n]._outside for n in (0, 3)] == outside


@pytest.mark.parametrize("size", [8, 7])
def test_a_stride_without_a_kernel(size):
    layer = Conv((size, size, 3), (1, 1), 2, outputs=6, output_bits=0)
    drawn = Network((layer,), 1).draw([np.random.default_rng(0)]).layers[0]
    x = torch.from_numpy(np.random.default_rng(1).integers(0, 2, (4, 3, size, size)) * 2.0 - 1)
    x = x.float().to(memory_format=torch.channels_last)
    expected = functional.conv2d(x.contiguous(), drawn.integers()[0][..., None, None], stride=2)
    assert torch.equal(drawn.sums(x), expected)


@pytest.mark.parametrize(("kind", "encoder", "centred"), [
    ("ab", "threshold", [False, True, True]),  # one channel, six, and a dense layer of 2*2*6
    ("ab", "thermometer:2", [True, True, True]),
    ("sb", "planes", [False, True, True]),
])
def test_the_paper_centres_weights_over_channels(kind, encoder, centred):
    kind, coder = nets.kind(kind), presets.encoder(encoder, (8, 8, 1), 8, 255)
    drawn = Network(nets.build("lenet", coder, 10, kind, width=0.3, recipe="paper"), 2, "paper",
                      kind)
    drawn.draw([np.random.default_rng(n) for n in range(2)])
    drawn.clamp()
    hidden = [layer for layer in drawn.layers if isinstance(layer, Products)][:-1]
    for layer, expected in zip(hidden, centred, strict=True):
        per_place = layer.weight.detach().view(2, layer.spec.outputs, -1, layer._channels)
        largest = float(per_place.mean(3).abs().max())
        assert (largest < 1e-6) == expected
        assert torch.sign(layer.weight.detach()).unique().tolist() == [-1, 1]


def test_batch_norm_is_estimated_on_frames_of_the_whole_set(monkeypatch):
    """Few frames are taken at even distances, and as many for any number of members."""
    layers = nets.build("mlp:4", presets.encoder("threshold", (6,), 8, 255), 3)
    x = torch.from_numpy(np.random.default_rng(0).choice([-1, 1], (90, 6)).astype(np.int8))
    monkeypatch.setattr(network, "_ESTIMATE", 4 * 30)
    for members in (1, 2):
        drawn = Network(layers, members).draw([np.random.default_rng(0)] * members)
        drawn.estimate(x)
        sums = drawn.layers[0].sums(x[::3].float()).detach()
        assert drawn.layers[0].norm.mean.float() == pytest.approx(sums.mean(0))


@pytest.mark.parametrize("kind", ["ib", "sb"])
def test_residuals_are_trained_as_they_run(kind):
    """In training a scale gives what its integers give, by the statistics of the batch."""
    kind = nets.kind(kind)
    coder = presets.encoder("planes", (8, 8, 1), 8, 255)
    drawn = Network(nets.build("resnet18", coder, 10, kind, width=0.05), 2, "hw", kind)
    drawn.draw([np.random.default_rng(n) for n in range(2)])
    x = values(coder, np.random.default_rng(9).integers(0, 256, (40, 8, 8, 1), np.uint8)).float()
    sums = drawn.layers[0](x)
    scale = next(layer for layer in drawn.layers if isinstance(layer, Residual))
    drawn.train()
    trained = scale(sums)
    drawn.eval()
    scale.set([sums])
    assert (trained == scale(sums)).all()
    gain, _ = scale.integers()
    assert gain.abs().max() < MAX_GAIN
    assert float(trained.detach().std()) == pytest.approx(UNIT, rel=0.1)
