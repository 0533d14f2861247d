"""Faults while interpreters and native projects are set up."""

import contextlib
import hashlib
import http.server
import json
import os
import random
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from conftest import clean_environment

from faults import fake_source
from faults.small import disk as disk_in_memory
from ffilab import bootstrap, machine, native
from ffilab.errors import UserError
from ffilab.paths import ROOT
from ffilab.provision import build, environments, installed, interpreters, sources
from ffilab.provision.catalogue import BY_LABEL, SOURCES, Request

GIL = BY_LABEL["3.14"]
CONTENT = b"upstream" * 1000
PINNED = replace(SOURCES["3.14"], release="9.9.9", sha256=hashlib.sha256(CONTENT).hexdigest())


class Silent:
    def update(self, *_, **__):
        pass


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files_in(folder):
    return [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


# Mirrors, each answering in its own wrong way.


def stalls(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT[:10])
    handler.server.over.wait(20)


def trickles(handler):
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.wait(0.05):
        handler.wfile.write(b"x")


def page(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"<html><title>Please log in</title></html>")


def refuses(handler):
    handler.send_error(503, "come back later")


def cuts(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT[:-100])


def mumbles(handler):
    handler.wfile.write(b"220 an ftp server\r\n\r\n")


def floods(handler):
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(bytes(1 << 16))


def circles(handler):
    handler.send_response(302)
    handler.send_header("Location", handler.path)
    handler.end_headers()


@contextlib.contextmanager
def mirror(behaviour):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(OSError):
                behaviour(self)

        def log_message(self, *_):
            pass

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        server.over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("fault", "behaviour", "says"),
    [
        ("A mirror of sources stalls in the middle", stalls, "timed out"),
        ("A mirror of sources sends a byte now and then, for ever", trickles, "bytes in"),
        ("A mirror of sources answers with a page that asks to log in", page, "SHA-256"),
        ("A mirror of sources refuses", refuses, "come back later"),
        ("A mirror of sources hangs up before the end", cuts, "SHA-256"),
        ("A mirror of sources does not speak HTTP", mumbles, "220 an ftp server"),
        ("A mirror of sources never stops sending", floods, "sends more than"),
        ("A mirror of sources sends its reader in circles", circles, "redirect"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.fault("provisioning", "{fault}", "It is given up with its reason and what to do; no file stays")
def test_mirror(monkeypatch, cache_home, seen, fault, behaviour, says):
    monkeypatch.setattr(sources, "CONNECT_TIMEOUT_S", 0.5)
    monkeypatch.setattr(sources, "STALLED_S", 0.3)
    monkeypatch.setattr(sources, "MOST_BYTES", 1_000_000)
    with mirror(behaviour) as address:
        monkeypatch.setenv("FFILAB_SOURCE_MIRROR", address)
        with pytest.raises(UserError, match=says) as caught:
            sources.fetch(PINNED, Silent())
    assert "connect to the internet" in str(caught.value)
    assert files_in(cache_home) == []
    seen(str(caught.value).partition(": connect")[0])


@pytest.mark.fault("provisioning", "No mirror of sources can be reached", "One sentence with three ways out")
def test_unreachable_source(monkeypatch, cache_home, seen):
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", "http://127.0.0.1:9/nothing")
    with pytest.raises(UserError, match="could not be had") as caught:
        sources.fetch(SOURCES["3.14"], Silent())
    assert "KERNELS=" in str(caught.value)
    assert not files_in(cache_home)
    seen(str(caught.value).partition(": connect")[0])


@pytest.mark.parametrize("address", ["nowhere", "gopher://127.0.0.1/", "http://[::bad"])
@pytest.mark.fault("provisioning", "The address of a mirror is none: {address}", "The address is named")
def test_address(monkeypatch, cache_home, seen, address):
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", address)
    with pytest.raises(UserError, match="could not be had") as caught:
        sources.fetch(PINNED, Silent())
    assert not files_in(cache_home)
    seen(str(caught.value).partition(": connect")[0])


@pytest.mark.fault(
    "provisioning", "The tarball of a mirror is another one", "Its hash is refused, and it is thrown away"
)
def test_tarball_with_another_hash(monkeypatch, cache_home, tmp_path, seen):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "Python-9.9.9.tar.xz").write_bytes(b"not what was pinned")
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", (tmp_path / "mirror").as_uri())
    with pytest.raises(UserError, match="SHA-256") as caught:
        sources.fetch(PINNED, Silent())
    assert not files_in(cache_home)
    seen(str(caught.value).partition(": connect")[0])


@pytest.mark.fault("provisioning", "A tarball in the cache is spoiled", "It is fetched again")
def test_spoiled_tarball(monkeypatch, tmp_path, seen):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "Python-9.9.9.tar.xz").write_bytes(CONTENT)
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", (tmp_path / "mirror").as_uri())
    path = sources.fetch(PINNED, Silent())
    path.write_bytes(CONTENT[:-1])
    assert sources.fetch(PINNED, Silent()).read_bytes() == CONTENT
    seen("fetched again, with the pinned hash")


# Builds, of a source that compiles in a second.


@pytest.fixture
def small(tmp_path, cache_home):
    """The hash of the small source, and the surroundings in which it is built."""
    digest = fake_source.tarball(tmp_path / "mirror")
    return digest, fake_source.environment(cache_home, tmp_path / "mirror")


@pytest.fixture
def longer(tmp_path, small):
    """The same of a source that keeps a compiler busy: what comes a moment late still meets the build."""
    return fake_source.tarball(tmp_path / "mirror", functions=400), small[1]


def kill_all(process):
    everyone = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for one in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.fault(
    "provisioning",
    "The build of an interpreter is killed at ten random moments",
    "Each run goes on where the last one stopped, and the last one ends with an interpreter that runs",
)
def test_killed_at_random_moments(small, cache_home, seen):
    order = random.Random(21)
    for _ in range(10):
        process = fake_source.start(*small)
        time.sleep(order.uniform(0.2, 1.2))
        kill_all(process)
    assert fake_source.works(fake_source.build(*small))
    work = cache_home / "ffi-hidden-corners" / "work"
    assert [path.name for path in work.iterdir() if path.is_dir()] == []
    assert files_in(cache_home / "ffi-hidden-corners" / "downloads") == ["Python-9.9.9.tar.xz"]
    seen("killed ten times, then built; no work folder stayed")


@pytest.mark.slow
@pytest.mark.fault(
    "provisioning",
    "Two runs build one interpreter in one cache at the same time",
    "One builds, the other says that it waits, and both have it",
)
def test_two_builds_at_once(longer, seen):
    both = [fake_source.start(*longer) for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    answers = [
        subprocess.CompletedProcess(one.args, one.returncode, *texts) for one, texts in zip(both, said, strict=True)
    ]
    assert all(map(fake_source.works, answers))
    assert sum("Another process is building" in answer.stderr for answer in answers) == 1
    assert sum("compiling" in answer.stderr for answer in answers) == 1
    seen("one compiled, the other waited; both have one interpreter")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "spoil"),
    [
        ("An interpreter in the cache has 0 bytes", lambda path: path.write_bytes(b"")),
        ("An interpreter in the cache is cut off", lambda path: path.write_bytes(Path("/bin/sh").read_bytes()[:5000])),
        ("An interpreter in the cache is another version", lambda path: path.write_text("#!/bin/sh\necho 3.13\n")),
        ("An interpreter in the cache may not be run", lambda path: path.chmod(0o644)),
    ],
    ids=["empty", "cut_off", "another", "no_permission"],
)
@pytest.mark.fault("provisioning", "{fault}", "It is found by running it, said, and built again")
def test_broken_interpreter(small, seen, fault, spoil):
    first = fake_source.build(*small)
    assert fake_source.works(first)
    spoil(Path(first.stdout.strip().splitlines()[-1]))
    again = fake_source.build(*small)
    assert fake_source.works(again)
    assert "does not start; it is built again" in again.stderr
    seen("in the cache does not start; it is built again")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["compiler", "libc"])
