"""A type checker finds what tests/type_errors.json says, by file, and nothing more: the list only shrinks.

By hand: `.venv/bin/python -m pytest tests/test_types.py`. With --renew it counts anew; look at `git diff
tests/type_errors.json`. The checker is in no reader's environment: it has a lock of its own.
"""

import json
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from ffilab.judge.chapter import experiment_module
from ffilab.judge.claims import chapter_names
from ffilab.run import settings
from ffilab.run.paths import ROOT
from ffilab.setup.interpreters import uv
from tests.helpers.environment import ran

KNOWN = Path(__file__).with_name("type_errors.json")
LOCK = ROOT / "requirements" / "types.txt"


@pytest.fixture
def checker(tmp_path):
    """The checker in an environment of its own, in which it finds the libraries of the book's."""
    python = tmp_path / "bin" / "python"
    subprocess.run([uv(), "venv", "--quiet", "--no-config", "--python", sys.executable, tmp_path], check=True)
    offline = ["--offline"] if settings.no_downloads() else []
    sync = [uv(), "pip", "sync", "--no-config", "--require-hashes", *offline, "--python", python, LOCK]
    answer = ran(*sync)
    if "hash" not in answer.stderr.lower() and answer.returncode:
        pytest.skip(f"the type checker is not in uv's cache, and was not fetched: {answer.stderr.strip()[-300:]}")
    assert answer.returncode == 0, answer.stderr
    libraries = sysconfig.get_path("purelib", vars={"base": str(tmp_path)})
    Path(libraries, "book.pth").write_text(sysconfig.get_path("purelib"))
    return [tmp_path / "bin" / "basedpyright", "--project", ROOT, "--pythonpath", python, "--outputjson"]


@pytest.mark.full
def test_no_file_has_more_type_errors_than_are_known(checker, pytestconfig):
    for chapter in chapter_names():
        # Writes the file that the checker reads.
        experiment_module(chapter)
    answer = ran(*checker)
    found = [
        (Path(error["file"]).relative_to(ROOT).as_posix(), error)
        for error in json.loads(answer.stdout)["generalDiagnostics"]
        if error["severity"] == "error"
    ]
    counts = Counter(file for file, _ in found)
    if pytestconfig.getoption("--renew"):
        KNOWN.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n")
    known = Counter(json.loads(KNOWN.read_text()))
    more = [
        f"{file}:{error['range']['start']['line'] + 1}: {error['message']}"
        for file, error in found
        if counts[file] > known[file]
    ]
    assert not more, "\n".join(["More errors than are known in these files:", *more])
    assert not known - counts, "Fewer errors than are known: lower the numbers by --renew."
