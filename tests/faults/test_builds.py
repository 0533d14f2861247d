"""Signals to builds, to rendering and to the first steps: what they started ends too, the lock tells the truth, what was
finished stays, and the next run ends well.

FFILAB_TIMES: how often each is tried, at another moment each time (once, if it is not set; 20 in a long run).
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from conftest import clean_environment

from faults import fake_source, small
from ffilab.paths import ROOT
from ffilab.provision import environments, installed

pytestmark = pytest.mark.slow
TIMES = int(os.environ.get("FFILAB_TIMES", "1"))
SIGNALS = ["SIGINT", "SIGTERM", "SIGKILL"]


def marked(folder):
    """Processes that carry the folder's mark in their environment, and still run."""
    return small.running(lambda process: process.environ().get("MARK") == str(folder))


def gone(find, lock, limit=15.0):
    """Seconds until nothing is left of a run; fails if it takes longer, or if something works on beside a free lock."""
    began = time.monotonic()
    while found := find():
        assert time.monotonic() - began < limit, [one.cmdline() for one in found]
        if not small.is_locked(lock):
            # It may just end.
            time.sleep(0.3)
            ghosts = [one for one in found if one in find()]
            assert not ghosts or small.is_locked(lock), [one.cmdline() for one in ghosts]
        time.sleep(0.02)
    assert not small.is_locked(lock)
    return time.monotonic() - began


def part(folder, name):
    """A process of a build, while it compiles: make, ffilab or a compiler."""
    known = {
        "make": lambda said: said[:1] == ["make"],
        "ffilab": lambda said: fake_source.DRIVER in said,
        "compiler": lambda said: any("cc1" in Path(word).name for word in said[:1]),
    }[name]
    return next((one for one in marked(folder) if known(small.words(one))), None)


def is_whole(home, folder, name):
    """Is an object there that nobody writes any more? It is there as soon as it is begun, and goes with whoever is killed."""
    writers = [one for one in marked(folder) if name in small.words(one)]
    return bool(list(home.glob(f"work/*/Python-9.9.9/{name}"))) and not writers


