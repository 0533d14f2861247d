"""The bindings, how each is loaded, and the calls that all of them answer. Standard library only: workers import this
file.

A binding is one folder beside this file: a project, built by its own tool, whose `binding.toml` says how it is called
here.
"""

import importlib
import os
import sys
import sysconfig
import tomllib
from array import array
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
DECLARATION = "binding.toml"


# [bindings]
# What the chapter knows of a binding.
# project: the folder that builds it. module: what is imported. part: the attribute of the module that holds the
# functions; None for the module itself. loads_at_run_time: takes any C library by its name, without a compiler.
# contracts: calls that it answers otherwise than most bindings, with the answer (see
# tests/boundary/test_conformance.py). of: the binding that this is another form of; None for a binding of its own.
# signatures: those in which a form is timed, if it differs in these alone.
Binding = namedtuple("Binding", "project module part loads_at_run_time contracts of signatures")


def declarations():
    """What the projects beside this file say: folder to the contents of its binding.toml."""
    found = {}
    for project in os.listdir(HERE):
        path = os.path.join(HERE, project, DECLARATION)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[project] = tomllib.load(file)
    return found


def in_order(said, kind="binding"):
    """Bindings by title, in the order that they ask for. kind: `variant` for other forms of a binding."""
    found = [(one, project, text) for project, text in said.items() for one in text.get(kind, [])]
    found.sort(key=lambda each: (each[0]["order"], each[0]["title"]))
    return {
        one["title"]: Binding(
            project,
            one["module"],
            one.get("part"),
            one.get("loads-at-run-time", False),
            text.get("contracts", {}),
            one.get("of"),
            one.get("signatures", []),
        )
        for one, project, text in found
    }


DECLARED = declarations()
BINDINGS = in_order(DECLARED)
# Other forms of some of them: compared in a few cells only.
VARIANTS = in_order(DECLARED, "variant")
EVERY_FORM = {**BINDINGS, **VARIANTS}
# A project to the one that stands in for it on some interpreters.
STANDS_IN = {text["stands-in-for"]: project for project, text in DECLARED.items() if "stands-in-for" in text}
# [/bindings]

# [signatures]
FEW_DOUBLES, MANY_DOUBLES = array("d", bytes(8 * 1_000)), array("d", bytes(8 * 1_000_000))

# Signature: (statement that is timed, setup). `m` holds the functions of one binding.
SIGNATURES = {
    "no-op": ("f()", "f = m.noop"),
    "→ int": ("f()", "f = m.answer"),
    "int → int": ("f(7)", "f = m.add_one"),
    "five ints": ("f(1, 2, 3, 4, 5)", "f = m.add_five"),
    "float → float": ("f(2.5)", "f = m.halve"),
    "str in, ASCII": ("f(s)", "f, s = m.code_points, 'mind the gap'"),
    "str in, é, first": ("f(a + b)", "f, a, b = m.code_points, 'mind th', 'é gap'"),
    "str in, é, again": ("f(s)", "f, s = m.code_points, 'mind thé gap'"),
    "str out": ("f()", "f = m.motto"),
    "bytes in": ("f(b)", "f, b = m.checksum, b'mind the gap'"),
    "bytes out": ("f(12, 7)", "f = m.make_bytes"),
    "1,000 doubles": ("f(x)", "f, x = m.ends, arms.FEW_DOUBLES"),
    "1,000,000 doubles": ("f(x)", "f, x = m.ends, arms.MANY_DOUBLES"),
    "list of 1,000 ints": ("f(x)", "f, x = m.sum_list, list(range(1_000))"),
    "sequence of 1,000 ints": ("f(x)", "f, x = m.sum_sequence, tuple(range(1_000))"),
    "struct by value": ("f(p)", "f, p = m.dot, m.Point(3.0, 4.0)"),
    "struct by pointer": ("f(p, 1.0)", "f, p = m.scale, m.Point(3.0, 4.0)"),
    "callback": ("f(c, 7)", "f, c = m.apply, m.callback(lambda x: x)"),
    "callback, detached": ("f(c, 7)", "f, c = m.apply_detached, m.callback(lambda x: x)"),
    "error → exception": ("try:\n    f(-1.0)\nexcept ValueError:\n    pass", "f = m.root"),
    "no-op, detached": ("f()", "f = m.noop_detached"),
    "new C++ object": ("C(5)", "C = m.Counter"),
    "C++ method": ("c.add(1)", "c = m.Counter(5)"),
    "C++ method, unlocked": ("c.add_unlocked(1)", "c = m.Counter(5)"),
}
# [/signatures]


# [load]
def place(folder):
    """Where the extensions for this interpreter are."""
    return os.path.join(folder, sysconfig.get_config_var("SOABI"))


def load(folder, binding):
    """The functions of one binding. Raises ImportError with the reason that the build left, if it left one."""
    chosen = EVERY_FORM[binding]
    here = place(folder)
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(chosen.module)
    except ImportError:
        note = os.path.join(here, f"missing-{chosen.project}.txt")
        if os.path.exists(note):
            with open(note, encoding="utf-8") as text:
                raise ImportError(text.read()) from None
        raise
    return functions(loaded, chosen)


def functions(loaded, binding):
    """The object that holds the functions of a binding, in its module."""
    return getattr(loaded, binding.part) if binding.part else loaded


# [/load]
