"""One engine: the layers of a member, one after another."""

from functools import reduce
from operator import and_

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.joints import Fork, Gate, Gearbox, Queue, ReplayBuffer, SkidBuffer
from benn_fpga.hw.mvtu import MatrixVectorUnit
from benn_fpga.hw.pool import MaxPoolUnit, SumPoolUnit
from benn_fpga.hw.residual import AddUnit, ScaleUnit
from benn_fpga.hw.tiles import Tiles
from benn_fpga.hw.window import LineBuffer
from benn_fpga.layers import Add, MaxPool, Scale
from benn_fpga.plan import memories
from benn_fpga.plan.schedule import pace
from benn_fpga.plan.stages import consumers, integer_bits, stages, stalls, turn
from benn_fpga.spec import sources

__all__ = ["Member", "feed", "fork", "frame_buffer"]


def frame_buffer(layer, fold, replays):
    """What stands before a layer: a ring that replays the frame, or where none is needed a skid."""
    width = fold.simd * layer.input_bits
    if replays == 1:
        return SkidBuffer(width)
    return ReplayBuffer(width, chunks=layer.inputs // fold.simd, replays=replays)


def fork(m, source, members):
    """Give every beat of ``source`` to all members, each when it is ready."""
    m.submodules.fork = unit = Fork(members[0].i.payload.shape(), ways=len(members))
    _convey(m, source, unit.i)
    for member, o in zip(members, unit.o, strict=True):
        wiring.connect(m, o, member.i)


def feed(m, stage, element_bits, source, members):
    """Lead pixels to the first layer of all members, which is not dense.

    They share what cuts windows. If they are always ready, what they read goes to all of them
    through one register.
    """
    passed = _gate(m, stage, _front(m, stage, element_bits, source))
    m.d.comb += passed.room.eq(reduce(and_, (member.room for member in members)))
    m.d.comb += [member.take.eq(passed.take) for member in members]
    beat = members[0].i
    if not isinstance(beat.ready, Const):
        fork(m, passed.o, members)
        return
    now = stream.Signature(beat.payload.shape(), always_ready=True).create(path=("read",))
    payload, valid = Signal.like(now.payload, reset_less=True), Signal()
    _convey(m, passed.o, now)
    m.d.sync += [payload.eq(now.payload), valid.eq(now.valid)]
    for member in members:
        m.d.comb += [member.i.payload.eq(payload), member.i.valid.eq(valid)]


def _front(m, stage, element_bits, source):
    """Turn the pixels of the stream ``source`` into the taps that a stage reads."""
    if stage.is_tiled or stage.is_thinned:
        m.submodules[f"tiles{stage.n}"] = tiles = Tiles(
            stage.layer, lanes=stage.lanes_in, element_bits=element_bits)
        wiring.connect(m, source, tiles.i)
        source = tiles.o
    if stage.is_buffered:
        m.submodules[f"window{stage.n}"] = buffer = LineBuffer(
            stage.window, lanes=stage.lanes_in, element_bits=element_bits, folds=stage.folds,
            groups=stage.groups)
        _convey(m, source, buffer.i)
        source = buffer.o
    return source


def _gate(m, stage, source):
    """Before a stage: it lets what becomes a pixel pass if there is room for that."""
    m.submodules[f"gate{stage.n}"] = gate = Gate(
        source.payload.shape(), count=stage.reads, marked=stage.is_tiled)
    wiring.connect(m, source, gate.i)
    return gate


def _convey(m, source, sink):
    """Connect a stream of words or taps, without the fields that the sink does not have; a word
    alone is a tap in the image."""
    known, wanted = source.payload, sink.payload
    word = known.data if isinstance(known, data.View) else known
    if not isinstance(wanted, data.View):
        m.d.comb += wanted.eq(word)
    elif isinstance(known, data.View) and known.shape() == wanted.shape():
        m.d.comb += wanted.eq(known)
    else:
        m.d.comb += [wanted.data.eq(word), wanted.inside.eq(1)]
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


class Member(wiring.Component):
    """Engine ``engine`` of an ensemble: it runs members engine, M + engine, 2*M + engine, ...

    What the first layer reads comes ready to use, since all engines share its buffer: replayed
    frames for a dense layer, else the taps of windows. Every other layer reads pixels from a queue,
    in which who sends them has reserved a place, so that such a stage never stops; behind dense
    layers streams simply wait.

    Parameters
    ----------
    model : spec.Ensemble
    folding : spec.Folding
    engine : 0 to folding.parallel - 1
    queues : depth of every queue, as schedule says

    Members
    -------
    i : In(stream), what the first layer reads
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
        self._units = [self._unit(stage) for stage in self._stages]
        first, last = self._units[0], self._units[-1]
        super().__init__({
            "i": first.signature.members["i"],
            "o": last.signature.members["o"],
            **({} if self._stages[0].is_dense else {"room": Out(1), "take": In(1)}),
        })

    def elaborate(self, platform):
        m = Module()
        readers = consumers(self._model)
        inputs = {(0, 0): wiring.flipped(self.i)}
        for n, (stage, unit) in enumerate(zip(self._stages, self._units, strict=True)):
            ports = [inputs[n, port] for port in range(len(stage.layer.sources))]
            m.submodules[f"layer{n}"] = unit
            room, take = Signal(name=f"room{n}"), Signal(name=f"take{n}")
            if stage.is_dense or n == 0:
                wiring.connect(m, ports[0], unit.i)
            else:
                self._gated(m, stage, unit, ports, room, take)
            if n == 0 and not stage.is_dense:
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
        stops = {"stalls": stalls(stage, model)}

        def stored(key):
            return memories.constants(model, folding, engine, n, key)

        if stage.has_products:
            integers = layer.is_scores
            return MatrixVectorUnit(
                layer=layer, fold=stage.fold, rounds=rounds,
                weights=memories.weight_words(model, folding, engine, n),
                table=(memories.bias_words(model, folding, engine, n, width) if integers else
                       memories.threshold_words(model, folding, engine, n)),
                score_bits=width if integers else None,
                pace=pace(model, folding, n) if stage.is_dense else (1, 0), **stops)
        if isinstance(layer, MaxPool):
            return MaxPoolUnit(layer, lanes=stage.lanes_in, **stops)
        if isinstance(layer, Add):
            return AddUnit(lanes=stage.lanes_in, left_bits=reads[0], right_bits=reads[1],
                           output_bits=width, **stops)
        if isinstance(layer, Scale):
            return ScaleUnit(layer, lanes=stage.lanes_in, input_bits=reads[0], output_bits=width,
                             rounds=rounds, gain=stored("gain"), bias=stored("bias"), **stops)
        return SumPoolUnit(
            layer, lanes=stage.lanes_in, input_bits=reads[0], rounds=rounds,
            thresholds=stored("thresholds") if layer.output_bits else None,
            active=stored("active") if layer.relu else None,
            output_bits=None if layer.output_bits else width, **stops)

    def _read(self, m, stage, unit, readers, inputs, room, take):
        """Lead the output of a stage to all its readers, into ``inputs``; ``room`` says whether
        there is a place for a pixel, and ``take`` reserves it."""
        n, queues = stage.n, []
        for reader, port in readers:
            target, name = self._stages[reader], f"{reader}" if port == 0 else f"{reader}_{port}"
            source = unit.o
            if not stage.is_dense:
                m.submodules[f"queue{name}"] = queue = Queue(
                    stage.lanes_out * self._bits[n], count=stage.words_out,
                    depth=self._queues[reader, port])
                queues.append(queue)
                source = queue.o
            m.submodules[f"gear{name}"] = gearbox = Gearbox(
                stage.lanes_out, target.lanes_in, frame=turn(stage, target),
                element_bits=self._bits[n])
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
        m.d.comb += room.eq(reduce(and_, (queue.room for queue in queues), C(1)))
        for queue in queues:
            m.d.comb += [
                queue.i.payload.eq(unit.o.payload),
                queue.i.valid.eq(unit.o.valid),
                queue.take.eq(take),
            ]

    def _gated(self, m, stage, unit, ports, room, take):
        """Lead the inputs of a stage to its unit, a pixel at a time if there is room for what it
        becomes."""
        i = ports[0]
        if isinstance(stage.layer, Add):
            sink = unit.a
            wiring.connect(m, ports[1], unit.b)
        else:
            sink, bits = unit.i, self._element_bits(sources(stage.layer, stage.n)[0])
            i = _front(m, stage, bits, i)
        passed = _gate(m, stage, i)
        m.d.comb += [passed.room.eq(room), take.eq(passed.take)]
        _convey(m, passed.o, sink)