@pytest.mark.fault(
    "provisioning", "The {what} changes under an interpreter in the cache", "It is said what changed, and built again"
)
def test_machine_changes_under_an_interpreter(small, seen, what):
    first = fake_source.build(*small)
    facts = Path(first.stdout.strip().splitlines()[-1]).parent.parent / build.FACTS
    facts.write_text(json.dumps({**json.loads(facts.read_text()), what: "of another time"}))
    again = fake_source.build(*small)
    assert fake_source.works(again)
    assert f"{what} is" in again.stderr
    assert "was 'of another time'" in again.stderr
    assert json.loads(facts.read_text())[what] != "of another time"
    third = fake_source.build(*small)
    assert "compiling" not in third.stderr
    seen(f"is built again: {what} is … and was 'of another time'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "spoil"),
    [
        (
            "A killed build left half an object",
            lambda work: (work / "Python-9.9.9" / "core" / "c.o").write_bytes(b"\x7fELF half"),
        ),
        ("A killed build was by another compiler", lambda work: (work / "configured").write_text("{}")),
        ("A killed build left half a source tree", lambda work: (work / "Python-9.9.9" / "one.c").unlink()),
    ],
    ids=["half_an_object", "another_compiler", "half_a_tree"],
)
@pytest.mark.fault("provisioning", "{fault}", "The next run compiles from the start, and ends with an interpreter")
def test_spoiled_work_folder(longer, cache_home, seen, fault, spoil):
    process = fake_source.start(*longer)
    works = cache_home / "ffi-hidden-corners" / "work"
    deadline = time.monotonic() + 30
    while not list(works.glob("*/Python-9.9.9/core/c.o")) and time.monotonic() < deadline:
        time.sleep(0.01)
    kill_all(process)
    (work,) = [path for path in works.iterdir() if path.is_dir()]
    # As if the kill had come before the archive.
    (work / "Python-9.9.9" / "libpython3.14.a").unlink(missing_ok=True)
    for late in (work / "Python-9.9.9" / "core").glob("d.o"):
        late.unlink()
    spoil(work)
    again = fake_source.build(*longer)
    assert fake_source.works(again)
    assert [path.name for path in works.iterdir() if path.is_dir()] == []
    seen("compiled from the start; it runs")


