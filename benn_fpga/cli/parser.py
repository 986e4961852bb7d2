"""What may be typed: the verbs of the command line and their options."""

import argparse
import re
import shlex
from dataclasses import astuple, fields

from benn_fpga import __version__
from benn_fpga.devices import DEVICES
from benn_fpga.errors import plural
from benn_fpga.presets import (
    BENCH_FRAMES,
    BRAMS,
    DEFAULTS,
    ENSEMBLES,
    EXPERIMENTS,
    FLOAT_SCALES,
    KINDS,
    LEVELS,
    MEMBERS,
    MINUTES,
    MLPS,
    NETS,
    RECIPES,
    REWEIGHTS,
    RIVALS,
    SCHEDULES,
    SPLITS,
    TRIALS,
    Defaults,
    whole_number,
)

__all__ = ["PROGRAM", "build", "command", "train_command", "with_options"]

PROGRAM = "benn-fpga"
EXIT_CODES = ("exit codes: 0 success, 1 ran but a check failed, 2 usage error or missing tool, "
              "130 interrupted, 141 broken pipe, 129 or 143 terminated")
_SLOWEST, _FASTEST = 0.001, 1e6  # clocks in MHz
_MOST_CHOSEN = 1_000_000  # frames that are named one by one
DATASETS = f"{', '.join(DEFAULTS)}, or the path of an .npz or .csv file"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{PROGRAM}: error: {message}; see {self.prog} --help\n")


def _count(text, least=1):
    if text.isascii() and text.isdigit() and whole_number(text) is None:
        raise argparse.ArgumentTypeError(f"{_cut(text)} is too large")
    if whole_number(text) is None or whole_number(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least}, not {_cut(text)}")
    return whole_number(text)


def _count_or_none(text):
    return _count(text, 0)


def _seed(text):
    if whole_number(text) is None or whole_number(text) >> 32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to 2**32 - 1, not {_cut(text)}")
    return whole_number(text)


def _frames(text):
    """Numbers of frames, such as 17,42,100-120, in the order in which they are named."""
    ranges = []
    for part in text.split(","):
        first, last = (whole_number(end) for end in (part.split("-", 1) * 2)[:2])
        if first is None or last is None or last < first:
            raise argparse.ArgumentTypeError(
                f"must be numbers of frames as 17,42 or 100-120, not {_cut(text)}")
        ranges.append(range(first, last + 1))
    if sum(map(len, ranges)) > _MOST_CHOSEN:
        raise argparse.ArgumentTypeError(f"must name at most {_MOST_CHOSEN:,} frames, not "
                                         f"{sum(map(len, ranges)):,}")
    return [n for numbers in ranges for n in numbers]


def _cut(text):
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _positive(text):
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, not {_cut(text)}")
    return number


def _rate(text):
    if _positive(text) >= 1:
        raise argparse.ArgumentTypeError(f"must be an error rate below 1, as 0.01 for 1 %, not "
                                         f"{_cut(text)}")
    return _positive(text)


def _megahertz(text):
    if not _SLOWEST <= _positive(text) <= _FASTEST:
        raise argparse.ArgumentTypeError(f"must be a clock in MHz, from {_SLOWEST:g} to "
                                         f"{_FASTEST:g}, not {_cut(text)}")
    return _positive(text)


def _widths(widths):
    return f"{len(widths)}x{widths[0]}" if len(set(widths)) == 1 else ",".join(map(str, widths))


def _defaults():
    """The defaults of each data set, as a table."""
    rows = [("", *(f"--{option.name}" for option in fields(Defaults))),
            *((name, *map(str, astuple(chosen))) for name, chosen in DEFAULTS.items())]
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip()
             for row in rows]
    return "\n  ".join(["defaults:", *lines, "any .npz or .csv as digits, with at most as many "
                                              "levels as its largest value; if that exceeds 0.5 "
                                              "Mbit, --kind ib, and narrower"])


def _experiments():
    """The options of training that each experiment takes."""
    lines = [f"{name}: {', '.join(f'--{option}' for option in takes) or 'none'}"
             for name, takes in EXPERIMENTS.items()]
    return "\n  ".join(["options of training that each takes:", *lines])


def _devices():
    """What --device takes."""
    lines = [f"  {device.name:14} {device.text}" for device in DEVICES.values()]
    return "\n".join(["devices:", *lines])


