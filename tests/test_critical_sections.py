"""The chapter on critical sections: every safe lock is exact on every kernel; the analysis finds what was put in."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from ffilab import kernels
from ffilab.bench import child, instructions
from ffilab.bench.plan import Arm
from ffilab.bench.record import Record
from ffilab.corners import critical_sections, marshaling
from ffilab.corners import critical_sections_page as page
from ffilab.judge import ledger
from ffilab.provision.catalogue import BY_LABEL

LABELS = [kernel.label for kernel in kernels.present()]
SAFE = [name for name, increments in critical_sections.PIECES.items() if increments and name != "no lock"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", SAFE)
def test_a_safe_lock_loses_nothing(label, name):
    loops = 40_000 // critical_sections.PIECES[name]
    if label == "3.13t" and "recursive" in name:
        loops //= 20  # no shortcut before 3.14: it suspends and resumes each time
    outcome = child.run(
        label, critical_sections.EXPERIMENTS, "stress", critical_sections.LIBRARIES, name, 8, loops, timeout_s=120
    )
    assert outcome.ended == "ok", outcome.error
    assert outcome.result["value"] == outcome.result["expected"] == 8 * loops * critical_sections.PIECES[name]


@pytest.mark.parametrize("label", LABELS)
def test_the_extension_is_what_the_chapter_says(label):
    """The same pieces, and its import leaves the GIL off on t-builds."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(critical_sections.SOURCES)!r}); import arms; "
        f"m = arms.load({str(critical_sections.LIBRARIES)!r}); "
        "print(json.dumps([m.pieces(), getattr(sys, '_is_gil_enabled', lambda: True)()]))"
    )
    python = kernels.load(BY_LABEL[label]).python
    pieces, gil = json.loads(subprocess.run([python, "-I", "-c", program], capture_output=True, check=True).stdout)
    assert {name: increments for name, increments, _ in pieces} == critical_sections.PIECES
    assert [name for name, increments, safe in pieces if safe and increments] == SAFE
    assert gil != label.endswith("t")


@pytest.fixture(scope="module")
def record():
    """Made up: t-builds cost 1.4 times (3.13) and 1.08 times (3.14) as much; a hundred atomics cost four locks of a hundred."""
    rng = np.random.default_rng(3)
    cells = {}
    for label in ("3.13", "3.13t", "3.14", "3.14t"):
        factor = {"3.13t": 1.4, "3.14t": 1.08}.get(label, 1)
        for arm in critical_sections.arms():
            cells[f"{label}/{arm.name}"] = 50 * factor
        cells[f"{label}/100 atomic increments, in C"] = 600 * factor
        cells[f"{label}/100 increments under one PyMutex, in C"] = 150 * factor
        cells[f"{label}/PyMutex, in C"] = 14 * factor
        cells[f"{label}/atomic increment, in C"] = 6 * factor
        cells[f"{label}/empty loop"] = 5
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))
        for _ in range(4):
            ns = {k: int(1e5 * v * process * np.exp(rng.normal(0, 0.004))) for k, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns, "loops": dict.fromkeys(ns, 100_000)})
    run = {"plan": {"seed": 1, "kernels": ["3.13", "3.13t", "3.14", "3.14t"], "blocks": 4}}
    return Record(None, run, [{"missing": {}}], blocks, [], False)


def test_the_tax_is_found(record):
    for version, truth in (("3.13", 1.4), ("3.14", 1.08)):
        found = critical_sections.tax(record, version, list(critical_sections.OPERATIONS))
        assert found.low - 0.002 <= truth <= found.high + 0.002
    assert critical_sections.tax(record, "3.15", ["function call"]) is None
    assert page.versions_with_both(record) == ["3.13", "3.14"]
    assert page.ratio_table(record).shape[1] == 3


CODE = pd.DataFrame(
    [
        {
            "CPython": label,
            "what": "a PyO3 call",
            "instructions": 500.0,
            "atomics": n,
            "mutexes": 0.0,
            "critical sections": 0.0,
        }
        for label, n in (("3.14", 2.0), ("3.14t", 23.0))
    ]
)


def test_every_claim_gets_what_its_rule_asks_for(record):
    handed = critical_sections.claim_measurements(record, CODE)
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "critical_sections"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    assert handed["A8"]["PyMutex / atomic increment"].interval.value == pytest.approx(14 / 6, rel=0.01)
    assert handed["A9"]["share of atomics and locks in a PyO3 call on 3.14t"].interval.value == pytest.approx(0.046)
    assert critical_sections.claim_measurements(record, "no valgrind")["A9"] == {}


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(9)
    rows = []
    for label, what, name, shared, threads, _ in (
        (job[0], job[2].removeprefix("contended_"), *critical_sections.case(job))
        for job in critical_sections.jobs()
        if job[2] != "calibration"
    ):
        for _ in range(5):
            factor = threads if shared == "own objects" else 0.8
            rows.append(
                {
                    "kernel": label,
                    "what": what,
                    "name": name,
                    "shared": shared,
                    "threads": threads,
                    "per_second": 1e7 * factor,
                    "scaling": factor * np.exp(rng.normal(0, 0.01)),
                }
            )
    for how in ("processes", "threads"):
        rows += [{"what": "calibration", "name": how, "scaling": 1.9 + 0.01 * n} for n in range(5)]
    return pd.DataFrame(rows)


def test_scaling_is_found(record, runs):
    found = critical_sections.scaling(runs, "3.14t", "object").set_index(["name", "case"])
    assert found.loc[("dict", "2 threads, own objects")].value == pytest.approx(2, rel=0.05)
    assert found.loc[("dict", "2 threads, one object")].value == pytest.approx(0.8, rel=0.05)
    assert "slower in total" in page.cost_of_objects(runs)
    assert critical_sections.calibration(runs)["threads"].value == pytest.approx(1.92)
    table = page.lock_table(record, runs)
    assert len(table) == len(critical_sections.PIECES)
    assert not (table == page.NOT_HERE).to_numpy().any()


def test_self_check(record):
    assert "Still open" in critical_sections.check_lock("", record)[0]
    assert "Still open" in critical_sections.check_lock("reference count", record)[0]
    assert critical_sections.check_lock("no lock", record)[0].startswith(("Not correct", "Nothing was lost this time"))
    correct, slow = critical_sections.check_lock("PyMutex", record)
    assert correct.startswith("Correct")
    assert slow.startswith("Not yet the cheapest")
    assert critical_sections.check_lock("100 increments under one PyMutex", record)[1].startswith("Fast")


@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_inlined_atomics_are_seen_by_their_source_file():
    def atomics(label):
        write = Arm("write", str(critical_sections.ARMS), "operation", {"name": "dict, write"})
        found = instructions.by_file(label, write)
        if set(found) == {"???"}:
            pytest.skip("this interpreter has no debugging information")
        return sum(n for file, n in found.items() if "atomic" in file)

    assert atomics("3.14t") > atomics("3.14") + 5


def test_a_binding_that_was_not_built_is_left_out(monkeypatch):
    monkeypatch.setattr(
        marshaling, "why_not_built", lambda label, binding: "no compiler" if binding == "PyO3" else None
    )
    assert "PyO3" not in {job[4] for job in critical_sections.jobs() if job[2] == "contended_binding"}
