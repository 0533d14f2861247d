"""Two runs compared: ratios within each, and the drift of the machine between them as a line of its own."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ffilab.judge import runs
from ffilab.judge.estimates import LEVEL
from ffilab.judge.groups import SESSION
from ffilab.measure.plan import EMPTY, control_pair
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import GIL
from tests.helpers.made_up import MadeUp, timed
from tests.helpers.of_chapter import write

GOLDEN = Path(__file__).with_name("golden")
YARDSTICK = control_pair(1)[0]
# Logarithm of the time of each arm, in units of a microsecond.
ARMS = {YARDSTICK: 0.0, EMPTY: -3.0, "CDLL": 0.4, "PyDLL": 0.2, "memory": -0.5}
DRIFT = 1.3


def a_run(seed, drift=1.0, drawn=None, **slower):
    """20 restarts that scatter by half a per cent each; all arms take `drift` times as long, some of them longer
    still."""
    rng = np.random.default_rng(seed)
    machine = np.log(drift) + rng.normal(0, 0.02, (20, 1))
    logs = {}
    for arm, log in ARMS.items():
        scatter = rng.normal(0, 0.005, (20, 1)) + rng.normal(0, 0.002, (20, 4))
        logs[arm] = machine + log + np.log(slower.get(arm, 1.0)) + scatter
    return timed(logs, drawn)


@pytest.fixture
def said(tmp_path):
    """The report of two runs, its lines by arm."""

    def report(first, second):
        paths = [write(record, tmp_path / name / "calls.jsonl") for name, record in (("a", first), ("b", second))]
        text = runs.report(tuple(paths))
        return text, {arm: line for arm in ARMS for line in text.splitlines() if arm in line and "two runs" not in line}

    return report


def test_a_drift_of_the_machine_changes_no_ratio(said):
    text, lines = said(a_run(1), a_run(2, DRIFT))
    assert text.startswith(
        "Nothing changed that two sessions do not differ by anyway (3 numbers).\na/calls.jsonl, then b/calls.jsonl"
    )
    (drift,) = re.findall(r"the drift is ([\d.]+) \[([\d.]+), ([\d.]+)\]", text)
    value, low, high = map(float, drift)
    assert value == pytest.approx(DRIFT, abs=0.03)
    assert low <= DRIFT <= high
    for arm in ARMS.keys() - {YARDSTICK, EMPTY}:
        assert lines[arm].endswith(", no change found")
    # The machine's drift is all that moved: nothing claims to have tested times of different runs.
    assert ", changed" not in text
    assert not re.search(r"\bp\b|p-value|significan", text)
    assert "of the machine or of its layouts" in lines[YARDSTICK]


def test_an_arm_that_became_slower_is_found_under_the_drift(said):
    text, lines = said(a_run(3), a_run(4, DRIFT, CDLL=1.05))
    assert [arm for arm, line in lines.items() if line.endswith(", changed")] == ["CDLL"]
    change = float(re.search(r": ([\d.]+) \[[^]]*\], changed", lines["CDLL"]).group(1))
    assert change == pytest.approx(1.05, abs=0.02)
    assert text.count(", changed") == 1
    assert text.startswith(f"1 of 3 numbers changed: CDLL on {GIL}.")


def test_the_columns_are_ratios_to_the_yardstick_and_its_own_times():
    table = runs.compare_runs(a_run(5), a_run(6, DRIFT)).set_index("arm")
    assert table.index[0] == YARDSTICK
    assert set(table.yardstick) == {YARDSTICK}
    assert table["first"]["CDLL"].value == pytest.approx(np.exp(0.4), rel=0.01)
    assert table["second"]["CDLL"].value == pytest.approx(np.exp(0.4), rel=0.01)
    assert table["first"][YARDSTICK].value == pytest.approx(1000, rel=0.03)
    assert table["second"][YARDSTICK].value == pytest.approx(1000 * DRIFT, rel=0.03)
    assert table.low[YARDSTICK] < table.value[YARDSTICK] < table.high[YARDSTICK]


@pytest.mark.full
def test_nothing_is_called_changed_in_all_but_two_of_a_hundred_comparisons():
    """Three arms in 100 pairs of runs that differ by what sessions add: of the whole list, not of each row."""
    rng = np.random.default_rng(5)
    found = 0
    for seed in range(100):
        off = np.exp(rng.normal(0, SESSION, 3))
        table = runs.compare_runs(
            a_run(1000 + seed), a_run(2000 + seed, DRIFT, **dict(zip(("CDLL", "PyDLL", "memory"), off)))
        )
        found += (table.p < 1 - LEVEL).any()
    assert found <= 5


# ---- processes ----


def processes(seed, server=1.0, lost=0.0):
    """A record of two experiments: a server's rate by case, and two rows of a counter with the share that is lost."""
    session = MadeUp("convoy")
    drawn = np.random.default_rng(seed).normal(0, 0.05, 12)
    rates = [{"rate": 3000 * server * float(np.exp(one))} for one in drawn]
    session.add_processes("echo server", [({"case": "quiet"}, rates)])
    counted = [[{"how": "safe", "lost": 0.0}, {"how": "unsafe", "lost": lost + number / 100}] for number in range(12)]
    session.add_processes("counter", [({}, counted)])
    return session.record


