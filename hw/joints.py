"""Stream joints: skid buffer, replay buffer, queue, gate and width converters.

Every joint obeys the stream rules (a payload holds until it is taken, ``valid`` does not depend on
``ready``) and passes one word per cycle where nothing stalls it. Two have readers that never stall:
a :class:`Serial`, and a :class:`Ring` that offers words ahead.
"""

from amaranth.hdl import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.check import positive
from benn_fpga.hw.pipeline import counter, delay, stock
from benn_fpga.hw.ram import buffer_attrs
from benn_fpga.plan.latency import MEMORY_LATENCY
from benn_fpga.plan.memories import is_block
from benn_fpga.plan.widths import gear

__all__ = ["Collect", "Converter", "Emit", "Gate", "Queue", "Ring", "Serial", "SkidBuffer"]


class SkidBuffer(wiring.Component):
    """Two-entry buffer that cuts the ``ready`` path. Latency 1.

    Parameters
    ----------
    shape : of the payload

    Members
    -------
    i : In(stream), o : Out(stream)
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        spare = Signal.like(self.i.payload, reset_less=True)
        payload = Signal.like(self.i.payload, reset_less=True)
        full = Signal()
        m.d.comb += [self.i.ready.eq(~full), self.o.payload.eq(payload)]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                payload.eq(Mux(full, spare, self.i.payload)),
                self.o.valid.eq(full | self.i.valid),
                full.eq(0),
            ]
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += [spare.eq(self.i.payload), full.eq(1)]
        return m


class Ring(wiring.Component):
    """Sends each frame of ``words`` words ``replays`` times, while the next frame comes in.

    A ring of two frames. A word is sent as soon as it is there and its slot is free as soon as it
    was sent for the last time, so neither side waits for a whole frame. Latency 2, or 1 with
    ``ahead``.

    Parameters
    ----------
    width : bits of the payload
    words : words of a frame
    replays : how often a frame is sent
    ahead : 0, or at least MEMORY_LATENCY: the cycles after which a payload follows that was offered
        and taken, there for one cycle

    Members
    -------
    i : In(stream), o : Out(stream)
    """

    def __init__(self, width, *, words, replays, ahead=0):
        positive(width=width, words=words, replays=replays)
        if ahead and ahead < MEMORY_LATENCY:
            raise ValueError(f"Ahead must be 0 or at least {MEMORY_LATENCY}, not {ahead!r}")
        self._words = words
        self._replays = replays
        self._ahead = ahead
        super().__init__({"i": In(stream.Signature(width)), "o": Out(stream.Signature(width))})

    def elaborate(self, platform):
        m = Module()
        depth = 2 * self._words
        # A word is read the cycle after it is written at the earliest (fresh), and its slot is
        # written the cycle after it is read for the last time at the earliest (free): the ports
        # never meet at an address, and synthesis need not care which would win.
        attrs = buffer_attrs(depth, len(self.i.payload))
        m.submodules.memory = mem = memory.Memory(
            shape=self.i.payload.shape(), depth=depth, init=[], attrs=attrs)
        write, read = mem.write_port(), mem.read_port()

        put, get, bank, freed = Signal(), Signal(), Signal(), Signal()
        first = Signal(init=1)  # a frame is sent for the first time
        # Words that were never sent, and slots that may be written.
        fresh = stock(m, depth, comes=put, goes=get & first, name="fresh")
        free = stock(m, depth, comes=freed, goes=put, name="free", full=True)
        address, _ = counter(m, depth, en=put, name="slot")
        word, end = counter(m, self._words, en=get, name="chunk")
        _, last = counter(m, self._replays, en=get & end, name="replay")
        source = Mux(bank, self._words, 0) + word
        m.d.comb += [
            self.i.ready.eq(free),
            put.eq(self.i.valid & self.i.ready),
            write.addr.eq(address),
            write.data.eq(self.i.payload),
            write.en.eq(put),
        ]
        with m.If(get & end):
            m.d.sync += [first.eq(last), bank.eq(bank ^ last)]
        gone = get & last
        if not self._ahead:
            m.d.comb += [read.addr.eq(source), read.en.eq(get), self.o.payload.eq(read.data)]
            m.d.comb += freed.eq(gone)
            with m.If(~self.o.valid | self.o.ready):
                m.d.comb += get.eq(~first | fresh)
                m.d.sync += self.o.valid.eq(get)
            return m

        m.d.comb += [
            self.o.valid.eq(~first | fresh),
            get.eq(self.o.valid & self.o.ready),
        ]
        m.d.comb += freed.eq(delay(m, gone, self._ahead - 1, name="gone", init=0)[-1])
        # Registers are fewer for the address, but a block RAM has two of its own.
        behind = int(is_block(depth, len(self.i.payload)))
        asked = delay(m, source, self._ahead - 1 - behind, name="asked")[-1]
        m.d.comb += [read.addr.eq(asked), read.en.eq(1),
                     self.o.payload.eq(delay(m, read.data, behind, name="data")[-1])]
        return m


class Queue(wiring.Component):
    """A queue of blocks of ``count`` words, whose slots are reserved before they are filled.

    Who sends a block must ``take`` a slot for it while there is ``room``; then its words never
    wait. The slot is free again when the last word of its block has left the memory. Latency 2.

    Parameters
    ----------
    width : bits of the payload
    count : words of a block
    depth : slots for blocks

    Members
    -------
    i : In(stream that is always ready), o : Out(stream)
    room : Out(1), a slot is free
    take : In(1), reserves it
    """

    def __init__(self, width, *, count, depth):
        positive(width=width, count=count, depth=depth)
        self._count = count
        self._depth = depth
        super().__init__({
            "i": In(stream.Signature(width, always_ready=True)),
            "o": Out(stream.Signature(width)),
            "room": Out(1),
            "take": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        size = self._count * self._depth
        # As in Ring the ports never meet at an address.
        m.submodules.memory = mem = memory.Memory(
            shape=self.i.payload.shape(), depth=size, init=[],
            attrs=buffer_attrs(size, len(self.i.payload)))
        write, read = mem.write_port(), mem.read_port()
        put, get = Signal(), Signal()
        tail, _ = counter(m, size, en=put, name="tail")
        head, _ = counter(m, size, en=get, name="head")
        _, whole = counter(m, self._count, en=get, name="beat")
        level = stock(m, size, comes=put, goes=get, name="level")
        free = stock(m, self._depth, comes=get & whole, goes=self.take, name="free",
                     full=True)
        m.d.comb += [
            self.room.eq(free),
            put.eq(self.i.valid),
            write.addr.eq(tail),
            write.data.eq(self.i.payload),
            write.en.eq(put),
            read.addr.eq(head),
            read.en.eq(get),
            self.o.payload.eq(read.data),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.comb += get.eq(level)
            m.d.sync += self.o.valid.eq(get)
        return m


class Gate(wiring.Component):
    """Lets the first of every ``count`` words pass only while there is ``room``. Latency 0.

    Parameters
    ----------
    shape : of the payload
    count : words of a block
    marked : only words whose payload has ``last`` set belong to blocks; others pass

    Members
    -------
    i : In(stream), o : Out(stream)
    room : In(1)
    take : Out(1), the first word of a block passes
    """

    def __init__(self, shape, *, count, marked=False):
        positive(count=count)
        self._count = count
        self._marked = marked
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "room": In(1),
            "take": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        may, passed, first = Signal(), Signal(), Signal(init=1)
        counted = self.i.p.last if self._marked else C(1)
        _, last = counter(m, self._count, en=passed & counted, name="beat")
        with m.If(passed & counted):
            m.d.sync += first.eq(last)
        starts = counted & first
        m.d.comb += [
            may.eq(~starts | self.room),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & may),
            self.i.ready.eq(self.o.ready & may),
            passed.eq(self.o.valid & self.o.ready),
            self.take.eq(passed & starts),
        ]
        return m


class Collect(wiring.Component):
    """``count`` words become one block, first word in the low bits. Latency 1 after the last.

    Parameters
    ----------
    width : bits of a word
    count : words of a block
    tail : (blocks, words): after so many blocks comes one of fewer words, and so on

    Members
    -------
    i : In(stream), o : Out(stream of width * count bits)
    """

    def __init__(self, width, *, count, tail=None):
        positive(width=width, count=count)
        self._width = width
        self._count = count
        self._tail = tail
        super().__init__({
            "i": In(stream.Signature(width)),
            "o": Out(stream.Signature(width * count)),
        })

    def elaborate(self, platform):
        m = Module()
        block, take = Signal.like(self.o.payload, reset_less=True), Signal()
        slot, full = _position(m, self._count, self._tail, en=take, name="slot")
        m.d.comb += [
            self.o.payload.eq(block),
            self.i.ready.eq(~self.o.valid | self.o.ready),
            take.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(take & full)
        with m.If(take):
            if self._tail is None:  # the first word has moved to the low bits when the last comes
                m.d.sync += block.eq(Cat(block, self.i.payload)[self._width:])
            else:
                m.d.sync += block.word_select(slot, self._width).eq(self.i.payload)
        return m


class Serial(wiring.Component):
    """One block becomes ``count`` words, low bits first; blocks come at least as many cycles apart.
    Latency 1.

    Parameters
    ----------
    width : bits of a word
    count : words of a block, at least 2

    Members
    -------
    i : In(stream of width * count bits that is always ready)
    o : Out(stream that is always ready)
    """

    def __init__(self, width, *, count):
        positive(width=width)
        if count < 2:
            raise ValueError(f"Count must be at least 2, not {count!r}")
        self._width = width
        self._count = count
        super().__init__({
            "i": In(stream.Signature(width * count, always_ready=True)),
            "o": Out(stream.Signature(width, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        block = Signal.like(self.i.payload, reset_less=True)
        left = Signal(self._count)  # a one for each word that is still to be sent
        m.d.comb += [self.o.payload.eq(block[:self._width]), self.o.valid.eq(left[0])]
        m.d.sync += [
            block.eq(Mux(self.i.valid, self.i.payload, block >> self._width)),
            left.eq(Mux(self.i.valid, C(1).replicate(self._count), left >> 1)),
        ]
        return m


class Emit(wiring.Component):
    """One block becomes ``count`` words, low bits first. Latency 1.

    Parameters
    ----------
    width : bits of a word
    count : words of a block
    tail : (blocks, words): after so many blocks comes one of fewer words, and so on

    Members
    -------
    i : In(stream of width * count bits), o : Out(stream)
    last : Out(1), the word on ``o`` is the last of its block
    """

    def __init__(self, width, *, count, tail=None):
        positive(width=width, count=count)
        self._width = width
        self._count = count
        self._tail = tail
        super().__init__({
            "i": In(stream.Signature(width * count)),
            "o": Out(stream.Signature(width)),
            "last": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        block = Signal.like(self.i.payload, reset_less=True)
        _, last = _position(m, self._count, self._tail, en=self.o.valid & self.o.ready, name="sent")
        m.d.comb += [
            self.o.payload.eq(block[:self._width]),
            self.last.eq(last),
            self.i.ready.eq(~self.o.valid | (self.o.ready & self.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [block.eq(self.i.payload), self.o.valid.eq(self.i.valid)]
        with m.Elif(self.o.ready):
            m.d.sync += block.eq(block[self._width:])
        return m


def _position(m, count, tail, *, en, name):
    """Position of a word in its block, and whether it is the last; ``en`` goes to the next word."""
    blocks, words = tail or (0, count)
    if words == count:
        return counter(m, count, en=en, name=name)
    at, last = Signal(range(count), name=name), Signal(name=f"{name}_last")
    _, short = counter(m, blocks + 1, en=en & last, name=f"{name}_block")
    m.d.comb += last.eq(at == Mux(short, words - 1, count - 1))
    with m.If(en):
        m.d.sync += at.eq(Mux(last, 0, at + 1))
    return at, last


class Converter(wiring.Component):
    """Width converter between words of ``elements_in`` and ``elements_out`` elements.

    Collects a block, then emits it, as ``widths.gear`` says; what a frame's last word holds past
    the end of the frame is dropped. Equal widths are wired through.

    Parameters
    ----------
    elements_in, elements_out : elements of a word; ``elements_out`` divides ``frame``
    frame : elements of a frame
    element_bits : bits of an element

    Members
    -------
    i : In(stream), o : Out(stream)
    """

    def __init__(self, elements_in, elements_out, *, frame, element_bits=1):
        positive(elements_in=elements_in, elements_out=elements_out, frame=frame,
                 element_bits=element_bits)
        if frame % elements_out:
            raise ValueError(f"Word of {elements_out} elements must divide the frame of {frame}")
        self._gear = gear(elements_in, elements_out, frame)
        self._in = elements_in * element_bits
        self._out = elements_out * element_bits
        super().__init__({
            "i": In(stream.Signature(self._in)),
            "o": Out(stream.Signature(self._out)),
        })

    def elaborate(self, platform):
        m = Module()
        gear = self._gear
        collected, emitted = ((gear.blocks, words) if gear.tail else None
                              for words in gear.tail or (0, 0))
        block = wiring.flipped(self.i)
        if gear.collect > 1:
            m.submodules.collect = collect = Collect(self._in, count=gear.collect, tail=collected)
            wiring.connect(m, block, collect.i)
            block = collect.o
        sink = wiring.flipped(self.o)
        if gear.emit > 1:
            m.submodules.emit = emit = Emit(self._out, count=gear.emit, tail=emitted)
            wiring.connect(m, emit.o, sink)
            sink = emit.i
        m.d.comb += [
            sink.payload.eq(block.payload),
            sink.valid.eq(block.valid),
            block.ready.eq(sink.ready),
        ]
        return m
