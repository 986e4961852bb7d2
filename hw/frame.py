"""Frame guard: every frame that passes has the right length; the ones that had not are reported."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.joints import Queue
from benn_fpga.hw.pipeline import counter

__all__ = ["FrameGuard", "beat_layout"]


def beat_layout(lanes):
    """Payload of one AXI4-Stream beat of ``lanes`` bytes."""
    return data.StructLayout({"data": 8 * lanes, "keep": lanes, "last": 1})


class FrameGuard(wiring.Component):
    """Passes frames of ``size`` bytes. Latency 0.

    A frame that ends early is filled up with zero beats, one that runs on is cut, and what follows
    up to its ``last`` is dropped; either way ``error`` gets 1 for that frame, else 0. The frame is
    right only if ``last`` comes with its last byte and every byte up to there is kept.

    Parameters
    ----------
    lanes : bytes of a beat
    size : bytes of a frame
    depth : error flags that are queued; the frame after them waits

    Members
    -------
    i : In(stream of beat_layout), o : Out(stream of lanes * 8 bits)
    error : Out(stream of 1 bit), one per frame
    """

    def __init__(self, *, lanes, size, depth):
        positive(lanes=lanes, size=size, depth=depth)
        self._lanes = lanes
        self._size = size
        self._depth = depth
        super().__init__({
            "i": In(stream.Signature(beat_layout(lanes))),
            "o": Out(stream.Signature(8 * lanes)),
            "error": Out(stream.Signature(1)),
        })

    def elaborate(self, platform):
        m = Module()
        beats = -(-self._size // self._lanes)
        tail = self._size - (beats - 1) * self._lanes
        pass_on, wrong, bad = Signal(), Signal(), Signal()
        full, end = (1 << self._lanes) - 1, (1 << tail) - 1
        _, final = counter(m, beats, en=pass_on, name="beat")
        m.d.comb += wrong.eq((self.i.p.keep != Mux(final, end, full)) | (self.i.p.last != final))
        # The last beat waits until its error flag has a slot.
        m.submodules.errors = errors = Queue(1, count=1, depth=self._depth)
        wiring.connect(m, errors.o, wiring.flipped(self.error))
        source, error, may = Signal(), Signal(), Signal()
        m.d.comb += [
            may.eq(~final | errors.room),
            self.o.valid.eq(source & may),
            pass_on.eq(self.o.valid & self.o.ready),
            errors.i.payload.eq(error),
            errors.i.valid.eq(pass_on & final),
            errors.take.eq(pass_on & final),
        ]
        with m.If(pass_on):
            m.d.sync += bad.eq(error & ~final)
        with m.FSM():
            with m.State("PASS"):
                m.d.comb += [
                    source.eq(self.i.valid),
                    self.o.payload.eq(self.i.p.data),
                    self.i.ready.eq(self.o.ready & may),  # whether or not there is a beat
                    error.eq(bad | wrong),
                ]
                with m.If(pass_on & self.i.p.last & ~final):
                    m.next = "FILL"
                with m.If(pass_on & ~self.i.p.last & final):
                    m.next = "DROP"
            with m.State("FILL"):
                m.d.comb += [source.eq(1), error.eq(1)]
                with m.If(pass_on & final):
                    m.next = "PASS"
            with m.State("DROP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.p.last):
                    m.next = "PASS"
        return m