def test_the_processes_of_two_runs_are_compared_case_by_case():
    def changed(first, second):
        table = runs.compare_runs(first, second)
        # What never varies is no row.
        assert set(table.arm) == {"echo server: case quiet, rate", "counter: how unsafe, row 2, lost"}
        return table[table.p < 1 - LEVEL].set_index("arm")

    assert len(changed(processes(1), processes(2))) == 0
    faster = changed(processes(3), processes(4, server=1.3))
    assert list(faster.index) == ["echo server: case quiet, rate"]
    assert faster.value.iloc[0] == pytest.approx(1.3, abs=0.1)
    # A share that may be zero is compared as a difference.
    worse = changed(processes(5), processes(6, lost=0.5))
    assert list(worse.index) == ["counter: how unsafe, row 2, lost"]
    assert worse.value.iloc[0] == pytest.approx(0.5)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.jsonl")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_record_that_a_run_leaves_can_be_compared(path):
    try:
        said = runs.report((path, path))
    except UserError as refused:
        assert "no experiment in common, or none whose numbers vary" in str(refused)  # noqa: PT017
    else:
        assert said.startswith(("Nothing changed that two sessions do not differ by anyway", "None of "))


def without(record, *arms):
    """A record as a version left it that did not time these arms."""
    keys = {f"{GIL}/{arm}" for arm in arms}
    blocks = [{**one, "ns": {key: ns for key, ns in one["ns"].items() if key not in keys}} for one in record.blocks]
    loops = {key: count for key, count in record.loops.items() if key not in keys}
    return replace(record, loops=loops, blocks=blocks)


def test_the_empty_loop_is_the_yardstick_of_older_records():
    older = without(a_run(1), YARDSTICK)
    assert set(runs.compare_runs(older, a_run(2)).yardstick) == {EMPTY}
    assert YARDSTICK not in set(runs.compare_runs(older, a_run(2)).arm)


def test_what_cannot_be_compared_is_refused(tmp_path):
    record, bare = a_run(1), without(a_run(2), YARDSTICK, EMPTY)
    other = replace(record, run={"plan": {**record.run["plan"], "interpreters": []}})
    children = replace(record, run={"plan": {"interpreters": [GIL], "blocks": 0}})
    for pair, says in (
        ((bare, record), f"no yardstick in common on {GIL}"),
        ((record, bare), f"no yardstick in common on {GIL}"),
        ((other, record), "no interpreter and arm in common"),
        ((record, children), "timed arms and the other child processes"),
    ):
        with pytest.raises(UserError, match=says):
            runs.compare_runs(*pair)
    with pytest.raises(UserError, match="There is no record"):
        runs.report((tmp_path / "none", tmp_path / "none"))


def test_circumstances_and_what_was_drawn_are_named(said):
    drawn = [*range(16), *range(4)]
    first, second = a_run(1), a_run(2, drawn=drawn)
    second.run["machine"] = {**second.run["machine"], "compiler": "clang"}
    second.run["interpreters"] = {GIL: {**second.run["interpreters"][GIL], "version": "3.14.8"}}
    text, _ = said(first, second)
    assert "measured on one binary of each interpreter, then on 16 layouts" in text
    assert "differs: compiler: gcc | clang" in text
    assert f"differs: CPython {GIL}: 3.14.7 | 3.14.8" in text
    assert "differs: cpu" not in text
