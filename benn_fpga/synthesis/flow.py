"""A design through Yosys and nextpnr, step by step; steps that were done before are not repeated.

Everything is in the folder synth/DEVICE of the design. A result appears by a rename; until then
that of an earlier run stays, unless the tool runs and fails. Logs are written as tools speak, and
stay.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from benn_fpga import devices
from benn_fpga.errors import BennError, Interrupted, warn
from benn_fpga.output import alone, check_folder, new_folder, write_atomically
from benn_fpga.plan.manifest import TOP
from benn_fpga.synthesis import (
    carries,
    floorplan,
    modules,
    netlist,
    registers,
    script,
    timing,
    toolchain,
)
from benn_fpga.synthesis.harness import around
from benn_fpga.synthesis.owners import Owners
from benn_fpga.synthesis.toolchain import ToolFailed

__all__ = ["FOLDER", "Synthesis", "mapped", "run"]

FOLDER = "synth"
_REPORT, _NETLIST, _VERILOG, _PICTURE = "report.json", "netlist.json", "netlist.v", "floorplan.svg"
_MODEL = "simulation.v"
_RUN = ".run."  # how folders begin in which tools run
_YOSYS, _NEXTPNR, _MODELS = "yosys", "nextpnr", "models"
_FILES = {_YOSYS: (_NETLIST, _VERILOG), _NEXTPNR: (_PICTURE,), _MODELS: (_MODEL,)}  # by step
_RESULTS = {_YOSYS: "the netlist", _NEXTPNR: "the placement", _MODELS: "the netlist to simulate"}
_FOLLOW = {_YOSYS: (_NEXTPNR, _MODELS), _NEXTPNR: (), _MODELS: ()}
_DIGEST = "sha256"  # what the hash of all else that the report says of a step is called there
_LEAST = 1 << 20  # bytes; with fewer of them a disk is full

# Shares of the LUTs that were estimated; of few LUTs an estimate is rough.
_SURPRISING, _VANISHED, _SMALL = 0.25, 0.5, 300


@dataclass(frozen=True)
class Synthesis:
    """What a design takes of a device, and how fast it is there.

    Members
    -------
    device : name of it
    xnor_lanes : of the design
    lut : LUTs of all uses: logic, carry, distributed RAM
    carry : bits of carry chains
    ff, bram, dsp : flip-flops, block RAMs, multipliers
    logic_cells : of iCE40, None elsewhere
    lut_per_lane, ff_per_lane : the same by XNOR lanes
    available, utilisation : of each resource how many there are, and the used share; empty for
        devices that are only counted
    missing : how many of a resource are lacking, for those that are
    missing_around : the same with the registers that placement adds around the design; empty if
        these fit too, or if it was not to be placed
    nodes, engines : what each node of the plan takes, in all its engines; what each engine takes
    cells : how many of each type are in the netlist
    estimated : what the area model says it takes; None if it knows nothing of the design
    placed : whether it was placed and routed; what follows is None if not
    fmax_mhz, critical_path : after routing; of the path the nodes that it goes through
    clock_mhz, seed : target of placement, and its seed
    clock_met : whether the clock that was asked for is reached, None if none was
    tools : with their versions, those that ran or had run
    files : what is kept, by name
    steps : seconds that each tool took
    reused : tools whose results are of an earlier run
    """

    device: str
    xnor_lanes: int
    lut: int
    carry: int
    ff: int
    bram: int
    dsp: int
    logic_cells: int | None
    lut_per_lane: float
    ff_per_lane: float
    available: dict[str, int]
    utilisation: dict[str, float]
    missing: dict[str, int]
    nodes: list[dict[str, Any]]
    engines: list[dict[str, Any]]
    cells: dict[str, int]
    missing_around: dict[str, int] = field(default_factory=dict)
    estimated: dict[str, Any] | None = None
    placed: bool = False
    fmax_mhz: float | None = None
    critical_path: dict[str, Any] | None = None
    clock_mhz: float | None = None
    clock_met: bool | None = None
    seed: int | None = None
    tools: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)

    @property
    def failure(self):
        """Why the answer is no, or None."""
        if self.vanished:
            return (f"the netlist has {self.lut:,} LUTs where about {self.estimated['lut']:,} were "
                    f"expected: logic was optimised away, so what was synthesised is hardly the "
                    f"design; see the log, and nodes with nothing left in the report")
        if self.missing:
            return (f"the design does not fit {self.device}: {self._too_many(self.missing)}; take "
                    f"a larger device, or generate it with fewer lanes or members in parallel")
        if self.missing_around:
            return (f"the design fits {self.device}, but not with the registers that placement "
                    f"adds around its ports: {self._too_many(self.missing_around)}; take a larger "
                    f"device, or generate it with a narrower bus")
        if self.clock_met is False:
            return (f"the design reaches {self.fmax_mhz:g} MHz, not the {self.clock_mhz:g} MHz "
                    f"that were asked for; the critical path is from {self.critical_path['from']} "
                    f"to {self.critical_path['to']}")
        return None

    @property
    def surprise(self):
        """By how much the netlist has more LUTs than estimated, as a share of that; None if that is
        not worth a word."""
        if self.estimated is None or self.estimated["lut"] < _SMALL:
            return None
        more = self.lut / self.estimated["lut"] - 1
        return more if abs(more) > _SURPRISING else None

    @property
    def vanished(self):
        """Whether so much is lacking that logic must have been optimised away."""
        return self.surprise is not None and self.surprise < -_VANISHED

    def _too_many(self, missing):
        return ", ".join(
            f"it needs {self.available[name] + more:,} {devices.RESOURCES[name]} of "
            f"{self.available[name]:,}, {more:,} ({more / self.available[name]:.0%}) too many"
            for name, more in missing.items())


def run(design, device, *, pnr=False, seed=1, clock=None, force=False, bar):
    """Synthesise a :class:`~benn_fpga.plan.folder.Design` for a device; place and route it with
    ``pnr``. Returns a :class:`Synthesis`.

    ``bar`` shows a step, as :func:`benn_fpga.progress.bar`.
    """
    device = devices.find(device)
    if pnr and device.family.nextpnr is None:
        raise BennError(f"{device.name} is only counted: there is no open tool that places it; "
                        f"leave out `pnr`, or take another device")
    folder = design.directory / FOLDER / device.name
    with _entered(folder):
        work = _Work(design, device, folder, bar, force)
        with work.that_may_be_interrupted():
            work.synthesise()
            if pnr and not work.missing:
                work.place_and_route(seed, clock)
            if work.placed and device.family.caution:
                warn(device.family.caution)
        return work.result(clock)


def mapped(design, device, *, bar):
    """Path of the Verilog of what Yosys has made of a design for a device, with its cells replaced
    by their models: what can be simulated instead of the design."""
    device = devices.find(device)
    if not device.family.models:
        raise BennError(f"{device.name} has no cells that could be simulated; take another device")
    folder = design.directory / FOLDER / device.name
    with _entered(folder):
        work = _Work(design, device, folder, bar, False)
        with work.that_may_be_interrupted():
            work.synthesise()
            return work.model()


@contextmanager
def _entered(folder):
    """Let one process at a time into ``folder``, without what one that was killed has left; raise
    if results cannot be written there."""
    check_folder(folder)
    for name in (_REPORT, *(f"{step}.log" for step in _FILES), *chain(*_FILES.values())):
        if (folder / name).is_dir():
            raise BennError(f"{folder / name} is a folder, in place of a file; move it away")
    with alone(folder) as locked:
        if locked:
            for left in folder.glob(f"{_RUN}*"):
                shutil.rmtree(left, ignore_errors=True)
        yield


class _Work:
    """The steps of one run, and what is known after each."""

    def __init__(self, design, device, folder, bar, force):
        self._design, self._device, self._folder = design, device, folder
        self._bar, self._force = bar, force
        self._owners = Owners(design.manifest)
        self._report = self._read()
        self._tools, self._steps, self._reused = {}, {}, []
        self._missing_around = {}

    def _read(self):
        """What the report says of each step, if that is as it was written."""
        path = self._folder / _REPORT
        try:
            report = json.loads(path.read_bytes())
            whole = {step: report[step] for step in _FILES if _is_whole(report.get(step))}
            lost = [step for step in _FILES if step in report and step not in whole]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, RecursionError):
            whole, lost = {}, _FILES
        if lost:
            warn(f"{path} is damaged or of another version; what it says of {' and '.join(lost)} "
                 f"is not used" if whole else
                 f"{path} is damaged or of another version; it is not used")
        return whole

    def _forget(self, step):
        """Remove the results of a step that has failed, and those that follow from them."""
        gone = (step, *_FOLLOW[step])
        self._report = {each: found for each, found in self._report.items() if each not in gone}
        if self._report:
            write_atomically(self._folder / _REPORT, _text(self._report), force=True)
        else:
            (self._folder / _REPORT).unlink(missing_ok=True)
        for name in _FILES[step]:
            (self._folder / name).unlink(missing_ok=True)
        self._remove_what_follows(step)

    def _remove_what_follows(self, step):
        for each in _FOLLOW[step]:
            for path in (self._log(each), *(self._folder / name for name in _FILES[each])):
                path.unlink(missing_ok=True)

    @contextmanager
    def that_may_be_interrupted(self):
        """Say what is there after Ctrl-C, if anything is."""
        try:
            yield
        except KeyboardInterrupt:
            logs = [log for log in map(self._log, _FILES) if log.is_file()]
            if self._report:
                kept = ", ".join(_RESULTS[step] for step in _FILES if step in self._report)
                said = f"finished before and kept in {self._folder}: {kept}"
            elif logs:
                said = f"there is no result yet, only {', '.join(map(str, logs))}"
            else:
                raise
            raise Interrupted(f"interrupted; {said}") from None

    def _is_done(self, step, key):
        before = self._report.get(step, {})
        if self._force or before.get("key") != key:
            return False
        now = self._hashes(step)
        if now != before["files"]:
            changed = [name for name in now if now[name] != before["files"].get(name)]
            warn(f"{' and '.join(changed)} in {self._folder} changed since {step} made it; {step} "
                 f"runs again")
            return False
        self._reused.append(step)
        self._steps[step] = before["seconds"]
        return True

    def _hashes(self, step):
        """Of the files of a step, None of one that is not there."""
        hashes = {}
        for name in _FILES[step]:
            path = self._folder / name
            hashes[name] = _sha256(path) if path.is_file() else None
        return hashes

    @contextmanager
    def _step(self, step, key, text):
        """Run a tool in a folder that is removed; what it must leave there are the files of the
        step.

        If the tool runs and fails there is no result; if it cannot run, or the user ends it, there
        is that of before.
        """
        start, work = time.monotonic(), new_folder(self._folder, _RUN)
        result, log, earlier = {"key": key}, self._log(step), work / "earlier.log"
        try:
            if log.is_file():
                os.replace(log, earlier)
            with self._bar(text, None):
                yield work, result
            self._steps[step] = result["seconds"] = round(time.monotonic() - start, 1)
            self._keep(step, work, result)
        except ToolFailed:
            full = _full(self._folder, tempfile.gettempdir())
            if full is not None:
                self._restore(step, earlier)
                raise BennError(f"{step} failed, and the disk of {full} is full; free some space "
                                f"there") from None
            self._forget(step)
            raise
        except BaseException:
            self._restore(step, earlier)
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _keep(self, step, work, result):
        """Make the result of a step, whose files are in ``work``, that of the folder: all that
        takes space is written before any file of an earlier run is replaced."""
        with self._readable(step):
            result["files"] = {name: _sha256(work / name) for name in _FILES[step]}
        result[_DIGEST] = _digest(result)
        same = self._report.get(step, {}).get("key") == result["key"]
        report = {each: found for each, found in self._report.items()
                  if same or each not in _FOLLOW[step]} | {step: result}
        (work / _REPORT).write_bytes(_text(report))
        if not same:
            self._remove_what_follows(step)
        for name in (*_FILES[step], _REPORT):
            os.replace(work / name, self._folder / name)
        self._report = report

    def _restore(self, step, earlier):
        """Put the log of an earlier run back, unless it is of a failure and there is a new one."""
        log = self._log(step)
        silent = not log.is_file() or not log.stat().st_size
        if silent:
            log.unlink(missing_ok=True)
        if earlier.is_file() and (silent or step in self._report):
            os.replace(earlier, log)

    def _log(self, step):
        return self._folder / f"{step}.log"

    def synthesise(self):
        family, tool = self._device.family, toolchain.yosys()
        self._tools[_YOSYS] = str(tool)
        key = _key(self._design.manifest["verilog_sha256"], self._device.name, tool)
        if self._is_done(_YOSYS, key):
            return
        with self._step(_YOSYS, key, f"synthesis for {self._device.name}") as (work, result):
            text = self._design.verilog.read_text()
            (work / "design.v").write_text(modules.bordered(text, TOP, self._owners))
            for spend in (True, False) if family.spends_blocks else (False,):
                (work / "run.ys").write_text(script.script(family, tool, work, spend))
                # Without -q, what goes to stdout may lack its end.
                tool.run(["-q", "-l", "whole.log", "-s", "run.ys"], work, self._log(_YOSYS),
                         work / "whole.log")
                self._improve(tool, work)
                counted = self._counted(work / _NETLIST)
                if counted["bram"] <= self._device.resources.get("bram", counted["bram"]):
                    break
            result |= counted

    def _improve(self, tool, work):
        """Write the netlist anew, with registers moved into block RAMs and carry chains without a
        cell before them, if there are any."""
        family = self._device.family
        if not family.output_registers and family.carry_cell is None:
            return
        with self._readable(_YOSYS):
            whole = json.loads((work / _NETLIST).read_bytes())
            module = whole["modules"][TOP]
            saved = registers.absorb(module, family) + carries.shift(module, family)
        if saved:
            (work / _NETLIST).write_text(json.dumps(whole))
            (work / "run.ys").write_text(script.VERILOG)
            tool.run(["-q", "-s", "run.ys"], work, self._log(_YOSYS), work / "whole.log")

    def _counted(self, path):
        with self._readable(_YOSYS):
            module = netlist.named(netlist.read(path, TOP), self._owners)
            counted = netlist.count(module, self._device.family, self._owners)
        return {**counted.describe(), "nodes": counted.nodes(), "engines": counted.engines()}

    @contextmanager
    def _readable(self, step):
        """Turn what a wrong file leads to into words."""
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ToolFailed(f"{step} ended without a result that can be read "
                             f"({type(error).__name__}); see {self._log(step)}") from None

    def model(self):
        tool = toolchain.yosys()
        key = _key(self._report[_YOSYS]["key"], _MODEL)
        if not self._is_done(_MODELS, key):
            with self._step(_MODELS, key, f"models of {self._device.name}") as (work, _):
                shutil.copy(self._folder / _VERILOG, work)
                (work / "run.ys").write_text(script.simulation(self._device.family, work))
                tool.run(["-q", "-s", "run.ys"], work, self._log(_MODELS))
            self._log(_MODELS).unlink()
        return self._folder / _MODEL

    @property
    def placed(self):
        """What nextpnr found in this run, or had found; nothing if it was not asked for."""
        return self._report[_NEXTPNR] if _NEXTPNR in self._steps else {}

    @property
    def _used(self):
        return {**{name: self._report[_YOSYS][name] for name in devices.RESOURCES},
                **self.placed.get("used", {})}

    @property
    def missing(self):
        """How many are lacking, by resource."""
        return self._lacking(self._used)

    def _lacking(self, used):
        return {name: used[name] - there for name, there in self._device.resources.items()
                if used[name] > there}

    def place_and_route(self, seed, clock):
        device, tool = self._device, toolchain.nextpnr(self._device.family.nextpnr)
        self._tools[_NEXTPNR] = str(tool)
        key = _key(self._report[_YOSYS]["key"], tool, seed, clock)
        if self._is_done(_NEXTPNR, key):
            return
        whole = self._surrounded()
        if self._missing_around:
            return
        self._check_memory()
        with self._step(_NEXTPNR, key, f"placement on {device.name}") as (work, result):
            (work / "pins.json").write_text(json.dumps(whole))
            arguments = [*device.arguments, "--json", "pins.json", "--report", "timing.json",
                         "--write", "placed.json", "--seed", str(seed), "--freq",
                         f"{clock or device.clock:g}", "--timing-allow-fail", *self._pins(work)]
            tool.run(arguments, work, self._log(_NEXTPNR))
            with self._readable(_NEXTPNR):
                report = json.loads((work / "timing.json").read_bytes())
                placed = netlist.read(work / "placed.json", TOP)
                result |= {
                    "fmax_mhz": timing.fmax(report),
                    "critical_path": timing.critical_path(report, self._owners),
                    "utilisation": report["utilization"],
                    "clock_mhz": clock or device.clock,
                    "seed": seed,
                    "used": netlist.count_placed(placed, device.family),
                }
                title = f"{self._design.directory.name} on {device.name}: " \
                        f"{result['fmax_mhz']:g} MHz"
                picture = floorplan.draw(placed, self._owners, title).encode()
            (work / _PICTURE).write_bytes(picture)

    def _surrounded(self):
        """The netlist with registers around it, which may be more than the device has."""
        family = self._device.family
        with self._readable(_YOSYS):
            whole = json.loads((self._folder / _NETLIST).read_bytes())
            module = around(netlist.named(whole["modules"][TOP], self._owners), family)
            self._missing_around = self._lacking(
                netlist.count(module, family, self._owners).describe())
        return whole

    def _pins(self, work):
        """How nextpnr is told which pins to take, or that any will do."""
        if self._device.pins:
            (work / "pins.cst").write_text("".join(
                f'IO_LOC "{port}" {pin};\n' for port, pin in self._device.pins.items()))
            return ["--vopt", "cst=pins.cst"]
        return {"ice40": ["--pcf-allow-unconstrained"],
                "ecp5": ["--lpf-allow-unconstrained"]}[self._device.family.nextpnr]

    def _check_memory(self):
        # Not before synthesis: how many LUTs there will be is not known, and Yosys takes less (312
        # MB where nextpnr took 431, for 6,300 LUTs of an ECP5-85).
        need, there = self._device.need(self._report[_YOSYS]["lut"]), toolchain.available_memory()
        if there is not None and there < need:
            raise BennError(f"placement on {self._device.name} will take about {need:,} MB of "
                            f"memory, and {there:,} MB are free; close other programs, or take a "
                            f"smaller device")

    def result(self, clock):
        counted, xnor_lanes = self._report[_YOSYS], self._design.manifest["xnor_lanes"]
        placed, used, there = self.placed, self._used, dict(self._device.resources)
        names = {_YOSYS: (f"{_YOSYS}.log", *_FILES[_YOSYS], _REPORT),
                 _NEXTPNR: (f"{_NEXTPNR}.log", *_FILES[_NEXTPNR])}
        files = [self._folder / name for step in self._steps for name in names[step]]
        return Synthesis(
            device=self._device.name,
            xnor_lanes=xnor_lanes,
            **used,
            carry=counted["carry"],
            lut_per_lane=round(used["lut"] / xnor_lanes, 3),
            ff_per_lane=round(used["ff"] / xnor_lanes, 3),
            available=there,
            utilisation={name: round(used[name] / number, 4) for name, number in there.items()},
            missing=self.missing,
            missing_around=self._missing_around,
            nodes=counted["nodes"],
            engines=counted["engines"],
            cells=counted["cells"],
            placed=bool(placed),
            **{name: placed.get(name) for name in ("fmax_mhz", "critical_path", "clock_mhz",
                                                   "seed")},
            clock_met=None if clock is None or not placed else placed["fmax_mhz"] >= clock,
            tools={step: self._tools[step] for step in self._steps},
            files={path.name: str(path) for path in files if path.is_file()},
            steps=self._steps,
            reused=self._reused)


def _full(*folders):
    """The first of ``folders`` whose disk is full, or None."""
    return next((each for each in folders if shutil.disk_usage(each).free < _LEAST), None)


def _text(report):
    return (json.dumps(report, indent=2) + "\n").encode()


def _is_whole(result):
    """Whether what a report says of a step is as it was written."""
    return isinstance(result, dict) and result.get(_DIGEST) == _digest(result)


def _digest(result):
    said = {name: value for name, value in result.items() if name != _DIGEST}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(*parts):
    """Hash of ``parts`` and of the code that makes results of them."""
    digest = hashlib.sha256("\n".join(map(str, parts)).encode())
    for source in (*sorted(Path(__file__).parent.glob("*.*")), Path(devices.__file__)):
        if source.suffix in (".py", ".txt", ".v"):
            digest.update(source.read_bytes())
    digest.update(metadata.version("benn_fpga").encode())
    return digest.hexdigest()