def build():
    """The parser of the whole command line; ``verb`` of what it parses is the command."""
    top = _Parser(prog=PROGRAM, allow_abbrev=False, epilog=EXIT_CODES,
                  description="Binary ensemble neural networks from PyTorch to FPGA, bit for bit.")
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="COMMAND", required=True)

    def verb(name, text, epilog=None):
        sub = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".",
                               epilog=f"{epilog}\n\n{EXIT_CODES}" if epilog else EXIT_CODES,
                               allow_abbrev=False,
                               formatter_class=argparse.RawDescriptionHelpFormatter)
        sub.add_argument("--json", action="store_true",
                         help="print one JSON object, no tables and no progress")
        return sub

    def data_dir(sub):
        sub.add_argument("--data-dir", metavar="DIR",
                         help="where the data files are (default: $BENN_DATA, else download)")

    def dataset(sub):
        sub.add_argument("dataset", metavar="DATASET", help=DATASETS)
        data_dir(sub)

    def split(sub):
        sub.add_argument("--split", choices=SPLITS, default=SPLITS[0],
                         help=f"part of the data (default: {SPLITS[0]})")

    def force(sub, text="overwrite existing files"):
        sub.add_argument("--force", action="store_true", help=text)

    def reject(sub):
        sub.add_argument("--reject", metavar="RATE", type=_rate,
                         help="reject answers by the smallest margin that leaves at most this "
                              "error rate (0.01: 1 %%) among the others, on the validation part")

    def scale(sub):
        sub.add_argument("--scale", choices=FLOAT_SCALES,
                         help="which floats share a range when they become bytes: those of each "
                              "feature of rows, of each channel or column of images, or all "
                              "(default: feature for rows, all for images)")

    def label(sub):
        sub.add_argument("--label", metavar="NAME",
                         help="column of a .csv file that has the labels, or its number from 1 "
                              "(default: that called label, class or target, else the last)")

    def network(sub):
        widths = ", ".join(f"{name} ({_widths(MLPS[name])})" if name in MLPS else name
                           for name in NETS)
        sub.add_argument("--net", help=f"{widths}, or widths of hidden layers as mlp:256,128; "
                                       f"mlp: without any is a linear classifier")
        sub.add_argument("--width", metavar="W", type=_positive,
                         help="multiply every hidden width: 1, 0.5 (tiny), 0.1 (nano)")
        sub.add_argument("--kind", metavar="KIND", choices=(*KINDS, *RIVALS),
                         help=f"bits of weights and activations: {', '.join(KINDS)}; or a network "
                              f"of the literature: {', '.join(RIVALS)} (default: ab, all binary; "
                              f"ib for large frames of your own)")
        for name in ("bits", "wbits", "abits"):
            takes = [kind for kind, needs in KINDS.items() if name in needs] + \
                [kind for kind, (_, _, needs) in RIVALS.items() if name in needs]
            sub.add_argument(f"--{name}", metavar="Q", type=_count,
                             help=f"for {plural(len(takes), 'kind')} {', '.join(takes)}")
        sub.add_argument("--recipe", choices=RECIPES,
                         help="batch norm alone, or the blocks of the paper (default: hw)")
        sub.add_argument("-k", "--members", metavar="K", type=_count,
                         help=f"number of networks (default: {MEMBERS})")
        sub.add_argument("--encoder",
                         help="threshold[:VALUE], thermometer[:LEVELS] or planes[:BITS]; LEVELS: "
                              f"those of the data set's default if it has any, else {LEVELS}")
        sub.add_argument("--epochs", metavar="N", type=_count,
                         help="times that training sees the data")
        sub.add_argument("--lr", metavar="STEP", type=_positive, help="learning rate at the start")
        sub.add_argument("--batch", metavar="N", type=_count, help="frames in one step")
        sub.add_argument("--augment", metavar="MOVES",
                         help="crop[:PIXELS] shifts images, flip mirrors them, crop+flip does "
                              "both, anew in every epoch (PIXELS: an eighth of the side)")
        sub.add_argument("--limit", metavar="N", type=_count, help="train on at most N frames")

    sub = verb("train", "train an ensemble and write its model file", _defaults())
    dataset(sub)
    sub.add_argument("-o", "--output", metavar="M.benn",
                     help="file to write; not for kinds that compute in float")
    network(sub)
    scale(sub)
    label(sub)
    sub.add_argument("--ensemble", choices=ENSEMBLES,
                     help="how members differ (default: independent)")
    sub.add_argument("--schedule", choices=SCHEDULES,
                     help="members start anew, or from the one before (default: indep)")
    sub.add_argument("--reweight", choices=REWEIGHTS,
                     help="boosting draws frames by weight, or weighs the loss (default: sample)")
    sub.add_argument("--vote", choices=("soft", "hard"), help="default: soft")
    sub.add_argument("--distill", action="store_true", default=None,
                     help="learn from an ensemble of float networks, which is trained first")
    sub.add_argument("--seed", metavar="N", type=_seed, help="default: 0")
    sub.add_argument("--resume", action="store_true",
                     help="go on from the checkpoint of a run that was interrupted")
    reject(sub)
    sub.add_argument("--folds", metavar="N", type=_count,
                     help="say how many members to take by cross-validation: train N more times, "
                          "each without another part of the data")
    sub.add_argument("--plot", metavar="FILE.svg|png|pdf",
                     help="draw accuracy by K, what each member adds, and how they differ")
    sub.add_argument("--compare", action="store_true",
                     help="train also one member, one network of as many bits, and other seeds")
    force(sub)

    sub = verb("search", "find the best network within a limit of size, and train it")
    dataset(sub)
    sub.add_argument("-o", "--output", metavar="M.benn", required=True, help="file to write")
    size = sub.add_mutually_exclusive_group(required=True)
    size.add_argument("--max-bits", metavar="N", type=_count,
                      help="at most N bits of weights in all members")
    size.add_argument("--max-brams", metavar="N", type=_count,
                      help="at most N block RAMs of weights, if one engine runs the members in "
                           "turn (generate --parallel 1)")
    sub.add_argument("--bram", choices=tuple(BRAMS),
                     help="which block RAM: " + "; ".join(
                         f"{name}, {text}" for name, text in BRAMS.items()) + " (default: 18k)")
    sub.add_argument("--trials", metavar="N", type=_count,
                     help=f"networks to try (default: {TRIALS})")
    sub.add_argument("--time", metavar="MINUTES", type=_positive,
                     help=f"for all of them; training the winner comes on top "
                          f"(default: {MINUTES:g})")
    sub.add_argument("--epochs", metavar="N", type=_count,
                     help="of the last round and of the winner (default: as train)")
    scale(sub)
    label(sub)
    sub.add_argument("--limit", metavar="N", type=_count, help="train on at most N frames")
    sub.add_argument("--seed", metavar="N", type=_seed, help="default: 0")
    sub.add_argument("--resume", action="store_true",
                     help="go on from the checkpoint of a search that was interrupted")
    sub.add_argument("--plot", metavar="FILE.svg|png|pdf", help="draw accuracy against weight bits")
    force(sub)

    sub = verb("experiment", "repeat an experiment of the paper", _experiments())
    sub.add_argument("name", metavar="NAME", choices=tuple(EXPERIMENTS),
                     help=", ".join(EXPERIMENTS))
    sub.add_argument("--quick", action="store_true", help="in less than two minutes, on digits")
    sub.add_argument("--dataset", metavar="DATASET",
                     help=f"{DATASETS} (default: mnist; digits if quick)")
    data_dir(sub)
    sub.add_argument("--seeds", metavar="N", type=_count,
                     help="runs of each network (default: 3)")
    network(sub)
    sub.add_argument("-o", "--output", metavar="DIR", help="write table and plot there")
    force(sub)

    sub = verb("info", "show what is in a model file")
    sub.add_argument("model", metavar="M.benn")

    sub = verb("eval", "measure the golden model: accuracy, confusion, rejection by margin")
    sub.add_argument("model", metavar="M.benn")
    dataset(sub)
    split(sub)
    sub.add_argument("--limit", metavar="N", type=_count, help="use the first N frames")
    reject(sub)
    sub.add_argument("-o", "--output", metavar="N.benn",
                     help="write the model with the margin of --reject")
    sub.add_argument("--plot", metavar="FILE.svg|png|pdf",
                     help="draw accuracy by K, by class and by margin, the confusion matrix, what "
                          "each member adds, and how they differ")
    force(sub)

    sub = verb("predict", "answer for your own files: class, name, margin and totals of each frame")
    sub.add_argument("model", metavar="M.benn")
    sub.add_argument("files", metavar="FILE", nargs="+",
                     help=".npz (x, else x_test, else x_train), .npy, .csv, images, or folders of "
                          "images")
    sub.add_argument("--resize", action="store_true", help="make images of another size fit")
    sub.add_argument("--csv", metavar="FILE",
                     help="write all answers there; - prints them instead of the table")
    force(sub)

    sub = verb("pick", "write a model file of the first members of another")
    sub.add_argument("model", metavar="M.benn")
    sub.add_argument("-k", "--members", metavar="K", type=_count, required=True,
                     help="so many; `train` says how many are enough on the validation part")
    sub.add_argument("-o", "--output", metavar="M.benn", required=True, help="file to write")
    force(sub)

    sub = verb("generate", "write Verilog, its manifest, a test bench and a C header")
    sub.add_argument("model", metavar="M.benn")
    sub.add_argument("-o", "--output", metavar="DIR", required=True, help="folder to write")
    sub.add_argument("--parallel", metavar="M", type=_count,
                     help="members side by side; it must divide their number (default: all, or "
                          "what takes the fewest lanes with --cycles and --target-fps)")
    sub.add_argument("--bus", metavar="BITS", type=_count_or_none,
                     help="width of both buses, a multiple of 8 (default: 64)")
    goal = sub.add_mutually_exclusive_group()
    goal.add_argument("--fold", metavar="FILE",
                      help="JSON file with PE and SIMD of each layer, or a design.json")
    goal.add_argument("--lanes", metavar="N", type=_count,
                      help="fastest design with at most N XNOR lanes (default: 4096)")
    goal.add_argument("--cycles", metavar="N", type=_count,
                      help="smallest design that takes at most N cycles per frame")
    goal.add_argument("--target-fps", metavar="F", type=_positive,
                      help="smallest design that reaches F frames per second at --clock")
    goal.add_argument("--fit", action="store_true",
                      help="fastest design that fits --device, by the area model")
    sub.add_argument("--clock", metavar="MHZ", type=_megahertz, help="clock of the design")
    sub.add_argument("--device", metavar="NAME",
                     help="FPGA that it is for, as `synth` names them: what it will take of it is "
                          "estimated, --cycles and --target-fps take the fewest LUTs there; a "
                          "large one gets a register more behind each weight, for the clock, a "
                          "small one fewer between adders (default: any)")
    sub.add_argument("--frames", metavar="N", type=_count_or_none, default=BENCH_FRAMES,
                     help=f"of the test bench in DIR/tb; 0: no bench (default: {BENCH_FRAMES})")
    sub.add_argument("--dataset", metavar="DATASET",
                     help=f"take them from its test part: {DATASETS} (default: drawn at random)")
    data_dir(sub)
    force(sub, "write into a folder with other files, or with the design of another model")

    sub = verb("simulate", "run a design cycle by cycle and check every frame")
    sub.add_argument("design", metavar="DIR", help="folder that generate wrote")
    sub.add_argument("dataset", metavar="DATASET", nargs="?", help=DATASETS)
    sub.add_argument("--from", metavar="FILE", dest="source",
                     help="take the frames of this .npz or .csv file, instead of DATASET")
    data_dir(sub)
    split(sub)
    chosen = sub.add_mutually_exclusive_group()
    chosen.add_argument("--frames", metavar="N", type=_count, help="use the first N frames")
    chosen.add_argument("--only", metavar="LIST", type=_frames,
                        help="use these frames of the part, counted from 0: 17,42,100-120")
    sub.add_argument("--layers", action="store_true",
                     help="compare what every layer gives, not only the answers")
    sub.add_argument("--protocol", action="store_true",
                     help="also send frames with pauses, resets, and among frames of wrong length")
    sub.add_argument("--netlist", metavar="DEVICE",
                     help="run what synthesis makes of the design for this device (see synth)")
    sub.add_argument("--waves", metavar="FILE.vcd", help="record a trace")
    sub.add_argument("--keep", action="store_true",
                     help="leave log, inputs and answers in DIR/sim/run")
    force(sub)

    sub = verb("synth", "synthesise a design for an FPGA: size by node, clock, critical path",
               _devices())
    sub.add_argument("design", metavar="DIR", help="folder that generate wrote")
    sub.add_argument("--device", metavar="NAME", required=True, help=", ".join(DEVICES))
    sub.add_argument("--pnr", action="store_true",
                     help="place and route too, for the clock and the critical path")
    sub.add_argument("--seed", metavar="N", type=_seed, help="of the placement (default: 1)")
    sub.add_argument("--clock", metavar="MHZ", type=_megahertz,
                     help="clock that it must reach after routing (default: any)")
    force(sub, "do again what was done before")

    verb("doctor", "show which tools are there and what to install")
    return top


def with_options(text, args):
    """A message, in which the library names parameters in backquotes, with the options of ``args``.
    """
    def option(match):
        return f"--{match[1].replace('_', '-')}" if match[1] in args else match[0]
    return re.sub(r"`(\w+)(?:=True)?`", option, text)


def train_command(args, settings):
    """The command that trains what a search with ``args`` came to."""
    from benn_fpga.settings import Settings
    told = {name: value for name, value in vars(settings).items()
            if value != getattr(Settings, name)}
    options = {**told, "scale": args.scale, "label": args.label, "data-dir": args.data_dir,
               "limit": args.limit, "output": args.output}
    return " ".join([PROGRAM, "train", shlex.quote(args.dataset), *(
        f"--{name} {shlex.quote(str(value))}" for name, value in options.items()
        if value is not None)])


def command(told):
    """The command of an experiment, without what says where its outcome goes."""
    output = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    output.add_argument("-o", "--output")
    output.add_argument("--force", action="store_true")
    output.add_argument("--json", action="store_true")
    return " ".join([PROGRAM, "experiment", *output.parse_known_args(told)[1]])
