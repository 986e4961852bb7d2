// Block RAM of Gowin for simulation: Yosys has only its ports. Those of one port (SP), and those
// that write at one port and read at another (SDPB); X9 has bytes of 9 bits, the others of 8.
// If READ_MODE is 1, a register that OCE moves follows that of the memory. What Yosys does not take
// for our designs is missing, and an error.
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

// 2048 bytes. Where a word of several is written, the low bits of its address enable each of them;
// words of less than a byte are bits.
module benn_bsram #(
  parameter BYTE = 9, WRITE_WIDTH = 9, READ_WIDTH = 9, READ_MODE = 0, RESET_MODE = "SYNC",
  parameter [2048 * BYTE - 1:0] INIT = 0
) (
  input write_clk, write,
  input [13:0] write_address,
  input [4 * BYTE - 1:0] di,
  input read_clk, read, move, reset,
  input [13:0] read_address,
  output [4 * BYTE - 1:0] data
);
  localparam WRITE_BYTES = WRITE_WIDTH < BYTE ? 1 : WRITE_WIDTH / BYTE;
  localparam READ_BYTES = READ_WIDTH < BYTE ? 1 : READ_WIDTH / BYTE;

  reg [BYTE - 1:0] bytes [0:2047];
  integer n;
  initial
    for (n = 0; n < 2048; n = n + 1)
      bytes[n] = INIT[BYTE * n +: BYTE];

  wire [BYTE - 1:0] written = ((1 << WRITE_WIDTH) - 1) << write_address[2:0];
  integer k;
  always @(posedge write_clk)
    if (write) begin
      if (WRITE_WIDTH < BYTE)
        bytes[write_address[13:3]] <= (bytes[write_address[13:3]] & ~written)
            | ((di[BYTE - 1:0] << write_address[2:0]) & written);
      else
        for (k = 0; k < WRITE_BYTES; k = k + 1)
          if (WRITE_BYTES == 1 || write_address[k])
            bytes[write_address[13:3] / WRITE_BYTES * WRITE_BYTES + k] <= di[BYTE * k +: BYTE];
    end

  wire resets = RESET_MODE == "ASYNC" && reset;
  reg [4 * BYTE - 1:0] latch = 0, out = 0;
  assign data = READ_MODE ? out : latch;
  integer m;
  always @(posedge read_clk, posedge resets)
    if (resets) begin
      latch <= 0;
      out <= 0;
    end else begin
      if (read) begin
        if (READ_WIDTH < BYTE)
          latch <= (bytes[read_address[13:3]] >> read_address[2:0]) & ((1 << READ_WIDTH) - 1);
        else
          for (m = 0; m < READ_BYTES; m = m + 1)
            latch[BYTE * m +: BYTE] <= bytes[read_address[13:3] / READ_BYTES * READ_BYTES + m];
      end
      if (move) out <= latch;
      if (reset) begin
        latch <= 0;
        out <= 0;
      end
    end
endmodule

// A write is read in the same cycle if WRITE_MODE is 2, and not read at all if it is 0.
module SP (
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [31:0] DI,
  output [31:0] DO
);
  parameter READ_MODE = 0, WRITE_MODE = 0, BIT_WIDTH = 32, BLK_SEL = 0, RESET_MODE = "SYNC";
  parameter [255:0] `BENN_CONTENTS;

  generate
    if (WRITE_MODE == 1) benn_has_no_model_of_this_mode none ();
  endgenerate
  wire selected = CE && BLKSEL == BLK_SEL;
  benn_bsram #(
    .BYTE(8), .WRITE_WIDTH(BIT_WIDTH), .READ_WIDTH(BIT_WIDTH), .READ_MODE(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .write_clk(CLK), .write(selected && WRE), .write_address(AD), .di(DI),
    .read_clk(CLK), .read(selected && (!WRE || WRITE_MODE == 2)), .move(OCE), .reset(RESET),
    .read_address(AD), .data(DO)
  );
endmodule

// A write is read in the same cycle if WRITE_MODE is 2, and not read at all if it is 0.
module SPX9 (
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [35:0] DI,
  output [35:0] DO
);
  parameter READ_MODE = 0, WRITE_MODE = 0, BIT_WIDTH = 36, BLK_SEL = 0, RESET_MODE = "SYNC";
  parameter [287:0] `BENN_CONTENTS;

  generate
    if (WRITE_MODE == 1) benn_has_no_model_of_this_mode none ();
  endgenerate
  wire selected = CE && BLKSEL == BLK_SEL;
  benn_bsram #(
    .BYTE(9), .WRITE_WIDTH(BIT_WIDTH), .READ_WIDTH(BIT_WIDTH), .READ_MODE(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .write_clk(CLK), .write(selected && WRE), .write_address(AD), .di(DI),
    .read_clk(CLK), .read(selected && (!WRE || WRITE_MODE == 2)), .move(OCE), .reset(RESET),
    .read_address(AD), .data(DO)
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
    .BYTE(8), .WRITE_WIDTH(BIT_WIDTH_0), .READ_WIDTH(BIT_WIDTH_1), .READ_MODE(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .write_clk(CLKA), .write(CEA && BLKSELA == BLK_SEL_0), .write_address(ADA), .di(DI),
    .read_clk(CLKB), .read(CEB && BLKSELB == BLK_SEL_1), .move(OCE), .reset(RESETB),
    .read_address(ADB), .data(DO)
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
    .BYTE(9), .WRITE_WIDTH(BIT_WIDTH_0), .READ_WIDTH(BIT_WIDTH_1), .READ_MODE(READ_MODE),
    .RESET_MODE(RESET_MODE), .INIT(`BENN_ALL_CONTENTS)
  ) ram (
    .write_clk(CLKA), .write(CEA && BLKSELA == BLK_SEL_0), .write_address(ADA), .di(DI),
    .read_clk(CLKB), .read(CEB && BLKSELB == BLK_SEL_1), .move(OCE), .reset(RESETB),
    .read_address(ADB), .data(DO)
  );
endmodule
