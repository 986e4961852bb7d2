"""The voting unit: hard or soft vote with integer weights, margin, ties to the lowest class."""

from amaranth.hdl import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from benn_fpga.hw.pipeline import counter, delay, reduce_tree
from benn_fpga.hw.ram import buffer_attrs
from benn_fpga.plan.latency import tree_latency, voter_parts

__all__ = ["HardVote", "Voter", "decision_layout"]


def _better(a, b):
    """(value, index): the later of the two only if it is greater."""
    greater = b[0] > a[0]
    return Mux(greater, b[0], a[0]), Mux(greater, b[1], a[1])


def _best_two(a, b):
    """(best, index, second) of two such triples; second is None of a single value.

    All comparisons are made side by side.
    """
    best, index = _better(a[:2], b[:2])
    return best, index, Mux(b[0] > a[0], _greater(a[0], b[2]), _greater(b[0], a[2]))


def _greater(a, b):
    return a if b is None else Mux(a > b, a, b)


class HardVote(wiring.Component):
    """Scores to votes: 1 for the class of the greatest score, the lowest of those, 0 for others.

    Scores of every engine come ``lanes`` classes per word, lowest class first; votes leave the same
    way. Latency from the last word in to the last word out ``latency.hard_latency``; one word per
    cycle.

    Parameters
    ----------
    classes, lanes : ``lanes`` divides ``classes``
    score_bits : of a signed score
    engines : whose scores come together

    Members
    -------
    i : In(stream of lanes * score_bits bits of every engine)
    o : Out(stream of lanes bits of every engine)
    """

    def __init__(self, *, classes, lanes, score_bits, engines=1):
        if classes % lanes:
            raise ValueError(f"Lanes must divide the {classes} classes, not {lanes!r}")
        self._classes = classes
        self._lanes = lanes
        self._score_bits = score_bits
        self._engines = engines
        super().__init__({
            "i": In(stream.Signature(lanes * score_bits * engines, always_ready=True)),
            "o": Out(stream.Signature(lanes * engines, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        valid = delay(m, self.i.valid, tree_latency(self._lanes), name="valid", init=0)[-1]
        base, last = counter(m, self._classes, step=self._lanes, en=valid, name="base")
        done = delay(m, valid & last, 1, name="done", init=0)[-1]

        # The winner is held while the next frame is compared: that takes as long as its votes.
        busy = Signal()
        at, final = counter(m, self._classes, step=self._lanes, en=busy, name="at")
        m.d.comb += self.o.valid.eq(busy)
        with m.If(done | final):
            m.d.sync += busy.eq(done)
        held = [self._winner(m, n, valid, base, done) for n in range(self._engines)]
        m.d.comb += self.o.payload.eq(Cat(winner == at + n for n in range(self._lanes)
                                          for winner in held))
        return m

    def _winner(self, m, engine, valid, base, done):
        """The class of the greatest score of an engine, from the cycle after ``done`` on."""
        scores = [(self.i.payload.word_select(n * self._engines + engine,
                                              self._score_bits).as_signed(),
                   C(n, range(self._classes))) for n in range(self._lanes)]
        score, index = reduce_tree(m, scores, _better, name=f"best{engine}")
        best = Signal(signed(self._score_bits), name=f"score{engine}", reset_less=True)
        winner = Signal(range(self._classes), name=f"winner{engine}", reset_less=True)
        with m.If(valid & ((base == 0) | (score > best))):
            m.d.sync += [best.eq(score), winner.eq(base + index)]
        held = Signal.like(winner, name=f"held{engine}", reset_less=True)
        with m.If(done):
            m.d.sync += held.eq(winner)
        return held


def decision_layout(classes, total_bits):
    """Payload of a decision: the class, and the margin to the next best."""
    return data.StructLayout({"class_index": range(classes), "margin": unsigned(total_bits)})


class Voter(wiring.Component):
    """Adds the weighted votes of all members and finds the winner and its margin.

    The engines send ``lanes`` classes per word, lowest class first, once per round: ``total[c] =
    sum over engines m, rounds t of weight[m][t] * vote[m][t][c]``. The winner is the lowest class
    with the greatest total, the margin its lead over the next best. Latency from the last word
    ``latency.vote_latency``; one word per cycle. The totals of an answer leave before its decision,
    ``block`` words together.

    Parameters
    ----------
    classes, lanes : ``lanes`` divides ``classes``
    weights : per engine, a vote weight per round
    vote_bits : of a signed vote; 1 for hard votes, which are 0 or 1
    total_bits : of a signed total
    block : words of totals that leave together; it divides classes / lanes
    shared : whether the votes are those of all engines alike

    Members
    -------
    i : In(stream of lanes * vote_bits bits of every engine, unless they are ``shared``)
    o : Out(stream of decision_layout)
    totals : Out(stream of block * lanes * total_bits bits)
    """

    def __init__(self, *, classes, lanes, weights, vote_bits, total_bits, block=1, shared=False):
        if classes % lanes:
            raise ValueError(f"Lanes must divide the {classes} classes, not {lanes!r}")
        if classes // lanes % block:
            raise ValueError(f"Blocks must divide the {classes // lanes} words, not {block!r}")
        if len({len(rounds) for rounds in weights}) != 1:
            raise ValueError("Every engine must have a weight for each round")
        self._classes = classes
        self._lanes = lanes
        self._weights = weights
        self._vote_bits = vote_bits
        self._total_bits = total_bits
        self._block = block
        self._ways = 1 if shared else len(weights)
        super().__init__({
            "i": In(stream.Signature(lanes * vote_bits * self._ways, always_ready=True)),
            "o": Out(stream.Signature(decision_layout(classes, total_bits), always_ready=True)),
            "totals": Out(stream.Signature(block * lanes * total_bits, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        lanes, engines, rounds = self._lanes, len(self._weights), len(self._weights[0])
        words, shape = self._classes // lanes, signed(self._total_bits)
        word, end = counter(m, words, en=self.i.valid, name="beat")
        turn, final = counter(m, rounds, en=self.i.valid & end, name="turn")

        # Weigh, and add up over the engines.
        sums = []
        for lane in range(lanes):
            terms = []
            for n, weights in enumerate(self._weights):
                term = Signal(shape, name=f"term_{lane}_{n}")
                vote = self.i.payload.word_select(lane * self._ways + min(n, self._ways - 1),
                                                  self._vote_bits)
                m.d.comb += term.eq(self._weigh(vote, weights, turn))
                terms.append((delay(m, term, 1, name=term.name)[-1],))
            total, = reduce_tree(m, terms, lambda a, b: ((a[0] + b[0])[:len(a[0])].as_signed(),),
                                 name=f"sum_{lane}")
            sums.append(total)
        added, compared, decided = voter_parts(engines, lanes)
        valid = delay(m, self.i.valid, added, name="valid", init=0)[-1]
        final = delay(m, final, added, name="final")[-1]

        # Accumulate over the rounds.
        if rounds > 1:
            first = delay(m, turn == 0, added, name="first")[-1]
            sums = self._accumulate(m, sums, delay(m, word, added, name="beat")[-2:], first, valid)
        totals = [delay(m, total, 1, name=f"total{lane}")[-1]
                  for lane, total in enumerate(sums)]
        counted = delay(m, valid & final, compared, name="counted", init=0)
        self._send(m, Cat(totals), counted[1])
        valid = counted[-1]

        # Find the best two of a word, then of all words.
        best, index, second = reduce_tree(
            m, [(total, C(n, range(self._classes)), None) for n, total in enumerate(totals)],
            _best_two, name="best")
        base, end = counter(m, self._classes, step=lanes, en=valid, name="base")
        top = [Signal(shape, name="top", reset_less=True),
               Signal(range(self._classes), name="top_class", reset_less=True),
               Signal(shape, name="runner_up", reset_less=True)]
        word_best = (best, base + index, second)
        merged = _best_two(tuple(top), word_best)
        if second is None:  # below every total, which have a spare bit
            word_best = (*word_best[:2], C(-1 << (self._total_bits - 1), shape))
        with m.If(valid):
            m.d.sync += [field.eq(Mux(base == 0, fresh, both))
                         for field, fresh, both in zip(top, word_best, merged, strict=True)]

        decision = Signal(self.o.payload.shape(), reset_less=True)
        m.d.comb += [
            self.o.payload.eq(decision),
            self.o.valid.eq(delay(m, valid & end, decided, name="done", init=0)[-1]),
        ]
        m.d.sync += [decision.class_index.eq(top[1]), decision.margin.eq(top[0] - top[2])]
        return m

    def _send(self, m, word, valid):
        """Words of totals, some of them together."""
        if self._block == 1:
            m.d.comb += [self.totals.payload.eq(word), self.totals.valid.eq(valid)]
            return
        _, full = counter(m, self._block, en=valid, name="slot")
        block = Signal.like(self.totals.payload, reset_less=True)
        m.d.comb += [
            self.totals.payload.eq(block),
            self.totals.valid.eq(delay(m, valid & full, 1, name="full", init=0)[-1]),
        ]
        with m.If(valid):
            m.d.sync += block.eq(Cat(block, word)[len(word):])

    def _accumulate(self, m, sums, words_at, first, en):
        """``sums`` and, but in the first round, those of the same word in the rounds before;
        ``words_at`` are the positions of the next word and of this one."""
        size, words = self._total_bits, self._classes // self._lanes
        before, after = Signal(self._lanes * size), Signal(self._lanes * size)
        totals = [(Mux(first, 0, before.word_select(lane, size)) + value)[:size].as_signed()
                  for lane, value in enumerate(sums)]
        m.d.comb += after.eq(Cat(totals))
        if words == 1:
            partial = Signal.like(after, reset_less=True)
            m.d.comb += before.eq(partial)
            with m.If(en):
                m.d.sync += partial.eq(after)
            return totals
        # What is read is never what is being written: that is the word before it.
        m.submodules.partial = mem = memory.Memory(
            shape=after.shape(), depth=words, init=[], attrs=buffer_attrs(words, len(after)))
        write, read = mem.write_port(), mem.read_port()
        m.d.comb += [
            read.addr.eq(words_at[0]),
            before.eq(read.data),
            write.addr.eq(words_at[1]),
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
