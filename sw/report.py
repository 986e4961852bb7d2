"""What an experiment found: a table, claims of the paper beside our figures, and lines to plot."""

import dataclasses
import io
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

from benn_fpga.errors import BennError, MissingExtra
from benn_fpga.output import check_file, write_atomically

__all__ = ["HELD", "Claim", "Line", "Report", "check_plot", "draw", "draw_analysis", "mean", "read",
           "spread", "write"]

FORMAT = "benn-experiment"
PLOTS = ("svg", "png", "pdf")
HELD = {True: "yes", False: "no", None: "inconclusive"}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its figure, ours, and whether it held (None: inconclusive)."""

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
    settings : what it ran with, as the trainings have it; where they differ, all values in a list
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


def write(report, path, force=False):
    """Write a report as JSON, over a file that is there only with ``force``."""
    text = json.dumps(report.describe(), indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), force)


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
        raise BennError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BennError(f"{path} is not the result of an experiment; run it again") from None


def check_plot(path, force=False):
    """Raise unless :func:`draw` can write ``path``."""
    check_file(path, force)
    if _suffix(path) not in PLOTS:
        raise BennError(f"a plot is one of {', '.join(PLOTS)}, not {path!r}; give a name that ends "
                        f"in .{PLOTS[0]}")
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "train")


def _suffix(path):
    return str(path).rpartition(".")[2]


@contextmanager
def _figure(name, path, force, **options):
    """A figure and its axes, which are written to ``path`` at the end."""
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot
    # The same numbers give the same bytes; text stays text, which is shorter than its outlines.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(layout="constrained", **options)
        yield figure, axes
        image, kind = io.BytesIO(), _suffix(path)
        figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
        pyplot.close(figure)
    write_atomically(path, image.getvalue(), force)


def _lines(axes, lines):
    for line in lines:
        axes.errorbar(line.x, line.y, line.error, label=line.label, marker="o", markersize=3,
                      capsize=2, linewidth=1.2)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def draw(report, path, force=False):
    """Plot the lines of a report into an image file; the suffix of ``path`` says which kind."""
    with _figure(report.name, path, force, figsize=(7, 4.2)) as (_, axes):
        _lines(axes, report.lines)
        axes.set(title=report.title, xlabel=report.axes[0], ylabel=report.axes[1])
        if report.scale == "log":
            axes.set(xscale="log", yscale="log")
        elif all(isinstance(x, int) for line in report.lines for x in line.x):
            axes.xaxis.get_major_locator().set_params(integer=True)


def draw_analysis(found, compared, name, path, force=False):
    """Plot an :class:`~benn_fpga.analysis.Analysis`: accuracy by K, what each member adds, and how
    often two of them differ. ``compared`` has the accuracy of other networks by name."""
    members = list(range(1, len(found.curve) + 1))
    with _figure("analysis", path, force, figsize=(13, 4.2), ncols=3) as (
            figure, (votes, gains, pairs)):
        figure.suptitle(f"{name}: the first {found.chosen} are best")
        _lines(votes, [
            Line("vote of the first K", members, [100 * a for a in found.curve]),
            Line("member K alone", members, [100 * a for a in found.members]),
            *(Line(label, [1, len(members)], [100 * rival] * 2)
              for label, rival in compared.items())])
        votes.set(xlabel="K", ylabel="accuracy, %")
        gains.bar(members, [100 * gain for gain in found.gain])
        gains.set(xlabel="member", ylabel="what the vote loses without it, %")
        gains.grid(alpha=0.3)
        for axes in (votes, gains):
            axes.xaxis.get_major_locator().set_params(integer=True)
        shares = [[100 * share for share in row] for row in found.disagreement]
        edges = (0.5, len(members) + 0.5)
        image = pairs.imshow(shares, vmin=0, extent=(*edges, *reversed(edges)))
        for axis in (pairs.xaxis, pairs.yaxis):
            axis.get_major_locator().set_params(integer=True)
        pairs.set(xlabel="member", ylabel="member")
        figure.colorbar(image, ax=pairs, label="frames in which the two differ, %")