def hits(folder, name, sent):
    """Was the signal sent? A compiler may have ended since it was looked for."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if found := part(folder, name):
            found.send_signal(getattr(signal, sent))
            return True
    return False


@pytest.fixture
def source(tmp_path):
    """The hash of a small source that keeps a compiler busy, and the surroundings in which it is built."""
    digest = fake_source.tarball(tmp_path / "mirror", functions=400)
    yield digest, fake_source.environment(tmp_path / "cache", tmp_path / "mirror", MARK=str(tmp_path))
    for one in marked(tmp_path):
        with contextlib.suppress(psutil.Error):
            one.kill()


@pytest.mark.parametrize("name", ["make", "ffilab", "compiler"])
@pytest.mark.parametrize("sent", SIGNALS)
@pytest.mark.fault(
    "provisioning",
    "{sent} to {name} while an interpreter is compiled",
    "All of the build ends, its lock is held until then, finished objects stay, and the next run goes on to the end",
)
def test_signal_to_a_build(tmp_path, source, seen, name, sent):
    home = tmp_path / "cache" / "ffi-hidden-corners"
    took = []
    while len(took) < TIMES:
        shutil.rmtree(home, ignore_errors=True)
        run = fake_source.start(*source)
        assert small.wait_for(lambda: list(home.glob("work/*/Python-9.9.9/*/*.o"))), run.poll()
        assert name != "ffilab" or small.wait_for(lambda: is_whole(home, tmp_path, "Programs/python.o")), run.poll()
        time.sleep(random.uniform(0, 0.3))
        (lock,) = home.glob("work/*.lock")
        assert small.wait_for(lambda: hits(tmp_path, name, sent)), run.poll()
        said = run.communicate(timeout=60)
        if name == "compiler" and not run.returncode:
            # It had just done its work.
            continue
        took.append(gone(lambda: marked(tmp_path), lock))
        assert "Traceback" not in said[1], said[1]
        assert run.returncode
        (work,) = [path for path in home.glob("work/*") if path.is_dir()]
        finished = {path: path.stat().st_mtime_ns for path in work.glob("Python-9.9.9/Programs/*.o")}
        again = fake_source.start(*source)
        told = again.communicate(timeout=60)
        answer = subprocess.CompletedProcess(again.args, again.returncode, *told)
        assert fake_source.works(answer)
        assert finished or "from the start" in answer.stderr or name != "ffilab"
        assert [path for path in home.glob("work/*") if path.is_dir()] == []
    seen(f"nothing was left after at most {max(took):.1f} s; then built, and it runs")


@pytest.mark.fault(
    "provisioning", "A build is killed when only its work folder is left to remove", "The next run removes it"
)
def test_work_folder_that_stayed(tmp_path, source, seen):
    assert fake_source.works(fake_source.build(*source))
    (made,) = (tmp_path / "cache" / "ffi-hidden-corners" / "interpreters").iterdir()
    work = tmp_path / "cache" / "ffi-hidden-corners" / "work" / made.name
    (work / "Python-9.9.9").mkdir(parents=True)
    assert fake_source.works(fake_source.build(*source))
    assert not work.exists()
    seen("removed, and nothing was compiled")


# Native projects.

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
@pytest.mark.parametrize("how", ["make and all below it", "ffilab"])
@pytest.mark.fault(
    "provisioning", "SIGKILL to {how} when half a native library is written", "The next run makes it again, whole"
)
def test_half_a_library(tmp_path, monkeypatch, seen, how):
    project = tmp_path / "native" / "corner" / "library"
    project.mkdir(parents=True)
    (project / "Makefile").write_text(MAKEFILE)
    (project / "tiny.c").write_text("int tiny(int x) { return x + 1; }\n")
    compiler = tmp_path / "cc"
    compiler.write_text(HALF.format(folder=tmp_path))
    compiler.chmod(0o755)
    library = tmp_path / "out" / "corner" / "libtiny.so"
    program = "import sys; from pathlib import Path; from ffilab import native; native.build_all([], *map(Path, sys.argv[1:]))"
    surroundings = clean_environment(
        CC=str(compiler), PYTHONPATH=str(ROOT), MARK=str(tmp_path), FFILAB_BUILD=str(tmp_path / "_build")
    )
    command = [sys.executable, "-c", program, str(tmp_path / "native"), str(tmp_path / "out")]

    def run():
        return subprocess.Popen(command, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert run().wait(60) == 0
    whole = library.stat().st_size
    (project / "tiny.c").write_text("int tiny(int x) { return x + 2; }\n")
    (tmp_path / "half").touch()
    stopped = run()
    assert small.wait_for((tmp_path / "halfway").exists)
    if how == "ffilab":
        stopped.kill()
    else:
        everyone = [one for one in marked(tmp_path) if one.pid != stopped.pid]
        for one in sorted(everyone, key=lambda one: "make" not in small.words(one)[:1]):
            with contextlib.suppress(psutil.Error):
                one.kill()
    assert stopped.wait(60) != 0
    assert small.wait_for(lambda: not marked(tmp_path), 5), [small.words(one) for one in marked(tmp_path)]
    left = library.stat().st_size if library.exists() else 0
    assert left < whole
    (tmp_path / "half").unlink()
    assert run().wait(60) == 0
    ask = f"import ctypes; print(ctypes.CDLL({str(library)!r}).tiny(1))"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip() == "3"
    seen(f"{left} of {whole} bytes were left; made again, whole")


# Environments.


@pytest.mark.parametrize("sent", SIGNALS)
@pytest.mark.fault(
    "provisioning",
    "{sent} while the book's environment is made",
    "All of it ends, the lock is held until then, half an environment is noticed",
)
def test_signal_to_the_first_step(tmp_path, seen, sent):
    for name in ("ffilab/bootstrap.py", "requirements/book.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    surroundings = clean_environment(MARK=str(tmp_path))

    def start():
        command = [sys.executable, "-S", str(tmp_path / "ffilab" / "bootstrap.py"), "html"]
        return subprocess.Popen(command, env=surroundings, stderr=subprocess.PIPE, text=True)

    def installs():
        return any("ensurepip" in " ".join(small.words(one)) for one in marked(tmp_path))

    for _ in range(2):
        run = start()
        assert small.wait_for(installs), run.poll()
        time.sleep(random.uniform(0, 0.5))
        run.send_signal(getattr(signal, sent))
        seconds = gone(lambda: marked(tmp_path), tmp_path / "_build" / "lock")
        said = run.communicate()[1]
        assert run.returncode
        assert "Preparing the book environment" in said
        assert "Traceback" not in said
        assert list((tmp_path / ".venv").glob("ready-*")) == []
    seen(f"nothing was left after {seconds:.1f} s; the next run began it anew")


@pytest.mark.fault(
    "provisioning",
    "An environment is removed, and that is killed in the middle",
    "What is left does not pass for whole",
)
def test_half_removed_environment(tmp_path, seen):
    program = (
        "import sys; from pathlib import Path; from ffilab.provision import environments\n"
        "print('in', flush=True); environments.remove(Path(sys.argv[1]))"
    )
    halves = 0
    for number in range(6):
        folder = tmp_path / str(number)
        stamps = [folder / installed.FACTS, folder / "ready-book-1"]
        (folder / "lib").mkdir(parents=True)
        for one in stamps:
            one.touch()
        for one in range(6000):
            (folder / "lib" / str(one)).touch()
        run = subprocess.Popen(
            [sys.executable, "-c", program, folder], stdout=subprocess.PIPE, env=clean_environment(PYTHONPATH=str(ROOT))
        )
        victim = next(os.scandir(folder / "lib")).name
        run.stdout.readline()
        # Without a pause: all is gone in a few hundredths of a second.
        deadline = time.monotonic() + 5
        while (folder / "lib" / victim).exists() and time.monotonic() < deadline:
            pass
        run.kill()
        run.communicate()
        left = len(list(folder.glob("lib/*")))
        halves += 0 < left < 6000
        assert left == 6000 or not any(one.exists() for one in stamps)
    assert halves
    seen(f"{halves} of 6 were left half; none had a stamp")


@pytest.mark.fault(
    "provisioning", "The environment is a symbolic link to that of another clone", "Removing it leaves the other whole"
)
def test_environment_of_another_clone(tmp_path, seen):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ready-book-1").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "other")
    environments.remove(tmp_path / ".venv")
    assert (tmp_path / "other" / "ready-book-1").exists()
    seen("its stamp is there")


# The first moments.


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
@pytest.mark.fault(
    "runs", "{sent} at twenty moments of the first second", "It ends without a traceback, once our own code runs"
)
def test_signal_at_the_beginning(seen, sent):
    """Before the first line of ours Python's own start may show a traceback; nothing of a program can prevent that."""
    surroundings = clean_environment(PYTHONDONTWRITEBYTECODE="1")
    # `judge` without records ends by itself, with a sentence.
    command = [sys.executable, "-S", str(ROOT / "ffilab" / "bootstrap.py"), "judge"]
    codes, early = [], 0
    for number in range(20 * TIMES):
        run = subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep((number % 20 + random.random()) / 20)
        run.send_signal(getattr(signal, sent))
        said = "".join(run.communicate(timeout=60))
        assert not small.is_ours(said), said
        if "Traceback" in said:
            early += 1
            continue
        codes.append(run.returncode)
    assert set(codes) <= {130, 1, -signal.SIGINT, -getattr(signal, sent)}
    assert 130 in codes
    assert early <= len(codes) / 4
    seen(f"ended by the signal or with 130, {len(codes)} times")


