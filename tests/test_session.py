"""The door through which a chapter measures: what is written, what is read back, and what is refused."""

import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffilab.measure import foreign
from ffilab.measure import session as sessions
from ffilab.measure.case import Case, Outcome, Program, Step
from ffilab.measure.children import flat
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED, GIL
from tests.helpers.of_chapter import hostile

pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")


def rows(*results):
    """A step that brings back these results, one after the other."""
    left = list(results)
    return lambda seed: Outcome(left.pop(0), "ok")


def test_a_frame_has_factors_results_process_and_end(session):
    steps = [Step(rows({"ns": n}, {"ns": n + 10}), {"way": way}) for n, way in ((1, "CDLL"), (2, "PyDLL"))]
    frame = session.run("calls", steps, 2)
    assert list(frame.columns) == ["interpreter", "way", "ns", "process", "round", "ended", "session"]
    assert sorted(frame.ns) == [1, 2, 11, 12]
    assert sorted(frame.process) == [0, 1, 2, 3]
    assert list(frame[frame.way == "CDLL"].ns) == [1, 11]
    assert set(frame.ended) == {"ok"}


def test_a_list_of_results_is_a_row_each_and_nesting_becomes_dots(session):
    frame = session.run("inner", [Step(rows([{"variant": v, "lost": {"share": 0.5}} for v in "ab"]))], 1)
    assert list(frame.variant) == ["a", "b"]
    assert list(frame["lost.share"]) == [0.5, 0.5]
    assert list(frame.process) == [0, 0]


@pytest.mark.parametrize("name", ["way", "process", "interpreter"])
def test_a_value_must_not_take_the_name_of_another_column(session, name):
    with pytest.raises(ValueError, match=name):
        session.run("clash", [Step(rows({name: 1}), {"way": "CDLL"})], 1)


@given(st.recursive(st.integers(), lambda inner: st.dictionaries(st.text("abc", min_size=1), inner), max_leaves=8))
def test_flat_loses_nothing(value):
    def leaves(item):
        return sum(map(leaves, item.values())) if isinstance(item, dict) else 1

    assert len(flat({"x": value})) == leaves(value)


def test_a_process_that_brings_nothing_stops_the_chapter_unless_it_may_fail(session):
    died = Step(lambda seed: Outcome(None, "killed by SIGSEGV", "boom"), {"way": "CDLL"})
    frame = session.run("may die", [died], 2, may_fail=True)
    assert list(frame.ended) == ["killed by SIGSEGV"] * 2
    with pytest.raises(UserError, match=r"must live, way CDLL.*killed by SIGSEGV.*boom"):
        session.run("must live", [died], 1)


def test_the_order_is_random_follows_the_seed_and_every_round_is_complete(session):
    steps = [Step(lambda seed: Outcome({}, "ok"), {"case": n}) for n in range(8)]
    frame = session.run("order", steps, 3)
    orders = [list(part.case) for _, part in frame.groupby("round")]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    seeds = [line["seed"] for line in session.record.children]
    assert len(set(seeds)) == len(seeds)


def test_what_was_looked_at_is_found_by_its_title_and_arguments(session):
    assert session.observe("sum", lambda a, b: a + b, 1, 2) == 3
    assert session.observe("sum", lambda a, b: a + b, 2, 2) == 4
    assert session.observed("sum", 1, 2) == session.observed("sum", 1) == 3
    with pytest.raises(UserError, match="sum"):
        session.observed("sum", 5, 5)
    # A page that is made from records asks for what it would look at, and for nothing like it.
    with pytest.raises(UserError, match="sum"):
        session.observed("sum", 1, whole=True)


def test_an_experiment_that_is_run_again_takes_the_place_of_the_first(session):
    for ns in (1, 2):
        frame = session.run("again", [Step(rows({"ns": ns}))], 1)
        assert list(frame.ns) == [ns]
    assert len(session.record.children) == 2
    assert session.record.children[0]["seed"] != session.record.children[1]["seed"]
    assert session.run("again", [], 1, columns=("ns",)).empty


