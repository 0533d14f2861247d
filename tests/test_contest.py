"""The contest: what its kept runs are taken for, on runs whose truth is known, and the whole of it in small."""

import json
import math
from contextlib import nullcontext

import numpy as np
import pytest
from pyperf._utils import is_significant

from ffilab.judge.estimates import LEVEL, Location, Share
from ffilab.run.paths import ROOT
from ffilab.setup import relink
from ffilab.setup.catalogue import GIL
from ffilab.setup.layouts import as_installed
from notebooks.measuring import contest_results
from notebooks.measuring.contest_results import AGAIN, MEASURED_AS, MORE, OTHER, OURS, TITLES, TRUTHS
from studies import contest, kept

ROW, MEASURED = "layouts", tuple(row for row in TITLES if row not in MEASURED_AS)
MACHINE = {"date": "2026-11-24T03:00:00", "cpu": "a processor"}


def a_session(rng, rows=(ROW,), rounds=2, of_layout=0.0, of_session=0.0, noise=0.01, units=20):
    """A session as it is kept: units that scatter by `noise` around 0, and what a layout and the session add to CDLL
    over PyDLL."""
    runs, session = [], rng.normal(0, of_session)
    for number in range(rounds):
        luck = {OTHER: session + rng.normal(0, of_layout)} | MORE
        for row in rows:
            found = {
                name: {"logs": (luck.get(name, 0.0) + rng.normal(0, noise, units)).tolist()}
                for name in (AGAIN, *MORE, OTHER)
            }
            runs.append({"round": number, "row": row, "seconds": 20.0 + number, "ratios": found})
    return {"machine": MACHINE, "instructions": {AGAIN: 1.0, "1 % more": 1.0101, "2 % more": 1.02}, "runs": runs}


def standing(row=ROW, count=40, **how):
    rng = np.random.default_rng(7)
    return contest_results.standing([a_session(rng, **how) for _ in range(count)]).set_index("row").loc[row]


@pytest.mark.parametrize(("rounds", "count", "compared"), [(2, 5, [10, 5, 4]), (1, 4, [4, 0, 2])])
def test_no_run_is_in_two_comparisons_of_one_truth(rounds, count, compared):
    found = contest_results.runs([a_session(np.random.default_rng(1), rounds=rounds) for _ in range(count)], ROW)
    assert [len(differences) for differences in contest_results.compared(found).values()] == compared


@pytest.mark.parametrize(
    ("how", "broken"),
    [({}, set()), ({"of_layout": 0.05}, set(TRUTHS[1:])), ({"of_session": 0.05}, {TRUTHS[2]})],
    ids=["nothing", "a layout", "a session"],
)
def test_what_a_level_adds_breaks_the_promises_from_there_on(how, broken):
    own = standing(**how)
    assert {truth for truth in TRUTHS if own[truth].at().low > 1 - LEVEL} == broken
    for truth, name in zip(TRUTHS, (AGAIN, OTHER, OTHER)):
        wider = own[f"scatter, {truth}"] / own[f"stated, {name}"]
        assert wider > 2 if truth in broken else wider == pytest.approx(1, abs=0.35)


def test_what_is_known_of_sessions_keeps_the_third_promise():
    how = {"of_session": 0.004, "noise": 0.002, "count": 200}
    assert standing(**how)[TRUTHS[2]].at().low > 1 - LEVEL > standing(OURS, **how)[TRUTHS[2]].at().low


def test_too_few_runs_say_nothing():
    own = standing(count=1, rounds=1)
    assert own[TRUTHS[1]] is own[TRUTHS[2]] is None
    assert math.isnan(own[f"scatter, {TRUTHS[0]}"])
    assert contest_results.counted(None) == "not compared"


