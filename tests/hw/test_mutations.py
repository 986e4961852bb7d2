"""The tests notice: each of these faults, put into the code, makes a test fail."""

from pathlib import Path

import pytest

import fresh

HERE = Path(__file__).parent

FAULTS = {
    "flipped weight bit": (
        "test_mvtu.py::test_unit[scores-2-4-0-0]", "benn_fpga.plan.memories",
        "        codes = codes.reshape(nf, fold.pe, sf, fold.simd)",
        "        codes[-1, -1] ^= 1; codes = codes.reshape(nf, fold.pe, sf, fold.simd)"),
    "threshold off by one": (
        "test_mvtu.py::test_unit[binary-2-4-0-0]", "benn_fpga.plan.memories",
        "layer.max_sum + 1) // 2", "layer.max_sum + 3) // 2"),
    "swapped tie rule of the vote": (
        "test_vote.py::test_soft_vote[1-1-5-5-0-0]", "benn_fpga.hw.vote",
        '"""(value, index): the later of the two only if it is greater."""\n'
        "    greater = b[0] > a[0]",
        "greater = b[0] >= a[0]"),
    "swapped tie rule between beats": (
        "test_vote.py::test_hard_vote[7-1-0-0]", "benn_fpga.hw.vote", "(score > best)",
        "(score >= best)"),
    "layer that drops a stall": (
        "test_mvtu.py::test_unit[binary-2-4-0-3]", "benn_fpga.hw.pipeline",
        "en.eq(~o.valid | o.ready)", "en.eq(1)"),
    "skid buffer that drops a stall": (
        "test_joints.py::test_skid_buffer", "benn_fpga.hw.joints", "self.i.ready.eq(~full)",
        "self.i.ready.eq(1)"),
    "replay buffer that overruns": (
        "test_joints.py::test_replay_buffer[3-2-0-0]", "benn_fpga.hw.joints",
        "self.i.ready.eq(free != 0)", "self.i.ready.eq(1)"),
    "thresholds left over from before a reset": (
        "test_encoder.py::test_reset_in_a_frame", "benn_fpga.hw.encoder",
        "return now.word_select, primed", "return now.word_select, C(1)"),
    "thresholds that move on in a stall": (
        "test_encoder.py::test_thresholds_per_value", "benn_fpga.hw.encoder",
        "rom.en.eq(~primed | taken)", "rom.en.eq(1)"),
    "totals that do not wait for the port": (
        "test_vote.py::test_soft_vote[1-1-6-2-0-3]", "benn_fpga.hw.vote",
        "            with m.If(placed):", "        with m.If(placed):"),
    "rounds that are not added": (
        "test_vote.py::test_soft_vote[1-3-5-5-0-0]", "benn_fpga.hw.vote",
        'delay(m, after, 1, en=en, name="partial")[-1]', "0"),
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
        "source & (~final | errors.w_rdy)", "source"),
    "answer left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[34]", "benn_fpga.hw.vote",
        'name="done", init=0)', 'name="done")'),
    "votes left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[8]", "benn_fpga.hw.vote",
        'added, en=en, name="valid", init=0)', 'added, en=en, name="valid")'),
    "hard vote left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[34]", "benn_fpga.hw.vote",
        "en, done, take = Signal(), Signal(), Signal()",
        "en, done, take = Signal(), Signal(reset_less=True), Signal()"),
    "wrong frame left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[23]", "benn_fpga.hw.frame",
        "pass_on, wrong, bad = Signal(), Signal(), Signal()",
        "pass_on, wrong, bad = Signal(), Signal(), Signal(reset_less=True)"),
    "beat left over from before a reset": (
        "test_ensemble.py::test_reset_at_any_moment[1]", "benn_fpga.hw.joints",
        "        full = Signal()", "        full = Signal(reset_less=True)"),
    "pause that is left out": (
        "test_ensemble.py::test_latency_when_a_layer_must_pause", "benn_fpga.plan.plan",
        "return words, max(0, block.emit - words)", "return words, 0"),
    "a cycle too many in the cycle model": (
        "test_mvtu.py::test_unit[binary-2-4-0-0]", "benn_fpga.plan.latency",
        "accumulate, compare = 1, 1", "accumulate, compare = 1, 2"),
    "queue of error flags that is too shallow": (
        "test_ensemble.py::test_every_gap[0]", "benn_fpga.plan.cycles",
        "held, depths)", "15, depths)"),
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
    "pixels that are freed in every fold": (
        "test_window.py::test_geometry[same-0-2]", "benn_fpga.hw.window",
        "frees = last_group & last_fold & part_ends", "frees = last_group & part_ends"),
    "pixels that are freed a row too early": (
        "test_window.py::test_geometry[rows outside-0-2]", "benn_fpga.plan.geometry",
        "(min(pad, kh - 1), min(stride, kw) - 1)", "(0, min(stride, kw) - 1)"),
    "jump to the next row of windows that is off by one": (
        "test_window.py::test_geometry[same-0-0]", "benn_fpga.hw.window",
        "places(stride * width - back)", "places(stride * width - back + 1)"),
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
        "benn_fpga.plan.plan", "if not any(kind.cuts_ready for", "if not all(True for"),
    "field of an answer in the place of another": (
        "test_port.py::test_fields_are_filled_by_name", "benn_fpga.hw.port",
        '"flags": [flags],\n            "margin": [self.i.payload.margin],',
        '"margin": [flags],\n            "flags": [self.i.payload.margin],'),
    "place in a queue that is not reserved": (
        "test_joints.py::test_what_has_a_place_never_waits[1-3-0-3]", "benn_fpga.hw.joints",
        "free - self.take + (get & whole)", "free + (get & whole)"),
    "place that is free before its block has left": (
        "test_joints.py::test_what_has_a_place_never_waits[4-2-0-3]", "benn_fpga.hw.joints",
        "free - self.take + (get & whole)", "free - self.take + get"),
    "gate that does not wait": (
        "test_joints.py::test_what_has_a_place_never_waits[1-3-0-3]", "benn_fpga.hw.joints",
        "may.eq(~starts | self.room)", "may.eq(1)"),
    "gate that counts a beat too many": (
        "test_queues.py::test_residual", "benn_fpga.hw.assembly",
        "count=node.count, marked", "count=node.count + 1, marked"),
    "subsample that counts on from row to row": (
        "test_tiles.py::test_one_tap[shape1-3-2-0]", "benn_fpga.hw.tiles",
        "with m.If(ends):", "with m.If(C(0)):"),
    "largest code of the window before": (
        "test_pool.py::test_behind_what_cuts_windows[max-window0-0]", "benn_fpga.hw.pool",
        "first | (code > best)", "code > best"),
    "sum of the window before": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window0-0]", "benn_fpga.hw.pool",
        "Mux(first[-1], 0, kept[str(n)])", "kept[str(n)]"),
    "partial sum of another window": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window1-0]", "benn_fpga.hw.tiles",
        "read.addr.eq(place[0])", "read.addr.eq(place[1])"),
    "tile left over from before a reset": (
        "test_tiles.py::test_reset[3]", "benn_fpga.hw.tiles",
        "init=layer.padding)", "init=layer.padding, reset_less=True)"),
    "window left over from before a reset": (
        "test_window.py::test_reset[7]", "benn_fpga.hw.window",
        "init=steps[0].last - 1)", "init=steps[0].last - 1, reset_less=True)"),
    "gate that lets all pass but the last pixels": (
        "test_joints.py::test_marked_gate[3-1-0-3]", "benn_fpga.hw.joints",
        "starts = counted & (word == 0)", "starts = ~counted & (word == 0)"),
    "partial sum that is read again in a stall": (
        "test_pool.py::test_stalled_partials", "benn_fpga.hw.tiles",
        "read.en.eq(en & valid[0] & enters[0])", "read.en.eq(valid[0] & enters[0])"),
    "partial sum that is not kept": (
        "test_pool.py::test_behind_what_cuts_windows[sum-window2-0]", "benn_fpga.hw.tiles",
        "self._active & leaves[1]", "self._active & enters[1]"),
    "tap outside the image that is active": (
        "test_pool.py::test_outside_is_not_active", "benn_fpga.hw.pool",
        "rom.entry(n, width)) & inside", "rom.entry(n, width))"),
    "scale that rounds down": (
        "test_residual.py::test_scale_rounds_and_clips[4]", "benn_fpga.hw.residual",
        "half = (1 << layer.shift) >> 1", "half = 0"),
    "residual that is added to another pixel": (
        "test_queues.py::test_residual", "benn_fpga.hw.residual",
        "self.b.ready.eq(en & self.a.valid)", "self.b.ready.eq(en)"),
    "weights of another member in all windows but the first": (
        "test_ensemble.py::test_idle_and_stall[residual-soft-0-0]", "benn_fpga.hw.mvtu",
        "repeats=self._layer.positions", "repeats=1"),
    "queue with a place too few": (
        "test_queues.py::test_residual", "benn_fpga.plan.cycles",
        "{name: queue.most() for", "{name: max(1, queue.most() - 1) for"),
    "queue with a place too many": (
        "test_queues.py::test_residual", "benn_fpga.plan.cycles",
        "{name: queue.most() for", "{name: queue.most() + 1 for"),
    "answer before its error flag": (
        "test_ensemble.py::test_latency_of_an_answer_that_waits_for_its_error_flag[30]",
        "benn_fpga.plan.cycles", "flow.guarded.taken[-1] + FLAG_LATENCY", "0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_noticed(fault):
    tests, *change = FAULTS[fault]
    code, output = fresh.run_with_fault(HERE.parent.parent, f"{HERE / tests}", change)
    assert code == pytest.ExitCode.TESTS_FAILED, output[-2000:]
