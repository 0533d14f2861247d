"""Faults while interpreters are fetched, compiled and given their environments."""

import contextlib
import errno
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ffilab.run.errors import UserError
from ffilab.setup import build, environments, installed, interpreters, sources
from ffilab.setup.catalogue import BY_LABEL, CHAPTER_PAIR, SOURCES, Request
from tests.helpers import fake_source
from tests.helpers.environment import script
from tests.helpers.small import disk as disk_in_memory

GIL = BY_LABEL["3.14"]
CONTENT = b"upstream" * 1000
PINNED = replace(SOURCES["3.14"], release="9.9.9", sha256=hashlib.sha256(CONTENT).hexdigest())
SILENT = SimpleNamespace(update=lambda *_, **__: None)
pytestmark = pytest.mark.usefixtures("cache_home")


def files_in(folder):
    return [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


# Sources.


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


def login_page(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"<html><title>Please log in</title></html>")


def refuses(handler):
    handler.send_error(503, "come back later")


@contextlib.contextmanager
def mirror(behaviour):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(OSError):
                behaviour(self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("behaviour", "limit", "reason"),
    [
        (stalls, "CONNECT_TIMEOUT_S", "timed out"),
        (trickles, "STALLED_S", "bytes in"),
        (login_page, None, "SHA-256"),
        (refuses, None, "come back later"),
    ],
)
def test_a_bad_mirror_is_given_up_with_its_reason(monkeypatch, cache_home, behaviour, limit, reason):
    # Its own limit alone: a busy machine may be late for the others.
    if limit:
        monkeypatch.setattr(sources, limit, 0.4)
    with mirror(behaviour) as address:
        monkeypatch.setenv("FFILAB_SOURCE_MIRROR", address)
        with pytest.raises(UserError, match=reason) as caught:
            sources.fetch(PINNED, SILENT)
    assert "connect to the internet" in str(caught.value)
    assert files_in(cache_home) == []


def test_a_network_that_breaks_in_the_middle_is_a_reason_and_a_full_disk_is_none(monkeypatch, cache_home):
    def breaks(number):
        raise OSError(number, os.strerror(number))

    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", "http://127.0.0.1:9/nothing")
    monkeypatch.setattr(sources, "_download", lambda *_: breaks(errno.ENETUNREACH))
    with pytest.raises(UserError, match="unreachable"):
        sources.fetch(PINNED, SILENT)
    monkeypatch.setattr(sources, "_download", lambda *_: breaks(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        sources.fetch(PINNED, SILENT)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/nothing", "nowhere"])
def test_without_any_mirror_the_ways_out_are_named(monkeypatch, cache_home, address):
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", address)
    with pytest.raises(UserError, match="could not be had") as caught:
        sources.fetch(SOURCES["3.14"], SILENT)
    assert "KERNELS=" in str(caught.value)
    assert files_in(cache_home) == []


def test_a_spoiled_tarball_in_the_cache_is_fetched_again(monkeypatch, tmp_path):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "Python-9.9.9.tar.xz").write_bytes(CONTENT)
    monkeypatch.setenv("FFILAB_SOURCE_MIRROR", (tmp_path / "mirror").as_uri())
    path = sources.fetch(PINNED, SILENT)
    path.write_bytes(CONTENT[:-1])
    assert sources.fetch(PINNED, SILENT).read_bytes() == CONTENT


# What a build needs.


def test_without_a_compiler_doctor_is_named(monkeypatch, cache_home):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(UserError, match="make doctor"):
        build.build(GIL)
    assert files_in(cache_home) == []


def test_too_small_a_disk_is_named_before_the_work(monkeypatch, cache_home):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**8})())
    with pytest.raises(UserError, match="GB are free"):
        build.build(GIL)
    assert files_in(cache_home) == []


def test_a_cache_below_a_path_with_a_space_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with space"))
    with pytest.raises(UserError, match="takes no path with a space: point XDG_CACHE_HOME"):
        build.build(GIL)
    assert files_in(tmp_path / "with space") == []


def test_a_file_in_place_of_the_cache_is_named(cache_home):
    cache_home.mkdir()
    (cache_home / "ffi-hidden-corners").write_text("a file")
    with pytest.raises(UserError, match=r"cannot be used \(Not a directory\)"):
        build.build(GIL)
    assert (cache_home / "ffi-hidden-corners").read_text() == "a file"


# Builds, of a source that compiles in a second.


@pytest.fixture
def small(tmp_path, cache_home):
    """The hash of the small source, and the surroundings in which it is built."""
    digest = fake_source.tarball(tmp_path / "mirror")
    return digest, fake_source.environment(cache_home, tmp_path / "mirror")


def test_a_broken_interpreter_in_the_cache_is_built_again(small, cache_home):
    first = fake_source.build(*small)
    assert fake_source.works(first)
    path = Path(first.stdout.strip().splitlines()[-1])
    path.write_bytes(Path("/bin/sh").read_bytes()[:5000])
    again = fake_source.build(*small)
    assert fake_source.works(again)
    assert "does not start; it is built again" in again.stderr
    assert [folder for folder in (cache_home / "ffi-hidden-corners" / "work").iterdir() if folder.is_dir()] == []


@pytest.mark.full
@pytest.mark.parametrize("what", ["compiler", "libc"])
def test_an_interpreter_is_built_again_if_the_machine_changed(small, what):
    first = fake_source.build(*small)
    facts = Path(first.stdout.strip().splitlines()[-1]).parent.parent / build.FACTS
    facts.write_text(json.dumps({**json.loads(facts.read_text()), what: "of another time"}))
    again = fake_source.build(*small)
    assert fake_source.works(again)
    assert f"{what} is" in again.stderr
    assert "was 'of another time'" in again.stderr
    assert "compiling" not in fake_source.build(*small).stderr


