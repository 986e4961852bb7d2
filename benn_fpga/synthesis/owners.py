"""From names in a netlist to nodes of the plan.

Nothing else knows how a path of instances belongs to a node. It takes from the manifest
which nodes there are, and of how many engines; the order of their instances in a path is free.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from benn_fpga.plan import names

__all__ = ["HARNESS", "Owner", "Owners", "signal"]

HARNESS = "harness"  # what is placed around a design


@dataclass(frozen=True, order=True)
class Owner:
    """A ``node`` of the plan, None for what is between nodes, in an ``engine``, None if shared."""

    node: str | None = None
    engine: int | None = None

    def __str__(self):
        where = "" if self.engine is None else f".{names.engine(self.engine)}"
        return f"{self.node or 'between nodes'}{where}"


class Owners:
    """The :class:`Owner` of cells and nets of a design."""

    def __init__(self, manifest):
        self._nodes = {node["name"] for node in manifest["nodes"]}
        engines = max(node["engines"] for node in manifest["nodes"])
        self._engines = {names.engine(n): n for n in range(engines)}
        self._constant = {node["name"] for node in manifest["nodes"] if node["memories"] and all(
            memory["words"] == 1 for memory in node["memories"].values())}
        self._find = lru_cache(maxsize=None)(self._look_up)

    def of(self, name):
        """Of a cell or net. A path counts from outside: inside a node nothing is another node."""
        instances = name.replace("$flatten", "").replace("\\", "").split(".")[:-1]
        return self._find(tuple(instances))

    def is_constant(self, node):
        """Whether all that a node stores is one word, which it never changes."""
        return node in self._constant

    def _look_up(self, instances):
        engine = node = None
        for part in instances:
            if engine is None and part in self._engines:
                engine = self._engines[part]
            elif node is None and part in self._nodes:
                node = part
        return Owner(node, engine)


def signal(name):
    """A net or cell without what tools have appended to it."""
    return re.sub(r"_(SB|TRELLIS|LUT\d|CCU2C|DFF|ALU|PFUMX|L6MUX21)\w*.*$", "",
                  name.replace("$flatten", "").replace("\\", ""))
