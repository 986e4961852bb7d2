import pytest

from benn_fpga import progress
from benn_fpga.progress import bar


@pytest.fixture
def clock(monkeypatch):
    """Time that passes by ``clock.seconds`` at every look."""
    class Clock:
        seconds = now = 0

        def monotonic(self):
            self.now += self.seconds
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def log(capfd, total, steps):
    with bar("work", total) as advance:
        for step in steps:
            advance(step)
    out, err = capfd.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_log_has_a_line_for_each_tenth(capfd, clock):
    clock.seconds = 1
    lines = log(capfd, 5000, [1] * 5000)
    assert len(lines) == 11
    assert lines[0] == "work: started"
    assert lines[4] == "work: 2,000 of 5,000 (40 %), 2000 s"
    assert lines[-1] == "work: done, 5001 s"


def test_a_log_of_large_steps(capfd, clock):
    clock.seconds = 10
    assert log(capfd, 3, [1, 1, 1]) == ["work: started", "work: 1 of 3 (33 %), 10 s",
                                        "work: 2 of 3 (66 %), 20 s", "work: done, 40 s"]


def test_a_log_of_fast_work_is_short(capfd, clock):
    assert log(capfd, 100, [1] * 100) == ["work: started", "work: done, 0 s"]


def test_a_log_of_work_without_a_known_end(capfd, clock):
    clock.seconds = 9
    assert log(capfd, None, [1, 1]) == ["work: started", "work: done, 27 s"]


def test_what_breaks_is_not_done(capfd):
    with pytest.raises(KeyboardInterrupt), bar("work", 3):
        raise KeyboardInterrupt
    assert capfd.readouterr() == ("", "work: started\n")


def test_nothing_is_written_if_told_so(capfd):
    with bar("work", 3, False) as advance:
        advance()
    assert capfd.readouterr() == ("", "")


def test_a_bar_goes_to_stderr(capfd):
    with bar("work", 3, True) as advance:
        advance(3)
    out, err = capfd.readouterr()
    assert out == ""
    assert "work" in err


def test_a_function_is_told_instead():
    seen = []
    with bar("work", 5, lambda done, total: seen.append((done, total))) as advance:
        advance()
        advance(4)
    assert seen == [(1, 5), (5, 5)]
