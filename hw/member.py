"""One engine: the layers of a member, one after another."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga import images
from benn_fpga.hw.joints import Fifo, Gate, Gearbox, ReplayBuffer, SkidBuffer, Subsample
from benn_fpga.hw.layer import Layer
from benn_fpga.hw.pool import MaxPoolUnit, SumPoolUnit
from benn_fpga.hw.residual import AddUnit, ScaleUnit
from benn_fpga.hw.window import LineBuffer, tap_layout
from benn_fpga.layers import Add, MaxPool, Scale
from benn_fpga.schedule import pace
from benn_fpga.spec import sources
from benn_fpga.stages import consumers, integer_bits, stages

__all__ = ["Member", "frame_buffer", "front", "tapped"]


def frame_buffer(layer, fold, replays):
    """What stands before a layer: a ring that replays the frame, or where none is needed a skid."""
    width = fold.simd * layer.input_bits
    if replays == 1:
        return SkidBuffer(width)
    return ReplayBuffer(width, chunks=layer.inputs // fold.simd, replays=replays)


def front(m, name, stage, element_bits, source):
    """Turn the pixels of the stream ``source`` into the taps that a stage reads."""
    width = stage.lanes_in * element_bits
    if stage.is_buffered:
        m.submodules[f"window{name}"] = buffer = LineBuffer(
            stage.layer, lanes=stage.lanes_in, element_bits=element_bits, folds=stage.folds,
            groups=stage.groups)
        wiring.connect(m, source, buffer.i)
        return buffer.o
    if stage.stride > 1:
        m.submodules[f"grid{name}"] = grid = Subsample(width, shape=stage.layer.shape[:2],
                                                       words=stage.words_in, stride=stage.stride)
        wiring.connect(m, source, grid.i)
        source = grid.o
    return tapped(m, name, source)


class Member(wiring.Component):
    """Engine ``engine`` of an ensemble: it runs members engine, M + engine, 2*M + engine, ...

    What the first layer reads comes ready to use, since all engines share its buffer: replayed
    frames for a dense layer, else the taps of windows. Every other layer reads pixels from a queue,
    in which who sends them has reserved a place, so that no stage ever stops in the middle of a
    pixel; behind dense layers streams simply wait.

    Parameters
    ----------
    model : spec.Ensemble
    folding : spec.Folding
    engine : 0 to folding.parallel - 1
    queues : depth of every queue, as schedule says

    Members
    -------
    i : In(stream), words of the first layer
    o : Out(stream), scores of PE classes of the last layer per beat
    room : Out(1), what the first layer gives has a place; unless that is dense
    take : In(1), reserves it
    """

    def __init__(self, *, model, folding, engine, queues):
        self._model = model
        self._folding = folding
        self._engine = engine
        self._queues = queues
        self._stages = stages(model, folding)
        self._bits = integer_bits(model)
        first, last = self._stages[0], self._stages[-1]
        super().__init__({
            "i": In(stream.Signature(first.lanes_in * model.layers[0].input_bits)),
            "o": Out(stream.Signature(last.lanes_out * model.score_bits)),
            **({} if first.is_dense else {"room": Out(1), "take": In(1)}),
        })

    def elaborate(self, platform):
        m = Module()
        readers = consumers(self._model)
        inputs = {(0, 0): wiring.flipped(self.i)}
        for n, stage in enumerate(self._stages):
            ports = [inputs[n, port] for port in range(len(stage.layer.sources))]
            m.submodules[f"layer{n}"] = unit = self._unit(stage)
            room, take = Signal(name=f"room{n}"), Signal(name=f"take{n}")
            if stage.is_dense:
                wiring.connect(m, ports[0], unit.i)
            elif n:
                self._gated(m, stage, unit, ports, room, take)
            else:
                _connect(m, tapped(m, n, ports[0]), unit.i)
                m.d.comb += [self.room.eq(room), take.eq(self.take)]
            self._read(m, stage, unit, readers[n], inputs, room, take)
        wiring.connect(m, unit.o, wiring.flipped(self.o))
        return m

    def _element_bits(self, source):
        return self._model.encoder.element_bits if source is None else self._bits[source]

    def _unit(self, stage):
        """The component that computes a layer."""
        model, folding, engine, n = self._model, self._folding, self._engine, stage.n
        layer, rounds, width = stage.layer, folding.rounds(model), self._bits[n]
        reads = [self._element_bits(source) for source in sources(layer, n)]

        def stored(key):
            return images.constants(model, folding, engine, n, key)

        if stage.has_products:
            integers = layer.is_scores
            return Layer(
                layer=layer, fold=stage.fold, rounds=rounds,
                weights=images.weight_words(model, folding, engine, n),
                table=(images.bias_words(model, folding, engine, n, width) if integers else
                       images.threshold_words(model, folding, engine, n)),
                score_bits=width if integers else None,
                pace=pace(model, folding, n) if stage.is_dense else (1, 0))
        if isinstance(layer, MaxPool):
            return MaxPoolUnit(layer, lanes=stage.lanes_in)
        if isinstance(layer, Add):
            return AddUnit(lanes=stage.lanes_in, left_bits=reads[0], right_bits=reads[1],
                           output_bits=width)
        if isinstance(layer, Scale):
            return ScaleUnit(layer, lanes=stage.lanes_in, input_bits=reads[0], output_bits=width,
                             rounds=rounds, gain=stored("gain"), bias=stored("bias"))
        return SumPoolUnit(
            layer, lanes=stage.lanes_in, input_bits=reads[0], rounds=rounds,
            thresholds=stored("thresholds") if layer.output_bits else None,
            active=stored("active") if layer.relu else None,
            output_bits=None if layer.output_bits else width)

    def _read(self, m, stage, unit, readers, inputs, room, take):
        """Lead the output of a stage to all its readers, into ``inputs``; ``room`` says whether
        there is a place for a pixel, and ``take`` reserves it."""
        n, queues = stage.n, []
        for reader, port in readers:
            target, name = self._stages[reader], f"{reader}" if port == 0 else f"{reader}_{port}"
            source = unit.o
            if not stage.is_dense:
                m.submodules[f"queue{name}"] = queue = Fifo(
                    stage.lanes_out * self._bits[n], count=stage.words_out,
                    depth=self._queues[reader, port])
                queues.append(queue)
                source = queue.o
            frame = target.layer.inputs if target.is_dense else stage.layer.output_shape[-1]
            m.submodules[f"gear{name}"] = gearbox = Gearbox(
                stage.lanes_out, target.lanes_in, frame=frame, element_bits=self._bits[n])
            wiring.connect(m, source, gearbox.i)
            inputs[reader, port] = gearbox.o
            if target.is_dense:
                m.submodules[f"buffer{name}"] = buffer = frame_buffer(
                    target.layer, target.fold, target.folds)
                wiring.connect(m, gearbox.o, buffer.i)
                inputs[reader, port] = buffer.o
        if stage.is_dense:
            return
        # A place was reserved in every queue, so that none makes the others wait.
        ready = reduce(and_, (queue.i.ready for queue in queues), C(1))
        m.d.comb += room.eq(reduce(and_, (queue.room for queue in queues), C(1)))
        if queues:
            m.d.comb += unit.o.ready.eq(ready)
        for queue in queues:
            m.d.comb += [
                queue.i.payload.eq(unit.o.payload),
                queue.i.valid.eq(unit.o.valid & ready),
                queue.take.eq(take),
            ]

    def _gated(self, m, stage, unit, ports, room, take):
        """Lead the inputs of a stage to its unit, a pixel at a time if there is room for what it
        becomes."""
        n = stage.n
        bits = self._element_bits(sources(stage.layer, n)[0])
        i, *others = ports
        if isinstance(stage.layer, Add):
            taps, sink = tapped(m, n, i), unit.a
            wiring.connect(m, others[0], unit.b)
        else:
            taps, sink = front(m, n, stage, bits, i), unit.i
        m.submodules[f"gate{n}"] = gate = Gate(taps.payload.shape(), count=stage.reads)
        m.d.comb += [gate.room.eq(room), take.eq(gate.take)]
        wiring.connect(m, taps, gate.i)
        _connect(m, gate.o, sink)


def tapped(m, name, source):
    """The stream ``source`` as one of taps inside the image."""
    taps = stream.Signature(tap_layout(len(source.payload))).create(path=(f"taps{name}",))
    m.d.comb += [
        taps.p.data.eq(source.payload),
        taps.p.inside.eq(1),
        taps.valid.eq(source.valid),
        source.ready.eq(taps.ready),
    ]
    return taps


def _connect(m, taps, sink):
    """Connect a stream of taps to one of taps, or to one that reads their data only."""
    if isinstance(sink.payload, data.View):
        m.d.comb += sink.payload.eq(taps.payload)
    else:
        m.d.comb += sink.payload.eq(taps.p.data)
    m.d.comb += [sink.valid.eq(taps.valid), taps.ready.eq(sink.ready)]
