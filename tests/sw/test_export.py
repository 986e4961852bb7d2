import dataclasses

import numpy as np
import pytest
import torch

from benn_fpga import batchnorm, golden, nets, presets
from benn_fpga.errors import BennError, Mismatch
from benn_fpga.sw import export
from benn_fpga.sw.network import Network, values

RAW = np.random.default_rng(3).integers(0, 17, (80, 12), np.uint8)


def made(encoder="thermometer:3", hidden=(10, 7), weight_bits=1, activation_bits=1, members=3):
    """A network with drawn weights and batch norms, its encoder, and its encoded inputs."""
    coder = presets.encoder(encoder, (12,), 5, 16)
    layers = nets.build(f"mlp:{','.join(map(str, hidden))}", coder, 4,
                        nets.kind("qnn", wbits=weight_bits, abits=activation_bits))
    rng = np.random.default_rng(4)
    network = Network(layers, members).draw([rng] * members)
    with torch.no_grad():
        for layer in network.layers[:-1]:
            norm, size = layer.norm, layer.norm.gain.shape
            norm.gain.copy_(torch.from_numpy(rng.choice([0.0, 0.5, -1, 2, 3], size)))
            norm.beta.copy_(torch.from_numpy(rng.choice([0.0, 0.5, -1, 2, rng.normal()], size)))
    x = values(coder, RAW)
    network.estimate(x)
    return network, coder, x


@pytest.mark.parametrize("encoder", ["threshold", "thermometer:3", "planes"])
@pytest.mark.parametrize("hidden", [(), (1,), (10, 7)])
@pytest.mark.parametrize(("q", "p"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 4)])
def test_every_score_is_equal(encoder, hidden, q, p):
    network, coder, x = made(encoder, hidden, q, p)
    model, result = export.export(network, coder, RAW)
    assert (result.scores == network.scores(x)).all()
    assert (golden.run(model, RAW).scores == network.scores(x)).all()


def test_hidden_codes_are_equal():
    network, coder, x = made(weight_bits=2, activation_bits=2)
    model, _ = export.export(network, coder, RAW)
    layer = network.layers[0]
    codes = (layer(x.float()).detach() + 3) / 2
    hidden = golden.run(model, RAW, trace=True).activations
    assert all((hidden[k][0] == codes[:, k].numpy()).all() for k in range(3))


def test_vote_weights():
    network, coder, _ = made()
    model, _ = export.export(network, coder, RAW, "hard", [64, 3, 0])
    assert [member.vote_weight for member in model.members] == [64, 3, 0]
    assert model.vote == "hard"


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_flipped_weight_bit_is_refused(layer):
    network, coder, _ = made()
    model, _ = export.export(network, coder, RAW)
    model.members[1].layers[layer]["weights"][:, 0, 0] ^= np.uint64(1)
    with pytest.raises(Mismatch, match=r"^export: frame \d+, member 1, class \d: the model scores"):
        export.check(model, network, RAW)


def test_a_threshold_off_by_one_is_refused():
    network, coder, _ = made()
    model, _ = export.export(network, coder, RAW)
    model.members[0].layers[0]["thresholds"][:] += 2
    with pytest.raises(Mismatch, match=r"member 0, class \d: .*; nothing was written"):
        export.check(model, network, RAW)


def test_wrong_thresholds_are_refused(monkeypatch):
    network, _, _ = made()
    absorb = batchnorm.absorb
    monkeypatch.setattr(batchnorm, "absorb", lambda limit, levels, mean, *rest:
                        absorb(limit, levels, mean + 3, *rest))
    with pytest.raises(BennError, match=r"^member 0, layer 0: output \d at sum .* becomes code"):
        export.members(network)


def test_exported_model_is_valid_and_saves(tmp_path):
    network, coder, _ = made()
    model, _ = export.export(network, coder, RAW)
    dataclasses.replace(model, provenance={"seed": 1}).save(tmp_path / "m.benn")
    assert (tmp_path / "m.benn").stat().st_size


IMAGES = np.random.default_rng(5).integers(0, 256, (12, 12, 12, 3), np.uint8)
BITS = {"wqb": {"bits": 2}, "aqb": {"bits": 2}, "qnn": {"wbits": 2, "abits": 3}}
ENCODERS = {"ab": "thermometer:2", "wqb": "threshold", "aqb": "planes:2", "qnn": "planes:3"}


def convolutional(name, kind, recipe, members=2):
    """A convolutional network with drawn parameters, estimated on IMAGES, and its encoder."""
    coder = presets.encoder(ENCODERS.get(kind, "planes"), IMAGES.shape[1:], 8, 255)
    layers = nets.build(name, coder, 4, nets.kind(kind, **BITS.get(kind, {})), width=0.1,
                        recipe=recipe)
    rng, torch_rng = np.random.default_rng(6), torch.Generator().manual_seed(7)
    network = Network(layers, members, recipe).draw([rng] * members)
    with torch.no_grad():
        for label, parameter in network.named_parameters():
            if not label.endswith("weight"):
                parameter.add_(torch.randn(parameter.shape, generator=torch_rng) / 2)
    network.clamp()
    network.estimate(values(coder, IMAGES))
    return network, coder


@pytest.mark.parametrize("kind", ["ab", "ib", "sb", "wqb", "aqb", "qnn"])
@pytest.mark.parametrize(("name", "recipe"), [("nin", "hw"), ("nin", "paper"), ("lenet", "paper"),
                                              ("resnet18", "hw")])
def test_every_output_of_a_convolutional_network_is_equal(name, recipe, kind):
    network, coder = convolutional(name, kind, recipe)
    model, result = export.export(network, coder, IMAGES)
    assert len(np.unique(result.scores)) > 10
    assert (golden.run(model, IMAGES).scores == network.scores(values(coder, IMAGES))).all()


@pytest.mark.parametrize(("kind", "layer"), [("nin", 5), ("resnet18", 1), ("resnet18", 2)])
def test_a_changed_number_of_a_convolutional_network_is_refused(kind, layer):
    network, coder = convolutional(kind, "ab", "paper" if kind == "nin" else "hw")
    model, _ = export.export(network, coder, IMAGES)
    for array in model.members[1].layers[layer].values():
        array += 3
    with pytest.raises(Mismatch, match=r"^export: frame \d+, member 1, class \d: the model scores"):
        export.check(model, network, IMAGES)
