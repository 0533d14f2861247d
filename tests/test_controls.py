"""A run judges itself first: the controls on real interpreters, and the checks on records that are made up."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ffilab import machine
from ffilab.bench import instructions, runner
from ffilab.bench.plan import (
    APART,
    APART_AGAIN,
    COPIED,
    COPY_OF_INTERPRETER,
    EMPTY,
    MIN_PAIRS,
    control_pair,
    controls,
    empty_loop,
    plan,
)
from ffilab.bench.record import Record
from ffilab.bench.runner import Restart
from ffilab.bench.workers import Worker, WorkerFailed, fresh_copy
from ffilab.errors import UserError
from ffilab.judge import controls as judging
from ffilab.judge import ledger, verdicts
from ffilab.judge.controls import checks, reasons, table
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.provision.installed import load
from notebooks.loaders import claims as loaders_claims

PAIR = (GIL, FREE_THREADED)
NO_PID = 1 << 30


def test_every_plan_brings_its_controls_unless_it_is_told_not_to(smoke):
    names = {arm.name for arm in controls(1, 2)}
    assert names <= {arm.name for arm in plan("p", [empty_loop()], PAIR, smoke).arms}
    assert len(controls(400)) > len(controls(1))  # more arms have fewer blocks each, and more controls
    assert [arm.name for arm in plan("p", [empty_loop()], PAIR, smoke, with_controls=False).arms] == [EMPTY]


@pytest.fixture
def python(tmp_path):
    """Something to copy: an executable behind a link, as in a virtual environment."""
    real = tmp_path / "real" / "python"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\nexit 3\n")
    real.chmod(0o755)
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(real)
    return link


def test_a_copy_lies_beside_the_interpreter_and_is_no_link(python):
    copy = fresh_copy(python)
    assert copy.parent == python.parent
    assert not copy.is_symlink()
    assert copy.read_bytes() == python.read_bytes()
    assert os.access(copy, os.X_OK)


def test_what_a_killed_run_left_is_swept_and_nothing_else(python):
    folder = python.parent
    killed, running, foreign = (folder / f"copy-of-{maker}-x" for maker in (NO_PID, os.getppid(), "mine"))
    for path in (killed, running, foreign):
        path.touch()
    copy = fresh_copy(python)
    assert set(folder.iterdir()) == {python, running, foreign, copy}


def test_half_a_copy_is_not_left_on_a_full_disk(python, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("shutil.copy", full)
    with pytest.raises(WorkerFailed, match="No space left"):
        fresh_copy(python)
    assert list(python.parent.iterdir()) == [python]


def test_a_copy_that_does_not_start_fails_its_worker_and_is_removed(python, tmp_path, monkeypatch):
    python.resolve().write_text("no program\n")
    installed = SimpleNamespace(label=GIL, python=python, name="CPython")
    with pytest.raises(WorkerFailed, match="does not start"):
        Worker(installed, COPY_OF_INTERPRETER, tmp_path / "log")
    assert list(python.parent.iterdir()) == [python]
    with pytest.raises(UserError, match="does not start"):
        Worker(installed, "shared", tmp_path / "log")


@pytest.mark.full
@pytest.mark.parametrize("label", PAIR)
def test_a_worker_on_a_copy_starts_and_finds_its_library(label, smoke):
    installed = load(BY_LABEL[label])
    restart = Restart(plan("copies", [empty_loop()], [label], smoke), {label: installed})
    try:
        assert not restart.missing
        worker = restart.workers[label, COPY_OF_INTERPRETER]
        executable = os.readlink(f"/proc/{restart.facts[worker.name]['pid']}/exe")
        assert "copy-of-" in executable
        assert worker.time(COPIED, 10)["ns"] > 0
        both = [restart.facts[f"{label}/{group}"] for group in ("shared", COPY_OF_INTERPRETER)]
        assert both[0]["version"] == both[1]["version"]
        assert both[0]["gil_enabled"] == both[1]["gil_enabled"]
    finally:
        restart.close()
    assert not list(installed.python.parent.glob(f"copy-of-{os.getpid()}-*"))


@pytest.mark.full
@pytest.mark.usefixtures("quiet_progress")
def test_a_copy_that_cannot_be_made_is_missing_and_nothing_fails(smoke, tmp_path, monkeypatch):
    def refused(*_):
        raise WorkerFailed("a copy of the interpreter could not be made (read-only)")

    monkeypatch.setattr("ffilab.bench.workers.fresh_copy", refused)
    record = runner.run(plan("copies", [empty_loop()], [GIL], smoke), tmp_path)
    assert "read-only" in record.missing[GIL, COPIED]
    assert not record.failures
    assert len(record.blocks) == smoke.restarts * smoke.blocks
    assert record.measured(GIL, APART_AGAIN)
    assert not record.measured(GIL, COPIED)


@pytest.mark.full
@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_the_positive_control_is_one_per_cent_more_instructions():
    (first, longer), (second, _) = control_pair(1), control_pair(2)
    chosen = [arm for arm in controls() if arm.name in (first, second, longer)]
    counts = instructions.per_call(list(PAIR), chosen)
    for label in PAIR:
        assert 1.008 <= counts[label, longer] / counts[label, first] <= 1.012
        assert counts[label, second] == pytest.approx(counts[label, first], rel=1e-3)


def burn(seconds):
    """Another's process: its parent is a shell that has ended, so that it is no child of ours."""
    code = f"import time; t = time.monotonic()\nwhile time.monotonic() - t < {seconds}: pass"
    subprocess.run(["sh", "-c", '"$@" &', "sh", sys.executable, "-c", code], check=True)


