"""The experiments of the paper, each with the paper's own figures beside ours.

Accuracy is that of the exported integers, by the golden model, on the test part. Figures are means
over seeds with the standard deviation; differences are paired by seed, with the standard error, and
verdict.py says when they decide a claim. What a report says of its settings is collected from the
trainings that took place; beside them stand the versions, and the vector instructions that PyTorch
found, since its kernels round sums in an order that depends on them.
"""

import time
from dataclasses import replace

from benn_fpga.errors import BennError
from benn_fpga.presets import DATA_OPTIONS, EXPERIMENTS, WITHOUT_DATA
from benn_fpga.sw.experiments import (
    bag_vs_boost,
    bit_width,
    bits_or_networks,
    compression,
    first_last,
    robustness_random,
    robustness_trained,
    seq_vs_indep,
    stability,
    theory,
)
from benn_fpga.sw.experiments.common import Study
from benn_fpga.sw.train import cpu, versions

__all__ = ["FUNCTIONS", "Study", "check", "run"]

FUNCTIONS = {
    "theory": theory.run,
    "robustness-random": robustness_random.run,
    "robustness-trained": robustness_trained.run,
    "stability": stability.run,
    "bag-vs-boost": bag_vs_boost.run,
    "seq-vs-indep": seq_vs_indep.run,
    "compression": compression.run,
    "bit-width": bit_width.run,
    "first-last": first_last.run,
    "bits-or-networks": bits_or_networks.run,
}


def check(name, given):
    """Raise unless there is an experiment ``name`` that takes the options ``given``."""
    if name not in EXPERIMENTS:
        raise BennError(f"Experiment must be one of {', '.join(EXPERIMENTS)}, not {name!r}")
    takes = EXPERIMENTS[name] if name in WITHOUT_DATA else (*DATA_OPTIONS, *EXPERIMENTS[name])
    for option in given:
        if option not in takes:
            known = ", ".join(f"`{option}`" for option in takes) or "none of them"
            raise BennError(f"Experiment {name} does not take `{option}`; of the options of "
                            f"data and training it takes {known}")


def run(name, study, command=""):
    """The :class:`~benn_fpga.sw.report.Report` of the experiment called ``name``."""
    check(name, study.given)
    start, made_by = time.perf_counter(), versions()
    study = replace(study, trainings=[])
    report = FUNCTIONS[name](study)
    return replace(report, command=command, seconds=round(time.perf_counter() - start, 1),
                   settings={**study.used(), **report.settings, "quick": study.quick,
                             "versions": made_by, "cpu": cpu()})
