// Block RAM of the 7 series for simulation: Yosys has only its ports. Two ports (TDP), or one that
// writes and one that reads up to twice as many bits (SDP). If DOA_REG or DOB_REG is 1, a register
// that REGCE moves follows that of the memory; in SDP that of A holds all bits. What Yosys does not
// take for our designs is missing, and an error: cascades, inverted pins, words that are read as
// they are written.

// What a port has read.
module benn_ramb_port #(
  parameter BITS = 14, READ_WIDTH = 0, REGISTER = 0
) (
  input clk, en, reads, move, reset_latch, reset_register,
  input [BITS - 1:0] address,
  input [71:0] bytes,
  output [71:0] data
);
  wire [71:0] some = READ_WIDTH < 9 ? (bytes >> address[2:0]) & ((1 << READ_WIDTH) - 1) : bytes;
  reg [71:0] latch = 0, out = 0;
  assign data = REGISTER ? out : latch;
  always @(posedge clk) begin
    if (en && reads) latch <= some;
    if (en && reset_latch) latch <= 0;
    if (move) out <= reset_register ? 0 : latch;
  end
endmodule

// Bytes of 9 bits, of which words of less use 8; each byte of a wider word has an enable. In SDP A
// reads and B writes.
module benn_ramb #(
  parameter BITS = 14, READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0,
  parameter WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST", DOA_REG = 0, DOB_REG = 0,
  parameter RAM_MODE = "TDP",
  parameter [(1 << BITS) - 1:0] DATA = 0,
  parameter [(1 << BITS) / 8 - 1:0] PARITY = 0
) (
  input clk_a, en_a, move_a, reset_latch_a, reset_register_a,
  input clk_b, en_b, move_b, reset_latch_b, reset_register_b,
  input [BITS - 1:0] a, b,
  input [7:0] we_a, we_b,
  input [63:0] di_a, di_b,
  input [7:0] dip_a, dip_b,
  output [63:0] do_a, do_b,
  output [7:0] dop_a, dop_b
);
  localparam SIZE = (1 << BITS) / 8;
  generate
    if ((READ_WIDTH_A > 4 ? READ_WIDTH_A % 9 : READ_WIDTH_A == 3)
        || (READ_WIDTH_B > 4 ? READ_WIDTH_B % 9 : READ_WIDTH_B == 3)
        || (WRITE_WIDTH_A > 4 ? WRITE_WIDTH_A % 9 : WRITE_WIDTH_A == 3)
        || (WRITE_WIDTH_B > 4 ? WRITE_WIDTH_B % 9 : WRITE_WIDTH_B == 3))
      benn_has_no_model_of_this_mode none ();
    if (RAM_MODE == "TDP" && ((WRITE_MODE_A == "WRITE_FIRST" && READ_WIDTH_A && WRITE_WIDTH_A)
        || (WRITE_MODE_B == "WRITE_FIRST" && READ_WIDTH_B && WRITE_WIDTH_B)))
      benn_has_no_model_of_this_mode none ();
  endgenerate

  reg [8:0] bytes [0:SIZE - 1];
  integer n;
  initial
    for (n = 0; n < SIZE; n = n + 1)
      bytes[n] = {PARITY[n], DATA[8 * n +: 8]};

  localparam READS_A = READ_WIDTH_A < 18 ? 1 : READ_WIDTH_A / 9;
  localparam WRITES_A = WRITE_WIDTH_A < 18 ? 1 : WRITE_WIDTH_A / 9;
  wire [71:0] read_a, data_a;
  genvar ga;
  generate
    for (ga = 0; ga < 8; ga = ga + 1) begin : port_a
      assign read_a[9 * ga +: 9] =
          ga < READS_A ? bytes[a[BITS - 1:3] / READS_A * READS_A + ga] : 9'b0;
      assign {dop_a[ga], do_a[8 * ga +: 8]} = data_a[9 * ga +: 9];
    end
  endgenerate
  benn_ramb_port #(.BITS(BITS), .READ_WIDTH(READ_WIDTH_A), .REGISTER(DOA_REG)) reader_a (
    .clk(clk_a), .en(en_a),
    .reads(WRITE_MODE_A == "READ_FIRST" || WRITE_WIDTH_A == 0 || !(|we_a)),
    .move(move_a), .reset_latch(reset_latch_a), .reset_register(reset_register_a),
    .address(a), .bytes(read_a), .data(data_a)
  );
  wire [8:0] written_a = ((1 << WRITE_WIDTH_A) - 1) << a[2:0];
  integer ka;
  always @(posedge clk_a)
    if (en_a && WRITE_WIDTH_A != 0) begin
      if (WRITE_WIDTH_A < 9) begin
        if (we_a[0])
          bytes[a[BITS - 1:3]] <= (bytes[a[BITS - 1:3]] & ~written_a)
              | (({1'b0, di_a[7:0]} << a[2:0]) & written_a);
      end else
        for (ka = 0; ka < WRITES_A; ka = ka + 1)
          if (we_a[ka])
            bytes[a[BITS - 1:3] / WRITES_A * WRITES_A + ka] <=
                {dip_a[ka], di_a[8 * ka +: 8]};
    end

  localparam READS_B = READ_WIDTH_B < 18 ? 1 : READ_WIDTH_B / 9;
  localparam WRITES_B = WRITE_WIDTH_B < 18 ? 1 : WRITE_WIDTH_B / 9;
  wire [71:0] read_b, data_b;
  genvar gb;
  generate
    for (gb = 0; gb < 8; gb = gb + 1) begin : port_b
      assign read_b[9 * gb +: 9] =
          gb < READS_B ? bytes[b[BITS - 1:3] / READS_B * READS_B + gb] : 9'b0;
      assign {dop_b[gb], do_b[8 * gb +: 8]} = data_b[9 * gb +: 9];
    end
  endgenerate
  benn_ramb_port #(.BITS(BITS), .READ_WIDTH(READ_WIDTH_B), .REGISTER(DOB_REG)) reader_b (
    .clk(clk_b), .en(en_b),
    .reads(WRITE_MODE_B == "READ_FIRST" || WRITE_WIDTH_B == 0 || !(|we_b)),
    .move(move_b), .reset_latch(reset_latch_b), .reset_register(reset_register_b),
    .address(b), .bytes(read_b), .data(data_b)
  );
  wire [8:0] written_b = ((1 << WRITE_WIDTH_B) - 1) << b[2:0];
  integer kb;
  always @(posedge clk_b)
    if (en_b && WRITE_WIDTH_B != 0) begin
      if (WRITE_WIDTH_B < 9) begin
        if (we_b[0])
          bytes[b[BITS - 1:3]] <= (bytes[b[BITS - 1:3]] & ~written_b)
              | (({1'b0, di_b[7:0]} << b[2:0]) & written_b);
      end else
        for (kb = 0; kb < WRITES_B; kb = kb + 1)
          if (we_b[kb])
            bytes[b[BITS - 1:3] / WRITES_B * WRITES_B + kb] <=
                {dip_b[kb], di_b[8 * kb +: 8]};
    end
endmodule

module RAMB18E1 (
  input CLKARDCLK, ENARDEN, REGCEAREGCE, RSTRAMARSTRAM, RSTREGARSTREG,
  input CLKBWRCLK, ENBWREN, REGCEB, RSTRAMB, RSTREGB,
  input [13:0] ADDRARDADDR, ADDRBWRADDR,
  input [15:0] DIADI, DIBDI,
  input [1:0] DIPADIP, DIPBDIP,
  input [1:0] WEA,
  input [3:0] WEBWE,
  output [15:0] DOADO, DOBDO,
  output [1:0] DOPADOP, DOPBDOP
);
  parameter DOA_REG = 0, DOB_REG = 0, RAM_MODE = "TDP";
  parameter READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
  parameter WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST";
  parameter INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;  // no memory here has a reset
  parameter [255:0] INITP_00 = 0, INITP_01 = 0, INITP_02 = 0, INITP_03 = 0, INITP_04 = 0, INITP_05 =
      0, INITP_06 = 0, INITP_07 = 0, INIT_00 = 0, INIT_01 = 0, INIT_02 = 0, INIT_03 = 0, INIT_04 =
      0, INIT_05 = 0, INIT_06 = 0, INIT_07 = 0, INIT_08 = 0, INIT_09 = 0, INIT_0A = 0, INIT_0B = 0,
      INIT_0C = 0, INIT_0D = 0, INIT_0E = 0, INIT_0F = 0, INIT_10 = 0, INIT_11 = 0, INIT_12 = 0,
      INIT_13 = 0, INIT_14 = 0, INIT_15 = 0, INIT_16 = 0, INIT_17 = 0, INIT_18 = 0, INIT_19 = 0,
      INIT_1A = 0, INIT_1B = 0, INIT_1C = 0, INIT_1D = 0, INIT_1E = 0, INIT_1F = 0, INIT_20 = 0,
      INIT_21 = 0, INIT_22 = 0, INIT_23 = 0, INIT_24 = 0, INIT_25 = 0, INIT_26 = 0, INIT_27 = 0,
      INIT_28 = 0, INIT_29 = 0, INIT_2A = 0, INIT_2B = 0, INIT_2C = 0, INIT_2D = 0, INIT_2E = 0,
      INIT_2F = 0, INIT_30 = 0, INIT_31 = 0, INIT_32 = 0, INIT_33 = 0, INIT_34 = 0, INIT_35 = 0,
      INIT_36 = 0, INIT_37 = 0, INIT_38 = 0, INIT_39 = 0, INIT_3A = 0, INIT_3B = 0, INIT_3C = 0,
      INIT_3D = 0, INIT_3E = 0, INIT_3F = 0;
  localparam [16383:0] DATA = {INIT_3F, INIT_3E, INIT_3D, INIT_3C, INIT_3B, INIT_3A, INIT_39,
      INIT_38, INIT_37, INIT_36, INIT_35, INIT_34, INIT_33, INIT_32, INIT_31, INIT_30, INIT_2F,
      INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29, INIT_28, INIT_27, INIT_26, INIT_25,
      INIT_24, INIT_23, INIT_22, INIT_21, INIT_20, INIT_1F, INIT_1E, INIT_1D, INIT_1C, INIT_1B,
      INIT_1A, INIT_19, INIT_18, INIT_17, INIT_16, INIT_15, INIT_14, INIT_13, INIT_12, INIT_11,
      INIT_10, INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B, INIT_0A, INIT_09, INIT_08, INIT_07,
      INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01, INIT_00};
  localparam [2047:0] PARITY = {INITP_07, INITP_06, INITP_05, INITP_04, INITP_03, INITP_02,
      INITP_01, INITP_00};

  // The upper half of the widest words is at the other port.
  localparam WIDE_READ = RAM_MODE == "SDP" && READ_WIDTH_A == 36;
  localparam WIDE_WRITE = RAM_MODE == "SDP" && WRITE_WIDTH_B == 36;
  wire [63:0] do_a, do_b;
  wire [7:0] dop_a, dop_b;
  benn_ramb #(
    .BITS(14), .READ_WIDTH_A(READ_WIDTH_A), .READ_WIDTH_B(READ_WIDTH_B),
    .WRITE_WIDTH_A(WRITE_WIDTH_A), .WRITE_WIDTH_B(WRITE_WIDTH_B), .WRITE_MODE_A(WRITE_MODE_A),
    .WRITE_MODE_B(WRITE_MODE_B), .DOA_REG(DOA_REG), .DOB_REG(DOB_REG), .RAM_MODE(RAM_MODE),
    .DATA(DATA), .PARITY(PARITY)
  ) ram (
    .clk_a(CLKARDCLK), .en_a(ENARDEN), .move_a(REGCEAREGCE), .reset_latch_a(RSTRAMARSTRAM),
    .reset_register_a(RSTREGARSTREG), .clk_b(CLKBWRCLK), .en_b(ENBWREN), .move_b(REGCEB),
    .reset_latch_b(RSTRAMB), .reset_register_b(RSTREGB),
    .a(ADDRARDADDR[13:0]), .b(ADDRBWRADDR[13:0]), .we_a(WEA), .we_b(WEBWE),
    .di_a(DIADI), .dip_a(DIPADIP),
    .di_b(WIDE_WRITE ? {DIBDI, DIADI} : DIBDI),
    .dip_b(WIDE_WRITE ? {DIPBDIP, DIPADIP} : DIPBDIP),
    .do_a(do_a), .do_b(do_b), .dop_a(dop_a), .dop_b(dop_b)
  );
  assign DOADO = do_a[15:0];
  assign DOPADOP = dop_a[1:0];
  assign DOBDO = WIDE_READ ? do_a[31:16] : do_b[15:0];
  assign DOPBDOP = WIDE_READ ? dop_a[3:2] : dop_b[1:0];
endmodule

module RAMB36E1 (
  input CLKARDCLK, ENARDEN, REGCEAREGCE, RSTRAMARSTRAM, RSTREGARSTREG,
  input CLKBWRCLK, ENBWREN, REGCEB, RSTRAMB, RSTREGB,
  input [15:0] ADDRARDADDR, ADDRBWRADDR,
  input [31:0] DIADI, DIBDI,
  input [3:0] DIPADIP, DIPBDIP,
  input [3:0] WEA,
  input [7:0] WEBWE,
  output [31:0] DOADO, DOBDO,
  output [3:0] DOPADOP, DOPBDOP
);
  parameter DOA_REG = 0, DOB_REG = 0, RAM_MODE = "TDP";
  parameter READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
  parameter WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST";
  parameter INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;  // no memory here has a reset
  parameter RAM_EXTENSION_A = "NONE", RAM_EXTENSION_B = "NONE";

  parameter [255:0] INITP_00 = 0, INITP_01 = 0, INITP_02 = 0, INITP_03 = 0, INITP_04 = 0, INITP_05 =
      0, INITP_06 = 0, INITP_07 = 0, INITP_08 = 0, INITP_09 = 0, INITP_0A = 0, INITP_0B = 0,
      INITP_0C = 0, INITP_0D = 0, INITP_0E = 0, INITP_0F = 0, INIT_00 = 0, INIT_01 = 0, INIT_02 = 0,
      INIT_03 = 0, INIT_04 = 0, INIT_05 = 0, INIT_06 = 0, INIT_07 = 0, INIT_08 = 0, INIT_09 = 0,
      INIT_0A = 0, INIT_0B = 0, INIT_0C = 0, INIT_0D = 0, INIT_0E = 0, INIT_0F = 0, INIT_10 = 0,
      INIT_11 = 0, INIT_12 = 0, INIT_13 = 0, INIT_14 = 0, INIT_15 = 0, INIT_16 = 0, INIT_17 = 0,
      INIT_18 = 0, INIT_19 = 0, INIT_1A = 0, INIT_1B = 0, INIT_1C = 0, INIT_1D = 0, INIT_1E = 0,
      INIT_1F = 0, INIT_20 = 0, INIT_21 = 0, INIT_22 = 0, INIT_23 = 0, INIT_24 = 0, INIT_25 = 0,
      INIT_26 = 0, INIT_27 = 0, INIT_28 = 0, INIT_29 = 0, INIT_2A = 0, INIT_2B = 0, INIT_2C = 0,
      INIT_2D = 0, INIT_2E = 0, INIT_2F = 0, INIT_30 = 0, INIT_31 = 0, INIT_32 = 0, INIT_33 = 0,
      INIT_34 = 0, INIT_35 = 0, INIT_36 = 0, INIT_37 = 0, INIT_38 = 0, INIT_39 = 0, INIT_3A = 0,
      INIT_3B = 0, INIT_3C = 0, INIT_3D = 0, INIT_3E = 0, INIT_3F = 0, INIT_40 = 0, INIT_41 = 0,
      INIT_42 = 0, INIT_43 = 0, INIT_44 = 0, INIT_45 = 0, INIT_46 = 0, INIT_47 = 0, INIT_48 = 0,
      INIT_49 = 0, INIT_4A = 0, INIT_4B = 0, INIT_4C = 0, INIT_4D = 0, INIT_4E = 0, INIT_4F = 0,
      INIT_50 = 0, INIT_51 = 0, INIT_52 = 0, INIT_53 = 0, INIT_54 = 0, INIT_55 = 0, INIT_56 = 0,
      INIT_57 = 0, INIT_58 = 0, INIT_59 = 0, INIT_5A = 0, INIT_5B = 0, INIT_5C = 0, INIT_5D = 0,
      INIT_5E = 0, INIT_5F = 0, INIT_60 = 0, INIT_61 = 0, INIT_62 = 0, INIT_63 = 0, INIT_64 = 0,
      INIT_65 = 0, INIT_66 = 0, INIT_67 = 0, INIT_68 = 0, INIT_69 = 0, INIT_6A = 0, INIT_6B = 0,
      INIT_6C = 0, INIT_6D = 0, INIT_6E = 0, INIT_6F = 0, INIT_70 = 0, INIT_71 = 0, INIT_72 = 0,
      INIT_73 = 0, INIT_74 = 0, INIT_75 = 0, INIT_76 = 0, INIT_77 = 0, INIT_78 = 0, INIT_79 = 0,
      INIT_7A = 0, INIT_7B = 0, INIT_7C = 0, INIT_7D = 0, INIT_7E = 0, INIT_7F = 0;
  localparam [32767:0] DATA = {INIT_7F, INIT_7E, INIT_7D, INIT_7C, INIT_7B, INIT_7A, INIT_79,
      INIT_78, INIT_77, INIT_76, INIT_75, INIT_74, INIT_73, INIT_72, INIT_71, INIT_70, INIT_6F,
      INIT_6E, INIT_6D, INIT_6C, INIT_6B, INIT_6A, INIT_69, INIT_68, INIT_67, INIT_66, INIT_65,
      INIT_64, INIT_63, INIT_62, INIT_61, INIT_60, INIT_5F, INIT_5E, INIT_5D, INIT_5C, INIT_5B,
      INIT_5A, INIT_59, INIT_58, INIT_57, INIT_56, INIT_55, INIT_54, INIT_53, INIT_52, INIT_51,
      INIT_50, INIT_4F, INIT_4E, INIT_4D, INIT_4C, INIT_4B, INIT_4A, INIT_49, INIT_48, INIT_47,
      INIT_46, INIT_45, INIT_44, INIT_43, INIT_42, INIT_41, INIT_40, INIT_3F, INIT_3E, INIT_3D,
      INIT_3C, INIT_3B, INIT_3A, INIT_39, INIT_38, INIT_37, INIT_36, INIT_35, INIT_34, INIT_33,
      INIT_32, INIT_31, INIT_30, INIT_2F, INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29,
      INIT_28, INIT_27, INIT_26, INIT_25, INIT_24, INIT_23, INIT_22, INIT_21, INIT_20, INIT_1F,
      INIT_1E, INIT_1D, INIT_1C, INIT_1B, INIT_1A, INIT_19, INIT_18, INIT_17, INIT_16, INIT_15,
      INIT_14, INIT_13, INIT_12, INIT_11, INIT_10, INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B,
      INIT_0A, INIT_09, INIT_08, INIT_07, INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01,
      INIT_00};
  localparam [4095:0] PARITY = {INITP_0F, INITP_0E, INITP_0D, INITP_0C, INITP_0B, INITP_0A,
      INITP_09, INITP_08, INITP_07, INITP_06, INITP_05, INITP_04, INITP_03, INITP_02, INITP_01,
      INITP_00};

  generate
    if (RAM_EXTENSION_A != "NONE" || RAM_EXTENSION_B != "NONE")
      benn_has_no_model_of_this_mode none ();
  endgenerate

  // The upper half of the widest words is at the other port.
  localparam WIDE_READ = RAM_MODE == "SDP" && READ_WIDTH_A == 72;
  localparam WIDE_WRITE = RAM_MODE == "SDP" && WRITE_WIDTH_B == 72;
  wire [63:0] do_a, do_b;
  wire [7:0] dop_a, dop_b;
  benn_ramb #(
    .BITS(15), .READ_WIDTH_A(READ_WIDTH_A), .READ_WIDTH_B(READ_WIDTH_B),
    .WRITE_WIDTH_A(WRITE_WIDTH_A), .WRITE_WIDTH_B(WRITE_WIDTH_B), .WRITE_MODE_A(WRITE_MODE_A),
    .WRITE_MODE_B(WRITE_MODE_B), .DOA_REG(DOA_REG), .DOB_REG(DOB_REG), .RAM_MODE(RAM_MODE),
    .DATA(DATA), .PARITY(PARITY)
  ) ram (
    .clk_a(CLKARDCLK), .en_a(ENARDEN), .move_a(REGCEAREGCE), .reset_latch_a(RSTRAMARSTRAM),
    .reset_register_a(RSTREGARSTREG), .clk_b(CLKBWRCLK), .en_b(ENBWREN), .move_b(REGCEB),
    .reset_latch_b(RSTRAMB), .reset_register_b(RSTREGB),
    .a(ADDRARDADDR[14:0]), .b(ADDRBWRADDR[14:0]), .we_a(WEA), .we_b(WEBWE),
    .di_a(DIADI), .dip_a(DIPADIP),
    .di_b(WIDE_WRITE ? {DIBDI, DIADI} : DIBDI),
    .dip_b(WIDE_WRITE ? {DIPBDIP, DIPADIP} : DIPBDIP),
    .do_a(do_a), .do_b(do_b), .dop_a(dop_a), .dop_b(dop_b)
  );
  assign DOADO = do_a[31:0];
  assign DOPADOP = dop_a[3:0];
  assign DOBDO = WIDE_READ ? do_a[63:32] : do_b[31:0];
  assign DOPBDOP = WIDE_READ ? dop_a[7:4] : dop_b[3:0];
endmodule
