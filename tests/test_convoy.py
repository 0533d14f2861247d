"""The chapter on the convoy: servers and CPU work end, whatever happens; the analysis copes with what golden records do
not hold."""

import ctypes
import os
import socket
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import psutil
import pytest

from ffilab.judge import sentences
from ffilab.judge.claims import declared
from ffilab.judge.numbers import numbers_of
from ffilab.judge.processes import chosen
from ffilab.run.paths import BUILT, NATIVE
from ffilab.setup.catalogue import GIL
from native.convoy import servers
from notebooks.convoy import exercise, experiment, figures, numbers
from tests.helpers import small
from tests.helpers.of_chapter import Golden, outcome_of, result_of, rows_of

IDLE, ONE = experiment.IDLE, experiment.ONE
PR_GET_TIMERSLACK, set_timer_slack = experiment.PR_GET_TIMERSLACK, experiment.set_timer_slack
SECONDS = 0.05
SHORT = (200, SECONDS, SECONDS)
FOLDER = f"{BUILT}/convoy"
CLAIMS = {claim.id: claim for claim in declared("convoy").claims}


def echo(load, label=GIL, order=SHORT, **options):
    return replace(experiment.serving(label, load, order), **options).run()


def ours():
    """Processes of this chapter that this run of the tests started, and that stay: one that was killed has a moment to
    die."""

    def belongs(process):
        is_of_this_run = process.environ().get("FFILAB_BUILD") == os.environ["FFILAB_BUILD"]
        return is_of_this_run and str(NATIVE / "convoy") in " ".join(process.cmdline())

    small.wait_for(lambda: not small.running(belongs))
    return small.running(belongs)


# ---- the experiments ----

IN_SHORT = {"interval": 1e-4, "seconds": SECONDS}
WITH_BUILT = {"folder": FOLDER}
SWEPT = {"count": 1, "pinning": "none", "orders": [(0.02, 1, 0, 0.05, 2)], "seed": 1, "slack_ns": None, "pause": 0.001}
# What each brings back.
EXPERIMENTS = [
    (
        experiment.countdowns,
        {"each": 10_000, "cells": [(0.005, 2, False), (1e-4, 2, True)], "seed": 1},
        "interval threads again ns steps",
    ),
    (experiment.hashes, {"bytes_each": 10_000, "threads": (1, 2)}, "threads seconds bytes"),
    (experiment.one_countdown, {"steps": 80_000, "cells": [(0.005, (1, 8))]}, "interval threads seconds steps"),
    (experiment.intervals, SWEPT | WITH_BUILT, "interval requests rate p50"),
    (experiment.timeline, {"pinning": "none", "pause": 0.001, **IN_SHORT}, "spans server gaps further"),
    (experiment.forced, {"interval": 1e-4, "times": 5, **WITH_BUILT}, "demanded free"),
    (experiment.gil_waits, IN_SHORT | WITH_BUILT, "waits"),
    (exercise.tried, IN_SHORT | WITH_BUILT, "asked noted mean work"),
    (experiment.reference_counts, {"folder": f"{BUILT}/critical_sections"}, "owner foreign"),
]


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    rows = rows_of(GIL, function, arguments)
    assert all(set(row) == set(columns.split()) for row in rows)
    assert not ours()


@pytest.mark.parametrize("kind", ["threads", "processes", "native", "interpreters"])
def test_the_server_answers_and_the_work_goes_on(kind):
    outcome = echo(ONE | {"kind": kind, "interval": 1e-4}, order=(200, 0.3, 0.3))
    assert outcome.ended == "ok", outcome.error
    assert outcome.result["requests"] > 0
    # Of two cores one thread of work has one at most; the clock of its process is a little behind.
    assert 0 < outcome.result["had"] < 1.2
    assert outcome.result["step_ns"] > 0
    assert len(outcome.result["cores"]["CPU work"]) == (0 if kind == "processes" else 1)
    assert not ours()


def test_the_orders_of_the_client_have_limits():
    """So many requests, but not before the least seconds, and not beyond the most. Here the server is a coroutine."""
    server = IDLE | {"server": "asyncio"}
    result = echo(server, order=(5, 0.0, 5.0)).result
    assert result["requests"] == 5
    assert result["had"] is result["step_ns"] is None
    assert echo(server, order=(1, 0.3, 5.0)).result["requests"] > 1
    assert echo(server, order=(5, 0.0, 0.0, 3)).result["requests"] == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")
def test_pinning_is_what_it_says():
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    cores = echo(ONE | {"pinning": "one core", "interval": 1e-4}).result["cores"]
    assert {cores["client"], cores["server"], *cores["CPU work"]} == {first}
    cores = echo(ONE | {"pinning": "client apart", "interval": 1e-4}).result["cores"]
    assert (cores["client"], cores["server"]) == (last, first)
    cores = echo(ONE | {"pinning": "threads apart", "interval": 1e-4}).result["cores"]
    assert (cores["server"], *cores["CPU work"]) == (first, last)
    assert echo(IDLE | {"others": 2, "awake": True, "nodelay": True}).ended == "ok"


def test_nothing_is_left_after_a_failure_or_a_time_limit():
    assert echo(ONE | {"server": "no such server"}, order="much").ended.startswith("exit code")
    assert echo(ONE | {"kind": "processes", "count": 2}, order=(1, 30, 30), timeout_s=2).ended == "timeout"
    assert not ours()


