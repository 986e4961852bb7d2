"""Input encoder: raw bytes to the elements that the first layer reads."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter
from benn_fpga.hw.rom import Rom
from benn_fpga.hw.threshold import at_least

__all__ = ["EncoderUnit"]


class EncoderUnit(wiring.Component):
    """Encodes ``lanes`` bytes per beat, as ``golden.encode`` does. Latency 1.

    ``threshold`` and ``thermometer``: element j of a value is [value >= t[j]]. ``planes``: the
    bits of the value, except those that are dropped. With thresholds of its own for each value
    they come from a memory, and no beat is taken in the first cycle after a reset.

    Parameters
    ----------
    encoder : spec.Encoder
    thresholds : words as from memories.encoder_words
    lanes : bytes of a beat

    Members
    -------
    i : In(stream of lanes * 8 bits)
    o : Out(stream of lanes * elements_per_value * element_bits bits)
    """

    def __init__(self, *, encoder, thresholds, lanes):
        positive(lanes=lanes)
        self._encoder = encoder
        self._thresholds = thresholds
        self._lanes = lanes
        super().__init__({
            "i": In(stream.Signature(lanes * 8)),
            "o": Out(stream.Signature(lanes * encoder.elements_per_value * encoder.element_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        en, taken = Signal(), Signal()
        payload = Signal.like(self.o.payload, reset_less=True)
        values = [self.i.payload.word_select(lane, 8) for lane in range(self._lanes)]
        if self._encoder.kind == "planes":
            low, high = self._encoder.dropped, self._encoder.bits
            codes, may_take = [value[low:high] for value in values], C(1)
        else:
            size, levels = self._encoder.bits + 1, self._encoder.levels
            entry, may_take = self._entries(m, size, levels * self._lanes, taken)
            codes = [at_least(value, entry(lane * levels + n, size))
                     for lane, value in enumerate(values) for n in range(levels)]
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(en & may_take),
            taken.eq(self.i.valid & self.i.ready),
            self.o.payload.eq(payload),
        ]
        with m.If(en):
            m.d.sync += [self.o.valid.eq(taken), payload.eq(Cat(codes))]
        return m

    def _entries(self, m, size, count, taken):
        """Thresholds of the beat at ``i``, as :meth:`Rom.entry` gives them, and when it may go."""
        first, *others = self._thresholds
        if not others:
            m.submodules.thresholds = rom = Rom([first], width=size * count)
            return rom.entry, C(1)
        # Two registers behind the memory, as for weights. The second holds the thresholds of the
        # beat at ``i``, those of a frame's first beat after a reset; the first has to be read once
        # after a reset, whatever was in it, before it holds those of the second beat.
        m.submodules.thresholds = rom = Rom([*others, first], width=size * count, latency=1)
        now, primed = Signal(size * count, init=first), Signal()
        ahead, _ = counter(m, len(self._thresholds), en=rom.en, name="ahead")
        m.d.comb += [rom.address.eq(ahead), rom.en.eq(~primed | taken)]
        m.d.sync += primed.eq(1)
        with m.If(taken):
            m.d.sync += now.eq(rom.data)
        return now.word_select, primed
