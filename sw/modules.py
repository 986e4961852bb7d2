"""The layers of all members in torch: how each is made, trained, and exported.

A kind of layer is one class here, named in :data:`MODULES`: its part in training (draw, forward,
clamp, estimate), and the arrays that the model stores for it, absorbed and proved.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benn_fpga import batchnorm, bits
from benn_fpga.errors import Mismatch
from benn_fpga.layers import MAX_GAIN, Add, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.nets import UNIT, deviation
from benn_fpga.spec import sources
from benn_fpga.sw import quantize

__all__ = ["MODULES", "Convolution", "Layer", "Linear", "Max", "Norm", "Plus", "Products",
           "Residual", "Shift", "Sum"]

EXACT = 1 << 24  # float32 holds every whole number up to here
EPSILON = 1e-5
MIN_GAIN = 0.01
INIT = 0.1  # latent weights start in ±INIT: near enough to zero for the first steps to flip them


def _per_channel(parameter, x):
    """(K, channels) in the shape in which it meets ``x``."""
    return parameter if x.ndim == 3 else parameter.reshape(1, -1, 1, 1)


def _of(parameter, k):
    """(K, channels) of all members, or (1, channels) of member ``k``."""
    return parameter if k is None else parameter[k:k + 1]


class Norm(nn.Module):
    """Batch norm of all members, channel by channel, and the quantiser or ReLU behind it.

    Members
    -------
    gain, beta : (K, channels), gain kept positive
    mean, var : (K, channels) float64, set by :meth:`Layer.estimate`
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

    def clamp(self):
        """Keep gains before a quantiser positive."""
        if not self.relu:
            self.gain.clamp_(min=MIN_GAIN)

    def constants(self, k):
        """Mean, scale and beta (channels,) of member ``k``, as batchnorm.py absorbs them."""
        return tuple(c[k].double().numpy() for c in (self.mean, self.scale(), self.beta))

    def trained(self, k, before):
        """Member ``k``'s trained activation from sums (values, 1) to codes (values, channels).

        ``before`` is what the layer makes of sums before batch norm.
        """
        def activation(sums):
            sums = torch.from_numpy(sums)[:, None].expand(-1, 1, self.mean.shape[1])
            return self.codes(before(sums), k)[:, 0].long().numpy()
        return activation


class Layer(nn.Module):
    """One layer of all members; a kind without parameters defines ``forward`` alone.

    Members
    -------
    spec : the layer of the contract
    norm : :class:`Norm`, or None
    divisor : what it divides scores by
    """

    divisor = 1

    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        self.norm = None

    @classmethod
    def made(cls, spec, n, network):
        """The module of layer ``n`` of a network whose layers before it are made."""
        return cls(spec)

    def draw(self, rngs):
        """Draw the parameters that are random, of each member from its own NumPy generator."""

    def clamp(self):
        """Bring parameters back into their range after a step."""
        if self.norm is not None:
            self.norm.clamp()

    def estimate(self, parts):
        """Set mean and variance of batch norm to those over the inputs, which come in parts.

        A layer with a ``norm`` has ``statistics(*inputs)``: what this batch norm reads.
        """
        if self.norm is not None:
            self.norm.set(self.statistics(*inputs) for inputs in parts)

    def arrays(self, k, inputs, where):
        """What the model stores for member ``k``; every threshold is proved for every sum.

        ``inputs`` are the limits of the layers it reads, ``where`` names it in errors.
        """
        return {}


