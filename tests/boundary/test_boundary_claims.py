"""The chapter on the boundary: its experiments answer, its claims get what they ask for, and a binding is one
folder."""

import re
import runpy
import shutil
from types import SimpleNamespace

import pytest

from ffilab.judge.claims import declared
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.measure.plan import plan
from ffilab.measure.session import Reading
from ffilab.run.budget import BUDGETS, Budget
from ffilab.run.paths import BY_PRODUCTS, NATIVE
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import costs, exercise, experiment, inside, looks, talk, tools
from notebooks.boundary.experiment import BINDINGS, name
from tests.boundary.test_inside import profiled
from tests.helpers.golden_pages import FOLDERS, POOR
from tests.helpers.of_chapter import PAIR, Golden, judged, rows_of

SOURCES = NATIVE / "boundary"
FOLDER = {"sources": experiment.SOURCES, "folder": experiment.LIBRARIES}


# ---- the experiments ----

EXPERIMENTS = [
    (experiment.first_use, {"binding": experiment.FLOOR, "linking": "default"}, set(tools.FIRST_USE)),
    (experiment.first_use, {"binding": experiment.FLOOR, "linking": "lazy"}, set(tools.FIRST_USE)),
    (experiment.one_object, {"binding": "Cython", "method": "add", "threads": 2, "calls": 100}, {"lost", "refused"}),
    (experiment.own_interpreter, {"binding": "C API"}, {"said"}),
]


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    rows = rows_of(GIL, function, {**FOLDER, **arguments})
    assert all(set(row) == columns for row in rows)


def test_where_a_second_interpreter_takes_a_binding_it_is_called_back_there(build):
    """Also from a call that let go of the GIL. A binding that does not live there says so at its import."""
    absent = looks.looked_up([build], False)[build]
    for binding in set(BINDINGS) - set(absent):
        [row] = rows_of(build, experiment.own_interpreter, {**FOLDER, "binding": binding})
        assert row["said"] is None or re.search("ImportError: .*interpreter", row["said"]), (binding, row)


@pytest.mark.full
@pytest.mark.tool("valgrind")
def test_call_trees_show_the_two_paths():
    session = SimpleNamespace(observe=lambda title, look: look())
    trees = {b: inside.nodes(lines) for b, lines in looks.call_trees(session, {GIL: {}}).items()}
    for binding, tree in trees.items():
        assert inside.links(tree, binding).met.all(), binding
        assert tree[0].share == 1
        assert all(0 < node.share <= 1 for node in tree)
    assert inside.below(trees["ctypes CDLL"], "ffi_call") > 0


def test_the_plan_of_the_claims_has_the_cells_that_claims_compare():
    made, pairs = plan("claims", experiment.compared(), PAIR, BUDGETS["quick"], 1), talk.pairs()
    compared = {costs.cell(*way) for ratio in pairs.values() for way in ratio.values()}
    surcharges = {(label, name(experiment.FLOOR, one)) for label in PAIR for one in (experiment.INT, *experiment.TAXED)}
    texts = {(label, experiment.TEXT_MADE) for label in PAIR} | {(FREE_THREADED, experiment.TEXT_MADE + experiment.ON)}
    assert compared | surcharges | texts <= {(label, arm.name) for label, arm in made.cells()}
    assert all(arm.gil == arm.name.endswith((experiment.ON, "(GIL on)")) for arm in made.arms)
    assert set(pairs) <= {test.number for claim in declared("boundary").claims for test in claim.tests}


# ---- the claims ----


@pytest.mark.parametrize(
    ("both", "answer"),
    [
        ([(11 + n % 2, 5, 1) for n in range(10)], YES),
        ([(0.5 + 0.1 * (n % 2), 20, 30) for n in range(10)], NO),
        ([(30, 2, 1), (0, 30, 60)] * 2, OPEN),
        # However many samples it has, one process decides nothing.
        ([(9000, 200, 20)], OPEN),
    ],
)
def test_the_hand_off_holds_is_refuted_or_stays_open(both, answer):
    profiles = [profiled(*groups) for groups in both]
    found = {"ctypes CDLL": profiles, "ctypes PyDLL": [profiled(0, taken, rest) for taken, _, rest in both]}
    row = judged(with_observations({GIL: found, FREE_THREADED: {}}, "no valgrind"))["A10"]
    parts = [part for part in row["parts"] if part["kind"] == "side" and part["experiment"] == "corrected"]
    assert [part["verdict"] for part in parts] == [answer] * 2


