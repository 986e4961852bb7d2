"""Comparison with a threshold."""

from amaranth.hdl import *

__all__ = ["at_least"]


def at_least(value, threshold):
    """``value >= threshold``, both unsigned.

    Against a constant 0 it is the constant 1: Verilog tools warn of a comparison that cannot fail.
    """
    if isinstance(threshold, Const) and threshold.value == 0:
        return C(1)
    return value >= threshold
