"""Comparison with a threshold."""

from amaranth.hdl import *

__all__ = ["at_least", "reaches"]


def at_least(value, threshold):
    """``value >= threshold``, both unsigned.

    Against a constant 0 it is the constant 1: Verilog tools warn of a comparison that cannot fail.
    """
    if isinstance(threshold, Const) and threshold.value == 0:
        return C(1)
    return value >= threshold


def reaches(value, threshold):
    """``value >= threshold``, of an unsigned value and an integer, as logic of a gate per bit.

    Synthesis would make an adder of a comparison, with an inverter for every bit of the threshold.
    """
    if threshold <= 0 or threshold >> len(value):
        return C(threshold <= 0)
    low = (threshold & -threshold).bit_length() - 1  # bits below it do not matter
    reached = value[low]
    for n in range(low + 1, len(value)):
        reached = value[n] & reached if (threshold >> n) & 1 else value[n] | reached
    return reached