def with_observations(profiles, trees):
    """The golden session with other profiles and call trees."""
    session = Golden("boundary")
    seen = {"where the time goes, by process": profiles, "call trees": trees, "the talk's loop, profiled": {}}
    session.observed = lambda title, *_: seen[title]
    return session


def test_claims_without_a_tool_or_a_binding_have_a_reason(monkeypatch):
    # A poor machine, as if its smoke test were a result: no cargo, no perf, no valgrind.
    monkeypatch.setattr(Budget, "is_result", True)
    reasons = {claim: row["reason"] for claim, row in judged(Reading("boundary", FOLDERS[POOR] / "boundary")).items()}
    assert "Neither perf nor valgrind is at hand" in reasons["A10"]
    assert "valgrind" in reasons["A11"]
    assert "no cargo" in reasons["A23"]
    # One path was seen. Instructions that were counted are no shares of time.
    trees = {"ctypes CDLL": Golden("boundary").observed("call trees")["ctypes CDLL"]}
    looks = [profiled(60, 20, how="callgrind, own cost")]
    counted = {label: dict.fromkeys(("ctypes CDLL", "ctypes PyDLL"), looks) for label in PAIR}
    rows = judged(with_observations(counted, trees))
    assert rows["A11"]["qualifier"] == "1 yes, 2 no number"
    assert "PyO3 was not built" in rows["A11"]["reason"]
    assert "instructions were counted" in rows["A10"]["reason"]


# ---- a binding is one folder ----


def test_a_binding_is_one_folder(tmp_path):
    """Its binding.toml puts it in its place."""
    for path in NATIVE.glob("boundary/*/binding.toml"):
        (tmp_path / path.parent.name).mkdir()
        shutil.copy(path, tmp_path / path.parent.name)
    shutil.copy(SOURCES / "arms.py", tmp_path)
    for title, order in (("Zig", 5), ("SWIG", 1000)):
        (tmp_path / title.lower()).mkdir()
        (tmp_path / title.lower() / "binding.toml").write_text(
            f'[[binding]]\ntitle = "{title}"\norder = {order}\nmodule = "boundary_{title.lower()}"\n'
        )
    found = runpy.run_path(str(tmp_path / "arms.py"))
    assert tuple(found["BINDINGS"]) == ("Zig", *BINDINGS, "SWIG")
    assert found["BINDINGS"]["Zig"].module == "boundary_zig"
    assert found["STANDS_IN"] == {"pyo3": "pyo3_0_27"}


def test_the_page_on_the_bindings_shows_every_file_of_every_project():
    page = (NATIVE.parent / "notebooks" / "boundary" / "bindings.md").read_text()
    shown = set(re.findall(r"literalinclude} ../../native/boundary/(\S+)", page))
    folders = [path.parent for path in SOURCES.glob("*/binding.toml")]
    neither = {"binding.toml", "crates.lock"}
    there = {path for folder in folders for path in folder.rglob("*") if path.is_file() and path.name not in neither}
    assert {str(path.relative_to(SOURCES)) for path in there if not BY_PRODUCTS & set(path.parts)} == shown


# ---- the exercises ----


DECLARATION = """
import ctypes, os

class Int:
    @classmethod
    def from_param(cls, value):
        {}
"""


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("return ctypes.c_int(value)", "gave -2147483648, and the contract asks for OverflowError"),
        ("os.abort()", "the process ended"),
        ("return ctypes.c_int(int(value))", "asks for TypeError"),
    ],
)
def test_a_declaration_is_held_to_the_contract(answer, says):
    """The page's own solution keeps it: see tests/test_exercises.py."""
    lines = exercise.check_declaration(DECLARATION.format(answer))
    assert says in "\n".join(lines)
    assert all(line.startswith("not correct") for line in lines)
