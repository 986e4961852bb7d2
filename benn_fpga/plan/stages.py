"""What each layer is as a unit of hardware: the words that it reads and gives.

A word holds some elements of one pixel; the output of a dense layer is one pixel. A layer of
products reads SIMD elements in a word and gives PE in one, all others read and give PE channels.
"""

from dataclasses import dataclass, field, replace
from math import prod

from benn_fpga.layers import Conv, Dense, MaxPool, SumPool
from benn_fpga.spec import sources

__all__ = ["Stage", "beat_elements", "consumers", "input_bits", "integer_bits", "stages",
           "stalls", "turn"]


@dataclass(frozen=True)
class Stage:
    """Layer ``n`` and its fold; what it does depends on these alone."""

    n: int = field(compare=False)
    layer: object
    fold: object

    @property
    def is_dense(self):
        return isinstance(self.layer, Dense)

    @property
    def has_products(self):
        return isinstance(self.layer, (Dense, Conv))

    @property
    def has_window(self):
        return isinstance(self.layer, (Conv, MaxPool, SumPool))

    @property
    def lanes_in(self):
        return self.fold.simd if self.has_products else self.fold.pe

    @property
    def lanes_out(self):
        return self.fold.pe

    @property
    def words_in(self):
        """Words of a pixel that it reads; of a dense layer of the whole frame."""
        return self.layer.input_shape[-1] // self.lanes_in

    @property
    def words_out(self):
        return self.layer.output_shape[-1] // self.lanes_out

    @property
    def pixels_in(self):
        return prod(self.layer.input_shape[:-1])

    @property
    def pixels_out(self):
        return prod(self.layer.output_shape[:-1])

    @property
    def groups(self):
        """Parts of the channels that are read one after another."""
        return self.layer.groups if isinstance(self.layer, Conv) else self.words_out

    @property
    def folds(self):
        """How often a window is read: once for each word of the output."""
        return self.words_out

    @property
    def reads_per_word(self):
        """Words that it reads for a word that it gives; of tiles the last one counts."""
        if self.has_products:
            return self.layer.inputs // self.fold.simd
        return self.layer.taps if self.is_buffered else 1

    @property
    def reads(self):
        """... for a pixel that it gives."""
        return self.words_out * self.reads_per_word

    @property
    def taps(self):
        return self.layer.taps if self.has_window else 1

    @property
    def stride(self):
        return self.layer.stride if self.has_window else 1

    @property
    def is_tiled(self):
        """Whether it is a pool that needs no line buffer, since its windows do not overlap."""
        return isinstance(self.layer, (MaxPool, SumPool)) and self.layer.is_tiled

    @property
    def is_buffered(self):
        """Whether pixels have to be kept, since they are read more than once."""
        if isinstance(self.layer, Conv):
            return self.taps > 1 or self.folds > 1
        return self.taps > 1 and not self.is_tiled

    @property
    def is_thinned(self):
        """Whether it reads one tap here and there; pixels between them are dropped at once."""
        return self.taps == 1 and self.stride > 1

    @property
    def window(self):
        """The layer as its line buffer sees it: of one tap, only what is on the grid."""
        if self.taps > 1:
            return self.layer
        return replace(self.layer, shape=(*self.layer.grid, self.layer.channels), stride=1)


def stages(model, folding):
    """The :class:`Stage` of every layer."""
    return tuple(Stage(n, layer, fold) for n, (layer, fold) in
                 enumerate(zip(model.layers, folding.layers, strict=True)))


def stalls(stage, model):
    """Whether outputs of a stage may have to wait: behind a dense layer, and the scores.

    For all others a place in a queue is reserved before they are computed.
    """
    return stage.is_dense or stage.n == len(model.layers) - 1


def consumers(model):
    """Per layer, the (layer, port) that read it; a port is the place in its sources."""
    found = {n: [] for n in (None, *range(len(model.layers)))}
    for n, layer in enumerate(model.layers):
        for port, source in enumerate(sources(layer, n)):
            found[source].append((n, port))
    return found


def beat_elements(model, folding):
    """Elements that the encoder makes of a beat of the bus."""
    return folding.bus // 8 * model.encoder.elements_per_value


def turn(stage, reader):
    """Elements after which the width converter between two stages starts anew: a frame before a
    dense layer, else a pixel."""
    return reader.layer.inputs if reader.is_dense else stage.layer.output_shape[-1]


def integer_bits(model):
    """Per layer, the width of its integers as signed numbers; of codes the bits of a code."""
    limits = [member.limits(model.layers) for member in model.members]
    return [layer.output_bits or max(limit[n] for limit in limits).bit_length() + 1
            for n, layer in enumerate(model.layers)]


def input_bits(model):
    """Per layer, the width of an element that it reads; of Add that of the first."""
    given = {None: model.encoder.element_bits, **dict(enumerate(integer_bits(model)))}
    return [given[sources(layer, n)[0]] for n, layer in enumerate(model.layers)]
