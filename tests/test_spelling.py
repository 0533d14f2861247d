"""Prose, messages and comments have no misspelt word that codespell knows."""

import subprocess
import sys

from ffilab.run.paths import ROOT

FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "book", "ffilab", "notebooks")
# Right where they stand: "to and fro"; a variable.
KNOWN = "fro,whats"


def test_spelling():
    command = [sys.executable, "-m", "codespell_lib", "--skip=*/evidence/*,*/_static/*", f"--ignore-words-list={KNOWN}"]
    done = subprocess.run([*command, *FILES], cwd=ROOT, capture_output=True, text=True)
    # An error, too, is a code: it is not installed, or a file is missing.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
