"""Random models, foldings and frames for every part's tests, seeded or drawn by Hypothesis."""

from itertools import product

import hypothesis
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benn_fpga.layers import Add, Conv, Dense, MaxPool, Scale, SumPool, divisors
from benn_fpga.plan.stages import Stage
from benn_fpga.spec import ENCODERS, VOTES, Encoder, Fold, Folding
from benn_fpga.synthetic import (
    random_arrays,
    random_encoder,
    random_ensemble,
    random_folding,
    random_frames,
    random_model,
    random_table,
)

__all__ = ["STRAIGHT", "conv_models", "convs", "designs", "divisors", "foldings", "models",
           "pooled", "pools", "random_arrays", "random_ensemble", "random_folding", "random_frames",
           "random_model", "random_table", "registers", "relayed", "residual", "straight", "ten",
           "unrolled", "wide_models", "windows"]


@st.composite
def models(draw, *, max_members=4, max_values=12, max_hidden=2, max_width=9, max_classes=5,
           max_bits=3):
    """Any small ensemble: topology, plane widths per layer, encoder, vote, its weights, biases."""
    hidden = draw(st.lists(st.integers(1, max_width), max_size=max_hidden))
    side = st.integers(1, 3)
    shape = draw(st.tuples(st.integers(1, max_values)) | st.tuples(side, side, st.just(1)))
    width = st.integers(1, max_bits)
    members = draw(st.integers(1, max_members))
    encoder = draw(st.sampled_from(ENCODERS))
    largest = 1 << (12 if encoder == "planes" and not hidden else 15)  # scores of 8 bits are large
    vote_weight = st.integers(-5, 5) | st.sampled_from([-largest, 0, largest])
    return random_model(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        members=members,
        shape=shape,
        hidden=tuple(hidden),
        classes=draw(st.integers(2, max_classes)),
        weight_bits=[draw(width) for _ in range(len(hidden) + 1)],
        activation_bits=[draw(width) for _ in hidden],
        encoder=encoder,
        levels=draw(st.integers(1, 4)),
        raw_bits=draw(st.integers(1, 8)),
        vote=draw(st.sampled_from(VOTES)),
        vote_weights=draw(st.lists(vote_weight, min_size=members, max_size=members)),
        per_value=draw(st.booleans()),
        extreme_bias=draw(st.booleans()),
    )


@st.composite
def foldings(draw, model, buses=(8, 16, 24, 32, 64, 128), *, cycles=None, lanes=None):
    """Any folding that fits ``model``; with ``cycles`` only those in which no layer is busy longer
    with a frame, if there are any, with ``lanes`` those of so many products per cycle."""
    def fits(layer, fold):
        stage = Stage(0, layer, fold)
        return ((cycles is None or stage.reads * stage.pixels_out <= cycles)
                and (lanes is None or fold.pe * fold.simd <= lanes))

    folds = []
    for layer in model.layers:
        every = [Fold(*fold) for fold in product(layer.pes, layer.simds)]
        narrow = [fold for fold in every if fold.simd not in layer.wide_simds]
        quick = [fold for fold in every if fits(layer, fold)] or narrow[-1:]
        folds.append(draw(st.sampled_from(quick)))
    return Folding(tuple(folds), draw(st.sampled_from(divisors(len(model.members)))),
                   draw(st.sampled_from(buses)))


def unrolled(model, bus=512):
    """The folding in which all weights are constants, if the layers allow it."""
    return Folding(tuple(Fold(max(layer.pes), max(layer.simds)) for layer in model.layers),
                   len(model.members), bus)


@st.composite
def windows(draw, shape, *, kernel=5):
    """Kernel, stride and padding of a window that fits an image of ``shape``."""
    padding = draw(st.sampled_from([0, 0, 0, 1, 1, 2]))
    size = tuple(draw(st.integers(padding + 1, max(padding + 1, min(kernel, n + 2 * padding))))
                 for n in shape[:2])
    return {"shape": shape, "kernel": size, "stride": draw(st.sampled_from([1, 1, 2, 3])),
            "padding": padding}


@st.composite
def pooled(draw, shape):
    """... of a pool, which now and then covers the whole image."""
    whole = {"shape": shape, "kernel": shape[:2]}
    return whole if draw(st.sampled_from([False] * 3 + [True])) else draw(windows(shape, kernel=3))


