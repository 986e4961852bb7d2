"""The sweep behind the area model: random designs, synthesised, and prices fitted to their nodes.

    python examples/area.py sweep [DEVICE ...]   synthesise what is missing; goes on
    python examples/area.py fit                  fit prices to the fitted half, write them
    python examples/area.py check                errors on designs that were not fitted, as a page

Designs are drawn from a seed, so that they are the same everywhere. `sweep` keeps what every node
took in docs/area.json: features can change without another synthesis.
"""

import hashlib
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import nnls

from benn_fpga import devices
from benn_fpga.cli import console
from benn_fpga.cli.guard import guard
from benn_fpga.devices import RESOURCES
from benn_fpga.errors import BennError
from benn_fpga.hw import emit
from benn_fpga.layers import Add, Conv, Dense, MaxPool, Scale, SumPool
from benn_fpga.output import write_atomically
from benn_fpga.plan import area
from benn_fpga.plan.bill import REGISTERS, together
from benn_fpga.plan.stages import Stage
from benn_fpga.progress import bar
from benn_fpga.spec import Fold, Folding
from benn_fpga.synthesis import flow, toolchain
from benn_fpga.synthetic import random_encoder, random_ensemble

FOLDER = Path("build/area")
RECORD = Path("docs/area.json")
PRICES = Path("benn_fpga/plan/area.json")
PAGE = Path("docs/area-model.md")
MARKS = "<!-- examples/area.py writes this -->\n", "<!-- until here -->\n"
DEVICES = ("ecp5-25k", "ice40-hx8k", "xc7", "gowin-gw2a-18")
FITTED, CONSTANT, CHECKED = 36, 8, 24  # designs
WHOLE, SMALL = 4, 25  # what a whole design counts beside a node; LUTs below which one counts less
ALLOWED = 0.1  # share by which an estimate may be off
FIGURES = ("lut", "ff", "logic_cells", "bram")
CORES = int(os.environ.get("AREA_JOBS", os.cpu_count() or 1))


def names():
    """Designs that are fitted to, and those that are not."""
    return ([f"fit-{n}" for n in range(FITTED)] + [f"constant-{n}" for n in range(CONSTANT)],
            [f"check-{n}" for n in range(CHECKED)])


