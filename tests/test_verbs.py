"""The command line as a reader meets it: one sentence, a non-zero exit, no traceback, nothing left behind."""

import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from ffilab import cli
from ffilab.run import paths, settings
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import ROOT
from ffilab.setup import layout_pool, layouts, native
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.installed import load, present
from tests.helpers import small
from tests.helpers.environment import clean_environment, ran


def make(*words, cwd=ROOT, **environment):
    return ran("make", *words, cwd=cwd, timeout=300, env=clean_environment(**environment))


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A second copy of the tree that shares the book's environment: free to be locked, interrupted and spoiled."""
    return small.copy(tmp_path_factory.mktemp("clone"), (*small.MACHINERY, "notebooks", "native"), kernels=False)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["book", "KERNELS=3.99"], "3.99"),
        (["chapter", "NAME=nothing", "BUDGET=smoke"], "nothing"),
        (["html"], "make book"),
        (["judge"], "Name the records"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_mistake_ends_in_one_sentence(clone, words, says):
    answer = make(*words, cwd=clone)
    assert answer.returncode != 0
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr + answer.stdout
    assert len([line for line in answer.stderr.splitlines() if line.startswith("ffilab:")]) == 1
    assert not (clone / "_build" / "html").exists()


@pytest.mark.full
def test_a_chapter_from_a_bundle_needs_no_interpreter_and_is_the_same_each_time(clone, tmp_path):
    """As the first thing in a clone: nothing is built or measured, and the other pages say that they were not measured
    yet."""
    bundle = tmp_path / "records.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(ROOT / "tests" / "golden", "golden")
    found = []
    for _ in range(2):
        answer = make("chapter", "NAME=races", f"FROM={bundle}", cwd=clone, XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert answer.returncode == 0, answer.stderr
        pages = clone / "_build" / "html" / "notebooks"
        found.append((pages / "races" / "races.html").read_bytes())
        assert "was not measured on this machine yet" in (pages / "loaders" / "loaders.html").read_text()
    assert found[0] == found[1]
    for made in ("_build/records", "_build/native"):
        assert not (clone / made).exists()
    assert not list((clone / "kernels").rglob(".venv"))
    said = make("judge", f"FROM={bundle}", cwd=clone)
    assert said.returncode == 0
    assert said.stdout.startswith("A1: ")
    shutil.rmtree(clone / "_build")


def test_help_lists_the_verbs():
    answer = make("help")
    assert answer.returncode == 0
    twelve = "help book chapter more html lab doctor compare judge test test-all clean"
    assert re.findall(r"^make (\S+)", answer.stdout, re.M) == twelve.split()


def test_doctor_without_anything_names_the_packages(tmp_path):
    for name in ("python3", "env", "sh"):
        (tmp_path / name).symlink_to(sys.executable if name == "python3" else shutil.which(name))
    answer = ran(sys.executable, ROOT / "ffilab" / "doctor.py", env={"PATH": str(tmp_path)})
    assert answer.returncode == 1
    for text in ("C compiler", "the packages that Debian calls gcc g++ make git"):
        assert text in answer.stdout
    assert "Traceback" not in answer.stderr


def test_lab_opens_a_chapter_with_what_it_needs(monkeypatch):
    """What it builds, links and starts; the server itself is that of JupyterLab."""
    asked = {}
    monkeypatch.setattr(cli.environments, "provision", lambda request: [load(BY_LABEL[GIL])])
    monkeypatch.setattr(native, "build_all", lambda interpreters, chapters: asked.update(built=chapters))
    monkeypatch.setattr(layout_pool, "ready", lambda folder, labels, count, _: asked.update(pool=folder, count=count))
    monkeypatch.setattr(cli.os, "execve", lambda *words: asked.update(zip(("program", "words", "variables"), words)))
    monkeypatch.delenv(settings.BUDGET, raising=False)
    cli.lab.main(["critical_sections"], standalone_mode=False)
    assert set(asked["built"]) == {"critical_sections", "boundary"}
    assert asked["pool"] == layouts.OF_LAB
    assert asked["count"] == BUDGETS["room"].layouts
    (opened,) = [word for word in asked["words"] if "default_url" in word]
    assert opened.endswith("/lab/tree/notebooks/critical_sections/critical_sections.ipynb")
    offered = [word.partition("specs=")[2] for word in asked["words"] if "allowed_kernelspecs" in word]
    assert offered == [python.name for python in present()]
    assert "--ip=127.0.0.1" in asked["words"]
    cli.lab.main(["critical_sections", "--listen", "192.0.2.1"], standalone_mode=False)
    assert "--ip=192.0.2.1" in asked["words"]
    variables = asked["variables"]
    assert json.loads(variables[settings.TOLD])["layouts"] == str(layouts.OF_LAB)
    assert variables[settings.BUDGET] == "room"
    assert Path(variables[settings.BUILD]) != paths.BUILD
