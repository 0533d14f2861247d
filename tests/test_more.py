"""`make more`: another session on top of those that a page rests on."""

import contextlib
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from ffilab.judge import controls, statistics
from ffilab.measure import foreign
from ffilab.measure import session as sessions
from ffilab.measure.case import Outcome, Step
from ffilab.page import book
from ffilab.page.contents import FACTS as PAGE_FACTS
from ffilab.page.contents import Chapter, digests
from ffilab.run import settings
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import GIL
from tests.helpers.made_up import timed
from tests.helpers.of_chapter import write

# ---- which sessions a page rests on ----

CORNER = "loaders"


@pytest.fixture
def page(tmp_path):
    """A chapter with a page that is made up, and what is known of it."""

    def make(**changed):
        each = Chapter(CORNER, executed_folder=tmp_path)
        names = ("20260102T1", "20260102T1", "20260101T1")
        facts = {
            "chapter": CORNER,
            "budget": "quick",
            "interpreters": {},
            "read": True,
            "records": [
                f"records/{CORNER}/{name}/{file}.jsonl" for name, file in zip(names, ("session", "calls", "session"))
            ],
        }
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
        assert [str(folder) for folder in tmp_path.iterdir()] == [settings.told("layouts")]
        raise KeyboardInterrupt
    assert settings.told("layouts") is None
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
def measured(tell, monkeypatch, tmp_path, quiet_progress, quiet_machine):
    """Measure a session of a chapter on top of others: two processes, and a timed plan that is made up."""
    monkeypatch.setattr(sessions, "RECORDS", tmp_path / "records")
    monkeypatch.setenv("BUDGET", "quick")
    pool = SimpleNamespace(described={"number": 0, "id": "id0", "seed": 1, "build": 1})
    monkeypatch.setattr(sessions.layouts, "current", lambda labels: {label: [pool] for label in labels})

    def measure(*earlier, ns=1, loops=1000, layout="id0"):
        tell(earlier=earlier)
        pool.described = {**pool.described, "id": layout}
        session = sessions.Measuring("chapter", [GIL])
        session.run("processes", [Step(lambda seed: Outcome({"ns": ns}, "ok"), {"way": "w"})], 2)
        write(calls(ns, 1.1 + ns / 100, loops=loops), session.folder / "calls.jsonl")
        session.timed("calls")
        session.close()
        return session

    return measure


@pytest.fixture
def both(measured):
    """A session, and one on top of it."""
    first = measured(ns=1)
    return first, measured(first.folder.name, ns=2, loops=5000, layout="id1")


def test_a_further_session_has_the_records_of_both(both):
    first, second = both
    frame = second.frame("processes")
    assert frame.ns.tolist() == [1, 1, 2, 2]
    assert frame["process"].tolist() == frame["round"].tolist() == [0, 1, 2, 3]
    record = second.timed("calls")
    assert [unit.session for unit in record.kept] == [0] * 16 + [1] * 16
    assert np.nanmedian(record.times(GIL, "fast"), axis=1) == pytest.approx([1000] * 32)
    found = statistics.ratio_over_units(record, (GIL, "slow"), (GIL, "fast"))
    assert found.sessions == 2
    assert found.n == 32
    assert found.at().value == pytest.approx(1.115, abs=0.01)
    # The first is as it was.
    assert first.frame("processes").ns.tolist() == [1, 1]
    assert len(first.timed("calls").kept) == 16


def test_the_provenance_names_both_sessions_and_their_layouts(both):
    first, second = both
    facts = second.provenance
    assert facts["seeds"] == [first.seed, second.seed]
    assert facts["records"] == [
        f"chapter/{session.folder.name}/{file}.jsonl" for session in both for file in ("session", "calls")
    ]
    assert facts["rests_on"] == {"sessions": 2, "builds": {GIL: 1}, "layouts": {GIL: 2}}
    assert first.provenance["rests_on"]["layouts"] == {GIL: 1}
    assert [check.what for check in controls.checks(second) if check.kind == "lost restarts"] == ["'calls'"]


def test_a_third_session_names_the_first_two_and_none_twice(measured):
    names = []
    for number in range(1, 4):
        names.append(measured(*names, ns=number).folder.name)
    third = sessions.Reading("chapter", sessions.RECORDS / "chapter" / names[-1])
    assert [one.folder.name for one in third.earlier] == names[:-1]
    assert third.frame("processes").ns.tolist() == [1, 1, 2, 2, 3, 3]
    assert third.frame("processes")["process"].tolist() == list(range(6))
    assert third.rests_on["sessions"] == 3
    found = statistics.ratio_over_units(third.timed("calls"), (GIL, "slow"), (GIL, "fast"))
    assert found.sessions == 3
    assert found.n == 48


def test_both_sessions_are_read_again(both):
    _, second = both
    again = sessions.Reading("chapter", foreign.find(sessions.RECORDS, "chapter"))
    assert again.folder == second.folder
    assert again.frame("processes").equals(second.frame("processes"))
    assert again.timed("calls").kept == second.timed("calls").kept
    assert again.provenance == second.provenance


def test_what_an_earlier_session_lacks_is_said(both):
    first, second = both
    (first.folder / "calls.jsonl").unlink()
    with pytest.raises(UserError, match="timed plan 'calls'"):
        sessions.Reading("chapter", second.folder).timed("calls")