def test_a_wait_for_the_gil_takes_a_switch_interval(build):
    """The extension, which reads the clock around each wait, leaves the GIL off."""
    for interval in (0.005, 0.02):
        arguments = {"interval": interval, "seconds": 0.2, "folder": FOLDER}
        outcome = outcome_of(build, experiment.gil_waits, arguments)
        assert outcome.gil_enabled == (build == GIL)
        assert min(outcome.result["waits"]) >= 0
        if build == GIL:
            assert np.median(outcome.result["waits"]) / 1e9 > interval


@pytest.mark.skipif(not experiment.can_set_slack(), reason="this system has no timer slack that can be set")
def test_the_timer_slack_is_set_and_inherited():
    assert result_of(GIL, slack_of_a_thread, {"ns": 7}) == {"found": [7]}


def slack_of_a_thread(ns):
    """The timer slack of a thread that starts after it was set."""
    set_timer_slack(ns)
    found, ask = [], lambda: ctypes.CDLL(None).prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    thread = threading.Thread(target=lambda: found.append(ask()))
    thread.start()
    thread.join()
    return {"found": found}


# ---- the worker's side, imported here ----


def test_a_quantile_takes_requests_enough():
    for number, known in ((4, []), (5, ["p50"]), (100, ["p50", "p99"]), (1000, ["p50", "p99", "p99.9"])):
        quantiles = servers.quantiles([(0, 1000 * took) for took in range(number)])
        assert [name for name, value in quantiles.items() if value is not None] == known


def test_the_server_is_on_loopback_only():
    with servers.serve(experiment.handle_client) as (port, _):
        listening = [c.laddr for c in psutil.Process().net_connections("tcp") if c.laddr.port == port]
        assert {address.ip for address in listening} == {"127.0.0.1"}
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"


def test_one_core_is_a_place_for_everybody(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert servers.places("one core") == servers.places("client apart") == (3, 3, 3)


# ---- the analysis ----


def test_a_table_of_loads_that_were_not_measured_has_its_columns():
    runs = chosen(Golden("convoy").frame("echo server"), case=["no CPU work"])
    shown = figures.echo_table(runs, GIL, "pinning")
    assert set(shown["requests/s"]) == {figures.draw.NOT_MEASURED}
    assert list(shown.columns) == figures.ECHO_COLUMNS


def test_a_process_in_which_nobody_waited_for_the_gil_has_no_value():
    waits = pd.DataFrame({"interpreter": GIL, "ended": "ok", "waits": [[5e6] * 9 + [0], []]})
    assert list(numbers.gil_waits(waits)) == [1]


def test_where_nothing_can_be_pinned_claim_and_sentences_say_so():
    golden, unpinned = Golden("convoy"), {"case": experiment.LOADS, "pinning": [numbers.FREE]}
    titles = {"echo server": "case", "echo server, further loads": "case", "timeline": "pinning"}
    frames = {title: chosen(golden.frame(title), **{by: unpinned[by]}) for title, by in titles.items()}
    session = Golden("convoy", frames)
    assert {numbers_of(session)[rule.number].missing for rule in CLAIMS["C6"].tests} == {numbers.NO_PINNING}
    said = sentences.sentences_of(session)
    assert said["waits-twice"].startswith("With nothing pinned ")
    for name in ("prediction-2", "model"):
        assert said[name] == f"Too little was measured here to say: {numbers.NO_PINNING}."
    assert "not known: server and client on one core" in said["remedies"]


def test_what_goes_with_the_client_is_a_share_of_what_one_core_gains(monkeypatch):
    found = {numbers.ON_ONE_CORE: [11e3, 9e3, 10e3], numbers.APART: [210, 190, 200], numbers.CONVOY: [90, 110, 100]}
    monkeypatch.setattr(numbers, "rates", lambda session, case: np.array(found[case], float))
    share = numbers.with_the_client(None)
    assert share.interval.value == pytest.approx(9_800 / 9_900)
    assert share.interval.low > 0.98
    found[numbers.ON_ONE_CORE] = found[numbers.CONVOY]
    assert numbers.with_the_client(None) == "one core gains nothing here"


# ---- the exercises ----


def tried(**yours):
    """Processes of the exercise: the original beside a reader's server."""
    row = {"interpreter": GIL, "ended": "ok", "asked": 50, "noted": 50, "mean": 5_000.0, "work": 9_000.0}
    return pd.DataFrame([{**row, "who": exercise.ORIGINAL}, {**row, "who": exercise.YOURS, **yours}] * 6)


@pytest.mark.parametrize(
    ("yours", "says"),
    [
        ({"mean": 150.0}, "Fast enough"),
        ({"mean": 1_500.0}, "Not yet fast"),
        ({"mean": 150.0, "work": 90.0}, "Not correct: the CPU thread has 1% of the speed"),
        ({"mean": 150.0, "noted": 49}, "Not correct: of 50 requests your list has 49."),
        ({"ended": "timeout", "noted": None}, "Not correct: your server did not come back (timeout)."),
    ],
)
def test_what_the_exercise_says(yours, says):
    assert exercise.judged(tried(**yours))[-1].startswith(says)


def test_who_waits_is_checked_by_the_run():
    waits = {case: case in (numbers.APART, numbers.COROUTINE) for case in exercise.ASKED}
    took = {case: 1e4 if does else 50.0 for case, does in waits.items()}
    runs = pd.DataFrame({"interpreter": GIL, "ended": "ok", "case": took.keys(), "p50": took.values()})
    assert all(": right;" in line for line in exercise.check_waits(waits, runs))
    wrong = {case: not does for case, does in waits.items()}
    assert all(": not so;" in line for line in exercise.check_waits(wrong, runs))
    assert exercise.check_waits({}, runs)[0].endswith("Choose from True, False.")
    assert exercise.check_waits(waits, runs.assign(p50=None))[0].endswith("no median for it.")
