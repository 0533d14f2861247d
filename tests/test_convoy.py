"""The chapter on the convoy: servers and CPU work end, whatever happens; the analysis finds what was put in."""

import functools
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from ffilab import draw
from ffilab.bench import session as sessions
from ffilab.bench.case import Case, Outcome
from ffilab.bench.workers import WORKER
from ffilab.errors import UserError
from ffilab.judge import verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Interval, Location, Measurement
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED, Equal, Side, Size
from ffilab.judge.simulation import simulate
from ffilab.paths import BUILT, NATIVE, ROOT
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.convoy import claims, exercise, experiment, figures, results

SECONDS = 0.05
SHORT = (200, SECONDS, SECONDS)
CLAIMS = {claim.id: claim for claim in declared("convoy").claims}


def echo(load, label=GIL, order=SHORT, singles=0, **options):
    return replace(experiment.serving(label, load, order, singles=singles), **options).run()


def ours():
    """Processes of this chapter that are still there."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(NATIVE / "convoy") in line and process.status() != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes", "native"])
def test_the_server_answers_and_the_work_goes_on(labels, kind):
    for label in labels:
        outcome = echo(replace(experiment.ONE, kind=kind, interval=1e-4), label)
        assert outcome.ended == "ok", (label, outcome.error)
        assert outcome.result["requests"] > 0
        assert outcome.result["p50"] is None or outcome.result["p50"] > 0
        assert outcome.result["us"] == []
        assert outcome.result["work"] > 0
        assert len(outcome.result["cores"]["CPU work"]) == (0 if kind == "processes" else 1)
        assert not ours()


@pytest.mark.slow
def test_a_sub_interpreter_and_asyncio():
    assert echo(replace(experiment.ONE, kind="interpreters")).result["work"] > 0
    assert echo(replace(experiment.ONE, server="asyncio", interval=1e-4)).result["requests"] > 0
    assert echo(replace(experiment.ONE, count=0)).result["work"] is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")
def test_pinning_is_what_it_says():
    cores = echo(replace(experiment.ONE, pinning="one core", interval=1e-4)).result["cores"]
    assert {cores["client"], cores["server"], *cores["CPU work"]} == {min(os.sched_getaffinity(0))}
    if len(os.sched_getaffinity(0)) > 1:
        cores = echo(replace(experiment.ONE, pinning="client apart", interval=1e-4)).result["cores"]
        assert cores["client"] == max(os.sched_getaffinity(0))
        assert cores["server"] == min(os.sched_getaffinity(0))


def test_a_quantile_takes_requests_enough(monkeypatch):
    native = module(monkeypatch)
    for number, known in ((4, []), (5, ["p50"]), (100, ["p50", "p99"]), (1000, ["p50", "p99", "p99.9"])):
        found = native.quantiles([(0, 1000 * took) for took in range(number)])
        assert list(found) == ["p50", "p99", "p99.9"]
        assert [name for name, value in found.items() if value is not None] == known


def test_single_requests_are_spread_over_all(monkeypatch):
    native = module(monkeypatch)
    assert native.spread(list(range(10)), 0) == []
    assert native.spread(list(range(10)), 4) == [0, 3, 6, 9]
    assert native.spread([1, 2], 4) == [1, 2]


@pytest.mark.slow
def test_the_orders_of_the_client_have_limits():
    """So many requests, but not before the least seconds, and not beyond the most."""
    found = echo(replace(experiment.ONE, count=0), order=(5, 0.0, 5.0), singles=3).result
    assert found["requests"] == 5
    assert len(found["us"]) == 3
    found = echo(replace(experiment.ONE, count=0), order=(5, 0.05, 5.0)).result
    assert found["requests"] > 5


@pytest.mark.slow
def test_switch_intervals_within_one_process(labels):
    orders = [(0.02, 1, 0, 0.05), (1e-3, 20, 0, 1.0)]
    fixed = {"folder": f"{BUILT}/convoy", "count": 1, "pinning": "none", "orders": orders, "seed": 1, "slack_ns": None}
    for label in labels:
        found = Case(label, experiment.EXPERIMENTS, "intervals", fixed=fixed).run().result
        assert [row["interval"] for row in found] == [0.02, 1e-3]
        assert [row["requests"] for row in found] == [1, 20]
        assert not ours()


@pytest.mark.slow
@pytest.mark.skipif(not experiment.can_set_slack(), reason="this system has no timer slack that can be set")
def test_the_timer_slack_is_set_and_inherited():
    code = (
        "import sys, threading; sys.argv = ['x']; sys.path[:0] = [sys.orig_argv[-2], sys.orig_argv[-1]]; import experiments as e, ctypes;"
        "e.set_timer_slack(7); found = [];"
        "one = threading.Thread(target=lambda: found.append(ctypes.CDLL(None).prctl(e.PR_GET_TIMERSLACK, 0, 0, 0, 0)));"
        "one.start(); one.join(); print(found)"
    )
    command = [sys.executable, "-c", code, str(NATIVE), str(NATIVE / "convoy")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[7]"


@pytest.mark.slow
def test_nothing_is_left_after_a_failure_or_a_time_limit():
    assert echo(replace(experiment.ONE, server="no such server"), order="much").ended.startswith("exit code")
    assert not ours()
    assert echo(replace(experiment.ONE, kind="processes", count=2), order=(1, 30, 30), timeout_s=2).ended == "timeout"
    assert not ours()


def module(monkeypatch):
    """The worker-side file, imported here."""
    monkeypatch.setattr(sys, "path", [str(NATIVE / "convoy"), str(NATIVE), *sys.path])
    spec = importlib.util.spec_from_file_location("convoy_experiments", ROOT / experiment.EXPERIMENTS)
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    return native


def test_the_server_is_on_loopback_only(monkeypatch):
    native = module(monkeypatch)
    with native.serve("threads") as (port, _):
        listening = [c.laddr for c in psutil.Process().net_connections("tcp") if c.laddr.port == port]
        assert {address.ip for address in listening} == {"127.0.0.1"}
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"


@pytest.mark.slow
def test_countdown_hashes_and_timeline(labels):
    for label in labels:
        for function, fixed, column in (
            ("countdowns", {"each": 10_000, "cells": [(0.005, 1), (0.005, 2), (1e-4, 2), (1e-4, 2)], "seed": 1}, "ns"),
            ("hashes", {"bytes_each": 10_000, "threads": (1, 2)}, "seconds"),
        ):
            found = Case(label, experiment.EXPERIMENTS, function, fixed=fixed).run().result
            assert [row["threads"] for row in found] == ([1, 2, 2] if function == "countdowns" else [1, 2])
            assert all(row[column] > 0 for row in found)
        fixed = {"interval": 1e-4, "seconds": SECONDS}
        timeline = Case(label, experiment.EXPERIMENTS, "timeline", fixed=fixed).run().result
        assert len(timeline["server"]) == 2 * len(timeline["spans"])
        assert timeline["server"] == sorted(timeline["server"])


@pytest.mark.slow
def test_a_wait_for_the_gil_is_known_from_its_protocol(labels):
    """Every wait is counted; with a GIL it takes a switch interval, whatever that is; the extension leaves the GIL off."""
    medians = {}
    for label in labels:
        for interval in (0.005, 0.02):
            fixed = {"interval": interval, "seconds": 0.2, "folder": f"{BUILT}/convoy"}
            outcome = Case(label, experiment.EXPERIMENTS, "gil_waits", fixed=fixed).run()
            assert outcome.ended == "ok", outcome.error
            assert outcome.gil_enabled == (label == GIL)
            assert min(outcome.result["waits"]) >= 0
            medians[label, interval] = np.median(outcome.result["waits"]) / 1e9
            assert not ours()
    assert medians[GIL, 0.005] > 0.005
    assert medians[GIL, 0.02] > 0.02
    assert medians[FREE_THREADED, 0.02] < 0.001


@pytest.mark.slow
def test_children_are_waited_for_so_that_their_time_counts_as_ours(monkeypatch):
    """Also the one that does not stop when it is told to."""
    native = module(monkeypatch)
    monkeypatch.setattr(native.sys, "argv", [str(WORKER)])
    work = native.CpuWork("processes", 1, "")
    (process,) = work._processes
    work._shared = [0]
    monkeypatch.setattr(process, "wait", functools.partial(impatient, process.wait))
    work.stop()
    assert process.returncode == -signal.SIGKILL
    process.stdout.close()


def impatient(wait, timeout=None):
    return wait(timeout and 0.05)


@pytest.fixture
def session(monkeypatch, tmp_path, quiet_progress):
    monkeypatch.setattr(sessions, "RECORDS", tmp_path)
    return sessions.Measuring("convoy", [GIL, FREE_THREADED])


def test_only_an_interpreter_for_comparison_may_fail(session, monkeypatch):
    def case(label, result):
        ended = Outcome(result, "ok" if result else "timeout", "no end within 60 s")
        return SimpleNamespace(interpreter=label, what=[], columns={"case": "1 CPU thread"}, run=lambda seed: ended)

    monkeypatch.setattr(sessions.Session, "interpreters", [GIL, FREE_THREADED, "3.13"])
    may_fail = experiment.elsewhere(session)
    frame = session.run("some", [case(GIL, {"rate": 1}), case("3.13", None)], 1, may_fail)
    assert set(frame.ended) == {"ok", "timeout"}
    assert list(results.rates(frame, experiment.CONVOY, "3.13")) == []
    with pytest.raises(UserError, match=f"others, case 1 CPU thread on {FREE_THREADED} brought no result: timeout"):
        session.run("others", [case(FREE_THREADED, None)], 1, may_fail)


@pytest.mark.slow
def test_self_check_of_the_exercise(session):
    assert exercise.check_server(session, kind="magic")[0].startswith("Choose kind")
    assert exercise.check_server(session, interval=0)[0].startswith("Choose an interval")
    lines = exercise.check_server(session)
    # A smoke test leaves little time: a server with a convoy may not get as far as a p99.
    assert "requests a second" in lines[0] or lines[0].startswith("Too few requests")
    session.close()
    assert exercise.check_server(sessions.Reading("convoy", session.folder)) == lines


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"p99": 1_000, "rate": 9_000, "work": 0.1}, "Not correct"),
        ({"p99": 3_000, "rate": 200, "work": 0.9}, "Not fast"),
        ({"p99": 1_000, "rate": 9_000, "work": 0.9}, "Correct, and fast"),
        ({"p99": None, "rate": 9, "work": 0.9}, "Too few requests"),
        (None, "The server did not come back: timeout"),
    ],
)
def test_what_the_exercise_says(monkeypatch, result, says):
    servers = [{"ended": "ok" if result else "timeout", "error": "", "result": result}]
    monkeypatch.setattr(exercise, "answered", lambda *_: servers)
    assert exercise.check_server(None)[-1].startswith(says)


RIGHT = dict.fromkeys(exercise.ASKED, False) | {experiment.APART: True, "asyncio server, 1 CPU thread": True}


def test_self_check_of_who_waits():
    runs = made_up()["echo server"]
    assert all(": right;" in line for line in exercise.check_waits(RIGHT, runs))
    wrong = {case: not waits for case, waits in RIGHT.items()}
    assert all(": not so;" in line for line in exercise.check_waits(wrong, runs))
    assert exercise.check_waits({}, runs)[0].endswith("choose True or False.")
    assert exercise.check_waits(RIGHT, runs.assign(p50=None))[0].endswith("no median for it.")


# The analysis, on data whose truth is known.


def made_up(calls=2):
    """Frames by title. A request takes 50 µs; one CPU thread adds `calls` switch intervals, two add twice as much."""
    rng = np.random.default_rng(6)
    rows = []
    for label, loads in ((GIL, experiment.loads(can_pin=True)), (FREE_THREADED, experiment.loads_elsewhere())):
        for name, load in loads.items():
            added = calls * load.count * load.interval if load.kind == "threads" and label == GIL else 0
            if load.pinning == "one core":
                added /= 50
            for _ in range(6):
                rate = 1 / (50e-6 + added) * rng.normal(1, 0.01)
                rows.append(
                    {
                        "interpreter": label,
                        "case": name,
                        "rate": rate,
                        "requests": 100,
                        "p50": 1e6 / rate,
                        "p99": 2e6 / rate,
                        "p99.9": None,
                        "work": 0.9 if load.count else None,
                        "cores.client": 0,
                        "cores.server": 1,
                        "cores.CPU work": [1] * load.count,
                        "us": [round(1e6 / rate)] * 20,
                    }
                )
    counts = [
        {
            "interpreter": label,
            "interval": interval,
            "threads": threads,
            "ns": (1 + (0.5 * threads if interval == experiment.SHORTEST_S else 0)) * rng.normal(1, 0.005),
            "steps": 1_000_000 * threads,
            "process": process,
        }
        for label, intervals in ((GIL, (experiment.DEFAULT_S, experiment.SHORTEST_S)), (FREE_THREADED, (0.005,)))
        for interval in intervals
        for threads in experiment.COUNT_THREADS
        for process in range(6)
    ]
    hashed = [
        {
            "interpreter": GIL,
            "threads": threads,
            "seconds": 2 / min(threads, 2) * rng.normal(1, 0.005),
            "bytes": 4_000_000,
        }
        for threads in experiment.HASH_THREADS
        for _ in range(6)
    ]
    references = [{"owner": rng.normal(1, 0.01), "foreign": rng.normal(9, 0.1)} for _ in range(6)]
    waits = [
        {"interpreter": label, "waits": list(wait * rng.normal(1, 0.01, 20))}
        for label, wait in ((GIL, 5e6), (FREE_THREADED, 500))
        for _ in range(6)
    ]
    sweeps = [
        {
            "interpreter": GIL,
            "count": count,
            "slack": slack,
            "interval": interval,
            "requests": 200,
            "rate": 1 / (50e-6 + count * interval),
            "p50": 1e6 * interval * count + (60 if slack == experiment.AS_IT_IS else 10) + rng.normal(),
        }
        for count in experiment.INTERVAL_THREADS
        for slack in experiment.SLACKS
        for interval in experiment.INTERVALS
        for _ in range(6)
    ]
    frames = {
        "switch intervals": sweeps,
        "timer slack": [row for row in sweeps if row["count"] == 1],
        "echo server": rows,
        "countdown": counts,
        "SHA-256": hashed,
        "reference counts": references,
        "waits for the GIL": waits,
    }
    return {title: pd.DataFrame(part).assign(ended="ok") for title, part in frames.items()}


def timeline(send=5_100_000, recv=5_000):
    """Ten requests; the clock is in ns. send returns late, recv at once."""
    spans, notes, time = [], [], 0
    for _ in range(10):
        sent = time
        received = max(sent, notes[-1] if notes else 0) + recv
        replied = received + send
        notes += [received, replied]
        spans.append((sent, received + 10_000))
        time = spans[-1][1]
    return {"spans": spans, "server": notes, "gaps": []}


def timelines(*sends):
    return pd.DataFrame([timeline(send=send) for send in sends or (5_100_000,)])


def test_the_calls_that_pay_are_found():
    paid = results.calls_that_pay(timelines())
    paid = paid.set_index("call")
    assert paid.loc["send", "share"] == 1
    assert paid.loc["send", "intervals"] == pytest.approx(1.02)
    assert paid.loc["recv", "share"] == 0


@pytest.mark.parametrize("calls", [1, 2])
def test_added_intervals_are_found(calls):
    runs = made_up(calls)["echo server"]
    assert np.median(results.added_intervals(runs)) == pytest.approx(calls, rel=0.05)
    assert not len(results.added_intervals(runs[runs.interpreter == FREE_THREADED]))
    near = {number: results.shares_near(runs, experiment.CONVOY, number).mean() for number in (0, 1, 2)}
    assert near == {number: float(number == calls) for number in near}
    assert results.medians_of_processes(runs, experiment.CONVOY) == pytest.approx(calls, rel=0.1)


def test_the_excess_over_one_interval_is_found():
    slacks = made_up()["timer slack"]
    for slack, known in ((experiment.AS_IT_IS, 60), (experiment.SLACKLESS, 10)):
        assert results.excess(slacks, 1e-5, slack).mean() == pytest.approx(known, abs=3)
    lacking = slacks.assign(p50=None)
    assert len(results.excess(lacking, 1e-5, experiment.AS_IT_IS)) == 0


def test_a_part_of_what_may_be_nothing_is_not_known():
    gone = Interval(36, 22, 49)
    assert figures.part(gone, Interval(72, 60, 98)) == Interval(0.5, pytest.approx(22 / 98), pytest.approx(49 / 60))
    assert figures.part(gone, Interval(40, 30, 50)).high == 1
    assert figures.part(gone, Interval(40, -5, 85)) is None
    assert figures.part(gone, None) is None


def test_waits_that_were_over_with_the_first_demand():
    waits = [[5e6, 5.2e6, 0, 1e4], [5e6, 10.1e6]]
    assert list(results.first_demands(pd.DataFrame({"interpreter": GIL, "waits": waits, "ended": "ok"}))) == [1, 0.5]


@pytest.mark.parametrize(("ratio", "alarm"), [(1.0, False), (1.5, True)])
def test_a_false_alarm_withholds_what_rests_on_the_convoy(ratio, alarm):
    runs = made_up()["echo server"]
    runs = runs.assign(rate=runs.rate.where(runs.case != experiment.AGAIN, runs.rate * ratio))
    (check,) = claims.controls(SimpleNamespace(frame={"echo server": runs}.__getitem__))
    assert check.passed != alarm
    assert set(check.claims) == {"C3", "C4", "C6", "C10"}
    assert (
        claims.controls(SimpleNamespace(frame={"echo server": runs[runs.case != experiment.AGAIN]}.__getitem__)) == []
    )


def test_the_base_of_added_intervals_is_that_of_the_same_round():
    case = [experiment.PROCESS] * 3 + [experiment.CONVOY] * 3
    base, added = np.array([0.001, 0.002, 0.004]), np.array([1, 2, 2])
    took = np.concatenate([base, base + added * experiment.DEFAULT_S])
    runs = pd.DataFrame({"interpreter": GIL, "case": case, "rate": 1 / took, "ended": "ok"})
    assert results.added_intervals(runs) == pytest.approx(added)


def test_every_wait_for_the_gil_counts_once_for_its_process():
    """No wait is chosen by its length: where most find the GIL free, the median says so."""
    waits = [[5e6] * 9 + [0], [0] * 9 + [5e6], []]
    frame = pd.DataFrame({"interpreter": GIL, "waits": waits, "ended": "ok"})
    assert list(results.gil_waits(frame)) == [1, 0]


def handed(frames):
    return claims.measurements(SimpleNamespace(corner="convoy", frame=frames.__getitem__)).complete()


def verdict(claim, frames):
    found = handed(frames)
    return verdicts.of_claim(CLAIMS[claim], found.measurements[claim], found.missing[claim])


def test_every_claim_gets_what_its_rule_asks_for():
    frames = made_up()
    found = handed(frames).measurements
    expected = {claim: {test.measured for test in CLAIMS[claim].tests} for claim in CLAIMS}
    assert {claim: set(measurements) for claim, measurements in found.items()} == expected
    for claim in ("C1", "C2", "C6", "C10"):
        assert verdict(claim, frames).verdict == verdicts.HOLDS, claim
    assert verdict("C8", frames).qualifier == "1 of 3; 2 not tested"
    assert not CLAIMS["C9"].tests
    assert CLAIMS["C9"].not_measurable
    one_call = {**frames, "echo server": made_up(1)["echo server"]}
    assert verdict("C10", one_call).verdict == verdicts.REFUTED


TESTED = [claim for claim in CLAIMS if CLAIMS[claim].tests]


def answered(truth):
    found = rows("convoy", truth, "full", 0, noise=0)
    return {claim: {part["verdict"] for part in found[claim]["parts"]} for claim in TESTED}


def test_what_is_made_up_as_published_holds():
    assert answered("as published") == {claim: {HOLDS} for claim in TESTED}
    assert {row["verdict"] for row in rows("convoy", "as published", "full", 0, noise=0).values()} == {
        verdicts.HOLDS,
        verdicts.IN_PART,
    }


@pytest.mark.parametrize("truth", ["no effect", "the wrong sign"])
def test_what_is_made_up_otherwise_does_not_hold(truth):
    assert answered(truth) == {claim: {DOES_NOT_HOLD} for claim in TESTED}


@pytest.mark.parametrize(
    "rule", [rule for claim in TESTED for rule in CLAIMS[claim].tests], ids=lambda rule: rule.title
)
def test_at_its_edge_every_rule_is_undecided(rule):
    edge = {Side: lambda: rule.bound, Size: lambda: rule.bounds[1], Equal: lambda: rule.null + rule.margin}[
        type(rule)
    ]()
    found = Measurement(Location(edge, error=0.01 * edge, freedom=17, n=30), "")
    assert rule.answer(found).verdict == UNDECIDED


def test_half_the_size_is_a_direction():
    found = rows("convoy", "half the size", "full", 0, noise=0)
    for claim in ("C2", "C3", "C4", "C5"):
        assert found[claim]["verdict"] == verdicts.IN_DIRECTION
        assert found[claim]["qualifier"] == "size differs"


@pytest.mark.parametrize(("ratio", "expected"), [(0.8, DOES_NOT_HOLD), (1.0, HOLDS), (3.0, HOLDS)])
def test_threads_may_slow_a_countdown_and_must_not_speed_it_up(ratio, expected):
    frames = made_up()
    counts = frames["countdown"]
    two = (counts.threads == 2) & (counts.interpreter == GIL)
    frames["countdown"] = counts.assign(ns=counts.ns.where(~two, counts.ns * ratio))
    ((_, answer),) = verdict("C1", frames).parts
    assert answer.verdict == expected


def test_what_is_tied_together_is_made_up_consistently():
    """The rate beside a process, the rate beside a thread, and what the thread adds to a request are three sides of one thing."""
    made = simulate("convoy", "as published", noise=0)
    runs = made.frame("echo server")
    process, thread = (results.rates(runs, case)[0] for case in (experiment.PROCESS, experiment.CONVOY))
    assert process / thread == pytest.approx(200)
    assert 1 / thread - 1 / process == pytest.approx(2 * experiment.DEFAULT_S)


def test_where_nothing_can_be_pinned_its_claim_says_so_and_its_table_too():
    frames = made_up()
    runs = frames["echo server"]
    runs = runs[runs.case.isin(experiment.loads(can_pin=False))]
    found = handed({**frames, "echo server": runs})
    assert set(found.missing["C6"].values()) == {claims.NO_PINNING}
    assert set(figures.echo_table(runs, GIL, "pinning")["requests/s"]) == {draw.NOT_MEASURED}


def test_tables():
    frames = made_up()
    runs, counts, references = (frames[title] for title in ("echo server", "countdown", "reference counts"))
    table = figures.countdown_table(counts)
    assert list(table["switch interval"]) == ["100 ms", "5 ms", "1 µs", "5 ms"]
    assert list(table["published, 8"]) == ["66.1", "71.9", "864.4", "–"]
    assert table["8 threads, ns"].iloc[0] == draw.NOT_MEASURED
    assert list(table["n (processes)"]) == [0, 6, 6, 6]
    table = figures.seconds_table(frames["SHA-256"])
    assert len(table) == len(experiment.HASH_THREADS)
    assert table["published, one thread / these"].iloc[1] == "1.96"
    table = figures.scale(counts, frames["SHA-256"])
    assert list(table["smaller by a factor of"]) == ["100", "50", "25", "12", "32"]
    assert list(figures.waits_table(frames["waits for the GIL"])["waits"]) == [120, 120]
    for kind in ("author", "pinning", "strangers", "help"):
        table = figures.echo_table(runs, GIL, kind)
        assert len(table) == len(figures.names(kind))
        assert set(table["p99.9, µs"]) == {figures.FEW}
        assert set(table["n (processes × requests)"]) == {"6 × 100"}
    idle = figures.echo_table(runs, GIL, "author").iloc[0]
    assert idle["speed of the CPU work, %"] == "no CPU work"
    assert idle["published"] == "30,000"
    assert len(figures.echo_table(runs, FREE_THREADED, "elsewhere")) == 4
    assert figures.echo_table(runs, "3.13", "elsewhere").empty
    silent = (runs.interpreter == FREE_THREADED) & (runs.case == "4 CPU threads")
    failed = runs.assign(ended=runs.ended.where(~silent, "timeout"), rate=runs.rate.where(~silent))
    assert figures.echo_table(failed, FREE_THREADED, "elsewhere")["requests/s"].iloc[-1] == "no result: timeout"
    sweeps = frames["switch intervals"]
    assert len(figures.interval_table(sweeps[sweeps.slack == experiment.AS_IT_IS])) == len(experiment.INTERVALS)
    assert len(figures.slack_table(frames["timer slack"])) == 2 * len(experiment.INTERVALS)
    one_arm = frames["timer slack"][frames["timer slack"].slack == experiment.AS_IT_IS]
    assert draw.NOT_MEASURED in set(figures.slack_table(one_arm)["requests/s"])
    assert len(figures.excesses(frames["timer slack"])) == 2 * len(experiment.INTERVALS)
    found = figures.latencies(runs)
    assert found.groupby("client").share.sum().tolist() == pytest.approx([1, 1])
    assert len(figures.mixture_table(runs)) == 2
    bars = figures.timeline_bars(timeline())
    assert set(bars.lane) <= set(figures.LANES)
    assert (bars.end_ms > bars.begin_ms).all()
    seats = figures.cores_words(results.done(runs, interpreter=GIL, case=experiment.CONVOY))
    assert seats == "client 0, server 1, work 1"
    assert figures.seat(None) == figures.seat(float("nan")) == "?"
    assert len(figures.references_table(references)) == 2
    assert len(figures.calls_table(timelines())) == 2
