"""The verbs of the command line, one function each."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from benn_fpga.cli import folding_file, tables
from benn_fpga.cli.parser import command, train_command
from benn_fpga.errors import BennError, Interrupted, plural, warn
from benn_fpga.output import check_apart, check_file, check_folder, write_atomically
from benn_fpga.presets import FLOATS, PARTS
from benn_fpga.settings import OPTIONS

__all__ = ["VERBS", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a verb gives: data for ``--json``, tables for people, why the answer is no, a note.

    ``text`` is printed as it is, instead of tables. ``finish`` is called once all is shown, and
    ``interrupted`` is what to say if it cannot be.
    """

    data: dict
    tables: list = field(default_factory=list)
    failure: str | None = None
    note: str | None = None
    text: str | None = None
    finish: Callable | None = None
    interrupted: str = "interrupted; all is done, but not all is shown"


def _given(args):
    """Options of training that the user gave."""
    return {name: getattr(args, name) for name in OPTIONS
            if getattr(args, name, None) is not None}


def _progress(args):
    """For programs that ask for JSON, stderr holds errors and nothing else."""
    return False if args.json else None


def train(args):
    from benn_fpga import api
    given = _given(args)
    common = {"limit": args.limit, "data_dir": args.data_dir, "progress": _progress(args)}
    if args.kind in FLOATS:
        return _train_float(args, given, {**common, "scale": args.scale, "label": args.label})
    if args.output is None:
        raise BennError("-o must say where to write the model file")
    if args.plot is not None:
        _check_plot(args, args.output)
    kept = f"{args.output}.checkpoint"
    if args.resume and not os.path.exists(kept):
        warn(f"there is no checkpoint {kept}: training starts from the beginning")
    if args.folds == 1:
        raise BennError("--folds must be at least 2, not 1")
    model = api.train(args.dataset, args.output, resume=args.resume, force=args.force,
                      scale=args.scale, label=args.label, reject=args.reject, **common, **given)
    try:
        advice = args.folds and api.cross_validate(args.dataset, args.folds, scale=args.scale,
                                                   label=args.label, **common, **given)
        return _trained(args, model, common, advice)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; the model is in {args.output}") from None


def _check_plot(args, model, more=None):
    from benn_fpga.sw import report
    check_apart({"the data": args.dataset, "the model": model,
                 "its checkpoint": f"{model}.checkpoint", **(more or {}), "the plot": args.plot})
    report.check_plot(args.plot, args.force)


def _trained(args, model, common, cross_validated):
    """What ``train`` says of a model that it has written; ``cross_validated`` is the Advice of
    folds, or None."""
    from benn_fpga import api
    from benn_fpga.accuracy import Rejection, interval
    from benn_fpga.plan.blocks import of_weights
    score = model.provenance["scores"]["validation"]
    analysis = api.analyse(model, args.dataset, data_dir=args.data_dir, progress=_progress(args))
    data = {
        "model": args.output,
        "model_sha256": model.digest(),
        "split": "valid",
        "frames": score["frames"],
        "accuracy": score["correct"] / score["frames"],
        "accuracy_interval": interval(score["correct"], score["frames"]),
        "member_accuracy": [correct / score["frames"] for correct in score["member_correct"]],
        "weight_bits": model.weight_bits,
        "block_ram": of_weights(model.layers, len(model.members)),
        "operations": model.operations,
        "analysis": analysis.describe(),
        "folds": args.folds,
        "cross_validation": cross_validated and cross_validated.describe(),
        "reject": model.reject,
        "provenance": model.provenance,
    }
    advice, rejection = cross_validated or analysis.advice, Rejection.read(model.provenance)
    shown = tables.trained(args.dataset, data, analysis, cross_validated, rejection)
    if args.compare:
        rivals = api.compare(model, args.dataset, **common)
        data["compared"] = {name: asdict(rival) for name, rival in rivals.items()}
        data["test_curve"] = api.eval(model, args.dataset, data_dir=args.data_dir,
                                      progress=False).curve
        shown.append(tables.compared(data, analysis, advice.chosen))
    if args.plot is not None:
        from benn_fpga.sw import report
        compared = {name: rival["valid"] for name, rival in data.get("compared", {}).items()}
        report.draw_analysis(analysis, compared, f"{args.dataset}, validation part", args.plot,
                             args.force, cross_validated)
    stopped = model.provenance.get("stopped")
    notes = [stopped and f"boosting stopped with {stopped['members']}: {stopped['why']}",
             len(analysis.curve) > 1 and advice.little and
             advice.little + ("" if args.folds else "; --folds N cross-validates")]
    return Outcome(data, shown, rejection and rejection.failure, _notes(notes))


def _notes(notes):
    """One line of those that there are."""
    return "; ".join(filter(None, notes)) or None


