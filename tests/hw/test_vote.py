# amaranth: UnusedElaboratable=no
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import rtl
from benn_fpga import golden
from benn_fpga.hw.vote import HardVote, Voter
from benn_fpga.plan import latency

SCORE_BITS, TOTAL_BITS = 6, 14


def beats_of(scores, lanes, width):
    """Scores (..., classes) as one integer per ``lanes`` classes."""
    codes = np.asarray(scores).reshape(-1, lanes) & ((1 << width) - 1)
    return [sum(int(c) << (n * width) for n, c in enumerate(row)) for row in codes]


def rtl_vote(scores, weights, lanes, vote, **waits):
    """(winner, margin, totals) of each frame; scores (frames, rounds, engines, classes)."""
    frames, _, engines, classes = scores.shape
    width = 1 if vote == "hard" else SCORE_BITS
    voter = Voter(classes=classes, lanes=lanes, weights=weights.T.tolist(), vote_bits=width,
                  total_bits=TOTAL_BITS)
    sources = [(voter.i[n], beats_of(scores[:, :, n], lanes, width)) for n in range(engines)]
    beats, = rtl.stream(voter, sources, [(voter.o, frames)], **waits)
    answers = [beat.payload for beat in beats]
    return ([int(a.winner) for a in answers], [int(a.margin) for a in answers],
            [[int(t) for t in a.totals] for a in answers], beats)


def ref_vote(scores, weights):
    """The golden soft vote; one-hot scores make it the hard one."""
    model = SimpleNamespace(vote="soft", vote_weights=weights.ravel().tolist())
    return golden.vote(model, scores.reshape(len(scores), -1, scores.shape[-1]))


def draw_scores(rng, frames, rounds, engines, classes, high=20):
    """Small numbers, so that ties are common; the first two frames are ties throughout."""
    scores = rng.integers(-high, high + 1, (frames, rounds, engines, classes))
    scores[0], scores[1] = 0, -32
    scores[2:6] //= 10
    return scores


@pytest.mark.parametrize(("idle", "stall"), list(product([0, 3], [0, 3])))
@pytest.mark.parametrize(("classes", "lanes"), [(2, 1), (2, 2), (6, 1), (6, 2), (6, 3), (5, 5)])
@pytest.mark.parametrize(("engines", "rounds"), [(1, 1), (3, 1), (1, 3), (2, 2)])
def test_soft_vote(engines, rounds, classes, lanes, idle, stall):
    rng = np.random.default_rng(classes)
    scores = draw_scores(rng, 12, rounds, engines, classes)
    weights = rng.integers(-5, 6, (rounds, engines))
    classes_, margins, totals, _ = rtl_vote(scores, weights, lanes, "soft", idle=idle, stall=stall)
    expected = ref_vote(scores, weights)
    assert (classes_, margins, totals) == tuple(a.tolist() for a in expected)


def test_one_bit_votes():
    rng = np.random.default_rng(1)
    votes = rng.integers(0, 2, (12, 2, 2, 4))
    weights = rng.integers(-5, 6, (2, 2))
    classes, margins, totals, _ = rtl_vote(votes, weights, 2, "hard")
    assert (classes, margins, totals) == tuple(a.tolist() for a in ref_vote(votes, weights))


@pytest.mark.parametrize(("classes", "lanes", "engines"), [(6, 2, 3), (5, 5, 1), (4, 1, 2)])
def test_vote_latency(classes, lanes, engines):
    rng = np.random.default_rng(0)
    scores, weights = draw_scores(rng, 8, 1, engines, classes), np.ones((1, engines), int)
    *_, beats = rtl_vote(scores, weights, lanes, "soft")
    per_frame = classes // lanes
    first = per_frame - 1 + latency.vote_latency(engines, lanes)
    assert [b.cycle for b in beats] == [first + n * per_frame for n in range(8)]


@pytest.mark.parametrize(("idle", "stall"), list(product([0, 3], [0, 3])))
@pytest.mark.parametrize(("classes", "lanes"), [(2, 1), (2, 2), (6, 2), (6, 3), (5, 5), (7, 1)])
def test_hard_vote(classes, lanes, idle, stall):
    scores = draw_scores(np.random.default_rng(lanes), 12, 1, 1, classes)
    dut = HardVote(classes=classes, lanes=lanes, score_bits=SCORE_BITS)
    beats = beats_of(scores, lanes, SCORE_BITS)
    out, = rtl.stream(dut, [(dut.i, beats)], [(dut.o, len(beats))], idle=idle, stall=stall)
    one_hot = scores.reshape(-1, classes).argmax(axis=1)[:, None] == np.arange(classes)
    assert [b.payload for b in out] == beats_of(one_hot.astype(int), lanes, 1)
    if not idle and not stall:
        per_frame = classes // lanes
        assert out[per_frame - 1].cycle == per_frame - 1 + latency.hard_latency(lanes, per_frame)
        assert out[-1].cycle - out[0].cycle == len(beats) - 1


def test_wrong_lanes():
    with pytest.raises(ValueError, match=r"^Lanes must divide the 10 classes, not 3$"):
        HardVote(classes=10, lanes=3, score_bits=4)
    with pytest.raises(ValueError, match=r"^Every engine must have a weight for each round$"):
        Voter(classes=2, lanes=1, weights=[[1], [1, 2]], vote_bits=4, total_bits=6)