@pytest.mark.full
def test_the_watch_sees_strangers_and_not_ourselves():
    def own(seconds):
        subprocess.run([sys.executable, "-c", f"import time\nwhile time.process_time() < {seconds}: pass"], check=True)

    # Others may use this machine while it is tested: the quietest of a few counts, as does what is added.
    quiet = []
    for _ in range(3):
        watch = machine.Watch()
        own(0.7)
        quiet.append(watch.end()["strangers_s"])
    watch = machine.Watch()
    burn(0.7)
    own(0.7)
    found = watch.end()
    assert found["strangers_s"] > min(quiet) + 0.2
    assert found["wall_s"] > 0.5
    watch = machine.Watch()
    assert watch.end(children_s=1.0)["strangers_s"] == pytest.approx(-1.0, abs=0.5)


PAIRS = [control_pair(number) for number in range(1, MIN_PAIRS // len(PAIR) + 1)]
ARMS = (*(arm for pair in PAIRS for arm in pair), APART, APART_AGAIN, COPIED)
# Of the logarithm of one arm's time over restarts, beside its neighbours in the same blocks.
SCATTER = 0.012


def timed(rng=None, restarts=20, blocks=3, scatter=SCATTER, missing=None, failures=0, **effects):
    """A record of controls. effects: by the name of an arm, so much longer it takes than it should; other columns of a block
    by their name."""
    rng = np.random.default_rng(0) if rng is None else rng
    columns = {"strangers_s": 0.001, "throttled_s": 0.0, "wall_s": 0.1, "steal_s": 0.0, "mhz": 3000.0}
    columns |= {name: effects[name] for name in columns if name in effects}
    effects = {"more": 0.01, "again": 0.0, "apart": 0.0, "copied": 0.0} | effects
    of_arm = {APART: 0.0, APART_AGAIN: effects["apart"], COPIED: effects["copied"]}
    for number, (shorter, longer) in enumerate(PAIRS):
        off = effects["again"] * (number == 1)
        of_arm |= {shorter: off, longer: effects["more"] + off}
    cells = [(label, arm) for label in PAIR for arm in ARMS if arm not in (missing or ())]
    keys = [f"{label}/{arm}" for label, arm in cells]
    centre = np.array([np.log1p(of_arm[arm]) for _, arm in cells])
    lines = []
    for restart in range(restarts):
        logs = centre + rng.normal(0, scatter, len(keys))
        for _ in range(blocks):
            ns = 1e7 * np.exp(logs + rng.normal(0, scatter, len(keys)))
            lines.append({"restart": restart, "ns": dict(zip(keys, ns.tolist())), **columns})
            if callable(mhz := columns["mhz"]):
                lines[-1]["mhz"] = mhz(restart)
    absent = {label: dict.fromkeys(missing or (), "could not be made") for label in PAIR}
    run = {"plan": {"name": "calls", "interpreters": list(PAIR), "blocks": blocks}}
    return Record(
        None,
        run,
        loops=dict.fromkeys(keys, 1000),
        restarts=[{"restart": number, "missing": absent} for number in range(restarts)],
        blocks=lines,
        failures=[{"restart": number} for number in range(failures)],
    )


def session(record, strangers_s=0.001):
    """With one experiment in processes, and one timed plan."""
    children = [{"title": "races", "run": 1, "strangers_s": strangers_s, "throttled_s": 0.0, "wall_s": 0.1}] * 10
    main = Record(None, record.run, experiments=[{"title": "races", "run": 1}], children=children)
    return SimpleNamespace(record=main, earlier=[], plans=["calls"], timed=lambda name: record)


def withheld(record, **others):
    return reasons(checks(session(record, **others)))


def test_a_clean_run_is_not_withheld_and_its_table_is_short():
    assert withheld(timed()) == []
    shown = table(checks(session(timed())))
    assert shown.check.tolist() == [
        "other load",
        "quota",
        "lost restarts",
        "stolen time",
        "frequency",
        "A/A",
        "positive control",
    ]
    assert shown.passed.tolist() == ["2 of 2", "2 of 2", "1 of 1", "1 of 1", "1 of 1", "6 of 6", "1 of 1"]


@pytest.mark.parametrize(
    ("effects", "kind"),
    [
        ({"strangers_s": 0.05}, "other load"),
        ({"steal_s": 0.1}, "stolen time"),
        ({"throttled_s": 0.01}, "quota"),
        ({"failures": 3}, "lost restarts"),
        ({"mhz": lambda restart: 3000 if restart % 2 else 2000}, "frequency"),
        ({"again": 0.05}, "A/A"),
        ({"apart": -0.05}, "A/A"),
        ({"copied": 0.05}, "A/A"),
        ({"more": 0.0}, "positive control"),
    ],
)
def test_each_mishap_gives_its_reason(effects, kind):
    found = withheld(timed(**effects))
    assert found
    assert all(reason.startswith(kind) for reason in found)


def test_strangers_beside_processes_withhold_too():
    (found,) = withheld(timed(), strangers_s=0.05)
    assert found.startswith("other load, processes of 'races'")


def test_two_failed_restarts_and_a_frequency_that_nobody_sees_are_no_reason():
    assert withheld(timed(failures=2, mhz=None)) == []


def test_a_copy_that_is_missing_is_said_and_is_no_reason():
    found = checks(session(timed(missing=[COPIED])))
    assert reasons(found) == []
    assert [check.found for check in found if COPIED in check.what] == ["could not be made"] * 2


def test_records_without_controls_are_withheld():
    record = timed()
    bare = Record(None, record.run, loops={f"{GIL}/x": 1}, restarts=record.restarts, blocks=record.blocks)
    assert any(reason.startswith("positive control") for reason in withheld(bare))


@pytest.mark.full
def test_of_a_thousand_clean_runs_hardly_any_is_withheld():
    rng = np.random.default_rng(5)
    bad = sum(bool(withheld(timed(rng))) for _ in range(1000))
    assert bad < 10


@pytest.mark.full
def test_a_run_that_cannot_see_one_per_cent_is_withheld():
    rng = np.random.default_rng(6)
    found = [withheld(timed(rng, scatter=0.06)) for _ in range(50)]
    assert sum(any(reason.startswith("positive control") for reason in one) for one in found) > 40


def test_a_check_of_a_corner_withholds_the_claims_that_rest_on_it_and_no_others(monkeypatch):
    session = SimpleNamespace(corner="loaders")
    failed = judging.Check("calibration", "two processes", "1.0", False, claims=("A13",))
    monkeypatch.setattr(loaders_claims, "controls", lambda given: [failed], raising=False)
    found = judging.of_corner(session)
    assert found == [failed]
    assert judging.reasons(found, "A13") == ["calibration, two processes: 1.0"]
    assert judging.reasons(found, "A14") == judging.reasons(found) == []
    everything = judging.Check("A/A", "twins", "1.2", False)
    assert judging.reasons([failed, everything], "A14") == ["A/A, twins: 1.2"]
    handed = ledger.Handed("loaders")
    handed.missing = {name: dict.fromkeys(left, "not looked at") for name, left in handed._open.items()}
    rows = {row["id"]: row for _, row in ledger.rows_of(handed, {"is_result": True}, [failed])}
    assert [name for name, row in rows.items() if row["verdict"] == verdicts.WITHHELD] == ["A13"]


def test_a_corner_without_checks_of_its_own_has_none():
    assert judging.of_corner(SimpleNamespace(corner="boundary")) == []
