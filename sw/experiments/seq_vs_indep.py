"""Warm restart against independent members."""

from benn_fpga import presets
from benn_fpga.sw.experiments.common import VOTES_AXES, line, points
from benn_fpga.sw.report import Claim, Report, mean
from benn_fpga.sw.verdict import best

__all__ = ["run"]


def run(study):
    """A member that starts from the one before it, or anew."""
    names = ("bagging", "boost-a", "boost-d")
    scores = {(name, schedule): study.measure(ensemble=name, members=study.members,
                                              schedule=schedule)
              for name in names for schedule in presets.SCHEDULES}
    ahead = {name: points(scores[name, "seq"].vote, scores[name, "indep"].vote) for name in names}
    bag = ahead.pop("bagging")
    boost, most, held = best(ahead)
    return Report(
        name="seq-vs-indep", title="Warm restart against independent members",
        columns=["ensemble", "schedule", "member alone", "vote"],
        rows=[[name, schedule, mean(s.single), mean(s.vote)]
              for (name, schedule), s in scores.items()],
        claims=[
            Claim("Warm restart is better with bagging", "up to +3.9 points", f"{bag} points",
                  bag.held()),
            Claim("Warm restart is better with boosting", "up to +2.95 points",
                  f"best of {len(ahead)}, {boost}: {most} points", held),
        ],
        lines=[line(study, s, f"{name}, {schedule}")
               for (name, schedule), s in scores.items()], axes=VOTES_AXES)
