"""Networks of half and of a tenth of the width."""

from itertools import pairwise

import numpy as np

from benn_fpga.sw.experiments.common import VOTES_AXES, line, points
from benn_fpga.sw.report import Claim, Report, mean
from benn_fpga.sw.verdict import every

__all__ = ["run"]

WIDTHS = {
    "1.0 (full)": (1.0, "84.91 / 89.12 / 89.00"),
    "0.5 (tiny)": (0.5, "77.20 / 84.09 / 84.32"),
    "0.1 (nano)": (0.1, "40.70 / 57.12 / 63.11 (500 members)"),
}
# A tenth of the weak network's width would be a network of single neurons.
_COMPRESSIBLE = "mlp:256,128"


def run(study):
    """Narrow networks: alone, bagged and boosted."""
    net = study.given.get("net") or study.weak["net"]
    if "net" not in study.given and net.startswith("mlp"):
        net = _COMPRESSIBLE
    widths = {label: item for label, item in WIDTHS.items() if item[0] < 1 or net != "nin"}
    rows, gains, lines = [], {}, []
    for label, (width, paper) in widths.items():
        alone, bag, boost = (
            study.measure(net=net, ensemble=name, width=width,
                          members=1 if name == "single" else study.members)
            for name in ("single", "bagging", "boost-d"))
        rows.append([label, f"{alone.weight_bits:,}", mean(alone.vote), mean(bag.vote),
                     mean(boost.vote), paper])
        gains[label] = np.subtract(bag.vote, alone.vote)
        lines += [line(study, bag, f"bagging, width {width}"),
                  line(study, boost, f"boost-d, width {width}")]
    more = {narrow: points(gains[narrow], gains[wide]) for wide, narrow in pairwise(gains)}
    each = ", ".join(f"{label} {100 * gain.mean():+.2f}" for label, gain in gains.items())
    return Report(
        name="compression", title="Networks of half and of a tenth of the width",
        columns=["width", "bits of a member", "single", "bagging", "boost-d",
                 "paper, SB on CIFAR-10: single / bagging / boosting"],
        rows=rows,
        claims=[Claim("The smaller the network, the more an ensemble gains",
                      "+4.21 (full), +6.89 (tiny), +16.42 (nano)",
                      f"{each}: {', '.join(map(str, more.values()))} points more than the wider",
                      every(more))],
        lines=lines, axes=VOTES_AXES)
