"""Registers on the way through every part of the gateware, which takes its depths from here.

This module imports nothing but what counts bits when it runs, so that a component knows its latency
and nothing else of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benn_fpga.plan.leaves import block_size, chain

if TYPE_CHECKING:
    from benn_fpga.layers import MaxPool, Products, Scale, SumPool, Window
    from benn_fpga.spec import Fold

__all__ = ["FLAG_LATENCY", "MEMORY_LATENCY", "constant_latency", "folded_parts", "hard_latency",
           "layer_latency", "max_latency", "pool_latency", "popcount_groups", "popcount_latency",
           "popcount_registers", "port_latency", "scale_latency", "sum_latency", "tree_latency",
           "vote_latency", "voter_parts", "weights_latency", "window_ahead"]

MEMORY_LATENCY = 2  # read register, then output register
FLAG_LATENCY = 3  # of error flags: memory and output register of their queue, skid buffer


def tree_latency(n: int) -> int:
    """Registered levels of a binary tree that reduces ``n`` items."""
    return (n - 1).bit_length()


def popcount_groups(n: int) -> tuple[int, int]:
    """Groups of nine bits in a popcount of ``n``, and bits that are left over.

    Those are carried into the first adders behind the groups, if there are enough of them; else
    they are in a group that is not full.
    """
    groups, rest = divmod(n, 9)
    return (groups, rest) if rest <= groups // 2 else (groups + 1, 0)


def popcount_registers(n: int, adder_levels: int = 1) -> tuple[bool, ...]:
    """Of each level of a popcount of ``n`` bits whether a register follows it: sums of three, of
    three of those, a tree.

    The first has one, so that a LUT takes XNORs and their sum; then every so many levels, and the
    last.
    """
    levels = 1 + (n > 3) + tree_latency(popcount_groups(n)[0])
    return tuple(level % adder_levels == 0 or level == levels - 1 for level in range(levels))


def popcount_latency(n: int, adder_levels: int = 1) -> int:
    """Registers on the way through a popcount of ``n`` bits."""
    return sum(popcount_registers(n, adder_levels))


def sum_latency(simd: int, weight_bits: int, input_bits: int, adder_levels: int = 1) -> int:
    """Registers from a word of ``simd`` weights and inputs to its weighted popcount."""
    return popcount_latency(simd, adder_levels) + tree_latency(weight_bits * input_bits)


def constant_latency(inputs: int, weight_bits: int, input_bits: int) -> int:
    """... where the weights are constants: chains, then a tree over blocks of inputs and planes."""
    size = block_size(inputs)
    blocks = -(-inputs // size)
    return chain(size).latency + tree_latency(blocks * weight_bits * input_bits)


def window_ahead(layer: Window) -> int:
    """Cycles from when a line buffer is asked for a word to when that is there: it is read as any
    other memory, and what is outside the image is made 0."""
    return MEMORY_LATENCY + (layer.padding > 0)


def weights_latency(layer: Products, fold: Fold, rounds: int) -> int:
    """Cycles in which weights are read, unless they are constants."""
    return 0 if layer.is_unrolled(fold, rounds) else MEMORY_LATENCY


def folded_parts(layer: Products, fold: Fold, adder_levels: int) -> tuple[int, int, int]:
    """Registers behind the weights: of sums of a word, of the accumulator and behind that."""
    sums = sum_latency(fold.simd, layer.weight_bits, layer.input_bits, adder_levels)
    accumulate, compare = 1, int(layer.levels > 1)
    return sums, accumulate, compare


def layer_latency(layer: Products, fold: Fold, rounds: int, adder_levels: int = 1) -> int:
    """Cycles from the last word that is read for an output word to that word."""
    if layer.is_unrolled(fold, rounds):
        compare = 1
        return constant_latency(layer.inputs, layer.weight_bits, layer.input_bits) + compare
    return weights_latency(layer, fold, rounds) + sum(folded_parts(layer, fold, adder_levels))


def max_latency(layer: MaxPool, lanes: int) -> int:
    """Cycles from the last tap of a max pool's window to its word."""
    recall, compare = int(layer.partial_words(lanes) > 1), 1
    return recall + compare


def pool_latency(layer: SumPool, lanes: int, rounds: int) -> tuple[int, int, int]:
    """Registers of a sum pool before its sums, that of the sums, and those behind them."""
    read = 0 if rounds * layer.channels == lanes else MEMORY_LATENCY
    recall = int(layer.partial_words(lanes) > 1)  # the sum so far is read from a memory
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


def voter_parts(parallel: int, lanes: int) -> tuple[int, int, int]:
    """Registers of a voter up to its sums over engines, of totals and the best of a word of them,
    and of the best of all and its margin."""
    multiply, accumulate, merge, margin = 1, 1, 1, 1
    return multiply + tree_latency(parallel), accumulate + tree_latency(lanes), merge + margin


def vote_latency(parallel: int, lanes: int) -> int:
    """Cycles from the last word of votes to the answer."""
    return sum(voter_parts(parallel, lanes))


def hard_latency(lanes: int, words: int) -> int:
    """Cycles from the last word of scores to the last word of hard votes."""
    merge, hold = 1, 1
    return tree_latency(lanes) + merge + hold + words - 1


def port_latency(beats: int) -> int:
    """Cycles from an answer to its first beat; its record is put into a register whole, and leaves
    in so many beats, or 0 if it is sent from where it is."""
    emit, skid = int(beats > 1), 1
    return emit + skid
