"""Finding the first neuron whose output in the hardware is not the golden model's."""

from itertools import product
from operator import itemgetter

from benn_fpga import golden
from benn_fpga.plan.plan import plan

__all__ = ["first_difference", "lanes"]


def lanes(word, count, width, signed):
    """The ``count`` numbers of ``width`` bits that one beat carries, first in the lowest bits."""
    codes = [(word >> (n * width)) & ((1 << width) - 1) for n in range(count)]
    return [code - (code >> (width - 1) << width) for code in codes] if signed else codes


def first_difference(model, folding, taps, beats, x, frames):
    """Name the first frame, member, layer and neuron that differ, or None if none does.

    Parameters
    ----------
    taps : of the manifest: which instance is which layer, of so many engines side by side
    beats : by path of the tap, the integers it carried; per frame a beat per round and output word
    x, frames : the frames that were streamed, and the numbers by which to call them
    """
    trace = golden.run(model, x, trace=True)
    units, last = plan(model, folding).units, len(model.layers) - 1
    for f, frame in enumerate(frames):
        for tap, engine in product(sorted(taps, key=itemgetter("layer")), range(folding.parallel)):
            n, ways = tap["layer"], tap["engines"]
            o, layer = units[n].o, model.layers[n]
            for t in range(folding.rounds(model)):
                k = t * folding.parallel + engine
                expected = (trace.scores[f, k] if n == last
                            else trace.activations[k][n][f]).ravel().tolist()
                at = (f * folding.rounds(model) + t) * o.words
                got = [value for word in beats[tap["path"]][at:at + o.words]
                       for value in lanes(word, o.lanes * ways, o.element_bits,
                                          not layer.output_bits)[min(engine, ways - 1)::ways]]
                got += [None] * (len(expected) - len(got))
                if got != expected:
                    j = next(j for j in range(len(expected)) if got[j] != expected[j])
                    seen = "nothing" if got[j] is None else got[j]
                    return (f"frame {frame}, member {k}, layer {n}, {_neuron(layer, j)}: "
                            f"expected {expected[j]}, got {seen}")
    return None


def _neuron(layer, j):
    shape = layer.output_shape
    if len(shape) == 1:
        return f"neuron {j}"
    pixel, channel = divmod(j, shape[2])
    return f"row {pixel // shape[1]}, column {pixel % shape[1]}, channel {channel}"
