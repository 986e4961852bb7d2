"""Which code made a record: the version of the package, and in a checkout its commit."""

import subprocess
from functools import cache
from pathlib import Path

from benn_fpga import __version__

__all__ = ["describe"]

CHECKOUT = Path(__file__).resolve().parent.parent  # or where packages are installed
_SECONDS = 20  # for git to answer


@cache
def describe() -> dict[str, str]:
    """The version, and the commit if this runs from a checkout and git is installed: "1a2b3c4", or
    "1a2b3c4-dirty" if files were changed since, but for docs, where records themselves go."""
    commit = _commit(CHECKOUT)
    return {"benn_fpga": __version__, **({"commit": commit} if commit else {})}


def _commit(folder: Path) -> str:
    """Of the checkout ``folder``, empty if there is none."""
    if not (folder / ".git").exists():
        return ""
    try:
        head = _git(folder, "rev-parse", "--short", "HEAD")
        changed = _git(folder, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs")
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if head.returncode else head.stdout.strip() + "-dirty" * (changed.returncode == 1)


def _git(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "--no-optional-locks", f"--git-dir={folder / '.git'}", f"--work-tree={folder}",
         *command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=_SECONDS, check=False)
