"""What binary first and last layers cost."""

import numpy as np

from benn_fpga.sw.experiments.common import VOTES_AXES, line, points, rates
from benn_fpga.sw.report import Claim, Report, mean
from benn_fpga.sw.verdict import every

__all__ = ["run"]


def run(study):
    """What binary first and last layers cost, alone and in an ensemble."""
    kinds = {kind: study.tuned(kind=kind) for kind in ("sb", "ib", "ab")}
    alone = {kind: study.measure(ensemble="single", **options)
             for kind, options in kinds.items()}
    scores = {kind: study.measure(ensemble="bagging", members=study.members, **options)
              for kind, options in kinds.items()}
    paper = {"sb": "84.91 / 89.12", "ib": "80.9 / 86.8", "ab": "73.0 / 82.1"}
    cost = {kind: (np.subtract(alone["sb"].vote, alone[kind].vote),
                   np.subtract(scores["sb"].vote, scores[kind].vote)) for kind in ("ib", "ab")}
    none = np.zeros(len(study.seeds))
    single = {kind: points(each[0], none) for kind, each in cost.items()}
    less = {kind: points(*each) for kind, each in cost.items()}
    return Report(
        name="first-last", title="First and last layer: 8 bits (SB), 8-bit input (IB), binary (AB)",
        columns=["kind", "single", f"vote of {study.members}",
                 "paper on CIFAR-10: single / 32 members"],
        rows=[[kind.upper(), mean(alone[kind].vote), mean(s.vote), paper[kind]]
              for kind, s in scores.items()],
        claims=[
            Claim("Binary first and last layers cost a single network accuracy",
                  "3.98 (IB) to 11.9 (AB) points",
                  f"IB {single['ib']}, AB {single['ab']} points", every(single)),
            Claim("They cost an ensemble less", "2.36 (IB) to 6.98 (AB) points",
                  f"IB {less['ib']}, AB {less['ab']} points less", every(less)),
        ],
        lines=[line(study, s, kind.upper()) for kind, s in scores.items()], axes=VOTES_AXES,
        settings=rates(kinds))
