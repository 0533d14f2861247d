"""`make more`: another session on top of those that a page rests on. And the history that outlives pages."""

import contextlib
import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
from made_up import FACTS, timed, write

from ffilab import cli, layout_pool
from ffilab.bench import session as sessions
from ffilab.bench.case import Outcome, Step
from ffilab.bench.plan import control_pair
from ffilab.budget import BUDGETS
from ffilab.errors import UserError
from ffilab.judge import history, ledger, statistics
from ffilab.judge.estimates import Counted, Measurement
from ffilab.press import book
from ffilab.press.chapters import FACTS as PAGE_FACTS
from ffilab.press.chapters import Chapter, digests
from ffilab.provision.catalogue import GIL

# ---- which sessions a page rests on ----

CORNER = "loaders"


@pytest.fixture
def page(tmp_path):
    """A chapter with a page that is made up, and what is known of it."""

    def make(**changed):
        each = Chapter(CORNER, executed_folder=tmp_path)
        names = ("20260102T1", "20260102T1", "20260101T1")
        facts = {
            "corner": CORNER, "budget": "quick", "interpreters": {}, "read": True,
            "records": [f"records/{CORNER}/{name}/{file}.jsonl" for name, file in zip(names, ("session", "calls", "session"))],
        }  # fmt: skip
        facts["digests"] = digests(CORNER, facts)
        each.executed.parent.mkdir(parents=True, exist_ok=True)
        each.executed.write_text("{}")
        (each.executed.parent / PAGE_FACTS).write_text(json.dumps(facts | changed))
        return each

    return make


def test_the_sessions_of_a_page_are_named_once_and_in_their_order(page):
    assert book.sessions(page(), "quick") == ["20260102T1", "20260101T1"]


def test_a_page_that_is_stale_is_measured_afresh(page, capsys, monkeypatch):
    said = []
    monkeypatch.setattr(book, "say", said.append)
    fresh = page()
    stale = {**fresh.facts["digests"], "the experiment": "another"}
    assert book.sessions(page(digests=stale), "quick") == []
    assert len(said) == 1
    assert "loaders is measured afresh" in said[0]
    assert said[0].endswith("has changed: the experiment")


def test_another_budget_is_refused(page):
    with pytest.raises(UserError, match="BUDGET=quick: use the same for `make more`"):
        book.sessions(page(), "full")


def test_a_chapter_without_a_page_has_no_session(tmp_path, page):
    assert book.sessions(Chapter(CORNER, executed_folder=tmp_path / "nothing"), "quick") == []
    each = page()
    (each.executed.parent / PAGE_FACTS).unlink()
    assert book.sessions(each, "quick") == []


def test_layouts_are_drawn_for_a_book_and_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(book.layout_pool, "POOLS", tmp_path)
    monkeypatch.setattr(book.layout_pool, "make", lambda folder, *_: folder.mkdir(parents=True))
    with contextlib.suppress(KeyboardInterrupt), book.drawn_layouts([GIL], BUDGETS["full"]):
        assert [str(folder) for folder in tmp_path.iterdir()] == [os.environ[book.ENVIRONMENT]]
        raise KeyboardInterrupt
    assert book.ENVIRONMENT not in os.environ
    assert not list(tmp_path.iterdir())


# ---- records of both sessions ----

BOTH = np.r_[np.arange(16), np.arange(4)]


def calls(seed, ratio, drawn=BOTH, loops=1000):
    """A timed plan; each layout is off by a per cent."""
    rng = np.random.default_rng(seed)
    layouts = rng.normal(0, 0.01, 100)[drawn][:, None] if drawn is not None else 0
    noise = rng.normal(0, 0.001, (len(BOTH), 3))
    return timed({"fast": noise * 0, "slow": math.log(ratio) + layouts + noise}, drawn, loops)


@pytest.fixture
def measured(monkeypatch, tmp_path, quiet_progress):
    """Measure a session of a corner on top of others: two processes, and a timed plan that is made up."""
    monkeypatch.setattr(sessions, "RECORDS", tmp_path / "records")
    monkeypatch.setenv("BUDGET", "quick")
    pool = SimpleNamespace(described={"number": 0, "id": "id0", "seed": 1, "build": 1})
    monkeypatch.setattr(sessions.layouts, "current", lambda labels: {label: [pool] for label in labels})

    def measure(*earlier, ns=1, loops=1000, layout="id0"):
        monkeypatch.setenv(sessions.EARLIER, ",".join(earlier))
        pool.described = {**pool.described, "id": layout}
        session = sessions.Measuring("corner", [GIL])
        session.run("processes", [Step(lambda seed: Outcome({"ns": ns}, "ok"), {"way": "w"})], 2)
        write(calls(ns, 1.1 + ns / 100, loops=loops), session.folder / "calls.jsonl")
        session.timed("calls")
        session.close()
        return session

    return measure


