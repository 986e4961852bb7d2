"""What a unit consists of where its weights are constants."""

from functools import reduce
from operator import add

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.leaves import Leaves, Sums, coded
from benn_fpga.hw.pipeline import delay, reduce_tree
from benn_fpga.hw.threshold import reaches
from benn_fpga.plan.leaves import block_size, chain

__all__ = ["WordLeaves", "WordOutputs"]


def _blocks(layer):
    """Inputs that a chain counts, block after block."""
    size = block_size(layer.inputs)
    return [range(first, min(first + size, layer.inputs))
            for first in range(0, layer.inputs, size)]


def _popcounts(layer, word, plane, inputs):
    """Of each output the :class:`Coded` that counts where inputs and weights of a plane agree."""
    size, popcounts = layer.inputs * layer.weight_bits, []
    for output in range(layer.outputs):
        row = (word >> (output * size)) & ((1 << size) - 1)
        disagrees = sum((~row >> (n * layer.weight_bits + plane) & 1) << k
                        for k, n in enumerate(inputs))
        popcounts.append(coded(chain(len(inputs)), disagrees))
    return popcounts


class WordLeaves(wiring.Component):
    """The leaves of a whole word of inputs, plane by plane and in blocks, for all who read it.

    Parameters
    ----------
    layer : layers.Dense or layers.Conv
    words : weights of each engine that reads these inputs, a word as from memories.Contents.weights

    Members
    -------
    x : In(layer.inputs * layer.input_bits), stream layout
    o : Out, ``o`` of all ``parts``
    """

    def __init__(self, *, layer, words):
        self._layer = layer
        self.parts = {}
        for b, inputs in enumerate(_blocks(layer)):
            popcounts = [each for word in words for plane in range(layer.weight_bits)
                         for each in _popcounts(layer, word, plane, inputs)]
            for j in range(layer.input_bits):
                self.parts[j, b] = Leaves(chain(len(inputs)), popcounts)
        super().__init__({"x": In(layer.inputs * layer.input_bits),
                          "o": Out(sum(len(part.o) for part in self.parts.values()))})

    def elaborate(self, platform):
        m = Module()
        blocks = _blocks(self._layer)
        for (j, b), part in self.parts.items():
            m.submodules[f"plane{j}_{b}"] = part
            m.d.comb += part.x.eq(Cat(self.x[n * self._layer.input_bits + j] for n in blocks[b]))
        m.d.comb += self.o.eq(Cat(part.o for part in self.parts.values()))
        return m


class WordOutputs(wiring.Component):
    """All outputs of an engine, ``latency.constant_latency`` and one cycle after the inputs; new
    ones every cycle. The offsets of popcounts are taken from what these are compared with.

    Parameters
    ----------
    layer : layers.Dense or layers.Conv
    word : weights, as from memories.Contents.weights
    entries : of each output its offset, or its thresholds on the weighted popcount
    output_bits : width of an output
    leaves : WordLeaves of the inputs

    Members
    -------
    halves : In, ``leaves.o``
    o : Out(layer.outputs * output_bits)
    """

    def __init__(self, *, layer, word, entries, output_bits, leaves):
        self._layer = layer
        self._word = word
        self._entries = entries
        self._output_bits = output_bits
        self._leaves = leaves
        super().__init__({"halves": In(leaves.o.shape()),
                          "o": Out(layer.outputs * output_bits)})

    def elaborate(self, platform):
        m = Module()
        layer = self._layer
        counts, offsets = [[] for _ in range(layer.outputs)], [0] * layer.outputs
        for each in self._counted(m):
            for n, (value, offset) in enumerate(each):
                counts[n].append((value,))
                offsets[n] += offset
        outputs = []
        for n, entry in enumerate(self._entries):
            total, = reduce_tree(m, counts[n], lambda a, b: (a[0] + b[0],), name=f"total{n}")
            if layer.is_scores:
                value = ((total << 1) + (entry[0] + 2 * offsets[n]))[:self._output_bits]
            else:
                value = reduce(add, (reaches(total, t - offsets[n]) for t in entry))
            out = Signal(self._output_bits, name=f"output{n}", reset_less=True)
            m.d.sync += out.eq(value)
            outputs.append(out)
        m.d.comb += self.o.eq(Cat(outputs))
        return m

    def _counted(self, m):
        """Yield, for each block, input plane and weight plane, (value, offset) of all outputs: with
        the offset a value is a popcount, weighted."""
        layer, at, blocks = self._layer, 0, _blocks(self._layer)
        slowest = chain(len(blocks[0])).latency
        for (j, b), leaves in self._leaves.parts.items():
            halves = self.halves[at:at + len(leaves.o)]
            at += len(leaves.o)
            for i in range(layer.weight_bits):
                popcounts = _popcounts(layer, self._word, i, blocks[b])
                counter = chain(len(blocks[b]))
                m.submodules[f"sums{i}_{j}_{b}"] = sums = Sums(counter, popcounts, leaves)
                m.d.comb += sums.halves.eq(halves)
                late = delay(m, sums.o, slowest - counter.latency, name=f"counts{i}_{j}_{b}")[-1]
                yield [(late.word_select(n, sums.width) << (i + j), popcount.offset << (i + j))
                       for n, popcount in enumerate(popcounts)]
