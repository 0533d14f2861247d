"""The chapter on arrays: every tool reads what it may, in place; what it hands out is freed; the analysis copes with
what golden records do not hold."""

import sys
import sysconfig

import pandas as pd
import pytest

from ffilab.judge.numbers import numbers_of
from ffilab.judge.sentences import sentences_of
from ffilab.run.paths import NATIVE_OUT
from notebooks.arrays import exercise, experiment, numbers
from tests.helpers.of_chapter import Golden, result_of, rows_of

BUILT = {"folder": str(NATIVE_OUT / "arrays")}
# What all tools take as it is.
PLAIN = ("doubles", "2-d", "read-only")


@pytest.mark.parametrize("tool", experiment.CHECKED)
def test_what_fits_is_read_in_place_and_nothing_crashes(build, tool):
    rows = rows_of(build, experiment.fates, {**BUILT, "tool": tool, "module": experiment.CHECKED[tool]})
    found = {row["given"]: row["fate"] for row in rows}
    assert list(found) == list(experiment.passed())
    assert {given: found[given] for given in PLAIN} == dict.fromkeys(PLAIN, experiment.IN_PLACE)
    # Who looks at the type never reads it wrongly; who is not to copy refuses what does not fit.
    if tool not in ("cffi", "ctypes by address"):
        assert experiment.WRONG not in {
            found[given] for given in ("float32", "int64", "other byte order", "every second")
        }
    if tool.endswith("noconvert"):
        assert {found[given] for given in ("float32", "int64", "every second", "backwards")} == {experiment.REFUSED}
        assert experiment.COPIED not in found.values()


@pytest.mark.parametrize("way", experiment.WAYS_OUT)
def test_what_comes_out_lives_as_long_as_its_last_view(build, way):
    tool, make, _ = experiment.WAYS_OUT[way]
    found = result_of(
        build, experiment.ownership, {**BUILT, "way": way, "module": experiment.TOOLS[tool], "make": make}
    )
    assert found["outlives"], "freed under its view"
    assert found["freed"], "kept when its last view is gone"
    assert found["lets go"], "the array that came in is kept"


def test_a_writer_beside_ends_with_its_reader(build):
    arguments = {**BUILT, "tool": "nanobind", "module": experiment.TOOLS["nanobind"], "seconds": 0.2}
    found = result_of(build, experiment.written_beside, arguments)
    assert 0 <= found["mixed"] <= found["reads"] > 0


def test_a_tool_that_is_not_here_says_why(tmp_path, monkeypatch):
    here = tmp_path / sysconfig.get_config_var("SOABI")
    here.mkdir()
    (here / "missing-nowhere.txt").write_text("there is no cargo")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(ImportError, match="there is no cargo"):
        experiment.load(str(tmp_path), "arrays_nowhere.part")
    with pytest.raises(ModuleNotFoundError):
        experiment.load(str(tmp_path), "arrays_elsewhere")


def made_up(**fates_of_tools) -> pd.DataFrame:
    """Fates of one array, by tool."""
    one = {"given": "float32", "by": "", "ended": "ok"}
    return pd.DataFrame([{**one, "tool": tool, "fate": fate} for tool, fate in fates_of_tools.items()])


def test_a_tool_that_died_is_not_called_absent():
    lost = pd.DataFrame({"tool": list("acb"), "ended": ["killed by SIGSEGV", "killed by SIGSEGV", "exit code 1"]})
    grid = numbers.fate_grid(pd.concat([made_up(a=experiment.COPIED), lost], ignore_index=True))
    assert grid.loc["float32"].to_dict() == {"a": "copied or died", "b": numbers.NOT_HERE, "c": "died"}
    session = Golden("arrays", {"fates": lost})
    assert numbers_of(session)["tools that copy"].missing == "no process brought a result"


def test_a_sentence_follows_the_fates():
    nothing = made_up(a=experiment.COPIED, b=experiment.IN_PLACE)
    session = Golden("arrays", {"fates": nothing})
    assert numbers_of(session)["tools that read wrongly"].estimate.interval.value == 0
    assert sentences_of(session)["wrong"] == "Nothing was read wrongly here."
    assert sentences_of(session)["copies"] == "Those that copy: a (float32)."


def test_memory_that_is_lost_is_named():
    owners = pd.DataFrame([{"way": "x", "freed": False, "outlives": True, "lets go": True, "ended": "ok"}])
    session = Golden("arrays", {"ownership": owners})
    assert sentences_of(session)["freed"] == "Not all do it right: freed under the view, or never, through x."


@pytest.mark.parametrize("left_out", ["", "c_contiguous", "aligned", "dtype"])
def test_the_exercise_wants_all_three_questions_asked(left_out):
    def readable(x):
        answers = {"dtype": x.dtype == float, "c_contiguous": x.flags.c_contiguous, "aligned": x.flags.aligned}
        return all(answer for question, answer in answers.items() if question != left_out)

    assert exercise.check_readable(readable)[0].startswith("Not yet: " if left_out else "Correct: ")
