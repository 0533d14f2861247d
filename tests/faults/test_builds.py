"""Builds that are stopped: what was finished stays, and the next run ends well."""

import contextlib
import random
import shutil
import subprocess
import sys
import time

import pytest

from ffilab.run.paths import ROOT
from tests.helpers import fake_source, small
from tests.helpers.environment import clean_environment

pytestmark = pytest.mark.full


def marked(folder):
    """Processes that carry the folder's mark in their environment, and still run."""
    return small.running(lambda process: process.environ().get("MARK") == str(folder))


def kill(folder, *runs):
    """Kill what carries the folder's mark, and these runs of it."""
    for process in [*runs, *marked(folder)]:
        with contextlib.suppress(small.psutil.Error):
            process.kill()
    for run in runs:
        run.communicate()


@pytest.fixture
def source(tmp_path):
    """The hash of a small source that keeps a compiler busy, and the surroundings in which it is built."""
    digest = fake_source.tarball(tmp_path / "mirror", functions=400)
    yield digest, fake_source.environment(tmp_path / "cache", tmp_path / "mirror", MARK=str(tmp_path))
    kill(tmp_path)


def begun(home, run):
    """Wait until a build has written its first objects, and a random moment longer, which a failure shows."""
    assert small.wait_for(lambda: list(home.glob("work/*/Python-9.9.9/*/*.o"))), run.poll()
    longer = random.uniform(0, 0.3)
    print(f"{longer:.3f} s longer")
    time.sleep(longer)


def ends_well(home, source):
    again = fake_source.build(*source)
    assert fake_source.works(again)
    assert [path for path in home.glob("work/*") if path.is_dir()] == []
    return again


def test_ctrl_c_ends_all_of_a_build_and_the_next_run_goes_on(tmp_path, source):
    home = tmp_path / "cache" / "ffi-hidden-corners"
    run = fake_source.start(*source)
    begun(home, run)
    run.send_signal(small.signal.SIGINT)
    errors = run.communicate(timeout=60)[1]
    assert run.returncode == 130
    assert "Traceback" not in errors
    assert small.wait_for(lambda: not marked(tmp_path))
    assert list(home.glob("work/*/Python-9.9.9"))
    ends_well(home, source)


@pytest.mark.parametrize("left", ["half an object", "half a source tree", "another compiler's objects"])
def test_what_a_killed_build_left_is_not_trusted(tmp_path, source, left):
    home = tmp_path / "cache" / "ffi-hidden-corners"
    run = fake_source.start(*source)
    assert small.wait_for(lambda: list(home.glob("work/*/Python-9.9.9/core/c.o"))), run.poll()
    kill(tmp_path, run)
    (tree,) = home.glob("work/*/Python-9.9.9")
    # As if the kill had come before the archive.
    for late in (tree / "libpython3.14.a", tree / "core" / "d.o"):
        late.unlink(missing_ok=True)
    if left == "half an object":
        (tree / "core" / "c.o").write_bytes(b"\x7fELF half")
    elif left == "half a source tree":
        (tree / "one.c").unlink()
    else:
        (tree.parent / "configured").write_text("{}")
    again = ends_well(home, source)
    assert ("compiling from the start" in again.stderr) == (left != "another compiler's objects")


def test_ctrl_c_while_the_book_environment_is_made(tmp_path):
    for name in ("ffilab/bootstrap.py", "requirements/book.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-S", str(tmp_path / "ffilab" / "bootstrap.py"), "html"]
    surroundings = clean_environment(MARK=str(tmp_path))
    run = subprocess.Popen(command, env=surroundings, stderr=subprocess.PIPE, text=True)
    assert small.wait_for(lambda: any("ensurepip" in " ".join(small.words(one)) for one in marked(tmp_path)))
    run.send_signal(small.signal.SIGINT)
    errors = run.communicate(timeout=60)[1]
    assert run.returncode
    assert "Traceback" not in errors
    assert small.wait_for(lambda: not marked(tmp_path))
    assert not list((tmp_path / ".venv").glob("ready-*"))
