"""What nextpnr reports, in the names of the plan: clock and critical path."""

from benn_fpga.synthesis.owners import HARNESS, signal

__all__ = ["critical_path", "fmax"]


def fmax(report):
    """MHz that the slowest clock reaches, rounded down to hundredths."""
    return min(int(clock["achieved"] * 100) / 100 for clock in report["fmax"].values())


def critical_path(report, owners):
    """The slowest path between two registers: where it starts and ends, and what it passes.

    Each of ``segments`` is a stretch in one node, with its delays in nanoseconds.
    """
    paths = [each for each in report["critical_paths"]
             if each["path"] and each["from"] == each["to"]]
    if not paths:
        return None
    path = max(paths, key=lambda each: sum(step["delay"] for step in each["path"]))["path"]
    segments = []
    for step in path:
        # Routing counts for the node that it leaves.
        name = step["from"]["cell"]
        where = _where(name, owners)
        if not segments or segments[-1]["node"] != where:
            segments.append({"node": where, "logic_ns": 0.0, "routing_ns": 0.0, "levels": 0})
        key = "routing_ns" if step["type"] == "routing" else "logic_ns"
        segments[-1][key] += step["delay"]
        segments[-1]["levels"] += step["type"] == "logic"
    ends = [path[0]["from"]["cell"], path[-1]["to"]["cell"]]
    if segments[-1]["node"] != _where(ends[1], owners):
        segments.append({"node": _where(ends[1], owners), "logic_ns": 0.0, "routing_ns": 0.0,
                         "levels": 0})
    return {
        "from": _where(ends[0], owners), "to": _where(ends[1], owners),
        "from_signal": signal(ends[0]), "to_signal": signal(ends[1]),
        "delay_ns": round(sum(step["delay"] for step in path), 3),
        "logic_ns": round(sum(part["logic_ns"] for part in segments), 3),
        "routing_ns": round(sum(part["routing_ns"] for part in segments), 3),
        "levels": sum(part["levels"] for part in segments),
        "segments": [{key: round(value, 3) if isinstance(value, float) else value
                      for key, value in part.items()} for part in segments],
    }


def _where(name, owners):
    if name.startswith(f"{HARNESS}."):
        return "ports"  # the world around the design
    return str(owners.of(name))
