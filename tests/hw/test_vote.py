# amaranth: UnusedElaboratable=no
from types import SimpleNamespace

import numpy as np
import pytest

import rtl
from benn_fpga import golden
from benn_fpga.hw.vote import HardVote, Voter
from benn_fpga.plan import latency

SCORE_BITS, TOTAL_BITS = 6, 14


def beats_of(scores, lanes, width):
    """Scores (..., engines, classes) as one integer per ``lanes`` classes of every engine."""
    *_, engines, classes = np.shape(scores)
    codes = np.reshape(scores, (-1, engines, classes)).swapaxes(1, 2) & ((1 << width) - 1)
    return [sum(int(c) << (n * width) for n, c in enumerate(row))
            for row in codes.reshape(-1, lanes * engines)]


def totals_of(beats, lanes, classes):
    """The totals, by frame, of beats that carry so many each."""
    codes = np.array([(beat.payload >> (n * TOTAL_BITS)) & ((1 << TOTAL_BITS) - 1)
                      for beat in beats for n in range(lanes)])
    return (codes - (codes >> (TOTAL_BITS - 1) << TOTAL_BITS)).reshape(-1, classes).tolist()


def rtl_vote(scores, weights, lanes, vote, block=1, **waits):
    """(class, margin, totals) of each frame; scores (frames, rounds, engines, classes), of one
    engine if they are those of all."""
    frames, _, engines, classes = scores.shape
    width = 1 if vote == "hard" else SCORE_BITS
    voter = Voter(classes=classes, lanes=lanes, weights=weights.T.tolist(), vote_bits=width,
                  total_bits=TOTAL_BITS, block=block, shared=engines < weights.shape[1])
    beats, totals = rtl.stream(
        voter, [(voter.i, beats_of(scores, lanes, width))],
        [(voter.o, frames), (voter.totals, frames * classes // lanes // block)], **waits)
    per_frame = len(totals) // frames  # all of a frame are there before its decision
    assert all(total.cycle < beat.cycle for total, beat in zip(totals[per_frame - 1::per_frame],
                                                               beats, strict=True))
    decisions = [beat.payload for beat in beats]
    return ([int(d.class_index) for d in decisions], [int(d.margin) for d in decisions],
            totals_of(totals, lanes * block, classes), beats)


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


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize(("classes", "lanes"), [(2, 1), (2, 2), (6, 1), (6, 2), (6, 3), (5, 5)])
@pytest.mark.parametrize(("engines", "rounds"), [(1, 1), (3, 1), (1, 3), (2, 2)])
def test_soft_vote(engines, rounds, classes, lanes, idle):
    rng = np.random.default_rng(classes)
    scores = draw_scores(rng, 12, rounds, engines, classes)
    weights = rng.integers(-5, 6, (rounds, engines))
    classes_, margins, totals, _ = rtl_vote(scores, weights, lanes, "soft", idle=idle)
    expected = ref_vote(scores, weights)
    assert (classes_, margins, totals) == tuple(a.tolist() for a in expected)


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize(("rounds", "lanes"), [(1, 2), (2, 1), (2, 4)])
def test_votes_that_engines_share(rounds, lanes, idle):
    rng = np.random.default_rng(rounds)
    scores, weights = draw_scores(rng, 12, rounds, 1, 4), rng.integers(-5, 6, (rounds, 3))
    classes, margins, totals, _ = rtl_vote(scores, weights, lanes, "soft", idle=idle)
    expected = ref_vote(scores.repeat(3, axis=2), weights)
    assert (classes, margins, totals) == tuple(a.tolist() for a in expected)


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize(("lanes", "block"), [(1, 2), (1, 6), (2, 3), (3, 2)])
def test_totals_that_leave_together(lanes, block, idle):
    rng = np.random.default_rng(block)
    scores, weights = draw_scores(rng, 8, 2, 2, 6), rng.integers(-5, 6, (2, 2))
    *_, totals, _ = rtl_vote(scores, weights, lanes, "soft", block, idle=idle)
    assert totals == ref_vote(scores, weights)[2].tolist()


def test_wrong_block():
    with pytest.raises(ValueError, match=r"^Blocks must divide the 6 words, not 4$"):
        Voter(classes=6, lanes=1, weights=[[1]], vote_bits=4, total_bits=8, block=4)


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


@pytest.mark.parametrize("idle", [0, 3])
@pytest.mark.parametrize("engines", [1, 3])
@pytest.mark.parametrize(("classes", "lanes"), [(2, 1), (2, 2), (6, 2), (6, 3), (5, 5), (7, 1)])
def test_hard_vote(classes, lanes, engines, idle):
    scores = draw_scores(np.random.default_rng(lanes), 12, 1, engines, classes)
    dut = HardVote(classes=classes, lanes=lanes, score_bits=SCORE_BITS, engines=engines)
    beats = beats_of(scores, lanes, SCORE_BITS)
    out, = rtl.stream(dut, [(dut.i, beats)], [(dut.o, len(beats))], idle=idle)
    one_hot = scores.argmax(axis=-1)[..., None] == np.arange(classes)
    assert [b.payload for b in out] == beats_of(one_hot.astype(int), lanes, 1)
    if not idle:
        per_frame = classes // lanes
        assert out[per_frame - 1].cycle == per_frame - 1 + latency.hard_latency(lanes, per_frame)
        assert out[-1].cycle - out[0].cycle == len(beats) - 1


@pytest.mark.parametrize("reset_at", [1, 4, 7, 8, 9, 10, 11, 13])
def test_reset(reset_at):
    rng = np.random.default_rng(0)
    scores, weights = draw_scores(rng, 6, 2, 2, 4), rng.integers(-5, 6, (2, 2))
    dut = Voter(classes=4, lanes=2, weights=weights.T.tolist(), vote_bits=SCORE_BITS,
                total_bits=TOTAL_BITS)
    beats = rtl.after_reset(dut, beats_of(scores, 2, SCORE_BITS), reset_at=reset_at, count=6)
    classes, margins, _ = ref_vote(scores, weights)
    assert [(int(beat.payload.class_index), int(beat.payload.margin)) for beat in beats] \
        == list(zip(classes, margins, strict=True))
    assert beats[0].cycle == reset_at + 1 + 3 + latency.vote_latency(2, 2)


@pytest.mark.parametrize("reset_at", [1, 3, 4, 5, 6, 7])
def test_hard_reset(reset_at):
    scores = draw_scores(np.random.default_rng(0), 6, 1, 2, 6)
    dut = HardVote(classes=6, lanes=3, score_bits=SCORE_BITS, engines=2)
    beats = rtl.after_reset(dut, beats_of(scores, 3, SCORE_BITS), reset_at=reset_at)
    one_hot = scores.argmax(axis=-1)[..., None] == np.arange(6)
    assert [b.payload for b in beats] == beats_of(one_hot.astype(int), 3, 1)
    assert beats[1].cycle == reset_at + 1 + 1 + latency.hard_latency(3, 2)


def test_wrong_lanes():
    with pytest.raises(ValueError, match=r"^Lanes must divide the 10 classes, not 3$"):
        HardVote(classes=10, lanes=3, score_bits=4)
    with pytest.raises(ValueError, match=r"^Every engine must have a weight for each round$"):
        Voter(classes=2, lanes=1, weights=[[1], [1, 2]], vote_bits=4, total_bits=6)
