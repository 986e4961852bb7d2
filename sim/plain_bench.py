"""A test bench in plain Verilog, for any simulator: frames in, answers compared, PASS or FAIL."""

from benn_fpga import golden
from benn_fpga.plan.answer import pack
from benn_fpga.plan.plan import plan

__all__ = ["DECLARED", "plain_bench"]

DECLARED = "reg rst = 1;"  # how reset begins in most benches

_BENCH = """\
// Streams frames.hex through benn_top and compares all that comes out with answers.hex.
// A line of these files is a beat: flags (bit 0 TLAST, bit 1 TUSER), TKEEP and TDATA.
`timescale 1ns / 1ns

module tb;
  localparam LANES = %(lanes)d;  // bytes of the bus
  localparam KEEP = %(keep)d;  // LANES as whole hex digits
  localparam BEATS = %(beats)d;
  localparam ANSWERS = %(answers)d;  // beats of them
  localparam PATIENCE = %(patience)d;  // cycles without an answer after which all is over
  localparam DATA = 8 * LANES;
  localparam LAST = DATA + KEEP;
  localparam USER = LAST + 1;

  reg clk = 0;
  always #5 clk = ~clk;

  %(reset)s

  reg [DATA+KEEP+3:0] frames [0:BEATS-1];
  reg [DATA+KEEP+3:0] answers [0:ANSWERS-1];
  integer sent = 0, got = 0, wrong = 0, quiet = 0;
  wire [DATA+KEEP+3:0] beat = frames[sent];
  wire [DATA+KEEP+3:0] expected = answers[got];

  reg s_axis_tvalid = 0;
  wire s_axis_tready, m_axis_tlast, m_axis_tuser, m_axis_tvalid;
  wire [DATA-1:0] m_axis_tdata;
  wire [LANES-1:0] m_axis_tkeep;

  benn_top dut (
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
    .m_axis_tready(1'b1)
  );

  initial begin
    $readmemh("frames.hex", frames);
    $readmemh("answers.hex", answers);
    repeat (8) @(posedge clk);
    rst <= 0;
    s_axis_tvalid <= 1;
  end

  always @(posedge clk)
    if (rst !== 0)
      quiet <= 0;
    else begin
      if (s_axis_tvalid && s_axis_tready) begin
        sent <= sent + 1;
        s_axis_tvalid <= sent + 1 < BEATS;
      end
      quiet <= quiet + 1;
      if (m_axis_tvalid !== 0) begin
        quiet <= 0;
        got <= got + 1;
        if ({m_axis_tvalid, m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata} !==
            {1'b1, expected[USER], expected[LAST], expected[DATA+:LANES], expected[DATA-1:0]})
          wrong <= wrong + 1;
      end
      if (quiet == PATIENCE || got > ANSWERS) begin
        if (got == ANSWERS && wrong == 0)
          $display("PASS: %%0d beats sent, %%0d beats of answers, all right", sent, got);
        else
          $display("FAIL: %%0d of %%0d beats sent, %%0d of %%0d beats of answers, %%0d wrong",
                   sent, BEATS, got, ANSWERS, wrong);
        $finish;
      end
    end
endmodule
"""


def plain_bench(model, folding, x, reset=DECLARED):
    """The files of a bench by name: ``tb.v`` and what it reads, for frames ``x`` of raw values.

    ``reset`` is Verilog that declares ``rst`` and makes it 1 before the eighth rising edge of
    ``clk``, after which the bench makes it 0.
    """
    x, lanes = golden.check_input(model.encoder, x), folding.bus // 8
    result, schedule = golden.run(model, x), plan(model, folding).schedule
    frames = [line for frame in x for line in _beats(frame.tobytes(), lanes)]
    answers = [line for found in zip(result.classes, result.margins, result.totals, strict=True)
               for line in _beats(pack(found[0], 0, *found[1:]), lanes)]
    text = _BENCH % {
        "lanes": lanes, "keep": 4 * _digits(lanes), "beats": len(frames), "answers": len(answers),
        "patience": schedule.latency_cycles + schedule.cycles_per_frame, "reset": reset}
    return {"tb.v": text, "frames.hex": "".join(frames), "answers.hex": "".join(answers)}


def _digits(lanes):
    """Hex digits of a TKEEP."""
    return -(-lanes // 4)


def _beats(content, lanes):
    """Lines of hex, one per beat of a frame or answer without errors."""
    for at in range(0, len(content), lanes):
        part = content[at:at + lanes]
        last, keep = at + lanes >= len(content), (1 << len(part)) - 1
        data = int.from_bytes(part, "little")
        yield f"{last:x}_{keep:0{_digits(lanes)}x}_{data:0{2 * lanes}x}\n"
