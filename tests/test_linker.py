"""The linker that orders functions is found wherever a machine has one, and fetched where it has none."""

import os
from pathlib import Path

import pytest

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.setup import environments, linker
from tests.helpers.environment import script


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without any linker but those that a test adds; returns what adds one: (folder, name, version)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv(settings.NO_DOWNLOADS, raising=False)
    linker.find.cache_clear()

    def add(
        name="ld.lld", version="14.0.6", folder=tmp_path / "bin", text="Debian LLD {version} (compatible with GNU)"
    ):
        folder.mkdir(parents=True, exist_ok=True)
        return script(folder / name, f"echo '{text.format(version=version)}'")

    yield add
    linker.find.cache_clear()


def test_one_on_path_is_taken(machine):
    there = machine()
    machine("ld.lld-19", "19.1.7")
    assert linker.find() == there
    assert linker.version(linker.find()) == "LLD 14.0.6"


def test_the_newest_with_its_version_in_its_name_gets_the_name_that_compilers_know(machine):
    machine("ld.lld-9", "9.0.1")
    machine("ld.lld-19", "19.1.7")
    machine("ld.lld-link", "99")
    found = linker.find()
    assert found.name == "ld.lld"
    assert linker.version(found) == "LLD 19.1.7"


def test_that_of_a_rust_toolchain_is_taken(machine, tmp_path):
    machine("rustc", text=str(tmp_path / "rust"))
    ours = machine(folder=tmp_path / "rust" / "lib" / "rustlib" / "x86_64-unknown-linux-gnu" / "bin" / "gcc-ld")
    assert linker.find() == ours


def test_one_that_does_not_start_is_passed_over(machine):
    machine(text="no linker at all")
    versioned = machine("ld.lld-15", "15.0.6")
    assert linker.find().resolve() == versioned


def test_without_any_it_is_fetched_once(machine, monkeypatch, capsys):
    fetched = []

    def install(command, log):
        target = command[command.index("--target") + 1]
        fetched.append(target)
        os.makedirs(f"{target}/ziglang")
        script(Path(target, "ziglang", "zig"), "echo LLD 22.1.8")
        return 0

    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(linker, "_candidates", lambda: iter([linker.of_wheel()]))
    monkeypatch.setattr(environments, "logged", install)
    assert linker.find() is None
    environments.provide_linker()
    environments.provide_linker()
    assert len(fetched) == 1
    assert linker.version(linker.find()) == "LLD 22.1.8"
    assert "about 100 MB" in capsys.readouterr().err


def test_where_it_cannot_be_fetched_the_reason_is_said(machine, monkeypatch, capsys):
    monkeypatch.setattr(environments, "logged", lambda command, log: 1)
    monkeypatch.setattr(environments, "tail", lambda log, lines: "no route to host")
    environments.provide_linker()
    assert "no route to host" in capsys.readouterr().err
    with pytest.raises(UserError, match="install lld"):
        linker.needed()


def test_a_reader_may_refuse_the_download(machine, monkeypatch):
    monkeypatch.setenv(settings.NO_DOWNLOADS, "1")
    monkeypatch.setattr(environments, "logged", lambda command, log: pytest.fail("something was fetched"))
    environments.provide_linker()
    with pytest.raises(UserError, match=settings.NO_DOWNLOADS):
        linker.needed()
