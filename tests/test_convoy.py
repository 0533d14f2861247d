"""The chapter on the convoy: servers and CPU work end, whatever happens; the analysis finds what was put in."""

import os
import socket
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
from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.judge.claims import declared
from ffilab.paths import NATIVE, ROOT
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.convoy import claims, exercise, experiment, figures, results

SECONDS = 0.05
CLAIMS = {claim.id: claim for claim in declared("convoy").claims}


def echo(load, label=GIL, seconds=SECONDS, **options):
    return replace(experiment.serving(label, load, seconds), **options).run()


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
        assert 0 < outcome.result["p50"] <= outcome.result["p99"]
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


@pytest.mark.slow
def test_few_requests_have_no_tail():
    assert echo(replace(experiment.ONE, count=1)).result["p99.9"] is None


@pytest.mark.slow
def test_nothing_is_left_after_a_failure_or_a_time_limit():
    assert echo(replace(experiment.ONE, server="no such server"), seconds="much").ended.startswith("exit code")
    assert not ours()
    assert echo(replace(experiment.ONE, kind="processes", count=2), seconds=30, timeout_s=2).ended == "timeout"
    assert not ours()


def test_the_server_is_on_loopback_only(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(NATIVE / "convoy"), str(NATIVE), *sys.path])
    import importlib.util

    spec = importlib.util.spec_from_file_location("convoy_experiments", ROOT / experiment.EXPERIMENTS)
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    with native.serve("threads") as (port, _):
        listening = [c.laddr for c in psutil.Process().net_connections("tcp") if c.laddr.port == port]
        assert {address.ip for address in listening} == {"127.0.0.1"}
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"


@pytest.mark.slow
def test_countdown_hashes_and_timeline(labels):
    for label in labels:
        for function, fixed in (
            ("countdowns", {"total": 10_000, "interval": 1e-4}),
            ("hashes", {"bytes_each": 10_000}),
        ):
            rows = Case(label, experiment.EXPERIMENTS, function, fixed={**fixed, "threads": (1, 2)}).run().result
            assert [row["threads"] for row in rows] == [1, 2]
            assert all(row["seconds"] > 0 for row in rows)
        fixed = {"interval": 1e-4, "seconds": SECONDS}
        timeline = Case(label, experiment.EXPERIMENTS, "timeline", fixed=fixed).run().result
        assert len(timeline["server"]) >= 2 * len(timeline["spans"])
        assert timeline["server"] == sorted(timeline["server"])


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
    assert "requests a second" in lines[0]
    session.close()
    assert exercise.check_server(sessions.Reading("convoy", session.folder)) == lines


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"p99": 1_000, "rate": 9_000, "work": 0.1}, "Not correct"),
        ({"p99": 3_000, "rate": 200, "work": 0.9}, "Not fast"),
        ({"p99": 1_000, "rate": 9_000, "work": 0.9}, "Correct, and fast"),
        (None, "The server did not come back: timeout"),
    ],
)
def test_what_the_exercise_says(monkeypatch, result, says):
    servers = [{"ended": "ok" if result else "timeout", "error": "", "result": result}]
    monkeypatch.setattr(exercise, "answered", lambda *_: servers)
    assert exercise.check_server(None)[-1].startswith(says)


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
                    }
                )
    counts = [
        {
            "interpreter": GIL,
            "interval": interval,
            "threads": threads,
            "seconds": (1 + (0.5 * threads if interval == 1e-6 else 0)) * rng.normal(1, 0.005),
        }
        for interval in experiment.COUNT_INTERVALS
        for threads in experiment.COUNT_THREADS
        for _ in range(6)
    ]
    hashed = [
        {"interpreter": GIL, "threads": threads, "seconds": 2 / min(threads, 2) * rng.normal(1, 0.005)}
        for threads in experiment.COUNT_THREADS
        for _ in range(6)
    ]
    references = [{"owner": rng.normal(1, 0.01), "foreign": rng.normal(9, 0.1)} for _ in range(6)]
    titles = ("echo server", "countdown", "SHA-256", "reference counts")
    found = {
        title: pd.DataFrame(part).assign(ended="ok") for title, part in zip(titles, (rows, counts, hashed, references))
    }
    return {**found, "timeline": timelines(5_000_000, 5_050_000, 5_100_000, 5_150_000)}


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
    assert list(results.waits_a_request(paid)) == [1]
    assert list(results.long_waits(timelines())) == pytest.approx([1.02])
    paid = paid.set_index("call")
    assert paid.loc["send", "share"] == 1
    assert paid.loc["send", "intervals"] == pytest.approx(1.02)
    assert paid.loc["recv", "share"] == 0


@pytest.mark.parametrize("calls", [1, 2])
def test_added_intervals_are_found(calls):
    runs = made_up(calls)["echo server"]
    for interval in experiment.INTERVALS[:3]:
        assert np.median(results.added_intervals(runs, interval)) == pytest.approx(calls, rel=0.05)
    assert not len(results.added_intervals(runs[runs.interpreter == FREE_THREADED], experiment.DEFAULT_S))


def handed(frames):
    return claims.measurements(SimpleNamespace(corner="convoy", frame=frames.__getitem__)).complete()


def test_every_claim_gets_what_its_rule_asks_for():
    frames = made_up()
    found = handed(frames).measurements
    expected = {claim: {test.measured for test in CLAIMS[claim].tests} for claim in CLAIMS}
    assert {claim: set(measurements) for claim, measurements in found.items()} == expected
    verdicts = {
        claim: {ledger.judge_test(test, found[claim][test.measured])[0] for test in CLAIMS[claim].tests}
        for claim in CLAIMS
    }
    for claim in ("C1", "C2", "C6", "C8", "C9", "C10"):
        assert verdicts[claim] == {ledger.HOLDS}, claim
    one_call = handed({**frames, "echo server": made_up(1)["echo server"]}).measurements["C10"]
    (rule,) = CLAIMS["C10"].tests
    assert ledger.judge_test(rule, one_call[rule.measured])[0] == ledger.DOES_NOT_HOLD


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
    assert len(figures.seconds_table(counts)) == len(experiment.COUNT_INTERVALS)
    for kind in ("author", "pinning", "strangers", "help"):
        table = figures.echo_table(runs, GIL, kind)
        assert len(table) == len(figures.names(kind))
        assert set(table["p99.9, µs"]) == {figures.FEW}
    assert len(figures.echo_table(runs, FREE_THREADED, "elsewhere")) == 4
    assert figures.echo_table(runs, "3.13", "elsewhere").empty
    silent = (runs.interpreter == FREE_THREADED) & (runs.case == "4 CPU threads")
    failed = runs.assign(ended=runs.ended.where(~silent, "timeout"), rate=runs.rate.where(~silent))
    assert figures.echo_table(failed, FREE_THREADED, "elsewhere")["requests/s"].iloc[-1] == "no result: timeout"
    assert len(figures.interval_table(runs)) == len(figures.model_table(runs)) == len(experiment.INTERVALS)
    assert "not make the server faster" in figures.idle_words(runs)
    seats = figures.cores_words(results.done(runs, interpreter=GIL, case=experiment.CONVOY))
    assert seats == "client 0, server 1, work 1"
    assert figures.seat(None) == figures.seat(float("nan")) == "?"
    assert len(figures.references_table(references)) == 2
    assert len(figures.calls_table(timelines())) == 2
