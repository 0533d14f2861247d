"""What may cross: what is caught inside ends well on every interpreter, a wall ends the process; numbers count
children."""

from types import SimpleNamespace

import pandas as pd
import pytest

from ffilab.judge.estimates import Share
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside import crossings, experiment, figures
from tests.helpers.of_chapter import outcome_of


def play(label, scenes, first=experiment.FIRST):
    """Rows of some scenes, a child each."""
    return outcome_of(
        label, experiment.walls, {"folder": experiment.FOLDER, "scenes": scenes, "first": first, "count": 1}
    ).result


def rows(what, outcome="ends", answer="", label=GIL, **more):
    usual = {"ms": 5.0, "hooked": True, "printed": True, "refused": False, "raised": ""}
    return {"interpreter": label, "what": what, "outcome": outcome, "answer": answer, **usual, **more}


def session_of(**frames):
    """A session of these frames, by title."""
    known = {title.replace("_", " "): pd.DataFrame(found) for title, found in frames.items()}
    return SimpleNamespace(frame=lambda title, disturbed=False: known.get(title, pd.DataFrame()))


def test_what_is_caught_inside_ends_well_and_a_wall_ends_the_process(label):
    found = {row["what"]: row["outcome"] for row in play(label, experiment.WALLS)}
    caught = [what for what in found if "caught where" in what or "by its caller" in what]
    assert len(caught) == 4
    assert {found[what] for what in caught} <= {"ends", "not here"}
    walls = {found[what] for what in found if "between" in what or "not caught" in what}
    assert walls <= {"killed by SIGABRT", "not here"}
    assert found["C++, noexcept between"] == found["thread ended in noexcept"] == "killed by SIGABRT"


def test_python_remembers_each_callback_that_an_exception_left(build):
    scenes = {what: line for what, line in experiment.WALLS.items() if "through Python" in what}
    found = play(build, scenes)
    assert [(row["outcome"], row["raised"]) for row in found] == [("ends", ""), ("raises", "RecursionError")]
    assert list(crossings.told(pd.DataFrame(found)).outcome) == ["ends", "raises RecursionError"]


def test_a_callback_that_raises_is_told_to_the_hook_and_c_gets_what_the_tool_says(label):
    found = {row["what"]: row for row in play(label, experiment.CALLBACKS, experiment.MORE + experiment.FIRST)}
    assert found["ctypes"]["outcome"] == "ends"
    assert found["ctypes"]["hooked"]
    for tool in ("nanobind", "pybind11"):
        assert found[tool]["outcome"] in ("killed by SIGABRT", "not here")
        caught = found[f"{tool}, caught"]
        assert caught["outcome"] == "not here" or (caught["outcome"] == "ends" and caught["printed"])
    if found["cffi"]["outcome"] != "not here":
        assert [found[what]["answer"] for what in ("cffi", "cffi, error=7", "cffi, onerror")] == ["0", "7", "7"]
        assert [found[what]["printed"] for what in ("cffi", "cffi, error=7", "cffi, onerror")] == [True, True, False]


def test_a_state_for_the_callers_interpreter_comes_to_it(build):
    scenes = {what: f"elsewhere({experiment.WHOSE[what]!r})" for what in ("PyGILState_Ensure", "PyThreadState_New")}
    found = pd.DataFrame(play(build, scenes, experiment.ELSEWHERE + experiment.FIRST))
    assert list(crossings.is_at_home(found)) == [False, True]
    assert list(crossings.told(found).fate) == ["in the main interpreter", "in its caller's interpreter"]


def test_a_child_that_never_came_to_the_point_is_an_error():
    with pytest.raises(AssertionError, match="no such thing"):
        play(GIL, {"nothing": "1"}, "raise SystemExit('no such thing')")


def test_numbers_count_children_and_leave_out_what_was_not_built():
    session = session_of(
        exceptions=[
            rows("C++, not caught", "killed by SIGABRT"),
            rows("C++, not caught"),
            rows("C++, not caught", "not here"),
        ],
        exceptions_in_callbacks=[
            rows("ctypes", answer="5"),
            rows("ctypes", answer="0", hooked=False),
            rows("ctypes", "killed by SIGABRT", hooked=False),
            rows("cffi", "not here"),
        ],
        interpreters=[
            rows("PyGILState_Ensure", answer="1 0"),
            rows("PyGILState_Ensure", answer="1 1"),
            rows("ctypes", "killed by SIGABRT"),
        ],
    )
    made = crossings.number.makers(session)
    assert made[f"children killed: C++, not caught, {GIL}"]() == Share(1, 2)
    assert made[f"children that end well: C++, not caught, {GIL}"]() == Share(1, 2)
    assert made[f"ctypes callbacks after which C had another number than 0: {GIL}"]() == Share(1, 2)
    assert made[f"ctypes callbacks that sys.unraisablehook did not see: {GIL}"]() == Share(1, 2)
    assert made[f"threads of C in their caller's interpreter: PyGILState_Ensure, {GIL}"]() == Share(1, 2)
    assert "no child lived" in made[f"ctypes callbacks that came to their caller's interpreter: {GIL}"]()
    assert made[f"children killed: elsewhere, ctypes, {GIL}"]() == Share(1, 1)
    assert "not built" in made[f"children that end well: callback of cffi, {GIL}"]()
    assert not crossings.number.makers(session_of())[f"children killed: C++, not caught, {GIL}"]()


def test_the_table_says_what_each_action_did_and_what_c_got():
    frames = session_of(
        exceptions_in_callbacks=[rows("ctypes", answer="5"), rows("ctypes", answer="0", label=FREE_THREADED)]
    )
    table = figures.may_i_table(frames).set_index("may I …")
    assert list(table.loc["raise in a ctypes callback", list(figures.COLUMNS)]) == [
        "printed, C gets another number: 1 of 1",
        "printed, C gets 0: 1 of 1",
    ]
    assert set(table.loc["fork, a lock held", list(figures.COLUMNS)]) == {"–"}
    assert table.answer["raise in a ctypes callback"] == "no: catch all, return an error"
    assert table.answer["fork, a lock held"] == "–"
    assert len(table.columns) == 3


def test_an_action_may_be_done_if_all_did_well_or_all_that_kept_to_its_condition():
    one, other = pd.DataFrame([rows("a"), rows("a", "hangs")]), pd.DataFrame([rows("b")])
    told = [crossings.told(found) for found in (one, other)]
    assert crossings.may_i(told[1], "detach", told[0]) == "yes"
    assert crossings.may_i(told[0], "detach", told[1]) == "only if you detach"
    assert crossings.may_i(told[0], "detach", told[0]) == "no: detach"
    assert crossings.may_i(told[0], "detach", told[0][:0]) == "no: detach"
    assert crossings.may_i(told[1].assign(fate="hangs"), "", told[0][:0]) == "no"
    assert crossings.may_i(told[0][:0], "detach", told[1]) == "–"
