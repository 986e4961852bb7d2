from dataclasses import replace

import pytest

from benn_fpga import nets, presets
from benn_fpga.errors import BennError
from benn_fpga.layers import Add, Conv, Dense, MaxPool, SumPool

CIFAR = presets.encoder("threshold", (32, 32, 3), 8, 255)
PIXELS = presets.encoder("planes", (32, 32, 3), 8, 255)


def weights(layers):
    return sum(layer.inputs * layer.outputs for layer in layers if isinstance(layer, (Conv, Dense)))


@pytest.mark.parametrize(("width", "count"), [(1.0, 901_056), (0.5, 229_344), (0.1, 10_032)])
def test_nin_has_the_weights_of_the_paper(width, count):
    assert weights(nets.build("nin", CIFAR, 10, width=width)) == count


def test_nin_is_the_table_of_the_paper():
    layers = nets.build("nin", CIFAR, 10)
    shapes = [layer.output_shape for layer in layers]
    assert shapes == [(32, 32, 192), (32, 32, 96), (16, 16, 96), (16, 16, 192), (16, 16, 192),
                      (8, 8, 192), (8, 8, 192), (8, 8, 192), (8, 8, 10), (1, 1, 10)]
    products = [layer.positions * layer.inputs * layer.outputs for layer in layers
                if isinstance(layer, Conv)]
    assert round(sum(products) / 1e6, 1) == 184.7


def test_cnv_is_that_of_finn():
    layers = nets.build("cnv", PIXELS, 10, nets.kind("ib"))
    shapes = [layer.output_shape for layer in layers if isinstance(layer, (Conv, Dense))]
    assert shapes == [(30, 30, 64), (28, 28, 64), (12, 12, 128), (10, 10, 128), (3, 3, 256),
                      (1, 1, 256), (512,), (512,), (10,)]
    assert layers[0].input_bits == 8


@pytest.mark.parametrize(("name", "shape"), [
    ("tfc", (28, 28, 1)), ("sfc", (7,)), ("lfc", (28, 28, 1)), ("mlp:", (5,)),
    ("mlp:3,4", (8, 8, 1)), ("nin", (8, 8, 1)), ("nin", (32, 32, 3)), ("cnv", (32, 32, 3)),
    ("lenet", (8, 8, 1)), ("lenet", (28, 28, 1)), ("alexnet", (32, 32, 3)),
    ("alexnet", (224, 224, 3)), ("resnet18", (32, 32, 3)), ("resnet18", (224, 224, 3))])
@pytest.mark.parametrize("recipe", presets.RECIPES)
def test_every_network_ends_in_a_score_per_class(name, shape, recipe):
    if (name, recipe) == ("resnet18", "paper"):
        return
    encoder = presets.encoder("threshold", shape, 8, 255)
    layers = nets.build(name, encoder, 7, width=0.25, recipe=recipe)
    assert (layers[-1].output_shape[-1], layers[-1].output_bits) == (7, 0)
    assert [layer.relu for layer in layers if isinstance(layer, SumPool) and layer.taps == 9
            and layer.output_bits] == ([recipe == "paper"] if name == "nin" else [])


def test_resnet18_has_its_layers():
    layers = nets.build("resnet18", presets.encoder("threshold", (224, 224, 3), 8, 255), 1000)
    convs = [layer for layer in layers if isinstance(layer, Conv)]
    assert len(convs) == 1 + 16 + 3
    assert sum(isinstance(layer, Add) for layer in layers) == 16
    assert weights(layers) == 11_678_912  # as torchvision's without batch norm and bias


BITS = {  # weights first, middle, last; input first, middle, last
    ("ab",): (1, 1, 1, 1, 1, 1),
    ("ib",): (1, 1, 1, 8, 1, 1),
    ("sb",): (8, 1, 8, 8, 1, 8),
    ("wqb", 5): (5, 5, 5, 1, 1, 1),
    ("aqb", 2): (1, 1, 1, 2, 2, 2),
    ("qnn", 2, 3): (2, 2, 2, 3, 3, 3),
}


@pytest.mark.parametrize("net", ["mlp:8,8", "nin", "lenet", "resnet18"])
@pytest.mark.parametrize("name", BITS)
def test_bits_of_every_kind(net, name):
    kind = nets.kind(name[0], **dict(zip(presets.KINDS[name[0]], name[1:], strict=True)))
    encoder = presets.encoder(f"planes:{kind.input_bits}" if kind.input_bits else "threshold",
                              (16, 16, 1), 8, 255)
    layers = [layer for layer in nets.build(net, encoder, 4, kind, width=0.2)
              if isinstance(layer, (Conv, Dense))]
    got = [(layer.weight_bits, layer.input_bits) for layer in (layers[0], layers[1], layers[-1])]
    assert (*(w for w, _ in got), *(x for _, x in got)) == BITS[name]


