"""K networks of one shape in one graph: every layer holds the parameters of all members.

Weights and activations are the odd integers of bits.py in float32, which holds their sums exactly
below 2**24. While training, sums are normalised by the statistics of the batch; afterwards by those
of the training set, in float64 and with the very expression that batchnorm.py absorbs.

The kinds dnn and binaryconnect have floats instead: weights that are not quantised, a ReLU in place
of the quantiser. They are trained and measured, but have no integers to export.

A vector of all members is (frames, K, features), an image (frames, K * channels, rows, columns).
What the encoder gives is the same for all of them, and has K = 1.
"""

import math

import torch
from torch import nn

from benn_fpga import golden
from benn_fpga.nets import Kind
from benn_fpga.spec import sources
from benn_fpga.sw.modules import MODULES

__all__ = ["Network", "values"]

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


def _wide(x):
    """Whole numbers as floats that hold them."""
    return x.double() if x.dtype == torch.int32 else x.float()


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
        # The last layer with weights: its sums become the scores.
        self.head = max(n for n, spec in enumerate(layers) if spec.stored_bits)
        for n, spec in enumerate(layers):
            self.layers.append(MODULES[type(spec)].made(spec, n, self))
        self._inputs = [sources(spec, n) for n, spec in enumerate(layers)]
        # Scores times this have the size of logits.
        self.score_scale = self.layers[self.head].score_scale() * self.layers[-1].divisor

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
            layer.clamp()

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
            layer.estimate(map(_wide, part) for part in inputs)
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
