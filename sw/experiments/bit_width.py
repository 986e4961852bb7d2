"""Bits of weights and of activations, in one network and in several."""

import numpy as np

from benn_fpga.sw.experiments.common import VOTES_AXES, line, points, rates
from benn_fpga.sw.report import Claim, Report, mean

__all__ = ["run"]


def run(study):
    """More bits in one network against more networks, by weights and by activations."""
    five = min(5, study.members)
    kinds = {label: study.tuned(**options) for label, options in {
        "AB": {"kind": "ab"}, "AQB, Q = 2": {"kind": "aqb", "bits": 2},
        "WQB, Q = 5": {"kind": "wqb", "bits": 5}, "IB": {"kind": "ib"}, "SB": {"kind": "sb"},
    }.items()}
    alone = {label: study.measure(ensemble="single", **options)
             for label, options in kinds.items()}
    scores = {label: study.measure(ensemble="bagging", members=study.members, **options)
              for label, options in kinds.items()}
    one, many = alone["WQB, Q = 5"], scores["AB"]
    networks = points(many.at(five), one.vote)
    ensemble = points(scores["AQB, Q = 2"].vote, many.vote)
    sides = {label: np.subtract(alone[label].vote, alone["AB"].vote)
             for label in ("AQB, Q = 2", "WQB, Q = 5")}
    activations = points(*sides.values())
    return Report(
        name="bit-width", title="Bits of weights and of activations",
        columns=["kind", "single", "bits of a member", f"vote of {five}",
                 f"vote of {study.members}"],
        rows=[[label, mean(alone[label].vote), f"{alone[label].weight_bits:,}", mean(s.at(five)),
               mean(s.vote)] for label, s in scores.items()],
        claims=[
            Claim("Five binary networks beat one of 5-bit weights",
                  "about 86 (SB, of more bits than WQB) against 80 %",
                  f"AB, {five * alone['AB'].weight_bits:,} bits, against WQB, "
                  f"{one.weight_bits:,} bits: {networks} points", networks.held()),
            Claim("With 2-bit activations, and input, the ensemble is better than all-binary",
                  "figure only", f"{ensemble} points", ensemble.held()),
            Claim("2 bits of activations, and input, gain more than 5 bits of weights",
                  "figure only", f"{activations} points", activations.held()),
        ],
        lines=[line(study, s, label) for label, s in scores.items()], axes=VOTES_AXES,
        settings=rates(kinds))