def test_some_interpreters_may_fail_and_others_not(session):
    died = {label: Step(lambda seed: Outcome(None, "timeout"), interpreter=label) for label in (GIL, FREE_THREADED)}
    assert set(session.run("may", [died[FREE_THREADED]], 1, may_fail=[FREE_THREADED]).ended) == {"timeout"}
    with pytest.raises(UserError, match=f"on {GIL} brought no result: timeout"):
        session.run("must", list(died.values()), 1, may_fail=[FREE_THREADED])


def test_without_cases_there_is_a_frame_of_the_columns_that_were_named(session):
    frame = session.run("nothing", [], 3, columns=("kind", "log"))
    assert frame.empty
    assert not (frame.kind == "copy").any()
    assert list(frame.columns) == ["interpreter", "kind", "log", "process", "round", "ended", "session"]
    with pytest.raises(ValueError, match="no case"):
        session.run("without columns", [], 3)
    with pytest.raises(UserError, match="make chapter NAME=chapter"):
        session.frame("never run")


def test_reading_gives_what_measuring_gave_and_measures_nothing(tell, session, monkeypatch):
    def must_not_run(*_):
        raise AssertionError("a reading session measured")

    step = Step(rows({"ns": 1.5}, {"ns": 2.5}), {"way": "CDLL"})
    measured = session.run("calls", [step], 2), session.observe("fact", lambda: {"a": [1, None]})
    session.close()
    tell(source=str(session.folder.parent.parent))
    again = sessions.open_session("chapter", [])
    assert isinstance(again, sessions.Reading)
    assert again.interpreters == [GIL, FREE_THREADED]
    assert again.budget.name == "smoke"
    read = again.run("calls", [Step(must_not_run)], 9), again.observe("fact", must_not_run)
    assert read[0].equals(measured[0])
    assert read[1] == measured[1]
    with pytest.raises(UserError, match="timed plan 'calls'"):
        again.time("calls", [])


def test_only_the_newest_complete_session_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(sessions, "RECORDS", tmp_path)
    complete = sessions.Measuring("chapter", [GIL])
    complete.close()
    sessions.Measuring("chapter", [GIL])  # interrupted
    other = sessions.Measuring("other", [GIL])
    other.close()
    assert foreign.find(tmp_path, "chapter") == complete.folder
    assert foreign.find(complete.folder, "chapter") == complete.folder
    with pytest.raises(UserError, match="no complete session"):
        foreign.find(tmp_path, "third")


def test_bundles_of_one_name_are_unpacked_side_by_side(session, tmp_path):
    session.close()
    bundle = tmp_path / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(session.folder, "_build/records/chapter/one")
    first = foreign.unpacked(str(bundle))
    assert (foreign.find(first, "chapter") / sessions.MAIN).is_file()
    # Another bundle of the same name takes nobody's place.
    other = tmp_path / "elsewhere" / "bundle.tar.gz"
    other.parent.mkdir()
    with tarfile.open(other, "w:gz") as archive:
        archive.add(session.folder, "chapter/two")
    assert foreign.unpacked(str(other)) != first
    assert (foreign.find(first, "chapter") / sessions.MAIN).is_file()


def test_half_an_experiment_is_none(session, monkeypatch):
    """Interrupted in JupyterLab after some of its processes, and the session closed: nothing may rest on them."""

    def interrupted(seed):
        if len(session.record.children) == 3:
            raise KeyboardInterrupt
        return Outcome({"ns": 1}, "ok")

    with pytest.raises(KeyboardInterrupt):
        session.run("half", [Step(interrupted, {"n": n}) for n in range(4)], 2)
    session.close()
    assert len(session.record.children) == 3
    for reader in (session, sessions.Reading("chapter", session.folder)):
        with pytest.raises(UserError, match="half, which was interrupted"):
            reader.frame("half")


def test_a_closed_session_says_what_to_do(session):
    session.close()
    session.close()
    for use in (
        lambda: session.run("calls", [Step(rows({}))], 1),
        lambda: session.observe("fact", int),
        lambda: session.time("fine", []),
    ):
        with pytest.raises(UserError, match=r"run the cell with `chapter\.begin` again"):
            use()