@pytest.mark.slow
@pytest.mark.fault("provisioning", "A file stands in the place of the cache folder", "It is named, with what to do")
def test_file_in_place_of_the_cache(small, cache_home, seen):
    cache_home.mkdir()
    (cache_home / "ffi-hidden-corners").write_text("a file")
    said = fake_source.sentence(fake_source.build(*small))
    assert "move away what stands in its place" in said
    assert (cache_home / "ffi-hidden-corners").read_text() == "a file"
    seen("cannot be used (Not a directory or File exists): move away what stands in its place")


@pytest.mark.slow
@pytest.mark.fault("provisioning", "The disk of the cache is full", "It is said, and half a tarball does not stay")
def test_full_cache(tmp_path, seen):
    digest = fake_source.tarball(tmp_path / "mirror", padding=3_000_000)
    with disk_in_memory(tmp_path / "disk" / "cache", "size=1m") as disk:
        answer = fake_source.build(digest, fake_source.environment(disk, tmp_path / "mirror"))
        assert "is full: free some space" in fake_source.sentence(answer)
        assert files_in(disk) == []
    seen("The disk that holds … is full: free some space there and run the same command again")


@pytest.mark.slow
@pytest.mark.fault("provisioning", "The cache folder is read-only", "It is said which folder cannot be written")
def test_read_only_cache(tmp_path, small, seen):
    digest, _ = small
    with disk_in_memory(tmp_path / "disk" / "cache", "size=1m,ro") as disk:
        answer = fake_source.build(digest, fake_source.environment(disk, tmp_path / "mirror"))
        said = fake_source.sentence(answer)
    assert "No permission to write" in said
    seen("No permission to write …: make it writable for you")


@pytest.mark.slow
@pytest.mark.fault("provisioning", "The path of the cache has a space", "It is said before anything is fetched")
def test_space_in_the_cache(tmp_path, small, seen):
    digest, _ = small
    folder = tmp_path / "with space"
    said = fake_source.sentence(fake_source.build(digest, fake_source.environment(folder, tmp_path / "mirror")))
    assert "takes no path with a space: point XDG_CACHE_HOME" in said
    assert files_in(folder) == []
    seen("its build takes no path with a space: point XDG_CACHE_HOME to a folder without one")


@pytest.mark.fault("provisioning", "Notes of a build in the cache are cut off or of another form", "They are left out")
def test_spoiled_notes(cache_home, seen):
    folder = build.prefix(GIL)
    folder.mkdir(parents=True)
    for text in ("", "{", "[]", '{"jobs": null}', '{"whole": true}', "\x00"):
        (folder / build.FACTS).write_text(text)
        assert build.expected_seconds() > 0
        assert build.made_otherwise(GIL) == ""
        assert environments.stamp(interpreters.Found(GIL, sys.executable, "source"))
    seen("left out; the time is taken from what two cores need")