def design(name):
    """Model and folding of a design, by its name."""
    part, _, number = name.partition("-")
    rng = np.random.default_rng([{"fit": 0, "check": 1, "constant": 2}[part], int(number)])
    if part == "constant" or (part == "check" and int(number) >= CHECKED - CONSTANT // 2):
        return _constant(rng)
    while True:
        try:
            model = _dense(rng) if int(number) % 2 else _convolutional(rng)
        except BennError:  # numbers that are too large, windows that do not fit
            continue
        folding = _folding(rng, model)
        if folding is not None:
            return model, folding


def _pick(rng, *values):
    return values[rng.integers(len(values))]


def _constant(rng):
    """A design with layers whose weights are constants."""
    encoder = random_encoder(rng, _pick(rng, "threshold", "threshold", "thermometer"),
                             _pick(rng, (8, 8, 1), (40,), (96,)), 8, 2, False)
    bits = [1, *(_pick(rng, 1, 1, 1, 2) for _ in range(2)), 0]
    sizes = [encoder.outputs, *(_pick(rng, 8, 12, 16, 24, 32) for _ in range(2)),
             int(rng.integers(2, 13))]
    layers = [Dense(sizes[n], sizes[n + 1], 1, bits[n], bits[n + 1]) for n in range(3)]
    model = _members(rng, encoder, layers, _pick(rng, 1, 1, 2))
    unrolled = [rng.random() < 0.7 for _ in layers]
    unrolled[rng.integers(len(layers))] = True
    folds = [Fold(layer.outputs, layer.inputs) if whole else
             Fold(_pick(rng, *layer.pes), _pick(rng, *layer.simds))
             for layer, whole in zip(layers, unrolled, strict=True)]
    return model, Folding(tuple(folds), len(model.members), _pick(rng, 32, 64, 128))


def _members(rng, encoder, layers, members=None):
    members = members or _pick(rng, 1, 1, 2, 3, 4, 6, 8)
    vote = _pick(rng, "soft", "soft", "hard")
    weights = [1] * members if rng.random() < 0.6 else rng.integers(1, 16, members).tolist()
    return random_ensemble(rng, encoder, layers, members=members, vote=vote, vote_weights=weights,
                           reject=_pick(rng, None, None, 1))


def _dense(rng):
    shape = _pick(rng, (8, 8, 1), (28, 28, 1), (12, 12, 1), (40,), (96,), (16, 16, 3))
    encoder = random_encoder(rng, _pick(rng, "threshold", "threshold", "thermometer", "planes"),
                             shape, 8, int(rng.integers(2, 5)), rng.random() < 0.3)
    sizes = [encoder.outputs, *(int(rng.choice((16, 24, 32, 48, 64, 96, 100, 128, 256)))
                                for _ in range(rng.integers(1, 4))), int(rng.integers(2, 13))]
    wide = rng.random() < 0.25
    bits = [encoder.element_bits,
            *(int(rng.integers(1, 4)) if wide else 1 for _ in sizes[2:]), 0]
    layers = [Dense(sizes[n], sizes[n + 1], int(rng.integers(1, 4)) if wide else 1, bits[n],
                    bits[n + 1]) for n in range(len(sizes) - 1)]
    return _members(rng, encoder, layers)


def _convolutional(rng):
    rows, columns = (int(rng.integers(5, 17)) for _ in range(2))
    encoder = random_encoder(rng, _pick(rng, "threshold", "thermometer", "planes"),
                             (rows, columns, _pick(rng, 1, 1, 3)), 8, 3, False)
    layers, shape, bits = [], encoder.output_shape, encoder.element_bits

    def put(layer):
        nonlocal shape, bits
        layers.append(layer)
        shape, bits = layer.output_shape, layer.output_bits
        return len(layers) - 1

    def window(most):
        kernel = int(rng.integers(1, min(most, *shape[:2]) + 1))
        return {"shape": shape, "kernel": (kernel, kernel), "stride": _pick(rng, 1, 1, 1, 2),
                "padding": int(rng.integers(0, (kernel + 1) // 2))}

    def conv(output_bits, **options):
        put(Conv(**{**window(5), **options}, outputs=_pick(rng, 4, 8, 12, 16, 20, 24, 32),
                 weight_bits=_pick(rng, 1, 1, 1, 2), input_bits=bits, output_bits=output_bits))

    def pool():
        kernel = min(_pick(rng, 2, 2, 3), *shape[:2])
        return {"shape": shape, "kernel": (kernel, kernel), "stride": _pick(rng, kernel, 2)}

    for _ in range(rng.integers(1, 4)):
        code = _pick(rng, 1, 1, 2)
        match _pick(rng, "plain", "max", "max", "sum", "relu", "residual"):
            case "plain":
                conv(code)
            case "max":
                conv(code)
                put(MaxPool(**pool(), code_bits=bits))
            case "sum":
                conv(0)
                put(SumPool(**pool(), output_bits=code))
            case "relu":
                conv(0)
                put(SumPool(**pool(), output_bits=code, relu=True))
            case "residual":
                conv(0)
                start = put(Scale(shape, 6, 10))
                put(SumPool(shape, (1, 1), output_bits=code))
                put(Conv(shape, (3, 3), 1, 1, outputs=shape[2], input_bits=bits, output_bits=0))
                main = put(Scale(shape, 6, 10))
                put(Add(shape, source=main, other=start))
                put(SumPool(shape, (1, 1), output_bits=code))
    if rng.random() < 0.5:
        put(Dense(int(np.prod(shape)), _pick(rng, 16, 32, 64), 1, bits, code))
    put(Dense(int(np.prod(shape)), int(rng.integers(2, 13)), 1, bits, 0))
    return _members(rng, encoder, layers)


def _folding(rng, model):
    """A folding of a size that was drawn first, or None if none is found."""
    gates = 2 ** rng.uniform(5, 9)
    for _ in range(200):
        parallel = int(rng.choice([n for n in range(1, len(model.members) + 1)
                                   if len(model.members) % n == 0]))
        constant = rng.random() < 0.2  # the widest fold of a layer is likelier than others
        folds = []
        for n, layer in enumerate(model.layers):
            every = [Fold(pe, simd) for pe in layer.pes for simd in layer.simds]
            fold = every[-1] if constant and rng.random() < 0.5 else every[rng.integers(len(every))]
            folds.append(Stage(n, layer, fold).fold)
        size = parallel * sum(
            layer.xnor_lanes(fold) * layer.xnor_planes
            or fold.pe * (80 if isinstance(layer, Scale) else 10)
            for layer, fold in zip(model.layers, folds, strict=True))
        if gates / 2 <= size <= gates * 1.5:
            return Folding(tuple(folds), parallel, int(rng.choice((8, 16, 32, 64, 128))),
                           relays=_pick(rng, 0, 0, 1), adder_levels=_pick(rng, 1, 1, 2))
    return None


def known():
    """What was synthesised before."""
    return json.loads(RECORD.read_text()) if RECORD.is_file() else {}


def _taken(name, device):
    """What a design takes of a device, by node."""
    text, manifest = emit.generate(*design(name))
    manifest["verilog_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    folder = FOLDER / f"{name}-{device}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    verilog = folder / "benn_top.v"
    verilog.write_text(text)
    result = flow.run(SimpleNamespace(directory=folder, verilog=verilog, manifest=manifest),
                      device, bar=partial(bar, show=False))
    shutil.rmtree(folder)
    return {"verilog": manifest["verilog_sha256"], "lut": result.lut,
            "ff": result.ff, "bram": result.bram, "logic_cells": result.logic_cells,
            "nodes": {each["node"]: [each[key] for key in ("lut", "ff", "bram", "carry")]
                      for each in result.nodes}}


def sweep(chosen):
    """Synthesise all designs for the devices that were ``chosen``."""
    for device in chosen:
        devices.find(device)
    record = known()
    tool = toolchain.yosys()
    fitted, checked = names()
    todo = [(name, device) for name in (*fitted, *checked) for device in chosen
            if device not in record.get(name, {})]
    order = sorted(todo, key=lambda each: (chosen.index(each[1]) // 3,
                                           int(each[0].partition("-")[2])))
    with bar("synthesis of random designs", len(order)) as advance, \
            ThreadPoolExecutor(CORES) as pool:
        futures = [(each, pool.submit(_taken, *each)) for each in order]
        try:
            for (name, device), future in futures:
                record.setdefault(name, {})[device] = {**future.result(), "yosys": tool.version}
                write_atomically(RECORD, (json.dumps(record) + "\n").encode(), force=True)
                advance()
        except BaseException:
            for _, future in futures:
                future.cancel()
            raise
    return 0


def _rows(record, wanted, device):
    """Bills and what was taken, LUTs and flip-flops, of every node and of each design as a whole;
    and which rows are whole designs."""
    bills, taken, whole = [], [], []
    for name in wanted:
        if device.name not in record.get(name, {}):
            continue
        result = record[name][device.name]
        parts = area.parts(*design(name), device).bills
        bills += [*parts.values(), together(*parts.values())]
        taken += [*(result["nodes"].get(node, (0, 0, 0, 0))[:2] for node in parts),
                  (result["lut"], result["ff"])]
        whole += [*[False] * len(parts), True]
    keys = sorted({key for each in bills for key in each})
    table = np.array([[each[key] for key in keys] for each in bills], float)
    return keys, table, np.array(taken, float), np.array(whole)


def _fitted(keys, table, taken, whole, allowed):
    """Prices of the parts that are ``allowed``, none of them negative."""
    weight = np.where(whole, WHOLE, 1) / (taken + SMALL)
    chosen = [n for n, key in enumerate(keys) if key in allowed]
    found, _ = nnls(table[:, chosen] * weight[:, None], taken * weight)
    return {keys[n]: round(float(price), 4) for n, price in zip(chosen, found, strict=True)
            if price}


def fit():
    """Fit prices to the fitted half, and write them."""
    record, (fitted, _) = known(), names()
    families = {}
    for name in DEVICES:
        device = devices.find(name)
        keys, table, taken, whole = _rows(record, fitted, device)
        if not len(taken):
            continue
        families[device.family.name] = each = {
            "lut": _fitted(keys, table, taken[:, 0], whole, keys),
            "ff": _fitted(keys, table[whole], taken[whole, 1], whole[whole], REGISTERS)}
        if device.family.has_logic_cells:
            cells = np.array([record[each][name]["logic_cells"] for each in fitted
                              if name in record.get(each, {})], float)
            # A register that shares no cell with a LUT takes one.
            each["cell"] = _fitted(keys, table[whole], cells - taken[whole, 0], whole[whole],
                                   REGISTERS)
    text = json.dumps({"version": area.VERSION, "families": families}, indent=1)
    write_atomically(PRICES, (text + "\n").encode(), force=True)
    area.forget()
    return 0


def errors(wanted):
    """Per device, of each design that was synthesised: name, what it took, what was estimated."""
    record = known()
    for device in map(devices.find, DEVICES):
        yield device, [(name, record[name][device.name],
                        area.estimate(*design(name), device))
                       for name in wanted if device.name in record.get(name, {})]


def _off(figure, taken, estimated):
    """By which share an estimate is too large."""
    return getattr(estimated, figure) / max(1, taken[figure]) - 1


def _summary(results):
    """Per device its figures: how many designs, errors on average and at worst."""
    for device, each in results:
        for figure in FIGURES:
            if not each or each[0][1][figure] is None:
                continue
            if figure == "bram":
                wrong = sum(estimated.bram != taken["bram"] for _, taken, estimated in each)
                yield (device.name, len(each), RESOURCES[figure],
                       f"{wrong} wrong" if wrong else "all exact", "", "")
                continue
            off = {name: _off(figure, taken, estimated) for name, taken, estimated in each}
            worst = max(off, key=lambda name: abs(off[name]))
            yield (device.name, len(each), RESOURCES[figure],
                   f"{np.mean(np.abs(list(off.values()))):.1%}", f"{off[worst]:+.1%} ({worst})",
                   sum(abs(each) > ALLOWED for each in off.values()))


def _details(results):
    """A row per design and device."""
    for device, each in results:
        for name, taken, estimated in each:
            model, folding = design(name)
            kinds = {layer.kind for layer in model.layers}
            yield (name, "conv" if kinds - {"dense"} else "dense", len(model.members),
                   folding.parallel, device.name, *(
                       f"{taken[figure]:,} ({_off(figure, taken, estimated):+.1%})"
                       for figure in ("lut", "ff")),
                   f"{taken['bram']} ({estimated.bram})")


def _table(heads, rows):
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (
        heads, ["---"] * len(heads), *rows))


def check():
    """Write how far off estimates are into the page; returns whether one is by too much."""
    results = list(errors(names()[1]))
    summary = list(_summary(results))
    page = "\n\n".join((
        _table(("device", "designs", "figure", "error, mean", "worst",
                f"off by more than {ALLOWED:.0%}"), summary),
        _table(("design", "kind", "K", "M", "device", "LUTs (error)", "flip-flops (error)",
                "block RAMs (estimated)"), _details(results))))
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    write_atomically(PAGE, "".join((before, MARKS[0], page, "\n", MARKS[1], after)).encode(),
                     force=True)
    console.show([console.table("Errors of the area model", (
        "device", ">designs", "figure", ">mean", "worst", ">over"), summary)])
    return any(over or "wrong" in mean for *_, mean, _, over in summary)


def main():
    match sys.argv[1:]:
        case ["sweep", *chosen]:
            return sweep(chosen or list(DEVICES))
        case ["fit"]:
            return fit()
        case ["check"]:
            return check()
    raise BennError("say sweep, fit or check")


if __name__ == "__main__":
    sys.exit(guard("area", main))
