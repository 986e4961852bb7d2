"""Registers on the way through every part of the gateware, which takes its depths from here.

This module imports nothing when it runs, so that a component knows its latency and nothing else of
the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benn_fpga.layers import MaxPool, Products, Scale, SumPool
    from benn_fpga.spec import Fold

__all__ = ["FLAG_LATENCY", "MEMORY_LATENCY", "POPCOUNT_LEAF", "hard_latency", "layer_latency",
           "max_latency", "pool_latency", "popcount_latency", "scale_latency", "sum_latency",
           "tree_latency", "vote_latency"]

POPCOUNT_LEAF = 3  # bits that the first level of a popcount adds: one full adder
MEMORY_LATENCY = 2  # read register, then output register
FLAG_LATENCY = 2  # of the queue of error flags: its memory, then its output register


def tree_latency(n: int) -> int:
    """Registered levels of a binary tree that reduces ``n`` items."""
    return (n - 1).bit_length()


def popcount_latency(n: int) -> int:
    """Registered levels of a popcount of ``n`` bits."""
    return 1 + tree_latency(-(-n // POPCOUNT_LEAF))


def sum_latency(simd: int, weight_bits: int, input_bits: int) -> int:
    """Registered levels from a word of ``simd`` weights and inputs to its weighted popcount."""
    return popcount_latency(simd) + tree_latency(weight_bits * input_bits)


def layer_latency(layer: Products, fold: Fold, rounds: int) -> int:
    """Cycles from the last input word of an output fold to that fold's outputs."""
    one_word = (layer.outputs // fold.pe) * (layer.inputs // fold.simd) * rounds == 1
    weights = 0 if one_word else MEMORY_LATENCY
    sums = sum_latency(fold.simd, layer.weight_bits, layer.input_bits)
    accumulate, compare = 1, 1
    return weights + sums + accumulate + compare


def max_latency(layer: MaxPool, lanes: int) -> int:
    """Cycles from the last tap of a max pool's window to its word."""
    recall, compare = int(layer.places(lanes) > 1), 1
    return recall + compare


def pool_latency(layer: SumPool, lanes: int, rounds: int) -> tuple[int, int, int]:
    """Registers of a sum pool before its sums, that of the sums, and those behind them."""
    read = 0 if rounds * layer.channels == lanes else MEMORY_LATENCY
    recall = int(layer.places(lanes) > 1)  # the sum so far is read from a memory
    accumulate, choose, compare = 1, 1, 1
    if not layer.output_bits:
        return recall, accumulate, 0
    if layer.relu:
        return read + choose, accumulate, MEMORY_LATENCY + compare
    return max(recall, read - 1), accumulate, compare


def scale_latency(layer: Scale, lanes: int, rounds: int) -> int:
    """Cycles from a word of integers to that word, scaled."""
    read = 0 if rounds * layer.shape[2] == lanes else MEMORY_LATENCY
    multiply, shift, clip = 1, 1, 1
    return read + multiply + shift + clip


def vote_latency(parallel: int, lanes: int) -> int:
    """Cycles from the last word of votes to the answer."""
    multiply, accumulate, merge, margin = 1, 1, 1, 1
    return (multiply + tree_latency(parallel) + accumulate + tree_latency(lanes)
            + merge + margin)


def hard_latency(lanes: int, words: int) -> int:
    """Cycles from the last word of scores to the last word of hard votes."""
    merge, hold = 1, 1
    return tree_latency(lanes) + merge + hold + words - 1
