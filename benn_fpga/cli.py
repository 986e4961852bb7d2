"""The command line: one function per verb, one line per error."""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, astuple, dataclass, field, fields

from benn_fpga import __version__
from benn_fpga.errors import BennError, Interrupted
from benn_fpga.guard import complain, guard
from benn_fpga.inputs import open_regular
from benn_fpga.output import check_apart
from benn_fpga.presets import (
    DEFAULTS,
    ENSEMBLES,
    EXPERIMENTS,
    FLOATS,
    KINDS,
    MEMBERS,
    MLPS,
    NETS,
    RECIPES,
    REWEIGHTS,
    RIVALS,
    SCHEDULES,
    SPLITS,
    Defaults,
)

__all__ = ["main"]

PROGRAM = "benn-fpga"
DATASETS = f"{', '.join(DEFAULTS)}, or the path of an .npz file"


@dataclass(frozen=True)
class Outcome:
    """What a verb gives: data for ``--json``, tables for people, why the answer is no, a note."""

    data: dict
    tables: list = field(default_factory=list)
    failure: str | None = None
    note: str | None = None


_TRAINING = ("net", "ensemble", "members", "vote", "encoder", "epochs", "seed", "lr", "batch",
             "kind", "bits", "wbits", "abits", "width", "recipe", "schedule", "reweight",
             "augment", "distill")


def _given(args):
    """Options of training that the user gave."""
    return {name: getattr(args, name) for name in _TRAINING
            if getattr(args, name, None) is not None}


def train(args):
    from benn_fpga import api
    given = _given(args)
    if args.ensemble == "single" and args.members not in (None, 1):
        raise BennError(f"--ensemble single has 1 member, not {args.members}; "
                        f"leave out -k or use --ensemble independent")
    common = {"limit": args.limit, "data_dir": args.data_dir, "progress": _progress(args)}
    if args.kind in FLOATS:
        return _train_float(args, given, common)
    if args.output is None:
        raise BennError("-o must say where to write the model file")
    if args.plot is not None:
        _check_plot(args, args.output)
    kept = f"{args.output}.checkpoint"
    if args.resume and not os.path.exists(kept):
        complain(PROGRAM, f"there is no checkpoint {kept}: training starts from the beginning",
                 "note")
    model = api.train(args.dataset, args.output, resume=args.resume, force=args.force, **common,
                      **given)
    try:
        return _trained(args, model, common)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; the model is in {args.output}") from None


def _check_plot(args, model):
    from benn_fpga.sw import report
    check_apart({"the data": args.dataset, "the model": model,
                 "its checkpoint": f"{model}.checkpoint", "the plot": args.plot})
    report.check_plot(args.plot, args.force)


