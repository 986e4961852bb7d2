from benn_fpga.sw.progress import bar


def test_nothing_is_written_if_stderr_is_no_terminal(capfd):
    with bar("work", 3) as advance:
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
