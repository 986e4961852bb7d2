"""Which tests run in one worker, and which first, when several workers share them."""

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler", "in_order"]

# Files whose tests share what takes long to make: one worker runs them all. pytest-xdist 3.8 has a
# mark for that, xdist_group, which with pytest 9.2 is without effect.
TOGETHER = ("tests/hw/test_block_ram.py", "tests/sim/test_verilog.py", "tests/sw/test_search.py")

# What takes long starts first, so that no worker is left alone with it in the end.
FIRST = (*TOGETHER, "tests/test_walkthrough.py", "tests/sim/", "tests/hw/test_ensemble.py",
         "tests/hw/", "tests/sw/")


def in_order(items):
    """Collected tests in the order in which they should start."""
    def rank(item):
        return next((n for n, start in enumerate(FIRST) if item.nodeid.startswith(start)),
                    len(FIRST))
    return sorted(items, key=rank)


class Scheduler(LoadScopeScheduling):
    """Gives out tests one by one, in their order, but those of a file in `TOGETHER` at once."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return file if file in TOGETHER else nodeid
