"""What an experiment found: a table, claims of the paper beside our figures, and lines to plot."""

import dataclasses
import io
import json
import textwrap
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

from benn_fpga.errors import BennError, MissingExtra
from benn_fpga.output import check_file, write_atomically

__all__ = ["HELD", "Claim", "Line", "Report", "check_plot", "draw", "draw_analysis",
           "draw_evaluation", "draw_search", "mean", "read", "spread", "write"]

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
    """Points to plot; ``error`` is the deviation of each y, or two lists, of below and above it."""

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
            told = json.load(file)
        if told.pop("format") != FORMAT or told.pop("version") != 1:
            raise ValueError("of another kind")
        told["claims"] = [Claim(**item) for item in told["claims"]]
        told["lines"] = [Line(**item) for item in told["lines"]]
        return Report(**told)
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
def _figure(name, path, force, figsize, **options):
    """A figure and its axes, which are written to ``path`` at the end."""
    import matplotlib
    from matplotlib.figure import Figure
    # The same numbers give the same bytes; text stays text, which is shorter than its outlines,
    # and a $ in a name is no formula. Not pyplot, which would choose a backend for the process.
    rules = {"svg.hashsalt": name, "svg.fonttype": "none", "text.parse_math": False}
    with matplotlib.rc_context(rules), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # of a name; a box is drawn
        figure = Figure(figsize, layout="constrained")
        yield figure, figure.subplots(**options)
        image, suffix = io.BytesIO(), _suffix(path)
        figure.savefig(image, format=suffix, metadata={"Date": None} if suffix == "svg" else None)
    write_atomically(path, image.getvalue(), force)


def _lines(axes, lines):
    for line in lines:
        axes.errorbar(line.x, line.y, line.error, label=line.label, marker="o", markersize=3,
                      capsize=2, linewidth=1.2)
    axes.grid(alpha=0.3)
    _legend(axes)


def _legend(axes):
    """Below the axes, where it hides no line."""
    labels = axes.get_legend_handles_labels()[1]
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False,
                ncols=1 + (len(labels) > 3))


def draw(report, path, force=False):
    """Plot the lines of a report into an image file; the suffix of ``path`` says which."""
    from matplotlib.ticker import LogFormatter
    with _figure(report.name, path, force, figsize=(7, 4.2)) as (_, axes):
        _lines(axes, report.lines)
        axes.set(title=_wrapped(report.title, 70), xlabel=report.axes[0], ylabel=report.axes[1])
        if report.scale == "log":
            axes.set(xscale="log", yscale="log")
            for axis in (axes.xaxis, axes.yaxis):  # as 0.001: powers of ten are formulas by default
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(LogFormatter())
        elif all(isinstance(x, int) for line in report.lines for x in line.x):
            axes.xaxis.get_major_locator().set_params(integer=True)


def draw_search(trials, front, name, path, force=False):
    """Plot the accuracy of the ``trials`` of a search, as it describes them, against their bits."""
    lengths = sorted({trial["epochs"] for trial in trials})
    with _figure("search", path, force, figsize=(7, 4.2)) as (_, axes):
        for length in lengths:
            some = [trial for trial in trials if trial["epochs"] == length]
            axes.plot([trial["weight_bits"] for trial in some],
                      [100 * trial["accuracy"] for trial in some], ".",
                      alpha=0.3 + 0.7 * length / lengths[-1],
                      label=f"{length} epoch{'s' * (length > 1)}")
        errors = [[100 * (trial["accuracy"] - trial["interval"][0]) for trial in front],
                  [100 * (trial["interval"][1] - trial["accuracy"]) for trial in front]]
        _lines(axes, [Line("best by bits, with 95 % interval",
                           [trial["weight_bits"] for trial in front],
                           [100 * trial["accuracy"] for trial in front], errors)])
        axes.set(title=_wrapped(f"{name}: networks that were tried", 70),
                 xlabel="weight bits of all members", ylabel="accuracy on validation frames, %")


def draw_analysis(analysis, compared, name, path, force=False, cross_validated=None):
    """Plot an :class:`~benn_fpga.analysis.Analysis`: accuracy by K, what each member adds, and how
    often two of them differ. ``compared`` has the accuracy of other networks by name,
    ``cross_validated`` is the :class:`~benn_fpga.analysis.Advice` of folds."""
    with _figure("analysis", path, force, figsize=(13, 4.6), ncols=3) as (figure, axes):
        advice = cross_validated or analysis.advice
        figure.suptitle(_title(name, advice))
        _draw_members(figure, axes, analysis, compared, cross_validated)


def draw_evaluation(result, analysis, name, path, force=False):
    """Plot an :class:`~benn_fpga.api.Evaluation` and the Analysis of the same frames."""
    with _figure("evaluation", path, force, figsize=(13, 9.4), ncols=3, nrows=2) as (figure, axes):
        figure.suptitle(_title(name, analysis.advice))
        _draw_members(figure, axes[0], analysis, {})
        _draw_confusion(figure, axes[1, 0], result)
        _draw_classes(axes[1, 1], result)
        _draw_coverage(axes[1, 2], result)


def _title(name, advice):
    """With the advice, if there is any to give."""
    name = _wrapped(name, 120)
    if advice is None or len(advice.curve) == 1:
        return name
    return f"{name}\nenough: {advice}"


def _wrapped(text, width):
    """In lines that fit a figure: a path may be long."""
    return textwrap.fill(text, width)


def _percent(shares):
    return [100 * share for share in shares]


def _bounds(label, shares, intervals):
    """The :class:`Line` of shares for K = 1, 2, ... with their intervals."""
    error = [[100 * (share - low) for share, (low, _) in zip(shares, intervals, strict=True)],
             [100 * (high - share) for share, (_, high) in zip(shares, intervals, strict=True)]]
    return Line(label, list(range(1, len(shares) + 1)), _percent(shares), error)


