"""The tests notice: each of these faults, put into the code, makes a test fail."""

from pathlib import Path

import pytest

import fresh

HERE = Path(__file__).parent

FAULTS = {
    "flipped weight bit": (
        "test_mvtu.py::test_unit[scores-2-4-0]", "benn_fpga.plan.memories",
        "        codes = codes.reshape(nf, fold.pe, sf, fold.simd)",
        "        codes[-1, -1] ^= 1; codes = codes.reshape(nf, fold.pe, sf, fold.simd)"),
    "threshold off by one": (
        "test_mvtu.py::test_unit[binary-2-4-0]", "benn_fpga.plan.memories",
        "layer.max_sum + 1) // 2", "layer.max_sum + 3) // 2"),
    "swapped tie rule of the vote": (
        "test_vote.py::test_soft_vote[1-1-5-5-0]", "benn_fpga.hw.vote",
        '"""(value, index): the later of the two only if it is greater."""\n'
        "    greater = b[0] > a[0]",
        "greater = b[0] >= a[0]"),
    "swapped tie rule between beats": (
        "test_vote.py::test_hard_vote[7-1-1-0]", "benn_fpga.hw.vote", "(score > best)",
        "(score >= best)"),
    "layer that adds what comes in a gap": (
        "test_mvtu.py::test_unit[binary-2-4-3]", "benn_fpga.hw.mvtu",
        "with m.If(self.valid):", "with m.If(C(1)):"),
    "accumulator that does not start from the table": (
        "test_mvtu.py::test_unit[scores-2-4-0]", "benn_fpga.hw.mvtu",
        "total = self._accumulator(m, n, size, table.entry(n, size),",
        "total = self._accumulator(m, n, size, C(0),"),
    "table that is read when it is needed": (
        "test_mvtu.py::test_unit[binary-1-12-0]", "benn_fpga.hw.mvtu",
        "early = engines[0].table_asked", "early = engines[0].table_asked + 1"),
    "sum that goes on from the output word before": (
        "test_mvtu.py::test_unit[two bits-2-4-0]", "benn_fpga.hw.mvtu",
        "Mux(self.first, start, total)", "total"),
    "engines that read each other's inputs": (
        "test_mvtu.py::test_engines[binary-2-2-2-4-False-0]", "benn_fpga.hw.mvtu",
        "x.word_select(k * self._ways + way, size)", "x.word_select(way * fold.simd + k, size)"),
    "engines that all read the inputs of the first": (
        "test_mvtu.py::test_engines[scores-3-1-3-6-False-0]", "benn_fpga.hw.mvtu",
        "way = min(n, self._ways - 1)", "way = 0"),
    "outputs engine by engine": (
        "test_mvtu.py::test_engines[binary-2-2-2-4-True-0]", "benn_fpga.hw.mvtu",
        "for k in range(fold.pe)\n            for engine in engines))",
        "for engine in engines\n            for k in range(fold.pe)))"),
    "weights that come after a word that was offered ahead": (
        "test_mvtu.py::test_words_that_come_after_they_were_offered[binary-12-2-2-0]",
        "benn_fpga.hw.mvtu", "max(0, latency - self._ahead)", "latency"),
    "weights that come before a word that was offered ahead": (
        "test_mvtu.py::test_words_that_come_after_they_were_offered[binary-12-3-2-0]",
        "benn_fpga.hw.mvtu", "max(0, self._ahead - latency)", "0"),
    "words left over from before a reset": (
        "test_mvtu.py::test_reset[binary-6]", "benn_fpga.hw.mvtu",
        'accumulated, name="valid", init=0)', 'accumulated, name="valid")'),
    "bits left over that are not carried": (
        "test_popcount.py::test_popcount[19-1]", "benn_fpga.hw.popcount",
        "Cat(carry, b)", "Cat(C(0, 1), b)"),
    "zeros that are counted as ones": (
        "test_leaves.py::test_popcounts[13]", "benn_fpga.hw.leaves",
        "inverted.append(zeros)", "inverted.append(0)"),
    "offset of a leaf that is not taken from the threshold": (
        "test_mvtu.py::test_constant_weights[13]", "benn_fpga.hw.unrolled",
        "t - offsets[n]", "t"),
    "leaf that comes a cycle before its adder": (
        "test_leaves.py::test_popcounts[24]", "benn_fpga.hw.leaves",
        "bit(source, leaf.adder)", "bit(source, max(0, leaf.adder - 1))"),
    "carry of a sum that is lost": (
        "test_leaves.py::test_popcounts[24]", "benn_fpga.hw.leaves",
        "_sum(total, operand, carry[n],", "_sum(total, operand, C(0),"),
    "leaves of the first member for all": (
        "test_mvtu.py::test_engines[binary-2-1-6-12-False-0]", "benn_fpga.hw.mvtu",
        "if n < self._ways:", "if n < 1:"),
    "a cycle too many in the cycle model of constants": (
        "test_mvtu.py::test_constant_weights[13]", "benn_fpga.plan.latency",
        "        compare = 1\n", "        compare = 2\n"),
    "skid buffer that drops a stall": (
        "test_joints.py::test_skid_buffer", "benn_fpga.hw.joints", "self.i.ready.eq(~full)",
        "self.i.ready.eq(1)"),
    "replay buffer that overruns": (
        "test_joints.py::test_replay_buffer[3-2-0-0]", "benn_fpga.hw.joints",
        "self.i.ready.eq(free)", "self.i.ready.eq(1)"),
    "word of a ring that comes a cycle late": (
        "test_joints.py::test_replay_buffer_ahead[7-3-2-0-0]", "benn_fpga.hw.joints",
        "self._ahead - 1 - behind", "self._ahead - behind"),
    "word of a ring of block RAM that comes a cycle late": (
        "test_joints.py::test_replay_buffer_ahead[32-32-2-0-0]", "benn_fpga.hw.joints",
        'delay(m, read.data, behind, name="data")', 'delay(m, read.data, 2, name="data")'),
    "slot of a ring that is free a cycle too early": (
        "test_joints.py::test_replay_buffer_ahead[7-3-2-0-0]", "benn_fpga.hw.joints",
        'delay(m, gone, self._ahead - 1, name="gone", init=0)[-1]', "gone"),
    "word of a line buffer that comes a cycle late": (
        "test_window.py::test_geometry[rows left over-0-0]", "benn_fpga.hw.window",
        '("data", read.data, 1)', '("data", read.data, 2)'),
    "mark of a word that comes a cycle late": (
        "test_window.py::test_geometry[same-0-0]", "benn_fpga.hw.window",
        '("inside", word.inside, 2)', '("inside", word.inside, 3)'),
    "words offered ahead to a unit that does not know of it": (
        "test_ensemble.py::test_pool_of_windows_that_overlap[1]", "benn_fpga.hw.pool",
        "delay(m, i.valid, ahead,", "delay(m, i.valid, 0,"),
    "thresholds left over from before a reset": (
        "test_encoder.py::test_reset_in_a_frame", "benn_fpga.hw.encoder",
        "return now.word_select, primed", "return now.word_select, C(1)"),
    "thresholds that move on in a stall": (
        "test_encoder.py::test_thresholds_per_value", "benn_fpga.hw.encoder",
        "rom.en.eq(~primed | taken)", "rom.en.eq(1)"),
    "totals that move on in a gap": (
        "test_vote.py::test_totals_that_leave_together[1-2-3]", "benn_fpga.hw.vote",
        "with m.If(valid):\n            m.d.sync += block",
        "if True:\n            m.d.sync += block"),
    "second best of a word that is not compared": (
        "test_vote.py::test_soft_vote[1-1-6-3-0]", "benn_fpga.hw.vote",
        "_greater(b[0], a[2])", "a[2] if a[2] is not None else b[0]"),
    "total of a word that the port skips": (
        "test_port.py::test_records[6-8-1-0-0]", "benn_fpga.hw.port",
        "totals.ready.eq(source.ready & ~in_head)", "totals.ready.eq(source.ready)"),
    "error flag of the next answer": (
        "test_port.py::test_records[6-8-1-0-3]", "benn_fpga.hw.port",
        "now = Mux(in_head, flag.payload, user)", "now = flag.payload"),
    "rounds that are not added": (
        "test_vote.py::test_soft_vote[1-3-5-5-0]", "benn_fpga.hw.vote",
        "Mux(first, 0, before.word_select(lane, size))", "0"),
    "rounds that are added to those of the frame before": (
        "test_vote.py::test_soft_vote[1-3-6-2-0]", "benn_fpga.hw.vote",
        "Mux(first, 0, before.word_select(lane, size))", "before.word_select(lane, size)"),
    "hard vote of the scores of another engine": (
        "test_vote.py::test_hard_vote[6-2-3-0]", "benn_fpga.hw.vote",
        "n * self._engines + engine", "engine * self._lanes + n"),
    "votes of the first engine for all": (
        "test_vote.py::test_soft_vote[3-1-5-5-0]", "benn_fpga.hw.vote",
        "lane * self._ways + min(n, self._ways - 1)", "lane * self._ways"),
    "margin to reject by that is rejected": (
        "test_port.py::test_flags[7]", "benn_fpga.hw.port", "margin < self._reject",
        "margin <= self._reject"),
    "filling that is not zero": (
        "test_frame.py::test_frame_of_another_size", "benn_fpga.hw.frame",
        "m.d.comb += [source.eq(1), error.eq(1)]",
        "m.d.comb += [source.eq(1), error.eq(1), self.o.payload.eq(self.i.p.data)]"),
    "long frame that is not dropped": (
        "test_frame.py::test_frame_of_another_size[16-0-0]", "benn_fpga.hw.frame",
        'm.next = "DROP"', "pass"),
    "flag for which there is no room": (
        "test_frame.py::test_frames_wait_for_room_in_the_queue", "benn_fpga.hw.frame",
        "may.eq(~final | errors.room)", "may.eq(1)"),
    "answer left over from before a reset": (
        "test_vote.py::test_reset", "benn_fpga.hw.vote",
        'decided, name="done", init=0)', 'decided, name="done")'),
    "votes left over from before a reset": (
        "test_vote.py::test_reset", "benn_fpga.hw.vote",
        'added, name="valid", init=0)', 'added, name="valid")'),
    "hard vote left over from before a reset": (
        "test_vote.py::test_hard_reset", "benn_fpga.hw.vote",
        "busy = Signal()", "busy = Signal(reset_less=True)"),
    "wrong frame left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[31]", "benn_fpga.hw.frame",
        "pass_on, wrong, bad = Signal(), Signal(), Signal()",
        "pass_on, wrong, bad = Signal(), Signal(), Signal(reset_less=True)"),
    "beat left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[4]", "benn_fpga.hw.joints",
        "        full = Signal()", "        full = Signal(reset_less=True)"),
    "gates that do not know of the room in queues": (
        "test_ensemble.py::test_idle_and_stall[small-soft-0-20]", "benn_fpga.hw.ensemble",
        "reduce(and_, (queue.room for queue in queues))", "1"),
    "slot for an answer that is not reserved": (
        "test_ensemble.py::test_idle_and_stall[small-soft-0-20]", "benn_fpga.hw.ensemble",
        "for queue in queues]\n\n", "for queue in queues\n"
        "                         if queue is not parts['answers']]\n\n"),
    "slot for an answer that every round reserves": (
        "test_ensemble.py::test_idle_and_stall[small-soft-0-0]", "benn_fpga.plan.plan",
        "self._rounds * stage.reads\n", "stage.reads\n"),
    "a cycle too many in the cycle model": (
        "test_mvtu.py::test_unit[binary-2-4-0]", "benn_fpga.plan.latency",
        "accumulate, compare = 1, ", "accumulate, compare = 2, "),
    "queue of error flags that is too shallow": (
        "test_ensemble.py::test_every_gap[0]", "benn_fpga.plan.cycles",
        "_held(plan, busy, depths), depths)", "5, depths)"),
    "window that starts before its last pixel is there": (
        "test_window.py::test_geometry[same-9-0]", "benn_fpga.hw.window",
        "init=steps[0].last - 1)", "init=steps[0].last - 2)"),
    "window that needs as much as the one before": (
        "test_window.py::test_geometry[same-9-0]", "benn_fpga.hw.window",
        "steps[n + 1].last - steps[n].last", "0"),
    "columns that are counted from one": (
        "test_window.py::test_geometry[same-9-0]", "benn_fpga.hw.window",
        "number = Mux(at <= n * step,", "number = Mux(at < n * step,"),
    "line buffer that overruns": (
        "test_window.py::test_geometry[same-0-2]", "benn_fpga.hw.window",
        "+ 1), init=depth)", "+ 2), init=depth + 1)"),
    "pixels that are freed in every replay": (
        "test_window.py::test_geometry[same-0-2]", "benn_fpga.hw.window",
        "frees = last_group & last_replay & part_ends", "frees = last_group & part_ends"),
    "pixels that are freed a row too early": (
        "test_window.py::test_geometry[rows outside-0-2]", "benn_fpga.plan.geometry",
        "(min(pad, kh - 1), min(stride, kw) - 1)", "(0, min(stride, kw) - 1)"),
    "jump to the next row of windows that is off by one": (
        "test_window.py::test_geometry[same-0-0]", "benn_fpga.hw.window",
        "offset(stride * width - back)", "offset(stride * width - back + 1)"),
    "jump to the next frame that is off by one": (
        "test_window.py::test_geometry[rows left over-0-0]", "benn_fpga.hw.window",
        "* width - back))", "* width - back + 1))"),
    "padding that counts as image": (
        "test_window.py::test_geometry[same-0-0]", "benn_fpga.hw.window",
        "(x < width + pad)", "(x <= width + pad)"),
    "line buffer with a pixel too many": (
        "test_window.py::test_memory", "benn_fpga.plan.geometry",
        "if self.layer.taps == 1 else self.depth", "if self.layer.taps == 1 else self.depth + 1"),
    "window of registers that moves before it was read": (
        "test_sliding.py::test_cycles[same-2]", "benn_fpga.hw.sliding",
        "(self.o.ready & words_end & replays_end)", "(self.o.ready & words_end)"),
    "window of registers that is complete a step early": (
        "test_sliding.py::test_cycles[same-1]", "benn_fpga.hw.sliding",
        "init=slide.first)", "init=slide.first - 1)"),
    "rows of registers in the wrong order": (
        "test_sliding.py::test_cycles[same-1]", "benn_fpga.hw.sliding",
        "write.data.eq(Cat(read.data, self.i.payload)[pixel:])",
        "write.data.eq(Cat(self.i.payload, read.data)[:rows * pixel])"),
    "tap of registers that reads outside the image": (
        "test_sliding.py::test_cycles[same-1]", "benn_fpga.hw.sliding",
        "(at + n < size + pad)", "(at + n <= size + pad)"),
    "steps without a pixel that wait for one": (
        "test_sliding.py::test_cycles[same-1]", "benn_fpga.hw.sliding",
        "moves.eq(free & (self.i.valid | ~comes))", "moves.eq(free & self.i.valid)"),
    "window of registers left over from before a reset": (
        "test_sliding.py::test_reset[7]", "benn_fpga.hw.sliding",
        "init=slide.first)", "init=slide.first, reset_less=True)"),
    "a step too few in the cycle model of registers": (
        "test_queues.py::test_window_of_registers", "benn_fpga.plan.cycles",
        "        now = max(now + 1, last)\n        if comes:",
        "        now = max(now + 1, last - 1)\n        if comes:"),
    "ready of a pool that goes on to the bus": (
        "test_queues.py::test_room_in_queues_is_not_asked_for_at_the_bus[tiled]",
        "benn_fpga.hw.joints", "[self.i.ready.eq(~full),",
        "[self.i.ready.eq(~self.o.valid | self.o.ready),"),
    "field of an answer instead of another": (
        "test_port.py::test_fields_are_filled_by_name", "benn_fpga.hw.port",
        '"flags": flags,\n                  "margin": self.i.payload.margin}',
        '"margin": flags,\n                  "flags": self.i.payload.margin}'),
    "slot in a queue that is not reserved": (
        "test_joints.py::test_what_has_a_slot_never_waits[1-3-0-3-0]", "benn_fpga.hw.joints",
        'goes=self.take, name="free"', 'goes=0, name="free"'),
    "slot that is free before its block has left": (
        "test_joints.py::test_what_has_a_slot_never_waits[4-2-0-3-0]", "benn_fpga.hw.joints",
        "comes=get & whole", "comes=get"),
    "word that is sent twice": (
        "test_joints.py::test_serial[3]", "benn_fpga.hw.joints",
        "block >> self._width", "Cat(block[:self._width], block[:-self._width])"),
    "word of an answer that leaves before its last beat": (
        "test_port.py::test_records[6-8-1-0-0]", "benn_fpga.hw.port",
        "source.ready.eq(sink.ready & whole)", "source.ready.eq(sink.ready)"),
    "sum so far of another class": (
        "test_vote.py::test_soft_vote", "benn_fpga.hw.vote",
        "read.addr.eq(words_at[0])", "read.addr.eq(words_at[1])"),
    "gate that does not wait": (
        "test_joints.py::test_what_has_a_slot_never_waits[1-3-0-3-0]", "benn_fpga.hw.joints",
        "may.eq(~starts | self.room)", "may.eq(1)"),
    "gate that counts a beat too many": (
        "test_queues.py::test_residual", "benn_fpga.hw.assembly",
        "count=node.count, marked", "count=node.count + 1, marked"),
    "subsample that counts on from row to row": (
        "test_tiles.py::test_one_tap[shape1-3-2-0]", "benn_fpga.hw.tiles",
        "with m.If(ends):", "with m.If(C(0)):"),
    "largest code of the window before": (
        "test_pool.py::test_behind_what_cuts_windows[max-window0-1]", "benn_fpga.hw.pool",
        "first | (code > best)", "code > best"),
    "sum of the window before": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window0-1]", "benn_fpga.hw.pool",
        "Mux(first[-1], 0, kept[str(n)])", "kept[str(n)]"),
    "partial sum of another window": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window1-1]", "benn_fpga.hw.tiles",
        "read.addr.eq(address[0])", "read.addr.eq(address[1])"),
    "tile left over from before a reset": (
        "test_tiles.py::test_reset[3]", "benn_fpga.hw.tiles",
        "init=layer.padding)", "init=layer.padding, reset_less=True)"),
    "window left over from before a reset": (
        "test_window.py::test_reset[7]", "benn_fpga.hw.window",
        "init=steps[0].last - 1)", "init=steps[0].last - 1, reset_less=True)"),
    "gate that lets all pass but the last pixels": (
        "test_joints.py::test_marked_gate[3-1-0-3]", "benn_fpga.hw.joints",
        "starts = counted & first", "starts = ~counted & first"),
    "partial sum of what comes in a gap": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window2-3]", "benn_fpga.hw.tiles",
        "with self._m.If(self._active):", "with self._m.If(C(1)):"),
    "partial sum that is kept in a gap": (
        "test_pool.py::test_partials_in_gaps", "benn_fpga.hw.tiles",
        "self._active & leaves[1]", "leaves[1]"),
    "constants engine by engine": (
        "test_pool.py::test_engines[residual-2-0]", "benn_fpga.hw.banks",
        "for channel in zip(*banks, strict=True) for value", "for channel in banks for value"),
    "gains of another engine": (
        "test_residual.py::test_scale_of_engines[1-0]", "benn_fpga.hw.banks",
        "for channel in zip(*banks, strict=True)", "for channel in zip(*banks[::-1], strict=True)"),
    "partial sum that is not kept": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window2-1]", "benn_fpga.hw.tiles",
        "self._active & leaves[1]", "self._active & enters[1]"),
    "tap outside the image that is active": (
        "test_pool.py::test_outside_is_not_active", "benn_fpga.hw.pool",
        "rom.entry(n, width)) & inside", "rom.entry(n, width))"),
    "scale that rounds down": (
        "test_residual.py::test_scale_rounds_and_clips[4]", "benn_fpga.hw.residual",
        "half = (1 << layer.shift) >> 1", "half = 0"),
    "residual that is added to another pixel": (
        "test_queues.py::test_residual", "benn_fpga.hw.residual",
        "self.b.ready.eq(self.a.valid)", "self.b.ready.eq(1)"),
    "weights of another member in all windows but the first": (
        "test_ensemble.py::test_idle_and_stall[residual-soft-0-0]", "benn_fpga.hw.mvtu",
        "repeats=self._layer.positions", "repeats=1"),
    "queue with a slot too few": (
        "test_queues.py::test_residual", "benn_fpga.plan.cycles",
        "{name: queue.most() for", "{name: max(1, queue.most() - 1) for"),
    "queue with a slot too many": (
        "test_queues.py::test_residual", "benn_fpga.plan.cycles",
        "{name: queue.most() for", "{name: queue.most() + 1 for"),
    "answer before its error flag": (
        "test_ensemble.py::test_latency_of_an_answer_that_waits_for_its_error_flag[30]",
        "benn_fpga.plan.processes", "max(i.offered[n], flag, free)", "max(i.offered[n], free)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_noticed(fault):
    tests, *change = FAULTS[fault]
    code, output = fresh.run_with_fault(HERE.parent.parent, f"{HERE / tests}", change)
    assert code == pytest.ExitCode.TESTS_FAILED, output[-2000:]
