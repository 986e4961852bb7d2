"""What engines and nodes are called, in the plan and as instances in the Verilog."""

from __future__ import annotations

__all__ = ["BUFFER", "ENCODER", "FORK", "GATE", "GEAR", "GUARD", "HARD", "PORT", "QUEUE", "READ",
           "SKID", "TILES", "VOTER", "WINDOW", "before", "beside", "engine", "layer_of", "unit"]

# Those that are there once, or once beside every engine; SKID is the one at the bus.
SKID, GUARD, ENCODER, FORK, READ = "skid", "guard", "encoder", "fork", "read"
HARD, VOTER, PORT = "hard", "voter", "port"

# Those that lead to a layer, SKID among them: a name is one of these with the number of the layer.
GEAR, BUFFER, TILES, WINDOW, GATE, QUEUE = "gear", "buffer", "tiles", "window", "gate", "queue"

_UNIT = "layer"


def engine(n: int) -> str:
    return f"member{n}"


def unit(n: int) -> str:
    """The unit of layer ``n``."""
    return f"{_UNIT}{n}"


def layer_of(stage: str) -> int | None:
    """The layer whose unit has this name; None for another stage of the schedule."""
    n = stage.removeprefix(_UNIT)
    return int(n) if n != stage else None


def before(kind: str, n: int, port: int = 0) -> str:
    """A node that leads to a port of layer ``n``; ``kind`` is what instances of it are called."""
    return f"{kind}{n}_{port}" if port else f"{kind}{n}"


def beside(node: str, n: int) -> str:
    """The instance beside engine ``n`` of a node that turns its scores into votes."""
    return f"{node}{n}"
