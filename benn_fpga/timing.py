"""The cycle model of streams: when every word passes every joint, to the cycle.

Units are processes that pass words through channels. Of each word a channel knows the cycle in
which it is first offered and that in which it is taken. A process is a generator that mirrors one
unit of the gateware; it yields while it waits for a number that another process has to find. The
order in which they run does not matter, since every number depends on earlier cycles only.
"""

from itertools import count

__all__ = ["Channel", "Queue", "collect", "emit", "register", "ring", "run", "skid",
           "source", "taken_at_once"]


class Channel:
    """Cycles in which the words of a stream are offered, and taken."""

    def __init__(self):
        self.offered = []
        self.taken = []


def run(channels, processes):
    """Let all processes go on until none can."""
    before = -1
    while before != (now := sum(len(c.offered) + len(c.taken) for c in channels)):
        before = now
        processes = [process for process in processes if next(process, False) is not False]


def source(o, planned):
    """Offers a word in each of the cycles ``planned``, or as soon as the one before is taken."""
    free = 0
    for n, cycle in enumerate(planned):
        o.offered.append(max(cycle, free))
        while len(o.taken) <= n:
            yield
        free = o.taken[n] + 1


def taken_at_once(i):
    """Takes every word when it is offered."""
    for n in count():
        while len(i.offered) <= n:
            yield
        i.taken.append(i.offered[n])


def register(i, o):
    """One register: a word is taken if there is none, or in the cycle in which it leaves."""
    left = 0
    for n in count():
        while len(i.offered) <= n:
            yield
        now = max(i.offered[n], left)
        i.taken.append(now)
        o.offered.append(now + 1)
        while len(o.taken) <= n:
            yield
        left = o.taken[n]


def skid(i, o):
    """hw.joints.SkidBuffer: two registers."""
    for n in count():
        while len(i.offered) <= n or len(o.taken) <= n - 2:
            yield
        now = max(i.offered[n], o.taken[n - 2] + 1 if n > 1 else 0)
        i.taken.append(now)
        while len(o.taken) <= n - 1:
            yield
        o.offered.append(max(now + 1, o.taken[n - 1] + 1 if n else 0))


def collect(i, o, size):
    """hw.joints.Collect: ``size`` words become one."""
    n = 0
    for block in count():
        while len(o.taken) < block:
            yield
        now = o.taken[block - 1] if block else 0
        for _ in range(size):
            while len(i.offered) <= n:
                yield
            now = max(i.offered[n], now)
            i.taken.append(now)
            n += 1
        o.offered.append(now + 1)


def emit(i, o, size):
    """hw.joints.Emit: a word becomes ``size``."""
    n = left = 0
    for block in count():
        while len(i.offered) <= block:
            yield
        now = max(i.offered[block], left)
        i.taken.append(now)
        for _ in range(size):
            o.offered.append(now + 1)
            while len(o.taken) <= n:
                yield
            now = left = o.taken[n]
            n += 1


def ring(i, o, chunks, replays, places):
    """hw.joints.ReplayBuffer: frames of ``chunks`` words, each sent ``replays`` times."""
    puts, gets, got = [], [], 0

    def put(n):
        """Take word ``n``, if it is offered and its place is known to be free."""
        if len(i.offered) <= n or (n >= places and len(gets) <= n - places):
            return False
        now = max(i.offered[n], gets[n - places] + 1 if n >= places else 0)
        i.taken.append(now)
        puts.append(now)
        return True

    left = sent = 0
    for frame in count():
        for replay in range(replays):
            for n in range(frame * chunks, (frame + 1) * chunks):
                if replay == 0:
                    while len(puts) <= n:
                        if not put(len(puts)):
                            yield
                    got = max(left, puts[n] + 1)
                else:
                    got = left
                if replay == replays - 1:
                    gets.append(got)
                o.offered.append(got + 1)
                while put(len(puts)):
                    pass
                while len(o.taken) <= sent:
                    yield
                    while put(len(puts)):
                        pass
                left = o.taken[sent]
                sent += 1


class Queue:
    """hw.joints.Fifo: blocks of ``size`` words, ``depth`` places; None for as many as are needed.

    Members
    -------
    starts : cycles in which a place was taken, by block; who sends them appends here
    released : cycles in which the last word of a block left the memory
    """

    def __init__(self, i, o, size, depth):
        self.i, self.o = i, o
        self.size = size
        self.depth = depth
        self.starts = []
        self.released = []

    def room(self, block):
        """First cycle with a place for ``block``; None if that is not known yet."""
        if self.depth is None or block < self.depth:
            return 0
        free = block - self.depth
        return self.released[free] + 1 if len(self.released) > free else None

    def process(self):
        left = 0
        for n in count():
            while len(self.i.offered) <= n:
                yield
            self.i.taken.append(self.i.offered[n])
            got = max(self.i.offered[n] + 1, left)
            if n % self.size == self.size - 1:
                self.released.append(got)
            self.o.offered.append(got + 1)
            while len(self.o.taken) <= n:
                yield
            left = self.o.taken[n]

    def most(self):
        """Places that were taken at once."""
        most = gone = 0
        for block, start in enumerate(self.starts):
            while gone < len(self.released) and self.released[gone] < start:
                gone += 1
            most = max(most, block + 1 - gone)
        return most
