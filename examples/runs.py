"""Long training runs, each a `benn-fpga train` command; what each reaches is kept in docs/results.

    python examples/runs.py            the names, and which have a record
    python examples/runs.py 'mnist-*'  run those that have none of this command

The record has the accuracy of the exported integers on the test part, the seconds of CPU, and the
vector instructions that PyTorch used. The models stay in build/runs, and so does the checkpoint of
a run that was interrupted: start it again, and it goes on.
"""

import fnmatch
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.errors import BennError
from benn_fpga.output import write_atomically

RECORDS = Path("docs/results/runs")
MODELS = Path("build/runs")


@dataclass(frozen=True)
class Run:
    """A training run.

    Members
    -------
    dataset, options : of `benn-fpga train`
    goal : what the vote is to reach on the test part, in percent; None if there is no such figure
    beside : figures of others
    """

    dataset: str
    options: str
    goal: float | None = None
    beside: str = ""

    def command(self, path="m.benn"):
        return ["train", self.dataset, *self.options.split(), "-o", path]


def _cifar():
    """The networks of the paper's compression table, as far as a few hours of CPU go."""
    paper = {"nano": ("40.70", "57.12, 500 members", "63.11, 500 members"),
             "tiny": ("77.20", "84.09, 32 members", "84.32, 32 members")}
    few = {"nano": ("--width 0.1 --epochs 5", 4), "tiny": ("--width 0.5 --epochs 2", 2)}
    kinds = {"ab": "--kind ab --encoder threshold", "ib": "--kind ib", "sb": "--kind sb"}
    for size, (options, members) in few.items():
        for kind, chosen in kinds.items():
            for n, ensemble in enumerate(("single", "bagging", "boost-d")):
                count = "" if ensemble == "single" else f" -k {members}"
                goal = float(paper[size][n][:5]) if kind == "sb" else None
                yield f"cifar10-{size}-{kind}-{ensemble}", Run(
                    "cifar10", f"--net nin {options} {chosen} --ensemble {ensemble}{count} "
                    f"--lr 0.003 --batch 32", goal,
                    f"paper, sb: {paper[size][n]}; 100 epochs a member")


RUNS = {
    "mnist-tfc-1": Run("mnist", "--net tfc --ensemble single --epochs 30", 93.2,
                       "Brevitas TFC_1W1A: 93.17"),
    "mnist-tfc-16": Run("mnist", "--net tfc -k 16 --epochs 30", 96.8),
    "mnist-sfc-1": Run("mnist", "--net sfc --ensemble single --epochs 30", 97.0,
                       "Brevitas SFC_1W1A: 97.81"),
    "mnist-sfc-4": Run("mnist", "--net sfc -k 4 --epochs 30 --lr 0.003 --augment crop:1", 98.0),
    "mnist-sfc-8": Run("mnist", "--net sfc -k 8 --kind ib --epochs 100 --lr 0.003 "
                       "--augment crop:1", 98.88, "Brevitas LFC_1W1A: 98.88"),
    "mnist-sfc-8-distilled": Run("mnist", "--net sfc -k 8 --kind ib --epochs 100 --lr 0.003 "
                                 "--augment crop:1 --distill", 98.88, "Brevitas LFC_1W1A: 98.88"),
    "fashion-lenet-4": Run("fashion-mnist", "--net lenet --width 0.5 --kind ib -k 4 --epochs 12 "
                           "--lr 0.003 --batch 64", 89.1, "best of LUT-native networks: 89.1"),
    "fashion-lenet-aqb-4": Run("fashion-mnist", "--net lenet --width 0.5 --kind aqb --bits 2 "
                               "--encoder planes -k 4 --epochs 15 --lr 0.003 --batch 64", 90.5,
                               "best of LUT-native networks: 89.1"),
    **dict(_cifar()),
}


def record(name):
    """What :func:`run` kept of ``RUNS[name]``, or None if there is nothing of its command."""
    kept = _read(RECORDS / f"{name}.json")
    return kept if kept and kept["command"] == text(RUNS[name]) else None


def _read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def text(run):
    return " ".join(["benn-fpga", *run.command()])


def benn_fpga(*command, **options):
    done = subprocess.run([sys.executable, "-m", "benn_fpga", *command], check=False, **options)
    if done.returncode:
        raise BennError(f"benn-fpga {' '.join(command)} failed; see above")
    return done.stdout


def _train(told, path):
    """Train into ``path``; seconds of CPU, None if a part of the run was before an interruption."""
    MODELS.mkdir(parents=True, exist_ok=True)
    resumed = Path(f"{path}.checkpoint").exists()
    before = _cpu()
    benn_fpga(*told.command(path), "--force", *(["--resume"] if resumed else []))
    return None if resumed else round(_cpu() - before)


def _cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(name):
    """Train, measure on the test part, and keep the record."""
    told = RUNS[name]
    print(f"{name}: {text(told)}", flush=True)
    path, trained = str(MODELS / f"{name}.benn"), MODELS / f"{name}.json"
    done = _read(trained)
    if done is None or done["command"] != text(told) or not Path(path).exists():
        from benn_fpga.sw.train import cpu  # loads PyTorch, which a list of names does without
        done = {"command": text(told), "cpu_seconds": _train(told, path), "cpu": cpu()}
        write_atomically(trained, json.dumps(done).encode(), force=True)
    measured = json.loads(benn_fpga("eval", path, told.dataset, "--json", stdout=subprocess.PIPE))
    facts = json.loads(benn_fpga("info", path, "--json", stdout=subprocess.PIPE))
    kept = {
        **done,
        **{key: facts[key] for key in ("members", "weight_bits", "model_sha256", "provenance")},
        **{key: measured[key] for key in ("frames", "accuracy", "member_accuracy", "curve")},
    }
    RECORDS.mkdir(parents=True, exist_ok=True)
    write_atomically(RECORDS / f"{name}.json", json.dumps(kept, indent=1).encode() + b"\n",
                     force=True)


def rows(names):
    for name in names:
        kept, told = record(name), RUNS[name]
        goal = "" if told.goal is None else f"{told.goal:.2f}"
        if kept is None:
            yield name, "-", "-", "-", "-", goal, told.beside
        else:
            alone, seconds = kept["member_accuracy"], kept["cpu_seconds"]
            yield (name, f"{kept['weight_bits'] / 1e6:.3f}",
                   f"{100 * sum(alone) / len(alone):.2f}", f"{100 * kept['accuracy']:.2f}",
                   "-" if seconds is None else f"{seconds / 60:.0f}", goal, told.beside)


COLUMNS = ("run", ">Mbit of weights", ">member alone, %", ">vote, %", ">minutes of CPU",
           ">to reach", "beside")


def main():
    patterns = sys.argv[1:]
    names = [name for name in RUNS if not patterns or
             any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    if not names:
        raise BennError(f"no run is called {' or '.join(patterns)}; there are {', '.join(RUNS)}")
    for name in names if patterns else ():
        if record(name) is None:
            run(name)
    console.show([console.table("Runs", COLUMNS, rows(names))])
    return 0


if __name__ == "__main__":
    sys.exit(guard("runs", main))
