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
    """Wait until a build has written its first objects, and a random moment longer."""
    assert small.wait_for(lambda: list(home.glob("work/*/Python-9.9.9/*/*.o"))), run.poll()
    time.sleep(random.uniform(0, 0.3))


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


def test_a_build_that_is_killed_again_and_again_ends_with_an_interpreter(tmp_path, source):
    home = tmp_path / "cache" / "ffi-hidden-corners"
    for _ in range(4):
        run = fake_source.start(*source)
        time.sleep(random.uniform(0.5, 2))
        kill(tmp_path, run)
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


MAKEFILE = """all: $(OUT)/libtiny.so
$(OUT)/libtiny.so: tiny.c
	@mkdir -p $(OUT)
	$(CC) -O1 -fPIC -shared -o $@ $<
"""
# A compiler that has written half of its output when it is killed.
HALF = """#!/bin/sh
[ "$*" = --version ] && exec gcc --version
gcc "$@" || exit
[ -e {folder}/half ] || exit 0
while [ "$1" != -o ]; do shift; done
head -c 5000 "$2" >{folder}/cut && cp {folder}/cut "$2"
touch {folder}/halfway
sleep 60
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="the compiler stands before gcc")
def test_half_a_native_library_is_made_again(tmp_path):
    project = tmp_path / "native" / "chapter" / "library"
    project.mkdir(parents=True)
    (project / "Makefile").write_text(MAKEFILE)
    (project / "tiny.c").write_text("int tiny(int x) { return x + 1; }\n")
    compiler = tmp_path / "cc"
    compiler.write_text(HALF.format(folder=tmp_path))
    compiler.chmod(0o755)
    library = tmp_path / "out" / "chapter" / "libtiny.so"
    program = (
        "import sys; from pathlib import Path; from ffilab.setup import native; "
        "native.build_all([], *map(Path, sys.argv[1:]))"
    )
    surroundings = clean_environment(
        CC=str(compiler), PYTHONPATH=str(ROOT), MARK=str(tmp_path), FFILAB_BUILD=str(tmp_path / "_build")
    )
    command = [sys.executable, "-c", program, str(tmp_path / "native"), str(tmp_path / "out")]

    def start():
        return subprocess.Popen(command, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert start().wait(60) == 0
    whole = library.stat().st_size
    (project / "tiny.c").write_text("int tiny(int x) { return x + 2; }\n")
    (tmp_path / "half").touch()
    stopped = start()
    assert small.wait_for((tmp_path / "halfway").exists)
    kill(tmp_path, stopped)
    assert not library.exists() or library.stat().st_size < whole
    (tmp_path / "half").unlink()
    assert start().wait(60) == 0
    ask = f"import ctypes; print(ctypes.CDLL({str(library)!r}).tiny(1))"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip() == "3"


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