class Products(Layer):
    """What Dense and Conv of all members share; their classes say how ``_sums`` are computed.

    Members
    -------
    weight : (K, outputs, inputs) latent, kept in -1..1; of the kind dnn the weights themselves
    bias : (K, outputs), in the recipe ``paper`` and not for scores
    norm : :class:`Norm`, unless it gives integers
    """

    def __init__(self, spec, members, kind, scaled, coded):
        super().__init__(spec)
        self.members = members
        self.real = kind.float_weights
        self.weight = nn.Parameter(torch.zeros(members, spec.outputs, spec.inputs))
        self.scaled = scaled
        self._coded = coded  # it reads codes, not floats
        # The paper's weights have no mean over the channels at any place, but for a first layer of
        # more bits; and a mean of one channel is the weight itself.
        self.centred = scaled and spec.weight_bits == kind.weight_bits and self._channels > 1
        if self.scaled:
            self.bias = nn.Parameter(torch.zeros(members, spec.outputs))
        if spec.output_bits:
            self.norm = Norm(members, spec.outputs, spec.output_bits, kind.float_activations)

    @classmethod
    def made(cls, spec, n, network):
        kind = network.kind
        return cls(spec, network.members, kind,
                   scaled=network.recipe == "paper" and n != network.head,
                   coded=sources(spec, n) == (None,) or not kind.float_activations)

    def draw(self, rngs):
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
        return self._sums(x, w)

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
        return self.activated(self.sums(x))

    def clamp(self):
        super().clamp()
        if self.real:
            return
        if self.centred:
            shape = (*self.weight.shape[:2], -1, self._channels)
            self.weight.sub_(self.weight.view(shape).mean(3, keepdim=True)
                             .expand(shape).reshape(self.weight.shape))
        self.weight.clamp_(-1, 1)

    def score_scale(self):
        """What brings its sums, as scores, to the size of logits: that of a sum of random terms.

        Of scores that are added up over an image half of it, as their terms are not independent;
        1/4, 1/2, 1, 2 and 4 were tried on validation frames of digits, at 8x8 and at 32x32 pixels.
        """
        spec = self.spec
        size = deviation(spec.input_bits) if self._coded else 1
        if self.real:
            return 1 / (size * spec.positions)
        size *= deviation(spec.weight_bits) * math.sqrt(spec.inputs * spec.positions)
        return 1 / size if spec.positions == 1 else 1 / (2 * size)

    def arrays(self, k, inputs, where):
        spec = self.spec
        top = (1 << spec.weight_bits) - 1
        codes = (self.integers()[k].long().numpy() + top) // 2
        if not spec.output_bits:
            return {"weights": bits.planes(codes, spec.weight_bits),
                    "bias": np.zeros(spec.outputs, np.int32)}
        relu = (self.alpha()[k].double().numpy(), self.bias[k].double().numpy()) \
            if self.scaled else ()
        thresholds, flip = batchnorm.absorb(spec.max_sum, spec.levels, *self.norm.constants(k),
                                            *relu)
        batchnorm.prove(spec.max_sum, thresholds, self.norm.trained(
            k, lambda sums: self.activated(sums, k)), flip=flip, where=where)
        codes = np.where(flip[:, None], top - codes, codes)
        return {"weights": bits.planes(codes, spec.weight_bits), "thresholds": thresholds}


