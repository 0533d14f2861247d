"""The command line as a reader meets it: one sentence, a non-zero exit, no traceback, nothing left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress

import psutil
import pytest
from conftest import clean_environment
from faults.small import running, wait_for

from ffilab import subprocesses
from ffilab.paths import ROOT

pytestmark = pytest.mark.slow
SOURCES = ("Makefile", "ffilab", "kernels", "requirements", "notebooks", "native", "book", "_config.yml", "_toc.yml")


def make(*words, cwd=ROOT, **environment):
    return subprocess.run(
        ["make", *words], cwd=cwd, capture_output=True, text=True, timeout=300, env=clean_environment(**environment)
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A second copy of the tree that shares this one's environments: free to be locked, interrupted and spoiled."""
    tree = tmp_path_factory.mktemp("clone")
    for name in SOURCES:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", ".venv")
        shutil.copytree(source, tree / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tree / name)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    for kernel in (ROOT / "kernels" / "kernels").iterdir():
        if (kernel / ".venv").exists():
            (tree / "kernels" / "kernels" / kernel.name / ".venv").symlink_to(kernel / ".venv")
    return tree


def assert_one_sentence(result, says):
    assert result.returncode != 0
    assert says in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert len([line for line in result.stderr.splitlines() if line.startswith("ffilab:")]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["kernels", "KERNELS=3.99"], "3.99"),
        (["book", "KERNELS=3.99"], "3.99"),
        (["book", "BUDGET=huge"], "huge"),
        (["chapter", "NAME=nothing", "KERNELS=pair"], "nothing"),
        (["chapter", "KERNELS=pair"], "chapter"),
        (["kernels", "KERNELS=3.14=/nowhere/python"], "/nowhere/python"),
        (["html"], "make book"),
        (["book", "FROM=nowhere"], "neither a folder of records nor a bundle"),
        (["judge"], "Name the records"),
        (["judge", "FROM=book"], "no complete session"),
    ],
)
def test_mistakes(clone, words, says):
    assert_one_sentence(make(*words, cwd=clone), says)
    assert not (clone / "_build" / "html").exists()


def test_a_chapter_from_a_bundle_is_byte_for_byte_the_same_each_time(clone, tmp_path):
    """As the first thing in a clone: nothing is built or measured, and the other pages say that they were not measured yet."""
    bundle = tmp_path / "records.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(ROOT / "tests" / "golden", "golden")
    found = []
    for _ in range(2):
        answer = make("chapter", "NAME=loaders", f"FROM={bundle}", cwd=clone)
        assert answer.returncode == 0, answer.stderr
        pages = clone / "_build" / "html" / "notebooks"
        found.append((pages / "loaders" / "loaders.html").read_bytes())
        assert "was not measured on this machine yet" in (pages / "races" / "races.html").read_text()
    assert found[0] == found[1]
    assert not (clone / "_build" / "records").exists()
    said = make("judge", f"FROM={bundle}", cwd=clone)
    assert said.returncode == 0
    assert said.stdout.startswith("A1 ")
    shutil.rmtree(clone / "_build")


def test_help_lists_every_verb():
    answer = make("help")
    assert answer.returncode == 0
    for verb in (
        "book",
        "test",
        "doctor",
        "kernels",
        "native",
        "chapter",
        "exercise",
        "html",
        "slides",
        "lab",
        "clean",
    ):
        assert f"make {verb}" in answer.stdout


def test_doctor_without_anything_names_the_packages(tmp_path):
    for name in ("python3", "env", "sh"):
        (tmp_path / name).symlink_to(sys.executable if name == "python3" else shutil.which(name))
    answer = subprocess.run(
        [sys.executable, ROOT / "ffilab" / "doctor.py"], capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert answer.returncode == 1
    for text in (
        "C compiler",
        "build-essential",
        "dnf install gcc",
        "conda install -c conda-forge",
        "brew install rust",
    ):
        assert text in answer.stdout
    assert "Traceback" not in answer.stderr


def start(clone, *words):
    return subprocess.Popen(
        ["make", *words],
        cwd=clone,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=clean_environment(),
    )


def survivors(clone):
    """Processes that still work in the clone."""
    return running(lambda one: str(clone) in " ".join(one.cmdline()) or one.cwd().startswith(str(clone)))


def test_two_at_once(clone):
    lock = clone / "_build" / "lock"
    lock.unlink(missing_ok=True)
    first = start(clone, "book", "BUDGET=smoke", "KERNELS=pair")
    try:
        deadline = time.monotonic() + 30
        while not (lock.exists() and lock.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        second = make("book", "BUDGET=smoke", cwd=clone)
        assert_one_sentence(second, "Another make")
        assert f"process {int(lock.read_text().split()[1].rstrip(','))}" in second.stderr
    finally:
        os.killpg(first.pid, signal.SIGINT)
        first.communicate(timeout=60)


@pytest.mark.parametrize("after_s", [0.3, 1, 2, 4, 7, 11])
def test_interrupt_at_any_moment(clone, after_s):
    process = start(clone, "book", "BUDGET=smoke", "KERNELS=pair")
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert wait_for(lambda: not survivors(clone), 5), survivors(clone)
    executed = clone / "_build" / "executed"
    assert not executed.exists() or all(p.stat().st_size > 0 for p in executed.glob("*/*.ipynb"))
    assert not [p for p in (clone / "_build").iterdir() if p.name.startswith("tmp")]


def test_what_a_child_started_is_gone_when_its_group_ends(tmp_path):
    """Also if it is deaf to polite signals, and large, so that the system needs time to take it down."""
    stubborn = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "mine = bytearray(os.urandom(1 << 20) * 300); open('ready', 'w').close(); time.sleep(60)"
    )
    leader = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {stubborn!r}]); time.sleep(60)"
    with subprocesses.group([sys.executable, "-c", leader], cwd=tmp_path) as process:
        while not (tmp_path / "ready").exists():
            time.sleep(0.05)
    states = []
    for other in subprocesses.everyone():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getpgid(other.pid) == process.pid:
                states.append(other.status())
    assert set(states) <= {psutil.STATUS_ZOMBIE}
