// Block RAM of Gowin for simulation: Yosys has only its ports. Those of one port (SP), those that
// write at one port and read at another (SDPB), and those of two ports that do both (DPB); X9 has
// bytes of 9 bits, the others of 8. If READ_MODE is 1, a register that OCE moves follows that of
// the memory. A port that writes reads nothing, the new word or the old one by WRITE_MODE 0, 1, 2.
`define BENN_CONTENTS \
  INIT_RAM_00 = 0, INIT_RAM_01 = 0, INIT_RAM_02 = 0, INIT_RAM_03 = 0, INIT_RAM_04 = 0, \
  INIT_RAM_05 = 0, INIT_RAM_06 = 0, INIT_RAM_07 = 0, INIT_RAM_08 = 0, INIT_RAM_09 = 0, \
  INIT_RAM_0A = 0, INIT_RAM_0B = 0, INIT_RAM_0C = 0, INIT_RAM_0D = 0, INIT_RAM_0E = 0, \
  INIT_RAM_0F = 0, INIT_RAM_10 = 0, INIT_RAM_11 = 0, INIT_RAM_12 = 0, INIT_RAM_13 = 0, \
  INIT_RAM_14 = 0, INIT_RAM_15 = 0, INIT_RAM_16 = 0, INIT_RAM_17 = 0, INIT_RAM_18 = 0, \
  INIT_RAM_19 = 0, INIT_RAM_1A = 0, INIT_RAM_1B = 0, INIT_RAM_1C = 0, INIT_RAM_1D = 0, \
  INIT_RAM_1E = 0, INIT_RAM_1F = 0, INIT_RAM_20 = 0, INIT_RAM_21 = 0, INIT_RAM_22 = 0, \
  INIT_RAM_23 = 0, INIT_RAM_24 = 0, INIT_RAM_25 = 0, INIT_RAM_26 = 0, INIT_RAM_27 = 0, \
  INIT_RAM_28 = 0, INIT_RAM_29 = 0, INIT_RAM_2A = 0, INIT_RAM_2B = 0, INIT_RAM_2C = 0, \
  INIT_RAM_2D = 0, INIT_RAM_2E = 0, INIT_RAM_2F = 0, INIT_RAM_30 = 0, INIT_RAM_31 = 0, \
  INIT_RAM_32 = 0, INIT_RAM_33 = 0, INIT_RAM_34 = 0, INIT_RAM_35 = 0, INIT_RAM_36 = 0, \
  INIT_RAM_37 = 0, INIT_RAM_38 = 0, INIT_RAM_39 = 0, INIT_RAM_3A = 0, INIT_RAM_3B = 0, \
  INIT_RAM_3C = 0, INIT_RAM_3D = 0, INIT_RAM_3E = 0, INIT_RAM_3F = 0

`define BENN_ALL_CONTENTS \
  {INIT_RAM_3F, INIT_RAM_3E, INIT_RAM_3D, INIT_RAM_3C, INIT_RAM_3B, INIT_RAM_3A, INIT_RAM_39, \
  INIT_RAM_38, INIT_RAM_37, INIT_RAM_36, INIT_RAM_35, INIT_RAM_34, INIT_RAM_33, INIT_RAM_32, \
  INIT_RAM_31, INIT_RAM_30, INIT_RAM_2F, INIT_RAM_2E, INIT_RAM_2D, INIT_RAM_2C, INIT_RAM_2B, \
  INIT_RAM_2A, INIT_RAM_29, INIT_RAM_28, INIT_RAM_27, INIT_RAM_26, INIT_RAM_25, INIT_RAM_24, \
  INIT_RAM_23, INIT_RAM_22, INIT_RAM_21, INIT_RAM_20, INIT_RAM_1F, INIT_RAM_1E, INIT_RAM_1D, \
  INIT_RAM_1C, INIT_RAM_1B, INIT_RAM_1A, INIT_RAM_19, INIT_RAM_18, INIT_RAM_17, INIT_RAM_16, \
  INIT_RAM_15, INIT_RAM_14, INIT_RAM_13, INIT_RAM_12, INIT_RAM_11, INIT_RAM_10, INIT_RAM_0F, \
  INIT_RAM_0E, INIT_RAM_0D, INIT_RAM_0C, INIT_RAM_0B, INIT_RAM_0A, INIT_RAM_09, INIT_RAM_08, \
  INIT_RAM_07, INIT_RAM_06, INIT_RAM_05, INIT_RAM_04, INIT_RAM_03, INIT_RAM_02, INIT_RAM_01, \
  INIT_RAM_00}

