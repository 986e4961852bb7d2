"""The voting unit: hard or soft vote with integer weights, margin, ties to the lowest class."""

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pipeline import delay, reduce_tree
from benn_fpga.schedule import tree_latency

__all__ = ["HardVote", "Voter", "answer_layout"]


def _better(a, b):
    """(value, index): the later of the two only if it is greater."""
    greater = b[0] > a[0]
    return Mux(greater, b[0], a[0]), Mux(greater, b[1], a[1])


def _best_two(a, b):
    """(best, index, second) of two such triples."""
    greater = b[0] > a[0]
    best, index = _better(a[:2], b[:2])
    loser, rest = Mux(greater, a[0], b[0]), Mux(greater, b[2], a[2])
    return best, index, Mux(loser > rest, loser, rest)


class HardVote(wiring.Component):
    """Turns a member's scores into its vote: 1 for the class with the best score, 0 for the others.

    Scores come ``lanes`` classes per beat, lowest class first; votes leave the same way. Latency
    from the last beat in to the last beat out ``schedule.hard_latency``; one beat per cycle.

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

        base = Signal(range(self._classes))
        last = Signal()
        best, winner = Signal(signed(self._score_bits)), Signal(range(self._classes))
        m.d.comb += last.eq(base == self._classes - self._lanes)
        with m.If(en):
            m.d.sync += done.eq(valid & last)
            with m.If(valid):
                m.d.sync += base.eq(Mux(last, 0, base + self._lanes))
                with m.If((base == 0) | (score > best)):
                    m.d.sync += [best.eq(score), winner.eq(base + index)]

        # The winner is held here while the next frame is compared.
        held, at = Signal.like(winner), Signal(range(self._classes))
        final = Signal()
        m.d.comb += [
            final.eq(at == self._classes - self._lanes),
            take.eq(~self.o.valid | (self.o.ready & final)),
            self.o.payload.eq(Cat(held == at + n for n in range(self._lanes))),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += at.eq(Mux(final, 0, at + self._lanes))
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

    Each of the engines sends ``lanes`` classes per beat, lowest class first, once per round:
    ``total[c] = sum over engines m, rounds t of weight[m][t] * vote[m][t][c]``. The winner is the
    lowest class with the greatest total, the margin its lead over the next best. Latency from the
    last beat ``schedule.vote_latency``; one beat per cycle.

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
        beats, shape = self._classes // lanes, signed(self._total_bits)
        en, here = Signal(), Signal()
        m.d.comb += [
            en.eq(~self.o.valid | self.o.ready),
            here.eq(Cat(i.valid for i in self.i).all()),
        ]
        m.d.comb += [i.ready.eq(en & here) for i in self.i]

        beat, turn = Signal(range(beats)), Signal(range(rounds))
        last = Signal()
        m.d.comb += last.eq(beat == beats - 1)
        with m.If(here & en):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
            with m.If(last):
                m.d.sync += turn.eq(Mux(turn == rounds - 1, 0, turn + 1))

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
        flags = {"valid": here, "beat": beat, "first": turn == 0, "final": turn == rounds - 1}
        flags = {name: delay(m, flag, added, en=en, name=name, init=0)[-1]
                 for name, flag in flags.items()}

        # Accumulate over the rounds.
        totals = [Signal(shape, name=f"total{lane}", reset_less=True) for lane in range(lanes)]
        if rounds > 1:
            m.submodules.partial = mem = memory.Memory(
                shape=unsigned(lanes * self._total_bits), depth=beats, init=[])
            write, read = mem.write_port(), mem.read_port(domain="comb")
            partial = [(Mux(flags["first"], 0, read.data.word_select(lane, self._total_bits))
                        + value)[:self._total_bits] for lane, value in enumerate(sums)]
            m.d.comb += [
                read.addr.eq(flags["beat"]),
                write.addr.eq(flags["beat"]),
                write.data.eq(Cat(partial)),
                write.en.eq(en & flags["valid"]),
            ]
        else:
            partial = sums
        with m.If(en):
            m.d.sync += [total.eq(value) for total, value in zip(totals, partial, strict=True)]
        valid = delay(m, flags["valid"] & flags["final"], 1 + tree_latency(lanes), en=en,
                      name="final_valid", init=0)[-1]

        # Find the best two of a beat, then of all beats.
        least = C(-1 << (self._total_bits - 1), shape)  # below every total, which have a spare bit
        best, index, second = reduce_tree(
            m, [(total, C(n, range(self._classes)), least) for n, total in enumerate(totals)],
            _best_two, en=en, name="best")
        seen = [delay(m, total, tree_latency(lanes), en=en, name=f"seen{n}")[-1]
                for n, total in enumerate(totals)]
        base, done, final = Signal(range(self._classes)), Signal(), Signal()
        top = [Signal(shape, name="top"), Signal(range(self._classes), name="winner"),
               Signal(shape, name="runner_up")]
        record = Signal(data.ArrayLayout(shape, self._classes), reset_less=True)
        m.d.comb += final.eq(base == self._classes - lanes)
        with m.If(en):
            m.d.sync += done.eq(valid & final)
            with m.If(valid):
                m.d.sync += base.eq(Mux(final, 0, base + lanes))
                here_best = (best, base + index, second)
                merged = _best_two(tuple(top), here_best)
                m.d.sync += [field.eq(Mux(base == 0, fresh, both)) for field, fresh, both
                             in zip(top, here_best, merged, strict=True)]
                for n in range(0, self._classes, lanes):
                    with m.If(base == n):
                        m.d.sync += [record[n + lane].eq(seen[lane]) for lane in range(lanes)]
            m.d.sync += [
                self.o.valid.eq(done),
                self.o.payload.winner.eq(top[1]),
                self.o.payload.margin.eq(top[0] - top[2]),
                self.o.payload.totals.eq(record),
            ]
        return m

    def _weigh(self, vote, weights, turn):
        """``vote`` times the weight of this round."""
        if self._vote_bits > 1:
            vote = vote.as_signed()
        if len(set(weights)) == 1:
            return vote * weights[0]
        width = max(abs(weight) for weight in weights).bit_length() + 1
        return vote * Array(C(weight, signed(width)) for weight in weights)[turn]
