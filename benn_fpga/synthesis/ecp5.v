// Block RAM of ECP5 for simulation: Yosys has only its ports. Two ports of 1, 2, 4, 9 or 18 bits,
// or one that writes and one that reads 36. If REGMODE is OUTREG, a register that OCE moves follows
// that of the memory. What Yosys does not take for our designs is missing, and an error: chip
// selects, inverted clocks, words that are read as they are written.
module DP16KD (
  input CLKA, CEA, OCEA, WEA, RSTA, CSA2, CSA1, CSA0,
  input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
      DIA3, DIA2, DIA1, DIA0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4,
      DOA3, DOA2, DOA1, DOA0,
  input CLKB, CEB, OCEB, WEB, RSTB, CSB2, CSB1, CSB0,
  input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
      DIB3, DIB2, DIB1, DIB0,
  output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4,
      DOB3, DOB2, DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG", REGMODE_B = "NOREG";
  parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL";
  parameter RESETMODE = "SYNC", ASYNC_RESET_RELEASE = "SYNC", GSR = "ENABLED";
  parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000", CLKAMUX = "CLKA", CLKBMUX = "CLKB";
  parameter [319:0] INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0, INITVAL_04 = 0,
      INITVAL_05 = 0, INITVAL_06 = 0, INITVAL_07 = 0, INITVAL_08 = 0, INITVAL_09 = 0,
      INITVAL_0A = 0, INITVAL_0B = 0, INITVAL_0C = 0, INITVAL_0D = 0, INITVAL_0E = 0,
      INITVAL_0F = 0, INITVAL_10 = 0, INITVAL_11 = 0, INITVAL_12 = 0, INITVAL_13 = 0,
      INITVAL_14 = 0, INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0, INITVAL_18 = 0,
      INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0, INITVAL_1C = 0, INITVAL_1D = 0,
      INITVAL_1E = 0, INITVAL_1F = 0, INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0,
      INITVAL_23 = 0, INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0,
      INITVAL_28 = 0, INITVAL_29 = 0, INITVAL_2A = 0, INITVAL_2B = 0, INITVAL_2C = 0,
      INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0, INITVAL_30 = 0, INITVAL_31 = 0,
      INITVAL_32 = 0, INITVAL_33 = 0, INITVAL_34 = 0, INITVAL_35 = 0, INITVAL_36 = 0,
      INITVAL_37 = 0, INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0,
      INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0, INITVAL_3F = 0;
  localparam [20479:0] INIT = {INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B,
      INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34,
      INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E, INITVAL_2D,
      INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26,
      INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F,
      INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
      INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11,
      INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A,
      INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03,
      INITVAL_02, INITVAL_01, INITVAL_00};
  localparam WIDE = DATA_WIDTH_B == 36;
  generate
    if ((DATA_WIDTH_A > 4 ? DATA_WIDTH_A % 9 : DATA_WIDTH_A == 3)
        || (DATA_WIDTH_B > 4 ? DATA_WIDTH_B % 9 : DATA_WIDTH_B == 3)
        || (WRITEMODE_A != "NORMAL" && WRITEMODE_A != "READBEFOREWRITE")
        || (WRITEMODE_B != "NORMAL" && WRITEMODE_B != "READBEFOREWRITE")
        || (REGMODE_A != "NOREG" && REGMODE_A != "OUTREG")
        || (REGMODE_B != "NOREG" && REGMODE_B != "OUTREG")
        || (RESETMODE != "SYNC" && RESETMODE != "ASYNC")
        || CSDECODE_A != "0b000" || CSDECODE_B != "0b000"
        || CLKAMUX != "CLKA" || CLKBMUX != "CLKB" || (WIDE && REGMODE_A != REGMODE_B))
      benn_has_no_model_of_this_mode none ();
  endgenerate

  reg [8:0] bytes [0:2047];
  integer n;
  initial
    for (n = 0; n < 2048; n = n + 1)
      bytes[n] = INIT[n / 2 * 20 + n % 2 * 9 +: 9];

  wire [13:0] a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1,
      ADA0};
  wire [13:0] b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1,
      ADB0};
  wire [17:0] da = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6,
      DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [17:0] db = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6,
      DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  wire [35:0] ra, rb;
  // The low half of 36 bits is at port A.
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5,
      DOA4, DOA3, DOA2, DOA1, DOA0} =
      WIDE ? rb[17:0] : ra[17:0];
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5,
      DOB4, DOB3, DOB2, DOB1, DOB0} =
      WIDE ? rb[35:18] : rb[17:0];

  // Port A: words of bytes, those of 18 bits or more with an enable each in the low bits of the
  // address; or of bits.
  localparam WA = DATA_WIDTH_A, NA = WA < 18 ? 1 : WA / 9;
  wire [35:0] wa = {db, da};
  wire [8:0] ma = ((1 << WA) - 1) << a[2:0];
  reg [35:0] latch_a = 0, out_a = 0;
  assign ra = REGMODE_A == "OUTREG" ? out_a : latch_a;
  integer ka;
  wire at_once_a = RESETMODE == "ASYNC" && RSTA;
  always @(posedge CLKA, posedge at_once_a)
    if (at_once_a) begin
      latch_a <= 0;
      out_a <= 0;
    end else begin
      if (CEA && (!WEA || WRITEMODE_A == "READBEFOREWRITE")) begin
        if (WA < 9)
          latch_a <= (bytes[a[13:3]] & ma) >> a[2:0];
        else
          for (ka = 0; ka < NA; ka = ka + 1)
            latch_a[9 * ka +: 9] <= bytes[a[13:3] / NA * NA + ka];
      end
      if (RSTA) latch_a <= 0;
      if (OCEA) out_a <= RSTA ? 0 : latch_a;
    end
  always @(posedge CLKA)
    if (CEA && WEA) begin
      if (WA < 9)
        bytes[a[13:3]] <= (bytes[a[13:3]] & ~ma) | ((wa[8:0] << a[2:0]) & ma);
      else
        for (ka = 0; ka < NA; ka = ka + 1)
          if (WA == 9 || a[ka])
            bytes[a[13:3] / NA * NA + ka] <= wa[9 * ka +: 9];
    end

  // Port B: words of bytes, those of 18 bits or more with an enable each in the low bits of the
  // address; or of bits.
  localparam WB = DATA_WIDTH_B, NB = WB < 18 ? 1 : WB / 9;
  wire [35:0] wb = {18'b0, db};
  wire [8:0] mb = ((1 << WB) - 1) << b[2:0];
  reg [35:0] latch_b = 0, out_b = 0;
  assign rb = REGMODE_B == "OUTREG" ? out_b : latch_b;
  integer kb;
  wire at_once_b = RESETMODE == "ASYNC" && RSTB;
  always @(posedge CLKB, posedge at_once_b)
    if (at_once_b) begin
      latch_b <= 0;
      out_b <= 0;
    end else begin
      if (CEB && (!WEB || WRITEMODE_B == "READBEFOREWRITE")) begin
        if (WB < 9)
          latch_b <= (bytes[b[13:3]] & mb) >> b[2:0];
        else
          for (kb = 0; kb < NB; kb = kb + 1)
            latch_b[9 * kb +: 9] <= bytes[b[13:3] / NB * NB + kb];
      end
      if (RSTB) latch_b <= 0;
      if (OCEB) out_b <= RSTB ? 0 : latch_b;
    end
  always @(posedge CLKB)
    if (CEB && WEB) begin
      if (WB < 9)
        bytes[b[13:3]] <= (bytes[b[13:3]] & ~mb) | ((wb[8:0] << b[2:0]) & mb);
      else
        for (kb = 0; kb < NB; kb = kb + 1)
          if (WB == 9 || b[kb])
            bytes[b[13:3] / NB * NB + kb] <= wb[9 * kb +: 9];
    end
endmodule