@pytest.mark.fault("provisioning", "There is no C compiler", "One sentence that names `make doctor`")
def test_no_c_compiler(monkeypatch, cache_home, seen):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(UserError, match="make doctor") as caught:
        build.build(GIL)
    assert not files_in(cache_home)
    seen(caught.value)


@pytest.mark.fault("provisioning", "The disk is too small for a build", "It is said before the work, with the sizes")
def test_disk_too_small(monkeypatch, cache_home, seen):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**8})())
    with pytest.raises(UserError, match="GB are free") as caught:
        build.build(GIL)
    assert not files_in(cache_home)
    seen(str(caught.value).replace(str(cache_home), "the cache"))


@pytest.mark.fault("provisioning", "The cache holds a build, and uv knows none", "Nothing is asked of the network")
def test_nothing_is_asked_for_what_the_cache_holds(monkeypatch, seen):
    asked = []
    monkeypatch.setattr(interpreters, "known_to_uv", lambda one: None)
    monkeypatch.setattr(interpreters.Downloads, "install", lambda self, one: asked.append(one))
    monkeypatch.setattr(build, "built", lambda one, number=1: True)
    monkeypatch.setattr(build, "build", lambda one, number=1: Path("x"))
    found, _ = interpreters.find(Request({}, (GIL, GIL.partner), ()))
    assert [one.route for one in found] == ["source", "source"]
    assert asked == []
    seen("no download was asked for")


# Environments and native projects.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "spoil"),
    [
        ("the facts are cut off", lambda venv: (venv / installed.FACTS).write_text('{"stamp": ')),
        ("its Python is gone", lambda venv: (venv / "bin" / "python").unlink()),
        ("its Python has 0 bytes", lambda venv: (venv / "bin" / "python").unlink() or empty(venv / "bin" / "python")),
    ],
    ids=["facts", "no_python", "empty_python"],
)
@pytest.mark.fault("provisioning", "In the environment of a kernel {fault}", "It is made again")
def test_spoiled_environment(monkeypatch, tmp_path, seen, fault, spoil):
    folder = tmp_path / GIL.name
    folder.mkdir()
    (folder / "requirements.txt").write_text("")
    python = fake_source.real()
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    found = interpreters.Found(GIL, python, "named")
    made = environments.make(found)
    spoil(folder / ".venv")
    environments.make(found)
    assert interpreters.suits(interpreters.probe(str(made.python)), GIL)
    seen("made again; its Python runs")


def empty(path):
    path.touch()
    path.chmod(0o755)


@pytest.mark.fault("provisioning", "Packages of a kernel cannot be had", "One sentence; no half environment stays")
def test_packages_that_cannot_be_installed(monkeypatch, tmp_path, seen):
    folder = tmp_path / "cpython-3.14"
    folder.mkdir()
    (folder / "requirements.txt").write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    python = fake_source.real()
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(UserError, match="could not be installed"):
        environments.make(interpreters.Found(GIL, python, "named"))
    assert not (folder / ".venv").exists()
    seen("The packages of cpython-3.14 could not be installed …: check the connection")


MAKEFILE = """all: $(OUT)/libtiny.so
$(OUT)/libtiny.so: tiny.c
	@mkdir -p $(OUT)
	$(CC) -O1 -fPIC -shared -o $@ $<
"""


def tiny(root):
    project = root / "corner" / "library"
    project.mkdir(parents=True)
    (project / "Makefile").write_text(MAKEFILE)
    (project / "tiny.c").write_text("int tiny(int x) { return x + 1; }\n")
    return project


def compiler_named(folder, version):
    """The C compiler, under a name and with a version of its own."""
    path = folder / "cc-of-mine"
    path.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo "mine {version}" && exit\nexec gcc "$@"\n')
    path.chmod(0o755)
    machine.version_of.cache_clear()
    return str(path)


@pytest.mark.skipif(not shutil.which("gcc"), reason="the compiler that changes stands before gcc")
@pytest.mark.fault(
    "provisioning",
    "The C compiler changes under a native project",
    "It is built again, and records name the compiler that built it, whatever CC says later",
)
def test_compiler_changes_under_a_native_project(monkeypatch, tmp_path, seen):
    tiny(tmp_path / "native")
    out = tmp_path / "out"
    library = out / "corner" / "libtiny.so"
    monkeypatch.setattr(machine, "NATIVE_OUT", out)
    times = []
    for version in ("1.0", "1.0", "2.0"):
        monkeypatch.setenv("CC", compiler_named(tmp_path, version))
        native.build_all([], root=tmp_path / "native", out=out)
        times.append(library.stat().st_mtime_ns)
    assert times[0] == times[1] < times[2]
    monkeypatch.setenv("CC", "gcc")
    assert machine.facts("corner")["compiler"] == "mine 2.0"
    machine.version_of.cache_clear()
    seen("built again; the record names mine 2.0 while CC is gcc")


