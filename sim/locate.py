"""Finding the first neuron whose output in the hardware is not the golden model's."""

from benn_fpga import golden

__all__ = ["first_difference", "lanes"]


def lanes(word, count, width, signed):
    """The ``count`` numbers of ``width`` bits that one beat carries, first in the lowest bits."""
    codes = [(word >> (n * width)) & ((1 << width) - 1) for n in range(count)]
    return [code - (code >> (width - 1) << width) for code in codes] if signed else codes


def first_difference(model, folding, taps, beats, x, frames):
    """Name the first frame, member, layer and neuron that differ, or None if none does.

    Parameters
    ----------
    taps : of the manifest: which instance is which layer of which engine
    beats : by path of the tap, the integers it carried; per frame a beat per round and output fold
    x, frames : the frames that were streamed, and the numbers by which to call them
    """
    trace = golden.run(model, x, trace=True)
    for f, frame in enumerate(frames):
        for tap in sorted(taps, key=lambda tap: (tap["layer"], tap["member_engine"])):
            n, engine = tap["layer"], tap["member_engine"]
            layer, pe = model.layers[n], folding.layers[n].pe
            width = model.score_bits if layer.is_scores else layer.output_bits
            per_round = layer.outputs // pe
            for t in range(folding.rounds(model)):
                k = t * folding.parallel + engine
                expected = (trace.scores[f, k] if layer.is_scores
                            else trace.activations[k][n][f]).tolist()
                at = (f * folding.rounds(model) + t) * per_round
                got = [value for word in beats[tap["path"]][at:at + per_round]
                       for value in lanes(word, pe, width, layer.is_scores)]
                got += [None] * (layer.outputs - len(got))
                if got != expected:
                    j = next(j for j in range(layer.outputs) if got[j] != expected[j])
                    seen = "nothing" if got[j] is None else got[j]
                    return (f"frame {frame}, member {k}, layer {n}, neuron {j}: "
                            f"expected {expected[j]}, got {seen}")
    return None
