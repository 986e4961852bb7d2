"""What synthesis makes of a design answers as the golden model does, cycle for cycle."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

import designs
import draw
from benn_fpga import api, golden
from benn_fpga.errors import BennError
from benn_fpga.spec import Fold, Folding

pytestmark = pytest.mark.sim

FAMILIES = ("ice40-up5k", "ecp5-12k", "gowin-gw1n-9", "xc7")
# Constants and everything in parallel; folded, in rounds. Neither needs a block RAM.
CASES = ("unrolled", "folded")


def digits(frames):
    """Images of scikit-learn, 8 x 8 values of 0 to 16."""
    return load_digits().images[:frames].astype(np.uint8)[..., None]


def enlarged(frames):
    """... of the size of MNIST: 28 x 28 bytes."""
    large = digits(frames).repeat(3, axis=1).repeat(3, axis=2) * 15
    return np.pad(large, ((0, 0), (2, 2), (2, 2), (0, 0)))


# Images, and a network for them of two members; with seeds for which its answers differ. Members in
# turn, with weights in memories; unrolled, with weights that are constants; with block RAMs that
# are read only, of weights, and one that is written, a ring.
IMAGES = {
    "digits": (digits(50), 37, {"shape": (8, 8, 1), "raw_bits": 5},
               Folding((Fold(1, 8), Fold(1, 4)), 1, 8)),
    "constants": (digits(50), 37, {"shape": (8, 8, 1), "raw_bits": 5},
                  Folding((Fold(8, 64), Fold(10, 8)), 2, 64)),
    "mnist": (enlarged(10), 67, {"shape": (28, 28, 1), "encoder": "thermometer", "levels": 2},
              Folding((Fold(1, 16), Fold(1, 4)), 1, 8)),
}
QUICK = [(FAMILIES[0], "digits"), (FAMILIES[0], "mnist")]  # unrolled takes a minute


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Designs by name, generated once."""
    folder, found = tmp_path_factory.mktemp("netlists"), {}

    def get(name):
        if name not in found:
            case = network(name) if name in IMAGES else designs.case(name)
            found[name] = designs.make(folder / name, *case)
        return found[name]
    return get


def network(name):
    _, seed, inputs, folding = IMAGES[name]
    return draw.random_model(np.random.default_rng(seed), members=2, hidden=(8,), classes=10,
                             **inputs), folding


def simulate(design, device, frames=50):
    x = draw.random_frames(np.random.default_rng(5), design.model, frames)
    return api.simulate(design, x, netlist=device, progress=False)


def classify(design, device, x):
    """Every image and every cycle as in the golden model, whose answers are not all the same."""
    answers = golden.run(design.model, x)
    assert len(np.unique(answers.totals, axis=0)) > 0.7 * len(x)
    assert len(np.unique(answers.classes)) > 4
    result = api.simulate(design, x, netlist=device, progress=False)
    result.check()
    assert (result.frames, result.mismatches) == (len(x), 0)


@pytest.mark.parametrize(("device", "name"), QUICK)
def test_images(made, device, name):
    classify(made(name), device, IMAGES[name][0])


@pytest.mark.verify
@pytest.mark.parametrize(("device", "name"), [
    case for case in product(FAMILIES, IMAGES) if case not in QUICK])
def test_images_in_every_family(made, device, name):
    classify(made(name), device, IMAGES[name][0])


@pytest.mark.verify
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", FAMILIES)
def test_every_family(made, device, name):
    simulate(made(name), device).check()


@pytest.mark.verify
@pytest.mark.parametrize("device", FAMILIES)
def test_weights_in_block_ram(tmp_path, device):
    model = draw.random_model(np.random.default_rng(0), members=3, shape=(64,), hidden=(32,),
                              classes=10)
    design = api.generate(model, tmp_path / "d", parallel=1, bus=8, lanes=80, frames=0,
                          progress=False)
    assert api.synth(design, device, progress=False).bram
    simulate(design, device).check()


def test_a_netlist_has_no_layers(made):
    with pytest.raises(BennError, match="a `netlist` has no layers to compare"):
        api.simulate(made("unrolled"), np.zeros((1, 5), np.uint8), netlist="ice40-up5k",
                     layers=True, progress=False)
