"""The protocol bench on a design: pauses on both sides, resets, frames of wrong length."""

from xml.etree import ElementTree

from benn_fpga import golden
from benn_fpga.errors import Mismatch
from benn_fpga.plan.answer import records
from benn_fpga.sim import build
from benn_fpga.sim.workspace import folder_of, tell, workspace

__all__ = ["check_protocol"]

_BENCH = "benn_fpga.sim.tb_axis"


def check_protocol(design, x, *, seed=0):
    """Run the bench with frames ``x``, at least 3; raise :class:`Mismatch` if a test fails.

    Returns the number of tests.
    """
    x = golden.check_input(design.model.encoder, x)
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
