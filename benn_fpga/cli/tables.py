"""What the verbs show to people."""

import csv
import io
import json

from benn_fpga.cli.console import percent, plain, table
from benn_fpga.errors import plural
from benn_fpga.plan import names
from benn_fpga.presets import BRAMS

__all__ = ["answers", "answers_as_csv", "compared", "design", "doctor", "evaluation", "experiment",
           "info", "measured", "picked", "searched", "simulation", "stage_name", "trained"]

MATRIX = 12  # classes of the largest confusion matrix that is shown
WORST = 10  # rows that are shown of more
COVERAGES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5)


def trained(dataset, data, analysis, cross_validated, rejection):
    """Of a model that was trained: ``data`` of ``train``, its Analysis, the Advice of folds and the
    Rejection, or None."""
    members, rows = data["member_accuracy"], []
    if len(members) > 1:
        rows = [("enough members", analysis.advice),
                *([(f"enough by {data['folds']} folds, {cross_validated.frames:,} frames",
                    cross_validated)] if cross_validated else []),
                ("frames on which two members disagree", percent(analysis.mean_disagreement))]
    elif cross_validated:
        rows = [(f"accuracy by {data['folds']} folds, {cross_validated.frames:,} frames",
                 _sure(cross_validated.curve[0], cross_validated.intervals[0]))]
    rows = [
        ("members", len(members)),
        ("mean accuracy of a member", percent(sum(members) / len(members))),
        ("accuracy of the vote (95 % interval)",
         _sure(data["accuracy"], data["accuracy_interval"])),
        *rows,
        *_rejection(rejection),
        ("weight bits", f"{data['weight_bits']:,}"),
        ("written to", data["model"]),
    ]
    title = f"Trained on {dataset}, measured on {data['frames']:,} validation frames"
    shown = [table(title, ("", ">"), rows), _blocks(data["block_ram"])]
    if len(members) > 1:
        shown.append(_members(analysis))
    return shown


def _range(interval):
    return f"{100 * interval[0]:.2f} to {100 * interval[1]:.2f} %"


def _sure(share, interval):
    """A share and its interval."""
    return f"{percent(share)} ({_range(interval)})"


def _rejection(rejection):
    """What a margin to reject by rests on, if there is one."""
    if rejection is None or not rejection.is_met:
        return []
    return [("margin below which it answers unknown", rejection.margin),
            ("validation frames answered (95 % interval of wrong ones)",
             f"{rejection.answered} of {rejection.frames}, {rejection.wrong} wrong "
             f"({_range(rejection.error_interval)})")]


def _blocks(counted):
    """Block RAMs of the weights, as :func:`benn_fpga.plan.blocks.of_weights` counts them."""
    return table("Block RAMs of the weights", ("", ">bits / size of a block",
                                               ">one engine, members in turn"),
                 [(BRAMS[name], f"{counts['by_bits']:,}",
                   f"{counts['in_turn']:,}" if counts["in_turn"] else "none: too small for one")
                  for name, counts in counted.items()])


def _members(analysis):
    """Of each member its accuracy, that of the vote with those before it, and what it adds."""
    return table(
        "Members", (">", ">alone", ">vote of 0 to it", ">95 % interval", ">vote of any as many",
                    ">vote of all loses without it"),
        [(k, percent(alone), percent(vote), _range(interval),
          percent(some) if analysis.advice.orders > 1 else "", f"{100 * gain:+.2f} %")
         for k, (alone, vote, interval, some, gain) in enumerate(zip(
             analysis.members, analysis.curve, analysis.intervals, analysis.advice.curve,
             analysis.gain, strict=True))])


