"""Other systems: what Linux has and they lack is taken away here, and is left out with a word."""

import os
import shutil
from types import SimpleNamespace

import pytest

from ffilab.measure import neighbour
from ffilab.run import machine, quota, system
from ffilab.run.errors import UserError
from ffilab.setup import build, native_links, relink
from notebooks.arenas import system as of_arenas

AFFINITY = ("sched_getaffinity", "sched_setaffinity")


@pytest.fixture
def without_affinity(monkeypatch):
    for name in AFFINITY:
        monkeypatch.delattr(os, name, raising=False)
    machine.can_pin.cache_clear()
    yield
    machine.can_pin.cache_clear()


def test_where_nothing_can_be_pinned_nothing_is(without_affinity):
    assert not machine.can_pin()
    assert machine.cores_to_pin() == []
    assert machine.Cores().next() is None
    assert machine.cores_usable() == os.cpu_count()
    assert machine.facts()["can_pin"] is False


def test_a_watch_of_the_cores_stays_empty_and_what_it_watches_runs(without_affinity):
    with neighbour.beside() as cores:
        done = True
    assert done
    assert cores == {}


def test_without_proc_facts_are_not_known_and_no_quota_is_seen(monkeypatch):
    monkeypatch.setattr(system, "read_text", lambda path: "")
    monkeypatch.setattr(quota, "read_text", lambda path: "")
    facts = machine.facts()
    assert facts["virtual_machine"] is None
    assert facts["governor"] is None
    assert facts["cpu_quota"] is None
    assert facts["cpu"]


@pytest.mark.parametrize("lacks", ["the file", "the function"])
def test_the_chapter_on_arenas_asks_for_what_it_reads(monkeypatch, tmp_path, lacks):
    if lacks == "the file":
        monkeypatch.setattr(of_arenas, "SMAPS", tmp_path / "smaps")
    else:
        monkeypatch.setattr(of_arenas, "ctypes", SimpleNamespace(CDLL=lambda _: object()))
    with pytest.raises(UserError, match="about glibc and Linux"):
        of_arenas.look([])


@pytest.fixture
def without_objcopy(monkeypatch):
    there = shutil.which
    monkeypatch.setattr(relink.shutil, "which", lambda tool, **how: None if tool == "objcopy" else there(tool, **how))


def test_an_interpreter_whose_objects_cannot_be_kept_is_finished_and_has_one_layout(
    monkeypatch, without_objcopy, tmp_path, capsys
):
    """It was found out after a quarter of an hour of compiling, by a traceback."""
    staged, work = tmp_path / "staged", tmp_path / "work"
    (staged / "bin").mkdir(parents=True)
    work.mkdir()
    (staged / "bin" / "python3.14").write_text("#!/bin/sh\n")
    (staged / "bin" / "python3.14").chmod(0o755)
    interpreter = build.BY_LABEL["3.14"]
    monkeypatch.setattr(build, "_installed", lambda *_: (tmp_path, staged))
    monkeypatch.setattr(build, "prefix", lambda *_: tmp_path / "final" / "cpython")
    build._compile(interpreter, 1, work, whole=True)
    assert (tmp_path / "final" / "cpython" / build.FACTS).exists()
    assert "has one layout, its own: there is no objcopy here" in capsys.readouterr().err


def test_native_code_that_cannot_be_linked_again_is_told_of_once(without_objcopy, tmp_path, capsys):
    native_links._say_once.cache_clear()
    for project in ("one", "another"):
        folder = tmp_path / project / "module.so"
        folder.mkdir(parents=True)
        for name in (native_links.DESCRIPTION, native_links.BUILT):
            (folder / name).write_text("{}")
        native_links.settle(tmp_path / project)
        assert not folder.exists()
    assert capsys.readouterr().err.count("there is no objcopy here") == 1
