"""docs/results.md from the JSON files beside it: every claim of the paper, its figure and ours."""

import sys
from pathlib import Path

import runs

from benn_fpga import presets
from benn_fpga.cli.guard import guard
from benn_fpga.sw import report
from benn_fpga.sw.experiments.common import VOTES_AXES
from benn_fpga.sw.report import Claim, Line, Report

RESULTS = Path("docs/results")
PAGE = Path("docs/results.md")


def cell(value):
    return str(value).replace("|", "\\|")


def table(columns, rows):
    lines = [f"| {' | '.join(map(cell, columns))} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def section(outcome, name):
    settings = "".join(f"; {key} {_words(value)}" for key, value in outcome.settings.items()
                       if key not in ("data_sha256", "trainings"))
    return "\n\n".join([
        f"## {outcome.title}",
        f"`{outcome.command}` ({outcome.seconds:.0f} s{settings})",
        table(outcome.columns, outcome.rows),
        f"![{outcome.title}](results/{name}.svg)",
        # What a run is to reach is in the table already.
        *(f"* {claim.text}. Paper: {claim.paper}. Here: {claim.ours}. Held: "
          f"**{report.HELD[claim.held]}**." for claim in outcome.claims
          if not name.startswith("runs-")),
    ])


GROUPS = {
    "mnist": "MNIST: dense members",
    "fashion": "Fashion-MNIST: at most 3 Mbit of weights",
    "cifar10-nano": "CIFAR-10: NIN of a tenth of the width",
    "cifar10-tiny": "CIFAR-10: NIN of half the width",
}


def group(prefix, title):
    """The records of runs whose names start with ``prefix`` as a report, or None without any."""
    names = [name for name in runs.RUNS if name.startswith(f"{prefix}-") and runs.record(name)]
    kept = {name: runs.record(name) for name in names}
    if not kept:
        return None
    claims = [Claim(f"{name} reaches {told.goal:.2f} %", told.beside,
                    f"{100 * kept[name]['accuracy']:.2f}",
                    100 * kept[name]["accuracy"] >= told.goal)
              for name in names if (told := runs.RUNS[name]).goal is not None]
    return Report(
        name=f"runs-{prefix}", title=title, command=f"python examples/runs.py '{prefix}-*'",
        columns=[*(column.strip(">") for column in runs.COLUMNS), "command"],
        rows=[[*row, f"`{kept[row[0]]['command']}`"] for row in runs.rows(names)],
        claims=claims, axes=VOTES_AXES,
        lines=[Line(name, list(range(1, len(item["curve"]) + 1)),
                    [100 * share for share in item["curve"]]) for name, item in kept.items()],
        seconds=sum(item["cpu_seconds"] or 0 for item in kept.values()))


def main():
    names = sorted((path.stem for path in RESULTS.glob("*.json")), key=_order)
    reports = {name: report.read(RESULTS / f"{name}.json") for name in names}
    reports |= {f"runs-{prefix}": item for prefix, title in GROUPS.items()
                if (item := group(prefix, title)) is not None}
    claims = [(claim.text, claim.paper, claim.ours, report.HELD[claim.held],
               f"[{_with(item)}](#{_anchor(item.title)})")
              for name, item in reports.items() if name in names for claim in item.claims]
    goals = [(claim.text, claim.paper, claim.ours, report.HELD[claim.held],
              f"[{item.title}](#{_anchor(item.title)})")
             for name, item in reports.items() if name not in names for claim in item.claims]
    page = "\n\n".join([
        "# Results",
        "Written by `python examples/results.py` from the records in [results](results). The "
        "command beside each record writes it, with `-o docs/results --force`. Accuracy is that of "
        "the exported integers on the test part, in percent, as mean ± standard deviation over "
        "seeds; differences are mean ± standard error, paired by seed. A claim is held or refuted "
        "by a one-sided t-test at 5 %, Bonferroni-corrected; otherwise it is inconclusive. Figures "
        "are rounded one by one.",
        "## Claims of the paper",
        "The paper trains on CIFAR-10 and ImageNet, for 100 epochs and with 5 to 500 members. Our "
        "runs are as small as the last column says, so that they can be repeated in minutes. Where "
        "the paper has a plot and no number, its figure is missing.",
        table(("claim", "paper", "here", "held", "with"), claims),
        "## What longer runs reach",
        table(("run", "beside", "here", "reached", "from"), goals),
        *(section(item, name) for name, item in reports.items()),
    ]) + "\n"
    for name, item in reports.items():
        report.draw(item, RESULTS / f"{name}.svg", force=True)
    PAGE.write_text(page)
    print(f"{PAGE}: {len(reports)} tables, {len(claims)} claims, {len(goals)} runs with a goal")
    return 0


def _order(name):
    first = next((n for n, known in enumerate(presets.EXPERIMENTS) if name.startswith(known)), 99)
    return first, name


def _with(item):
    """What an experiment ran with, in a few words."""
    told = item.settings
    frames = f"{told['frames']['train']:,} frames of " if "frames" in told else ""
    words = (f"{frames}{told['data']}" if "data" in told else "", told.get("net", ""),
             f"K = {max(_several(told['members']))}" if "members" in told else "")
    return ", ".join(filter(None, words)) or item.name


def _several(value):
    return value if isinstance(value, list) else [value]


def _words(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} ({_words(item)})" if isinstance(item, dict) else f"{key} {item}"
                         for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_short, _several(value)))


def _short(value):
    """As text; a number without the digits that arithmetic left behind."""
    try:
        return f"{float(value):g}" if "." in str(value) else str(value)
    except ValueError:
        return str(value)


def _anchor(title):
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    sys.exit(guard("results", main))
