import numpy as np
import pytest

import draw
from benn_fpga import presets
from benn_fpga.layers import Dense
from benn_fpga.plan import blocks
from benn_fpga.plan.nodes import Memory
from benn_fpga.plan.plan import draft
from benn_fpga.spec import Fold, Folding

BITS = {"18k": 18432, "36k": 36864, "ecp5": 18432, "ice40": 4096}


def test_every_block_has_a_name():
    assert {name: block.bits for name, block in blocks.BLOCKS.items()} == BITS
    assert list(presets.BRAMS) == list(BITS)


@pytest.mark.parametrize(("words", "bits", "written", "constant"), [
    (512, 36, (1, 1, 1, 5), (1, 1, 1, 5)),
    (513, 36, (2, 1, 2, 9), (2, 1, 2, 7)),
    (512, 37, (2, 1, 2, 5), (2, 1, 2, 5)),
    (512, 72, (2, 1, 2, 9), (2, 1, 2, 9)),
    (16384, 1, (1, 1, 1, 8), (1, 1, 1, 4)),
    (16385, 1, (2, 1, 2, 9), (1, 1, 1, 5)),
    (2048, 9, (1, 1, 1, 5), (1, 1, 1, 5)),
    (256, 16, (1, 1, 1, 1), (1, 1, 1, 1)),
    (3000, 5, (2, 1, 2, 6), (1, 1, 1, 4)),
    (1500, 20, (3, 2, 3, 9), (2, 1, 2, 8)),
    (64, 392, (11, 6, 11, 25), (11, 6, 11, 25)),
    # These and 1500 x 20, 3000 x 5: constants as Yosys 0.70 maps them to all but 36k.
    (1100, 33, (3, 2, 3, 15), (3, 2, 3, 11)),
    (700, 10, (1, 1, 1, 3), (1, 1, 1, 2)),
    (64, 40, (2, 1, 2, 3), (2, 1, 2, 3)),
])
def test_count_depends_on_the_shape(words, bits, written, constant):
    for of, expected in ((False, written), (True, constant)):
        memory = Memory(words, bits, constant=of)
        assert tuple(block.count(memory) for block in blocks.BLOCKS.values()) == expected


def test_only_what_asks_for_block_ram_counts():
    found = blocks.of_memories([Memory(512, 36, copies=3), Memory(63, 400), Memory(64, 31)])
    assert found == {"18k": 3, "36k": 3, "ecp5": 3, "ice40": 15}


@pytest.mark.parametrize(("layer", "members", "expected"), [
    (Dense(64, 32), 1, (1, 1, 1, 1)),        # 2048 bits
    (Dense(63, 32), 1, (0, 0, 0, 0)),        # too few for a block
    (Dense(288, 64), 1, (1, 1, 1, 5)),       # 18432 bits, as 512 x 36
    (Dense(288, 64), 4, (4, 2, 4, 18)),
    (Dense(257, 61), 1, (1, 1, 1, 4)),       # primes: words of one bit
    (Dense(257, 67), 1, (1, 1, 1, 5)),
    (Dense(64, 36, weight_bits=8), 1, (2, 1, 2, 5)),  # words of 8, 16, 24 or 32 bits
])
def test_members_in_turn(layer, members, expected):
    found = blocks.of_weights([layer, Dense(4, 4)], members)
    assert tuple(counts["in_turn"] for counts in found.values()) == expected
    bits = members * (layer.stored_bits + 16)
    assert {name: counts["by_bits"] for name, counts in found.items()} \
        == {name: -(-bits // size) for name, size in BITS.items()}


def test_members_in_turn_are_those_of_a_plan():
    model = draw.random_model(np.random.default_rng(0), members=3, shape=(48,), hidden=(40,))
    first, _ = model.layers
    folded = [draft(model, Folding((Fold(pe, simd), Fold(1, 1)), 1, 64)).units[0]
              for pe in first.pes for simd in first.simds]
    counts = [blocks.of_memories([unit.memories["weights"]])["ice40"] for unit in folded]
    assert blocks.in_turn([first], 3, blocks.BLOCKS["ice40"]) == min(filter(None, counts)) > 1
