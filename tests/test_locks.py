"""The locks of book/locks.md: each file as the page quotes it, compiled with its tool's locked version, and tried."""

import re
import shutil
from pathlib import Path

import pytest

from ffilab.measure.case import program
from ffilab.run.paths import NATIVE, ROOT
from ffilab.setup import installed
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from studies.compiled import compiled
from tests.helpers.environment import for_reproducers

LOCKS = ROOT / "book" / "locks"
TOOLS = sorted(path.parent.name for path in LOCKS.glob("*/build.sh"))
HANGS = "pybind11_attached"
# nanobind's lock is none where there is a GIL.
ALONE = {(tool, label) for tool in TOOLS for label in (GIL, FREE_THREADED)} - {("nanobind", GIL)}


def tried(tool, label, folder, cargo, limit_s):
    """How the program ended that tries a tool's lock, and what it printed."""
    copy = folder / tool / label
    shutil.copytree(LOCKS, copy)
    environment = for_reproducers(installed.load(BY_LABEL[label]).python, cargo / label)
    built, _, error = program(["sh", "-ec", 'cd "$0" && . ./build.sh', copy / tool], 300, environment)
    assert built == "ok", error
    return program(
        ["sh", "-c", 'cd "$0" && cp ../try_it.py . && exec python try_it.py', copy / tool], limit_s, environment
    )


@pytest.mark.full
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != HANGS])
def test_a_lock_comes_through(tool, build, tmp_path, tmp_path_factory):
    if tool == "pyo3" and not shutil.which("cargo"):
        pytest.skip("written in Rust, and there is no cargo here")
    ended, out, error = tried(tool, build, tmp_path, tmp_path_factory.getbasetemp() / "cargo", 120)
    assert ended == "ok", error
    assert out.startswith("came through")
    if (tool, build) in ALONE:
        assert out.strip() == "came through, one alone inside"


@pytest.mark.full
def test_the_six_lines_hang(build, tmp_path, tmp_path_factory):
    ended, out, _ = tried(HANGS, build, tmp_path, tmp_path_factory.getbasetemp() / "cargo", 20)
    assert (ended, out) == ("timeout", "")


def test_the_page_quotes_every_file_and_pins_what_is_locked():
    page = (ROOT / "book" / "locks.md").read_text()
    assert [tool for tool in TOOLS if f"locks/{tool}/" not in page] == []
    wanted = (LOCKS / "pyo3" / "Cargo.toml").read_text().partition('pyo3 = "=')[2].partition('"')[0]
    assert f'name = "pyo3"\nversion = "{wanted}"' in (NATIVE / "boundary" / "pyo3" / "crates.lock").read_text()


@pytest.fixture(scope="module")
def instrumented():
    """A CPython of ThreadSanitizer's, as the page has it; some minutes, once."""
    return compiled("tsan", "--with-thread-sanitizer")


def sanitized(tool, folder, instrumented, changed=lambda text: text):
    """How the page's commands end for a tool, and their errors."""
    shutil.copytree(LOCKS, folder / "locks")
    (source,) = (folder / "locks" / tool).glob("locked.*")
    source.write_text(changed(source.read_text()))
    (folder / "cpython").symlink_to(instrumented)
    environment = for_reproducers(installed.load(BY_LABEL[FREE_THREADED]).python, folder / "cargo")
    # The tools' own packages, which the other CPython does not have.
    (packages,) = Path(installed.load(BY_LABEL[FREE_THREADED]).python).parents[1].glob("lib/python*/site-packages")
    environment |= {"HOME": str(folder), "PYTHONPATH": str(packages)}
    command = ["sh", "-ec", 'cd "$0" && cp ../try_it.py . && . ../sanitized.sh', folder / "locks" / tool]
    ended, out, error = program(command, 600, environment, memory_bytes=None)
    return ended, out + error


@pytest.mark.full
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in (HANGS, "pyo3")])
def test_threadsanitizer_sees_the_lock(tool, tmp_path, instrumented):
    ended, said = sanitized(tool, tmp_path, instrumented)
    assert ended == "ok", said
    assert "one alone inside" in said


@pytest.mark.full
def test_threadsanitizer_misses_a_lock_that_is_not_there(tmp_path, instrumented):
    ended, said = sanitized("c", tmp_path, instrumented, lambda text: re.sub(r" +PyMutex_\w+\(&lock\);.*\n", "", text))
    assert ended == "exit code 66", said
    assert re.search(r"SUMMARY: ThreadSanitizer: data race .* in enter", said), said
