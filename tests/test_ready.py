"""`make ready`: a folder for others, taken from without a network, and a proof in a namespace without one."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from ffilab import bootstrap
from ffilab.run.errors import UserError
from ffilab.setup import environments, room
from ffilab.setup.catalogue import BY_LABEL, CHAPTER_PAIR, Request
from ffilab.setup.interpreters import Found

VARIABLES = (
    "FROM",
    "PIP_NO_INDEX",
    "PIP_FIND_LINKS",
    "UV_FIND_LINKS",
    "UV_OFFLINE",
    "CARGO_NET_OFFLINE",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as `write` leaves it, in small; what is set in the environment is taken back."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    made = tmp_path / "a room"
    made.mkdir()
    (made / bootstrap.KIND).write_text(json.dumps(bootstrap.kind()))
    (made / "book.bundle").write_bytes(b"history")
    names = (bootstrap.KIND, "book.bundle")
    sums = [f"{hashlib.sha256((made / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (made / "SHA256SUMS").write_text("".join(sums))
    return made


def test_who_takes_from_a_folder_asks_no_network(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    bootstrap.take_from("a room")
    assert all(map(os.environ.get, VARIABLES))
    assert os.environ["FROM"] == str(folder)
    assert os.environ["UV_FIND_LINKS"].endswith("/a%20room/wheels")


def test_a_folder_that_cannot_serve_is_refused_in_a_sentence(folder):
    with pytest.raises(bootstrap.Stop, match="no folder that `make ready` wrote"):
        bootstrap.take_from(folder.parent)
    (folder / "book.bundle").write_bytes(b"histor")
    with pytest.raises(bootstrap.Stop, match=r"book\.bundle is not as"):
        bootstrap.take_from(folder)
    other = json.dumps({**bootstrap.kind(), "processor": "sparc"})
    (folder / bootstrap.KIND).write_text(other)
    (folder / "SHA256SUMS").write_text("")
    with pytest.raises(bootstrap.Stop, match=r"sparc.*without FROM"):
        bootstrap.take_from(folder)


def test_what_was_packed_is_taken_where_it_lacks(tmp_path, monkeypatch):
    """An interpreter with its links and modes, a source, a crate; what is there already stays."""
    here, there, made = tmp_path / "here", tmp_path / "there", tmp_path / "room"
    program = here / "cache" / "interpreters" / "cpython" / "bin" / "python3.14"
    crate = here / "registry" / "cache" / "index" / "loom-0.7.crate"
    source = here / "cache" / "downloads" / "Python.tar.xz"
    for path in (program, crate, source):
        path.parent.mkdir(parents=True)
        path.write_text(path.name)
    program.chmod(0o755)
    program.with_name("python3").symlink_to(program.name)
    made.mkdir()
    bar = type("Bar", (), {"update": lambda *_: None})
    room._pack(made / room.CACHE, here / "cache", [program.parents[1], source], bar)
    room._pack(made / room.CRATES, here / "registry", [crate], bar)
    monkeypatch.setattr(room, "cache", lambda: there / "cache")
    monkeypatch.setattr(room, "registry", lambda: there / "registry")
    monkeypatch.setattr(room.shutil, "which", lambda _: "/bin/cargo")
    kept = there / "cache" / "downloads" / "Python.tar.xz"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    for _ in range(2):
        room.take(made)
        link = there / "cache" / "interpreters" / "cpython" / "bin" / "python3"
        assert link.is_symlink()
        assert os.access(link, os.X_OK)
        assert (there / "registry" / "cache" / "index" / crate.name).read_text() == crate.name
        assert kept.read_text() == "mine"
        # Nothing half-unpacked is left.
        assert {path.name for path in (there / "cache").iterdir()} == {"downloads", "interpreters"}


def test_where_no_namespace_can_be_had_the_proof_is_named_as_lacking(monkeypatch, capsys):
    monkeypatch.setattr(room.shutil, "which", lambda _: None)
    monkeypatch.setattr(room, "logged", lambda *_, **__: pytest.fail("it was run"))
    room.prove("loaders")
    assert "not proven" in capsys.readouterr().err


def test_a_proof_that_fails_names_chapter_and_log(monkeypatch):
    monkeypatch.setattr(room.shutil, "which", lambda _: "/bin/unshare")
    monkeypatch.setattr(room.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0))
    monkeypatch.setenv("FROM", "elsewhere")
    asked = {}
    monkeypatch.setattr(room, "logged", lambda command, log, on_line, env: asked.update(env=env) or 1)
    with pytest.raises(UserError, match=r"the chapter loaders fails.*ready\.log"):
        room.prove("loaders")
    # It measures, and not into the reader's own results.
    assert "FROM" not in asked["env"]
    assert asked["env"]["FFILAB_BUILD"] != str(room.BUILD)


def test_in_the_namespace_there_is_loopback_and_nothing_else(tmp_path):
    """The verb that runs there is a stand-in that looks around."""
    alone = ["unshare", "--map-root-user", "--net"]
    try:
        subprocess.run([*alone, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system gives no namespace without a network")
    (tmp_path / "ffilab").mkdir()
    (tmp_path / "ffilab" / "__main__.py").write_text(
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname(), 5)\n"
        "print(*[name for _, name in socket.if_nameindex()])\n"
        "socket.create_connection(('192.0.2.1', 9), 5)\n"
    )
    # Both packages are called ffilab: the last step, `-m ffilab`, finds the stand-in in the folder where it runs.
    run = "runpy.run_module('ffilab.setup.room', run_name='__main__')"
    bring_up = f"import runpy, sys; sys.path.insert(0, {str(room.ROOT)!r}); {run}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(
        [*alone, sys.executable, "-c", bring_up], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert answer.stdout.strip() == "lo"
    assert "Network is unreachable" in answer.stderr


def test_an_optional_interpreter_whose_packages_cannot_be_had_costs_itself_alone(monkeypatch, capsys):
    pair = [Found(one, "python", "source") for one in CHAPTER_PAIR]
    further = Found(BY_LABEL["3.13"], "python", "uv")

    def make(base):
        if base in refused:
            raise UserError("check the connection.")
        return type("Made", (), {"name": base.interpreter.name, "facts": {"version": "3", "route": "named"}})

    monkeypatch.setattr(environments, "find", lambda request: ([*pair, further], []))
    monkeypatch.setattr(environments, "make", make)
    request = Request({}, CHAPTER_PAIR, (further.interpreter,))
    refused = [further]
    assert len(environments.provision(request)) == 2
    assert "cpython-3.13 is left out: check the connection" in capsys.readouterr().err
    refused = pair
    with pytest.raises(UserError):
        environments.provision(request)
