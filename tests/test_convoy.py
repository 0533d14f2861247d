"""The chapter on the convoy: servers and CPU work end, whatever happens; the analysis finds what was put in."""

import os
import socket
import sys

import numpy as np
import pandas as pd
import psutil
import pytest

from ffilab import kernels
from ffilab.bench import child
from ffilab.corners import convoy, convoy_page
from ffilab.corners.convoy import Case, astuple, replace
from ffilab.judge import ledger

LABELS = [kernel.label for kernel in kernels.present()]
SHORT = replace(convoy.ONE, seconds=0.05)


def echo(case: Case, label="3.14", **options):
    return child.run(label, convoy.EXPERIMENTS, "echo", convoy.LIBRARIES, *astuple(case), **options)


def ours():
    """Processes of this chapter that are still there."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(convoy.EXPERIMENTS) in line and process.status() != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("kind", ["threads", "processes", "native"])
def test_the_server_answers_and_the_work_goes_on(label, kind):
    outcome = echo(replace(SHORT, kind=kind, interval=1e-4), label)
    assert outcome.ended == "ok", outcome.error
    assert outcome.result["requests"] > 0
    assert 0 < outcome.result["p50"] <= outcome.result["p99"]
    assert outcome.result["work"] > 0
    assert len(outcome.result["cores"]["CPU work"]) == (0 if kind == "processes" else 1)
    assert not ours()


def test_a_sub_interpreter_and_asyncio():
    assert echo(replace(SHORT, kind="interpreters")).result["work"] > 0
    assert echo(replace(SHORT, server="asyncio", interval=1e-4)).result["requests"] > 0
    assert echo(replace(SHORT, count=0)).result["work"] is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")
def test_pinning_is_what_it_says():
    cores = echo(replace(SHORT, pinning="one core", interval=1e-4)).result["cores"]
    assert {cores["client"], cores["server"], *cores["CPU work"]} == {min(os.sched_getaffinity(0))}
    if len(os.sched_getaffinity(0)) > 1:
        cores = echo(replace(SHORT, pinning="client apart", interval=1e-4)).result["cores"]
        assert cores["client"] == max(os.sched_getaffinity(0))
        assert cores["server"] == min(os.sched_getaffinity(0))


def test_few_requests_have_no_tail():
    assert echo(replace(SHORT, count=1)).result["p99.9"] is None


def test_nothing_is_left_after_a_failure_or_a_time_limit():
    assert echo(replace(SHORT, server="no such server", seconds="much")).ended.startswith("exit code")
    assert not ours()
    assert echo(replace(SHORT, kind="processes", count=2, seconds=30), timeout_s=2).ended == "timeout"
    assert not ours()


def test_the_server_is_on_loopback_only(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(convoy.SOURCES), str(convoy.SOURCES.parent), *sys.path])
    import importlib.util

    spec = importlib.util.spec_from_file_location("convoy_experiments", convoy.EXPERIMENTS)
    experiments = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(experiments)
    with experiments.serve("threads") as (port, _):
        listening = [c.laddr for c in psutil.Process().net_connections("tcp") if c.laddr.port == port]
        assert {address.ip for address in listening} == {"127.0.0.1"}
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"


@pytest.mark.parametrize("label", LABELS)
def test_countdown_hashes_and_timeline(label):
    for experiment, arguments in (("countdowns", (10_000, 1e-4, 1, 2)), ("hashes", (10_000, 1, 2))):
        result = child.run(label, convoy.EXPERIMENTS, experiment, *arguments).result
        assert set(result) == {"1", "2"}
        assert all(seconds > 0 for seconds in result.values())
    timeline = child.run(label, convoy.EXPERIMENTS, "timeline", 1e-4, 0.05).result
    assert len(timeline["server"]) >= 2 * len(timeline["spans"])
    assert timeline["server"] == sorted(timeline["server"])


def test_self_check_of_the_exercise():
    assert convoy.check_server(kind="magic")[0].startswith("Choose kind")
    assert convoy.check_server(interval=0)[0].startswith("Choose an interval")
    assert "requests a second" in convoy.check_server()[0]


# The analysis, on data whose truth is known.


def made_up(calls=2):
    """A request takes 50 µs; one CPU thread adds `calls` switch intervals, two add twice as much."""
    rng = np.random.default_rng(6)
    rows = []
    for label, cases in (("3.14", convoy.cases()), ("3.14t", convoy.cases_elsewhere())):
        for name, case in cases.items():
            added = calls * case.count * case.interval if case.kind == "threads" and label == "3.14" else 0
            if case.pinning == "one core":
                added /= 50
            for _ in range(6):
                rate = 1 / (50e-6 + added) * rng.normal(1, 0.01)
                rows.append(
                    {
                        "kernel": label,
                        "case": name,
                        "rate": rate,
                        "requests": 100,
                        "p50": 1e6 / rate,
                        "p99": 2e6 / rate,
                        "p99.9": None,
                        "work": 0.9,
                        "cores": {"client": 0, "server": 1, "CPU work": [1] * case.count},
                    }
                )
    counts = [
        {
            "kernel": "3.14",
            "interval": interval,
            "threads": threads,
            "seconds": (1 + (0.5 * threads if interval == 1e-6 else 0)) * rng.normal(1, 0.005),
        }
        for interval in convoy.COUNT_INTERVALS
        for threads in convoy.COUNT_THREADS
        for _ in range(6)
    ]
    hashed = [
        {"kernel": "3.14", "bytes": 1, "threads": threads, "seconds": 2 / min(threads, 2) * rng.normal(1, 0.005)}
        for threads in convoy.COUNT_THREADS
        for _ in range(6)
    ]
    references = [{"owner": rng.normal(1, 0.01), "foreign": rng.normal(9, 0.1)} for _ in range(6)]
    return tuple(map(pd.DataFrame, (rows, counts, hashed, references)))


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


def test_the_calls_that_pay_are_found():
    paid = convoy.calls_that_pay([timeline()]).set_index("call")
    assert paid.loc["send", "share"] == 1
    assert paid.loc["send", "intervals"] == pytest.approx(1.02)
    assert paid.loc["recv", "share"] == 0


@pytest.mark.parametrize("calls", [1, 2])
def test_added_intervals_are_found(calls):
    runs, *_ = made_up(calls)
    for interval in convoy.INTERVALS[:3]:
        assert np.median(convoy.added_intervals(runs, interval)) == pytest.approx(calls, rel=0.05)
    assert not len(convoy.added_intervals(runs[runs.kernel == "3.14t"], convoy.DEFAULT_S))


def test_every_claim_gets_what_its_rule_asks_for():
    runs, counts, hashed, references = made_up()
    found = [timeline(send=n) for n in (5_000_000, 5_050_000, 5_100_000, 5_150_000)]
    handed = convoy.claim_measurements(runs, counts, hashed, found, references)
    expected = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "convoy"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == expected
    verdicts = {
        claim: {ledger.judge_test(t, measurements[t["measured"]])[0] for t in ledger.claim(claim)["test"]}
        for claim, measurements in handed.items()
    }
    for claim in ("C1", "C2", "C6", "C8", "C9", "C10"):
        assert verdicts[claim] == {ledger.HOLDS}, claim
    one_call = convoy.claim_measurements(made_up(1)[0], counts, hashed, found, references)["C10"]
    rule = ledger.claim("C10")["test"][0]
    assert ledger.judge_test(rule, one_call[rule["measured"]])[0] == ledger.DOES_NOT_HOLD


def test_tables():
    runs, counts, _, references = made_up()
    assert len(convoy_page.seconds_table(counts)) == len(convoy.COUNT_INTERVALS)
    for kind in ("author", "pinning", "strangers", "help"):
        table = convoy_page.echo_table(runs, "3.14", convoy_page.names(kind))
        assert len(table) == len(convoy_page.names(kind))
        assert set(table["p99.9, µs"]) == {convoy_page.FEW}
    assert len(convoy_page.echo_table(runs, "3.14t", convoy_page.names("elsewhere"))) == 4
    assert convoy_page.echo_table(runs, "3.13", convoy_page.names("elsewhere")).empty
    silent = runs[(runs.kernel != "3.14t") | (runs.case != "4 CPU threads")]
    assert "no result" in convoy_page.echo_table(silent, "3.14t", convoy_page.names("elsewhere"))["requests/s"].iloc[-1]
    assert len(convoy_page.interval_table(runs)) == len(convoy_page.model_table(runs)) == len(convoy.INTERVALS)
    assert "not make the server faster" in convoy_page.idle_words(runs)
    assert "client 0, server 1, work 1" in convoy_page.cores_words(runs, "3.14", convoy.CONVOY)
    assert len(convoy_page.references_table(references)) == 2
    assert len(convoy_page.calls_table([timeline()])) == 2
