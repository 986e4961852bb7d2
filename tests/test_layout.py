"""The rules of the layout: who may import whom, and that packaging knows every folder."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("benn_fpga", "hw", "sim", "sw")
JOINTS = ("benn_fpga/api.py", "benn_fpga/cli/")  # the command line, which joins the parts
HEAVY = {"amaranth": "hw", "cocotb": "sim", "cocotb_tools": "sim", "cocotbext": "sim",
         "torch": "sw", "sklearn": "sw"}
# What each may import of the folders of benn_fpga and its api.py, beside itself; the rest is the
# contract, which all may. layers.py imports the nodes that layers become.
FOLDERS = {"benn_fpga/plan": (), "benn_fpga/synthesis": ("plan",), "benn_fpga/readers": (),
           "benn_fpga/layers.py": ("plan",), "benn_fpga/__init__.py": ("api",), "benn_fpga": (),
           "hw": ("plan",), "sim": ("plan",), "sw": ("readers",)}
FILES = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]


def imports(path):
    """(module, at top level) of every import."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in tree.body) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module, node in tree.body
            yield from ((f"{node.module}.{alias.name}", node in tree.body) for alias in node.names)


def name(path):
    return path.relative_to(ROOT).as_posix()


def home(path):
    """The part that a file belongs to, however deep in its folder."""
    return path.relative_to(ROOT).parts[0]


def part_of(module):
    names = module.split(".")
    return names[1] if names[0] == "benn_fpga" and len(names) > 1 and names[1] in PARTS else None


@pytest.mark.parametrize("path", FILES, ids=name)
def test_parts_meet_in_the_contract_only(path):
    others = {part_of(module) for module, _ in imports(path)} - {None, home(path)}
    assert not others or name(path).startswith(JOINTS)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_needs_the_command_line_but_itself(path):
    inside = name(path).startswith("benn_fpga/cli/") or path.name == "__main__.py"
    assert inside or not any(module.startswith("benn_fpga.cli") for module, _ in imports(path))


@pytest.mark.parametrize("path", [path for path in FILES if not name(path).startswith(JOINTS)],
                         ids=name)
def test_folders_import_what_is_below_them(path):
    here = next(folder for folder in FOLDERS if name(path).startswith(folder))
    own = here.removeprefix("benn_fpga/")
    used = {module.split(".")[1] for module, _ in imports(path) if module.startswith("benn_fpga.")}
    assert used & {"api", "plan", "synthesis", "readers"} <= {own, *FOLDERS[here]}


def test_golden_model_gateware_and_training_know_every_layer_kind():
    from benn_fpga import golden
    from benn_fpga.hw import assembly
    from benn_fpga.layers import LAYER_KINDS
    from benn_fpga.sw import modules
    for table in (golden._COMPUTE, assembly.UNITS, modules.MODULES):
        assert set(table) == set(LAYER_KINDS.values())


@pytest.mark.parametrize("path", FILES, ids=name)
def test_heavy_packages_stay_at_home(path):
    for module, _ in imports(path):
        package = module.split(".")[0]
        assert HEAVY.get(package, home(path)) == home(path), module


@pytest.mark.parametrize("path", [path for path in FILES if name(path).startswith(JOINTS)],
                         ids=name)
def test_the_command_line_imports_parts_inside_functions(path):
    assert {part_of(module) for module, top in imports(path) if top} <= {None}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_packaging_lists_every_folder():
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT).as_posix() for part in PARTS
               for path in (ROOT / part).rglob("*.py")}
    assert folders == set(setup["package-dir"].values())
    assert set(setup["package-dir"]) == set(setup["packages"])


def test_packaging_lists_every_data_file():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for part in PARTS:
        name = "benn_fpga" if part == "benn_fpga" else f"benn_fpga.{part}"
        known = {path for pattern in data["package-data"].get(name, ())
                 for path in (ROOT / part).glob(pattern)}
        files = {path for path in (ROOT / part).iterdir() if path.is_file()}
        assert {path for path in files - known if path.suffix != ".py"} == set()


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["train", "--help"],
                                     ["simulate", "--help"]])
def test_help_is_light(command):
    code = ("import sys; from benn_fpga.cli import main\n"
            f"try: main({command!r})\nexcept SystemExit: pass\n"
            "print(sorted({n.split('.')[0] for n in sys.modules} & "
            f"{set(HEAVY) | {'numpy', 'rich', 'safetensors'}!r}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
