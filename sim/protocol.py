"""The protocol bench on a design: pauses on both sides, resets, frames of wrong length."""

from importlib.util import find_spec
from xml.etree import ElementTree

import numpy as np

from benn_fpga import golden
from benn_fpga.errors import Mismatch, MissingExtra
from benn_fpga.plan.answer import records
from benn_fpga.sim import build
from benn_fpga.sim.workspace import folder_of, tell, workspace

__all__ = ["check_installed", "check_protocol"]

_BENCH = "benn_fpga.sim.tb_axis"
_LEAST, _MOST = 3, 8  # frames that the bench sends


def check_installed():
    """Raise unless the sources and sinks of the bench are there."""
    if find_spec("cocotbext") is None or find_spec("cocotbext.axi") is None:
        raise MissingExtra("cocotbext-axi", "sim")


def check_protocol(design, x, *, seed=0):
    """Run the bench with the first of frames ``x``; raise :class:`Mismatch` if a test fails.

    Returns the number of tests.
    """
    check_installed()
    x = golden.check_input(design.model.encoder, x)
    x = x[np.arange(min(max(len(x), _LEAST), _MOST)) % len(x)]
    result = golden.run(design.model, x)
    folder = folder_of(design.directory)
    build.build(design.verilog, folder / "plain")
    with workspace(folder) as work:
        tell(work, design, x, latency_cycles=design.manifest["predicted"]["latency_cycles"])
        (work / "expected.bin").write_bytes(b"".join(records(result)))
        tests, failed = build.run(folder / "plain", _BENCH, work, seed=seed)
        if failed or not tests:
            names = [case.get("name") for case in ElementTree.parse(work / "results.xml").iter(
                "testcase") if case.find("failure") is not None or case.find("error") is not None]
            raise Mismatch(f"{failed} of {tests} protocol tests fail ({', '.join(names)}); "
                           f"see {work / 'run.log'}")
    return tests