def _draw_members(figure, axes, analysis, compared, cross_validated=None):
    """Accuracy by K, what each member adds, and how often two of them differ."""
    votes, gains, pairs = axes
    k = len(analysis.curve)
    lines = [_bounds("vote of the first K, 95 % interval", analysis.curve, analysis.intervals),
             *(Line(label, [1, k], [100 * rival] * 2) for label, rival in compared.items())]
    advice = cross_validated or analysis.advice
    if cross_validated is not None:
        lines.append(_bounds("K members, by cross-validation", advice.curve, advice.intervals))
    elif advice is not None and advice.orders > 1:
        lines.append(Line("vote of any K, mean", list(range(1, k + 1)), _percent(advice.curve)))
    if k > 1:
        votes.plot([0.7] * k, _percent(analysis.members), ".", color="grey", label="a member alone")
    if advice is not None and k > 1:
        votes.axvline(advice.chosen, color="grey", linestyle=":", label="enough")
    votes.set(xlabel="members that vote, K", ylabel="accuracy, %", xlim=(0.5, k + 0.5))
    _lines(votes, lines)
    votes.xaxis.get_major_locator().set_params(integer=True)
    if k == 1:
        votes.set_xticks([1])
        _nothing(gains, "one member: the vote is its own")
        _nothing(pairs, "one member: none to differ from")
        return
    if any(analysis.gain):
        gains.bar(range(k), _percent(analysis.gain))
        gains.axhline(0, color="black", linewidth=0.8)
        gains.set(xlabel="member", ylabel="what the vote loses without it, %")
        gains.grid(alpha=0.3)
    else:
        _nothing(gains, "the vote loses nothing without any one member")
    image = pairs.imshow([_percent(row) for row in analysis.disagreement], vmin=0)
    pairs.set(xlabel="member", ylabel="member")
    figure.colorbar(image, ax=pairs, label="frames in which the two differ, %")
    for axis in (gains.xaxis, pairs.xaxis, pairs.yaxis):
        axis.get_major_locator().set_params(integer=True)


def _nothing(axes, text):
    """Instead of an empty box."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, wrap=True)


def _names(axis, result, more=()):
    """Names of the classes, and ``more``, at an axis, as far as there is room."""
    if len(result.classes) > 20:
        axis.get_major_locator().set_params(integer=True)
        return
    names = [*(each.name for each in result.classes), *more]
    # Of long names both ends, by which they differ.
    axis.set_ticks(range(len(names)), [name if len(name) <= 12 else f"{name[:6]}…{name[-5:]}"
                                       for name in names], fontsize="small")


def _draw_confusion(figure, axes, result):
    """Shares of the frames of each class, with their numbers if the classes are few."""
    frames = [max(1, each.frames) for each in result.classes]
    shares = [[100 * count / of for count in row]
              for row, of in zip(result.confusion, frames, strict=True)]
    image = axes.imshow(shares, vmin=0, vmax=100, cmap="Blues")
    if len(frames) <= 12:
        for label, row in enumerate(result.confusion):
            for answer, count in enumerate(row):
                if count:
                    axes.text(answer, label, count, ha="center", va="center", fontsize="x-small",
                              color="white" if shares[label][answer] > 50 else "black")
    unknown = ["unknown"] * (result.reject is not None)
    _names(axes.xaxis, result, unknown)
    _names(axes.yaxis, result)
    if unknown or any(len(each.name) > 2 for each in result.classes):
        axes.tick_params(axis="x", rotation=90)
    axes.set(xlabel="answer", ylabel="label")
    figure.colorbar(image, ax=axes, label="frames of the label, %")


def _draw_classes(axes, result):
    """Accuracy of each class that has answers, with its interval, and of all."""
    known = [each for each in result.classes if each.accuracy is not None]
    of = "" if result.reject is None else ", unknown not counted"
    if not known:
        _nothing(axes, "every answer is unknown")
        return
    error = [[100 * (each.accuracy - each.interval[0]) for each in known],
             [100 * (each.interval[1] - each.accuracy) for each in known]]
    axes.errorbar(_percent(each.accuracy for each in known), [each.label for each in known],
                  xerr=error, fmt="o", markersize=3, capsize=2, linewidth=1.2,
                  label="a class, 95 % interval")
    axes.axvline(100 * (result.accuracy if result.reject is None else result.answered_accuracy),
                 color="grey", linestyle=":", label="all")
    _names(axes.yaxis, result)
    axes.set(xlabel=f"accuracy, %{of}", ylabel="class")
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    _legend(axes)


def _draw_coverage(axes, result):
    """Error rate of what is answered, against how much is, and where the model rejects."""
    if len(result.coverage) == 1:
        _nothing(axes, "all answers have the same margin")
        return
    axes.plot(_percent(point.coverage for point in result.coverage),
              _percent(1 - point.accuracy for point in result.coverage), drawstyle="steps-post",
              linewidth=1.2, label="answers of at least some margin")
    if result.answered_accuracy is not None and result.reject is not None:
        axes.plot([100 * (1 - result.rejected / result.frames)],
                  [100 * (1 - result.answered_accuracy)], "o", color="black",
                  label=f"margin {result.reject}, the model's")
    first_wrong = min((point.coverage for point in result.coverage if point.wrong), default=0)
    axes.set(xlabel="coverage: frames that are answered, %", ylabel="wrong among the answers, %",
             xlim=(max(0, 100 * first_wrong - 10), 101))
    axes.grid(alpha=0.3)
    _legend(axes)
