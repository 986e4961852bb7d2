"""What engines and nodes are called, in the plan and as instances in the Verilog."""

from __future__ import annotations

__all__ = ["before", "engine", "unit"]


def engine(n: int) -> str:
    return f"member{n}"


def unit(n: int) -> str:
    """The unit of layer ``n``."""
    return f"layer{n}"


def before(kind: str, n: int, port: int = 0) -> str:
    """A node that leads to a port of layer ``n``; ``kind`` is what instances of it are called."""
    return f"{kind}{n}_{port}" if port else f"{kind}{n}"
