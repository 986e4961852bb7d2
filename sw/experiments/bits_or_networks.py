"""The question of the paper's title."""

from benn_fpga.sw.experiments.common import average, points, rates
from benn_fpga.sw.report import Claim, Line, Report, mean
from benn_fpga.sw.verdict import every

__all__ = ["run"]


def run(study):
    """k-bit networks against one-bit networks of equal weight bits, and of equal operations.

    A network of k bits reads the highest k bits of each value, those of one bit a comparison with
    a threshold: it then costs k times the weight bits of a one-bit network, and k*k its products.
    As that gives the k-bit network more to see, both are compared on all bits of the input too.
    """
    depths = (1, 2, 3) if study.quick else (1, 2, 3, 4)
    more, most = depths[1:], max(depths) ** 2
    own = {k: study.tuned(kind="qnn", wbits=k, abits=k) if k > 1 else
           study.tuned(kind="ab") for k in depths}
    full = {k: study.tuned(kind="qnn", wbits=k, abits=k, encoder="planes") if k > 1 else
            study.tuned(kind="ib") for k in depths}
    one = study.measure(ensemble="independent", members=most, **own[1])
    seeing = study.measure(ensemble="independent", members=max(depths), **full[1])
    several, all_bits = ({k: study.measure(ensemble="single", **kinds[k]) for k in more}
                         for kinds in (own, full))

    def network(k, scores, ensemble):
        return scores[k].vote if k > 1 else ensemble.at(1)

    def claim(text, paper, gaps):
        return Claim(text, paper, "; ".join(f"k = {k}: {item}" for k, item in gaps.items())
                     + " points", every(gaps))

    each = one.weight_bits // most, one.operations // most
    return Report(
        name="bits-or-networks", title="More bits per network, or more networks per bit?",
        columns=["k", "weight bits of the k-bit network", "of k one-bit networks",
                 "k-bit network", "k one-bit networks", "products of the k-bit network",
                 "of k*k one-bit networks", "k*k one-bit networks",
                 "k-bit network, all bits of the input", "k one-bit networks, all bits"],
        rows=[[k, *(f"{bits:,}" for bits in (several[k].weight_bits if k > 1 else each[0],
                                            k * each[0])),
               mean(network(k, several, one)), mean(one.at(k)),
               *(f"{products:,}" for products in (several[k].operations if k > 1 else each[1],
                                                 k * k * each[1])),
               mean(one.at(k * k)), mean(network(k, all_bits, seeing)), mean(seeing.at(k))]
              for k in depths],
        claims=[
            claim("k one-bit networks beat one k-bit network of as many weight bits",
                  "the question of the title: yes",
                  {k: points(one.at(k), several[k].vote) for k in more}),
            claim("k*k one-bit networks beat one k-bit network of as many one-bit products",
                  "cost k of the ensemble, k*k of the k-bit network",
                  {k: points(one.at(k * k), several[k].vote) for k in more}),
            claim("k one-bit networks beat one k-bit network of as many weight bits where all read "
                  "all bits of the input", "not in the paper",
                  {k: points(seeing.at(k), all_bits[k].vote) for k in more}),
        ],
        lines=[Line(label, list(depths), [100 * average(values(k)) for k in depths])
               for label, values in (
                   ("one k-bit network", lambda k: network(k, several, one)),
                   ("k one-bit networks", one.at),
                   ("k*k one-bit networks", lambda k: one.at(k * k)),
                   ("one k-bit network, all bits of the input",
                    lambda k: network(k, all_bits, seeing)),
                   ("k one-bit networks, all bits of the input", seeing.at))],
        axes=("k", "accuracy on the test part, %"),
        settings=rates({f"{k} bit{suffix}": options for kinds, suffix in (
            (own, ""), (full, ", all of the input")) for k, options in kinds.items()}))
