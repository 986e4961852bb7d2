"""Input encoder: raw bytes to the elements that the first layer reads."""

from amaranth.hdl import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["EncoderUnit"]


class EncoderUnit(wiring.Component):
    """Encodes ``lanes`` bytes per beat, as ``golden.encode`` does. Latency 1.

    ``threshold`` and ``thermometer``: element j of a value is [value >= t[j]]. ``planes``: the
    low bits of the byte. With thresholds of its own for each value they come from a memory.

    Parameters
    ----------
    encoder : spec.Encoder
    thresholds : as from images.encoder_thresholds
    lanes : bytes of a beat

    Members
    -------
    i : In(stream of lanes * 8 bits)
    o : Out(stream of lanes * elements_per_value * element_bits bits)
    """

    def __init__(self, *, encoder, thresholds, lanes):
        if not isinstance(lanes, int) or lanes < 1:
            raise ValueError(f"Lanes must be a positive integer, not {lanes!r}")
        self._encoder = encoder
        self._thresholds = thresholds
        self._lanes = lanes
        self._out = encoder.elements_per_value * encoder.element_bits
        super().__init__({
            "i": In(stream.Signature(lanes * 8)),
            "o": Out(stream.Signature(lanes * self._out)),
        })

    def elaborate(self, platform):
        m = Module()
        en = Signal()
        m.d.comb += [en.eq(~self.o.valid | self.o.ready), self.i.ready.eq(en)]
        with m.If(en):
            m.d.sync += self.o.valid.eq(self.i.valid)
        thresholds = None if self._encoder.kind == "planes" else self._lane_thresholds(m)
        for lane in range(self._lanes):
            byte = self.i.payload.word_select(lane, 8)
            if thresholds is None:
                code = byte[:self._encoder.bits]
            else:
                code = Cat(byte >= t for t in thresholds[lane])
            with m.If(en):
                m.d.sync += self.o.payload.word_select(lane, self._out).eq(code)
        return m

    def _lane_thresholds(self, m):
        """Thresholds of each lane, for the beat that is at ``i``."""
        rows = self._thresholds
        if len(set(rows)) == 1:
            return [rows[0]] * self._lanes
        size = 9  # a threshold is 0 to 256
        beats = -(-len(rows) // self._lanes)
        rows = rows + [(0,) * len(rows[0])] * (beats * self._lanes - len(rows))
        image = []
        for beat in range(beats):
            flat = [t for row in rows[beat * self._lanes:(beat + 1) * self._lanes] for t in row]
            image.append(sum(t << (size * n) for n, t in enumerate(flat)))
        levels = self._encoder.levels
        m.submodules.thresholds = mem = memory.Memory(
            shape=unsigned(size * levels * self._lanes), depth=beats, init=image)
        port = mem.read_port(domain="comb")
        beat = Signal(range(beats))
        m.d.comb += port.addr.eq(beat)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += beat.eq(Mux(beat == beats - 1, 0, beat + 1))
        flat = [port.data.word_select(n, size) for n in range(levels * self._lanes)]
        return [flat[lane * levels:(lane + 1) * levels] for lane in range(self._lanes)]
