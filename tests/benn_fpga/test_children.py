"""Programs that are interrupted or fail, and what they have started."""

import os
import select
import signal

import pytest

from benn_fpga import children


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.fixture
def interrupted(monkeypatch):
    """Raise KeyboardInterrupt half a second later; processes then have little time to end."""
    monkeypatch.setattr(children, "_GRACE", 0.3)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def leaves_nothing(run, script):
    """Whether no process of ``script`` is left, which would hold one end of a pipe."""
    read_end, write_end = os.pipe()
    with open(read_end) as pipe:
        with open(write_end, "w") as out:
            run(["sh", "-c", script], out)
        return bool(select.select([pipe], [], [], 10)[0])


@pytest.mark.parametrize("script", ["sleep 60 & sleep 60", "trap '' TERM; sleep 60 & sleep 60"])
def test_control_c_ends_what_a_program_has_started(interrupted, script):
    def run(command, out):
        with pytest.raises(KeyboardInterrupt):
            children.run(command, stdout=out)
    assert leaves_nothing(run, script)


def test_a_second_control_c_does_not_wait(interrupted, monkeypatch):
    monkeypatch.setattr(children, "_GRACE", 60)

    def run(command, out):
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
        with pytest.raises(KeyboardInterrupt):
            children.run(command, stdout=out)
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert leaves_nothing(run, "trap '' TERM; sleep 60 & sleep 60; sleep 60")


def test_what_a_program_that_fails_has_started():
    def run(command, out):
        assert children.run(command, stdout=out).returncode == 3
    assert leaves_nothing(run, "sleep 60 & exit 3")
