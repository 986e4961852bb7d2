"""From a design to its size and speed on an FPGA: Yosys, nextpnr, and what they say in the names of
the plan."""
