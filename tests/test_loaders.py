"""The chapter on loaders: both loaders return the same on every kernel; the analysis finds what was put in."""

import numpy as np
import pandas as pd
import pytest

from ffilab.bench import child
from ffilab.bench.record import Record
from ffilab.corners import loaders
from ffilab.judge.statistics import Interval


@pytest.fixture(scope="module")
def made_up_record():
    """A record with known ratios: 3.14 CDLL 1.5 x PyDLL, 3.14t 1.1 x."""
    rng = np.random.default_rng(5)
    cells = {}
    for kernel, ratio in (("3.14", 1.5), ("3.14t", 1.1)):
        for function, base in (("noop", 80.0), ("getpid", 250.0)):
            cells[f"{kernel}/PyDLL {function}"] = base
            cells[f"{kernel}/CDLL {function}"] = base * ratio
        cells[f"{kernel}/CDLL noop again"] = 80.0 * ratio
        cells[f"{kernel}/empty loop"] = 5.0
        cells[f"{kernel}/detach and attach"] = 80.0 * ratio - 80.0
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))  # what a process brings along; shared by its arms
        for _ in range(10):
            ns = {k: int(1e6 * v * process * np.exp(rng.normal(0, 0.003))) for k, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns, "loops": dict.fromkeys(ns, 1_000_000)})
    run = {"plan": {"seed": 1, "kernels": ["3.14", "3.14t"], "blocks": 10}}
    return Record(None, run, [], blocks, [], False)


def test_ratio_is_found_although_processes_differ_by_five_percent(made_up_record):
    for kernel, truth in (("3.14", 1.5), ("3.14t", 1.1)):
        ratio = loaders.loader_comparison(made_up_record, kernel, "noop").ratio
        assert ratio.low <= truth <= ratio.high
        assert ratio.half_width / truth < 0.005


def test_gain_is_the_ratio_of_ratios(made_up_record):
    gain = loaders.gain_with_gil_over_without(made_up_record, "noop", "3.14")
    assert gain.low <= 1.5 / 1.1 <= gain.high


def test_same_call_raises_no_alarm(made_up_record):
    assert loaders.false_alarm(made_up_record).mde.max() < 0.01


@pytest.mark.parametrize("loader", loaders.LOADERS)
def test_both_loaders_return_the_same_on_every_kernel(labels, library, loader, tmp_path):
    script = tmp_path / "call.py"
    script.write_text(
        "import ctypes, json, os, sys\n"
        "lib = getattr(ctypes, sys.argv[1])(sys.argv[2])\n"
        "own = getattr(ctypes, sys.argv[1])(None)\n"
        "print(json.dumps({'noop': [lib.noop() for _ in range(100)], 'pid': own.getpid() == os.getpid(),"
        " 'slept': lib.sleep_ms(1)}))\n"
    )
    for label in labels:
        outcome = child.run(label, script, loader, library)
        assert outcome.result == {"noop": [0] * 100, "pid": True, "slept": 0}


def test_what_is_certain_about_loaders(labels, library):
    """Not a race and not a speed: these follow from the source, on every kernel."""
    for label in labels:
        gil = not label.endswith("t")
        assert child.run(label, loaders.EXPERIMENTS, "python_api", "PyDLL").result["result"] == "[]"
        assert child.run(label, loaders.EXPERIMENTS, "python_api", "CDLL").ended.startswith("killed by")
        for loader in loaders.LOADERS:
            outcome = child.run(label, loaders.EXPERIMENTS, "handshake", loader, library, 400)
            assert outcome.result == {"met": not (gil and loader == "PyDLL"), "gil_enabled": gil}


def test_detach_attach_leaves_the_gil_off(labels):
    from ffilab.bench.plan import plan
    from ffilab.bench.runner import Restart
    from ffilab.budget import BUDGETS
    from ffilab.kernels import load
    from ffilab.provision.catalogue import BY_LABEL

    pair = [label for label in labels if label.startswith("3.14")]
    arms = [arm for arm in loaders.arms() if arm.function == "detach_attach"]
    restart = Restart(plan("test", arms, pair, BUDGETS["smoke"]), {label: load(BY_LABEL[label]) for label in pair})
    try:
        assert restart.missing == {}
        assert restart.facts["3.14t/extension"]["gil_enabled"] is False
    finally:
        restart.close()


def frames(crashes=0.0, kept=0.05):
    hazards = pd.DataFrame(
        [
            {"kernel": "3.14", "loader": "CDLL", "crashes": Interval(1, 1, 1)},
            {"kernel": "3.14", "loader": "PyDLL", "crashes": Interval(crashes, 0, 1)},
        ]
    )
    shares = pd.DataFrame(
        [
            {"kernel": "3.14", "loader": "CDLL", "value": 1.0},
            {"kernel": "3.14", "loader": "PyDLL", "value": kept},
        ]
    )
    return shares, hazards


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
    lines = loaders.check_choice(choice, made_up_record, *frames())
    assert any(line.startswith(says) for line in lines)
