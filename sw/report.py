"""What an experiment found: a table, claims of the paper beside our figures, and lines to plot."""

import dataclasses
import json
from dataclasses import dataclass, field

from benn_fpga.errors import BennError
from benn_fpga.output import write_atomically

__all__ = ["HELD", "Claim", "Line", "Report", "curve", "draw", "mean", "read", "spread", "write"]

FORMAT = "benn-experiment"
HELD = {True: "yes", False: "no", None: "not shown"}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its figure, ours, and whether it held (None: neither was shown)."""

    text: str
    paper: str
    ours: str
    held: bool | None


@dataclass(frozen=True)
class Line:
    """Points to plot; ``error`` is the deviation of each y."""

    label: str
    x: list
    y: list
    error: list | None = None


@dataclass(frozen=True)
class Report:
    """The outcome of one experiment.

    Members
    -------
    name, title : of the experiment
    command : that prints it
    settings : what it ran with
    columns, rows : its table
    claims : :class:`Claim` each
    lines, axes : its plot, and the labels of x and y; ``scale`` of the axes, linear or log
    seconds : it took
    """

    name: str
    title: str
    columns: list
    rows: list
    claims: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    axes: tuple = ("", "")
    scale: str = "linear"
    settings: dict = field(default_factory=dict)
    command: str = ""
    seconds: float = 0.0

    def describe(self):
        return {"format": FORMAT, "version": 1, **dataclasses.asdict(self)}


def spread(values, digits=2):
    """``mean ± deviation``; one value has no deviation."""
    middle = sum(values) / len(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    deviation = (sum((v - middle) ** 2 for v in values) / (len(values) - 1)) ** 0.5
    return f"{middle:.{digits}f} ± {deviation:.{digits}f}"


def mean(values):
    """:func:`spread` of shares, in percent."""
    return spread([100 * value for value in values])


def write(report, path):
    """Write a report as JSON."""
    text = json.dumps(report.describe(), indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode())


def read(path):
    """The report in a JSON file."""
    try:
        with open(path) as file:
            found = json.load(file)
        if found.pop("format") != FORMAT or found.pop("version") != 1:
            raise ValueError("of another kind")
        found["claims"] = [Claim(**item) for item in found["claims"]]
        found["lines"] = [Line(**item) for item in found["lines"]]
        return Report(**found)
    except OSError as error:
        raise BennError(f"can not read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BennError(f"{path} is not the result of an experiment; run it again") from None


def curve(found, compared, name):
    """The K-curve of an :class:`~benn_fpga.analysis.Analysis` as a report to draw.

    ``compared`` has ``valid`` of other networks by name.
    """
    members = list(range(1, len(found.curve) + 1))
    lines = [Line("vote of the first K", members, [100 * a for a in found.curve]),
             Line("member K alone", members, [100 * a for a in found.members])]
    lines += [Line(label, [1, len(members)], [100 * rival["valid"]] * 2)
              for label, rival in compared.items()]
    return Report(name="curve", title=f"{name}: accuracy of the vote, K chosen: {found.chosen}",
                  columns=[], rows=[], lines=lines,
                  axes=("K", "accuracy on the validation part, %"))


def draw(report, path):
    """Plot the lines of a report into an image file; the suffix of ``path`` says which kind."""
    import io

    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot
    # The same lines give the same bytes; text stays text, which is shorter than its outlines.
    with matplotlib.rc_context({"svg.hashsalt": report.name, "svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        for line in report.lines:
            axes.errorbar(line.x, line.y, line.error, label=line.label, marker="o", markersize=3,
                          capsize=2, linewidth=1.2)
        axes.set(title=report.title, xlabel=report.axes[0], ylabel=report.axes[1])
        if report.scale == "log":
            axes.set(xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        image = io.BytesIO()
        kind = str(path).rpartition(".")[2]
        figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
        pyplot.close(figure)
    write_atomically(path, image.getvalue())
