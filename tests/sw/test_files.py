import gzip
import hashlib
import io
import lzma
import os
import socket
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benn_fpga import BennError
from benn_fpga.sw import files

STEMS = ("a.bin", "b.bin")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path != "/short":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"begun")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def url(folder, monkeypatch):
    """Of a server of ``folder`` on this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def home(folder, url, tmp_path, monkeypatch):
    """The public home of data set ``small``, as a folder, and an empty cache."""
    contents = {f"{stem}.gz": gzip.compress(stem.encode() * 50) for stem in STEMS}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setitem(files.SOURCES, "small", files.Source(url, sums))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BENN_DATA", raising=False)
    return folder


def archive(path, names):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))


def message(*args):
    with pytest.raises(BennError) as caught:
        files.read("small", STEMS, *args)
    return str(caught.value)


def cached(tmp_path):
    return sorted(path.name for path in tmp_path.glob("cache/**/*") if path.is_file())


def test_download_once(home, tmp_path):
    assert files.read("small", STEMS) == [b"a.bin" * 50, b"b.bin" * 50]
    for file in home.iterdir():
        file.unlink()
    assert files.read("small", STEMS) == [b"a.bin" * 50, b"b.bin" * 50]
    assert cached(tmp_path) == ["a.bin.gz", "b.bin.gz"]


def test_download_reports_progress(home, tmp_path):
    seen = []
    files.read("small", STEMS, None, lambda done, total: seen.append((done, total)))
    sizes = [(home / f"{stem}.gz").stat().st_size for stem in STEMS]
    assert seen == [(size, size) for size in sizes]


def test_download_of_many_chunks_reports_each(folder, url, tmp_path):
    content, seen = os.urandom(700_000), []
    (folder / "x").write_bytes(content)
    files.download(f"{url}x", tmp_path / "x", hashlib.sha256(content).hexdigest(),
                   lambda done, total: seen.append((done, total)))
    assert seen == [(n, 700_000) for n in (1 << 18, 1 << 19, 700_000)]
    assert (tmp_path / "x").read_bytes() == content


def test_download_is_quiet_but_for_the_bar(home, capfd):
    files.read("small", STEMS, None, False)
    assert capfd.readouterr() == ("", "")


def test_download_with_a_wrong_checksum_leaves_no_file(home, url, tmp_path):
    (home / "a.bin.gz").write_bytes(b"changed")
    expected = files.SOURCES["small"].files["a.bin.gz"]
    assert message() == (f"{url}a.bin.gz does not have SHA-256 {expected}; nothing was stored, "
                         "try again later")
    assert cached(tmp_path) == []


CURE = "; get it on another machine and give its folder with `data_dir` or BENN_DATA"


def test_download_that_fails(home, url, tmp_path):
    (home / "b.bin.gz").unlink()
    assert message() == f"cannot download {url}b.bin.gz (404 File not found){CURE}"
    assert cached(tmp_path) == ["a.bin.gz"]


def failed(url, path):
    with pytest.raises(BennError) as caught:
        files.download(url, path, "0" * 64, False)
    return str(caught.value)


def test_download_that_breaks_off_leaves_no_file(url, tmp_path):
    text = failed(f"{url}short", tmp_path / "cache" / "short")
    assert text.startswith(f"cannot download {url}short (IncompleteRead(5 bytes read")
    assert text.endswith(CURE)
    assert cached(tmp_path) == []


def test_download_from_nobody(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"http://127.0.0.1:{port}/x"
    assert failed(url, tmp_path / "x") == f"cannot download {url} (Connection refused){CURE}"


def test_interrupted_download_leaves_no_file(home, tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        files.read("small", STEMS, None, interrupt)
    assert cached(tmp_path) == []


def test_download_to_a_file_that_is_no_folder(home, tmp_path):
    (tmp_path / "cache").write_text("")
    assert message() == (f"cannot write to {tmp_path}/cache/benn_fpga/small: Not a directory; "
                         "set XDG_CACHE_HOME")


@pytest.mark.parametrize("place", ["", "small"])
@pytest.mark.parametrize(("end", "compress"), [("", bytes), (".gz", gzip.compress),
                                               (".xz", lzma.compress)])
def test_read_in_place(home, tmp_path, place, end, compress):
    folder = tmp_path / "data" / place
    folder.mkdir(parents=True)
    for stem in STEMS:
        (folder / f"{stem}{end}").write_bytes(compress(b"content"))
    assert files.read("small", STEMS, tmp_path / "data") == [b"content"] * 2


def test_environment_names_the_folder(home, monkeypatch):
    monkeypatch.setenv("BENN_DATA", str(home))
    assert files.read("small", STEMS) == [b"a.bin" * 50, b"b.bin" * 50]


def test_a_given_folder_is_not_downloaded_to(home, tmp_path):
    assert message(tmp_path) == (
        f"small: a.bin.gz is not in {tmp_path}/small nor in {tmp_path}; put it there, or leave "
        "out `data_dir` and BENN_DATA to download it")


def test_missing_folder(home, tmp_path):
    assert message(tmp_path / "no") == (
        f"data folder {tmp_path}/no does not exist; give `data_dir` or BENN_DATA another, or "
        "neither to download")


@pytest.mark.parametrize(("end", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"no", lambda b: b[:20] + b"zzzz"])
def test_damaged_file(home, tmp_path, end, compress, damage):
    for stem in STEMS:
        (tmp_path / f"{stem}{end}").write_bytes(damage(compress(bytes(range(256)))))
    text = message(tmp_path)
    assert text.startswith(f"cannot read {tmp_path}/a.bin{end} (")
    assert text.endswith("; download it again")


@pytest.fixture
def tar(home, tmp_path, monkeypatch):
    monkeypatch.setitem(files.SOURCES, "small", files.Source("", {"all.tar.gz": ""}))
    return tmp_path / "all.tar.gz"


def test_archive(tar, tmp_path):
    archive(tar, ["readme", "b.bin", "a.bin"])
    assert files.read("small", STEMS, tmp_path) == [b"a.bin", b"b.bin"]


def test_archive_without_a_file(tar, tmp_path):
    archive(tar, ["a.bin"])
    assert message(tmp_path) == f"{tar} has no file b.bin; download it again"


@pytest.mark.parametrize("damage", [lambda b: b[:-40], lambda b: b"no"])
def test_damaged_archive(tar, tmp_path, damage):
    archive(tar, ["a.bin", "b.bin"])
    tar.write_bytes(damage(tar.read_bytes()))
    assert message(tmp_path).startswith(f"cannot read {tar} (")


def test_known_sources():
    assert sorted(files.SOURCES) == ["cifar10", "fashion-mnist", "mnist"]
    for source in files.SOURCES.values():
        assert source.base.endswith("/")
        assert all(len(sha256) == 64 for sha256 in source.files.values())
