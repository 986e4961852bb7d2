"""What a trained network depends on beside its data: named, chosen and checked here alone.

The command line takes the names of its options from here, so nothing slow is imported at the top.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from benn_fpga import presets
from benn_fpga.errors import BennError
from benn_fpga.presets import BOOSTS, ENSEMBLES, FLOATS, MEMBERS, REWEIGHTS, RIVALS, SCHEDULES

if TYPE_CHECKING:
    from benn_fpga.nets import Kind

__all__ = ["FLOAT_LR", "OPTIONS", "Settings"]

FLOAT_LR = 1 / 3  # of the learning rate, for float weights: 1, 1/3, 1/10 and 1/30 tried on digits


@dataclass(frozen=True)
class Settings:
    """How to train; what is None is chosen by :meth:`resolve`.

    Parameters
    ----------
    net, encoder, epochs, batch, lr : if None, those of the data set in
        :mod:`benn_fpga.presets`, but an encoder that suits the kind. ``lr`` is Adam's step at the
        start; it follows a cosine to zero. Float weights take a third of the data set's
    members : K; 8 if None, 1 for ``single``
    ensemble : ``single``; ``independent``, each member on all data; ``bagging``, each on its own
        bootstrap; ``boost-a`` to ``boost-d`` and ``logitboost``, see :mod:`benn_fpga.sw.boost`;
        ``average``, one loss on the mean of the members' scores. If None, ``independent``, or
        ``single`` for a network of the literature
    schedule : ``indep``, every member starts anew; ``seq``, from the one before it
    reweight : boosting gives frames their weights by ``sample``, drawing them anew in each epoch,
        or in the ``loss``; logitboost always by the loss, the others by ``sample`` if None
    kind, bits, wbits, abits : see :func:`benn_fpga.nets.kind`; if None, the kind of the data set,
        or ``ab`` for an encoder that is given
    width, recipe : see :func:`benn_fpga.nets.build`
    vote : ``soft``, sums of scores, or ``hard``
    seed : all that is drawn follows from it
    augment : see :func:`benn_fpga.sw.augment.moves`; True is ``crop+flip``
    distill : True to learn from an ensemble of float networks too, which is trained first, for as
        many epochs; or a number of epochs for it
    decay : False keeps the learning rate as it is
    together : train members in one graph if none needs those before it, which changes no number;
        if None, networks of dense layers only: with convolutions side by side is faster
    threads : of PyTorch, for each network that is trained side by side. The numbers depend on it,
        since sums of gradients are rounded in an order that does
    """

    net: str | None = None
    members: int | None = None
    ensemble: str | None = None
    schedule: str = "indep"
    reweight: str | None = None
    kind: str | None = None
    bits: int | None = None
    wbits: int | None = None
    abits: int | None = None
    width: float = 1.0
    recipe: str | None = None
    vote: str = "soft"
    encoder: str | None = None
    epochs: int | None = None
    seed: int = 0
    lr: float | None = None
    batch: int | None = None
    augment: str | bool | None = None
    distill: int | bool | None = None
    decay: bool = True
    together: bool | None = None
    threads: int = 1

    @classmethod
    def of(cls, **options: Any) -> Self:
        """The settings with these fields; raise if there is one that is not known."""
        for name in options:
            if name not in OPTIONS:
                raise BennError(f"unknown option {name!r} of training; known: "
                                f"{', '.join(OPTIONS)}")
        return cls(**options)

    @classmethod
    def read(cls, provenance: Mapping[str, Any]) -> Self:
        """The settings that :meth:`describe` put into the ``provenance`` of a model."""
        told = {name: provenance[name] for name in OPTIONS if name in provenance}
        try:
            return cls(**{**told, "width": float(told["width"]), "lr": float(told["lr"]),
                          "distill": provenance.get("distill_epochs"),
                          "decay": told.get("decay") != "no",
                          "together": told["together"] == "yes"})
        except (KeyError, ValueError, TypeError):
            raise BennError("the model does not say how it was trained; use one that "
                            "`benn-fpga train` wrote") from None

    def describe(self) -> dict[str, Any]:
        """As in a model file, which has no floats; what is not in use is left out."""
        told = {**vars(self), "width": str(self.width), "lr": str(self.lr),
                "distill_epochs": self.distill, "distill": None,
                "decay": None if self.decay else "no",
                "together": "yes" if self.together else "no"}
        return {key: value for key, value in told.items() if value is not None}

    def network_kind(self) -> "Kind":
        """The :class:`~benn_fpga.nets.Kind` of the network."""
        from benn_fpga import nets  # loads NumPy, which --help does without
        return nets.kind(self.kind, bits=self.bits, wbits=self.wbits, abits=self.abits)

    def resolve(self, dataset: Any) -> Self:
        """These settings as ``dataset`` is trained with; raise if they contradict each other.

        Only ``together`` may still be None: it depends on the layers.
        """
        default = presets.defaults(dataset)
        if self.kind is None:  # an encoder that was chosen has thresholds, which kind ab reads
            chosen = default.kind if self.encoder is None else "ab"
            return replace(self, kind=chosen).resolve(dataset)
        kind = self.network_kind()
        ensemble = self.ensemble or ("single" if self.kind in RIVALS else "independent")
        epochs = default.epochs if self.epochs is None else self.epochs
        own_lr = default.lr * (FLOAT_LR if kind.float_weights else 1)
        resolved = replace(
            self, ensemble=ensemble, epochs=epochs, net=self.net or default.net,
            members=(1 if ensemble == "single" else MEMBERS) if self.members is None
            else self.members,
            reweight=_reweight(ensemble) if self.reweight is None else self.reweight,
            recipe=self.recipe or (RIVALS[self.kind][1] if self.kind in RIVALS else "hw"),
            encoder=presets.spelled(self.encoder or kind.encoder(default.encoder), dataset.high,
                                    default.encoder),
            lr=own_lr if self.lr is None else self.lr,
            batch=default.batch if self.batch is None else self.batch,
            augment="crop+flip" if self.augment is True else self.augment or None,
            distill=epochs if self.distill is True else self.distill or None)
        resolved._check_names()
        resolved._check_numbers()
        return resolved

    def _check_names(self) -> None:
        from benn_fpga.checks import one_of  # loads NumPy
        from benn_fpga.spec import VOTES
        ensemble, kind = self.ensemble, self.kind
        one_of("`ensemble`", ensemble, ENSEMBLES)
        one_of("`schedule`", self.schedule, SCHEDULES)
        one_of("`vote`", self.vote, VOTES)
        if kind in RIVALS and kind not in FLOATS and self.recipe != RIVALS[kind][1]:
            raise BennError(f"`kind` {kind} has `recipe` {RIVALS[kind][1]}, not {self.recipe}; "
                            f"for another use `kind` {RIVALS[kind][0]}")
        if self.schedule == "seq" and ensemble in ("single", "average"):
            raise BennError(f"`schedule` seq starts each member from the one before it, which "
                            f"`ensemble` {ensemble} does not have; use `schedule` indep")
        if ensemble in ("logitboost", "average") and self.vote == "hard":
            raise BennError(f"`ensemble` {ensemble} trains members for the sum of their scores, "
                            f"which a hard vote does not see; use `vote` soft")
        if self.reweight is not None:
            one_of("`reweight`", self.reweight, REWEIGHTS)
            if ensemble not in BOOSTS:
                raise BennError(f"`reweight` is for boosting; `ensemble` {ensemble} does not weigh "
                                f"frames")
            if ensemble == "logitboost" and self.reweight == "sample":
                raise BennError("`ensemble` logitboost has a weight for each class of a frame, so "
                                "it cannot draw frames by them; use `reweight` loss")
        if self.distill and ensemble == "logitboost":
            raise BennError("`ensemble` logitboost fits a step of its own, not classes; leave "
                            "out `distill`")

    def _check_numbers(self) -> None:
        from benn_fpga.spec import MAX_MEMBERS
        if self.ensemble == "single" and self.members != 1:
            raise BennError(f"`ensemble` single has 1 member, not {self.members}; leave out "
                            f"`members` or use `ensemble` independent")
        if self.members is not None and not 1 <= self.members <= MAX_MEMBERS:
            raise BennError(f"`members` must be 1 to {MAX_MEMBERS}, not {self.members}")
        for name, value, least in (("epochs", self.epochs, 1), ("threads", self.threads, 1),
                                   ("seed", self.seed, 0)):
            if value is not None and value < least:
                raise BennError(f"`{name}` must be at least {least}, not {value}")
        if self.batch is not None and self.batch < 2:
            raise BennError(f"`batch` must be at least 2, not {self.batch}: "
                            f"one frame has no variance to normalise by")
        if self.distill is not None and self.distill < 0:
            raise BennError(f"`distill` must be a number of epochs, not {self.distill}")
        if self.lr is not None and not 0 < float(self.lr) < math.inf:
            raise BennError(f"`lr` must be a positive number, not {self.lr}")


OPTIONS = tuple(field.name for field in fields(Settings))


def _reweight(ensemble: str) -> str | None:
    if ensemble not in BOOSTS:
        return None
    return "loss" if ensemble == "logitboost" else "sample"
