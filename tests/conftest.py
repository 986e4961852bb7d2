"""Hypothesis profiles, the environment, a fault put into a module on request (see
hw/test_mutations.py), the order of tests, and when to look for garbage."""

import gc
import importlib.util
import json
import os
import signal
import sys

import pytest
from hypothesis import settings

import schedule

settings.register_profile("default", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("deep", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

MANY = 200_000  # objects, some 50 MB


def pytest_configure(config):
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        os.environ.pop(name, None)  # a make that a test runs is no part of `make test`
    # A shell starts what is in the background so, nohup too, and all children would ignore them.
    for number, handler in ((signal.SIGINT, signal.default_int_handler),
                            (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    fault = os.environ.get("BENN_FAULT")
    if fault:
        _load_with_fault(*json.loads(fault))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return schedule.Scheduler(config, log) if config.option.dist == "loadgroup" else None


def pytest_collection_modifyitems(items):
    items[:] = schedule.in_order(items)


def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()  # libraries and collected tests: no garbage
    gc.disable()


def pytest_runtest_teardown(item):
    """Look for garbage between tests: for Amaranth's many objects a quarter of the time goes into
    looking all the time."""
    if gc.get_count()[0] > MANY:
        gc.collect()


def _load_with_fault(name, line, fault):
    """Import module ``name`` with its one occurrence of ``line`` replaced by ``fault``."""
    spec = importlib.util.find_spec(name)
    source = spec.loader.get_source(name)
    if source.count(line) != 1:
        raise SystemExit(f"{name} must contain exactly one {line!r}")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    exec(compile(source.replace(line, fault), spec.origin, "exec"), module.__dict__)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
