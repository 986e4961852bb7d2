"""Which tests run in one worker, and which first, when several workers share them."""

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler", "in_order"]

# Files whose tests share what takes long to make, and the name of what they share: one worker runs
# them all. pytest-xdist 3.8 has a mark for that, xdist_group, which is without effect with pytest
# 9.2.
TOGETHER = {
    "tests/hw/test_block_ram.py": "synthesis",
    "tests/sim/test_verilog.py": "designs",
    "tests/sim/test_memories.py": "designs",
    "tests/hw/test_emit.py": "designs",
    "tests/sw/test_search.py": "search",
}

# What takes long starts first, so that no worker is left alone with it in the end.
FIRST = (*TOGETHER, "tests/test_walkthrough.py", "tests/sim/", "tests/hw/test_ensemble.py",
         "tests/hw/", "tests/sw/", "tests/benn_fpga/test_synthesis.py::test_the_real_tools")


def in_order(items):
    """Collected tests in the order in which they should start."""
    def rank(item):
        return next((n for n, start in enumerate(FIRST) if item.nodeid.startswith(start)),
                    len(FIRST))
    return sorted(items, key=rank)


class Scheduler(LoadScopeScheduling):
    """Gives out tests one by one, in their order, but those that are `TOGETHER` at once."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid):
        return TOGETHER.get(nodeid.partition("::")[0], nodeid)
