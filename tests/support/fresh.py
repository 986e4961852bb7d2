"""Runs of pytest in fresh processes that need not import the libraries once more."""

import contextlib
import io
import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

__all__ = ["run_with_fault"]

# Nothing of benn_fpga: a fault must be in its module before any other imports that.
LIBRARIES = ["_hypothesis_pytestplugin", "_pytest.faulthandler", "_pytest.junitxml",
             "_pytest.skipping", "_pytest.threadexception", "_pytest.unittest",
             "amaranth.back.verilog", "amaranth.lib.fifo", "amaranth.lib.memory", "amaranth.sim",
             "amaranth.sim.pysim", "hypothesis.strategies", "numpy.random", "numpy.typing", "pdb",
             "platformdirs", "pytest", "pytest_cov.plugin", "tomllib", "unittest.mock",
             "xdist.looponfail", "xdist.plugin", "xdist.scheduler", "xdist.workermanage"]


def run_with_fault(root, tests, fault):
    """Run ``tests`` with ``fault`` (see conftest.py) in ``root``; return (exit code, output)."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(LIBRARIES)
    with ProcessPoolExecutor(1, mp_context=processes) as pool:
        return pool.submit(_run, root, tests, json.dumps(fault)).result()


def _run(root, tests, fault):
    os.chdir(root)
    os.environ["BENN_FAULT"] = fault
    with contextlib.redirect_stdout(io.StringIO()) as out:
        # Plain: without rewriting all assertions in hypothesis, which takes a second. Native: a
        # traceback without reading every statement in it.
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "--tb=native",
                            tests])
    return int(code), out.getvalue()
