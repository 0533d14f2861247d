"""The analysis of the chapter on races: one event proves or refutes, a process is one trial, and chance is no loss."""

import numpy as np
import pandas as pd
import pytest
from of_chapter import Golden

from ffilab.judge import characteristics, ledger, simulation, verdicts
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.numbers import of
from ffilab.judge.processes import chosen
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.races import experiment, figures, results

TRIALS, WINDOWS, PYTHON_RUNS = "trials", "width of the window", "total += 1"


@pytest.fixture
def frames():
    session = simulation.simulate("races", "as published", "quick", noise=0)
    return {title: session.frame(title) for title in (TRIALS, WINDOWS, PYTHON_RUNS, experiment.AS_RUN)}


def answer(frames, claim, about, kind):
    """The answer of the test of a kind whose part contains these words."""
    rows = {row["id"]: row for row in ledger.judged(Golden("races", frames), whatever_the_controls=True)}
    (part,) = [part["verdict"] for part in rows[claim]["parts"] if about in part["part"] and part["kind"] == kind]
    return part


def where(frame, **which):
    """Which rows of a frame these are."""
    return frame.index.isin(chosen(frame, **which).index)


MET = {"interpreter": FREE_THREADED, "way": results.PYDLL, "variant": "unsafe"}
KEPT = {"interpreter": GIL, "way": results.CDLL, "variant": "unsafe"}
OVERDRAWN = {"interpreter": FREE_THREADED, "case": "unsafe"}
PYTHON = {"interpreter": GIL, "statement": "total += 1", "loops": experiment.PYTHON_LOOPS}


@pytest.mark.parametrize(
    ("claim", "about", "rows", "column", "nothing"),
    [
        ("A15", "meet inside of the call lose", MET, "lost", 0),
        ("A16", "pays out more", OVERDRAWN, "withdrawn", results.DOLLARS),
        ("A18", "ctypes CDLL", KEPT, "lost", 0),
        ("C7", "two threads lose updates, with the GIL", PYTHON, "lost", 0),
        ("C7", "add a thousand", {**PYTHON, "loops": 1_000}, "lost", 0),
    ],
)
def test_one_run_proves_that_it_happens_and_none_of_many_says_how_seldom(frames, claim, about, rows, column, nothing):
    frame = frames[TRIALS]
    frame.loc[where(frame, **rows), column] = nothing
    assert answer(frames, claim, about, "occurs") == NO
    some = frame[frame.process % 240 < 100]
    assert answer({**frames, TRIALS: some}, claim, about, "occurs") == OPEN
    frame.loc[chosen(frame, **rows).index[0], column] = nothing + 1e-5
    assert answer(frames, claim, about, "occurs") == YES


@pytest.mark.parametrize(
    ("claim", "about", "rows", "column", "least"),
    [
        ("A15", "the mutex version", {**MET, "variant": "mutex"}, "lost", 1e-5),
        ("A16", "with the GIL", {**OVERDRAWN, "interpreter": GIL}, "withdrawn", results.DOLLARS + 50),
    ],
)
def test_one_bad_run_refutes_that_it_never_happens(frames, claim, about, rows, column, least):
    assert answer(frames, claim, about, "never") == YES
    frame = frames[TRIALS]
    frame.loc[chosen(frame, **rows).index[0], column] = least
    assert answer(frames, claim, about, "never") == NO


def test_an_event_counts_though_its_process_was_disturbed_and_measured_again():
    session = simulation.simulate("races", "as published", "quick", noise=0)
    safe = next(
        one for one in session.record.children if one["title"] == TRIALS and one["interpreter"] == FREE_THREADED
    )
    again = {**safe, "process": 10_000, "replaces": safe["process"]}
    safe |= {"strangers_s": 1.0, "wall_s": 0.1}
    safe["result"] = [{**row, "lost": 0.1} if row.get("variant") == "mutex" else row for row in safe["result"]]
    session.record.children.append(again)
    assert of(session)[f"bad runs: mutex, PyDLL, {FREE_THREADED}"].measurement.estimate.events == 1


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
    frame["share"] = np.where(frame.window_ns == results.WIDE_NS, wide, 0.1) + scatter
    assert answer(frames, "A17", "", "side") == side


def test_an_interpreter_that_is_absent_leaves_its_part_out(frames):
    free_threaded = {title: frame[frame.interpreter == FREE_THREADED] for title, frame in frames.items()}
    found = of(Golden("races", free_threaded))
    c7 = next(claim for claim in declared("races").claims if claim.id == "C7")
    there = [rule.number for rule in c7.tests if found[rule.number].measurement]
    assert there == [f"bad runs: total += 1, {FREE_THREADED}"]
    assert answer(free_threaded, "A15", "with the GIL, which PyDLL keeps, nothing", "never") == verdicts.NO_NUMBER


@pytest.mark.parametrize(("truth", "right"), [("as published", verdicts.HOLDS), ("no effect", verdicts.FAILS)])
def test_without_noise_the_verdicts_are_those_of_the_truth(truth, right):
    judged = characteristics.rows("races", truth, "full", 0, noise=0)
    assert list(judged) == [claim.id for claim in declared("races").claims]
    assert {row["verdict"] for row in judged.values()} == {right}


