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
    "1a2b3c4-dirty" if files were changed since."""
    commit = _commit(CHECKOUT)
    return {"benn_fpga": __version__, **({"commit": commit} if commit else {})}


def _commit(folder: Path) -> str:
    """Of the checkout ``folder``, empty if there is none."""
    git = folder / ".git"
    if not git.exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", f"--git-dir={git}", f"--work-tree={folder}", "describe",
             "--always", "--dirty", "--exclude=*"], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if done.returncode else done.stdout.strip()
