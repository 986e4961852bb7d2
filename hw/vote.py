"""The voting unit: hard or soft vote with integer weights, margin, ties to the lowest class."""

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pipeline import counter, delay, reduce_tree
from benn_fpga.plan.latency import tree_latency

__all__ = ["HardVote", "Voter", "answer_layout"]


def _better(a, b):
    """(value, index): the later of the two only if it is greater."""
    greater = b[0] > a[0]
    return Mux(greater, b[0], a[0]), Mux(greater, b[1], a[1])


def _best_two(a, b):
    """(best, index, second) of two triples of that kind."""
    greater = b[0] > a[0]
    best, index = _better(a[:2], b[:2])
    loser, rest = Mux(greater, a[0], b[0]), Mux(greater, b[2], a[2])
    return best, index, Mux(loser > rest, loser, rest)


class HardVote(wiring.Component):
    """Turns a member's scores into its vote: 1 for the class with the best score, 0 for the others.

    Scores come ``lanes`` classes per word, lowest class first; votes leave the same way. Latency
    from the last word in to the last word out ``latency.hard_latency``; one word per cycle.

    Parameters
    ----------
    classes, lanes : ``lanes`` divides ``classes``
    score_bits : of a signed score

    Members
    -------
    i : In(stream of lanes * score_bits bits)
    o : Out(stream of lanes bits)
    """

    def __init__(self, *, classes, lanes, score_bits):
        if classes % lanes:
            raise ValueError(f"Lanes must divide the {classes} classes, not {lanes!r}")
        self._classes = classes
        self._lanes = lanes
        self._score_bits = score_bits
        super().__init__({
            "i": In(stream.Signature(lanes * score_bits)),
            "o": Out(stream.Signature(lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        levels = tree_latency(self._lanes)
        en, done, take = Signal(), Signal(), Signal()
        m.d.comb += [en.eq(~done | take), self.i.ready.eq(en)]

        scores = [(self.i.payload.word_select(n, self._score_bits).as_signed(),
                   C(n, range(self._classes))) for n in range(self._lanes)]
        score, index = reduce_tree(m, scores, _better, en=en, name="best")
        valid = delay(m, self.i.valid, levels, en=en, name="valid", init=0)[-1]

        base, last = counter(m, self._classes, step=self._lanes, en=en & valid, name="base")
        best = Signal(signed(self._score_bits), reset_less=True)
        winner = Signal(range(self._classes), reset_less=True)
        with m.If(en):
            m.d.sync += done.eq(valid & last)
            with m.If(valid & ((base == 0) | (score > best))):
                m.d.sync += [best.eq(score), winner.eq(base + index)]

        # The winner is held here while the next frame is compared.
        held = Signal.like(winner, reset_less=True)
        at, final = counter(m, self._classes, step=self._lanes, en=self.o.valid & self.o.ready,
                            name="at")
        m.d.comb += [
            take.eq(~self.o.valid | (self.o.ready & final)),
            self.o.payload.eq(Cat(held == at + n for n in range(self._lanes))),
        ]
        with m.If(take):
            m.d.sync += [held.eq(winner), self.o.valid.eq(done)]
        return m


def answer_layout(classes, total_bits):
    """Payload of an answer: winner, margin and all totals."""
    return data.StructLayout({
        "winner": range(classes),
        "margin": unsigned(total_bits),
        "totals": data.ArrayLayout(signed(total_bits), classes),
    })


class Voter(wiring.Component):
    """Adds the weighted votes of all members and finds the winner and its margin.

    Each of the engines sends ``lanes`` classes per word, lowest class first, once per round:
    ``total[c] = sum over engines m, rounds t of weight[m][t] * vote[m][t][c]``. The winner is the
    lowest class with the greatest total, the margin its lead over the next best. Latency from the
    last word ``latency.vote_latency``; one word per cycle.

    Parameters
    ----------
    classes, lanes : ``lanes`` divides ``classes``
    weights : per engine, a vote weight per round
    vote_bits : of a signed vote; 1 for hard votes, which are 0 or 1
    total_bits : of a signed total

    Members
    -------
    i : In(stream of lanes * vote_bits bits), an array of engines
    o : Out(stream of answer_layout)
    """

    def __init__(self, *, classes, lanes, weights, vote_bits, total_bits):
        if classes % lanes:
            raise ValueError(f"Lanes must divide the {classes} classes, not {lanes!r}")
        if len({len(rounds) for rounds in weights}) != 1:
            raise ValueError("Every engine must have a weight for each round")
        self._classes = classes
        self._lanes = lanes
        self._weights = weights
        self._vote_bits = vote_bits
        self._total_bits = total_bits
        super().__init__({
            "i": In(stream.Signature(lanes * vote_bits)).array(len(weights)),
            "o": Out(stream.Signature(answer_layout(classes, total_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        lanes, engines, rounds = self._lanes, len(self._weights), len(self._weights[0])
        words, shape = self._classes // lanes, signed(self._total_bits)
        en, here = Signal(), Signal()
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            here.eq(Cat(i.valid for i in self.i).all()),
        ]
        m.d.comb += [i.ready.eq(en & here) for i in self.i]

        word, end = counter(m, words, en=here & en, name="beat")
        turn, final = counter(m, rounds, en=here & en & end, name="turn")

        # Weigh, and add up over the engines.
        sums = []
        for lane in range(lanes):
            terms = []
            for n, (i, weights) in enumerate(zip(self.i, self._weights, strict=True)):
                term = Signal(shape, name=f"term_{lane}_{n}")
                m.d.comb += term.eq(self._weigh(i.payload.word_select(lane, self._vote_bits),
                                                weights, turn))
                terms.append((delay(m, term, 1, en=en, name=term.name)[-1],))
            total, = reduce_tree(m, terms, lambda a, b: ((a[0] + b[0])[:len(a[0])].as_signed(),),
                                 en=en, name=f"sum_{lane}")
            sums.append(total)
        added = 1 + tree_latency(engines)
        valid = delay(m, here, added, en=en, name="valid", init=0)[-1]
        final = delay(m, final, added, en=en, name="final")[-1]

        # Accumulate over the rounds.
        if rounds > 1:
            first = delay(m, turn == 0, added, en=en, name="first")[-1]
            word = delay(m, word, added, en=en, name="beat")[-1]
            sums = self._accumulate(m, sums, word, first, en & valid)
        totals = [delay(m, total, 1, en=en, name=f"total{lane}")[-1]
                  for lane, total in enumerate(sums)]
        valid = delay(m, valid & final, 1 + tree_latency(lanes), en=en, name="found", init=0)[-1]

        # Find the best two of a word, then of all words.
        least = C(-1 << (self._total_bits - 1), shape)  # below every total, which have a spare bit
        best, index, second = reduce_tree(
            m, [(total, C(n, range(self._classes)), least) for n, total in enumerate(totals)],
            _best_two, en=en, name="best")
        base, end = counter(m, self._classes, step=lanes, en=en & valid, name="base")
        top = [Signal(shape, name="top", reset_less=True),
               Signal(range(self._classes), name="top_class", reset_less=True),
               Signal(shape, name="runner_up", reset_less=True)]
        word_best = (best, base + index, second)
        merged = _best_two(tuple(top), word_best)
        with m.If(en & valid):
            m.d.sync += [field.eq(Mux(base == 0, fresh, both))
                         for field, fresh, both in zip(top, word_best, merged, strict=True)]

        # The answer. The totals move in word by word: those of the next frame from the cycle on in
        # which the port takes these. The port needs the copy that it sends, or the next frame would
        # have to wait for the last beat of the record.
        placed = delay(m, valid, 1, en=en, name="placed")[-1]
        done = delay(m, valid & end, 1, en=en, name="done", init=0)[-1]
        seen = Cat(delay(m, total, tree_latency(lanes) + 1, en=en, name=f"seen{lane}")[-1]
                   for lane, total in enumerate(totals))
        answer = Signal(self.o.payload.shape(), reset_less=True)
        m.d.comb += self.o.payload.eq(answer)
        with m.If(en):
            m.d.sync += [
                self.o.valid.eq(done),
                answer.winner.eq(top[1]),
                answer.margin.eq(top[0] - top[2]),
            ]
            with m.If(placed):
                m.d.sync += answer.totals.eq(Cat(answer.totals, seen)[len(seen):])
        return m

    def _accumulate(self, m, sums, word, first, en):
        """``sums`` and, but in the first round, those of the same ``word`` in the rounds before."""
        size, words = self._total_bits, self._classes // self._lanes
        before, after = Signal(self._lanes * size), Signal(self._lanes * size)
        totals = [(Mux(first, 0, before.word_select(lane, size)) + value)[:size].as_signed()
                  for lane, value in enumerate(sums)]
        m.d.comb += after.eq(Cat(totals))
        if words == 1:
            m.d.comb += before.eq(delay(m, after, 1, en=en, name="partial")[-1])
            return totals
        m.submodules.partial = mem = memory.Memory(shape=after.shape(), depth=words, init=[])
        write, read = mem.write_port(), mem.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(word),
            before.eq(read.data),
            write.addr.eq(word),
            write.data.eq(after),
            write.en.eq(en),
        ]
        return totals

    def _weigh(self, vote, weights, turn):
        """``vote`` times the weight of this round."""
        if self._vote_bits > 1:
            vote = vote.as_signed()
        if len(set(weights)) == 1:
            return vote * weights[0]
        width = max(abs(weight) for weight in weights).bit_length() + 1
        return vote * Array(C(weight, signed(width)) for weight in weights)[turn]
