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
    low bits of the byte. With thresholds of its own for each value they come from a memory, and no
    beat is taken in the first cycle after a reset.

    Parameters
    ----------
    encoder : spec.Encoder
    thresholds : words as from images.encoder_words
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
        en, may_take = Signal(), Signal(init=1)
        payload = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(en & may_take),
            self.o.payload.eq(payload),
        ]
        values = [self.i.payload.word_select(lane, 8) for lane in range(self._lanes)]
        if self._encoder.kind == "planes":
            codes = [value[:self._encoder.bits] for value in values]
        else:
            size, levels = self._encoder.bits + 1, self._encoder.levels
            rom = self._rom(m, may_take, size * levels * self._lanes)
            codes = [at_least(value, rom.entry(lane * levels + n, size))
                     for lane, value in enumerate(values) for n in range(levels)]
        with m.If(en):
            m.d.sync += [self.o.valid.eq(self.i.valid & may_take), payload.eq(Cat(codes))]
        return m

    def _rom(self, m, may_take, width):
        """Thresholds of the beat at ``i``; ``may_take`` gets 0 as long as they are not there."""
        m.submodules.thresholds = rom = Rom(self._thresholds, width=width, latency=1)
        if rom.latency:
            # The memory is read one beat ahead: for the first beat right after a reset, whatever
            # was in its register, and for each other beat when the one before is taken.
            primed = Signal()
            m.d.sync += primed.eq(1)
            m.d.comb += [may_take.eq(primed), rom.en.eq(~primed | (self.i.valid & self.i.ready))]
        ahead, _ = counter(m, len(self._thresholds), en=rom.en, name="ahead")
        m.d.comb += rom.address.eq(ahead)
        return rom