// What a port has read.
module benn_bsram_port #(
  parameter BYTE = 9, READ_MODE = 0, RESET_MODE = "SYNC"
) (
  input clk, read, move, reset,
  input [4 * BYTE - 1:0] word,
  output [4 * BYTE - 1:0] data
);
  wire at_once = RESET_MODE == "ASYNC" && reset;
  reg [4 * BYTE - 1:0] latch = 0, out = 0;
  assign data = READ_MODE ? out : latch;
  always @(posedge clk, posedge at_once)
    if (at_once) begin
      latch <= 0;
      out <= 0;
    end else begin
      if (read) latch <= word;
      if (move) out <= latch;
      if (reset) begin
        latch <= 0;
        out <= 0;
      end
    end
endmodule

// 2048 bytes. Where a word of several is written, the low bits of its address enable each of them;
// words of less than a byte are bits.
module benn_bsram #(
  parameter BYTE = 9, WIDTH_A = BYTE, WIDTH_B = BYTE, READ_MODE_A = 0, READ_MODE_B = 0,
  parameter WRITE_MODE_A = 0, WRITE_MODE_B = 0, RESET_MODE = "SYNC",
  parameter [2048 * BYTE - 1:0] INIT = 0
) (
  input clk_a, write_a, read_a, move_a, reset_a,
  input clk_b, write_b, read_b, move_b, reset_b,
  input [13:0] a, b,
  input [4 * BYTE - 1:0] di_a, di_b,
  output [4 * BYTE - 1:0] do_a, do_b
);
  generate
    if ((WIDTH_A > 4 ? WIDTH_A % BYTE : WIDTH_A == 3)
        || (WIDTH_B > 4 ? WIDTH_B % BYTE : WIDTH_B == 3)
        || WRITE_MODE_A > 2 || WRITE_MODE_B > 2 || (RESET_MODE != "SYNC" && RESET_MODE != "ASYNC"))
      benn_has_no_model_of_this_mode none ();
  endgenerate

  reg [BYTE - 1:0] bytes [0:2047];
  integer n;
  initial
    for (n = 0; n < 2048; n = n + 1)
      bytes[n] = INIT[BYTE * n +: BYTE];

  localparam MANY_A = WIDTH_A < BYTE ? 1 : WIDTH_A / BYTE;
  wire [BYTE - 1:0] mask_a = ((1 << WIDTH_A) - 1) << a[2:0];
  wire [3:0] new_a = !write_a || WRITE_MODE_A != 1 ? 0 : MANY_A == 1 ? 1 : a[3:0];
  wire [4 * BYTE - 1:0] word_a;
  genvar ga;
  generate
    for (ga = 0; ga < 4; ga = ga + 1) begin : port_a
      wire [BYTE - 1:0] is = di_a[BYTE * ga +: BYTE];
      wire [BYTE - 1:0] was = bytes[a[13:3] / MANY_A * MANY_A + ga];
      if (ga >= MANY_A)
        assign word_a[BYTE * ga +: BYTE] = 0;
      else if (WIDTH_A < BYTE)
        assign word_a[BYTE * ga +: BYTE] =
            new_a[0] ? is & ((1 << WIDTH_A) - 1) : (was & mask_a) >> a[2:0];
      else
        assign word_a[BYTE * ga +: BYTE] = new_a[ga] ? is : was;
    end
  endgenerate
  benn_bsram_port #(.BYTE(BYTE), .READ_MODE(READ_MODE_A), .RESET_MODE(RESET_MODE)) reader_a (
    .clk(clk_a), .read(read_a), .move(move_a), .reset(reset_a), .word(word_a), .data(do_a)
  );
  integer ka;
  always @(posedge clk_a)
    if (write_a) begin
      if (WIDTH_A < BYTE)
        bytes[a[13:3]] <= (bytes[a[13:3]] & ~mask_a)
            | ((di_a[BYTE - 1:0] << a[2:0]) & mask_a);
      else
        for (ka = 0; ka < MANY_A; ka = ka + 1)
          if (MANY_A == 1 || a[ka])
            bytes[a[13:3] / MANY_A * MANY_A + ka] <= di_a[BYTE * ka +: BYTE];
    end

  localparam MANY_B = WIDTH_B < BYTE ? 1 : WIDTH_B / BYTE;
  wire [BYTE - 1:0] mask_b = ((1 << WIDTH_B) - 1) << b[2:0];
  wire [3:0] new_b = !write_b || WRITE_MODE_B != 1 ? 0 : MANY_B == 1 ? 1 : b[3:0];
  wire [4 * BYTE - 1:0] word_b;
  genvar gb;
  generate
    for (gb = 0; gb < 4; gb = gb + 1) begin : port_b
      wire [BYTE - 1:0] is = di_b[BYTE * gb +: BYTE];
      wire [BYTE - 1:0] was = bytes[b[13:3] / MANY_B * MANY_B + gb];
      if (gb >= MANY_B)
        assign word_b[BYTE * gb +: BYTE] = 0;
      else if (WIDTH_B < BYTE)
        assign word_b[BYTE * gb +: BYTE] =
            new_b[0] ? is & ((1 << WIDTH_B) - 1) : (was & mask_b) >> b[2:0];
      else
        assign word_b[BYTE * gb +: BYTE] = new_b[gb] ? is : was;
    end
  endgenerate
  benn_bsram_port #(.BYTE(BYTE), .READ_MODE(READ_MODE_B), .RESET_MODE(RESET_MODE)) reader_b (
    .clk(clk_b), .read(read_b), .move(move_b), .reset(reset_b), .word(word_b), .data(do_b)
  );
  integer kb;
  always @(posedge clk_b)
    if (write_b) begin
      if (WIDTH_B < BYTE)
        bytes[b[13:3]] <= (bytes[b[13:3]] & ~mask_b)
            | ((di_b[BYTE - 1:0] << b[2:0]) & mask_b);
      else
        for (kb = 0; kb < MANY_B; kb = kb + 1)
          if (MANY_B == 1 || b[kb])
            bytes[b[13:3] / MANY_B * MANY_B + kb] <= di_b[BYTE * kb +: BYTE];
    end
