"""Interpreters that are not what they seem: said, and not measured as something else."""

import json
import subprocess
import sys

import pytest

from faults import fake_source
from ffilab import cli
from ffilab.chapter import assert_gil
from ffilab.errors import UserError
from ffilab.provision import build, environments, installed, interpreters
from ffilab.provision.catalogue import BY_LABEL

GIL, FREE = BY_LABEL["3.14"], BY_LABEL["3.14t"]


def wrapper(folder, **lies):
    """An executable that answers the probe with lies and is 3.14 in all else."""
    facts = {**interpreters.probe(fake_source.real()), **lies}
    (folder / "said.json").write_text(json.dumps(facts))
    path = folder / "python3.14"
    asks = f'case "$*" in *config_args*) cat "{folder}/said.json"; exit ;; esac'
    path.write_text(f'#!/bin/sh\n{asks}\nexec {fake_source.real()} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("fault", "lies", "says"),
    [
        ("is a debug build", {"debug": True}, "debug: True"),
        ("has no ctypes", {"lacking": ["_ctypes"]}, "without _ctypes"),
        ("has another version", {"version": "3.13", "full": "3.13.5 (main)"}, "3.13.5"),
        ("is the t-build", {"free_threaded": True}, "free-threaded: True"),
        ("has no headers", {"include": "/nowhere"}, "headers in /nowhere"),
        ("is no CPython", {"implementation": "pypy"}, "but it is"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
@pytest.mark.fault(
    "interpreters", "An interpreter that KERNELS names for 3.14 {fault}", "It is refused with what it is"
)
def test_unsuitable(tmp_path, seen, fault, lies, says):
    with pytest.raises(UserError, match=says) as caught:
        interpreters.named(GIL, wrapper(tmp_path, **lies))
    assert "name a release build" in str(caught.value)
    seen(str(caught.value).replace(str(tmp_path), "…"))


@pytest.mark.fault(
    "interpreters", "The fields that the probe asks for", "A real interpreter answers each of them truly"
)
def test_probe_is_true(seen):
    for interpreter in (GIL, FREE):
        facts = interpreters.probe(str(installed.load(interpreter).python))
        assert set(facts) == interpreters.FIELDS
        assert (facts["version"], facts["free_threaded"]) == ("3.14", interpreter.free_threaded)
        assert (facts["debug"], facts["lacking"], facts["implementation"]) == (False, [], "cpython")
        assert interpreters.suits(facts, interpreter)
        assert not interpreters.suits(facts, interpreter.partner)
    seen("version, threading, debug, modules and headers are as they are")


@pytest.mark.slow
@pytest.mark.fault(
    "interpreters",
    "An interpreter lies: to the probe it says that it is 3.14t, and it is 3.14",
    "The environment that is made of it is asked again; it is refused and removed",
)
def test_liar(monkeypatch, tmp_path, seen):
    folder = tmp_path / FREE.name
    folder.mkdir()
    (folder / "requirements.txt").write_text("")
    fake_source.real()
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    found = interpreters.named(FREE, wrapper(tmp_path, free_threaded=True))
    with pytest.raises(UserError, match=r"says that it is 3\.14t, and an environment made of it is not"):
        environments.make(found)
    assert not (folder / ".venv").exists()
    seen("… says that it is 3.14t, and an environment made of it is not: name another one")


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("says nothing", "#!/bin/sh\n"),
        ("answers with a list", "#!/bin/sh\necho '[]'\n"),
        ("leaves fields out", '#!/bin/sh\necho \'{"version": "3.14"}\'\n'),
        ("answers with bytes that are no text", "#!/bin/sh\nprintf '\\377\\376'\n"),
        ("fails", "#!/bin/sh\nexit 1\n"),
        ("is a folder", None),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) and "#" not in value else "",
)
@pytest.mark.fault("interpreters", "What KERNELS names as an interpreter {fault}", "It does not run as a Python")
def test_no_python(tmp_path, seen, fault, text):
    path = tmp_path / "python"
    path.write_text(text) if text else path.mkdir()
    path.chmod(0o755)
    with pytest.raises(UserError, match="does not run as a Python") as caught:
        interpreters.named(GIL, str(path))
    seen(str(caught.value).replace(str(tmp_path), "…"))


def run(monkeypatch, *words):
    """The sentence in which a verb ends that is run in this process."""
    monkeypatch.setattr(sys, "argv", ["ffilab", *words])
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code
    return str(caught.value.code)


@pytest.mark.parametrize("variable", ["PYTHON_GIL=1", "PYTHON_GIL=0", "PYTHONMALLOC=debug", "PYTHONDEVMODE=1"])
@pytest.mark.fault("interpreters", "{variable} is set where a run begins", "It is refused before anything is measured")
def test_variable_that_changes_interpreters(monkeypatch, seen, variable):
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value)
    for verb in (("book",), ("chapter", "loaders"), ("more",), ("lab",), ("study", "x")):
        said = run(monkeypatch, *verb)
        assert said.startswith(f"ffilab: {variable} would change the interpreters that are measured: `unset {name}`")
    seen(said)


@pytest.mark.fault(
    "interpreters", "The GIL of a t-build is turned on by its environment", "The chapter's first cell ends"
)
def test_gil_turned_on(seen):
    ask = "from ffilab.chapter import assert_gil; assert_gil(False)"
    from ffilab.paths import ROOT

    answer = subprocess.run(
        [installed.load(FREE).python, "-c", ask],
        env={"PYTHON_GIL": "1", "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    assert "the GIL of this interpreter is on, and the chapter needs it otherwise" in answer.stderr
    assert_gil(True)
    seen(answer.stderr.strip().splitlines()[-1])


@pytest.mark.fault(
    "interpreters", "The GIL is turned on from outside when the cache is looked at", "A t-build is still known"
)
def test_cache_is_asked_without_the_surroundings(monkeypatch, seen):
    monkeypatch.setenv("PYTHON_GIL", "1")
    path = installed.load(FREE).python
    build._starts.cache_clear()
    assert build._starts(str(path), (0, 0), "3.14t")
    assert not build._starts(str(path), (0, 0), "3.14")
    build._starts.cache_clear()
    seen("asked without its environment, it says 3.14t")
