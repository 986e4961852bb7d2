"""Integers between layers: brought to another scale, and added."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.banks import check_banks, interleaved, widened, word
from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import banked, delay
from benn_fpga.hw.rom import Rom
from benn_fpga.plan.latency import scale_latency
from benn_fpga.plan.memories import signed_bits

__all__ = ["AddUnit", "ScaleUnit"]


class ScaleUnit(wiring.Component):
    """``((gain * x + half) >> shift) + bias`` per channel, clipped to ±layer.top.

    A pixel comes in as channels/lanes words. After the pixels of an image comes the next round,
    with its own constants. Latency ``latency.scale_latency``, one word per cycle.

    Parameters
    ----------
    layer : layers.Scale
    lanes : channels of a word
    input_bits, output_bits : widths of a signed integer; the output's at least layer.integer_bits
    rounds : banks of constants
    gain, bias : per round and channel
    gain_bits, bias_bits : their widths, as signed numbers

    Members
    -------
    i : In(stream of lanes * input_bits bits)
    o : Out(stream of lanes * output_bits bits)
    """

    def __init__(self, layer, *, lanes, input_bits, output_bits, gain, bias, gain_bits, bias_bits,
                 rounds=1):
        positive(lanes=lanes, input_bits=input_bits, output_bits=output_bits, rounds=rounds,
                 gain_bits=gain_bits, bias_bits=bias_bits)
        channels = layer.shape[2]
        if channels % lanes:
            raise ValueError(f"Lanes {lanes} must divide the {channels} channels")
        if output_bits < layer.integer_bits:
            raise ValueError(f"Output bits must be at least the layer's {layer.integer_bits}, "
                             f"not {output_bits}")
        for noun, banks, width in (("Gain", gain, gain_bits), ("Bias", bias, bias_bits)):
            check_banks(noun, banks, rounds, channels)
            if signed_bits(banks) > width:
                raise ValueError(f"{noun} must fit {width} bits")
        self._layer = layer
        self._lanes = lanes
        self._input_bits = input_bits
        self._output_bits = output_bits
        self._rounds = rounds
        self._constants = {"gain": (gain, gain_bits), "bias": (bias, bias_bits)}
        super().__init__({
            "i": In(stream.Signature(lanes * input_bits, always_ready=True)),
            "o": Out(stream.Signature(lanes * output_bits, always_ready=True)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        widths = {f"{key}_bits": width for key, width in unit.constants}
        return cls(widened(unit.stage.layer, unit.o.ways), lanes=unit.i.lanes * unit.o.ways,
                   input_bits=unit.i.element_bits, output_bits=unit.o.element_bits,
                   rounds=unit.rounds, **widths, **interleaved(contents, unit.stage.n))

    def elaborate(self, platform):
        m = Module()
        layer, lanes = self._layer, self._lanes
        rows, columns, channels = layer.shape
        payload = Signal.like(self.o.payload, reset_less=True)
        latency = scale_latency(layer, lanes, self._rounds)
        valid = delay(m, self.i.valid, latency, name="valid", init=0)[-1]
        m.d.comb += [
            self.o.valid.eq(valid),
            self.o.payload.eq(payload),
        ]

        # The bias is needed two stages after the gain.
        row = banked(m, channels // lanes, repeats=rows * columns, banks=self._rounds,
                     en=self.i.valid, name="row")
        gains = self._rom(m, "gain", row)
        biases = self._rom(m, "bias", delay(m, row, 2, name="row")[-1])
        data = delay(m, self.i.payload, latency - 3, name="data")[-1]
        half = (1 << layer.shift) >> 1
        for n, (gain, bias) in enumerate(zip(gains, biases, strict=True)):
            x = data.word_select(n, self._input_bits).as_signed()
            product = delay(m, gain * x, 1, name=f"product{n}")[-1]
            shifted = delay(m, (product + half).shift_right(layer.shift), 1,
                            name=f"shifted{n}")[-1]
            y = shifted + bias
            m.d.sync += payload.word_select(n, self._output_bits).eq(
                Mux(y > layer.top, layer.top, Mux(y < -layer.top, -layer.top, y)))
        return m

    def _rom(self, m, name, row):
        """Each lane's constant of the channels in ``row``."""
        banks, width = self._constants[name]
        words = [word(bank[at:at + self._lanes], width) for bank in banks
                 for at in range(0, len(bank), self._lanes)]
        m.submodules[name] = rom = Rom(words, width=self._lanes * width)
        m.d.comb += rom.address.eq(row)
        return [rom.entry(n, width).as_signed() for n in range(self._lanes)]


class AddUnit(wiring.Component):
    """``a + b``, word by word. Latency 1, one word per cycle.

    Parameters
    ----------
    lanes : integers of a word
    left_bits, right_bits : widths of a signed integer of ``a`` and ``b``
    output_bits : width of a sum, in which all that occur must fit

    Members
    -------
    a : In(stream of lanes * left_bits bits), b : In(stream of lanes * right_bits bits)
    o : Out(stream of lanes * output_bits bits)
    """

    def __init__(self, *, lanes, left_bits, right_bits, output_bits):
        positive(lanes=lanes, left_bits=left_bits, right_bits=right_bits, output_bits=output_bits)
        if output_bits < max(left_bits, right_bits):
            raise ValueError(f"Output bits must be at least the {max(left_bits, right_bits)} of an "
                             f"input, not {output_bits}")
        self._lanes = lanes
        self._widths = left_bits, right_bits, output_bits
        super().__init__({
            "a": In(stream.Signature(lanes * left_bits)),
            "b": In(stream.Signature(lanes * right_bits)),
            "o": Out(stream.Signature(lanes * output_bits, always_ready=True)),
        })

    @classmethod
    def planned(cls, unit, contents):
        """The component of a :class:`~benn_fpga.plan.nodes.Unit`."""
        left, right = unit.ports
        return cls(lanes=left.lanes * left.ways, left_bits=left.element_bits,
                   right_bits=right.element_bits, output_bits=unit.o.element_bits)

    def elaborate(self, platform):
        m = Module()
        left, right, width = self._widths
        payload = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += [
            self.a.ready.eq(self.b.valid),
            self.b.ready.eq(self.a.valid),
            self.o.payload.eq(payload),
        ]
        m.d.sync += self.o.valid.eq(self.a.valid & self.b.valid)
        for n in range(self._lanes):
            m.d.sync += payload.word_select(n, width).eq(
                self.a.payload.word_select(n, left).as_signed()
                + self.b.payload.word_select(n, right).as_signed())
        return m
