"""The locks of book/locks.md: each file as the page quotes it, compiled with its tool's locked version, and tried."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from ffilab.measure.case import program
from ffilab.run.paths import BY_PRODUCTS, NATIVE, ROOT
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


def packages_of_the_lock() -> str:
    """The folder of what the other CPython does not have: the tools, pytest, setuptools."""
    (folder,) = Path(installed.load(BY_LABEL[FREE_THREADED]).python).parents[1].glob("lib/python*/site-packages")
    return str(folder)


def sanitized(tool, folder, instrumented, changed=lambda text: text):
    """How the page's commands end for a tool, and their errors."""
    shutil.copytree(LOCKS, folder / "locks")
    (source,) = (folder / "locks" / tool).glob("locked.*")
    source.write_text(changed(source.read_text()))
    (folder / "cpython").symlink_to(instrumented)
    environment = for_reproducers(installed.load(BY_LABEL[FREE_THREADED]).python, folder / "cargo")
    environment |= {"HOME": str(folder), "PYTHONPATH": packages_of_the_lock()}
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


def checklist_of_threadsanitizer() -> str:
    """The commands of the checklist that compile and try an extension, as a shell takes them."""
    checks = tomllib.loads((ROOT / "book" / "free_threading.toml").read_text())["check"]
    (commands,) = (check["after"] for check in checks if "thread-sanitizer" in check.get("after", ""))
    return re.sub("^[$] ", "", commands[commands.index("$ ~/cpython/python") :], flags=re.MULTILINE)


@pytest.mark.full
@pytest.mark.parametrize(("function", "ended"), [("ticket", "ok"), ("unsafe_ticket", "exit code 66")])
def test_the_checklist_finds_a_race_in_an_extension(function, ended, tmp_path, instrumented):
    """As it has them, in a home of its own; what they install are the packages of the lock."""
    shutil.copytree(NATIVE / "races", tmp_path / "races", ignore=shutil.ignore_patterns(*BY_PRODUCTS))
    (tests := tmp_path / "races" / "shared_state" / "tests").mkdir()
    text = f"import shared_state\n\n\ndef test_it():\n    [shared_state.{function}() for _ in range(1000)]\n"
    (tests / "test_it.py").write_text(text)
    (tmp_path / "cpython").symlink_to(instrumented)
    command = ["bash", "-ec", f'cd "$0"; {checklist_of_threadsanitizer()}', tests.parent]
    environment = {"HOME": str(tmp_path), "PYTHONPATH": packages_of_the_lock(), "PIP_NO_INDEX": "1"}
    finished, out, error = program(command, 900, environment, memory_bytes=None)
    assert finished == ended, out + error
    assert ("data race" in out + error) == (function == "unsafe_ticket")
