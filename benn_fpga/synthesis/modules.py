"""Equal modules of a Verilog made one, so that each is synthesised once.

The generator writes a module for every instance. Two that differ in nothing but their own names
and those of equal submodules become one; paths of instances stay as they are.
"""

import re
from collections import Counter

__all__ = ["bordered", "merged"]

REPEATED = 4  # of fewer, the borders cost more than they save

_MODULE = re.compile(r"^module (\\\S+ |\w+) ?\((.*?)^endmodule$", re.S | re.M)
_INSTANCE = re.compile(r"^  (\\\S+ |\w+)(?= +(?:\\\S+ |\w+) ?\($)", re.M)


def _modules(text):
    return {match[1].strip(): match[2] for match in _MODULE.finditer(text)}


def merged(text, top):
    """(Modules, uses): text of each that is left, by name, and how often others have it."""
    given, left, same, chosen, uses = _modules(text), {}, {}, {}, Counter()

    def visit(name):
        uses_here = chosen.get(name)
        if uses_here is None:
            def one(match):
                child = match[1].strip()
                return f"  {_escaped(visit(child))}" if child in given else match[0]
            body = _INSTANCE.sub(one, given[name])
            uses_here = chosen[name] = same.setdefault(body, name)
            left.setdefault(uses_here, body)
        uses[uses_here] += 1
        return uses_here
    visit(top)
    return left, uses


def _escaped(name):
    return f"{name} " if name.startswith("\\") else name


def bordered(text, top, owners):
    """The Verilog ``text`` with equal modules merged; nodes of the plan, and what they have several
    times, keep their borders until they are mapped.

    Then every cell has the name of its node, and equal processing elements are mapped once.
    Constants pass no border, so nodes whose weights are constants have none: synthesis shares terms
    between them, of all members too.
    """
    left, uses = merged(text, top)

    def border(name):
        path = name.removeprefix(f"\\{top}.").split(".")
        inside = owners.of(".".join([*path, ""]))
        if name == top or inside.node is None or owners.is_constant(inside.node):
            return ""
        is_node = owners.of(".".join(path)).node is None
        return "(* keep_hierarchy *) " if is_node or uses[name] >= REPEATED else ""
    return "\n".join(f"{border(name)}module {_escaped(name)}({body}endmodule\n"
                     for name, body in left.items())