def _train_float(args, given, common):
    """A float network has nothing to write: it is measured."""
    from benn_fpga import api
    if args.output is not None:
        raise BennError(f"kind {args.kind} computes in float, which no hardware here does: it can "
                        f"be trained and measured, but not written; leave out -o")
    for option in ("plot", "compare", "resume", "reject", "folds"):
        if getattr(args, option):
            raise BennError(f"--{option} is for networks that are written to a file; kind "
                            f"{args.kind} is only measured")
    measured = api.measure(args.dataset, **common, **given)
    return Outcome({"kind": args.kind, "frames": measured.frames, "accuracy": measured.test,
                    "validation_accuracy": measured.valid}, tables.measured(args.dataset, measured))


def search(args):
    from benn_fpga import api
    if args.bram is not None and args.max_brams is None:
        raise BennError("--bram says what --max-brams counts; give that, not --max-bits")
    kept = f"{args.output}.search"
    if args.plot is not None:
        _check_plot(args, args.output, {"the search": kept})
    if args.resume and not os.path.exists(kept):
        warn(f"there is no checkpoint {kept}: the search starts from the beginning")
    given = {name: getattr(args, name) for name in ("bram", "trials", "time", "seed")
             if getattr(args, name) is not None}
    model, tried = api.search(
        args.dataset, args.output, max_bits=args.max_bits, max_brams=args.max_brams,
        epochs=args.epochs, limit=args.limit, data_dir=args.data_dir, scale=args.scale,
        label=args.label, progress=_progress(args), resume=args.resume, force=args.force, keep=True,
        **given)
    left = (f"interrupted; the model is in {args.output}, and what was tried is still in {kept}: "
            f"--resume --force shows it again")
    try:
        outcome = _searched(args, model, tried)
    except KeyboardInterrupt:
        raise Interrupted(left) from None
    return replace(outcome, interrupted=left, finish=lambda: api.forget_search(args.output))


def _searched(args, model, tried):
    """What ``search`` says of a model that it has written."""
    from benn_fpga import api
    from benn_fpga.plan.blocks import of_weights
    from benn_fpga.sw.search import front
    score = model.provenance["scores"]["validation"]
    test = api.eval(model, args.dataset, data_dir=args.data_dir, progress=False)
    data = {
        "model": args.output,
        "model_sha256": model.digest(),
        "command": train_command(args, tried.settings),
        "weight_bits": model.weight_bits,
        "block_ram": of_weights(model.layers, len(model.members)),
        "validation_accuracy": score["correct"] / score["frames"],
        "validation_frames": score["frames"],
        "accuracy": test.accuracy,
        "frames": test.frames,
        "drawn": tried.drawn,
        "stopped": tried.stopped,
        "trials": [trial.describe() for trial in tried.trials],
        "front": [trial.describe() for trial in front(tried.trials)],
    }
    if args.plot is not None:
        from benn_fpga.sw import report
        report.draw_search(data["trials"], data["front"], args.dataset, args.plot, args.force)
    return Outcome(data, tables.searched(args.dataset, data), note=tried.stopped)


def experiment(args):
    from benn_fpga import api
    files = {}
    if args.output is not None:
        files = {suffix: os.path.join(args.output, f"{args.name}.{suffix}")
                 for suffix in ("json", "svg")}
        check_folder(args.output)
        for file in files.values():
            check_file(file, args.force)
    given = {key: value for key, value in _given(args).items() if key != "members"}
    result = api.experiment(args.name, args.dataset, quick=args.quick, seeds=args.seeds,
                            members=args.members, limit=args.limit, data_dir=args.data_dir,
                            progress=_progress(args), command=command(args.told), **given)
    from benn_fpga.sw import report
    if files:
        report.write(result, files["json"], args.force)
        report.draw(result, files["svg"], args.force)
    return Outcome({**result.describe(), "files": files},
                   tables.experiment(result, report.HELD, files))


def info(args):
    from benn_fpga import api
    from benn_fpga.plan.blocks import of_weights
    model = api.load(args.model)
    data = {
        "model": args.model,
        "model_sha256": model.digest(),
        "file_bytes": os.path.getsize(args.model),
        "encoder": {**model.encoder.describe(), "levels": model.encoder.levels,
                    "outputs": model.encoder.outputs},
        "layers": [layer.describe() for layer in model.layers],
        "inputs": {**model.inputs.describe(), "low": model.inputs.low.tolist(),
                   "high": model.inputs.high.tolist()},
        "reject": model.reject,
        "classes": model.classes,
        "members": len(model.members),
        "vote": model.vote,
        "vote_weights": [member.vote_weight for member in model.members],
        "weight_bits": model.weight_bits,
        "block_ram": of_weights(model.layers, len(model.members)),
        "provenance": model.provenance,
    }
    return Outcome(data, tables.info(model, data))