def test_a_further_session_has_the_records_of_both(measured):
    first = measured(ns=1)
    name = first.folder.name
    second = measured(name, ns=2, loops=5000, layout="id1")
    frame = second.frame("processes")
    assert frame.ns.tolist() == [1, 1, 2, 2]
    assert frame["process"].tolist() == frame["round"].tolist() == [0, 1, 2, 3]
    record = second.timed("calls")
    assert [unit.session for unit in record.kept] == [0] * 16 + [1] * 16
    assert np.nanmedian(record.times(GIL, "fast"), axis=1) == pytest.approx([1000] * 32)
    found = statistics.ratio_over_units(record, (GIL, "slow"), (GIL, "fast"))
    assert (found.sessions, found.n) == (2, 32)
    assert found.at().value == pytest.approx(1.115, abs=0.01)
    # The first is as it was.
    assert first.frame("processes").ns.tolist() == [1, 1]
    assert len(first.timed("calls").kept) == 16


def test_the_provenance_names_both_sessions_and_their_layouts(measured):
    first = measured(ns=1)
    second = measured(first.folder.name, ns=2, layout="id1")
    second.timed("calls")
    facts = second.provenance
    assert facts["seeds"] == [first.seed, second.seed]
    assert facts["records"] == [
        f"corner/{session.folder.name}/{file}.jsonl" for session in (first, second) for file in ("session", "calls")
    ]
    assert facts["rests_on"] == {"sessions": 2, "builds": {GIL: 1}, "layouts": {GIL: 2}}
    assert first.provenance["rests_on"]["layouts"] == {GIL: 1}
    assert [check.what for check in history.controls.checks(second) if check.kind == "lost restarts"] == ["'calls'"]


def test_a_third_session_names_the_first_two_and_none_twice(measured):
    names = []
    for number in range(1, 4):
        names.append(measured(*names, ns=number).folder.name)
    third = sessions.Reading("corner", sessions.RECORDS / "corner" / names[-1])
    assert [one.folder.name for one in third.earlier] == names[:-1]
    assert third.frame("processes").ns.tolist() == [1, 1, 2, 2, 3, 3]
    assert third.frame("processes")["process"].tolist() == list(range(6))
    assert third.rests_on["sessions"] == 3
    found = statistics.ratio_over_units(third.timed("calls"), (GIL, "slow"), (GIL, "fast"))
    assert (found.sessions, found.n) == (3, 48)


def test_both_sessions_are_read_again(measured):
    first = measured(ns=1)
    second = measured(first.folder.name, ns=2)
    again = sessions.Reading("corner", sessions.find(sessions.RECORDS, "corner"))
    assert again.folder == second.folder
    assert again.frame("processes").equals(second.frame("processes"))
    assert again.timed("calls").kept == second.timed("calls").kept
    assert again.provenance == second.provenance


def test_what_an_earlier_session_lacks_is_said(measured):
    first = measured(ns=1)
    second = measured(first.folder.name, ns=2)
    (first.folder / "calls.jsonl").unlink()
    with pytest.raises(UserError, match="timed plan 'calls'"):
        sessions.Reading("corner", second.folder).timed("calls")


