"""Prose, messages and comments have no misspelt word that codespell knows."""

import subprocess
import sys

from ffilab.run.paths import ROOT

FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "book", "ffilab", "notebooks")
# Right where they stand: "to and fro"; a variable.
KNOWN = "fro,whats"


def misspelt(*files):
    command = [sys.executable, "-m", "codespell_lib", "--skip=*/evidence/*,*/_static/*", f"--ignore-words-list={KNOWN}"]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    # Anything else is no answer: it is not installed, or a file is missing.
    assert done.returncode in (0, 65), done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


def test_spelling():
    assert misspelt(*FILES) == []


def test_a_misspelt_word_is_found(tmp_path):
    (tmp_path / "page.md").write_text("It was recieved.\n")
    assert "received" in misspelt(tmp_path)[0]