@pytest.mark.parametrize(("message", "make"), [
    ("Network must be tfc, sfc, lfc, nin, cnv, lenet, alexnet, resnet18 or mlp:WIDTH,WIDTH,..., "
     "not 'vgg'", lambda: nets.build("vgg", CIFAR, 10)),
    ("Network must be tfc, sfc, lfc, nin, cnv, lenet, alexnet, resnet18 or mlp:WIDTH,WIDTH,..., "
     "not 'mlp:8,0'", lambda: nets.build("mlp:8,0", CIFAR, 10)),
    ("Recipe must be one of hw, paper, not 'x'", lambda: nets.build("tfc", CIFAR, 2, recipe="x")),
    ("Width must be a number above 0, at most 1024, not 0",
     lambda: nets.build("tfc", CIFAR, 2, width=0)),
    ("Recipe paper puts a ReLU before batch norm, which resnet18 has no place for; use recipe hw",
     lambda: nets.build("resnet18", CIFAR, 2, recipe="paper")),
    ("Network cnv, layer 3: Kernel of 3 rows is larger than the image of 2; "
     "use larger images, or another network",
     lambda: nets.build("cnv", presets.encoder("threshold", (8, 8, 1), 8, 255), 10)),
    ("Network nin reads images, but the data are rows of features; use mlp:WIDTH,WIDTH,...",
     lambda: nets.build("nin", presets.encoder("threshold", (30,), 8, 255), 10)),
    ("Kind must be one of ab, ib, sb, wqb, aqb, qnn, dnn, bnn, xnor-net, binaryconnect, dorefa, "
     "abc-net, not 'xb'", lambda: nets.kind("xb")),
    ("Recipe paper is for activations of few bits, and kind dnn has floats; use recipe hw",
     lambda: nets.build("tfc", CIFAR, 2, nets.kind("dnn"), recipe="paper")),
    ("Kind ab reads inputs of 1 bit, but encoder planes gives 8; use threshold or thermometer, or "
     "another kind", lambda: nets.kind("ab").check_encoder("planes", PIXELS)),
    ("Kind ib reads inputs of 8 bit, but encoder threshold gives 1; use planes, or another kind",
     lambda: nets.kind("ib").check_encoder("threshold", CIFAR)),
    ("Kind aqb reads inputs of 2 bit, but encoder threshold gives 1; use planes:2, or another kind",
     lambda: nets.kind("aqb", bits=2).check_encoder("threshold", CIFAR)),
    ("Kind dorefa takes no `wbits`: it takes `bits`",
     lambda: nets.kind("dorefa", bits=2, wbits=1)),
    ("Kind ab takes no `bits`: its bits are fixed", lambda: nets.kind("ab", bits=2)),
    ("Kind wqb needs `bits`, the number of bits, 1 to 8", lambda: nets.kind("wqb")),
    ("Kind qnn takes no `bits`: it takes `wbits` and `abits`",
     lambda: nets.kind("qnn", bits=2)),
    ("`bits` must be a whole number from 1 to 8, not 9", lambda: nets.kind("aqb", bits=9)),
])
def test_wrong_names(message, make):
    with pytest.raises(BennError) as caught:
        make()
    assert str(caught.value) == message


def test_pools_keep_the_bits_of_codes():
    layers = nets.build("lenet", CIFAR, 10, nets.kind("aqb", bits=2), width=0.2)
    assert {layer.code_bits for layer in layers if isinstance(layer, MaxPool)} == {2}


@pytest.mark.parametrize(("rival", "kind"), [
    (nets.kind("bnn"), nets.kind("ib")),
    (nets.kind("xnor-net"), nets.kind("sb")),
    (nets.kind("dorefa", bits=3), nets.kind("qnn", wbits=3, abits=3)),
    (nets.kind("abc-net", bits=5), nets.kind("qnn", wbits=5, abits=5))])
def test_networks_of_the_literature_are_kinds(rival, kind):
    assert replace(rival, name="") == replace(kind, name="")


def test_floats_read_anything():
    for encoder in (CIFAR, PIXELS):
        nets.kind("dnn").check_encoder("any", encoder)
    assert not nets.kind("binaryconnect").exports


@pytest.mark.parametrize(("kind", "encoder"), [
    (nets.kind("ab"), "its own"), (nets.kind("ib"), "planes"), (nets.kind("sb"), "planes"),
    (nets.kind("wqb", bits=5), "its own"), (nets.kind("aqb", bits=1), "its own"),
    (nets.kind("aqb", bits=2), "planes:2"), (nets.kind("qnn", wbits=1, abits=3), "planes:3"),
    (nets.kind("dnn"), "planes")])
def test_default_encoder(kind, encoder):
    assert kind.encoder("its own") == encoder


def test_large_sums_of_a_pooled_head_are_divided():
    layers = nets.build("nin", PIXELS, 10, nets.kind("sb"))
    scale, limit = layers[-1], layers[-3].max_sum * layers[-2].taps
    assert limit >> scale.shift <= scale.top < 1 << 21
    assert nets.build("nin", CIFAR, 10)[-1].kind == "sumpool"
