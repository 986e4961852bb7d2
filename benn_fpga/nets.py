"""Networks by name, and the layers that each becomes for a kind, a width and a recipe.

The kind says how many bits weights and activations have. The recipe says what stands between a sum
and its threshold when training: ``hw``, batch norm alone; ``paper``, the blocks of the paper, with
XNOR-Net's scale, a bias and a ReLU before pool and batch norm. Both become the same integers, but
for an average pool behind a ReLU.
"""

import math
from dataclasses import dataclass

from benn_fpga.checks import one_of
from benn_fpga.errors import BennError
from benn_fpga.layers import MAX_BITS, Add, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.presets import KINDS, MLPS, NETS, RECIPES, RIVALS, whole_number

__all__ = ["MAX_WIDTH", "Kind", "build", "deviation", "kind"]

EDGE_BITS = 8  # of the first and last layer of the kind sb, and of pixels

MAX_WIDTH = 1024
UNIT = 32  # what a standard deviation of a residual's sums becomes
RESIDUAL_BITS = 12
MAX_SCORE = (1 << 21) - 1  # 512 members of such scores have a vote of 32 bits
_GAIN_BITS = 9  # of the gain that brings a typical sum to UNIT; weights may be 60 times smaller


@dataclass(frozen=True)
class Kind:
    """How many bits there are where.

    Members
    -------
    weight_bits, activation_bits : of a layer in the middle
    edge_weight_bits : weights of the first and last layer
    last_input_bits : what the last layer reads
    input_bits : planes that the first layer reads; None for an encoder with thresholds
    float_weights, float_activations : not quantised at all, so it can be trained but not exported
    """

    name: str
    weight_bits: int = 1
    activation_bits: int = 1
    edge_weight_bits: int = 1
    last_input_bits: int = 1
    input_bits: int | None = None
    float_weights: bool = False
    float_activations: bool = False

    @property
    def exports(self):
        return not (self.float_weights or self.float_activations)

    def encoder(self, default):
        """Name of the encoder that it reads when none is given."""
        if self.input_bits is None:
            return default
        return "planes" if self.input_bits == EDGE_BITS else f"planes:{self.input_bits}"

    def check_encoder(self, name, encoder):
        """Raise unless it can read what ``encoder`` gives; floats can read anything.

        A kind that reads planes may be given more or fewer of them.
        """
        reads = min(self.input_bits or 1, encoder.bits)
        planes = self.input_bits and encoder.kind == "planes"
        if self.exports and not planes and encoder.element_bits != reads:
            use = self.encoder("threshold or thermometer")
            raise BennError(f"Kind {self.name} reads inputs of {reads} bit, but encoder {name} "
                            f"gives {encoder.element_bits}; use {use}, or another kind")


def deviation(bits):
    """Standard deviation of odd integers drawn evenly from all that ``bits`` can hold."""
    return math.sqrt((4 ** bits - 1) / 3)


def _quantised(name, weights, activations):
    planes = None if activations == 1 else activations
    return Kind(name, weights, activations, weights, activations, planes)


