"""The chapter on sharing: what a child reads of objects whose counting is known; the rules on made-up records. No
speed."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge.claims import declared
from ffilab.judge.rules import NO, YES
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections import experiment as locks
from notebooks.sharing import exercise, experiment, figures, fragments, numbers, seed
from tests.helpers.of_chapter import about, counted, result_of, rows_of

SCALE, BUILT = {"scale": experiment.SCALE}, {"built": experiment.BUILT}
SHORT = {"milliseconds": 1}
RATES = {"alone", "together"}


# ---- the experiments ----


def test_the_script_of_cpython_is_read_by_an_interpreter_without_lzma(monkeypatch):
    """As one that was compiled with the packages of the README alone."""
    monkeypatch.setitem(sys.modules, "lzma", None)
    found = seed.script()
    assert found["release"] or "is not here" in found["reason"]


def test_the_reader_tells_what_is_known_of_objects():
    given = {"bindings": {"C API": locks.place("C API")}, **BUILT, **SCALE}
    rows = rows_of(FREE_THREADED, experiment.who_counts, given)
    read = {row["what"]: row["way"] for row in rows if row["binding"] == "C API"}
    assert read["function"] == "deferred"
    assert read["class"] == "per thread"
    assert read["instance"] == read["bound method"] == "plain"
    assert {row["way"] for row in rows} <= set(experiment.WAYS)


def test_the_manual_is_right_on_how_objects_are_counted():
    assert result_of(FREE_THREADED, experiment.documented_ways, BUILT | SCALE) == {"deferred": 1, "per thread": 1}
    deferring = {label: result_of(label, experiment.enabling, BUILT) for label in (GIL, FREE_THREADED)}
    assert deferring[FREE_THREADED]["a tracked object"] == 1
    assert deferring[GIL]["a tracked object"] == deferring[FREE_THREADED]["again"] == 0
    assert [result_of(label, experiment.interned, {})["survives"] for label in (GIL, FREE_THREADED)] == [0, 1]
    assert [result_of(label, experiment.sizes, {})["None"] for label in (GIL, FREE_THREADED)] == [16, 32]


def test_what_another_thread_has_read_is_freed_by_a_collection():
    at_once = {"MIMALLOC_PURGE_DELAY": "0"}
    for kind in experiment.KINDS:
        found = result_of(FREE_THREADED, experiment.storage_kept, {"kind": kind, **BUILT}, environment=at_once)
        assert found["cleared"] > 0.5 > found["collected"], kind


def test_an_undeclared_module_turns_the_gil_on_unless_it_is_forbidden():
    seen = {
        setting: result_of(FREE_THREADED, experiment.undeclared_import, {"setting": setting, **BUILT})
        for setting in experiment.SETTINGS
    }
    assert seen["no setting"] == {"gil": 1, "warnings": 1}
    assert (seen["PYTHON_GIL=0"]["gil"], seen["PYTHON_GIL=1"]["gil"]) == (0, 1)


def test_every_step_of_the_guide_has_a_kept_run_of_scale():
    said = figures.scale_said()
    assert len(said) == len(figures.STEPS) + 1
    assert not said["it said"].str.contains(draw.NOT_MEASURED).any()


def test_constants_are_immortal_from_bytecode():
    second = rows_of(FREE_THREADED, experiment.immortal_literals, {"which": "second"})
    first = rows_of(FREE_THREADED, experiment.immortal_literals, {"which": "first"})
    assert all(row["immortal"] for row in second)
    assert not next(row for row in first if row["literal"] == "float")["immortal"]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (experiment.one_item, {"cured": "both", **SCALE}),
        (experiment.constant, {"which": "first"}),
        (experiment.seven_objects, {"cured": experiment.ALL, **SCALE}),
        (experiment.library_lock, {"cured": "everything", **SCALE}),
        (experiment.apart, {"piece": "plain", "distance": 8, **BUILT}),
        (experiment.side_by_side, {"where": "one line", **BUILT}),
        (exercise.served, {"source": "def worker():\n    return lambda x: x < 100.5"}),
    ],
)
def test_an_experiment_brings_what_it_is_asked_for(function, arguments):
    result = result_of(FREE_THREADED, function, arguments | SHORT)
    assert result.keys() >= RATES or result["right"]


def test_a_thread_takes_and_leaves_bytes():
    assert {"added", "left", "again", "bytecode"} == set(result_of(FREE_THREADED, experiment.copies, {}))
    assert {"first", "later"} == set(result_of(FREE_THREADED, experiment.first_calls, {}))


# ---- the rules ----


def claim(identifier):
    return next(one for one in declared("sharing").claims if one.id == identifier)


def answers(identifier, **values):
    """What the rules of a claim say of made-up numbers, by the beginning of their part."""
    return {
        test.part: test.answer(values[test.number]).verdict for test in claim(identifier).tests if test.number in values
    }


def test_literals_of_a_first_import_refute_their_part_alone():
    said = answers(
        "F7", **{"literals immortal, second import": counted(1.0), "literals immortal, first import": counted(0.25)}
    )
    assert list(said.values()) == [YES, NO]


def test_what_does_not_scale_in_2024_and_does_now_is_refuted():
    name = "CPython's script, cmodule_function: two threads / one"
    (scales,) = answers("F5", **{name: about(1.9)}).values()
    (does_not,) = answers("F5", **{name: about(1.0)}).values()
    assert (scales, does_not) == (NO, YES)


def ratios(gains, **columns):
    return [{**columns, "alone": 1.0, "together": gain} for gain in gains]


def session_of(frames):
    """Frames by title, on a machine whose two cores do twice the work of one."""
    frames["two at once"] = pd.DataFrame({"processes": [2.0] * 4, "threads": [2.0] * 4})
    return SimpleNamespace(frame=lambda title: frames[title], machine={"cores_usable": 2})


def test_two_over_one_is_a_ratio_within_each_process():
    rows = ratios((0.2, 0.25, 0.3), cured="neither") + ratios((1.9, 2.0, 2.1), cured="both")
    found = numbers.two_over_one(pd.DataFrame(rows), cured="neither").interval
    assert found.value == pytest.approx(np.exp(np.log([0.2, 0.25, 0.3]).mean()))
    assert numbers.two_over_one(pd.DataFrame(rows), cured="both").interval.value == pytest.approx(2, rel=0.01)
    assert numbers.two_over_one(pd.DataFrame(rows), cured="the list") is None


def test_bindings_are_sorted_by_how_their_functions_are_counted():
    ways = {"C API": "deferred", "nanobind": "immortal", "PyO3": "plain", "pybind11": "plain"}
    rows = [{"interpreter": FREE_THREADED, "binding": one, "what": "function", "way": way} for one, way in ways.items()]
    session = session_of({numbers.WHO: pd.DataFrame(rows)})
    assert (
        fragments.by_way(session, "function") == "plain in PyO3 and pybind11; deferred in C API; immortal in nanobind"
    )
    assert set(ways) <= set(boundary.BINDINGS)


def test_the_self_check_refuses_wrong_answers():
    def of(result):
        session = SimpleNamespace(observe=lambda *_: {"ended": "ok", "error": "", "result": result})
        return exercise.check("", session)

    assert of({"right": False, "gain": 2.0})[0].startswith("Not correct")
    assert of({"right": True, "gain": 2.0})[0] == "Correct."
    assert len(of({"right": True, "gain": 0.5})) == 3
