"""What the verbs show to people."""

import csv
import io
import json

from benn_fpga.cli.console import percent, plain, table

__all__ = ["answers", "answers_as_csv", "compared", "design", "doctor", "evaluation", "experiment",
           "info", "measured", "picked", "place", "simulation", "trained"]


def trained(dataset, data, found):
    """Of a model that was trained: ``data`` of ``train`` and its Analysis ``found``."""
    members = data["member_accuracy"]
    rows = [
        ("members", len(members)),
        ("mean accuracy of a member", percent(sum(members) / len(members))),
        ("accuracy of the vote", percent(data["accuracy"])),
        ("best with the first", f"{found.chosen}: {percent(max(found.curve))}"),
        *([("two members differ in", percent(found.mean_disagreement))]
          if len(members) > 1 else []),
        ("validation frames", data["frames"]),
        ("weight bits", f"{data['weight_bits']:,}"),
        ("written to", data["model"]),
    ]
    shown = [table(f"Trained on {dataset}", ("", ">"), rows)]
    if len(members) > 1:
        shown.append(_members(found))
    return shown


def _members(found):
    """Of each member its accuracy, that of the vote with those before it, and what it adds."""
    return table(
        "Members", (">", ">alone", ">vote up to it", ">vote of all loses without it"),
        [(k, percent(alone), percent(vote), f"{100 * gain:+.2f} %")
         for k, (alone, vote, gain) in enumerate(zip(found.members, found.curve, found.gain,
                                                     strict=True))])


def compared(data, found):
    """The ensemble, its best first members, and what it was compared with."""
    members, bits, along = len(data["member_accuracy"]), data["weight_bits"], data["test_curve"]
    rows = [(f"this ensemble, {members} members", bits, data["accuracy"], along[-1])]
    if found.chosen < members:
        rows.append((f"its first {found.chosen}", bits // members * found.chosen, max(found.curve),
                     along[found.chosen - 1]))
    rows += [(name, rival["weight_bits"], rival["valid"], rival["test"])
             for name, rival in data["compared"].items()]
    return table("Compared, on the same data", ("", ">weight bits", ">validation", ">test"),
                 [(name, f"{bits:,}", percent(valid), percent(test))
                  for name, bits, valid, test in rows])


def measured(dataset, found):
    return [table(f"Float network on {dataset}", ("", ">"), [
        ("accuracy on the validation part", percent(found.valid)),
        ("accuracy on the test part", percent(found.test)),
        ("test frames", found.frames)])]