def pick(args):
    from benn_fpga import api
    given = api.load(args.model)
    model = api.pick(given, args.members, args.output, force=args.force)
    note = None if given.reject == model.reject else (
        f"{args.output} rejects no answers: margin {given.reject} was for {len(given.members)} "
        f"members; `eval --reject RATE -o FILE` chooses another")
    data = {"model": args.output, "model_sha256": model.digest(), "members": len(model.members),
            "weight_bits": model.weight_bits}
    return Outcome(data, tables.picked(args.model, data), note=note)


def evaluate(args):
    from benn_fpga import api
    if args.output is not None:
        if args.reject is None:
            raise BennError("-o writes the model with the margin of --reject; give --reject RATE")
        check_apart({"the data": args.dataset, "the model": args.model, "the plot": args.plot,
                     "the new model": args.output})
    if args.plot is not None:
        _check_plot(args, args.model)
    result = api.eval(args.model, args.dataset, split=args.split, limit=args.limit,
                      data_dir=args.data_dir, reject=args.reject, path=args.output,
                      force=args.force, progress=_progress(args))
    title = (f"{args.model} on {result.frames} {PARTS[args.split]} {plural(result.frames)} of "
             f"{args.dataset}")
    if args.plot is not None:
        from benn_fpga.sw import report
        analysis = api.analyse(args.model, args.dataset, split=args.split, limit=args.limit,
                               data_dir=args.data_dir, progress=False)
        report.draw_evaluation(result, analysis, title, args.plot, args.force)
    failure = result.rejection and result.rejection.failure
    written = None if failure else args.output
    return Outcome({"model": args.model, "dataset": args.dataset, "split": args.split,
                    "written": written, **result.describe()},
                   tables.evaluation(title, result, written), failure, _other_data(args, result))


def predict(args):
    from benn_fpga import api
    to_file = args.csv not in (None, "-")
    if args.csv == "-" and args.json:
        raise BennError("--csv - and --json would both print; leave out one, or give --csv a file")
    if to_file:
        check_apart({"the model": args.model, "the table": args.csv})
        for file in args.files:
            check_apart({"a file to read": file, "the table": args.csv})
        check_file(args.csv, args.force)
    model = api.load(args.model)
    prediction = api.predict(model, args.files, resize=args.resize)
    result = prediction.result
    answers = [
        {"source": source, "frame": frame, "class": label, "name": name, "margin": margin,
         "rejected": rejected, "totals": totals, "member_classes": members}
        for (source, frame), label, name, margin, rejected, totals, members in zip(
            prediction.sources, result.classes.tolist(), result.names, result.margins.tolist(),
            result.rejected.tolist(), result.totals.tolist(), result.member_classes.tolist(),
            strict=True)]
    text = None if args.csv is None else tables.answers_as_csv(answers, model.classes)
    if to_file:
        write_atomically(args.csv, text.encode(), args.force)
    data = {"model": args.model, "frames": len(answers), "input_type": result.input_type,
            "class_names": list(result.class_names), "reject": model.reject, "csv": args.csv,
            "answers": answers}
    return Outcome(data, tables.answers(data), text=None if to_file else text)


def _other_data(args, result):
    if result.same_data is not False:
        return None
    how = {"unknown": "; floats become bytes by the range of x_train, so they mean the same only "
                      "if that range is the same",
           "bytes": ""}.get(result.scale, "; floats became bytes by the range of the model")
    return f"{args.dataset} is not the data that the model was trained on{how}"


def _folding(args, model):
    from benn_fpga import api
    from benn_fpga.plan import names
    from benn_fpga.plan.folding import bottleneck
    from benn_fpga.plan.plan import plan
    if args.target_fps is not None and args.clock is None:
        raise BennError("--target-fps needs the clock of the design: give --clock MHZ")
    if args.fit and args.device is None:
        raise BennError("--fit needs the device that it must fit: give --device NAME")
    if args.fold is not None:
        return folding_file.read(args.fold, model, parallel=args.parallel, bus=args.bus)
    cycles, bus = args.cycles, 64 if args.bus is None else args.bus
    if args.target_fps is not None:
        cycles = int(min(args.clock * 1e6 / args.target_fps, 1e18))
        folding = api.fastest(model, parallel=args.parallel, bus=bus)
        least = plan(model, folding).schedule.cycles_per_frame
        if cycles < least:
            stage, _ = bottleneck(model, folding)
            where, cure = tables.stage_name(stage, model), ", or widen --bus"
            if names.layer_of(stage) is not None:
                cure = ", or run more members in --parallel" * (folding.rounds(model) > 1)
            raise BennError(
                f"{args.target_fps:g} frames per second cannot be met at {args.clock:g} MHz: "
                f"a frame takes at least {least} {plural(least, 'cycle')} ({where}), so at most "
                f"{args.clock * 1e6 / least:,.0f} frames per second can be; lower --target-fps, "
                f"raise --clock{cure}")
    return api.choose_folding(model, parallel=args.parallel, bus=bus, lanes=args.lanes,
                              cycles=cycles, device=args.device, fit=args.fit,
                              progress=_progress(args))


