"""Prose, messages and comments have no misspelt word that codespell knows; its settings stand in pyproject.toml."""

import sys

from ffilab.run.paths import ROOT
from tests.helpers.environment import ran
from tests.helpers.tree import tracked


def test_spelling():
    done = ran(sys.executable, "-m", "codespell_lib", *(path.relative_to(ROOT) for path in tracked()), cwd=ROOT)
    # An error, too, is a code: it is not installed, or a file is missing.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