@pytest.mark.full
def test_two_runs_build_one_interpreter(tmp_path, small):
    longer = fake_source.tarball(tmp_path / "mirror", functions=400), small[1]
    both = [fake_source.start(*longer) for _ in range(2)]
    texts = [process.communicate(timeout=120) for process in both]
    answers = [subprocess.CompletedProcess(one.args, one.returncode, *said) for one, said in zip(both, texts)]
    assert all(map(fake_source.works, answers))
    assert sum("Another process is building" in answer.stderr for answer in answers) == 1
    assert sum("compiling" in answer.stderr for answer in answers) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "reason"),
    [("size=1m", "is full: free some space"), ("size=1m,ro", "cannot be used (Read-only file system)")],
)
def test_a_cache_that_cannot_be_written(tmp_path, options, reason):
    digest = fake_source.tarball(tmp_path / "mirror", padding=3_000_000)
    with disk_in_memory(tmp_path / "disk" / "cache", options) as disk:
        answer = fake_source.build(digest, fake_source.environment(disk, tmp_path / "mirror"))
        assert reason in fake_source.sentence(answer)
        assert files_in(disk) == []


# Which interpreter is taken.


def test_damaged_notes_of_a_build_are_ignored():
    build.prefix(GIL).mkdir(parents=True)
    for text in ("", "{", '{"jobs": null}'):
        (build.prefix(GIL) / build.FACTS).write_text(text)
        assert build.last_seconds() is None
        assert build.made_otherwise(GIL) == ""


def test_nothing_is_asked_of_the_network_for_what_the_cache_holds(monkeypatch):
    monkeypatch.setattr(interpreters, "known_to_uv", lambda one: None)
    monkeypatch.setattr(interpreters.subprocess, "run", lambda *_, **__: pytest.fail("uv was asked"))
    monkeypatch.setattr(build, "built", lambda one, number=1: True)
    monkeypatch.setattr(build, "build", lambda one, number=1: Path("x"))
    found, _ = interpreters.find(Request({}, CHAPTER_PAIR, ()))
    assert [one.route for one in found] == ["source", "source"]


def test_a_failed_download_is_remembered_for_a_day_but_for_what_is_required(monkeypatch, tmp_path):
    asked = tmp_path / "asked"
    refuses = f'case "$*" in *install*) echo "$*" >>{asked}; echo "error: no route" >&2 ;; esac\nexit 1'
    uv = script(tmp_path / "uv", refuses)
    monkeypatch.setattr(interpreters, "uv", lambda: str(uv))
    monkeypatch.setattr(build, "build", lambda one, number=1: Path("x"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    optional, required = Request({}, (), (BY_LABEL["3.13"],)), Request({}, (BY_LABEL["3.13"],), ())

    def times_asked(request):
        before = asked.read_text().count("\n") if asked.exists() else 0
        interpreters.find(request)
        return asked.read_text().count("\n") - before

    assert [times_asked(optional), times_asked(optional), times_asked(required)] == [1, 0, 1]
    note = next(path for path in tmp_path.rglob("no-downloads"))
    two_days_ago = time.time() - 2 * interpreters.A_DAY_S
    interpreters.os.utime(note, (two_days_ago, two_days_ago))
    assert times_asked(optional) == 1


# Environments.


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """The folder of an interpreter with an empty lock, and the interpreter itself."""
    folder = tmp_path / GIL.name
    folder.mkdir()
    (folder / "requirements.txt").write_text("")
    python = fake_source.real()
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    return folder, interpreters.Found(GIL, python, "named")


@pytest.mark.full
@pytest.mark.parametrize("file", [installed.FACTS, "bin/python"])
def test_a_spoiled_environment_is_made_again(kernel, file):
    folder, found = kernel
    environments.make(found)
    (folder / ".venv" / file).unlink()
    (folder / ".venv" / file).write_text("{")
    made = environments.make(found)
    assert interpreters.suits(interpreters.probe(str(made.python)), GIL)


def test_packages_that_cannot_be_had_leave_no_half_environment(monkeypatch, kernel):
    folder, found = kernel
    (folder / "requirements.txt").write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(UserError, match="could not be installed"):
        environments.make(found)
    assert not (folder / ".venv").exists()


def test_facts_do_not_hold_the_folder_in_which_an_interpreter_was_built(monkeypatch):
    """A cache that was moved still has it in its configuration: the pair would seem to come from two builds."""
    ours = "'--enable-optimizations' '--prefix=/former/cache/cpython-3.14.7{}' 'CC=cc'"
    facts = {
        one: {"full": "3.14.7", "config_args": ours.format("t" if one.free_threaded else "")} for one in CHAPTER_PAIR
    }
    monkeypatch.setattr(environments, "packages", lambda python: {})
    described = []
    for one, probed in facts.items():
        monkeypatch.setattr(environments, "probe", lambda path, probed=probed: probed)
        described.append(environments.describe(interpreters.Found(one, "x", "source")))
    assert "former" not in str(described)
    assert installed.same_build(*described)


def test_the_environment_of_another_clone_stays(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ready-book-1").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "other")
    environments.remove(tmp_path / ".venv")
    assert (tmp_path / "other" / "ready-book-1").exists()


def test_the_cache_is_asked_without_the_surroundings(monkeypatch):
    """PYTHON_GIL=1 from outside must not make a t-build of the cache look like another interpreter."""
    monkeypatch.setenv("PYTHON_GIL", "1")
    path = str(installed.load(CHAPTER_PAIR[1]).python)
    build._starts.cache_clear()
    assert build._starts(path, (0, 0), "3.14t")
    assert not build._starts(path, (0, 0), "3.14")
    build._starts.cache_clear()