def crate(root):
    project = root / "corner" / "binding"
    project.mkdir(parents=True)
    (project / "Cargo.toml").write_text('[package]\nname = "x"\nversion = "0.1.0"\n')
    return project


def without_cargo(monkeypatch):
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None if name == "cargo" else found(name, *a, **k))


@pytest.mark.fault("provisioning", "There is no Rust", "What needs it is left out with the reason; the rest is built")
def test_no_rust(monkeypatch, tmp_path, seen):
    crate(tmp_path)
    tiny(tmp_path / "other")
    without_cargo(monkeypatch)
    failures = native.build_all([], root=tmp_path, out=tmp_path / "out")
    assert len(failures) == 1
    assert "Rust" in (tmp_path / "out" / "corner" / "missing-binding.txt").read_text()
    assert (tmp_path / "out" / "other" / "libtiny.so").exists()
    seen(failures[0])


@pytest.mark.fault("provisioning", "Rust is gone after all was built with it", "What is built stays, nothing is said")
def test_rust_is_gone_later(monkeypatch, tmp_path, seen):
    project = crate(tmp_path / "native")
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n')
    ran = []
    monkeypatch.setattr(native, "_run", lambda *words: ran.append(words))
    monkeypatch.setattr(native, "need_compiler_and_rust", lambda project: None)
    one = installed.load(GIL)
    assert native.build_all([one], root=tmp_path / "native", out=tmp_path / "out") == []
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    without_cargo(monkeypatch)
    assert native.build_all([one], root=tmp_path / "native", out=tmp_path / "out") == []
    assert len(ran) == 1
    seen("nothing is built and nothing left out")


@pytest.mark.fault("provisioning", "Native code does not compile", "The project, the error and its log are named")
def test_native_code_that_does_not_compile(tmp_path, seen):
    project = tiny(tmp_path)
    (project / "tiny.c").write_text("int tiny( {\n")
    with pytest.raises(UserError, match=r"native/corner/library: make failed \(tiny\.c:1:\d+: error") as caught:
        native.build_all([], root=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out" / "corner" / "libtiny.so").exists()
    seen(str(caught.value).partition("; read")[0])


# The book's own environment.


def bare_clone(folder):
    """As much of a clone as the first step needs."""
    for name in ("ffilab/bootstrap.py", "requirements/book.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def first_step(clone, *words):
    command = [sys.executable, str(clone / "ffilab" / "bootstrap.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean_environment())


@pytest.mark.parametrize("verb", ["lab", "compare", "judge"])
@pytest.mark.fault(
    "provisioning",
    "`make {verb}` finds another make at work, and the book's environment is not there yet",
    "It says so and touches nothing",
)
def test_environment_is_not_renewed_beside_a_run(monkeypatch, tmp_path, seen, verb):
    clone = bare_clone(tmp_path / "clone")
    monkeypatch.setattr(bootstrap, "ROOT", clone)
    # It sets this, which is to be undone.
    monkeypatch.setenv("FFILAB_RUN", "")
    handle = bootstrap.lock_folder()
    try:
        said = fake_source.sentence(first_step(clone, verb))
    finally:
        os.close(handle)
    assert "Another make is running in this folder (process" in said
    assert not (clone / ".venv").exists()
    seen("Another make is running in this folder (process …): wait for it, or stop it")


@pytest.mark.parametrize("verb", ["book", "lab"])
@pytest.mark.fault(
    "provisioning", "A file stands in the place of `_build` (make {verb})", "It is named, with what to do"
)
def test_file_in_place_of_build(tmp_path, seen, verb):
    clone = bare_clone(tmp_path / "clone")
    (clone / "_build").write_text("a file")
    said = fake_source.sentence(first_step(clone, verb))
    assert "move away what stands in the place of _build" in said
    assert (clone / "_build").read_text() == "a file"
    seen("Cannot write … (File exists): … move away what stands in the place of _build")
