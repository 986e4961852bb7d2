"""The commit is told where there is one; nothing here depends on the checkout that is tested."""

import pytest

from benn_fpga import __version__, version


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Put a `git` on the path that runs ``script``, and a checkout in front of it."""
    def install(script):
        (tmp_path / ".git").mkdir()
        tool = tmp_path / "git"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return install


def described(monkeypatch, folder):
    monkeypatch.setattr(version, "CHECKOUT", folder)
    return version.describe.__wrapped__()


@pytest.mark.parametrize(("code", "commit"), [(0, "1a2b3c4"), (1, "1a2b3c4-dirty")])
def test_commit_of_a_checkout(monkeypatch, tmp_path, git, code, commit):
    git(f'case "$*" in *rev-parse*) echo 1a2b3c4;; *) exit {code};; esac')
    assert described(monkeypatch, tmp_path) == {"benn_fpga": __version__, "commit": commit}


@pytest.mark.parametrize("script", ["exit 128", "exec sleep 9"])
def test_git_that_does_not_answer(monkeypatch, tmp_path, git, script):
    git(script)
    monkeypatch.setattr(version, "_SECONDS", 0.2)
    assert described(monkeypatch, tmp_path) == {"benn_fpga": __version__}


def test_no_git(monkeypatch, tmp_path):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert described(monkeypatch, tmp_path) == {"benn_fpga": __version__}


def test_no_checkout_starts_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(version.subprocess, "run", None)
    assert described(monkeypatch, tmp_path) == {"benn_fpga": __version__}
