"""Bagging, boosting, independent seeds and joint training."""

from benn_fpga import presets
from benn_fpga.sw.experiments.common import VOTES_AXES, line, points
from benn_fpga.sw.report import Claim, Report, mean
from benn_fpga.sw.verdict import best

__all__ = ["run"]


def run(study):
    """Every way to make an ensemble, members alone and their vote."""
    scores = {name: study.measure(ensemble=name, members=1 if name == "single" else study.members)
              for name in presets.ENSEMBLES}
    half = max(1, study.members // 2)
    single, bag, seeds = scores["single"], scores["bagging"], scores["independent"]
    gain = points(bag.vote, single.vote)
    boost, ahead, held = best({name: points(scores[name].vote, bag.vote)
                               for name in presets.BOOSTS})
    other = points(seeds.vote, bag.vote)
    return Report(
        name="bag-vs-boost", title="Bagging, boosting, independent seeds and joint training",
        columns=["ensemble", "member alone", f"vote of {half}", f"vote of {study.members}",
                 "members"],
        rows=[[name, mean(s.single), mean(s.at(half)), mean(s.vote),
               "/".join(str(len(c)) for c in s.curves)] for name, s in scores.items()],
        claims=[
            Claim("An ensemble is better than a single network",
                  "+4.21 to +24.16 points (32 members)", f"bagging {gain} points", gain.held()),
            Claim("Boosting beats bagging for weak networks",
                  "+2.51 (tiny) and +13.38 (nano) at the most; SB -0.12",
                  f"best of {len(presets.BOOSTS)}, {boost}: {ahead} points", held),
            Claim("Other seeds on all data beat bagging", "not in the paper",
                  f"{other} points", other.held()),
        ],
        lines=[line(study, s, name) for name, s in scores.items() if name != "single"],
        axes=VOTES_AXES)
