"""Matrix-vector-threshold unit (MVTU): one folded layer."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pe import ProcessingElement
from benn_fpga.hw.pipeline import banked, counter, delay, enable
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least
from benn_fpga.plan.latency import MEMORY_LATENCY, sum_latency

__all__ = ["MatrixVectorUnit"]


class MatrixVectorUnit(wiring.Component):
    """PE outputs x SIMD inputs per cycle: XNOR, popcount, accumulate, then thresholds or bias.

    A frame, or a window, comes in as SF = inputs/SIMD words, sent NF = outputs/PE times; each time
    yields the next PE outputs. Round t of ``rounds`` uses bank t of the weights, for all windows of
    a frame. With P the weighted popcount
    of an output, a hidden layer gives the code ``number of thresholds t with P >= t`` and the score
    layer (``layer.output_bits`` 0) gives the signed ``2*P + offset``. Latency from the last word
    of a fold ``latency.layer_latency``, one word per cycle except for the pauses asked for.

    Parameters
    ----------
    layer : layers.Dense or layers.Conv
    fold : spec.Fold
    rounds : banks of weights, T
    weights : words as from memories.Contents.weights
    table : words as from memories.Contents.thresholds or offsets
    score_bits : width of a score, for the score layer
    pause : words after which no word is taken for some cycles, and these cycles
    waits : whether outputs may have to wait; then all stops

    Members
    -------
    i : In(stream of simd * layer.input_bits bits)
    o : Out(stream of pe * layer.output_bits bits, or pe * score_bits for scores)
    """

    def __init__(self, *, layer, fold, rounds, weights, table, score_bits=None, pause=(1, 0),
                 waits=True):
        self._layer = layer
        self._fold = fold
        self._rounds = rounds
        self._sf = layer.inputs // fold.simd
        folds = rounds * (layer.outputs // fold.pe)
        if len(weights) != folds * self._sf or len(table) != folds:
            raise ValueError(f"Images must hold {folds * self._sf} words of weights and {folds} of "
                             f"the table, not {len(weights)} and {len(table)}")
        if layer.is_scores != (score_bits is not None):
            raise ValueError(f"Score bits must be given for the score layer only, "
                             f"not {score_bits!r}")
        if pause[1] and not waits:
            raise ValueError("A layer that never stops cannot pause")
        self._pause = pause
        self._weights = weights
        self._table = table
        self._output_bits = score_bits if layer.is_scores else layer.output_bits
        super().__init__({
            "i": In(stream.Signature(fold.simd * layer.input_bits, always_ready=not waits)),
            "o": Out(stream.Signature(fold.pe * self._output_bits, always_ready=not waits)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        stage, n = unit.stage, unit.stage.n
        width = unit.o.element_bits if stage.layer.is_scores else None
        table = contents.thresholds(n) if width is None else contents.offsets(n, width)
        return cls(layer=stage.layer, fold=stage.fold, rounds=unit.rounds,
                   weights=contents.weights(n), table=table, score_bits=width, pause=unit.pause,
                   waits=unit.waits)

    def elaborate(self, platform):
        m = Module()
        layer, fold, sf = self._layer, self._fold, self._sf
        may = Signal()
        en, accept = enable(m, self.i, self.o, may)
        payload = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += [may.eq(self._may_take(m, en, accept)), self.o.payload.eq(payload)]

        # Stage 0: a word arrives, its weights are asked for.
        m.submodules.weights = weights = Rom(
            self._weights, width=fold.pe * fold.simd * layer.weight_bits)
        at, last = counter(m, sf, en=accept, name="chunk")
        word = self._banked(m, self._weights, en=accept, name="word")
        m.d.comb += [weights.address.eq(word), weights.en.eq(en)]

        # Stage s of these lines goes with what has moved s registers down the pipeline.
        summed = weights.latency + sum_latency(fold.simd, layer.weight_bits, layer.input_bits)
        x = delay(m, self.i.payload, weights.latency, en=en, name="x")[-1]
        valid = delay(m, accept, summed, en=en, name="valid", init=0)
        first = delay(m, at == 0, summed, en=en, name="first") if sf > 1 else None
        last = delay(m, last, summed, en=en, name="last")

        # The table is read so that it arrives together with the accumulated sums.
        width = self._output_bits if layer.is_scores else layer.levels * layer.popcount_bits
        m.submodules.table = table = Rom(self._table, width=fold.pe * width)
        early = summed + 1 - MEMORY_LATENCY
        row = self._banked(m, self._table, en=en & valid[early] & last[early], name="row")
        m.d.comb += [table.address.eq(row), table.en.eq(en)]

        done = Signal()
        with m.If(en):
            m.d.sync += [done.eq(valid[-1] & last[-1]), self.o.valid.eq(done)]
        per_output = fold.simd * layer.weight_bits
        for n in range(fold.pe):
            m.submodules[f"pe{n}"] = pe = ProcessingElement(
                simd=fold.simd, weight_bits=layer.weight_bits, input_bits=layer.input_bits)
            m.d.comb += [
                pe.en.eq(en),
                pe.w.eq(weights.data[n * per_output:(n + 1) * per_output]),
                pe.x.eq(x),
            ]
            total = Signal(layer.popcount_bits, name=f"total{n}", reset_less=True)
            with m.If(en & valid[-1]):
                m.d.sync += total.eq(Mux(first[-1], 0, total) + pe.o if first else pe.o)
            with m.If(en):
                m.d.sync += payload.word_select(n, self._output_bits).eq(
                    self._activate(total, table, n))
        return m

    def _banked(self, m, words, *, en, name):
        """Address of ``words``, which hold one part for every round."""
        return banked(m, len(words) // self._rounds, repeats=self._layer.positions,
                      banks=self._rounds, en=en, name=name)

    def _may_take(self, m, en, accept):
        """High except during a pause."""
        words, cycles = self._pause
        if not cycles:
            return C(1)
        left = Signal(range(cycles + 1))
        _, last = counter(m, words, en=accept, name="taken")
        with m.If(en & (left != 0)):
            m.d.sync += left.eq(left - 1)
        with m.If(accept & last):
            m.d.sync += left.eq(cycles)
        return left == 0

    def _activate(self, total, table, n):
        """Output of PE ``n``."""
        if self._layer.is_scores:
            return (total << 1) + table.entry(n, self._output_bits)
        levels, size = self._layer.levels, self._layer.popcount_bits
        return sum(at_least(total, table.entry(n * levels + k, size)) for k in range(levels))