def test_the_tables_and_the_words_name_every_row_that_ran():
    rng = np.random.default_rng(3)
    sessions = [a_session(rng, rows=MEASURED, of_session=0.05) for _ in range(20)]
    for session in sessions:
        for run in session["runs"]:
            run["seconds"] = 5.0 if run["row"] == "timeit" else 20.0
    found = contest_results.standing(sessions)
    for table in (contest_results.decisions, contest_results.half_widths):
        assert list(table(found).row) == list(TITLES.values())
    few = contest_results.half_widths(found, enough=False).set_index("row")
    assert set(few.filter(like="scatters").to_numpy().ravel()) == {"too few sessions"}
    assert "promises too much" not in contest_results.in_words(sessions[:2])
    said = contest_results.in_words(sessions)
    assert "1.01 %, 2.00 % more instructions" in said
    assert "Same binary: no row" in said
    assert f"Another session: certainly more than 2% false alarms: {'; '.join(TITLES[row] for row in MEASURED)}" in said
    assert f"{TITLES['timeit']} take fewer seconds" in said


def test_students_t_is_that_of_pyperf():
    rng = np.random.default_rng(5)
    slow, fast = rng.normal(1.02, 0.02, 40), rng.normal(1.0, 0.02, 40)
    found = contest.students(slow, fast)
    assert found.centre / found.error == pytest.approx(is_significant(slow.tolist(), fast.tolist())[1], rel=0.02)
    assert (found.freedom, found.n) == (78, 80)


def test_what_is_kept_gives_the_same_estimate():
    values = np.random.default_rng(6).normal(0.1, 0.01, 20)
    again = contest_results.estimate(json.loads(json.dumps(contest.as_json(values))))
    assert again.at().value == pytest.approx(Location.of(values, log=True).at().value, abs=1e-5)
    one = Location(0.1, 0.01, 4.5, 5, log=True)
    assert contest_results.estimate(json.loads(json.dumps(contest.as_json(one)))) == one


def test_the_plan_has_every_row_and_was_written_without_a_result():
    text = (ROOT / "book" / "contest.md").read_text()
    assert "_generated" not in text
    rows = ["timeit", "pyperf in turns", "--fast", "paired in one process", "one binary", "over layouts", "hyperfine"]
    assert [row for row in rows if row not in text] == []


def test_an_interrupted_study_keeps_its_runs(tmp_path, monkeypatch, quiet_progress):
    """Ctrl-C in the third run: two are kept, and the next session is put behind them."""
    measured = []

    def measure(at):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(at)
        return {name: np.zeros(3) for name in contest_results.PAIRS}

    monkeypatch.setattr(contest, "ROWS", {row: (False, measure) for row in MEASURED})
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(contest.instructions, "available", lambda: None)
    monkeypatch.setattr(contest, "counted", lambda: ({contest_results.CALL: 300}, {AGAIN: 1.0}))
    monkeypatch.setattr(contest.layout_pool, "make", lambda *_, **__: {GIL: [as_installed(GIL)] * 2})
    monkeypatch.setattr(contest.relink, "missing", lambda label: None)
    # Nothing is measured: it need not wait for who does.
    monkeypatch.setattr(contest, "alone", nullcontext)
    for _ in range(2):
        measured.clear()
        with pytest.raises(KeyboardInterrupt):
            contest.main("smoke")
    sessions = json.loads((tmp_path / "contest.json").read_text())
    assert [len(session["runs"]) for session in sessions] == [2, 2]


@pytest.mark.full
@pytest.mark.skipif(relink.missing(GIL) is not None, reason="no layouts here")
def test_contest_in_small_keeps_every_row(tmp_path, monkeypatch, quiet_progress):
    monkeypatch.setattr(kept, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(contest, "RECORDS", tmp_path / "records")
    contest.main("smoke", sessions=1)
    (session,) = json.loads((tmp_path / "results" / "contest.json").read_text())
    rows = [run["row"] for run in session["runs"]]
    assert sorted(rows) == sorted([*MEASURED, *(row for row in MEASURED if row != contest.ONCE)])
    assert len({run["layout"] for run in session["runs"]}) == contest.ROUNDS
    for run in session["runs"]:
        assert set(run["ratios"]) == set(contest_results.PAIRS)
    assert session["instructions"]["2 % more"] == pytest.approx(1.02, abs=0.005)
    assert len(list((tmp_path / "records" / "contest").glob("*/contest.jsonl"))) == 8
    assert isinstance(contest_results.standing([session]).iloc[0]["2 % more"], Share | None)