def kind(name, *, bits=None, wbits=None, abits=None):
    """The :class:`Kind` called ``name``, with the numbers that it needs and no others.

    ========  ==========================  ==========================================
    kind      weights                     activations
    ========  ==========================  ==========================================
    ab        1 bit                       1 bit, the input too
    ib        1 bit                       1 bit, but the input as it is
    sb        1 bit, first and last 8     1 bit, but the input as it is, and 8 bits
                                          before the last layer
    wqb       ``bits``                    1 bit
    aqb       1 bit                       ``bits``
    qnn       ``wbits``                   ``abits``
    dnn       float                       float, ReLU
    ========  ==========================  ==========================================

    Networks of the literature are kinds too. ``bnn`` is ib, ``xnor-net`` sb in the recipe
    ``paper``, ``dorefa`` qnn with ``bits`` for both. ``abc-net`` sums ``bits`` binary bases of
    weights and of activations: with powers of two as their coefficients, as hardware wants them,
    these are the planes of a qnn with ``bits`` for both. ``binaryconnect`` has weights of 1 bit and
    float activations.
    """
    base, _, needs = RIVALS.get(name) or (name, None, KINDS.get(name))
    if needs is None:
        raise BennError(f"Kind must be one of {', '.join((*KINDS, *RIVALS))}, not {name!r}")
    for key, value in (("bits", bits), ("wbits", wbits), ("abits", abits)):
        if key in needs and value is None:
            raise BennError(f"Kind {name} needs `{key}`, the number of bits, 1 to {MAX_BITS}")
        if key not in needs and value is not None:
            takes = f"it takes {' and '.join(f'`{key}`' for key in needs)}" if needs else \
                "its bits are fixed"
            raise BennError(f"Kind {name} takes no `{key}`: {takes}")
        if value is not None and not (type(value) is int and 1 <= value <= MAX_BITS):
            raise BennError(f"`{key}` must be a whole number from 1 to {MAX_BITS}, not {value!r}")
    wbits, abits = wbits or bits or 1, abits or bits or 1
    return {
        "ab": lambda: Kind(name),
        "ib": lambda: Kind(name, input_bits=EDGE_BITS),
        "sb": lambda: Kind(name, 1, 1, EDGE_BITS, EDGE_BITS, EDGE_BITS),
        "wqb": lambda: _quantised(name, wbits, 1),
        "aqb": lambda: _quantised(name, 1, abits),
        "qnn": lambda: _quantised(name, wbits, abits),
        "binaryconnect": lambda: Kind(name, input_bits=EDGE_BITS, float_activations=True),
        "dnn": lambda: Kind(name, input_bits=EDGE_BITS, float_weights=True,
                            float_activations=True),
    }[base]()


# Hidden layers in order: a convolution (outputs, kernel, stride, padding), a pool (kernel, stride,
# padding) or the width of a dense layer. Then a head: a dense layer, or a convolution by 1 whose
# sums are added up over the image.
_CONV, _MAX, _AVG, _DENSE = "conv", "max", "avg", "dense"
_NIN = ((_CONV, 192, 5, 1, 2), (_CONV, 96, 1, 1, 0), (_MAX, 3, 2, 1),
        (_CONV, 192, 5, 1, 2), (_CONV, 192, 1, 1, 0), (_AVG, 3, 2, 1),
        (_CONV, 192, 3, 1, 1), (_CONV, 192, 1, 1, 0))
_CNV = ((_CONV, 64, 3, 1, 0), (_CONV, 64, 3, 1, 0), (_MAX, 2, 2, 0),
        (_CONV, 128, 3, 1, 0), (_CONV, 128, 3, 1, 0), (_MAX, 2, 2, 0),
        (_CONV, 256, 3, 1, 0), (_CONV, 256, 3, 1, 0), (_DENSE, 512), (_DENSE, 512))
_LENET = ((_CONV, 20, 5, 1, 2), (_MAX, 2, 2, 0), (_CONV, 50, 5, 1, 2), (_MAX, 2, 2, 0),
          (_DENSE, 500))
_ALEX = ((_MAX, 3, 2, 0), (_CONV, 256, 5, 1, 2), (_MAX, 3, 2, 0), (_CONV, 384, 3, 1, 1),
         (_CONV, 384, 3, 1, 1), (_CONV, 256, 3, 1, 1), (_MAX, 3, 2, 0), (_DENSE, 4096),
         (_DENSE, 4096))
_LARGE = 48  # rows from which an image counts as large: the first layers then have a stride


def _hidden(name, rows):
    """Hidden layers of ``name``, and whether its head adds up over the image."""
    if name == "nin":
        return _NIN, True
    if name == "cnv":
        return _CNV, False
    if name == "lenet":
        return _LENET, False
    if name == "alexnet":
        first = (_CONV, 96, 11, 4, 2) if rows >= _LARGE else (_CONV, 96, 5, 1, 2)
        return (first, *_ALEX), False
    if name in MLPS:
        return tuple((_DENSE, width) for width in MLPS[name]), False
    return tuple((_DENSE, width) for width in _widths(name)), False


