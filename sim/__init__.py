"""Co-simulation: cocotb and Verilator on generated Verilog and its manifest."""
