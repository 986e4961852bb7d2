"""K networks of one shape in one graph: every layer holds the weights of all members.

Weights and activations are the odd integers of bits.py in float32, which holds their sums exactly
below 2**24. While training, sums are normalised by the statistics of the batch; afterwards by
those of the whole training set, in float64 and with the very expression that batchnorm.py folds.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from benn_fpga import golden
from benn_fpga.errors import BennError
from benn_fpga.layers import Dense
from benn_fpga.sw import quantize

__all__ = ["EXACT", "Layer", "Network", "shapes", "values"]

EXACT = 1 << 24  # float32 holds every whole number up to here
EPSILON = 1e-5
MIN_GAIN = 0.01
INIT = 0.1  # latent weights start in ±INIT: near enough to zero for the first steps to flip them
_CHUNK = 1 << 22  # values computed in one step outside training


def shapes(encoder, hidden, classes, weight_bits=1, activation_bits=1):
    """The layers of a network with these hidden widths, as the model file describes them."""
    inputs, bits, layers = encoder.outputs, encoder.element_bits, []
    for width in hidden:
        layers.append(Dense(inputs, width, weight_bits, bits, activation_bits))
        inputs, bits = width, activation_bits
    layers.append(Dense(inputs, classes, weight_bits, bits, 0))
    for n, layer in enumerate(layers):
        if layer.max_sum > EXACT:
            raise BennError(f"Layer {n} sums up to {layer.max_sum}, which float32 holds exactly "
                            f"only to {EXACT}; use fewer inputs or bits")
    return tuple(layers)


def values(encoder, x):
    """Raw values (frames, ...) as the odd integers (frames, inputs) that the first layer reads."""
    x, bits = golden.check_input(encoder, x), encoder.element_bits
    encoded = torch.empty(len(x), encoder.outputs, dtype=torch.int8 if bits < 7 else torch.int16)
    step = max(1, _CHUNK // encoder.outputs)
    for at in range(0, len(x), step):
        codes = torch.from_numpy(golden.encode(encoder, x[at:at + step])).to(encoded.dtype)
        encoded[at:at + step] = 2 * codes - ((1 << bits) - 1)
    return encoded


def _deviation(bits):
    """Standard deviation of odd integers drawn evenly from all that ``bits`` can hold."""
    return math.sqrt((4 ** bits - 1) / 3)


class Layer(nn.Module):
    """One layer of all members.

    Parameters
    ----------
    shape : the :class:`~benn_fpga.spec.Dense` it becomes
    members : K

    Members
    -------
    weight : (K, outputs, inputs) latent, kept in -1..1
    gain, beta : (K, outputs) of the batch norm, gain kept positive; not in the score layer
    mean, var : (K, outputs) float64, set by :meth:`Network.estimate`
    """

    def __init__(self, shape, members):
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(torch.zeros(members, shape.outputs, shape.inputs))
        if not shape.is_scores:
            size = (members, shape.outputs)
            self.gain = nn.Parameter(torch.full(size, _deviation(shape.output_bits)))
            self.beta = nn.Parameter(torch.zeros(size))
            self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
            self.register_buffer("var", torch.ones(size, dtype=torch.float64))

    def integers(self):
        """The weights that run: odd integers (K, outputs, inputs)."""
        return quantize.weight(self.weight, (1 << self.shape.weight_bits) - 1)

    def sums(self, x):
        """(frames, K, outputs) for inputs (frames, K, inputs), or (frames, inputs) for all."""
        w = self.integers()
        if x.ndim == 2:
            return (x @ w.flatten(0, 1).T).unflatten(1, w.shape[:2])
        return torch.bmm(x.transpose(0, 1), w.transpose(1, 2)).transpose(0, 1)

    def scale(self):
        """(K, outputs) float64: what one step of the sum adds after batch norm."""
        return self.gain.double() / torch.sqrt(self.var + EPSILON)

    def normalised(self, sums, members=slice(None)):
        """Batch norm outside training, in float64."""
        return ((sums.double() - self.mean[members]) * self.scale()[members]
                + self.beta.double()[members])

    def forward(self, sums):
        """Activations, odd integers in float32, of sums (frames, K, outputs)."""
        if not self.training:
            return (2 * quantize.codes(self.normalised(sums), self.shape.levels)
                    - self.shape.levels).float()
        y = functional.batch_norm(sums.flatten(1), None, None, self.gain.flatten(),
                                  self.beta.flatten(), training=True, eps=EPSILON)
        return quantize.activation(y, self.shape.levels).view(sums.shape)


class Network(nn.Module):
    """All members; the scores of a frame are whole numbers in float32, scaled only in the loss."""

    def __init__(self, layers, members):
        super().__init__()
        self.members = members
        self.layers = nn.ModuleList(Layer(shape, members) for shape in layers)
        last = layers[-1]
        self.score_scale = 1 / (math.sqrt(last.inputs) * _deviation(last.weight_bits)
                                * _deviation(last.input_bits))

    @classmethod
    def join(cls, networks):
        """One network with the members of all."""
        joined = cls([layer.shape for layer in networks[0].layers],
                     sum(network.members for network in networks))
        states = [network.state_dict() for network in networks]
        joined.load_state_dict({name: torch.cat([state[name] for state in states])
                                for name in states[0]})
        return joined

    @torch.no_grad()
    def draw(self, rngs):
        """Draw the latent weights of each member from its own NumPy generator; returns itself."""
        for layer in self.layers:
            for latent, rng in zip(layer.weight, rngs, strict=True):
                latent.copy_(torch.from_numpy(rng.uniform(-INIT, INIT, latent.shape)))
        return self

    def forward(self, x, depth=None):
        """Sums of layer ``depth``, the scores if None: (frames, K, outputs)."""
        *before, last = self.layers[:None if depth is None else depth + 1]
        for layer in before:
            x = layer(layer.sums(x))
        return last.sums(x)

    @torch.no_grad()
    def clamp(self):
        """Keep latent weights in -1..1 and gains positive."""
        for layer in self.layers:
            layer.weight.clamp_(-1, 1)
            if not layer.shape.is_scores:
                layer.gain.clamp_(min=MIN_GAIN)

    @torch.no_grad()
    def estimate(self, x):
        """Set mean and variance of each layer to those of its sums over the inputs ``x``.

        The sums are whole numbers, and so are their totals in float64: no order of adding matters.
        """
        self.eval()
        for depth, layer in enumerate(self.layers[:-1]):
            total = square = 0
            for sums in self._chunks(x, depth):
                total = total + sums.sum(0)
                square = square + (sums * sums).sum(0)
            layer.mean = total / len(x)
            layer.var = (square / len(x) - layer.mean ** 2).clamp(min=0)

    @torch.no_grad()
    def scores(self, x):
        """Scores int64 (frames, K, classes) of the trained network."""
        self.eval()
        return torch.cat([sums.long() for sums in self._chunks(x, None)]).numpy()

    def _chunks(self, x, depth):
        width = max(layer.weight.shape[0] * layer.shape.outputs for layer in self.layers)
        for part in x.split(max(1, _CHUNK // width)):
            yield self(part.float(), depth).double()