def _widths(name):
    """Hidden widths of ``mlp:256,128``; ``mlp:`` has none."""
    start, colon, rest = name.partition(":")
    widths = [whole_number(width) for width in rest.split(",")] if rest else []
    if start != "mlp" or not colon or not all(widths):
        raise BennError(f"Network must be {', '.join(NETS)} or mlp:WIDTH,WIDTH,..., not {name!r}")
    return widths


def build(name, encoder, classes, kind=Kind("ab"), *, width=1.0, recipe="hw"):  # noqa: B008
    """The layers of network ``name``: what every member of the ensemble becomes.

    Parameters
    ----------
    encoder : spec.Encoder, whose output the first layer reads
    kind : a :class:`Kind`
    width : every hidden width is multiplied by it and cut to a whole number
    recipe : one of :data:`benn_fpga.presets.RECIPES`
    """
    one_of("Recipe", recipe, RECIPES)
    if not 0 < width <= MAX_WIDTH:
        raise BennError(f"Width must be a number above 0, at most {MAX_WIDTH}, not {width}")
    if recipe == "paper" and kind.float_activations:
        raise BennError(f"Recipe paper is for activations of few bits, and kind {kind.name} has "
                        f"floats; use recipe hw")
    if name == "resnet18" and recipe == "paper":
        raise BennError("Recipe paper puts a ReLU before batch norm, which resnet18 has no place "
                        "for; use recipe hw")
    chain = _Chain(name, encoder, kind, width)
    if name == "resnet18":
        _resnet(chain)
        pooled = False
    else:
        rows = encoder.output_shape[0] if len(encoder.output_shape) == 3 else 1
        hidden, pooled = _hidden(name, rows)
        for n, item in enumerate(hidden):
            chain.hidden(item, hidden[n + 1:], recipe == "paper")
    chain.head(classes, pooled)
    return tuple(chain.layers)