def experiment(found, held, files):
    """The table of a Report, its claims by the words of ``held``, and where it was written."""
    shown = [
        table(found.title, found.columns, found.rows),
        table("Claims of the paper", ("", "paper", "here", "held"),
              [(claim.text, claim.paper, claim.ours, held[claim.held]) for claim in found.claims]),
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
    found = [table(data["model"], ("", ""), facts), table("Layers", columns, layers)]
    if origin:
        found.append(table("Where it comes from", ("", ""), origin))
    return found


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


def evaluation(title, result):
    members = result.member_accuracy
    return [table(title, ("", ">accuracy"), [
        *((f"member {k}", percent(accuracy)) for k, accuracy in enumerate(members)),
        ("mean of the members", percent(sum(members) / len(members))),
        ("vote", percent(result.accuracy))])]


_ROWS = 40  # answers in the table
_TOTALS = 12  # classes whose totals fit beside them


def answers(data):
    """Of each frame what ``predict`` gives as ``data``, or of the first of them."""
    found, classes = data["answers"], len(data["class_names"])
    columns = ("", ">frame", ">class", "name", ">margin", *(["totals"] * (classes <= _TOTALS)))
    rows = [(each["source"], each["frame"], each["class"], each["name"], each["margin"],
             *([" ".join(map(str, each["totals"]))] * (classes <= _TOTALS)))
            for each in found[:_ROWS]]
    title = f"{data['model']} on {len(found)} frames, which are {data['input_type']}"
    if len(found) > _ROWS:
        title += f"; the first {_ROWS}, --csv has all"
    shown = [table(title, columns, rows)]
    if data["csv"] is not None:
        shown.append(table("", ("", ""), [("written to", data["csv"])]))
    return shown


def answers_as_csv(found, classes):
    """The answers of ``predict`` as the text of a ``.csv`` file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["source", "frame", "class", "name", "margin", "rejected",
                     *(f"total_{n}" for n in range(classes))])
    for each in found:
        writer.writerow([plain(each["source"]), each["frame"], each["class"], each["name"],
                         each["margin"], int(each["rejected"]), *each["totals"]])
    return text.getvalue()


def place(stage, model):
    """A stage of the schedule, in words."""
    if not stage.startswith("layer"):
        return f"bus, {stage}"
    n = int(stage.removeprefix("layer"))
    return f"layer {n}, {model.layers[n].kind}"


def design(made, data, clock):
    """Of a Design, of which ``generate`` gives ``data``; ``clock`` in MHz or None."""
    columns = (">layer", "kind", ">PE", ">SIMD", ">cycles", ">weights", ">thresholds", ">buffers",
               ">queues before it")
    model, folding, block_ram = made.model, made.folding, data["block_ram"]
    facts = [
        ("members", f"{len(model.members)}: {folding.parallel} in parallel, "
                    f"{folding.rounds(model)} in time"),
        ("bus", f"{folding.bus} bits"),
        ("XNOR lanes", f"{data['xnor_lanes']:,}"),
        ("XNOR gates, a product of n x m bits being n * m", f"{data['xnor_gates']:,}"),
        ("weight bits", f"{data['weight_bits']:,}"),
        ("memory bits, with thresholds", f"{data['memory_bits']:,}"),
        ("buffer bits", f"{data['buffer_bits']:,}"),
        ("bits of registers that hold words", f"{data['register_bits']:,}"),
        ("memories that ask for block RAM *", f"{block_ram['memories']:,}, in all "
                                              f"{block_ram['bits']:,} bits"),
        ("cycles per frame", f"{data['cycles_per_frame']:,}"),
        ("slowest", _slowest(model, folding)),
        ("latency in cycles", f"{data['latency_cycles']:,}"),
    ]
    if clock is not None:
        facts.append((f"frames per second at {clock:g} MHz", f"{data['frames_per_second']:,.0f}"))
    facts.append(("written to", data["directory"]))
    if data["bench"] is not None:
        facts.append(("test bench", f"make -C {data['bench']}"))
    return [table("Layers of each engine, memories as words x bits", columns, _layers(made)),
            table("Design", ("", ""), facts)]


def _layers(made):
    from benn_fpga.plan.plan import plan
    whole = plan(made.model, made.folding)
    for unit, layer in zip(whole.units, made.manifest["layers"], strict=True):
        found = unit.memories
        weights, partials = found.pop("weights", None), found.pop("partials", None)
        buffers = [memory for node in whole.front(unit) for memory in node.memories.values()]
        queues = [queue.memories["memory"] for queue in whole.feeding(unit)]
        yield (unit.stage.n, layer["kind"], layer["pe"], layer["simd"], f"{layer['cycles']:,}",
               _memory(weights), ", ".join(map(_memory, found.values())),
               ", ".join(map(_memory, [*buffers, *([partials] if partials else [])])),
               ", ".join(map(_memory, queues)))


def _memory(memory):
    if memory is None:
        return ""
    copies = f"{memory.copies} x " if memory.copies > 1 else ""
    return f"{copies}{memory.words:,} x {memory.bits}{' *' if memory.is_block else ''}"


def _slowest(model, folding):
    from benn_fpga.plan.folding import bottleneck
    stage, foldable = bottleneck(model, folding)
    more = ""
    if stage.startswith("layer"):
        more = "; a folding of it with more lanes is faster" if foldable else \
            "; its PE and SIMD are as large as can be"
    return f"{place(stage, model)}{more}"


def simulation(title, result, layers):
    seconds = result.compile_seconds
    rows = [
        ("compile", f"{seconds:.1f} s" if seconds else "done before", ""),
        ("frames", result.frames, ""),
        ("mismatches", result.mismatches, 0),
        *([("layer outputs compared", result.layers_compared, "")] if layers else []),
        ("accuracy", "no labels" if result.accuracy is None else percent(result.accuracy), ""),
        *((name, *(number if number is None else f"{number:,}" for number in pair))
          for name, pair in (
              ("cycles per frame", (result.cycles_per_frame, result.predicted_cycles_per_frame)),
              ("latency in cycles", (result.latency_cycles, result.predicted_latency_cycles)))),
    ]
    return [table(title, ("", ">measured", ">predicted"), rows)]


def doctor(tools, commands):
    return [
        table("Tools", ("", "found", "version", "to do"),
              [(tool.name, "yes" if tool.found else "no", tool.version, tool.install)
               for tool in tools]),
        table("Commands", ("", "works", "missing"),
              [(name, "no" if lacks else "yes", ", ".join(lacks))
               for name, lacks in commands.items()]),
    ]
