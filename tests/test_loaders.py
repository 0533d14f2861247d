"""The chapter on loaders: both loaders return the same on every interpreter; the analysis finds what was put in."""

import numpy as np
import pandas as pd
import pytest

from ffilab.bench.case import Case
from ffilab.bench.plan import plan
from ffilab.bench.record import Record
from ffilab.bench.runner import Restart
from ffilab.judge import statistics
from ffilab.judge.statistics import Interval
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.provision.installed import load
from notebooks.loaders import exercise, experiment, figures, results


@pytest.fixture(scope="module")
def made_up_record():
    """A record with known ratios: with the GIL CDLL is 1.5 x PyDLL, without it 1.1 x."""
    rng = np.random.default_rng(5)
    cells = {}
    for label, ratio in ((GIL, 1.5), (FREE_THREADED, 1.1)):
        for function, base in (("noop", 80.0), ("getpid", 250.0)):
            cells[f"{label}/PyDLL {function}"] = base
            cells[f"{label}/CDLL {function}"] = base * ratio
        cells[f"{label}/CDLL noop again"] = 80.0 * ratio
        cells[f"{label}/empty loop"] = 5.0
        cells[f"{label}/detach and attach"] = 80.0 * ratio - 80.0
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))  # what a process brings along; shared by its arms
        for _ in range(10):
            ns = {k: int(1e6 * v * process * np.exp(rng.normal(0, 0.003))) for k, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns})
    run = {"plan": {"seed": 1, "interpreters": [GIL, FREE_THREADED], "blocks": 10}}
    return Record(None, run, loops=dict.fromkeys(cells, 1_000_000), blocks=blocks)


def test_ratio_is_found_although_processes_differ_by_five_percent(made_up_record):
    for label, truth in ((GIL, 1.5), (FREE_THREADED, 1.1)):
        ratio = results.comparison(made_up_record, label, "noop").ratio
        assert ratio.low <= truth <= ratio.high
        assert ratio.half_width / truth < 0.005


def test_gain_is_the_ratio_of_ratios(made_up_record):
    gain = results.gain_with_gil_over_without(made_up_record, "noop")
    assert gain.low <= 1.5 / 1.1 <= gain.high


def test_same_call_raises_no_alarm(made_up_record):
    found = statistics.false_alarms(made_up_record, results.COPIES)
    assert [label for label, _, _ in found] == [GIL, FREE_THREADED]
    assert max(comparison.mde for _, _, comparison in found) < 0.01


@pytest.mark.parametrize(
    ("noop", "getpid", "says"),
    [
        ((1.1, 1.2), (1.3, 1.4), "more with the GIL"),
        ((0.8, 0.9), (0.7, 0.9), "more without the GIL"),
        ((1.1, 1.2), (0.9, 1.1), "does not settle"),
    ],
)
def test_which_build_gains_more_is_said_by_the_intervals(noop, getpid, says):
    gain = {"noop": Interval(sum(noop) / 2, *noop), "getpid": Interval(sum(getpid) / 2, *getpid)}
    assert says in figures.gain_in_words(gain)


def test_shares_are_rates_during_the_call_over_rates_beside_it():
    """A thread that counts 500 in the call's 2 ns and 1000 in the reference's 1 ns keeps a quarter."""
    run = {"counts.call": 500, "elapsed.call": 2, "counts.reference": 1000, "elapsed.reference": 1, "pauses.call": 3e6}
    frame = pd.DataFrame([{"interpreter": GIL, "loader": "PyDLL", **run}] * 5)
    row = results.of(results.shares_kept(frame), GIL, "PyDLL")
    assert (row.value, row.pause_ms, row.runs) == (0.25, 3, 5)


def test_a_process_that_died_did_not_meet_and_one_that_crashed_is_counted():
    def child(what, ended="ok", met=None):
        return {"interpreter": GIL, "loader": "CDLL", "what": what, "ended": ended, "met": met}

    rows = [
        child("C API", "killed by SIGSEGV"),
        child("C API"),
        child("handshake", met=True),
        child("handshake", "timeout"),
        child("handshake", met=False),
        child("handshake", met=True),
    ]
    other = [{**row, "loader": "PyDLL"} for row in rows]
    row = results.of(results.ends(pd.DataFrame(rows + other)), GIL, "CDLL")
    assert (row.crashes.value, row.deadlocks.value, row.how) == (0.5, 0.5, "killed by SIGSEGV, ok")


@pytest.mark.slow
@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_both_loaders_return_the_same_on_every_interpreter(labels, library, loader, tmp_path):
    script = tmp_path / "call.py"
    script.write_text(
        "import ctypes, os\n"
        "def call(loader, library):\n"
        "    lib, own = (getattr(ctypes, loader)(path) for path in (library, None))\n"
        "    return {'noop': [lib.noop() for _ in range(100)], 'pid': own.getpid() == os.getpid(),"
        " 'slept': lib.sleep_ms(1)}\n"
    )
    for label in labels:
        outcome = Case(label, str(script), "call", {"loader": loader}, {"library": str(library)}).run()
        assert outcome.result == {"noop": [0] * 100, "pid": True, "slept": 0}


@pytest.mark.slow
def test_what_is_certain_about_loaders(labels):
    """Not a race and not a speed: these follow from the source, on every interpreter."""
    for label in labels:
        gil = not label.endswith("t")

        def run(function, loader, label=label, **fixed):
            return Case(label, experiment.EXPERIMENTS, function, {"loader": loader}, fixed).run()

        assert run("python_api", "PyDLL").result == {"made": "[]"}
        assert run("python_api", "CDLL").ended.startswith("killed by")
        for loader in experiment.LOADERS:
            outcome = run("handshake", loader, library=experiment.LIBRARY, milliseconds=400)
            assert outcome.result == {"met": not (gil and loader == "PyDLL")}
            assert outcome.gil_enabled == gil


@pytest.mark.slow
def test_detach_attach_leaves_the_gil_off(smoke):
    pair = (GIL, FREE_THREADED)
    arms = [arm for arm in experiment.arms() if arm.function == "detach_attach"]
    restart = Restart(plan("test", arms, pair, smoke), {label: load(BY_LABEL[label]) for label in pair})
    try:
        assert restart.missing == {}
        assert restart.facts[f"{FREE_THREADED}/extension"]["gil_enabled"] is False
    finally:
        restart.close()


def frames(crashes=0.0, kept=0.05):
    ends = pd.DataFrame(
        [
            {"interpreter": GIL, "loader": "CDLL", "crashes": Interval(1, 1, 1)},
            {"interpreter": GIL, "loader": "PyDLL", "crashes": Interval(crashes, 0, 1)},
        ]
    )
    shares = pd.DataFrame(
        [
            {"interpreter": GIL, "loader": "CDLL", "value": 1.0},
            {"interpreter": GIL, "loader": "PyDLL", "value": kept},
        ]
    )
    return shares, ends


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({}, "Still open"),
        ({"noop": "PyDLL", "sleep_ms": "CDLL", "PyList_New": "CDLL"}, "Not correct"),
        ({"noop": "PyDLL", "sleep_ms": "PyDLL", "PyList_New": "PyDLL"}, "Not good enough"),
        ({"noop": "CDLL", "sleep_ms": "CDLL", "PyList_New": "PyDLL"}, "Not yet fast"),
        ({"noop": "PyDLL", "sleep_ms": "CDLL", "PyList_New": "PyDLL"}, "Fast"),
    ],
)
def test_self_check_of_the_exercise(made_up_record, choice, says):
    lines = exercise.check_choice(choice, made_up_record, *frames())
    assert any(line.startswith(says) for line in lines)
