"""What a wheel costs: the page from sessions, and the least case of the study."""

import json
import re

import pytest

from ffilab.page import cost, evidence
from ffilab.run.paths import ROOT
from studies import cost as study
from studies import cost_results as results
from studies import kept

MACHINE = {"cpu": "a processor", "cores": 2, "date": "2026-11-25T12:00:00", "compiler": "cc 12"}


def run(row, count, seconds):
    spent = {"seconds": seconds, "processor": seconds, "mib": 200}
    return {
        "row": row,
        "functions": count,
        "clean": spent,
        "again": spent,
        "built": 4096,
        "stripped": 2048,
        "load": 0.5,
    }


def a_session(pybind11=3.0, cython=2.0):
    """Every tool takes a second for ten functions; by nanobind's commands, two take so many times as long and as many
    bytes."""
    runs = [run(tool, count, count / 10) for tool in results.TOOLS for count in results.SIZES]
    done = [
        {"row": tool, "kind": kind, "processor": factor, "stripped": factor * 1000}
        for tool, factor in {"nanobind": 1.0, "pybind11": pybind11, "Cython": cython}.items()
        for kind in ("functions", "classes")
    ]
    runs.append(run("nanobind, split", 100, 5.0))
    return {"machine": MACHINE, "packages": {"nanobind": "3.1.0"}, "runs": runs, "published": done, "wheels": []}


SECONDS, BYTES = "N1: pybind11, seconds to compile, functions", "N1: pybind11, bytes, functions"


@pytest.mark.parametrize(
    ("times", "claim", "word"),
    [
        ((3.0, 3.0, 3.0), SECONDS, "holds"),
        ((2.0, 2.0, 2.0), SECONDS, "less here"),
        ((6.0, 6.0, 6.0), SECONDS, "more here"),
        # Its edge lies inside of the interval.
        ((2.0, 2.7, 3.4), SECONDS, "too close to call here"),
        # Two make none of seconds, and one decides on bytes.
        ((3.0, 3.1), SECONDS, "too few sessions"),
        ((3.5,), SECONDS, "too few sessions"),
        ((3.5,), BYTES, "holds"),
    ],
)
def test_a_published_range_is_held_to_what_was_found(times, claim, word):
    rows = results.published([a_session(each, 3.5) for each in times])
    assert {row["claim"]: row["verdict"] for row in rows}[claim] == word


def wheel(row, on, *loads):
    return {"row": row, "on": on, "wheel": f"cp-{on}", "loads": list(loads)}


def test_the_fewest_wheels_are_counted_over_all_forms_of_a_tool():
    labels = ["3.13", "3.14", "3.14t"]
    made = [wheel("C API", label, label) for label in labels] + [wheel("C API, stable ABI", "3.13", "3.13", "3.14")]
    made += [wheel("pybind11", label, label) for label in labels[:2]]
    found = {row["name"]: row for row in results.needed(made)}
    for name, each, chosen, left in (("C API", 3, 2, []), ("pybind11", 2, 2, ["3.14t"])):
        assert found[name]["each"] == each
        assert len(found[name]["chosen"]) == chosen
        assert found[name]["left"] == left
    assert "C API, stable ABI" in {each["row"] for each in found["C API"]["chosen"]}


def test_the_page_says_when_there_are_no_sessions(tmp_path):
    assert "not run yet" in cost.page({}, tmp_path)


def test_a_session_that_was_stopped_shows_the_largest_size_that_every_tool_has(tmp_path):
    whole, stopped = a_session(), a_session()
    stopped["runs"] = [run for run in stopped["runs"] if (run["row"], run["functions"]) != ("PyO3", 720)]
    del stopped["wheels"]
    assert results.largest([stopped]) == 100
    assert results.largest([whole]) == results.largest([stopped, whole]) == 720
    page = cost.page(results.table([{**stopped, "published": []}]), tmp_path)
    assert "| 100 functions | s, clean |" in page
    assert "was not tried in these sessions" in page


def test_what_is_kept_makes_a_page_that_is_short(tmp_path):
    text = (ROOT / "book" / "wheel_cost.md").read_text() + cost.page(evidence.kept_evidence("wheel_cost"), tmp_path)
    without_pictures = re.sub(r"```\{raw\} html.*?```", "", text, flags=re.S)
    prose = " ".join(line for line in without_pictures.splitlines() if not line.startswith("|"))
    assert len(prose.split()) <= 600
    # The names of this machine's folders, which a line of an error may hold.
    assert not re.search(r"/(tmp|home|Users)/", json.dumps(evidence.kept_evidence("cost")))


def test_the_kept_table_is_that_of_the_kept_sessions():
    """To renew it: as at the end of a session."""
    assert results.table(evidence.kept_evidence("cost")) == evidence.kept_evidence("wheel_cost")


def test_one_line_changes_and_the_rest_is_left_alone(tmp_path):
    study.write("nanobind", tmp_path, 3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    lines = (tmp_path / "bound.cpp").read_text().splitlines()
    study.write("nanobind", tmp_path, 3, is_changed=True)
    changed = (tmp_path / "bound.cpp").read_text().splitlines()
    assert sum(old != new for old, new in zip(lines, changed, strict=True)) == 1
    assert [path.name for path, then in before.items() if path.stat().st_mtime_ns != then] == ["bound.cpp"]


def test_what_is_kept_of_an_error_names_no_folder():
    text = "/tmp/a/bound.cpp:3:1: fatal error: '/opt/b/c.h' is missing, -I/usr/d"
    assert study.without_folders(text) == "bound.cpp:3:1: fatal error: 'c.h' is missing, d"


@pytest.mark.full
def test_the_least_case_builds_changes_and_calls_what_it_built(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    study.main("smoke")
    (session,) = json.loads((tmp_path / "cost.json").read_text())
    assert {(run["row"], run["functions"]) for run in session["runs"]} == {("C API", 10), ("cffi", 10)}
    assert all(0 < run["stripped"] <= run["built"] for run in session["runs"])
    assert all(run[when][what] > 0 for run in session["runs"] for when in ("clean", "again") for what in run[when])
    assert {wheel["row"]: wheel["loads"] for wheel in session["wheels"]} == {"C API": ["3.14"], "cffi": ["3.14"]}
    assert {done["kind"] for done in session["published"]} == {"functions", "classes"}
