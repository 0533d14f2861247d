"""The analysis of the chapter on races: one event proves or refutes, a process is one trial, and chance is no loss."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import verdicts
from ffilab.judge.claims import declared
from ffilab.judge.numbers import numbers_of
from ffilab.judge.processes import chosen
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.races import experiment, figures, numbers
from tests.helpers.of_chapter import Golden, judged

TRIALS, WINDOWS, PYTHON_RUNS = "trials", "width of the window", "total += 1"


# The golden records hold four processes of each case.
GOLDEN_RUNS, SHARES = 4, 32


def often(title, runs):
    """The processes of a golden frame over and over, until each case has so many."""
    frame = Golden("races").frame(title)
    copies = [frame.assign(process=frame.process + 1_000 * n) for n in range(runs // GOLDEN_RUNS)]
    return pd.concat(copies, ignore_index=True)


@pytest.fixture
def frames():
    found = {TRIALS: often(TRIALS, experiment.TRIALS["quick"])}
    return found | {title: often(title, SHARES) for title in (WINDOWS, PYTHON_RUNS, experiment.AS_RUN)}


def answer(frames, claim, about, kind):
    """The answer of the test of a kind whose part contains these words."""
    parts = judged(Golden("races", frames))[claim]["parts"]
    (part,) = [part["verdict"] for part in parts if about in part["part"] and part["kind"] == kind]
    return part


def where(frame, **which):
    """Which rows of a frame these are."""
    return frame.index.isin(chosen(frame, **which).index)


MET = {"interpreter": FREE_THREADED, "way": numbers.PYDLL, "variant": "unsafe"}
KEPT = {"interpreter": GIL, "way": numbers.CDLL, "variant": "unsafe"}
OVERDRAWN = {"interpreter": FREE_THREADED, "case": "unsafe"}
PYTHON = {"interpreter": GIL, "statement": "total += 1", "loops": experiment.PYTHON_LOOPS}


@pytest.mark.parametrize(
    ("claim", "about", "rows", "column", "nothing"),
    [
        ("A15", "meet inside of the call lose", MET, "lost", 0),
        ("A16", "pays out more", OVERDRAWN, "withdrawn", numbers.DOLLARS),
        ("A18", "ctypes CDLL", KEPT, "lost", 0),
        ("C7", "two threads lose updates, with the GIL", PYTHON, "lost", 0),
        ("C7", "add a thousand", {**PYTHON, "loops": 1_000}, "lost", 0),
    ],
)
def test_one_run_proves_that_it_happens_and_none_of_many_says_how_seldom(frames, claim, about, rows, column, nothing):
    frame = frames[TRIALS]
    frame.loc[where(frame, **rows), column] = nothing
    assert answer(frames, claim, about, "occurs") == NO
    some = frame[frame.process < 20_000]
    assert answer({**frames, TRIALS: some}, claim, about, "occurs") == OPEN
    frame.loc[chosen(frame, **rows).index[0], column] = nothing + 1e-5
    assert answer(frames, claim, about, "occurs") == YES


@pytest.mark.parametrize(
    ("claim", "about", "rows", "column", "least"),
    [
        ("A15", "the mutex version", {**MET, "variant": "mutex"}, "lost", 1e-5),
        ("A16", "with the GIL", {**OVERDRAWN, "interpreter": GIL}, "withdrawn", numbers.DOLLARS + 50),
    ],
)
def test_one_bad_run_refutes_that_it_never_happens(frames, claim, about, rows, column, least):
    assert answer(frames, claim, about, "never") == YES
    frame = frames[TRIALS]
    frame.loc[chosen(frame, **rows).index[0], column] = least
    assert answer(frames, claim, about, "never") == NO


def test_threads_that_never_met_try_no_lock(frames):
    frame = frames[TRIALS]
    frame.loc[where(frame, **{**MET, "variant": "mutex"}), "met"] = np.arange(experiment.TRIALS["quick"]) % 2
    assert answer(frames, "A15", "the mutex version", "never") == OPEN
    # Who lost something has met.
    frame.loc[where(frame, **MET), "met"] = 0.5
    assert answer(frames, "A15", "meet inside of the call lose", "occurs") == YES


@pytest.mark.parametrize(("lost", "size"), [(0.363, YES), (0.002, NO)])
def test_a_published_size_is_asked_of_the_talks_own_program_alone(frames, lost, size):
    frame = frames[experiment.AS_RUN]
    frame.loc[where(frame, gil="off", what="unsafe counter"), "lost"] = lost
    frames[TRIALS].loc[where(frames[TRIALS], **MET), "lost"] = 0.9
    assert answer(frames, "A15", "the share that is lost", "size") == size
    assert answer(frames, "A15", "lose on average that meet", "side") == YES


@pytest.mark.parametrize(("wide", "side"), [(0.75, YES), (0.16, YES), (0.12, NO), (0.05, NO)])
def test_a_narrow_window_is_compared_with_a_wide_one_alone(frames, wide, side):
    frame = frames[WINDOWS]
    scatter = np.random.default_rng(2).normal(0, 0.01, len(frame))
    frame["share"] = np.where(frame.window_ns == numbers.WIDE_NS, wide, 0.1) + scatter
    assert answer(frames, "A17", "", "side") == side


def test_an_interpreter_that_is_absent_leaves_its_part_out(frames):
    free_threaded = {title: frame[frame.interpreter == FREE_THREADED] for title, frame in frames.items()}
    found = numbers_of(Golden("races", free_threaded))
    c7 = next(claim for claim in declared("races").claims if claim.id == "C7")
    there = [rule.number for rule in c7.tests if found[rule.number].estimate]
    assert there == [f"bad runs: total += 1, {FREE_THREADED}"]
    assert answer(free_threaded, "A15", "with the GIL, which PyDLL keeps, nothing", "never") == verdicts.NO_NUMBER


def test_two_clusters_are_not_trimmed():
    # Seven runs of thirty with a loss: a 20 % trimmed mean would leave nearly all of it out.
    assert numbers.mean(np.array([0.0] * 23 + [0.3] * 7)).centre == pytest.approx(0.07)


def test_threads_that_never_met_are_told_and_withhold_nothing():
    crossed = Golden("races").frame(numbers.CROSSED).assign(met=1.0)
    checks = numbers.controls(Golden("races", {numbers.CROSSED: crossed}))
    assert [check.passed for check in checks] == [True] * 4
    crossed.loc[where(crossed, interpreter=FREE_THREADED, threads=50, way=numbers.PYDLL), "met"] = 0.02
    (failed,) = (check for check in numbers.controls(Golden("races", {numbers.CROSSED: crossed})) if not check.passed)
    assert failed.what == f"50 threads on {FREE_THREADED}"
    assert not failed.source, "it withholds something"


def test_the_table_of_remedies_has_a_row_for_what_a_reader_adds():
    record = Golden("races").timed("remedies")
    added = {**record.loops, f"{FREE_THREADED}/mine": 1}
    assert figures.remedies(SimpleNamespace(loops=added)) == [*experiment.REMEDIES, "mine"]


@pytest.mark.parametrize(("statement", "places"), [("total += 1", 0), ("total += one()", 1)])
def test_places_where_the_gil_may_go_are_counted(statement, places):
    assert numbers.hand_overs_between(pd.DataFrame(experiment.instructions(statement))) == places
