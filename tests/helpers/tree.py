"""The files of the repository."""

import subprocess
from pathlib import Path

from ffilab.run.paths import ROOT


def listed(*options: str) -> list[str]:
    """The lines of `git ls-files` with these options."""
    command = ["git", "ls-files", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def tracked() -> list[Path]:
    """Every file that is in the repository, or new and not ignored."""
    return [ROOT / name for name in listed("--cached", "--others", "--exclude-standard") if (ROOT / name).is_file()]
