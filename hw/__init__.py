"""Gateware: Amaranth components. Knows nothing of files, training or simulators."""