# ---- history ----


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(history, "cache", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "history"


TWIN, CONTROL = control_pair(2)[0], control_pair(1)[0]


@pytest.fixture
def handed(monkeypatch):
    """A claim whose number is the ratio of the session's timed plan, and one that was counted."""

    def measurements(session):
        ratio = statistics.ratio_over_units(session.timed("calls"), (GIL, "slow"), (GIL, "fast"))
        each = {"A1": {"the ratio": Measurement(ratio, "")}, "A2": {"how many": Measurement(Counted(3), "")}}
        return SimpleNamespace(measurements=each)

    monkeypatch.setattr(ledger, "measured", measurements)


def a_session(name, budget="quick", seed=1, machine=None):
    """As `history.keep` gets one."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.01, (4, 20, 1)) + np.zeros((4, 20, 3))
    record = timed(dict(zip(("slow", "fast", TWIN, CONTROL), noise + np.log([[[1.1]], [[1]], [[1]], [[1]]]))), BOTH)
    run = {
        "plan": {"session": name},
        "interpreters": record.run["interpreters"],
    }
    return SimpleNamespace(
        corner="corner", budget=BUDGETS[budget], machine=machine or FACTS, record=SimpleNamespace(run=run),
        plans=["calls"], timed=lambda plan: record, earlier=[],
    )  # fmt: skip


def test_a_session_is_kept_once(cache, handed):
    history.keep(a_session("one"))
    history.keep(a_session("one"))
    log = history.file(FACTS)
    assert log.parent == cache
    lines = history.read(log)
    assert [line["ratio"] for line in lines] == ["A1: the ratio", f"A/A, calls on {GIL}: {TWIN} / {CONTROL}"]
    assert lines[0]["centre"] == pytest.approx(math.log(1.1), abs=0.02)
    assert list(lines[0]["intervals"]) == ["over layouts", "the next build", "these binaries alone"]
    assert lines[0]["builds"] == {GIL: "s"}
    history.keep(a_session("two", seed=2))
    assert [line["session"] for line in history.read(log)] == ["one", "one", "two", "two"]
    assert history.seen(FACTS)[0]["runs"] == 2


def test_a_smoke_test_is_not_kept(cache, handed):
    history.keep(a_session("one", budget="smoke"))
    assert not cache.exists()
    assert history.seen(FACTS) == []


def test_a_line_that_was_cut_off_is_left_out(cache, handed):
    history.keep(a_session("one"))
    log = history.file(FACTS)
    log.write_text(log.read_text() + '\n{"ratio": "A1: th')
    before = log.read_text()
    assert len(history.read(log)) == 2
    history.keep(a_session("one"))
    assert log.read_text() == before


def test_what_follows_a_cut_off_line_is_kept(cache, handed):
    history.keep(a_session("one"))
    log = history.file(FACTS)
    log.write_text(log.read_text() + '\n{"ratio": "A1: th')
    history.keep(a_session("two"))
    assert [line["session"] for line in history.read(log)] == ["one", "one", "two", "two"]


def test_each_machine_has_a_log_of_its_own(cache):
    assert history.file(FACTS) == history.file({**FACTS, "date": "another", "load": 3.0, "commit": "d"})
    others = [history.file({**FACTS, key: "another"}) for key in history.MACHINE]
    assert len({history.file(FACTS), *others}) == 1 + len(others)


def line(ratio, session, centre, low, high, budget="quick"):
    bounds = [math.exp(low), math.exp(high)]
    return {
        "ratio": ratio,
        "session": session,
        "budget": budget,
        "centre": centre,
        "intervals": {"over layouts": bounds},
    }


def test_coverage_is_the_share_of_pairs_in_which_an_interval_holds_another_centre():
    lines = [
        line("A1: x", "one", 0.0, -0.1, 0.1),
        line("A1: x", "two", 0.05, 0.04, 0.06),
        line("A1: x", "three", 0.5, -1.0, 1.0),
        line("A2: y", "one", 0.0, -0.1, 0.1),
        line("A/A, calls", "one", 0.0, -0.1, 0.1),
        line("A/A, calls", "two", 0.01, -0.1, 0.1),
        # Another budget is another measurement.
        line("A/A, calls", "four", 9.0, 8.9, 9.1, budget="full"),
    ]
    table = history.coverage(lines).set_index(["kind", "interval"])
    claims, twins = table.loc["claims", "over layouts"], table.loc["A/A", "over layouts"]
    # one holds two and not three; two holds neither; three holds both.
    assert (claims.pairs, claims.inside, claims.runs, claims.ratios) == (6, 0.5, 3, 1)
    assert (twins.pairs, twins.inside, twins.runs) == (2, 1.0, 2)


def test_the_coverage_of_nothing_and_of_one_run_is_an_empty_table():
    for lines in ([], [line("A1: x", "one", 0.0, -0.1, 0.1)]):
        assert history.coverage(lines).empty
        assert "inside" in history.coverage(lines)


def test_the_coverage_of_honest_runs_is_about_their_level():
    """Each run's centre and interval are uncertain: of 98 % about 95 are left."""
    rng, lines = np.random.default_rng(3), []
    for ratio in range(40):
        for run in range(6):
            found = statistics.Location.of(rng.normal(0, 0.02, 20), log=True)
            interval = found.at().map(math.log)
            lines.append(line(f"A{ratio}: x", f"run {run}", found.centre, interval.low, interval.high))
    (row,) = history.coverage(lines).to_dict("records")
    assert (row["pairs"], row["runs"], row["ratios"]) == (40 * 30, 6, 40)
    assert 0.88 < row["inside"] < 0.97


def test_of_a_further_session_only_its_own_records_are_kept(measured, cache, monkeypatch):
    """An estimate that rests on an earlier session as well would lie in that one's interval for no good reason."""
    monkeypatch.setattr(
        ledger,
        "measured",
        lambda session: SimpleNamespace(
            measurements={
                "A1": {
                    "x": Measurement(
                        statistics.ratio_over_units(session.timed("calls"), (GIL, "slow"), (GIL, "fast")), ""
                    )
                }
            }
        ),
    )
    first = measured(ns=1)
    history.keep(first)
    second = measured(first.folder.name, ns=5)
    history.keep(second)
    kept = history.read(history.file(second.machine))
    assert [one["session"] for one in kept] == [first.folder.name, second.folder.name]
    assert [math.exp(one["centre"]) for one in kept] == pytest.approx([1.11, 1.15], abs=0.01)


def test_jupyterlab_gets_layouts_of_its_own(monkeypatch):
    """What is measured in it is measured over layouts; its pool is none that `make book` takes away."""
    seen = {}
    monkeypatch.setattr(cli.environments, "provision", lambda request: [SimpleNamespace(label=GIL)])
    monkeypatch.setattr(
        layout_pool, "make", lambda folder, labels, count, seed: seen.update(made=(folder, labels, count))
    )
    monkeypatch.setattr(cli.os, "execve", lambda program, command, environment: seen.update(environment))
    monkeypatch.setenv("BUDGET", "")
    cli.lab.callback(kernels="")
    folder, labels, count = seen["made"]
    assert (labels, count) == ([GIL], BUDGETS["quick"].layouts)
    assert seen[book.ENVIRONMENT] == str(folder)
    assert layout_pool.POOLS not in [folder, *folder.parents]