@st.composite
def convs(draw, shape, input_bits, output_bits, *, max_bits=2, max_width=6):
    """A convolution of an image of ``shape``; with groups now and then."""
    groups = draw(st.sampled_from(divisors(shape[2])))
    return Conv(**draw(windows(shape)),
                outputs=groups * draw(st.integers(1, max(1, max_width // groups))),
                weight_bits=draw(st.integers(1, max_bits)), input_bits=input_bits,
                output_bits=output_bits, groups=groups)


BLOCKS = ("plain", "max", "sum", "relu", "pool", "residual", "shortcut")


class _Chain:
    """Layers, one after another, and what the last of them gives."""

    def __init__(self, draw, encoder, max_bits, max_width):
        self.draw = draw
        self.layers = []
        self.shape, self.bits = encoder.output_shape, encoder.element_bits
        self.width = st.integers(1, max_bits)
        self._options = {"max_bits": max_bits, "max_width": max_width}

    def put(self, layer):
        """Append ``layer`` and return its index."""
        self.layers.append(layer)
        self.shape, self.bits = layer.output_shape, layer.output_bits
        return len(self.layers) - 1

    def conv(self, output_bits):
        return self.put(self.draw(convs(self.shape, self.bits, output_bits, **self._options)))

    def scale(self):
        return self.put(Scale(self.shape, self.draw(st.integers(0, 8)),
                              self.draw(st.integers(4, 12))))

    def threshold(self):
        return self.put(SumPool(self.shape, (1, 1), output_bits=self.draw(self.width)))

    def block(self, kind):
        draw = self.draw
        if kind == "plain":
            self.conv(draw(self.width))
        if kind == "max":
            self.conv(draw(self.width))
        if kind in ("max", "pool"):
            self.put(MaxPool(**draw(pooled(self.shape)), code_bits=self.bits))
        if kind in ("sum", "relu"):
            self.conv(0)
            self.put(SumPool(**draw(pooled(self.shape)), output_bits=draw(self.width),
                             relu=kind == "relu"))
        if kind in ("residual", "shortcut"):
            self.conv(0)
            self.residual(kind == "shortcut")

    def residual(self, shortcut):
        """A convolution, beside it nothing or a convolution of one tap that has its stride."""
        draw = self.draw
        start, codes = self.scale(), self.threshold()
        shape, bits_ = self.shape, self.bits
        stride = draw(st.integers(1, 3)) if shortcut else 1
        padding = draw(st.sampled_from([0, 1, 1, 2]))
        outputs = draw(st.integers(1, 4)) if shortcut else shape[2]
        self.put(Conv(shape, (2 * padding + 1,) * 2, stride, padding, outputs=outputs,
                      input_bits=bits_, output_bits=0))
        main = self.scale()
        if shortcut:
            self.put(Conv(shape, (1, 1), stride, outputs=outputs, input_bits=bits_,
                          output_bits=0, source=codes))
            start = self.scale()
        self.put(Add(self.shape, source=main, other=start))
        self.threshold()

    def head(self, classes):
        draw = self.draw
        kind = draw(st.sampled_from(["dense", "hidden", "global", "scaled"]))
        if kind == "hidden":
            self.put(Dense(int(np.prod(self.shape)), draw(st.integers(1, 6)), draw(self.width),
                           self.bits, draw(self.width)))
        if kind in ("dense", "hidden"):
            self.put(Dense(int(np.prod(self.shape)), classes, draw(self.width), self.bits, 0))
            return
        self.put(Conv(self.shape, (1, 1), outputs=classes, input_bits=self.bits, output_bits=0))
        self.put(SumPool(self.shape, self.shape[:2]))
        if kind == "scaled":
            self.scale()


def _drawn(draw, encoder, chain, members):
    chain.head(draw(st.integers(2, 5)))
    return random_ensemble(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), encoder,
                           chain.layers, members=members, vote=draw(st.sampled_from(VOTES)))


@st.composite
def conv_models(draw, *, max_blocks=3, max_side=7, max_bits=2, max_members=2):
    """Any small convolutional ensemble: blocks of every kind, in any order, then a head."""
    side = st.integers(1, max_side) | st.sampled_from(range(1, max_side + 1, 2))
    encoder = random_encoder(np.random.default_rng(draw(st.integers(0, 99))),
                             draw(st.sampled_from(ENCODERS)),
                             (draw(side), draw(side), draw(st.integers(1, 3))),
                             draw(st.integers(1, 6)), draw(st.integers(1, 2)), False)
    chain = _Chain(draw, encoder, max_bits, 6)
    for _ in range(draw(st.integers(1, max_blocks))):
        chain.block(draw(st.sampled_from(BLOCKS)))
    return _drawn(draw, encoder, chain, draw(st.integers(1, max_members)))


@st.composite
def wide_models(draw, *, max_width=70):
    """A block of many channels on a very small image, then a head."""
    side, width = st.integers(1, 3), st.integers(1, max_width) | st.integers(64, max_width)
    encoder = random_encoder(np.random.default_rng(draw(st.integers(0, 99))), "planes",
                             (draw(side), draw(side), draw(width)),
                             draw(st.integers(1, 2)), 1, False)
    chain = _Chain(draw, encoder, 2, max_width)
    chain.block(draw(st.sampled_from(BLOCKS)))
    return _drawn(draw, encoder, chain, 1)


def residual(members=1, vote="soft"):
    """A network with a residual, and a folding with which every slot in its queues is needed."""
    image = (3, 3, 4)
    encoder = Encoder("planes", (3, 3, 2), 2, np.zeros((1, 0), np.int32))
    layers = (Conv(encoder.shape, (3, 3), 1, 1, outputs=4, input_bits=2, output_bits=0),
              Scale(image, 4, 8),
              SumPool(image, (1, 1), output_bits=2),
              Conv(image, (3, 3), 1, 1, outputs=4, input_bits=2, output_bits=0),
              Scale(image, 4, 8),
              Add(image, other=1),
              SumPool(image, image[:2], output_bits=1),
              Dense(4, 3, output_bits=0))
    folds = ((4, 2), (1, 1), (1, 1), (4, 4), (1, 1), (1, 1), (1, 1), (3, 4))
    model = random_ensemble(np.random.default_rng(0), encoder, layers, members=members, vote=vote)
    return model, Folding(tuple(Fold(*fold) for fold in folds), 1, 64)


def registers(members=2):
    """A network whose convolutions read several taps in a word: all, a row, two of four."""
    encoder = Encoder("planes", (6, 5, 1), 3, np.zeros((1, 0), np.int32))
    layers = (Conv((6, 5, 1), (3, 3), 1, 1, outputs=4, input_bits=3),
              Conv((6, 5, 4), (3, 3), 2, 1, outputs=6, output_bits=2),
              Conv((3, 3, 6), (2, 4), 1, 1, outputs=4, input_bits=2),
              Dense(32, 3, output_bits=0))
    folds = ((2, 9), (3, 12), (2, 12), (3, 8))
    model = random_ensemble(np.random.default_rng(2), encoder, layers, members=members)
    return model, Folding(tuple(Fold(*fold) for fold in folds), 1, 16)


STRAIGHT = {  # first layers that read every pixel once, as it comes
    "pointwise": Conv((4, 6, 2), (1, 1), outputs=4, input_bits=2),
    "strided": Conv((4, 6, 2), (1, 1), 2, outputs=4, input_bits=2),
    "tiled": MaxPool((4, 6, 2), (2, 2), 2, code_bits=2),
}


def straight(first="tiled"):
    """A network that begins with one of STRAIGHT, faster than its second layer; two engines."""
    encoder = Encoder("planes", (4, 6, 2), 2, np.zeros((1, 0), np.int32))
    layer = STRAIGHT[first]
    second = Conv(layer.output_shape, (2, 2), 1, 1, outputs=4, input_bits=layer.output_bits)
    layers = (layer, second, Dense(int(np.prod(second.output_shape)), 3, output_bits=0))
    model = random_ensemble(np.random.default_rng(4), encoder, layers, members=2)
    pe, simd = (2, 1) if first == "tiled" else (4, 2)
    return model, Folding((Fold(pe, simd), Fold(4, second.channels), Fold(3, 4)), 2, 32)


def relayed():
    """A network whose weights are in block RAMs far away: of a convolution, of a layer behind a
    ring, of one whose inputs come in one word; with two rounds."""
    encoder = Encoder("planes", (3, 4, 8), 2, np.zeros((1, 0), np.int32))
    layers = (Conv((3, 4, 8), (3, 3), 1, 1, outputs=16, input_bits=2),
              Dense(192, 32),
              Dense(32, 32, output_bits=2),
              Dense(32, 3, input_bits=2, output_bits=0))
    folds = ((4, 8), (2, 16), (1, 32), (1, 2))
    model = random_ensemble(np.random.default_rng(6), encoder, layers, members=4)
    return model, Folding(tuple(Fold(*fold) for fold in folds), 2, 32, relays=2)


def pools():
    """A network with windows that overlap and do not, one tap here and there, a pool of the whole
    image; three engines, a bus that does not divide the frame, a hard vote."""
    encoder = Encoder("thermometer", (9, 7, 1), 3, np.array([[1, 4, 6]], np.int32))
    layers = (Conv((9, 7, 3), (3, 2), 1, 1, outputs=4),
              MaxPool((9, 8, 4), (2, 2), 2),
              Conv((4, 4, 4), (3, 3), 1, 1, outputs=6, output_bits=0, groups=2),
              SumPool((4, 4, 6), (2, 2), 1, 1, output_bits=2, relu=True),
              Conv((5, 5, 6), (1, 1), 2, outputs=4, input_bits=2, output_bits=0),
              SumPool((3, 3, 4), (3, 3), 3, output_bits=1, relu=True),
              Dense(4, 4, output_bits=0))
    folds = ((2, 3), (2, 1), (1, 2), (3, 1), (2, 3), (2, 1), (2, 4))
    model = random_ensemble(np.random.default_rng(1), encoder, layers, members=3, vote="hard")
    return model, Folding(tuple(Fold(*fold) for fold in folds), 3, 32)


@st.composite
def designs(draw, models, **options):
    """A model and a folding of it."""
    model = draw(models)
    return model, draw(foldings(model, **options))


def ten(seed, /, **strategies):
    """Run the decorated check on ten draws that have nothing in common.

    After the tenth Hypothesis turns to variations of what it has drawn, which cost as much to
    simulate; another seed finds more.
    """
    def run(check):
        limits = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
        hypothesis.seed(seed)(limits(given(**strategies)(check)))()
    return run