endmodule

module SP (
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [31:0] DI,
  output [31:0] DO
);
  parameter READ_MODE = 0, WRITE_MODE = 0, BIT_WIDTH = 32, BLK_SEL = 0, RESET_MODE = "SYNC";
  parameter [255:0] `BENN_CONTENTS;
  wire en = CE && BLKSEL == BLK_SEL;
  benn_bsram #(
    .BYTE(8), .WIDTH_A(BIT_WIDTH), .READ_MODE_A(READ_MODE), .WRITE_MODE_A(WRITE_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLK), .write_a(en && WRE), .read_a(en && (!WRE || WRITE_MODE != 0)), .move_a(OCE),
    .reset_a(RESET), .a(AD), .di_a(DI), .do_a(DO),
    .clk_b(CLK), .write_b(1'b0), .read_b(1'b0), .move_b(1'b0), .reset_b(1'b0), .b(14'b0),
    .di_b(32'b0)
  );
endmodule

module SPX9 (
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [35:0] DI,
  output [35:0] DO
);
  parameter READ_MODE = 0, WRITE_MODE = 0, BIT_WIDTH = 36, BLK_SEL = 0, RESET_MODE = "SYNC";
  parameter [287:0] `BENN_CONTENTS;
  wire en = CE && BLKSEL == BLK_SEL;
  benn_bsram #(
    .BYTE(9), .WIDTH_A(BIT_WIDTH), .READ_MODE_A(READ_MODE), .WRITE_MODE_A(WRITE_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLK), .write_a(en && WRE), .read_a(en && (!WRE || WRITE_MODE != 0)), .move_a(OCE),
    .reset_a(RESET), .a(AD), .di_a(DI), .do_a(DO),
    .clk_b(CLK), .write_b(1'b0), .read_b(1'b0), .move_b(1'b0), .reset_b(1'b0), .b(14'b0),
    .di_b(36'b0)
  );
endmodule

module SDPB (
  input CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [31:0] DI,
  output [31:0] DO
);
  parameter READ_MODE = 0, BIT_WIDTH_0 = 32, BIT_WIDTH_1 = 32, BLK_SEL_0 = 0, BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  parameter [255:0] `BENN_CONTENTS;
  benn_bsram #(
    .BYTE(8), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_B(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLKA), .write_a(CEA && BLKSELA == BLK_SEL_0), .read_a(1'b0), .move_a(1'b0),
    .reset_a(1'b0), .a(ADA), .di_a(DI),
    .clk_b(CLKB), .write_b(1'b0), .read_b(CEB && BLKSELB == BLK_SEL_1), .move_b(OCE),
    .reset_b(RESETB), .b(ADB), .di_b(32'b0), .do_b(DO)
  );
endmodule

module SDPX9B (
  input CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [35:0] DI,
  output [35:0] DO
);
  parameter READ_MODE = 0, BIT_WIDTH_0 = 36, BIT_WIDTH_1 = 36, BLK_SEL_0 = 0, BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  parameter [287:0] `BENN_CONTENTS;
  benn_bsram #(
    .BYTE(9), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_B(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLKA), .write_a(CEA && BLKSELA == BLK_SEL_0), .read_a(1'b0), .move_a(1'b0),
    .reset_a(1'b0), .a(ADA), .di_a(DI),
    .clk_b(CLKB), .write_b(1'b0), .read_b(CEB && BLKSELB == BLK_SEL_1), .move_b(OCE),
    .reset_b(RESETB), .b(ADB), .di_b(36'b0), .do_b(DO)
  );
endmodule

module DPB (
  input CLKA, CEA, OCEA, WREA, RESETA, CLKB, CEB, OCEB, WREB, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [15:0] DIA, DIB,
  output [15:0] DOA, DOB
);
  parameter READ_MODE0 = 0, READ_MODE1 = 0, WRITE_MODE0 = 0, WRITE_MODE1 = 0, RESET_MODE = "SYNC";
  parameter BIT_WIDTH_0 = 16, BIT_WIDTH_1 = 16, BLK_SEL_0 = 0, BLK_SEL_1 = 0;
  parameter [255:0] `BENN_CONTENTS;
  wire en_a = CEA && BLKSELA == BLK_SEL_0, en_b = CEB && BLKSELB == BLK_SEL_1;
  wire [31:0] do_a, do_b;
  assign DOA = do_a[15:0];
  assign DOB = do_b[15:0];
  benn_bsram #(
    .BYTE(8), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_A(READ_MODE0),
    .READ_MODE_B(READ_MODE1), .WRITE_MODE_A(WRITE_MODE0), .WRITE_MODE_B(WRITE_MODE1),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLKA), .write_a(en_a && WREA), .read_a(en_a && (!WREA || WRITE_MODE0 != 0)),
    .move_a(OCEA), .reset_a(RESETA), .a(ADA), .di_a({16'b0, DIA}), .do_a(do_a),
    .clk_b(CLKB), .write_b(en_b && WREB), .read_b(en_b && (!WREB || WRITE_MODE1 != 0)),
    .move_b(OCEB), .reset_b(RESETB), .b(ADB), .di_b({16'b0, DIB}), .do_b(do_b)
  );
endmodule

module DPX9B (
  input CLKA, CEA, OCEA, WREA, RESETA, CLKB, CEB, OCEB, WREB, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [17:0] DIA, DIB,
  output [17:0] DOA, DOB
);
  parameter READ_MODE0 = 0, READ_MODE1 = 0, WRITE_MODE0 = 0, WRITE_MODE1 = 0, RESET_MODE = "SYNC";
  parameter BIT_WIDTH_0 = 18, BIT_WIDTH_1 = 18, BLK_SEL_0 = 0, BLK_SEL_1 = 0;
  parameter [287:0] `BENN_CONTENTS;
  wire en_a = CEA && BLKSELA == BLK_SEL_0, en_b = CEB && BLKSELB == BLK_SEL_1;
  wire [35:0] do_a, do_b;
  assign DOA = do_a[17:0];
  assign DOB = do_b[17:0];
  benn_bsram #(
    .BYTE(9), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_A(READ_MODE0),
    .READ_MODE_B(READ_MODE1), .WRITE_MODE_A(WRITE_MODE0), .WRITE_MODE_B(WRITE_MODE1),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .clk_a(CLKA), .write_a(en_a && WREA), .read_a(en_a && (!WREA || WRITE_MODE0 != 0)),
    .move_a(OCEA), .reset_a(RESETA), .a(ADA), .di_a({18'b0, DIA}), .do_a(do_a),
    .clk_b(CLKB), .write_b(en_b && WREB), .read_b(en_b && (!WREB || WRITE_MODE1 != 0)),
    .move_b(OCEB), .reset_b(RESETB), .b(ADB), .di_b({18'b0, DIB}), .do_b(do_b)
  );
endmodule