def test_a_process_is_one_trial_however_many_of_its_rows_are_bad():
    runs = pd.DataFrame({"process": [1, 1, 1, 2, 2, 2], "case": list("abcabc"), "lost": [0.1, 0.2, 0.0, 0.0, 0.0, 0.0]})
    assert results.bad_processes(runs, "lost") == Share(1, 2)
    assert results.bad_processes(runs, "lost", case="c") == Share(0, 2)
    assert results.bad_processes(runs, "lost", case="d") is None


def test_money_from_nothing_and_updates_lost():
    bank = pd.DataFrame([{"withdrawn": 1000, "balance": 0}, {"withdrawn": 1050, "balance": 100}])
    assert results.money(bank).created.tolist() == [0, 150]


def test_the_matrix_has_the_talks_four_cells_one_of_them_in_two_parts():
    crossed = Golden("races").frame("counter, crossed")
    rows = figures.matrix_table(crossed)
    assert rows[["function", "call", "published"]].apply(tuple, axis=1).tolist() == [
        ("thread-safe", "GIL released", "Safe"),
        ("thread-safe", "there is no GIL", "Safe"),
        ("unsafe", "GIL kept", "Uncertain"),
        ("unsafe", "GIL released", "Uncertain"),
        ("unsafe", "there is no GIL", "Race!"),
    ]
    # What a remedy costs stands in the table; when to take it says nothing that a run may contradict.
    assert not any("cheap" in when for when in figures.WHEN.values())


def test_two_clusters_are_not_trimmed():
    values = np.array([0.0] * 15 + [0.4] * 15)
    assert results.expected(values).centre == pytest.approx(0.2)
    # Seven runs of thirty with a loss: a 20 % trimmed mean would leave nearly all of it out.
    assert results.expected(np.array([0.0] * 23 + [0.3] * 7)).centre == pytest.approx(0.07)
    assert results.expected(np.zeros(30)).at() == Interval(0.0, 0.0, 0.0)


def test_threads_that_never_met_are_told_and_withhold_nothing():
    crossed = Golden("races").frame("counter, crossed")
    checks = results.calibrated(crossed.assign(met=1.0))
    assert len(checks) == 4
    assert all(check.passed for check in checks)
    crossed["met"] = np.where(where(crossed, interpreter=FREE_THREADED, threads=50, way="ctypes PyDLL"), 0.02, 1.0)
    failed = [check for check in results.calibrated(crossed) if not check.passed]
    assert [(check.what, check.source) for check in failed] == [(f"50 threads on {FREE_THREADED}", "")]


def test_loss_goes_with_the_pairs_at_work_at_once():
    """With the GIL released fifteen pairs of fifty threads overlap, and one without it; each pair loses 0.3 of its updates."""
    rng, rows = np.random.default_rng(5), []
    for label, run_, iterations, threads in (
        (label, run_, iterations, threads)
        for label in (GIL, FREE_THREADED)
        for run_ in range(30)
        for iterations in (experiment.SHORT, experiment.LONG)
        for threads in experiment.CROWD_SIZES
    ):
        number = (15 if (threads, label) == (50, GIL) else 1) * (run_ % 4 > 0)
        key = {"interpreter": label, "process": len(rows) // 8, "threads": threads, "iterations": iterations}
        lost = number * 2 / threads * rng.normal(0.3, 0.03)
        pairs = number / (threads * (threads - 1) / 2)
        rows.append({**key, "lost": lost, "pairs": pairs, "overlapped": min(1.0, 0.06 * number), "preempted": 0})
    runs = pd.DataFrame(rows)
    overlap = results.overlap_and_loss(runs)
    assert overlap[False].events == 0 < overlap[False].trials
    assert overlap[True].events == overlap[True].trials
    gil, free = (results.pairs_at_once(runs, label) for label in (GIL, FREE_THREADED))
    assert (gil.centre, free.centre) == (pytest.approx(15 * 22 / 30), pytest.approx(22 / 30))
    of_a_pair = [results.loss_of_a_pair(runs, label) for label in (GIL, FREE_THREADED)]
    assert [loss.centre for loss in of_a_pair] == [pytest.approx(0.3, abs=0.02)] * 2
    assert not results.difference(*of_a_pair).excludes(0)


def test_the_model_of_payments_is_that_of_two_random_moments():
    rng = np.random.default_rng(4)
    moments = rng.uniform(0, experiment.SPREAD_NS, (2, 100_000))
    for window in experiment.WINDOWS_NS:
        simulated = (abs(moments[0] - moments[1]) < window).mean()
        assert results.model_of_payments(window) == pytest.approx(simulated, abs=0.01)
    shares = [
        {"window_ns": window, "share": rng.binomial(500, results.model_of_payments(window + 45)) / 500}
        for window in experiment.WINDOWS_NS
        for _ in range(30)
    ]
    found = results.payments(pd.DataFrame(shares))
    own = results.own_window(Interval.of(found.iloc[0]))
    assert own.low < 45 < own.high
    missed = results.misses(found)
    assert 0 in missed["window"]
    assert missed["with check"] == []


def test_where_the_gil_may_go():
    for statement, places in (("total += 1", 0), ("total += one()", 1)):
        assert results.hand_overs_between(pd.DataFrame(experiment.instructions(statement))) == places