def test_the_noise_of_a_record_was_looked_at_and_the_session_can_still_be_closed(session):
    assert session.record.noise.report
    session.close()
    assert session.record.end


def test_what_ran_and_under_which_environment_is_on_record(session):
    program = Program(("sh", "-c", "echo '{}'"), {"n": 1}, {"SHORT": "x", "PADDING": "x" * 4096})
    session.run("programs", [program], 1)
    line = session.record.children[0]
    assert line["what"] == ["sh", "-c", "echo '{}'"]
    assert line["environment"]["SHORT"] == "x"
    assert "(4096 characters)" in line["environment"]["PADDING"]


def test_a_case_gets_its_arguments_as_they_are(session, tmp_path):
    file = tmp_path / "experiment.py"
    file.write_text(
        "import os\n"
        "def look(threads, names, seed, built):\n"
        "    return {'double': 2 * threads, 'names': names, 'seed': seed, 'built': built, 'set': os.environ['X']}\n"
    )
    fixed = {"names": ["a", "b"], "seed": "{seed}", "built": "{built}/x.so"}
    cases = [
        Case(label, "look", {"threads": 4}, fixed, {"way": "w"}, {"X": "y"}, file=str(file))
        for label in (GIL, FREE_THREADED)
    ]
    frame = session.run("arguments", cases, 1)
    assert set(frame.double) == {8}
    assert set(frame.way) == {"w"}
    assert frame.names[0] == ["a", "b"]
    assert set(frame.set) == {"y"}
    assert [line["seed"] for line in session.record.children] == list(frame.seed)
    assert all(path.endswith("_build/native/x.so") for path in frame.built)
    text = (session.folder / sessions.MAIN).read_text()
    assert "{built}/x.so" in text


@pytest.mark.full
def test_the_gil_that_an_import_turned_on_stops_the_chapter(session, tmp_path):
    file = tmp_path / "experiment.py"
    file.write_text("import sys\ndef on():\n    return {}\n\nsys._is_gil_enabled = lambda: True\n")
    session.run("with", [Case(GIL, "on", file=str(file))], 1)
    with pytest.raises(UserError, match="the GIL was on at the end"):
        session.run("without", [Case(FREE_THREADED, "on", file=str(file))], 1)


def test_a_case_may_print_without_ending_its_line_and_returns_what_json_can_hold(session, tmp_path):
    file = tmp_path / "experiment.py"
    file.write_text("def dots():\n    print('.', end='')\n    return {'n': 1}\n\ndef sets():\n    return {'n': {1}}\n")
    assert session.run("dots", [Case(GIL, "dots", file=str(file))], 1).n.tolist() == [1]
    with pytest.raises(UserError, match="JSON cannot hold a set"):
        session.run("sets", [Case(GIL, "sets", file=str(file))], 1)


def test_a_program_prints_its_rows_last():
    printed = json.dumps([{"n": 1}, {"n": 2}])
    assert Program(("sh", "-c", f"echo noise; echo '{printed}'")).run().result == [{"n": 1}, {"n": 2}]
    assert Program(("sh", "-c", "echo nothing")).run().ended == "printed no result"
    with pytest.raises(UserError, match="no program nothing-like-it here"):
        Program(("nothing-like-it",)).run()


@pytest.mark.full
def test_a_timed_plan_that_was_interrupted_is_none_and_can_be_run_again(session, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    arms = [hostile("fine")]
    with monkeypatch.context() as patch:
        patch.setattr(sessions.runner, "_block", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.time("fine", arms)
    with pytest.raises(UserError, match="'fine', which was interrupted"):
        session.timed("fine")
    assert not session.time("fine", arms).cut_off


@pytest.mark.full
def test_timed_arms_lie_beside_the_processes_of_their_session(session):
    record = session.time("fine", [hostile("fine")])
    assert record.path == session.folder / "fine.jsonl"
    again = session.time("fine", [hostile("fine")])
    assert again.path == record.path
    assert len(list(session.folder.glob("fine.superseded-*.jsonl"))) == 1
    assert session.timed("fine") is again
    assert session.names == [f"chapter/{session.folder.name}/{name}" for name in ("session.jsonl", "fine.jsonl")]
    assert not record.cut_off
