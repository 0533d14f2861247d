"""Interpreters that are not what they seem are refused, and not measured as something else."""

import json

import pytest

from ffilab.page.chapter import assert_gil
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup import environments, installed, interpreters
from ffilab.setup.catalogue import BY_LABEL
from tests.helpers import fake_source
from tests.helpers.environment import ran, script

GIL, FREE = BY_LABEL["3.14"], BY_LABEL["3.14t"]


def wrapper(folder, **lies):
    """An executable that answers the probe with lies and is 3.14 in all else."""
    facts = {**interpreters.probe(fake_source.real()), **lies}
    (folder / "said.json").write_text(json.dumps(facts))
    asks = f'case "$*" in *config_args*) cat "{folder}/said.json"; exit ;; esac'
    return str(script(folder / "python3.14", f'{asks}\nexec {fake_source.real()} "$@"'))


@pytest.mark.parametrize(
    ("lies", "reason"),
    [
        ({"debug": True}, "debug: True"),
        ({"lacking": ["_ctypes"]}, "without _ctypes"),
        ({"version": "3.13", "full": "3.13.5 (main)"}, "3.13.5"),
        ({"free_threaded": True}, "free-threaded: True"),
        ({"include": "/nowhere"}, "headers in /nowhere"),
        ({"implementation": "pypy"}, "but it is"),
    ],
)
def test_an_unsuitable_interpreter_is_refused_with_the_reason(tmp_path, lies, reason):
    with pytest.raises(UserError, match=reason) as caught:
        interpreters.named(GIL, wrapper(tmp_path, **lies))
    assert "name a release build" in str(caught.value)


@pytest.mark.parametrize("interpreter", [GIL, FREE], ids=lambda one: one.label)
def test_the_probe_is_answered_truly(interpreter):
    facts = interpreters.probe(str(installed.load(interpreter).python))
    assert set(facts) == interpreters.FIELDS
    sound = {"version": "3.14", "debug": False, "lacking": [], "implementation": "cpython"}
    assert facts == facts | sound | {"free_threaded": interpreter.free_threaded}
    assert interpreters.suits(facts, interpreter)
    assert not interpreters.suits(facts, interpreters.Interpreter(interpreter.version, not interpreter.free_threaded))


def test_an_environment_that_is_another_interpreter_is_removed(monkeypatch, tmp_path):
    """To the probe it says that it is 3.14t, and it is 3.14."""
    folder = tmp_path / FREE.name
    folder.mkdir()
    (folder / "requirements.txt").write_text("")
    fake_source.real()
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    found = interpreters.named(FREE, wrapper(tmp_path, free_threaded=True))
    with pytest.raises(UserError, match=r"says that it is 3\.14t, and an environment made of it is not"):
        environments.make(found)
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize(
    "text",
    ["#!/bin/sh\n", '#!/bin/sh\necho \'{"version": "3.14"}\'\n', "#!/bin/sh\nexit 1\n", None],
    ids=["silent", "fields_missing", "fails", "folder"],
)
def test_what_is_no_python_is_named(tmp_path, text):
    path = tmp_path / "python"
    path.write_text(text) if text else path.mkdir()
    path.chmod(0o755)
    with pytest.raises(UserError, match="does not run as a Python"):
        interpreters.named(GIL, str(path))


def test_a_chapter_ends_if_the_gil_is_not_as_it_needs_it():
    code = "from ffilab.page.chapter import assert_gil; assert_gil(False)"
    surroundings = {"PYTHON_GIL": "1", "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    answer = ran(installed.load(FREE).python, "-c", code, env=surroundings, timeout=60)
    assert answer.returncode == 1
    assert "the GIL of this interpreter is on, and the chapter needs it otherwise" in answer.stderr
    assert_gil(True)
