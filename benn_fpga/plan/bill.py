"""What a node is made of: registers, adders, multiplexers, memories, counted from the plan alone.

A bill names parts, not what they take of an FPGA: area.py has a price of each part for each family.
Parts that a family maps in its own way, memories and tables in LUTs, are counted by its
:class:`Fabric`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from benn_fpga import layers
from benn_fpga.plan import latency, nodes
from benn_fpga.plan.geometry import Walk
from benn_fpga.plan.leaves import block_size, chain
from benn_fpga.plan.mapping import LIBRARIES, Library
from benn_fpga.plan.nodes import Node, Unit

if TYPE_CHECKING:
    from benn_fpga.plan.nodes import Memory

__all__ = ["FABRICS", "REGISTERS", "Bill", "Fabric", "Varied", "bill", "blocks",
           "together"]

# Of memories, by name, how many bits of each copy differ from word to word: no others are stored.
Varied: TypeAlias = Mapping[str, Sequence[int]]
# Parts that have registers.
REGISTERS = ("register", "plain register", "delayed", "table register", "counter", "stock",
             "stored bit")
_NARROW = 3  # bits up to which a comparison is a few LUTs
_SHIFTED = 3  # registers in a row that a shift register takes the place of, where there are any


class Bill(dict[str, float]):
    """How many of each part; of those that are not named none."""

    def __missing__(self, part: str) -> float:
        return 0.0


@dataclass(frozen=True)
class Fabric:
    """What of a family decides which parts a design has.

    Members
    -------
    lut : inputs of a LUT
    library : its memories
    has_outputs : whether registers behind a memory of weights can be those of its blocks
    sparing : memories of a design that would have too many blocks; None if they are the same
    """

    lut: int
    library: Library
    has_outputs: bool = True
    sparing: Library | None = None

    def memory(self, memory: Memory, behind: int = 0, bits: int | None = None) -> Bill:
        """One copy of ``memory``, with its read register and so many words ``behind`` it; only so
        many ``bits`` vary, if that is known."""
        words, bits = memory.words, memory.bits if bits is None else bits
        if words == 1:
            return Bill() if memory.constant else Bill({"plain register": 2 * bits})
        mapped = self.library.map(memory, bits)
        if mapped.ram is None:
            if not memory.constant:
                return Bill({"stored bit": words * bits, "register": bits,
                             "plain register": bits * behind})
            kept = _distinct(words, bits)
            return Bill({"table": kept * max(1.0, words / (1 << self.lut)),
                         "table register": kept * (1 + behind)})
        choices = -(-(mapped.pieces - 1) // (3 if self.lut == 6 else 1))  # a LUT6 chooses from four
        choice = Bill({"piece": bits * choices, "pieces": mapped.pieces > 1})
        if not mapped.ram.is_block:
            return together(choice, Bill({"LUT RAM": mapped.count,
                                          "plain register": bits * (1 + behind)}))
        if mapped.pieces > 1:
            select = (mapped.pieces - 1).bit_length()
            return together(choice, Bill({"register": bits * bool(behind), "plain register":
                                          bits * max(0, behind - 1) + select}))
        return Bill({"plain register":
                     bits * (behind - (min(behind, 1) if self.has_outputs else 0))})


def _distinct(words: int, bits: int) -> float:
    """How many of ``bits`` columns of random words differ, and are no constants."""
    if words > 16:
        return bits
    kinds = 2.0 ** words
    return (kinds - 2) * (1 - (1 - 1 / kinds) ** bits)


def _width(n: int) -> int:
    """Bits of a count of ``n`` values."""
    return (n - 1).bit_length() if n > 1 else 0


def _counters(*stops: int) -> Bill:
    return Bill({"counter": sum(map(_width, stops)), "counters": sum(n > 1 for n in stops)})


def _stocks(*most: int) -> Bill:
    return Bill({"stock": sum(n.bit_length() + 1 for n in most), "stocks": len(most)})


def _times(count: float, part: Bill) -> Bill:
    return Bill((key, count * value) for key, value in part.items())


def together(*parts: Bill) -> Bill:
    """The bill of all ``parts``."""
    total = Bill()
    for part in parts:
        for key, value in part.items():
            total[key] += value
    return total


def _line(bits: int, cycles: int) -> Bill:
    """Registers in a row, which some families have shift registers for."""
    if cycles < _SHIFTED:
        return Bill({"plain register": bits * cycles})
    return Bill({"delayed": bits * cycles, "delay line": bits})


def _tree(items: list[tuple[int, int]], registers: tuple[bool, ...] | None = None,
          most: int | None = None) -> tuple[Bill, int]:
    """A tree of adders of numbers whose bits are from the first to below the second of ``items``, a
    register after each level or as ``registers`` say; and the bits of its sum, ``most`` at most."""
    total, level = Bill(), 0
    while len(items) > 1:
        adders = total["chains"]
        sums = [_pair(total, pair, most) for pair in zip(items[::2], items[1::2], strict=False)]
        items = sums + items[2 * len(sums):]
        if registers is None or registers[level]:
            passed = adders == total["chains"]
            total["delayed" if passed else "register"] += sum(high - low for low, high in items)
        level += 1
    return total, items[0][1]


def _pair(total: Bill, pair: tuple[tuple[int, int], tuple[int, int]],
          most: int | None) -> tuple[int, int]:
    """The sum of two numbers, which is added to the bill."""
    (low, end), (start, high) = sorted(pair)
    if end <= start:  # side by side
        return low, high
    top = max(end, high) + 1
    top = top if most is None else min(top, most)
    total["adder"] += top - start
    total["chains"] += 1
    return low, top


def _popcount(simd: int, adder_levels: int) -> tuple[Bill, int]:
    """A popcount of XNORs, and the width of its sum."""
    groups, over = latency.popcount_groups(simd)
    threes, *later = latency.popcount_registers(simd, adder_levels)
    third = -(-(simd - over) // 3)
    whole = (simd - over) / 3
    total = Bill({"three": whole, "register": 2 * third * threes})
    width = min(2, simd.bit_length())
    if simd > 3:
        nines, *later = later
        total["nine"] += groups
        total["plain register"] += over * (threes + nines)
        total["register"] += 4 * groups * nines
        width = 4
    tree, width = _tree([(0, width)] * groups, tuple(later))
    return together(total, tree), min(width, simd.bit_length())


def _products(unit: Unit, fabric: Fabric, varied: Varied) -> Bill:
    """Dense and convolutional layers."""
    layer, fold = unit.stage.layer, unit.stage.fold
    assert isinstance(layer, layers.Products)
    engines, ways, output_bits = unit.o.ways, unit.i.ways, unit.o.element_bits
    memories = unit.memories
    weights, table = memories["weights"], memories["table"]
    if unit.is_unrolled:
        return _constants(unit, layer, engines, ways)
    read = latency.MEMORY_LATENCY + unit.relays
    planes = layer.weight_bits * layer.input_bits
    one, width = _popcount(fold.simd, unit.adder_levels)
    total = _times(planes, one)
    sums = Bill()
    if planes > 1:
        sums, width = _tree([(i + j, i + j + width) for i in range(layer.weight_bits)
                             for j in range(layer.input_bits)])
        width = min(width, layer.max_sum.bit_length())
    sf = layer.inputs // fold.simd
    accumulator = layer.popcount_bits if layer.levels > 1 else layer.entry_bits(output_bits)
    add = Bill({"accumulator" if sf > 1 else "adder": accumulator, "register": accumulator,
                "chains": 1})
    stored = varied.get("table", [table.bits] * engines)
    compare = Bill()
    if layer.levels > 1:
        add["register"] += layer.output_bits
        compare = Bill({"comparison": sum(stored)})
    elements = _times(fold.pe, together(total, sums, add))
    rom = _times(engines, fabric.memory(weights, read - 1))
    rows = together(*(fabric.memory(table, latency.MEMORY_LATENCY + table.is_block - 1, bits)
                      for bits in stored))
    depth = read + latency.sum_latency(fold.simd, layer.weight_bits, layer.input_bits,
                                       unit.adder_levels)
    late = max(0, read - unit.i.ahead)
    positions = layer.positions if unit.rounds > 1 else 1
    rows_asked = min(depth, depth + (layer.levels > 1) - latency.MEMORY_LATENCY - table.is_block)
    control = together(
        _counters(weights.words // (unit.rounds if positions > 1 else 1),
                  table.words // (unit.rounds if positions > 1 else 1), sf),
        _times(2, _counters(positions, unit.rounds)) if positions > 1 else Bill(),
        _line(fold.simd * layer.input_bits * ways, late), _line(1, depth - rows_asked),
        Bill({"plain register": depth + 1, "register": 1}))
    return together(_times(engines, elements), rom, rows, compare, control)


def _constants(unit: Unit, layer: layers.Products, engines: int, ways: int) -> Bill:
    """... whose weights are constants: leaves that outputs and members share, chains of adders."""
    size = block_size(layer.inputs)
    blocks = -(-layer.inputs // size)
    links = chain(size)
    readers = layer.outputs * (engines if ways == 1 else 1)
    planes = layer.weight_bits * layer.input_bits
    total = Bill()
    for leaf in links.leaves:
        patterns = 2.0 ** (len(leaf.bits) - 1)
        shared = patterns * (1 - (1 - 1 / patterns) ** (readers * layer.weight_bits))
        total["leaf"] += shared * leaf.half_bits * blocks * layer.input_bits * ways
        total["parity"] += blocks * layer.input_bits * ways
        total["register"] += (shared * leaf.half_bits + 1) * blocks * layer.input_bits * ways
    waits = sum(leaf.adder for leaf in links.leaves for _ in leaf.bits)
    total["register"] += waits / 2 * blocks * layer.input_bits * ways
    outputs = layer.outputs * engines
    for adder in range(links.adders):
        bits = min(2 + adder, layer.max_sum.bit_length())
        total["constant adder"] += bits * outputs * planes * blocks
        total["register"] += bits * outputs * planes * blocks
    if planes * blocks > 1:
        tree, _ = _tree([(0, size.bit_length())] * (planes * blocks))
        total = together(total, _times(outputs, tree))
    last = layer.entry_bits(unit.o.element_bits) if layer.is_scores else layer.output_bits
    total["constant comparison"] += outputs * max(1, layer.levels) * layer.popcount_bits
    total["register"] += outputs * last + unit.latency + 2
    return total


def _max_pool(unit: Unit, fabric: Fabric, varied: Varied) -> Bill:
    layer, lanes = unit.stage.layer, unit.i.lanes * unit.o.ways
    assert isinstance(layer, layers.MaxPool)
    bits = lanes * layer.code_bits
    return together(_pooled(unit, fabric, bits), Bill({
        "maximum": bits, "register": bits * (1 + (latency.max_latency(layer, unit.i.lanes) - 1))}))


def _pooled(unit: Unit, fabric: Fabric, bits: int) -> Bill:
    """What pools share: partial results, and where a window begins and ends."""
    layer = unit.stage.layer
    assert isinstance(layer, (layers.MaxPool, layers.SumPool))
    parts = [fabric.memory(memory) for name, memory in unit.memories.items() if name == "partials"]
    if parts:
        address = _width(layer.partial_words(unit.i.lanes))
        parts.append(Bill({"register": address + 2, "mux": bits if
                           layer.channels == unit.i.lanes else 0}))
    if not layer.is_tiled:
        parts.append(_counters(layer.taps))
    return together(Bill({"register": unit.latency + unit.i.ahead}), *parts)


def _sum_pool(unit: Unit, fabric: Fabric, varied: Varied) -> Bill:
    layer, lanes = unit.stage.layer, unit.i.lanes * unit.o.ways
    assert isinstance(layer, layers.SumPool)
    taps = unit.i.element_bits
    bits = unit.o.element_bits if not layer.output_bits else layer.sum_bits(taps)
    before, _, after = latency.pool_latency(layer, unit.i.lanes, unit.rounds)
    single = layer.taps == 1
    total = Bill({"register": lanes * (bits * (1 + max(0, after - 1)) + taps * before)})
    total["adder" if single else "accumulator"] += 0 if single else lanes * bits
    total["chains"] += 0 if single else lanes
    memories = unit.memories
    if layer.relu:
        address = layer.address_bits(unit.i.lanes, unit.rounds)
        total = together(total, Bill({
            "comparison": lanes * layer.active_bits(taps), "comparisons": lanes,
            "mux": lanes * taps, "register": lanes * (address + 1),
            "accumulator": lanes * address, "chains": lanes}))
    if layer.output_bits:
        total = together(total, Bill({
            "comparison": lanes * layer.levels * bits, "comparisons": lanes * layer.levels,
            "register": lanes * layer.output_bits}))
    roms = [_times(memory.copies, fabric.memory(memory, 1))
            for name, memory in memories.items() if name != "partials"]
    repeats = layer.covered if layer.is_tiled else layer.positions
    rows = layer.channels // unit.i.lanes
    addresses = _counters(rows * unit.rounds) if unit.rounds == 1 else \
        _counters(rows, repeats, unit.rounds * rows)
    if layer.output_bits:
        roms.append(_times(1 + layer.relu, addresses))
    return together(_pooled(unit, fabric, lanes * bits), total, *roms)


def _scale(unit: Unit, fabric: Fabric, varied: Varied) -> Bill:
    layer, lanes = unit.stage.layer, unit.i.lanes * unit.o.ways
    assert isinstance(layer, layers.Scale)
    taps, bits, widths = unit.i.element_bits, unit.o.element_bits, dict(unit.constants)
    gain, bias = widths["gain"], widths["bias"]
    product = gain + taps
    shifted = max(1, product - layer.shift)
    rows, columns, channels = layer.shape
    words = channels // unit.i.lanes
    late = latency.scale_latency(layer, unit.i.lanes, unit.rounds) - 3
    return together(
        Bill({"product": lanes * gain * taps, "adder": lanes * (product + max(shifted, bias)),
              "chains": 2 * lanes, "clip": lanes * bits, "clips": lanes,
              "register": lanes * (product + shifted + bits) + late + 3
              + 2 * _width(words * unit.rounds)}), _line(lanes * taps, late),
        *(fabric.memory(memory, 1) for memory in unit.memories.values()),
        _counters(words * unit.rounds) if unit.rounds == 1 else
        _counters(words, rows * columns, words * unit.rounds))


def _add(unit: Unit, fabric: Fabric, varied: Varied) -> Bill:
    lanes, bits = unit.o.lanes * unit.o.ways, unit.o.element_bits
    return Bill({"adder": lanes * bits, "chains": lanes, "register": lanes * bits + 1})


_UNITS: dict[type[layers.Layer], Callable[[Unit, Fabric, Varied], Bill]] = {
    layers.Dense: _products,
    layers.Conv: _products,
    layers.MaxPool: _max_pool,
    layers.SumPool: _sum_pool,
    layers.Scale: _scale,
    layers.Add: _add,
}


def _ring(node: nodes.Ring, fabric: Fabric, varied: Varied) -> Bill:
    memory = node.memories["memory"]
    ahead = node.o.ahead
    behind = int(memory.is_block) if ahead else 0
    return together(
        fabric.memory(memory, behind), _stocks(memory.words, memory.words),
        _counters(memory.words, node.i.words, node.replays),
        Bill({"register": 3 + max(0, ahead - 1 - behind) * _width(memory.words)
              + max(0, ahead - 1)}))


def _converter(node: nodes.Converter, fabric: Fabric, varied: Varied) -> Bill:
    gear = node.gear
    total = Bill()
    if gear.collect > 1:
        bits = gear.collect * node.i.bits
        total = together(total, _counters(gear.collect), Bill({
            "plain register": bits, "register": 1,
            "indexed word": gear.collect * (gear.tail is not None)}))
        if gear.tail is not None:
            total = together(total, _counters(gear.blocks + 1))
    if gear.emit > 1:
        bits = gear.emit * node.o.bits
        total = together(total, _counters(gear.emit), Bill({
            "register": bits + 1, "shifted": bits - node.o.bits}))
        if gear.tail is not None:
            total = together(total, _counters(gear.blocks + 1))
    return total


def _lines(node: nodes.LineBuffer, fabric: Fabric, varied: Varied) -> Bill:
    stage = node.stage
    layer, memory = stage.window, node.memories["memory"]
    slots = Walk(layer).slots
    masked = layer.padding > 0
    address = _width(memory.words)
    rows, columns = layer.grid
    return together(
        fabric.memory(memory, 1),
        _counters(memory.words, stage.words_in, stage.words_in // stage.parts, layer.kernel[1],
                  layer.kernel[0], stage.words_out // stage.parts, stage.parts),
        _times(2, _counters(rows * layer.stride, columns * layer.stride)),
        Bill({"address": address, "register": 4 * address + 2 * (_width(slots) + 2)
              + (node.i.bits + 1) * masked + 3, "mux": node.i.bits * masked,
              "lines padded": masked * (_width(rows) + _width(columns))}))


def _sliding(node: nodes.SlidingWindow, fabric: Fabric, varied: Varied) -> Bill:
    stage = node.stage
    layer = stage.windowed
    pixel, taps = node.i.bits, layer.taps
    parts = [fabric.memory(memory) for memory in node.memories.values()]
    words = taps * node.i.bits // node.o.bits
    return together(
        Bill({"register": taps * pixel + 1, "mask": taps * pixel * (layer.padding > 0),
              "mux": node.o.bits * (words - 1)}),
        _counters(words, stage.words_out, layer.shape[0] + layer.padding,
                  layer.shape[1] + layer.padding, layer.grid[0] * layer.stride,
                  layer.grid[1] * layer.stride, layer.shape[0] * layer.shape[1]),
        Bill({"register": sum(layer.kernel) * (layer.padding > 0)}), *parts)


def _tiles(node: nodes.Tiles, fabric: Fabric, varied: Varied) -> Bill:
    layer = node.stage.windowed
    words = node.stage.words_in
    return _counters(words, *layer.shape[:2], *(max(2, space) for space in layer.spacing),
                     layer.grid[1] * words)


def _queue(node: nodes.Queue, fabric: Fabric, varied: Varied) -> Bill:
    memory = node.memories["memory"]
    depth = node.depth or 1
    return together(fabric.memory(memory), _stocks(memory.words, depth),
                _counters(memory.words, memory.words, node.count), Bill({"register": 1}))


def _guard(node: nodes.Guard, fabric: Fabric, varied: Varied) -> Bill:
    memory = node.memories["errors"]
    return together(
        Bill({"mask": node.i.bits, "kept byte": node.i.lanes, "register": 4}),
        _counters(node.i.words, memory.words, memory.words), _stocks(memory.words, memory.words),
        fabric.memory(memory))


def _encoder(node: nodes.Encoder, fabric: Fabric, varied: Varied) -> Bill:
    total = Bill({"register": node.o.bits + 1})
    memory = node.memories.get("thresholds")
    compared = node.o.bits if node.threshold_bits else 0
    if memory is None:
        total["constant threshold"] += compared
        return total
    bits, = varied.get("thresholds", [memory.bits])
    return together(total, fabric.memory(memory, bits=bits), _counters(memory.words), Bill({
        "register": bits + 1, "comparison": bits, "comparisons": compared}))


def _hard(node: nodes.HardVote, fabric: Fabric, varied: Varied) -> Bill:
    engines, lanes, score = node.i.ways, node.i.lanes, node.i.element_bits
    index = _width(node.i.words * lanes)
    best = Bill({"score comparison": score, "score mux": score + index})
    tree = _times(lanes - 1, best)
    waiting, levels = lanes, 0
    while waiting > 1:
        waiting = -(-waiting // 2)
        levels += waiting
    return together(
        _times(engines, together(tree, Bill({
            "register": levels * (score + index) + score + 2 * index,
            "score comparison": score, "equal": lanes * index}))),
        _times(2, _counters(node.i.words)),
        Bill({"register": latency.tree_latency(lanes) + 2}))


def _ranked(count: int, wide: int, index: int, comparisons: int) -> Bill:
    """So many times the best two of totals, by ``comparisons``; narrow ones take few LUTs."""
    chosen = (comparisons + 1) * wide + index
    if wide <= _NARROW:
        return Bill({"narrow rank": count * (comparisons * wide + chosen)})
    return Bill({"ranked": count * comparisons * wide, "rank mux": count * chosen})


def _voter(node: nodes.Voter, fabric: Fabric, varied: Varied) -> Bill:
    lanes, engines, rounds = node.i.lanes, node.parallel, node.rounds
    total_bits, votes = node.total_bits, node.i.element_bits
    index = _width(node.i.words * lanes)
    growth = max(0, total_bits - votes)
    term = min(total_bits, votes + max(0, growth - int(log2(engines * rounds) + 1)) + 1)
    sums, _ = _tree([(0, term)] * engines, most=total_bits)
    parts = [
        _times(lanes, together(sums, Bill({
            "weighed": engines * votes * (term > votes + 1), "register": engines * term
            + max(1, total_bits - 1 - (votes == 1))}))),
        _counters(node.i.words, rounds, node.i.words),
        Bill({"register": 4 + latency.tree_latency(engines) + latency.tree_latency(lanes)}),
    ]
    if rounds > 1:
        parts += [Bill({"accumulator": lanes * total_bits, "chains": lanes})]
        parts += [fabric.memory(memory) for memory in node.memories.values()]
        parts.append(_line(_width(node.i.words) + 2, 1 + latency.tree_latency(engines)))
        if node.i.words == 1:
            parts.append(Bill({"register": lanes * total_bits}))
    # The top bits of a total are its sign: a spare one, and that of votes which are 0 or 1.
    wide = max(1, total_bits - 1 - (votes == 1))
    first, later = lanes // 2, lanes - 1 - lanes // 2  # pairs of totals, pairs of the best two
    waiting, held = lanes, 0
    while waiting > 1:
        waiting = -(-waiting // 2)
        held += waiting
    parts += [
        _ranked(first, wide, index, 1),
        _ranked(later + (lanes > 1), wide, index, 3),
        _ranked(lanes == 1, wide, index, 2),
        Bill({"register": held * (2 * wide + index) + 3 * wide + 2 * index, "adder": wide,
              "chains": 1}),
    ]
    if node.block > 1:
        parts += [Bill({"register": node.totals.bits + 1}), _counters(node.block)]
    return together(*parts)


def _sources(node: nodes.AnswerPort) -> tuple[list[list[str]], list[list[str]]]:
    """Words of the head and of the totals: of each bit its source, "" of a constant."""
    index = _width(node.totals.words * node.totals.lanes)
    total, item = node.totals.element_bits, 32
    flags = ["error"] + ["reject"] * (node.reject is not None)
    head = ([f"class {n}" for n in range(index)] + [""] * (16 - index) + flags
            + [""] * (16 - len(flags)) + [f"margin {n}" for n in range(total)]
            + [""] * (item - total))

    def totals(first: int, count: int) -> list[str]:
        return [f"total {n} {min(k, total - 1)}" for n in range(first, first + count)
                for k in range(item)]
    if not node.heads:
        whole = head + totals(0, node.totals.words * node.totals.lanes)
        return [whole + [""] * (node.word_bits - len(whole))], []
    size = node.word_bits
    return [head[n:n + size] for n in range(0, len(head), size)], [totals(0, size // item)]


def _port(node: nodes.AnswerPort, fabric: Fabric, varied: Varied) -> Bill:
    heads, items = _sources(node)
    bus = node.o.bits
    flag = Bill({"register": 4, "mux": 1})
    limit = Bill({"comparison": 0 if node.reject is None else node.totals.element_bits})
    if not node.heads:  # one record, which is shifted
        beats, = heads
        moved = _distinct_bits([beats[n:n + bus] for n in range(0, len(beats), bus)])
        shifted = len({each for each in beats if each}) if node.o.words > 1 else 0
        keeps = int(node.o.words > 1)
        beat = len(moved) + keeps + 1
        return together(flag, limit, _counters(node.o.words), Bill({
            "register": 2 * beat + 2 + shifted + (node.o.words > 1) * 2,
            "mux": beat + shifted}))
    parts = max(1, node.word_bits // bus)
    words = [word[n * bus:(n + 1) * bus] for word in (*heads, *items) for n in range(parts)]
    moved = _distinct_bits(words)
    beat = len(moved) + 2
    number = node.totals.words * node.totals.lanes * 32 // node.word_bits
    held = node.totals.bits + 1 if node.totals.lanes * 32 > node.word_bits else 0
    return together(
        flag, limit, _counters(len(heads) + number, parts),
        _counters(node.totals.lanes * 32 // node.word_bits),
        Bill({"register": 2 * beat + 2 + 2 + held, "mux": beat + held,
              "choice": sum(len({*each} - {""}) - 1 + ("" in each) for each in moved)}))


def _distinct_bits(words: list[list[str]]) -> set[tuple[str, ...]]:
    """What bits of a register are in turn, if it holds these ``words``; of equal ones, and of
    constants, none is kept."""
    return {each for each in zip(*words, strict=True) if any(each)}


def _skid(node: nodes.Skid, fabric: Fabric, varied: Varied) -> Bill:
    return Bill({"register": node.i.bits + 2, "plain register": node.i.bits,
                 "spare": node.i.bits})


def _gate(node: nodes.Gate, fabric: Fabric, varied: Varied) -> Bill:
    return together(_counters(node.count), Bill({"register": 1}))


def _serial(node: nodes.Serial, fabric: Fabric, varied: Varied) -> Bill:
    count = node.i.lanes // node.o.lanes
    return Bill({"register": node.i.bits + count, "shifted": node.i.bits + count})


_NODES: dict[type[Node], Callable[[Any, Fabric, Varied], Bill]] = {
    nodes.Skid: _skid,
    nodes.Guard: _guard,
    nodes.Encoder: _encoder,
    nodes.Converter: _converter,
    nodes.Ring: _ring,
    nodes.Tiles: _tiles,
    nodes.LineBuffer: _lines,
    nodes.SlidingWindow: _sliding,
    nodes.Gate: _gate,
    nodes.Queue: _queue,
    nodes.TotalsQueue: _queue,
    nodes.Serial: _serial,
    nodes.HardVote: _hard,
    nodes.Voter: _voter,
    nodes.AnswerPort: _port,
}


def bill(node: Node, fabric: Fabric, varied: Varied = MappingProxyType({})) -> Bill:
    """The parts of ``node``, and one of its kind; of some memories how many bits vary."""
    if isinstance(node, nodes.Unit):
        layer = type(node.stage.layer)
        return together(Bill({layer.__name__: 1}), _UNITS[layer](node, fabric, varied))
    return together(Bill({type(node).__name__: 1}), _NODES[type(node)](node, fabric, varied))


def blocks(node: Node, library: Library, varied: Varied = MappingProxyType({})) -> int:
    """The block RAMs of ``node``."""
    return sum(library.map(memory, bits).blocks
               for name, memory in node.memories.items() if memory.words > 1
               for bits in varied.get(name, [memory.bits] * memory.copies))


FABRICS = {
    "ECP5": Fabric(4, LIBRARIES["ECP5"]),
    "iCE40": Fabric(4, LIBRARIES["iCE40"], has_outputs=False, sparing=LIBRARIES["iCE40, sparing"]),
    "Gowin": Fabric(4, LIBRARIES["Gowin"]),
    "7 series": Fabric(6, LIBRARIES["7 series"]),
    "LUT6": Fabric(6, LIBRARIES["LUT6"], has_outputs=False),
}
