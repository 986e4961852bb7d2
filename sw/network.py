"""K networks of one shape in one graph: every layer holds the parameters of all members.

Weights and activations are the odd integers of bits.py in float32, which holds their sums exactly
below 2**24. While training, sums are normalised by the statistics of the batch; afterwards by those
of the training set, in float64 and with the very expression that batchnorm.py folds.

The kinds dnn and binaryconnect have floats instead: weights that are not quantised, a ReLU in place
of the quantiser. They are trained and measured, but have no integers to export.

A vector of all members is (frames, K, features), an image (frames, K * channels, rows, columns).
What the encoder gives is the same for all of them, and has K = 1.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from benn_fpga import golden
from benn_fpga.layers import MAX_GAIN, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.nets import UNIT, Kind, deviation
from benn_fpga.spec import sources
from benn_fpga.sw import quantize

__all__ = ["Network", "Norm", "Products", "Residual", "Sum", "values"]

EXACT = 1 << 24  # float32 holds every whole number up to here
EPSILON = 1e-5
MIN_GAIN = 0.01
INIT = 0.1  # latent weights start in ±INIT: near enough to zero for the first steps to flip them
_CHUNK = 1 << 22  # values computed in one step outside training
_ESTIMATE = 1 << 27  # values of a layer of a member that are kept when batch norm is estimated


def values(encoder, x):
    """Raw values (frames, ...) as odd integers: (frames, features) or channels-first images."""
    x, bits = golden.check_input(encoder, x), encoder.element_bits
    encoded = torch.empty(len(x), encoder.outputs, dtype=torch.int8 if bits < 7 else torch.int16)
    step = max(1, _CHUNK // encoder.outputs)
    for at in range(0, len(x), step):
        codes = torch.from_numpy(golden.encode(encoder, x[at:at + step])).to(encoded.dtype)
        encoded[at:at + step] = 2 * codes - ((1 << bits) - 1)
    if len(encoder.output_shape) == 1:
        return encoded
    return encoded.unflatten(1, encoder.output_shape).permute(0, 3, 1, 2)


def _per_channel(parameter, x):
    """(K, channels) in the shape in which it meets ``x``."""
    return parameter if x.ndim == 3 else parameter.reshape(1, -1, 1, 1)


def _of(parameter, k):
    """(K, channels) of all members, or (1, channels) of member ``k``."""
    return parameter if k is None else parameter[k:k + 1]


def _wide(x):
    """Whole numbers as floats that hold them."""
    return x.double() if x.dtype == torch.int32 else x.float()


class Norm(nn.Module):
    """Batch norm of all members, channel by channel, and the quantiser or ReLU behind it.

    Members
    -------
    gain, beta : (K, channels), gain kept positive
    mean, var : (K, channels) float64, set by :meth:`Network.estimate`
    """

    def __init__(self, members, channels, output_bits, relu):
        super().__init__()
        size = (members, channels)
        self.levels = (1 << output_bits) - 1
        self.relu = relu
        self.gain = nn.Parameter(torch.full(size, 1.0 if relu else deviation(output_bits)))
        self.beta = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))

    def scale(self):
        """(K, channels) float64: what one step of the sum adds after batch norm."""
        return self.gain.double() / torch.sqrt(self.var + EPSILON)

    def normed(self, x, k=None):
        """Batch norm outside training, in float64; of all members, or of member ``k`` alone."""
        mean, scale, beta = (_per_channel(_of(p, k), x) for p in (self.mean, self.scale(),
                                                                  self.beta.double()))
        return (x.double() - mean) * scale + beta

    def codes(self, x, k=None):
        """Codes outside training, in float64."""
        return quantize.codes(self.normed(x, k), self.levels)

    def forward(self, x):
        if not self.training:
            return self.normed(x).relu().float() if self.relu else \
                (2 * self.codes(x) - self.levels).float()
        flat = x.flatten(1) if x.ndim == 3 else x
        y = functional.batch_norm(flat, None, None, self.gain.flatten(), self.beta.flatten(),
                                  training=True, eps=EPSILON)
        return (y.relu() if self.relu else quantize.activation(y, self.levels)).view(x.shape)

    @torch.no_grad()
    def set(self, chunks):
        """Mean and variance of all that the chunks hold.

        Sums of whole numbers are whole numbers in float64 too: no order of adding them matters.
        """
        count = total = square = 0
        for x in chunks:
            x = x.double() if x.ndim == 3 else \
                x.double().unflatten(1, self.mean.shape).movedim((3, 4), (1, 2)).flatten(0, 2)
            count += len(x)
            total = total + x.sum(0)
            square = square + (x * x).sum(0)
        self.mean = total / count
        self.var = (square / count - self.mean ** 2).clamp(min=0)


class Products(nn.Module):
    """Dense and Conv of all members.

    Members
    -------
    weight : (K, outputs, inputs) latent, kept in -1..1; of the kind dnn the weights themselves
    bias : (K, outputs), in the recipe ``paper`` and not for scores
    norm : :class:`Norm`, unless it gives integers
    """

    def __init__(self, spec, members, kind, scaled, outside):
        super().__init__()
        self.spec = spec
        self.members = members
        self.real = kind.float_weights
        self.weight = nn.Parameter(torch.zeros(members, spec.outputs, spec.inputs))
        self.scaled = scaled
        # The paper's weights have no mean over the channels at any place, but for a first layer of
        # more bits; and a mean of one channel is the weight itself.
        self.centred = scaled and spec.weight_bits == kind.weight_bits and self._channels() > 1
        self._outside = outside  # what the taps outside an image read
        if self.scaled:
            self.bias = nn.Parameter(torch.zeros(members, spec.outputs))
        if spec.output_bits:
            self.norm = Norm(members, spec.outputs, spec.output_bits, kind.float_activations)

    def draw(self, rngs):
        """Draw the weights of each member from its own NumPy generator."""
        reach = math.sqrt(6 / self.spec.inputs) if self.real else INIT
        for weight, rng in zip(self.weight, rngs, strict=True):
            weight.copy_(torch.from_numpy(rng.uniform(-reach, reach, weight.shape)))

    def integers(self):
        """The weights that run: odd integers (K, outputs, inputs)."""
        return quantize.weight(self.weight, (1 << self.spec.weight_bits) - 1)

    def alpha(self):
        """(K, outputs): XNOR-Net's scale, the mean size of the latent weights."""
        return self.weight.abs().mean(2)

    def sums(self, x):
        w = self.weight if self.real else self.integers()
        if not self.training and self.spec.max_sum > EXACT:
            x, w = x.double(), w.double()
        return self._dense(x, w) if isinstance(self.spec, Dense) else self._conv(x, w)

    def _dense(self, x, w):
        if x.ndim == 4:  # an image, as the vector that bits.py says it is
            x = x.unflatten(1, (-1, self.spec.inputs // (x.shape[2] * x.shape[3])))
            x = x.permute(0, 1, 3, 4, 2).flatten(2)
            x = x if x.shape[1] == self.members else x[:, 0]
        if x.ndim == 2:
            return (x @ w.flatten(0, 1).T).unflatten(1, w.shape[:2])
        return torch.bmm(x.transpose(0, 1), w.transpose(1, 2)).transpose(0, 1)

    def _conv(self, x, w):
        spec = self.spec
        groups = spec.groups
        if spec.padding:
            x = functional.pad(x, (spec.padding,) * 4, value=self._outside)
        if x.shape[1] != spec.channels:
            groups *= self.members
        elif groups > 1 and self.members > 1:
            x, groups = x.repeat(1, self.members, 1, 1), groups * self.members
        w = w.view(-1, *spec.kernel, spec.channels // spec.groups).permute(0, 3, 1, 2)
        stride = spec.stride
        if spec.taps == 1 and stride > 1:  # oneDNN writes past the end for images in channels_last
            x, stride = x[..., ::stride, ::stride], 1
        return functional.conv2d(x, w, stride=stride, groups=groups)

    def activated(self, sums, k=None):
        """What stands before batch norm: the sums, or in the recipe ``paper`` a ReLU of them."""
        if not self.scaled:
            return sums
        alpha, bias = (_per_channel(_of(p if self.training else p.double(), k), sums)
                       for p in (self.alpha(), self.bias))
        return functional.relu(sums * alpha + bias)

    def forward(self, x):
        sums = self.sums(x)
        return self.norm(self.activated(sums)) if self.spec.output_bits else sums

    def statistics(self, x):
        """What batch norm is estimated from."""
        return self.activated(self.sums(x))

    def clamp(self):
        if self.real:
            return
        if self.centred:
            shape = (*self.weight.shape[:2], -1, self._channels())
            self.weight.sub_(self.weight.view(shape).mean(3, keepdim=True)
                             .expand(shape).reshape(self.weight.shape))
        self.weight.clamp_(-1, 1)

    def _channels(self):
        return self.spec.inputs if isinstance(self.spec, Dense) else \
            self.spec.channels // self.spec.groups


def _padded(spec, x, outside):
    """``x`` and the padding left to the pool itself, which pads by half its kernel at most."""
    if 2 * spec.padding <= min(spec.kernel):
        return x, spec.padding
    return functional.pad(x, (spec.padding,) * 4, value=outside), 0


class Max(nn.Module):
    """MaxPool of all members."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec

    def forward(self, x):
        x, pad = _padded(self.spec, x, -math.inf)
        return functional.max_pool2d(x, self.spec.kernel, self.spec.stride, pad)


class Sum(nn.Module):
    """SumPool of all members; ``before`` is the :class:`Products` whose sums it adds, if any."""

    def __init__(self, spec, members, before, relu):
        super().__init__()
        self.spec = spec
        self._before = [before]  # in a list, so that it is not a part of this one
        if spec.output_bits:
            self.norm = Norm(members, spec.channels, spec.output_bits, relu)

    def pooled(self, x):
        x, pad = _padded(self.spec, x, 0)
        return functional.avg_pool2d(x, self.spec.kernel, self.spec.stride, pad,
                                     divisor_override=1)

    def scale_and_bias(self):
        """(K, channels) float64 of the ReLU before the pool."""
        before = self._before[0]
        return before.alpha().double(), before.bias.double()

    def average(self, total, count, k=None):
        """(alpha * total + bias * count) / taps: what batch norm reads, outside training."""
        alpha, bias = (_per_channel(_of(p, k), total) for p in self.scale_and_bias())
        return (alpha * total + bias * count) / self.spec.taps

    def active(self, x, k=None):
        """1 where the ReLU before the pool is above zero, outside training."""
        alpha, bias = (_per_channel(_of(p, k), x) for p in self.scale_and_bias())
        return (alpha * x.double() + bias > 0).double()

    def statistics(self, x):
        if not self.spec.relu:
            return self.pooled(x if self.training else x.double())
        if self.training:
            return self.pooled(self._before[0].activated(x)) / self.spec.taps
        active = self.active(x)
        return self.average(self.pooled(x.double() * active), self.pooled(active))

    def forward(self, x):
        y = self.statistics(x)
        return self.norm(y) if self.spec.output_bits else y


class Residual(nn.Module):
    """Scale of all members: batch norm as a multiplication and a shift of whole numbers."""

    def __init__(self, spec, members, real):
        super().__init__()
        self.spec = spec
        self.real = real
        size = (members, spec.shape[2])
        self.gain = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))

    set = Norm.set

    scale = Norm.scale
    normed = Norm.normed

    def integers(self):
        """Gain and bias (K, channels) that run, float64."""
        return self._integers(self.scale(), self.mean)

    def _integers(self, scale, mean):
        size = 1 << self.spec.shift
        gain = torch.round(scale * UNIT * size).clamp(-MAX_GAIN, MAX_GAIN)
        return gain, torch.round(self.beta.double() * UNIT - mean * gain / size)

    def _scaled(self, x, gain, bias):
        """What the integers make of ``x``, in float64."""
        size = 1 << self.spec.shift
        gain, bias = (_per_channel(constant, x) for constant in (gain, bias))
        return (torch.floor((x.double() * gain + size // 2) / size) + bias).clamp(
            -self.spec.top, self.spec.top)

    def statistics(self, x):
        return x

    def forward(self, x):
        if not self.training:
            return self.normed(x).float() if self.real else self._scaled(x, *self.integers())
        unit = 1 if self.real else UNIT
        y = functional.batch_norm(x, None, None, self.gain.flatten() * unit,
                                  self.beta.flatten() * unit, training=True, eps=EPSILON)
        if self.real:
            return y
        y = functional.hardtanh(y, -self.spec.top, self.spec.top)
        with torch.no_grad():  # forward as it will run, by the statistics of the batch
            var, mean = (part.double().view(self.mean.shape) for part in
                         torch.var_mean(x, (0, 2, 3), correction=0))
            scale = self.gain.double() / torch.sqrt(var + EPSILON)
            value = self._scaled(x, *self._integers(scale, mean)).float()
        return quantize.instead(y, value)


class Shift(nn.Module):
    """Scale of scores by a power of two."""

    def __init__(self, spec, float_):
        super().__init__()
        self.spec = spec
        self._float = float_

    def forward(self, x):
        y = x / (1 << self.spec.shift)
        return y if self._float or self.training else torch.floor(y.double() + 0.5)


class Plus(nn.Module):
    """Add of all members."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec

    def forward(self, x, other):
        return x + other


class Network(nn.Module):
    """All members; the scores of a frame are whole numbers, scaled only in the loss.

    Parameters
    ----------
    layers : as from :func:`benn_fpga.nets.build`
    members : K
    recipe : one of :data:`benn_fpga.presets.RECIPES`
    kind : a :class:`benn_fpga.nets.Kind`; it says here only what is float
    """

    def __init__(self, layers, members, recipe="hw", kind=Kind("ab")):  # noqa: B008
        super().__init__()
        self.members = members
        self.recipe = recipe
        self.kind = kind
        self.specs = tuple(layers)
        self.layers = nn.ModuleList()
        head = max(n for n, spec in enumerate(layers) if isinstance(spec, (Dense, Conv)))
        for n, spec in enumerate(layers):
            self.layers.append(self._module(n, spec, scores=n == head))
        self._inputs = [sources(spec, n) for n, spec in enumerate(layers)]
        self.score_scale = self._score_scale(layers[head], self._inputs[head])
        if isinstance(layers[-1], Scale):
            self.score_scale *= 1 << layers[-1].shift

    def _module(self, n, spec, scores):
        relu = self.kind.float_activations
        if isinstance(spec, (Dense, Conv)):
            coded = sources(spec, n) == (None,) or not relu
            return Products(spec, self.members, self.kind, self.recipe == "paper" and not scores,
                            float(1 - (1 << spec.input_bits)) if coded else 0.0)
        if isinstance(spec, MaxPool):
            return Max(spec)
        if isinstance(spec, SumPool):
            return Sum(spec, self.members, self.layers[sources(spec, n)[0]], relu)
        if isinstance(spec, Scale):
            last = n == len(self.specs) - 1
            return Shift(spec, relu) if last else Residual(spec, self.members, relu)
        return Plus(spec)

    def _score_scale(self, last, inputs):
        """What brings scores to the size of logits: that of a sum of terms drawn at random.

        Of scores that are added up over an image half of it, as their terms are not independent;
        1/4, 1/2, 1, 2 and 4 were tried on validation frames of digits, at 8x8 and at 32x32 pixels.
        """
        coded = inputs == (None,) or not self.kind.float_activations
        size = deviation(last.input_bits) if coded else 1
        if self.kind.float_weights:
            return 1 / (size * last.positions)
        size *= deviation(last.weight_bits) * math.sqrt(last.inputs * last.positions)
        return 1 / size if last.positions == 1 else 1 / (2 * size)

    @classmethod
    def join(cls, networks):
        """One network with the members of all."""
        first = networks[0]
        joined = cls(first.specs, sum(network.members for network in networks), first.recipe,
                     first.kind)
        states = [network.state_dict() for network in networks]
        joined.load_state_dict({name: torch.cat([state[name] for state in states])
                                for name in states[0]})
        return joined

    @torch.no_grad()
    def draw(self, rngs):
        """Draw the weights of each member from its own NumPy generator; returns itself."""
        for layer in self.layers:
            if isinstance(layer, Products):
                layer.draw(rngs)
        return self

    def forward(self, x):
        """Scores (frames, K, classes) of inputs as from :func:`values`, in float.

        Inputs with an axis of K behind the frames are each member's own.
        """
        outputs = {None: x.flatten(1, 2).float() if x.ndim == 5 else x.float()}
        for n, layer in enumerate(self.layers):
            outputs[n] = layer(*(outputs[source] for source in self._inputs[n]))
            for source in self._unused(n):
                del outputs[source]
        return outputs[n].flatten(1).view(len(x), self.members, -1)

    def _unused(self, n):
        """What layer ``n`` is the last to read."""
        return {source for source in self._inputs[n]
                if not any(source in later for later in self._inputs[n + 1:])}

    @torch.no_grad()
    def clamp(self):
        """Keep latent weights in -1..1, and gains before a quantiser positive."""
        for layer in self.layers:
            if isinstance(layer, Products):
                layer.clamp()
            if hasattr(layer, "norm") and not layer.norm.relu:
                layer.norm.gain.clamp_(min=MIN_GAIN)

    @torch.no_grad()
    def estimate(self, x):
        """Set mean and variance of every batch norm to those over the inputs ``x``.

        Layer by layer, each reading what the finished ones before it give; of the inputs only as
        many as these outputs can be kept of, at even distances.
        """
        self.eval()
        largest = max(math.prod(spec.output_shape) for spec in self.specs)
        count = min(len(x), max(1, _ESTIMATE // largest))
        if count < len(x):
            x = x[torch.arange(count) * len(x) // count]
        outputs = {None: x.split(max(1, _CHUNK // (largest * self.members)))}
        for n, layer in enumerate(self.layers):
            inputs = list(zip(*(outputs[source] for source in self._inputs[n]), strict=True))
            norm = layer if isinstance(layer, Residual) else getattr(layer, "norm", None)
            if norm is not None:
                norm.set(layer.statistics(*map(_wide, part)) for part in inputs)
            if n < len(self.layers) - 1:
                outputs[n] = [self._small(n, layer(*map(_wide, part))) for part in inputs]
            for source in self._unused(n):
                del outputs[source]

    def _small(self, n, x):
        """The output of layer ``n`` in the smallest type that holds it."""
        bits = self.specs[n].output_bits
        if self.kind.float_activations:
            return x
        return x.to(torch.int8 if 0 < bits < 7 else torch.int16 if bits else torch.int32)

    @torch.no_grad()
    def scores(self, x):
        """Scores (frames, K, classes) of the trained network: int64, or float32 of floats."""
        self.eval()
        width = max(math.prod(spec.output_shape) for spec in self.specs) * self.members
        scores = torch.cat([self(part) for part in x.split(max(1, _CHUNK // width))])
        return (scores if self.kind.float_activations else scores.long()).numpy()
