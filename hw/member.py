"""One engine: the layers of a member, one after another."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga import images
from benn_fpga.hw.joints import Gearbox, ReplayBuffer, SkidBuffer
from benn_fpga.hw.layer import Layer
from benn_fpga.schedule import pace

__all__ = ["Member", "frame_buffer"]


def frame_buffer(layer, fold, replays):
    """What stands before a layer: a ring that replays the frame, or where none is needed a skid."""
    width = fold.simd * layer.input_bits
    if replays == 1:
        return SkidBuffer(width)
    return ReplayBuffer(width, chunks=layer.inputs // fold.simd, replays=replays)


class Member(wiring.Component):
    """Engine ``engine`` of an ensemble: it runs members engine, M + engine, 2*M + engine, ...

    The first layer's frame comes replayed already, since all engines share that buffer.

    Parameters
    ----------
    model : spec.Ensemble
    folding : spec.Folding
    engine : 0 to folding.parallel - 1

    Members
    -------
    i : In(stream), chunks of the first layer
    o : Out(stream), scores of PE classes of the last layer per beat
    """

    def __init__(self, *, model, folding, engine):
        self._model = model
        self._folding = folding
        self._engine = engine
        first, last = folding.layers[0], folding.layers[-1]
        super().__init__({
            "i": In(stream.Signature(first.simd * model.layers[0].input_bits)),
            "o": Out(stream.Signature(last.pe * model.score_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        model, folding, engine = self._model, self._folding, self._engine
        source, width = wiring.flipped(self.i), None
        for n, (layer, fold) in enumerate(zip(model.layers, folding.layers, strict=True)):
            if n:
                m.submodules[f"gear{n}"] = gearbox = Gearbox(
                    width, fold.simd, frame=layer.inputs, element_bits=layer.input_bits)
                m.submodules[f"buffer{n}"] = buffer = frame_buffer(
                    layer, fold, layer.outputs // fold.pe)
                wiring.connect(m, source, gearbox.i)
                wiring.connect(m, gearbox.o, buffer.i)
                source = buffer.o
            scores = layer.is_scores
            m.submodules[f"layer{n}"] = unit = Layer(
                layer=layer, fold=fold, rounds=folding.rounds(model),
                weights=images.weight_words(model, folding, engine, n),
                table=(images.bias_words(model, folding, engine, n, model.score_bits) if scores else
                       images.threshold_words(model, folding, engine, n)),
                score_bits=model.score_bits if scores else None,
                pace=pace(model, folding, n))
            wiring.connect(m, source, unit.i)
            source, width = unit.o, fold.pe
        wiring.connect(m, source, wiring.flipped(self.o))
        return m
