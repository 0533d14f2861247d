"""A run beside other load withholds its verdicts: a timed plan beside a burner on every core, servers beside a compiler."""

import contextlib
import dataclasses
import subprocess
import sys
import time

import pytest

from ffilab import machine
from ffilab.bench.session import Measuring
from ffilab.budget import BUDGETS
from ffilab.judge import controls, ledger, verdicts
from ffilab.provision.catalogue import FREE_THREADED, GIL
from ffilab.subprocesses import group
from notebooks.convoy import experiment as convoy
from notebooks.loaders import experiment as loaders

# What takes a compiler a second or two.
HEADERS = '#include <regex>\n#include <iostream>\nint main() { std::regex r("a*"); std::cout << 1; }\n'


@contextlib.contextmanager
def beside(command, times=1):
    """Other processes, while something is measured."""
    with contextlib.ExitStack() as stack:
        for _ in range(times):
            stack.enter_context(group(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.5)
        yield


def burners():
    """One on every core."""
    return beside([sys.executable, "-c", "while True: pass"], machine.cores_usable())


def compiling(folder):
    """A compiler that starts again whenever it is done."""
    source = folder / "unit.cpp"
    source.write_text(HEADERS)
    return beside(["sh", "-c", f"while :; do {machine.compiler()} -x c++ -O2 -c {source} -o {folder}/unit.o; done"])


def timed():
    """The loaders' plan, shorter."""
    session = Measuring("loaders", [GIL, FREE_THREADED])
    session.time("calls", loaders.arms()[:4], budget=dataclasses.replace(BUDGETS["quick"], seconds=10, batch_ms=4))
    session.close()
    return session


def served():
    """The convoy's server, with and without a CPU thread beside it."""
    session = Measuring("convoy", [GIL])
    load = {convoy.QUIET: convoy.IDLE, convoy.CONVOY: convoy.ONE}
    cases = [convoy.serving(GIL, one, convoy.FURTHER_ORDER, name) for name, one in load.items()]
    session.run("echo server", cases, BUDGETS["quick"].repeats)
    session.close()
    return session


def withheld(session):
    return controls.reasons(controls.checks(session))


@pytest.mark.full
def test_a_timed_plan_beside_burners_is_withheld(quiet_progress):
    with burners():
        reasons = withheld(timed())
    assert any("others used" in reason for reason in reasons), reasons


@pytest.mark.full
def test_servers_beside_a_compiler_are_withheld(tmp_path, quiet_progress):
    with compiling(tmp_path):
        session = served()
    reasons = withheld(session)
    assert any("others used" in reason for reason in reasons), reasons
    # Whatever was measured: no verdict.
    handed = ledger.Handed("convoy")
    for claim in handed.missing:
        handed.missing[claim] = dict.fromkeys(handed._open[claim], "not looked at here")
    failed = [check for check in controls.checks(session) if not check.passed]
    rows = [row for _, row in ledger.rows_of(handed, {"is_result": True}, failed)]
    assert {row["verdict"] for row in rows} <= {verdicts.WITHHELD, verdicts.NOT_MEASURABLE}
