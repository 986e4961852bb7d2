"""The files of the public data sets: found in a folder, or downloaded once and checked."""

import gzip
import lzma
import os
import tarfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benn_fpga import progress
from benn_fpga.errors import BennError, MissingExtra

__all__ = ["SOURCES", "Source", "download", "read"]

_CHUNK = 1 << 18
_TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True)
class Source:
    """The public home of a data set, and the SHA-256 of each file there."""

    base: str
    files: dict[str, str]


SOURCES = {
    "mnist": Source("https://ossci-datasets.s3.amazonaws.com/mnist/", {
        "train-images-idx3-ubyte.gz":
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz":
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz":
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz":
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }),
    "fashion-mnist": Source("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", {
        "train-images-idx3-ubyte.gz":
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz":
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz":
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz":
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }),
    "cifar10": Source("https://www.cs.toronto.edu/~kriz/", {
        "cifar-10-binary.tar.gz":
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    }),
}


def read(name, stems, data_dir=None, show=None):
    """Contents of the files ``stems`` of data set ``name``, decompressed.

    They lie in ``data_dir`` or in its folder ``name``, plain, as .gz or .xz, or all in the archive
    in which their home offers them. Without ``data_dir``, nor ``BENN_DATA`` in the environment,
    what is missing is downloaded into the cache.
    """
    given = data_dir or os.environ.get("BENN_DATA")
    folder = Path(given) if given else _cache()
    if given and not folder.is_dir():
        raise BennError(f"data folder {folder} does not exist; give `data_dir` or BENN_DATA "
                        f"another, or neither to download")
    folders = (folder / name, folder)
    if not given and not _reader(folders, name, stems):
        for file, sha256 in SOURCES[name].files.items():
            if not (folders[0] / file).is_file():
                download(SOURCES[name].base + file, folders[0] / file, sha256, show)
    read = _reader(folders, name, stems)
    if not read:
        raise BennError(f"{name}: {stems[0]}.gz is not in {folders[0]} nor in {folder}; put it "
                        f"there, or leave out `data_dir` and BENN_DATA to download it")
    return read()


def _cache():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benn_fpga"


def _reader(folders, name, stems):
    """A function that reads all of ``stems``, or None if some are nowhere."""
    paths = [_first(folders, [f"{stem}{end}" for end in ("", ".gz", ".xz")]) for stem in stems]
    if all(paths):
        return lambda: [_decompressed(path) for path in paths]
    archive = _first(folders, [file for file in SOURCES[name].files if file.endswith(".tar.gz")])
    if archive:
        return lambda: _members(archive, stems)
    return None


def _first(folders, names):
    return next((folder / name for folder in folders for name in names
                 if (folder / name).is_file()), None)


def _decompressed(path):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    try:
        with opener(path, "rb") as file:
            return file.read()
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise BennError(f"cannot read {path} ({error}); download it again") from None


def _members(archive, stems):
    contents = {}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                base = member.name.rpartition("/")[2]
                if base in stems and member.isfile():
                    contents[base] = tar.extractfile(member).read()
    except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
        raise BennError(f"cannot read {archive} ({error}); download it again") from None
    missing = [stem for stem in stems if stem not in contents]
    if missing:
        raise BennError(f"{archive} has no file {missing[0]}; download it again")
    return [contents[stem] for stem in stems]


def download(url, path, sha256, show=None):
    """Fetch ``url`` to ``path``, whole and with this SHA-256, or not at all."""
    try:
        import pooch
        from requests import RequestException
    except ImportError:
        raise MissingExtra("pooch", "train") from None
    pooch.get_logger().setLevel("WARNING")  # progress says what it does
    try:
        with ExitStack() as stack:
            shown = _Shown(lambda total: stack.enter_context(
                progress.bar(f"download {path.name}", total, show)))

            def close(response, **_):  # else a download that fails leaves its connection open
                stack.callback(response.close)
            fetch = pooch.HTTPDownloader(shown, _CHUNK, timeout=_TIMEOUT,
                                         hooks={"response": close})
            pooch.retrieve(url, f"sha256:{sha256}", path.name, path.parent, downloader=fetch)
    except RequestException as error:
        raise BennError(f"cannot download {url} ({_reason(error)}); get it on another machine and "
                        f"give its folder with `data_dir` or BENN_DATA") from None
    except OSError as error:
        raise BennError(f"cannot write to {path.parent}: {error.strerror or error}; "
                        f"set XDG_CACHE_HOME") from None
    except ValueError:  # so pooch says that the hash is another
        raise BennError(f"{url} does not have SHA-256 {sha256}; nothing was stored, try again "
                        f"later") from None


def _reason(error):
    """What the server said, or else the first of the errors that led to this one."""
    if error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or error


class _Shown:
    """What pooch takes for a progress bar. It counts whole chunks, and all of them again at the
    end: what exceeds the total is not passed on."""

    def __init__(self, start):
        self._start, self._left = start, 0

    @property
    def total(self):
        return self._left

    @total.setter
    def total(self, size):
        self._left, self._advance = size, self._start(size or None)

    def update(self, steps):
        steps = min(steps, self._left)
        if steps:
            self._left -= steps
            self._advance(steps)

    def reset(self):
        """Nothing: what is left is left."""

    close = reset