class _Chain:
    """The layers so far, and what the last of them gives."""

    def __init__(self, name, encoder, kind, width):
        self.layers = []
        self.shape, self.bits = encoder.output_shape, encoder.element_bits
        self._name = name
        self._kind = kind
        self._width = width

    def put(self, make, **options):
        """Append the layer ``make(**options)`` and return its index."""
        try:
            layer = make(**options)
        except BennError as error:
            small = any(kernel > size + 2 * options.get("padding", 0) for kernel, size in
                        zip(options.get("kernel", ()), options.get("shape", ()), strict=False))
            cure = "; use larger images, or another network" if small else ""
            raise BennError(f"Network {self._name}, layer {len(self.layers)}: {error}{cure}") \
                from None
        self.layers.append(layer)
        self.shape, self.bits = layer.output_shape, layer.output_bits
        return len(self.layers) - 1

    def scaled(self, outputs):
        return max(1, int(self._width * outputs))

    def image(self):
        if len(self.shape) != 3:
            raise BennError(f"Network {self._name} reads images, but the data are rows of "
                            f"features; use mlp:WIDTH,WIDTH,...")
        return self.shape

    def conv(self, outputs, kernel, stride, padding, output_bits, **options):
        weight_bits = self._kind.weight_bits if self.layers else self._kind.edge_weight_bits
        return self.put(Conv, **{
            "shape": self.image(), "kernel": (kernel, kernel), "stride": stride,
            "padding": padding, "outputs": outputs, "weight_bits": weight_bits,
            "input_bits": self.bits, "output_bits": output_bits, **options})

    def hidden(self, item, rest, relu):
        """One hidden layer of a plan; ``rest`` are those behind it."""
        what, *size = item
        last = not any(other[0] in (_CONV, _DENSE, _AVG) for other in rest)
        code_bits = self._kind.last_input_bits if last else self._kind.activation_bits
        if what == _DENSE:
            weight_bits = self._kind.weight_bits if self.layers else self._kind.edge_weight_bits
            self.put(Dense, inputs=math.prod(self.shape), outputs=self.scaled(size[0]),
                     weight_bits=weight_bits, input_bits=self.bits, output_bits=code_bits)
        elif what == _CONV:
            outputs, kernel, stride, padding = size
            averaged = bool(rest) and rest[0][0] == _AVG
            self.conv(self.scaled(outputs), kernel, stride, padding,
                      0 if averaged else code_bits)
        else:
            kernel, stride, padding = size
            own = {"code_bits": self.bits} if what == _MAX else \
                {"output_bits": code_bits, "relu": relu}
            self.put(MaxPool if what == _MAX else SumPool, shape=self.image(),
                     kernel=(kernel, kernel), stride=stride, padding=padding, **own)

    def head(self, classes, pooled):
        weight_bits = self._kind.edge_weight_bits
        if pooled:
            self.conv(classes, 1, 1, 0, 0, weight_bits=weight_bits)
            conv, pool = self.layers[-1], self.put(SumPool, shape=self.shape, kernel=self.shape[:2])
            # Large sums are divided, as an average would be, so that many members can vote.
            limit = conv.max_sum * self.layers[pool].taps
            if limit > MAX_SCORE:
                self.put(Scale, shape=self.shape, shift=(limit // MAX_SCORE).bit_length(),
                         integer_bits=MAX_SCORE.bit_length() + 1)
        else:
            self.put(Dense, inputs=math.prod(self.shape), outputs=classes,
                     weight_bits=weight_bits, input_bits=self.bits, output_bits=0)

    def residual(self, conv):
        """Bring the sums of layer ``conv`` to the scale that residuals are added in."""
        return self.scale(conv, self.layers[conv])

    def scale(self, source, conv, times=1):
        """Bring the integers of layer ``source``, ``times`` as large as ``conv``'s, to UNIT."""
        sigma = times * math.sqrt(conv.inputs) * deviation(conv.weight_bits) \
            * deviation(conv.input_bits)
        shift = max(0, _GAIN_BITS + round(math.log2(sigma / UNIT)))
        return self.put(Scale, shape=self.layers[source].output_shape, shift=shift,
                        integer_bits=RESIDUAL_BITS, source=source)

    def threshold(self, bits):
        return self.put(SumPool, shape=self.shape, kernel=(1, 1), output_bits=bits)


def _resnet(chain):
    """ResNet-18: integers run along the shortcuts, codes through the convolutions."""
    kind, (rows, *_) = chain._kind, chain.image()
    if rows >= _LARGE:
        stem = chain.conv(chain.scaled(64), 7, 2, 3, 0)
        pool = chain.put(SumPool, shape=chain.shape, kernel=(3, 3), stride=2, padding=1)
        start = chain.scale(pool, chain.layers[stem], times=3)  # 9 taps
    else:
        start = chain.residual(chain.conv(chain.scaled(64), 3, 1, 1, 0))
    for block in range(8):
        outputs = chain.scaled(64 << (block // 2))
        stride = 2 if block in (2, 4, 6) else 1
        codes = chain.threshold(kind.activation_bits)
        shape, bits = chain.shape, chain.bits
        main = chain.residual(chain.conv(outputs, 3, stride, 1, 0))
        if stride == 2 or shape[2] != outputs:
            side = chain.put(Conv, shape=shape, kernel=(1, 1), stride=stride, outputs=outputs,
                             weight_bits=kind.weight_bits, input_bits=bits, output_bits=0,
                             source=codes)
            start = chain.residual(side)
        start = chain.put(Add, shape=chain.shape, source=main, other=start)
        chain.threshold(kind.activation_bits)
        main = chain.residual(chain.conv(outputs, 3, 1, 1, 0))
        start = chain.put(Add, shape=chain.shape, source=main, other=start)
    chain.put(SumPool, shape=chain.shape, kernel=chain.shape[:2],
              output_bits=kind.last_input_bits)
