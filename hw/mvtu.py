"""Matrix-vector-threshold unit (MVTU): one folded layer."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pe import ProcessingElement
from benn_fpga.hw.pipeline import banked, counter, delay
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least
from benn_fpga.hw.unrolled import WordLeaves, WordOutputs
from benn_fpga.plan import names
from benn_fpga.plan.latency import MEMORY_LATENCY, folded_parts, layer_latency
from benn_fpga.plan.memories import is_block

__all__ = ["MatrixVectorUnit"]


class MatrixVectorUnit(wiring.Component):
    """PE outputs x SIMD inputs per cycle and engine: XNOR, popcount, accumulate, compare.

    A frame, or a window, comes in as SF = inputs/SIMD words, sent NF = outputs/PE times; each time
    yields the next PE outputs. Round t of ``rounds`` uses bank t of the weights, for all windows of
    a frame. With P the weighted popcount of an output, a hidden layer gives the code ``number of
    thresholds t with P >= t`` and the score layer (``layer.output_bits`` 0) gives the signed
    ``2*P + offset``. All engines do the same in the same cycles, each with its own weights: one
    sequencer serves them. Where weights are constants there is nothing to read or to accumulate.
    Latency from the last word read for an output word ``latency.layer_latency``, one word per
    cycle.

    Parameters
    ----------
    layer : layers.Dense or layers.Conv
    fold : spec.Fold
    rounds : banks of weights, T
    weights : per engine, words as from memories.Contents.weights
    table : per engine, words as from memories.Contents.table
    output_bits : width of an output
    shared : whether all engines read the same inputs
    ahead : cycles after which the payload of ``i`` follows
    relays : further registers behind the weights
    adder_levels : of a popcount, from one register to the next

    Members
    -------
    i : In(stream of simd * layer.input_bits bits, of every engine unless it is ``shared``)
    o : Out(stream of pe * output_bits bits of every engine)
    """

    def __init__(self, *, layer, fold, rounds, weights, table, output_bits, shared=False,
                 ahead=0, relays=0, adder_levels=1):
        positive(rounds=rounds, output_bits=output_bits)
        self._layer = layer
        self._fold = fold
        self._rounds = rounds
        self._sf = layer.inputs // fold.simd
        words_out = rounds * (layer.outputs // fold.pe)
        for words, entries in zip(weights, table, strict=True):
            if len(words) != words_out * self._sf or len(entries) != words_out:
                raise ValueError(f"Memories must hold {words_out * self._sf} words of weights and "
                                 f"{words_out} of the table, not {len(words)} and {len(entries)}")
        self._weights = weights
        self._table = table
        self._engines = len(weights)
        self._output_bits = output_bits
        self._ways = 1 if shared else self._engines
        self._ahead = ahead
        self._relays = relays
        self._adder_levels = adder_levels
        super().__init__({
            "i": In(stream.Signature(fold.simd * layer.input_bits * self._ways,
                                     always_ready=True)),
            "o": Out(stream.Signature(fold.pe * output_bits * self._engines, always_ready=True)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        stage, n = unit.stage, unit.stage.n
        return cls(layer=stage.layer, fold=stage.fold, rounds=unit.rounds,
                   weights=[each.weights(n) for each in contents],
                   table=[each.table(n, unit.o.element_bits) for each in contents],
                   output_bits=unit.o.element_bits, shared=unit.i.ways == 1, ahead=unit.i.ahead,
                   relays=unit.relays, adder_levels=unit.adder_levels)

    def elaborate(self, platform):
        unrolled = self._layer.is_unrolled(self._fold, self._rounds)
        return self._unrolled() if unrolled else self._folded()

    def _unrolled(self):
        """... where weights are constants. A word of inputs is a whole frame or window."""
        m = Module()
        layer = self._layer
        there = delay(m, self.i.valid, self._ahead, name="there", init=0)[-1]
        latency = layer_latency(layer, self._fold, self._rounds)
        m.d.comb += self.o.valid.eq(delay(m, there, latency, name="valid", init=0)[-1])
        engines, outputs = [Module() for _ in self._weights], []
        for n, engine in enumerate(engines):
            m.submodules[names.engine(n)] = engine
            if n < self._ways:
                readers = self._weights[n:n + 1] if self._ways > 1 else self._weights
                leaves = WordLeaves(layer=layer, words=[words[0] for words in readers])
                (engine if len(readers) == 1 else m).submodules.leaves = leaves
                m.d.comb += leaves.x.eq(Cat(
                    self.i.payload.word_select(k * self._ways + n, layer.input_bits)
                    for k in range(layer.inputs)))
            engine.submodules.outputs = each = WordOutputs(
                layer=layer, word=self._weights[n][0], entries=self._entries(self._table[n][0]),
                output_bits=self._output_bits, leaves=leaves)
            m.d.comb += each.halves.eq(leaves.o)
            outputs.append(each)
        m.d.comb += self.o.payload.eq(Cat(
            each.o.word_select(k, self._output_bits) for k in range(layer.outputs)
            for each in outputs))
        return m

    def _entries(self, word):
        """Of each output its offset, or its thresholds on the weighted popcount, from ``word``."""
        layer = self._layer
        size = layer.entry_bits(self._output_bits)
        entries = [(word >> (n * size)) & ((1 << size) - 1) for n in range(layer.outputs)]
        if layer.is_scores:
            return [(entry,) for entry in entries]
        if layer.levels == 1:
            return [((1 << (size - 1)) - entry,) for entry in entries]
        level = layer.popcount_bits
        return [tuple((entry >> (k * level)) & ((1 << level) - 1) for k in range(layer.levels))
                for entry in entries]

    def _folded(self):
        m = Module()
        layer, fold, size = self._layer, self._fold, self._layer.input_bits
        engines = [_Engine(layer=layer, fold=fold, weights=weights, table=table,
                           output_bits=self._output_bits, relays=self._relays,
                           adder_levels=self._adder_levels)
                   for weights, table in zip(self._weights, self._table, strict=True)]
        latency, summed = engines[0].weights_latency, engines[0].summed

        # Stage 0: weights are asked for, of a word that may still be on its way. What has moved s
        # registers down the pipeline is at stage s.
        asked = delay(m, self.i.valid, max(0, self._ahead - latency), name="asked", init=0)[-1]
        word = self._banked(m, len(self._weights[0]), en=asked, name="word")
        x = delay(m, self.i.payload, max(0, latency - self._ahead), name="x")[-1]
        accumulated = summed + engines[0].accumulates
        valid = delay(m, asked, accumulated, name="valid", init=0)
        # The table is asked for with the first word, or with the last; words are counted then.
        early = engines[0].table_asked
        _, last = counter(m, self._sf, en=valid[early], name="chunk")
        row = self._banked(m, len(self._table[0]), en=valid[early] & last, name="row")
        lasts = delay(m, last, accumulated - early, name="last")
        first = C(1) if self._sf == 1 else Signal(init=1, name="first")
        if self._sf > 1:
            with m.If(valid[summed]):
                m.d.sync += first.eq(lasts[-2])
        done = valid[-1] & lasts[-1]
        m.d.comb += self.o.valid.eq(
            delay(m, done, engines[0].compares, name="done", init=0)[-1])

        for n, engine in enumerate(engines):
            m.submodules[names.engine(n)] = engine
            way = min(n, self._ways - 1)
            m.d.comb += [
                engine.x.eq(Cat(x.word_select(k * self._ways + way, size)
                                for k in range(fold.simd))),
                engine.word.eq(word),
                engine.row.eq(row),
                engine.valid.eq(valid[summed]),
                engine.first.eq(first),
            ]
        m.d.comb += self.o.payload.eq(Cat(
            engine.o.word_select(k, self._output_bits) for k in range(fold.pe)
            for engine in engines))
        return m

    def _banked(self, m, words, *, en, name):
        """Address in ``words``, which hold one part for every round."""
        return banked(m, words // self._rounds, repeats=self._layer.positions,
                      banks=self._rounds, en=en, name=name)


class _Engine(wiring.Component):
    """What an engine of a unit has of its own: weights, arithmetic, thresholds.

    An accumulator of one threshold starts from what is missing to it, so that its top bit says
    whether the sum has reached it; that of a score starts from the offset. Where there are several
    thresholds it starts from 0, and is compared with them a cycle later.

    Members
    -------
    x : In, a word of inputs, ``weights_latency`` cycles after the address of its weights
    word, row : In, addresses of weights and table
    valid, first : In, a word is added, and it is the first for its output word
    o : Out(pe * output_bits)
    """

    def __init__(self, *, layer, fold, weights, table, output_bits, relays, adder_levels):
        self._layer = layer
        self._fold = fold
        self._adder_levels = adder_levels
        self._output_bits = output_bits
        self._sums, self.accumulates, self.compares = folded_parts(layer, fold, adder_levels)
        self._weights = Rom(weights, width=fold.pe * fold.simd * layer.weight_bits,
                            latency=MEMORY_LATENCY + relays)
        width = fold.pe * layer.entry_bits(output_bits)
        # Adders follow it at once. From a block, which may be far away, a further register helps.
        self._table = Rom(table, width=width,
                          latency=MEMORY_LATENCY + is_block(len(table), width))
        super().__init__({
            "x": In(fold.simd * layer.input_bits),
            "word": In(self._weights.address.shape()),
            "row": In(self._table.address.shape()),
            "valid": In(1),
            "first": In(1),
            "o": Out(fold.pe * output_bits),
        })

    @property
    def weights_latency(self):
        return self._weights.latency

    @property
    def summed(self):
        """Cycles from the address of a word's weights to when it is added."""
        return self.weights_latency + self._sums

    @property
    def starts_from_table(self):
        """Whether the table is what accumulators start from; else it is compared with."""
        return self._layer.levels <= 1

    @property
    def table_asked(self):
        """Cycles from the address of a word's weights to that of its entry of the table, at most
        until it is added."""
        return min(self.summed, self.summed + self.compares - self._table.latency)

    def elaborate(self, platform):
        m = Module()
        layer, fold, size = self._layer, self._fold, self._layer.entry_bits(self._output_bits)
        m.submodules.weights = weights = self._weights
        m.submodules.table = table = self._table
        m.d.comb += [weights.address.eq(self.word), table.address.eq(self.row)]
        outputs = []
        for n in range(fold.pe):
            m.submodules[f"pe{n}"] = pe = ProcessingElement(
                simd=fold.simd, weight_bits=layer.weight_bits, input_bits=layer.input_bits,
                adder_levels=self._adder_levels)
            m.d.comb += [
                pe.w.eq(weights.data.word_select(n, fold.simd * layer.weight_bits)),
                pe.x.eq(self.x),
            ]
            if not self.starts_from_table:
                total = self._accumulator(m, n, layer.popcount_bits, C(0), pe.o)
                level = layer.popcount_bits
                reached = sum(at_least(total, table.entry(n * layer.levels + k, level))
                              for k in range(layer.levels))
                outputs.append(delay(m, reached[:self._output_bits], 1, name=f"code{n}")[-1])
                continue
            total = self._accumulator(m, n, size, table.entry(n, size),
                                      pe.o << 1 if layer.is_scores else pe.o)
            outputs.append(total if layer.is_scores else total[-1])
        m.d.comb += self.o.eq(Cat(outputs))
        return m

    def _accumulator(self, m, n, width, start, value):
        total = Signal(width, name=f"total{n}", reset_less=True)
        before = start if self._fold.simd == self._layer.inputs else Mux(self.first, start, total)
        with m.If(self.valid):
            m.d.sync += total.eq(before + value)
        return total