class Linear(Products):
    """Dense of all members."""

    @property
    def _channels(self):
        return self.spec.inputs

    def _sums(self, x, w):
        if x.ndim == 4:  # an image, as the vector that bits.py says it is
            x = x.unflatten(1, (-1, self.spec.inputs // (x.shape[2] * x.shape[3])))
            x = x.permute(0, 1, 3, 4, 2).flatten(2)
            x = x if x.shape[1] == self.members else x[:, 0]
        if x.ndim == 2:
            return (x @ w.flatten(0, 1).T).unflatten(1, w.shape[:2])
        return torch.bmm(x.transpose(0, 1), w.transpose(1, 2)).transpose(0, 1)


class Convolution(Products):
    """Conv of all members."""

    @property
    def _channels(self):
        return self.spec.channels // self.spec.groups

    @property
    def _outside(self):
        """What the taps outside an image read: the least that occurs inside."""
        return float(1 - (1 << self.spec.input_bits)) if self._coded else 0.0

    def _sums(self, x, w):
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


def _padded(spec, x, outside):
    """``x`` and the padding left to the pool itself, which pads by half its kernel at most."""
    if 2 * spec.padding <= min(spec.kernel):
        return x, spec.padding
    return functional.pad(x, (spec.padding,) * 4, value=outside), 0


class Max(Layer):
    """MaxPool of all members."""

    def forward(self, x):
        x, pad = _padded(self.spec, x, -math.inf)
        return functional.max_pool2d(x, self.spec.kernel, self.spec.stride, pad)


class Sum(Layer):
    """SumPool of all members; ``before`` is the :class:`Products` whose sums it adds, if any."""

    def __init__(self, spec, members, before, relu):
        super().__init__(spec)
        self._before = [before]  # in a list, so that it is not a part of this one
        if spec.output_bits:
            self.norm = Norm(members, spec.channels, spec.output_bits, relu)

    @classmethod
    def made(cls, spec, n, network):
        return cls(spec, network.members, network.layers[sources(spec, n)[0]],
                   network.kind.float_activations)

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

    def arrays(self, k, inputs, where):
        if not self.spec.output_bits:
            return {}
        return (self._relu_arrays if self.spec.relu else self._plain_arrays)(k, inputs[0], where)

    def _plain_arrays(self, k, limit, where):
        spec, reach = self.spec, self.spec.taps * limit
        thresholds, flip = batchnorm.absorb(reach, spec.levels, *self.norm.constants(k))
        if flip.any():
            raise Mismatch(f"{where}: a gain is negative behind a pool; please report this")
        batchnorm.prove(reach, thresholds, self.norm.trained(k, lambda sums: sums), step=1,
                        where=where)
        return {"thresholds": thresholds[:, None]}

    def _relu_arrays(self, k, limit, where):
        spec, (alpha, bias) = self.spec, self.scale_and_bias()
        thresholds, active = batchnorm.absorb_pool(
            limit, spec.levels, spec.taps, *self.norm.constants(k), alpha[k].numpy(),
            bias[k].numpy())
        sums = torch.arange(-limit, limit + 1)[:, None]
        trained = self.active(sums[:, None].expand(-1, 1, spec.channels), k)[:, 0]
        if (trained.numpy() != (sums.numpy() >= active)).any():
            raise Mismatch(f"{where}: its ReLU becomes another sum; please report this")
        for count in range(spec.taps + 1):
            batchnorm.prove(spec.taps * limit, thresholds[:, count], self.norm.trained(
                k, lambda s, count=count: self.average(s, count, k)), step=1,
                where=f"{where}, {count} active taps")
        return {"thresholds": thresholds, "active": active}


class Residual(Layer):
    """Scale of all members: batch norm as a multiplication and a shift of whole numbers."""

    def __init__(self, spec, members, real):
        super().__init__(spec)
        self.real = real
        size = (members, spec.shape[2])
        self.gain = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))

    @classmethod
    def made(cls, spec, n, network):
        real = network.kind.float_activations
        if n == len(network.specs) - 1:  # scores are divided, not normalised
            return Shift(spec, real)
        return cls(spec, network.members, real)

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

    def estimate(self, parts):
        self.set(x for x, in parts)

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

    def arrays(self, k, inputs, where):
        gain, bias = (constant[k].numpy().astype(np.int32) for constant in self.integers())
        return {"gain": gain, "bias": bias}


class Shift(Layer):
    """Scale of scores by a power of two."""

    def __init__(self, spec, real):
        super().__init__(spec)
        self.real = real
        self.divisor = 1 << spec.shift

    def forward(self, x):
        y = x / self.divisor
        return y if self.real or self.training else torch.floor(y.double() + 0.5)

    def arrays(self, k, inputs, where):
        size = self.spec.shape[-1:]
        return {"gain": np.ones(size, np.int32), "bias": np.zeros(size, np.int32)}


class Plus(Layer):
    """Add of all members."""

    def forward(self, x, other):
        return x + other


MODULES = {Dense: Linear, Conv: Convolution, MaxPool: Max, SumPool: Sum, Scale: Residual, Add: Plus}
