"""What engines and nodes are called, in the plan and as instances in the Verilog."""

from __future__ import annotations

__all__ = ["ANSWERS", "CONVERTER", "ENCODER", "GATE", "GUARD", "HARD", "LINES", "PORT", "QUEUE",
           "RING", "SERIAL", "SKID", "SLIDING", "TILES", "TOTALS", "VOTER", "before", "engine",
           "layer_of", "unit"]

# Those that are there once.
GUARD, ENCODER, SKID = "guard", "encoder", "skid"
SERIAL, HARD, VOTER = "serial", "hard", "voter"
ANSWERS, TOTALS, PORT = "answers", "totals", "port"

# Those that lead to a layer: a name is one of these with the number of the layer.
CONVERTER, RING, GATE, QUEUE = "converter", "ring", "gate", "queue"
TILES, LINES, SLIDING = "tiles", "lines", "sliding"

_UNIT = "layer"


def engine(n: int) -> str:
    """What is engine ``n``'s own, in a unit."""
    return f"engine{n}"


def unit(n: int) -> str:
    """The unit of layer ``n``."""
    return f"{_UNIT}{n}"


def layer_of(stage: str) -> int | None:
    """The layer whose unit has this name; None for another stage of the schedule."""
    n = stage.removeprefix(_UNIT)
    return int(n) if n != stage else None


def before(prefix: str, n: int, port: int = 0) -> str:
    """A node that leads to a port of layer ``n``; ``prefix`` is what instances of it are called."""
    return f"{prefix}{n}_{port}" if port else f"{prefix}{n}"