# Rendering.


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A _build with one chapter, made from golden records."""
    folder = tmp_path_factory.mktemp("measured")
    program = (
        "from pathlib import Path; from ffilab.press import chapters, execute\n"
        f"execute.execute(chapters.chapter('loaders'), 'smoke', Path({str(ROOT / 'tests' / 'golden')!r}))"
    )
    surroundings = clean_environment(FFILAB_BUILD=str(folder), BUDGET="smoke", PYTHONPATH=str(ROOT), MARK=str(folder))
    subprocess.run([ROOT / ".venv/bin/python", "-c", program], env=surroundings, check=True, capture_output=True)
    return folder, surroundings


@pytest.mark.parametrize("sent", SIGNALS)
@pytest.mark.fault(
    "press",
    "{sent} while the book is rendered",
    "Sphinx ends with it, the old book stays as it was, and nothing is left",
)
def test_signal_to_rendering(measured, seen, sent):
    folder, surroundings = measured
    log = folder / "logs" / "jupyter-book.log"
    log.unlink(missing_ok=True)
    shutil.rmtree(folder / "html", ignore_errors=True)
    (folder / "html").mkdir()
    old = {name: f"the old book: {name}".encode() for name in ("index.html", "other.html")}
    for name, text in old.items():
        (folder / "html" / name).write_bytes(text)
    run = subprocess.Popen(
        [ROOT / ".venv/bin/python", "-m", "ffilab", "html"],
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # SIGINT while Sphinx starts, the others while it reads.
    assert small.wait_for(lambda: log.exists() and (sent == "SIGINT" or "reading sources" in log.read_text()), 90)
    time.sleep(random.uniform(0, 0.7))
    assert run.poll() is None
    run.send_signal(getattr(signal, sent))
    said = run.communicate(timeout=30)[0]
    began = time.monotonic()
    assert small.wait_for(lambda: not marked(folder), 10)
    seconds = time.monotonic() - began
    assert run.returncode
    assert "Traceback" not in said
    # Bytes: what a whole book holds is not all text.
    found = {path.name: path.read_bytes() for path in (folder / "html").iterdir() if path.is_file()}
    # The signal may come behind the exchange of the books: then all of the new one is there.
    which = "old" if found == old else "new"
    assert found == old or not old.keys() - {"index.html"} & found.keys()
    assert found == old or all(
        (folder / "html" / name).read_text().rstrip().endswith("</html>")
        for name in ("book/preface.html", "notebooks/loaders/loaders.html")
    )
    seen(f"nothing worked {seconds:.1f} s later, and the {which} book was there, whole")
