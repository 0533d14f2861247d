"""The worker on real interpreters: an arm is a statement and its setup, or an object that a function of a file
makes."""

import json
import random
import subprocess
from contextlib import closing

import pytest

from ffilab.measure import instructions
from ffilab.measure.plan import Arm
from ffilab.measure.worker import Statement
from ffilab.measure.workers import Worker, WorkerFailed, described
from ffilab.run.paths import BUILT, NATIVE_OUT
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load
from tests.helpers.of_chapter import PAIR

COUNTING = "ran = []\ndef count():\n    ran.append(1)\n    return len(ran)"
ARMS = [
    Arm("a statement", "f()", "import os\nf = os.getpid"),
    Arm(
        "with a loop of its own", "count_to(loops)", uses="def count_to(n):\n    for _ in range(n): pass", own_loop=True
    ),
    Arm("an object", file="tests/helpers/hostile_arms.py", function="fine"),
    Arm("setup once", "assert made == 1 and len(ran) == 1", "made = count()", COUNTING),
    Arm("a path", f"assert folder == {str(NATIVE_OUT)!r}", f"folder = '{BUILT}'"),
    Arm("raises", "1 / 0"),
    Arm("is no Python", "1 +"),
    Arm("lacks a package", "f()", "from no_such_package import f"),
    Arm("raises later", "left.pop()", "left = [1] * 300"),
]


def test_both_forms_are_timed_and_what_goes_wrong_is_said(build, tmp_path):
    with closing(Worker(load(BY_LABEL[build]), "shared", tmp_path / "log")) as worker:
        worker.load(ARMS, None, random.Random(1))
        missing = worker.loaded["missing"]
        assert missing.keys() == {"raises", "is no Python", "lacks a package"}
        assert missing["raises"] == "ZeroDivisionError: division by zero"
        assert missing["is no Python"].endswith("(<statement>, line 1)")
        assert missing["lacks a package"] == "ModuleNotFoundError: No module named 'no_such_package'"
        for arm in ARMS[:5]:
            assert worker.time(arm.name, 1_000)["ns"] > 0
        with pytest.raises(WorkerFailed, match=r"raises later on .* ended in IndexError: pop from empty list"):
            worker.time("raises later", 1_000)


def test_both_forms_are_run_for_perf_and_callgrind(build):
    for arm in ARMS[:3]:
        subprocess.run(instructions.command(build, arm, 100), check=True)
    orders = [[described(arm), 1, 2, 3] for arm in ARMS]
    marked = subprocess.run(
        [*instructions.python(build), "marked", json.dumps(orders)], check=True, capture_output=True
    )
    assert json.loads(marked.stdout) == [0, 1, 2, 3, 4, 8]


def test_what_the_setup_assigns_is_a_fast_local_and_what_it_uses_is_a_global():
    names = Statement("f(work)", "f = len\nx = 1", "work = 'abc'", False).timer.inner.__code__
    assert {"f", "x"} <= set(names.co_varnames)
    assert "work" in names.co_names
    assert not {"f", "work"} & set(names.co_varnames) & set(names.co_names)


def test_a_loop_of_its_own_is_run_once_and_given_the_number():
    arm = Statement("given.append(loops)", "given = []", "", True)
    arm.timeit(1_000)
    assert arm.names["given"] == [1, 1_000]


def test_a_worker_is_started_by_a_command_of_one_length(tmp_path):
    """A string more, or a longer one, shifts the heap behind it: so equal processes differed by three per cent."""
    workers, others = [], []
    try:
        for _ in range(2):
            workers.append(Worker(load(BY_LABEL[PAIR[0]]), "shared", tmp_path / "log"))
            # The next one's pipes have numbers of more digits.
            others += [(tmp_path / "log").open("ab") for _ in range(100)]
        first, second = ([len(word) for word in worker._process.args] for worker in workers)
        assert first == second
    finally:
        for one in [*workers, *others]:
            one.close()