def _trained(args, model, common):
    """What ``train`` says of a model that it has written."""
    from benn_fpga import api, console
    score = model.provenance["scores"]["validation"]
    members = [correct / score["frames"] for correct in score["member_correct"]]
    found = api.analyse(model, args.dataset, data_dir=args.data_dir, progress=_progress(args))
    data = {
        "model": args.output,
        "model_sha256": model.digest(),
        "split": "valid",
        "frames": score["frames"],
        "accuracy": score["correct"] / score["frames"],
        "member_accuracy": members,
        "weight_bits": model.weight_bits,
        "operations": model.operations,
        "analysis": found.describe(),
        "provenance": model.provenance,
    }
    rows = [
        ("members", len(members)),
        ("mean accuracy of a member", console.percent(sum(members) / len(members))),
        ("accuracy of the vote", console.percent(data["accuracy"])),
        ("best with the first", f"{found.chosen}: {console.percent(max(found.curve))}"),
        *([("two members differ in", console.percent(found.mean_disagreement))]
          if len(members) > 1 else []),
        ("validation frames", score["frames"]),
        ("weight bits", f"{model.weight_bits:,}"),
        ("written to", args.output),
    ]
    tables = [console.table(f"Trained on {args.dataset}", ("", ">"), rows)]
    if len(members) > 1:
        tables.append(_member_table(found))
    if args.compare:
        rivals = api.compare(model, args.dataset, **common)
        data["compared"] = {name: asdict(rival) for name, rival in rivals.items()}
        along = api.eval(model, args.dataset, data_dir=args.data_dir, progress=False).curve
        data["test_curve"] = along
        own = [(f"this ensemble, {len(members)} members", data["accuracy"], along[-1],
                model.weight_bits)]
        if found.chosen < len(members):
            own.append((f"its first {found.chosen}", max(found.curve), along[found.chosen - 1],
                        model.weight_bits // len(members) * found.chosen))
        own += [(name, rival.valid, rival.test, rival.weight_bits)
                for name, rival in rivals.items()]
        tables.append(console.table(
            "Compared, on the same data", ("", ">weight bits", ">validation", ">test"),
            [(name, f"{bits:,}", console.percent(valid), console.percent(test))
             for name, valid, test, bits in own]))
    if args.plot is not None:
        from benn_fpga.sw import report
        compared = {name: rival["valid"] for name, rival in data.get("compared", {}).items()}
        report.draw_analysis(found, compared, f"{args.dataset}, validation part", args.plot,
                             args.force)
    stopped = model.provenance.get("stopped")
    note = stopped and f"boosting stopped with {stopped['members']}: {stopped['why']}"
    return Outcome(data, tables, note=note)


def _member_table(found):
    """Of each member its accuracy, that of the vote with those before it, and what it adds."""
    from benn_fpga import console
    return console.table(
        "Members", (">", ">alone", ">vote up to it", ">vote of all loses without it"),
        [(k, console.percent(alone), console.percent(vote), f"{100 * gain:+.2f} %")
         for k, (alone, vote, gain) in enumerate(zip(found.members, found.curve, found.gain,
                                                     strict=True))])


def _train_float(args, given, common):
    """A float network has nothing to write: it is measured."""
    from benn_fpga import api, console
    if args.output is not None:
        raise BennError(f"kind {args.kind} computes in float, which no hardware here does: it can "
                        f"be trained and measured, but not written; leave out -o")
    for option in ("plot", "compare", "resume"):
        if getattr(args, option):
            raise BennError(f"--{option} is for networks that are written to a file; kind "
                            f"{args.kind} is only measured")
    found = api.measure(args.dataset, **common, **given)
    data = {"kind": args.kind, "frames": found.frames, "accuracy": found.test,
            "validation_accuracy": found.valid}
    rows = [("accuracy on the validation part", console.percent(found.valid)),
            ("accuracy on the test part", console.percent(found.test)),
            ("test frames", found.frames)]
    return Outcome(data, [console.table(f"Float network on {args.dataset}", ("", ">"), rows)])


def experiment(args):
    from benn_fpga import api, console
    from benn_fpga.output import check_file, check_folder
    files = {}
    if args.output is not None:
        files = {kind: os.path.join(args.output, f"{args.name}.{kind}") for kind in ("json", "svg")}
        check_folder(args.output)
        for file in files.values():
            check_file(file, args.force)
    given = {key: value for key, value in _given(args).items() if key != "members"}
    found = api.experiment(args.name, args.dataset, quick=args.quick, seeds=args.seeds,
                           members=args.members, limit=args.limit, data_dir=args.data_dir,
                           progress=_progress(args), command=_command(args.told), **given)
    from benn_fpga.sw import report
    if files:
        report.write(found, files["json"], args.force)
        report.draw(found, files["svg"], args.force)
    return Outcome({**found.describe(), "files": files}, [
        console.table(found.title, found.columns, found.rows),
        console.table("Claims of the paper", ("", "paper", "here", "held"),
                      [(claim.text, claim.paper, claim.ours, report.HELD[claim.held])
                       for claim in found.claims]),
        *([console.table("", ("", ""), [("written to", files["json"]), ("", files["svg"])])]
          if files else []),
    ])


def _command(told):
    """The command of an experiment, without what says where its outcome goes."""
    output = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    output.add_argument("-o", "--output")
    output.add_argument("--force", action="store_true")
    output.add_argument("--json", action="store_true")
    return " ".join([PROGRAM, "experiment", *output.parse_known_args(told)[1]])


def info(args):
    from benn_fpga import api, console
    model = api.load(args.model)
    votes = [member.vote_weight for member in model.members]
    encoder = {**model.encoder.describe(), "levels": model.encoder.levels,
               "outputs": model.encoder.outputs}
    data = {
        "model": args.model,
        "model_sha256": model.digest(),
        "file_bytes": os.path.getsize(args.model),
        "encoder": encoder,
        "layers": [layer.describe() for layer in model.layers],
        "classes": model.classes,
        "members": len(model.members),
        "vote": model.vote,
        "vote_weights": votes,
        "weight_bits": model.weight_bits,
        "provenance": model.provenance,
    }
    last = len(model.layers) - 1
    layers = [(n, layer.kind, _shape(layer.input_shape), _shape(layer.output_shape),
               layer.input_bits or "integers", getattr(layer, "weight_bits", ""),
               layer.output_bits or ("scores" if n == last else "integers"),
               f"{layer.stored_bits:,}")
              for n, layer in enumerate(model.layers)]
    shown = ", ".join(map(str, votes[:16])) + (", ..." if len(votes) > 16 else "")
    facts = [
        ("input", f"{_shape(encoder['shape'])} values of {encoder['bits']} bit"),
        ("encoder", _encoder(model.encoder)),
        ("members", len(votes)),
        ("vote", f"{model.vote}, weights {shown}"),
        ("classes", model.classes),
        ("weight bits", f"{model.weight_bits:,}"),
        ("file", f"{data['file_bytes']:,} bytes"),
        ("sha256", data["model_sha256"]),
    ]
    # What was asked of the encoder is left out: the facts say what it is.
    origin = [(key, value if isinstance(value, str) else json.dumps(value))
              for key, value in sorted(model.provenance.items()) if key != "encoder"]
    columns = (">layer", "kind", ">reads", ">gives", ">input bits", ">weight bits", ">output bits",
               ">bits per member")
    tables = [console.table(args.model, ("", ""), facts), console.table("Layers", columns, layers)]
    if origin:
        tables.append(console.table("Where it comes from", ("", ""), origin))
    return Outcome(data, tables)


def _shape(shape):
    return " x ".join(map(str, shape))


def _encoder(encoder):
    where = ""
    if encoder.kind != "planes":
        common = len(encoder.thresholds) == 1 and encoder.levels <= 16
        where = f" at {', '.join(map(str, encoder.thresholds[0]))}" if common else \
            f" of {encoder.levels} levels"
    return f"{encoder.kind}{where}: {encoder.outputs:,} elements of {encoder.element_bits} bit"


def pick(args):
    from benn_fpga import api, console
    model = api.pick(args.model, args.members, args.output, force=args.force)
    return Outcome({"model": args.output, "model_sha256": model.digest(),
                    "members": len(model.members), "weight_bits": model.weight_bits},
                   [console.table(f"Picked from {args.model}", ("", ">"), [
                       ("members", len(model.members)), ("weight bits", f"{model.weight_bits:,}"),
                       ("written to", args.output)])])


def evaluate(args):
    from benn_fpga import api, console
    if args.plot is not None:
        _check_plot(args, args.model)
    result = api.eval(args.model, args.dataset, split=args.split, limit=args.limit,
                      data_dir=args.data_dir, progress=_progress(args))
    members = result.member_accuracy
    rows = [(f"member {k}", console.percent(accuracy)) for k, accuracy in enumerate(members)]
    rows += [("mean of the members", console.percent(sum(members) / len(members))),
             ("vote", console.percent(result.accuracy))]
    title = f"{args.model} on {result.frames} {args.split} frames of {args.dataset}"
    if args.plot is not None:
        from benn_fpga.sw import report
        found = api.analyse(args.model, args.dataset, split=args.split, limit=args.limit,
                            data_dir=args.data_dir, progress=False)
        report.draw_analysis(found, {}, title, args.plot, args.force)
    return Outcome({"model": args.model, "dataset": args.dataset, "split": args.split,
                    **asdict(result)},
                   [console.table(title, ("", ">accuracy"), rows)],
                   note=_other_data(args, result))


def _other_data(args, result):
    if result.same_data is not False:
        return None
    return (f"{args.dataset} is not the data that the model was trained on; floats become bytes by "
            f"the range of x_train, so they mean the same only if that range is the same")


def _folding(args, model):
    from benn_fpga import api
    from benn_fpga.plan.folding import bottleneck
    from benn_fpga.plan.plan import plan
    if args.target_fps is not None and args.clock is None:
        raise BennError("--target-fps needs the clock of the design: give --clock MHZ")
    if args.fold is not None:
        return _folding_of_file(args, model)
    cycles = args.cycles
    if args.target_fps is not None:
        cycles = int(min(args.clock * 1e6 / args.target_fps, 1e18))
        folding = api.fastest(model, parallel=args.parallel, bus=args.bus or 64)
        least = plan(model, folding).schedule.cycles_per_frame
        if cycles < least:
            stage, _ = bottleneck(model, folding)
            where, cure = _place(stage, model), ", or widen --bus"
            if stage.startswith("layer"):
                cure = ", or run more members in --parallel" * (folding.rounds(model) > 1)
            raise BennError(
                f"{args.target_fps:g} frames per second can not be met at {args.clock:g} MHz: "
                f"a frame takes at least {least} cycles ({where}), so at most "
                f"{args.clock * 1e6 / least:,.0f} frames per second can be; lower --target-fps, "
                f"raise --clock{cure}")
    return api.choose_folding(model, parallel=args.parallel, bus=args.bus or 64, lanes=args.lanes,
                              cycles=cycles)


def _place(stage, model):
    """A stage of the schedule, in words."""
    if not stage.startswith("layer"):
        return f"bus, {stage}"
    n = int(stage.removeprefix("layer"))
    return f"layer {n}, {model.layers[n].kind}"


def _folding_of_file(args, model):
    """The folding in a file, or in a manifest; the command line may say what it leaves out."""
    from benn_fpga.spec import Folding
    try:
        with open_regular(args.fold) as file:
            found = json.loads(file.read(), object_pairs_hook=_once, parse_int=_short)
    except OSError as error:
        raise BennError(f"can not read {args.fold}: {error.strerror}; give a JSON file with PE and "
                        f"SIMD of each layer") from None
    except UnicodeDecodeError:
        raise BennError(f"{args.fold} is not a text file; give a JSON file with PE and SIMD of "
                        f"each layer") from None
    except (ValueError, RecursionError) as error:
        raise BennError(f"{args.fold} is not JSON: {error}; correct the file") from None
    if isinstance(found, dict) and "folding" in found:
        found = found["folding"]
    if isinstance(found, dict):
        for key, value, default in (("parallel", args.parallel, len(model.members)),
                                    ("bus", args.bus, 64)):
            if value is not None and found.setdefault(key, value) != value:
                raise BennError(f"{args.fold} says {key} {found[key]}, but --{key} {value}; "
                                f"leave out one of them")
            found.setdefault(key, default)
    try:
        return Folding.from_json(found).check(model)
    except BennError as error:
        raise BennError(f"{args.fold}: {error}") from None


def _once(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} appears twice")
        found[key] = value
    return found


def _short(text):
    if len(text) > 18:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def generate(args):
    from benn_fpga import api, console
    from benn_fpga.plan.folding import bottleneck
    from benn_fpga.plan.plan import plan
    model = api.load(args.model)
    design = api.generate(model, args.output, folding=_folding(args, model), force=args.force,
                          progress=_progress(args))
    manifest, predicted = design.manifest, design.manifest["predicted"]
    memory = manifest["memory_bits"]
    data = {
        "directory": args.output,
        "verilog": os.path.join(args.output, design.verilog.name),
        "verilog_bytes": design.verilog.stat().st_size,
        "verilog_sha256": manifest["verilog_sha256"],
        "model_sha256": manifest["model_sha256"],
        "folding": manifest["folding"],
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
    design_plan, rows = plan(model, design.folding), []
    for unit, layer in zip(design_plan.units, manifest["layers"], strict=True):
        found = unit.memories
        weights, partials = found.pop("weights", None), found.pop("partials", None)
        buffers = [memory for node in design_plan.front(unit) for memory in node.memories.values()]
        queues = [queue.memories["memory"] for queue in design_plan.feeding(unit)]
        rows.append((unit.stage.n, layer["kind"], layer["pe"], layer["simd"],
                     f"{layer['cycles']:,}", _memory(weights),
                     ", ".join(map(_memory, found.values())),
                     ", ".join(map(_memory, [*buffers, *([partials] if partials else [])])),
                     ", ".join(map(_memory, queues))))
    slowest, foldable = bottleneck(model, design.folding)
    if slowest.startswith("layer"):
        more = "; a folding of it with more lanes is faster" if foldable else \
            "; its PE and SIMD are as large as can be"
    else:
        more = ""
    block_ram = manifest["block_ram"]
    facts = [
        ("members", f"{len(model.members)}: {design.folding.parallel} in parallel, "
                    f"{design.folding.rounds(model)} in time"),
        ("bus", f"{design.folding.bus} bits"),
        ("XNOR lanes", f"{manifest['xnor_lanes']:,}"),
        ("XNOR gates, a product of n x m bits being n * m", f"{manifest['xnor_gates']:,}"),
        ("weight bits", f"{model.weight_bits:,}"),
        ("memory bits, with thresholds", f"{memory['constants']:,}"),
        ("buffer bits", f"{memory['buffers']:,}"),
        ("bits of registers that hold words", f"{memory['registers']:,}"),
        ("memories that ask for block RAM *", f"{block_ram['memories']:,}, in all "
                                              f"{block_ram['bits']:,} bits"),
        ("cycles per frame", f"{predicted['cycles_per_frame']:,}"),
        ("slowest", f"{_place(slowest, model)}{more}"),
        ("latency in cycles", f"{predicted['latency_cycles']:,}"),
    ]
    if args.clock is not None:
        data["frames_per_second"] = args.clock * 1e6 / predicted["cycles_per_frame"]
        facts.append((f"frames per second at {args.clock:g} MHz",
                      f"{data['frames_per_second']:,.0f}"))
    facts.append(("written to", args.output))
    columns = (">layer", "kind", ">PE", ">SIMD", ">cycles", ">weights", ">thresholds", ">buffers",
               ">queues before it")
    return Outcome(data, [console.table("Layers of each engine, memories as words x bits", columns,
                                        rows),
                          console.table("Design", ("", ""), facts)])


def _memory(memory):
    if memory is None:
        return ""
    copies = f"{memory.copies} x " if memory.copies > 1 else ""
    return f"{copies}{memory.words:,} x {memory.bits}{' *' if memory.is_block else ''}"


def simulate(args):
    from benn_fpga import api, console
    result = api.simulate(args.design, args.dataset, frames=args.frames, split=args.split,
                          data_dir=args.data_dir, layers=args.layers, waves=args.waves,
                          keep=args.keep, force=args.force, progress=_progress(args))
    rows = [
        ("frames", result.frames, ""),
        ("mismatches", result.mismatches, 0),
        ("accuracy", console.percent(result.accuracy), ""),
        *((name, *(number if number is None else f"{number:,}" for number in pair))
          for name, pair in (
              ("cycles per frame", (result.cycles_per_frame, result.predicted_cycles_per_frame)),
              ("latency in cycles", (result.latency_cycles, result.predicted_latency_cycles)))),
    ]
    if args.layers:
        rows.insert(2, ("layer outputs compared", result.layers_compared, ""))
    title = f"{args.design} on {args.split} frames of {args.dataset}"
    return Outcome({"design": args.design, "dataset": args.dataset, "split": args.split,
                    "waves": args.waves, **asdict(result)},
                   [console.table(title, ("", ">measured", ">predicted"), rows)], result.failure,
                   _other_data(args, result))


def doctor(args):
    from benn_fpga import console
    from benn_fpga import doctor as clinic
    tools = clinic.examine()
    commands = clinic.commands(tools)
    missing = [tool.name for tool in tools if not tool.found]
    data = {
        "tools": [{**asdict(tool), "found": tool.found} for tool in tools],
        "commands": {name: {"works": not lacks, "missing": lacks}
                     for name, lacks in commands.items()},
    }
    return Outcome(data, [
        console.table("Tools", ("", "found", "version", "to do"),
                      [(tool.name, "yes" if tool.found else "no", tool.version, tool.install)
                       for tool in tools]),
        console.table("Commands", ("", "works", "missing"),
                      [(name, "no" if lacks else "yes", ", ".join(lacks))
                       for name, lacks in commands.items()]),
    ], f"missing or too old: {', '.join(missing)}" if missing else None)


def _progress(args):
    """For programs that ask for JSON, stderr holds errors and nothing else."""
    return False if args.json else None


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{PROGRAM}: error: {message}; see {self.prog} --help\n")


def _whole(text):
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _count(text):
    if text.isascii() and text.isdigit() and _whole(text) is None:
        raise argparse.ArgumentTypeError(f"{_cut(text)} is too large")
    if not _whole(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {_cut(text)}")
    return _whole(text)


def _seed(text):
    if _whole(text) is None or _whole(text) >> 32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to 2**32 - 1, not {_cut(text)}")
    return _whole(text)


def _cut(text):
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _positive(text):
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, not {_cut(text)}")
    return number


def _megahertz(text):
    if _positive(text) > 1e6:
        raise argparse.ArgumentTypeError(f"must be a clock in MHz, at most 1e6, not {_cut(text)}")
    return _positive(text)


def _widths(widths):
    return f"{len(widths)}x{widths[0]}" if len(set(widths)) == 1 else ",".join(map(str, widths))


def _defaults():
    """The defaults of each data set, as a table."""
    rows = [("", *(f"--{option.name}" for option in fields(Defaults))),
            *((name, *map(str, astuple(chosen))) for name, chosen in DEFAULTS.items())]
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip()
             for row in rows]
    return "\n  ".join(["defaults:", *lines, "any .npz as digits, with at most as many levels as "
                                              "its largest value"])


def _experiments():
    """The options of training that each experiment takes."""
    lines = [f"{name}: {', '.join(f'--{option}' for option in takes) or 'none'}"
             for name, takes in EXPERIMENTS.items()]
    return "\n  ".join(["options of training that each takes:", *lines])


def _parser():
    parser = _Parser(prog=PROGRAM, description="Binary ensemble neural networks from PyTorch to "
                                               "FPGA, bit for bit.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)

    def verb(function, name, text, epilog=None):
        sub = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".",
                               epilog=epilog, allow_abbrev=False,
                               formatter_class=argparse.RawDescriptionHelpFormatter)
        sub.set_defaults(function=function)
        sub.add_argument("--json", action="store_true",
                         help="print one JSON object, no tables and no progress")
        return sub

    def dataset(sub):
        sub.add_argument("dataset", metavar="DATASET", help=DATASETS)
        sub.add_argument("--data-dir", metavar="DIR",
                         help="where the data files are (default: $BENN_DATA, else download)")

    def split(sub):
        sub.add_argument("--split", choices=SPLITS, default=SPLITS[0],
                         help=f"part of the data (default: {SPLITS[0]})")

    def force(sub, text="replace files that are there"):
        sub.add_argument("--force", action="store_true", help=text)

    def network(sub):
        widths = ", ".join(f"{name} ({_widths(MLPS[name])})" if name in MLPS else name
                           for name in NETS)
        sub.add_argument("--net", help=f"{widths}, or widths of hidden layers as mlp:256,128; "
                                       f"mlp: without any is a linear classifier")
        sub.add_argument("--width", metavar="W", type=_positive,
                         help="multiply every hidden width: 1, 0.5 (tiny), 0.1 (nano)")
        sub.add_argument("--kind", metavar="KIND", choices=(*KINDS, *RIVALS),
                         help=f"bits of weights and activations: {', '.join(KINDS)}; or a network "
                              f"of the literature: {', '.join(RIVALS)} (default: ab, all binary)")
        for name in ("bits", "wbits", "abits"):
            takes = [kind for kind, needs in KINDS.items() if name in needs] + \
                [kind for kind, (_, _, needs) in RIVALS.items() if name in needs]
            sub.add_argument(f"--{name}", metavar="Q", type=_count,
                             help=f"for the kinds {', '.join(takes)}")
        sub.add_argument("--recipe", choices=RECIPES,
                         help="batch norm alone, or the blocks of the paper (default: hw)")
        sub.add_argument("-k", "--members", metavar="K", type=_count,
                         help=f"number of networks (default: {MEMBERS})")
        sub.add_argument("--encoder",
                         help="threshold[:VALUE], thermometer:LEVELS or planes[:BITS]")
        sub.add_argument("--epochs", metavar="N", type=_count,
                         help="times that training sees the data")
        sub.add_argument("--lr", metavar="STEP", type=_positive, help="learning rate at the start")
        sub.add_argument("--batch", metavar="N", type=_count, help="frames in one step")
        sub.add_argument("--augment", metavar="MOVES",
                         help="crop[:PIXELS] shifts images, flip mirrors them, crop+flip does "
                              "both, anew in every epoch (PIXELS: an eighth of the side)")
        sub.add_argument("--limit", metavar="N", type=_count, help="train on so many frames only")

    sub = verb(train, "train", "train an ensemble and write its model file", _defaults())
    dataset(sub)
    sub.add_argument("-o", "--output", metavar="M.benn",
                     help="file to write; not for kinds that compute in float")
    network(sub)
    sub.add_argument("--ensemble", choices=ENSEMBLES,
                     help="how members differ (default: independent)")
    sub.add_argument("--schedule", choices=SCHEDULES,
                     help="members start anew, or from the one before (default: indep)")
    sub.add_argument("--reweight", choices=REWEIGHTS,
                     help="boosting draws frames by weight, or weighs the loss (default: sample)")
    sub.add_argument("--vote", choices=("soft", "hard"), help="default: soft")
    sub.add_argument("--distill", action="store_true", default=None,
                     help="learn from an ensemble of float networks, which is trained first")
    sub.add_argument("--seed", metavar="N", type=_seed, help="default: 0")
    sub.add_argument("--resume", action="store_true",
                     help="go on from the checkpoint of a run that was interrupted")
    sub.add_argument("--plot", metavar="FILE.svg",
                     help="draw accuracy by K, what each member adds, and how they differ")
    sub.add_argument("--compare", action="store_true",
                     help="train also one member, one network of as many bits, and other seeds")
    force(sub)

    sub = verb(experiment, "experiment", "repeat an experiment of the paper", _experiments())
    sub.add_argument("name", metavar="NAME", choices=tuple(EXPERIMENTS),
                     help=", ".join(EXPERIMENTS))
    sub.add_argument("--quick", action="store_true", help="in less than two minutes, on digits")
    sub.add_argument("--dataset", metavar="DATASET",
                     help=f"{DATASETS} (default: mnist; digits if quick)")
    sub.add_argument("--data-dir", metavar="DIR",
                     help="where the data files are (default: $BENN_DATA, else download)")
    sub.add_argument("--seeds", metavar="N", type=_count,
                     help="runs of each network (default: 3)")
    network(sub)
    sub.add_argument("-o", "--output", metavar="DIR", help="write table and plot there")
    force(sub)

    sub = verb(info, "info", "show what is in a model file")
    sub.add_argument("model", metavar="M.benn")

    sub = verb(evaluate, "eval", "measure the accuracy of the golden model")
    sub.add_argument("model", metavar="M.benn")
    dataset(sub)
    split(sub)
    sub.add_argument("--limit", metavar="N", type=_count, help="use the first N frames")
    sub.add_argument("--plot", metavar="FILE.svg",
                     help="draw accuracy by K, what each member adds, and how they differ")
    force(sub)

    sub = verb(pick, "pick", "write a model file of the first members of another")
    sub.add_argument("model", metavar="M.benn")
    sub.add_argument("-k", "--members", metavar="K", type=_count, required=True,
                     help="so many; `train` says which K is best on the validation part")
    sub.add_argument("-o", "--output", metavar="M.benn", required=True, help="file to write")
    force(sub)

    sub = verb(generate, "generate", "write Verilog and its manifest")
    sub.add_argument("model", metavar="M.benn")
    sub.add_argument("-o", "--output", metavar="DIR", required=True, help="folder to write")
    sub.add_argument("--parallel", metavar="M", type=_count,
                     help="members side by side; it must divide their number (default: all)")
    sub.add_argument("--bus", metavar="BITS", type=_count, help="width of both buses (default: 64)")
    goal = sub.add_mutually_exclusive_group()
    goal.add_argument("--fold", metavar="FILE",
                      help="JSON file with PE and SIMD of each layer, or a design.json")
    goal.add_argument("--lanes", metavar="N", type=_count,
                      help="fastest design with at most N XNOR lanes (default: 4096)")
    goal.add_argument("--cycles", metavar="N", type=_count,
                      help="smallest design that takes at most N cycles per frame")
    goal.add_argument("--target-fps", metavar="F", type=_positive,
                      help="smallest design that reaches F frames per second at --clock")
    sub.add_argument("--clock", metavar="MHZ", type=_megahertz, help="clock of the design")
    force(sub, "write into a folder with other files, or with the design of another model")

    sub = verb(simulate, "simulate", "run a design cycle by cycle and check every frame")
    sub.add_argument("design", metavar="DIR", help="folder that generate wrote")
    dataset(sub)
    split(sub)
    sub.add_argument("--frames", metavar="N", type=_count, help="use the first N frames")
    sub.add_argument("--layers", action="store_true",
                     help="compare what every layer gives, not only the answers")
    sub.add_argument("--waves", metavar="FILE.vcd", help="record a trace")
    sub.add_argument("--keep", action="store_true",
                     help="leave log, inputs and answers in DIR/sim/run")
    force(sub)

    verb(doctor, "doctor", "show which tools are there and what to install")
    return parser


def _print(outcome, args, seconds):
    if args.json:
        print(json.dumps({**outcome.data, "seconds": round(seconds, 3)}, allow_nan=False))
    else:
        from benn_fpga import console
        console.show(outcome.tables)
    sys.stdout.flush()


def _run(args):
    start = time.perf_counter()
    outcome = args.function(args)
    _print(outcome, args, time.perf_counter() - start)
    if outcome.note and not args.json:
        complain(PROGRAM, outcome.note, "note")
    if outcome.failure:
        complain(PROGRAM, outcome.failure)
    return 1 if outcome.failure else 0


def main(argv=None):
    """Run the command line; returns the exit code."""
    def run():
        args = _parser().parse_args(argv)
        args.told = (sys.argv[1:] if argv is None else list(argv))[1:]
        return _run(args)
    return guard(PROGRAM, run, "interrupted; nothing was written")
