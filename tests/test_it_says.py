"""The page of symptoms: each has a command and a place of this book; what it quotes, Python says."""

import re
import signal

import pytest

from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from studies.scale import undeclared
from tests.helpers.environment import python_of, ran

PAGE = (ROOT / "book" / "it_says.md").read_text()
SYMPTOMS = dict(re.findall(r"^\(says-[\w-]+\)=\n## (.*?)\n(.*?)(?=^\(says-|\Z)", PAGE, re.M | re.S))


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_has_an_answer_a_command_and_a_place(symptom):
    text = SYMPTOMS[symptom]
    assert "**" in text
    assert "```console\n$ " in text
    assert re.search(r"\{(doc|ref)\}`", text)


def test_it_is_reached_from_the_front_page_the_guide_and_the_checklist():
    for page in ("preface.md", "decision_guide.md", "free_threading.md"):
        assert re.search("{doc}`(.* <)?it_says>?`", (ROOT / "book" / page).read_text())


def test_the_warning_is_quoted_as_python_says_it(tmp_path):
    """A module that declares nothing, imported without the GIL; as an error it names the module, too."""
    python = undeclared(tmp_path, "mine")
    quoted = re.search(r"^RuntimeWarning: .*$", PAGE, re.M)[0]
    for flags in ([], ["-W", "error::RuntimeWarning"]):
        run = ran(python, *flags, "-c", "import mine", cwd=tmp_path)
        assert quoted in run.stderr
        assert bool(run.returncode) == bool(flags)


def quoted(beginning: str) -> str:
    """The line of the page that begins so, or the heading."""
    return re.search(rf"^(?:## )?({re.escape(beginning)}.*)$", PAGE, re.M)[1]


@pytest.mark.parametrize(("label", "form"), [(GIL, "the GIL held"), (FREE_THREADED, "an active thread state")])
def test_python_says_so_of_a_thread_state_that_is_not_there(label, form):
    run = ran(python_of(label), "-c", "import ctypes; ctypes.CDLL(None).PyThreadState_Get()")
    assert run.returncode == -signal.SIGABRT
    assert quoted(f"Fatal Python error: PyThreadState_Get: the function must be called with {form}") in run.stderr


SAID = {
    "ctypes.ArgumentError: ": "import ctypes; ctypes.CDLL(None).abs(1.5)",
    "Exception ignored while calling ctypes callback function": (
        "import ctypes; call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: 1 / 0); "
        "ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, call)"
    ),
    "OSError: libmine.so": "import ctypes; ctypes.CDLL('libmine.so')",
    "SystemError: <built-in function mine>": (
        "import ctypes as c; api = c.pythonapi; api.PyCFunction_NewEx.restype = c.py_object; fields = c.c_char_p, "
        "c.c_void_p, c.c_int, c.c_char_p; method = type('M', (c.Structure,), {'_fields_': [*zip('abcd', fields)]})("
        "b'mine', c.cast(api.PyErr_Occurred, c.c_void_p), 4); api.PyCFunction_NewEx(c.byref(method), None, None)()"
    ),
    "DeprecationWarning: This process": (
        "import os, threading; end = threading.Event(); threading.Thread(target=end.wait).start(); "
        "os.fork() or os._exit(0); end.set()"
    ),
}


@pytest.mark.parametrize("label", [GIL, FREE_THREADED])
@pytest.mark.parametrize("beginning", SAID)
def test_python_says_what_is_quoted(beginning, label):
    said = re.sub(r"pid=\d+", "pid=…", ran(python_of(label), "-c", SAID[beginning]).stderr)
    assert quoted(beginning) in said


def test_a_result_without_a_restype_is_cut_to_an_int():
    name = "import ctypes; name = ctypes.CDLL(None).getenv; name.argtypes = [ctypes.c_char_p]; cut = name(b'PATH'); "
    asked = "name.restype = ctypes.c_void_p; print(cut == ctypes.c_int(name(b'PATH')).value != name(b'PATH'))"
    assert ran(python_of(GIL), "-c", name + asked).stdout == "True\n"


def test_the_allocator_prints_what_it_holds_with_the_gil_and_zeros_without():
    assert "prints zeros" in SYMPTOMS["Memory grows"]
    told = {
        label: ran(python_of(label), "-c", "import sys; sys._debugmallocstats()").stderr
        for label in (GIL, FREE_THREADED)
    }
    assert re.search(r"^\s+\d+ +\d+ +\d+ +[1-9]\d* ", told[GIL], re.M)
    assert "Allocated Bytes: 0\n" in told[FREE_THREADED]


def test_another_interpreter_refuses_a_module_that_says_nothing(tmp_path):
    code = "from concurrent.interpreters import create; create().exec('import {}')"
    python = undeclared(tmp_path, "mine")
    run = ran(python, "-X", "gil=0", "-c", code.format("mine"), cwd=tmp_path)
    assert quoted("ImportError: module mine") in run.stderr
    # The page of questions names it.
    assert "does not support loading in subinterpreters" in ran(python_of(GIL), "-c", code.format("numpy")).stderr


def test_a_file_for_the_build_with_the_gil_is_not_found_without(tmp_path):
    suffix = ran(python_of(GIL), "-c", "import importlib.machinery as m; print(m.EXTENSION_SUFFIXES[0])").stdout.strip()
    (tmp_path / f"mine{suffix}").write_bytes(b"")
    found = {label: ran(python_of(label), "-c", "import mine", cwd=tmp_path).stderr for label in (GIL, FREE_THREADED)}
    assert "ModuleNotFoundError" in found[FREE_THREADED]
    assert "ModuleNotFoundError" not in found[GIL]