def compared(data, analysis, chosen):
    """The ensemble, its first ``chosen`` members, and what it was compared with."""
    members, bits, along = len(data["member_accuracy"]), data["weight_bits"], data["test_curve"]
    rows = [(f"this ensemble, {members} {plural(members, 'member')}", bits, data["accuracy"],
             along[-1])]
    if chosen < members:
        rows.append(("its member 0 alone" if chosen == 1 else f"its first {chosen}",
                     bits // members * chosen, analysis.curve[chosen - 1], along[chosen - 1]))
    rows += [(name, rival["weight_bits"], rival["valid"], rival["test"])
             for name, rival in data["compared"].items()]
    return table("Compared, on the same data", ("", ">weight bits", ">validation", ">test"),
                 [(name, f"{bits:,}", percent(valid), percent(test))
                  for name, bits, valid, test in rows])


def searched(dataset, data):
    """What ``search`` came to, ``data`` of its JSON."""
    trials = data["trials"]
    rows = [(_net(trial), trial["encoder"], trial["members"], trial["ensemble"],
             f"{trial['weight_bits']:,}", *([f"{trial['cost']:,}"] if _counts_blocks(trials)
                                            else []),
             trial["epochs"], percent(trial["accuracy"]),
             " to ".join(f"{100 * bound:.1f}" for bound in trial["interval"]))
            for trial in trials[:10]]
    blocks = [">block RAMs"] if _counts_blocks(trials) else []
    columns = ("network", "encoder", ">K", "ensemble", ">weight bits", *blocks, ">epochs",
               ">validation", ">95 % interval")
    facts = [
        ("accuracy on the validation part", percent(data["validation_accuracy"])),
        ("accuracy on the test part", f"{percent(data['accuracy'])} of {data['frames']:,} frames"),
        ("weight bits", f"{data['weight_bits']:,}"),
        ("command that trains it", data["command"]),
        ("written to", data["model"]),
    ]
    return [table(f"The best of {data['drawn']} networks for {dataset}, on up to "
                  f"{trials[0]['frames']:,} validation frames", columns, rows),
            table("The first of them, trained in full", ("", ""), facts),
            _blocks(data["block_ram"])]


def _net(trial):
    return trial["net"] if trial["width"] == 1 else f"{trial['net']} x {trial['width']:g}"


def _counts_blocks(trials):
    return any(trial["cost"] != trial["weight_bits"] for trial in trials)


def measured(dataset, network):
    return [table(f"Float network on {dataset}", ("", ">"), [
        ("accuracy on the validation part", percent(network.valid)),
        ("accuracy on the test part", percent(network.test)),
        ("test frames", network.frames)])]


def experiment(report, held, files):
    """The table of a Report, its claims by the words of ``held``, and where it was written."""
    shown = [
        table(report.title, report.columns, report.rows),
        table("Claims of the paper", ("", "paper", "here", "held"),
              [(claim.text, claim.paper, claim.ours, held[claim.held]) for claim in report.claims]),
    ]
    if files:
        shown.append(table("", ("", ""), [("written to", files["json"]), ("", files["svg"])]))
    return shown


def info(model, data):
    """Of a model file, of which ``info`` gives ``data``."""
    last = len(model.layers) - 1
    layers = [(n, layer.kind, _shape(layer.input_shape), _shape(layer.output_shape),
               layer.input_bits or "integers", layer.weight_bits or "",
               layer.output_bits or ("scores" if n == last else "integers"),
               f"{layer.stored_bits:,}")
              for n, layer in enumerate(model.layers)]
    votes = data["vote_weights"]
    shown = ", ".join(map(str, votes[:16])) + (", ..." if len(votes) > 16 else "")
    if len(votes) > 1 and len(set(votes)) == 1:
        shown = f"{votes[0]} each, so all count alike"
    facts = [
        ("input", f"{_shape(model.encoder.shape)} values of {model.encoder.bits} bit"),
        ("floats become bytes", _scale(model.inputs)),
        ("encoder", _encoder(model.encoder)),
        ("members", len(votes)),
        ("vote", f"{model.vote}, weights {shown}"),
        ("classes", _named(model.classes, model.inputs.class_names)),
        *([("features", _named(model.encoder.values, model.inputs.feature_names))]
          if model.inputs.feature_names else []),
        ("unknown if the margin is below", "never" if model.reject is None else model.reject),
        ("weight bits", f"{model.weight_bits:,}"),
        ("file", f"{data['file_bytes']:,} bytes"),
        ("sha256", data["model_sha256"]),
    ]
    # What was asked of the encoder is left out: the facts say what it is.
    origin = [(key, value if isinstance(value, str) else json.dumps(value))
              for key, value in sorted(model.provenance.items()) if key != "encoder"]
    columns = (">layer", "kind", ">reads", ">gives", ">input bits", ">weight bits", ">output bits",
               ">bits per member")
    parts = [table(data["model"], ("", ""), facts), table("Layers", columns, layers),
             _blocks(data["block_ram"])]
    if origin:
        parts.append(table("Where it comes from", ("", ""), origin))
    return parts


def _shape(shape):
    return " x ".join(map(str, shape))


_SHOWN = 8  # names or ranges in one cell


def _some(items):
    return ", ".join(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")


def _named(count, names):
    return f"{count}: {_some(names)}" if names else f"{count}, without names"


def _scale(inputs):
    if not inputs.has_range:
        return {"bytes": "no floats: it was trained on bytes",
                "unknown": "not known: the file is of an older version, or says nothing; "
                           "`eval` takes the range of x_train, `predict` bytes only"}[inputs.scale]
    ranges = [f"{low:g} to {high:g}" for low, high in zip(inputs.low, inputs.high, strict=True)]
    by = "one range" if inputs.scale == "all" else f"a range for each {inputs.scale}"
    return f"by {by}: {_some(ranges)}"


def _encoder(encoder):
    where = ""
    if encoder.kind != "planes":
        common = len(encoder.thresholds) == 1 and encoder.levels <= 16
        where = f" at {', '.join(map(str, encoder.thresholds[0]))}" if common else \
            f" of {encoder.levels} levels"
    return f"{encoder.kind}{where}: {encoder.outputs:,} elements of {encoder.element_bits} bit"


def picked(model, data):
    return [table(f"Picked from {model}", ("", ">"), [
        ("members", data["members"]), ("weight bits", f"{data['weight_bits']:,}"),
        ("written to", data["model"])])]


def evaluation(title, result, written):
    """Of an Evaluation; ``written`` is the file of the model with a new margin, or None."""
    members = result.member_accuracy
    rows = [
        *((f"member {k}", percent(accuracy)) for k, accuracy in enumerate(members)),
        ("mean of the members", percent(sum(members) / len(members))),
        ("vote (95 % interval)", _sure(result.accuracy, result.accuracy_interval)),
        *_rejection(result.rejection),
    ]
    if result.reject is not None:
        rows += [(f"frames answered unknown, margin below {result.reject}",
                  f"{result.rejected} of {result.frames}"),
                 ("vote on the other frames (95 % interval)",
                  "none are left" if result.answered_accuracy is None else
                  _sure(result.answered_accuracy, result.answered_interval))]
    if written is not None:
        rows.append(("written to", written))
    return [table(title, ("", ">accuracy"), rows), _classes(result), *_confusion(result),
            _coverage(result)]


def _classes(result):
    """Accuracy by class; of many classes, the worst."""
    rejects = result.reject is not None
    known = [each for each in result.classes if each.accuracy is not None]
    title, shown = "Classes", result.classes
    if len(result.classes) > 2 * WORST:
        title = f"Classes, the worst {WORST} of {len(known)} that have " \
                f"{'answers' if rejects else 'frames'}"
        shown = sorted(known, key=lambda each: each.accuracy)[:WORST]
    return table(title, ("class", ">frames", *([">unknown"] * rejects), ">right",
                         ">accuracy without unknown" if rejects else ">accuracy",
                         ">95 % interval", "most often taken for"),
                 [(_class(each), each.frames, *([each.rejected] * rejects), each.right,
                   percent(each.accuracy) if each in known else "",
                   _range(each.interval) if each in known else "", _taken_for(result, each.label))
                  for each in shown])


def _class(each):
    """Number and name of a class, which may be its number."""
    number = str(each.label)
    return number if each.name == number else f"{number} {each.name}"


def _taken_for(result, label):
    answers = result.confusion[label][:len(result.classes)]  # without what is unknown
    counts = [count * (answer != label) for answer, count in enumerate(answers)]
    most = max(counts)
    return f"{_class(result.classes[counts.index(most)])} ({most})" if most else ""


def _confusion(result):
    """The matrix; of many classes, the pairs that are confused most."""
    classes = result.classes
    if len(classes) <= MATRIX:
        columns = ("label \\ answer", *(f">{each.label}" for each in classes),
                   *([">unknown"] * (result.reject is not None)))
        return [table("Confusion: frames by label and answer", columns,
                      [(_class(each), *row)
                       for each, row in zip(classes, result.confusion, strict=True)])]
    pairs = sorted(((-count, label, answer) for label, row in enumerate(result.confusion)
                    for answer, count in enumerate(row[:len(classes)])
                    if count and answer != label))
    return [table(f"Confusion: the {min(WORST, len(pairs))} most frequent of {len(pairs)} pairs",
                  ("label", "answer", ">frames"),
                  [(_class(classes[label]), _class(classes[answer]), -count)
                   for count, label, answer in pairs[:WORST]])] if pairs else []


def _coverage(result):
    """What is answered, and right, if answers below some margins are rejected."""
    chosen = {}
    for least in COVERAGES:
        point = [point for point in result.coverage if point.coverage >= least][-1]
        chosen[point.margin] = point
    return table("Rejection: the answers that are left if those below a margin are unknown",
                 (">margin", ">answered", ">coverage", ">wrong", ">accuracy"),
                 [(point.margin, point.answered, percent(point.coverage), point.wrong,
                   percent(point.accuracy)) for point in chosen.values()])


_ROWS = 40  # answers in the table
_TOTALS = 12  # classes whose totals fit beside them


def answers(data):
    """Of each frame what ``predict`` gives as ``data``, or of the first of them."""
    all_answers, classes = data["answers"], len(data["class_names"])
    columns = ("file", ">frame", ">class", "name", ">margin", *(["totals"] * (classes <= _TOTALS)))
    rows = [(each["source"], each["frame"], each["class"], each["name"], each["margin"],
             *([" ".join(map(str, each["totals"]))] * (classes <= _TOTALS)))
            for each in all_answers[:_ROWS]]
    frames = len(all_answers)
    title = f"{data['model']} on {frames} {plural(frames)} of {data['input_type']}"
    if frames > _ROWS:
        title += f": the first {_ROWS}; --csv FILE has all"
    shown = [table(title, columns, rows)]
    if data["csv"] is not None:
        shown.append(table("", ("", ""), [("written to", data["csv"])]))
    return shown


def answers_as_csv(all_answers, classes):
    """The answers of ``predict`` as the text of a ``.csv`` file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["source", "frame", "class", "name", "margin", "rejected",
                     *(f"total_{n}" for n in range(classes))])
    for each in all_answers:
        writer.writerow([plain(each["source"]), each["frame"], each["class"], each["name"],
                         each["margin"], int(each["rejected"]), *each["totals"]])
    return text.getvalue()


def stage_name(stage, model):
    """A stage of the schedule, in words."""
    n = names.layer_of(stage)
    return f"bus, {stage}" if n is None else f"layer {n}, {model.layers[n].kind}"


def design(made, data, clock, estimated=None):
    """Of a Design, of which ``generate`` gives ``data``; ``clock`` in MHz or None, ``estimated``
    its Area or None."""
    columns = (">layer", "kind", ">PE", ">SIMD", ">cycles", ">weights", ">thresholds", ">buffers",
               ">queues before it")
    model, folding, block_ram = made.model, made.folding, data["block_ram"]
    facts = [
        ("members", f"{len(model.members)}: {folding.parallel} side by side, each engine runs "
                    f"{folding.rounds(model)} in turn"),
        ("bus", f"{folding.bus} bits"),
        ("XNOR lanes", f"{data['xnor_lanes']:,}"),
        ("XNOR gates, n * m of a product of n by m bits", f"{data['xnor_gates']:,}"),
        ("weight bits", f"{data['weight_bits']:,}"),
        ("memory bits, weights and thresholds", f"{data['memory_bits']:,}"),
        ("buffer bits", f"{data['buffer_bits']:,}"),
        ("bits of registers that hold words", f"{data['register_bits']:,}"),
        ("memories that ask for block RAM *", f"{block_ram['memories']:,}, in all "
                                              f"{block_ram['bits']:,} bits"),
        *((f"block RAMs that these need: {BRAMS[name]}", f"{count:,}")
          for name, count in block_ram["blocks"].items()),
        ("cycles per frame", f"{data['cycles_per_frame']:,}"),
        ("slowest", _slowest(model, folding)),
        ("latency in cycles", f"{data['latency_cycles']:,}"),
    ]
    if estimated is not None:
        facts += _area(estimated)
    if clock is not None:
        facts.append((f"frames per second at {clock:g} MHz", f"{data['frames_per_second']:,.0f}"))
    facts.append(("written to", data["directory"]))
    if data["bench"] is not None:
        facts.append(("test bench", f"make -C {data['bench']}"))
    return [table("Layers, memories of all engines as words x bits", columns, _layers(made)),
            table("Design", ("", ""), facts)]


def _area(estimated):
    """What a design will take, and of how many there are."""
    from benn_fpga.devices import RESOURCES
    device, there = estimated.device.name, estimated.device.resources
    for name in ("lut", "ff", "logic_cells", "bram"):
        used = getattr(estimated, name)
        if used is not None and (name in there or name != "logic_cells"):
            of = f" of {there[name]:,}" if name in there else ""
            yield f"{RESOURCES[name]} of {device}, estimated", f"{used:,}{of}"
    if there:
        yield f"fits {device}, as estimated", "no" if estimated.missing else "yes"


def _layers(made):
    from benn_fpga.plan.plan import plan
    whole = plan(made.model, made.folding)
    for unit, layer in zip(whole.units, made.manifest["layers"], strict=True):
        memories = unit.memories
        weights, partials = memories.pop("weights", None), memories.pop("partials", None)
        buffers = [memory for node in whole.front(unit) for memory in node.memories.values()]
        queues = [queue.memories["memory"] for queue in whole.feeding(unit)]
        yield (unit.stage.n, layer["kind"], layer["pe"], layer["simd"], f"{layer['cycles']:,}",
               _constants(weights) if unit.is_unrolled else _memory(weights),
               ", ".join(map(_memory, memories.values())),
               ", ".join(map(_memory, [*buffers, *([partials] if partials else [])])),
               ", ".join(map(_memory, queues)))


def _memory(memory):
    if memory is None:
        return ""
    return f"{_copies(memory)}{memory.words:,} x {memory.bits}{' *' if memory.is_block else ''}"


def _constants(memory):
    return f"unrolled: {_copies(memory)}{memory.bits:,} constants"


def _copies(memory):
    return f"{memory.copies} x " if memory.copies > 1 else ""


def _slowest(model, folding):
    from benn_fpga.plan.folding import bottleneck
    stage, foldable = bottleneck(model, folding)
    more = ""
    if names.layer_of(stage) is not None:
        more = "; more lanes would make it faster" if foldable else \
            "; its PE and SIMD are as large as can be"
    return f"{stage_name(stage, model)}{more}"


def simulation(title, result, layers):
    seconds = result.compile_seconds
    rows = [
        ("compile", f"{seconds:.1f} s" if seconds else "done before", ""),
        ("frames", result.frames, ""),
        ("mismatches", result.mismatches, 0),
        *([("layer outputs compared", result.layers_compared, "")] if layers else []),
        *([("protocol tests passed", result.protocol_tests, "")] if result.protocol_tests else []),
        ("accuracy", "no labels" if result.accuracy is None else percent(result.accuracy), ""),
        *([] if result.rejected is None else [("frames answered unknown", result.rejected, "")]),
        *([] if result.rejected is None or result.accuracy is None else
          [("accuracy on the other frames", "none are left" if result.answered_accuracy is None else
            percent(result.answered_accuracy), "")]),
        *((name, *(number if number is None else f"{number:,}" for number in pair))
          for name, pair in (
              ("cycles per frame", (result.cycles_per_frame, result.predicted_cycles_per_frame)),
              ("latency in cycles", (result.latency_cycles, result.predicted_latency_cycles)))),
    ]
    return [table(title, ("", ">measured", ">predicted"), rows)]


def synthesis(title, result):
    """Of a Synthesis."""
    from benn_fpga.devices import RESOURCES

    def used(name):
        number, expected = getattr(result, name), (result.estimated or {}).get(name)
        return (RESOURCES[name], f"{number:,}", "" if expected is None else f"{expected:,}",
                f"{result.available[name]:,}" if name in result.available else "",
                percent(result.utilisation[name]) if name in result.available else "")
    names = [name for name in RESOURCES if getattr(result, name) is not None]
    facts = [
        ("XNOR lanes", f"{result.xnor_lanes:,}"),
        ("LUTs per lane", f"{result.lut_per_lane:.2f}"),
        ("flip-flops per lane", f"{result.ff_per_lane:.2f}"),
        ("bits of carry chains", f"{result.carry:,}"),
        *_routed(result),
        *((f"{step}, seconds", f"{seconds:.1f}{', done before' * (step in result.reused)}")
          for step, seconds in result.steps.items()),
        *((step, tool) for step, tool in result.tools.items()),
        *(("written to", file) for file in result.files.values()),
    ]
    shown = [
        table(f"{title} on {result.device}", ("", ">used", ">estimated", ">of", ">share"),
              map(used, names)),
        _taken("Nodes of the plan, in all engines", "node", result.nodes, "between nodes"),
        _taken("Engines", "engine", result.engines, "shared by all"),
    ]
    if result.critical_path:
        shown.append(_critical_path(result.critical_path))
    return [*shown, table("Synthesis", ("", ""), facts)]


def _routed(result):
    if not result.placed:
        return []
    wanted = f", {result.clock_mhz:g} asked for" if result.clock_met is not None else ""
    return [("clock after routing, MHz", f"{result.fmax_mhz:.2f}{wanted}"),
            ("seed of the placement", result.seed)]


def _taken(title, key, rows, without):
    return table(title, (key, ">LUTs", ">carry bits", ">flip-flops", ">block RAMs"),
                 [(without if row[key] is None else row[key], f"{row['lut']:,}",
                   f"{row['carry']:,}", f"{row['ff']:,}", row["bram"]) for row in rows])


def _critical_path(path):
    title = (f"Critical path, {path['delay_ns']:.1f} ns: from {path['from']} "
             f"({path['from_signal']}) to {path['to']} ({path['to_signal']})")
    return table(title, ("through", ">logic levels", ">logic, ns", ">routing, ns"),
                 [(part["node"], part["levels"], f"{part['logic_ns']:.2f}",
                   f"{part['routing_ns']:.2f}") for part in path["segments"]])


def doctor(tools, commands):
    return [
        table("Tools", ("", "found", "version", "to do"),
              [(tool.name, "yes" if tool.found else "no", tool.version, tool.install)
               for tool in tools]),
        table("Commands", ("", "works", "missing"),
              [(name, "no" if lacks else "yes", ", ".join(lacks))
               for name, lacks in commands.items()]),
    ]