def _estimated(design, device):
    """What a design will take of a device, or None; a note if that is more than there is."""
    from benn_fpga import api, devices
    from benn_fpga.errors import warn
    from benn_fpga.plan import area
    if device is None or not area.is_known(devices.find(device).family):
        return None
    estimated = api.estimate(design, device)
    if estimated.missing:
        warn(f"the design will hardly fit {device}: it needs {estimated.needs()}, as estimated; "
             f"--fit takes the fastest that fits")
    return estimated


def generate(args):
    from benn_fpga import api
    from benn_fpga.plan import header
    from benn_fpga.plan.folder import BENCH
    model = api.load(args.model)
    if args.dataset is not None and not args.frames:
        raise BennError("--dataset is for the frames of the test bench, but --frames is 0; "
                        "leave out one")
    design = api.generate(model, args.output, folding=_folding(args, model), device=args.device,
                          frames=args.frames, dataset=args.dataset, data_dir=args.data_dir,
                          force=args.force, progress=_progress(args))
    manifest, predicted = design.manifest, design.manifest["predicted"]
    memory = manifest["memory_bits"]
    data = {
        "directory": args.output,
        "verilog": os.path.join(args.output, design.verilog.name),
        "verilog_bytes": design.verilog.stat().st_size,
        "verilog_sha256": manifest["verilog_sha256"],
        "model_sha256": manifest["model_sha256"],
        "header": os.path.join(args.output, header.NAME),
        "bench": os.path.join(args.output, BENCH) if args.frames else None,
        "folding": manifest["folding"],
        "layers": manifest["layers"],
        "xnor_lanes": manifest["xnor_lanes"],
        "xnor_gates": manifest["xnor_gates"],
        "weight_bits": model.weight_bits,
        "memory_bits": memory["constants"],
        "buffer_bits": memory["buffers"],
        "register_bits": memory["registers"],
        "nodes": manifest["nodes"],
        "block_ram": manifest["block_ram"],
        **predicted,
    }
    estimated = _estimated(design, args.device)
    if estimated is not None:
        data |= estimated.describe()
    if args.clock is not None:
        data["frames_per_second"] = args.clock * 1e6 / predicted["cycles_per_frame"]
    return Outcome(data, tables.design(design, data, args.clock, estimated))


def simulate(args):
    from benn_fpga import api
    if (args.dataset is None) == (args.source is None):
        raise BennError("simulate needs frames: give either DATASET or --from FILE")
    if args.source is not None and not args.source.lower().endswith((".npz", ".csv")):
        raise BennError(f"--from must name an .npz or .csv file, not {args.source!r}")
    args.dataset = args.dataset or args.source
    result = api.simulate(args.design, args.dataset, frames=args.frames, only=args.only,
                          split=args.split, data_dir=args.data_dir, layers=args.layers,
                          protocol=args.protocol, waves=args.waves, keep=args.keep,
                          force=args.force, netlist=args.netlist, progress=_progress(args))
    title = f"{args.design} on {PARTS[args.split]} frames of {args.dataset}"
    return Outcome({"design": args.design, "dataset": args.dataset, "split": args.split,
                    "waves": args.waves, "netlist": args.netlist, **asdict(result)},
                   tables.simulation(title, result, args.layers), result.failure,
                   _other_data(args, result))


def synth(args):
    from benn_fpga import api
    result = api.synth(args.design, args.device, pnr=args.pnr, seed=args.seed, clock=args.clock,
                       force=args.force, progress=_progress(args))
    note = (f"{' and '.join(result.reused)}: done before, for the same Verilog, device and tools; "
            f"`force=True` does it again") if result.reused else None
    return Outcome({"design": args.design, **asdict(result), "failure": result.failure},
                   tables.synthesis(args.design, result), result.failure, note)


def doctor(args):
    from benn_fpga.cli import doctor as clinic
    tools = clinic.examine()
    commands = clinic.commands(tools)
    missing = clinic.lacking(commands)
    data = {
        "tools": [{**asdict(tool), "found": tool.found} for tool in tools],
        "commands": {name: {"works": not lacks, "missing": lacks}
                     for name, lacks in commands.items()},
    }
    return Outcome(data, tables.doctor(tools, commands),
                   f"missing, too old or too new: {', '.join(missing)}" if missing else None)


VERBS = {"train": train, "search": search, "experiment": experiment, "info": info,
         "eval": evaluate, "predict": predict, "pick": pick, "generate": generate,
         "simulate": simulate, "synth": synth, "doctor": doctor}
