import os

import pytest

from benn_fpga.errors import BennError
from benn_fpga.output import check_file, new_folder, write_atomically


def test_what_is_not_a_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BennError, match="is not a regular file; give the name of a file"):
        check_file(tmp_path / "pipe")


def test_a_read_only_file_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "f").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write to any
    with pytest.raises(BennError, match="f: it is read-only; give another name or chmod it"):
        check_file(tmp_path / "f")


@pytest.mark.parametrize("function", [check_file, lambda path: write_atomically(path, b"new")])
def test_what_is_there_is_left_alone(tmp_path, function):
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(BennError, match="f exists; give another name, or `force=True`"):
        function(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_trailing_slash_means_a_folder(tmp_path):
    with pytest.raises(BennError, match="new/ is a folder; give the name of a file"):
        check_file(f"{tmp_path}/new/")


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "f", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to("there/f")
    check_file(link, force=True)
    write_atomically(link, b"new", force=True)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    assert os.listdir(tmp_path / "there") == ["f"]


def test_permissions_follow_the_umask_which_is_not_touched(tmp_path, monkeypatch):
    """Another thread would make its files with the umask that is set meanwhile."""
    umask = os.umask
    before = umask(0o027)
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("set"))
    try:
        write_atomically(tmp_path / "f", b"")
        new_folder(tmp_path, "d.")
    finally:
        umask(before)
    assert {path.name[0]: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == \
        {"f": 0o640, "d": 0o750}
