"""What synthesis makes of a design answers as the golden model does, cycle for cycle."""

import numpy as np
import pytest

import designs
import draw
from benn_fpga import api, devices
from benn_fpga.errors import BennError

pytestmark = [pytest.mark.sim, pytest.mark.xdist_group("yosys")]

# Constants and everything in parallel; folded, in rounds. Neither needs a block RAM.
CASES = ("unrolled", "folded")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Designs by name, generated once."""
    folder, found = tmp_path_factory.mktemp("netlists"), {}

    def get(name):
        if name not in found:
            found[name] = designs.make(folder / name, *designs.case(name))
        return found[name]
    return get


def simulate(design, device, frames=50):
    x = draw.random_frames(np.random.default_rng(5), design.model, frames)
    return api.simulate(design, x, netlist=device, progress=False)


def test_every_answer_and_every_cycle(made):
    result = simulate(made("unrolled"), "ice40-up5k")
    result.check()
    assert (result.frames, result.mismatches) == (50, 0)


@pytest.mark.verify
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", [name for name, device in devices.DEVICES.items()
                                    if device.family.models and not name.endswith(
                                        ("25k", "45k", "85k", "hx8k", "18"))])
def test_every_family(made, device, name):
    simulate(made(name), device).check()


@pytest.mark.verify
@pytest.mark.parametrize("device", ["ice40-up5k", "ecp5-12k", "gowin-gw1n-9", "xc7"])
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
