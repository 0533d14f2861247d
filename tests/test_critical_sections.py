"""The chapter on critical sections: every safe lock is exact on every interpreter; the analysis finds what was put in."""

import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab import draw
from ffilab.bench import instructions
from ffilab.bench.case import Case
from ffilab.bench.record import Record
from ffilab.errors import UserError
from ffilab.judge import processes, verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval, Location, Measurement
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED, Size
from ffilab.judge.simulation import TRUTHS
from ffilab.paths import NATIVE_OUT, ROOT
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL, SOURCES, both_builds
from notebooks.critical_sections import claims, exercise, experiment, figures, results, words

LABELS = [interpreter.label for interpreter in installed.present()]


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", exercise.SAFE)
def test_a_safe_lock_loses_nothing(label, name):
    loops = 40_000 // experiment.PIECES[name]
    if label == "3.13t" and "recursive" in name:
        loops //= 20  # no shortcut before 3.14: it suspends and resumes each time
    fixed = {"folder": experiment.LIBRARIES, "threads": 8, "loops": loops}
    outcome = Case(label, experiment.EXPERIMENTS, "stress", {"name": name}, fixed, timeout_s=120).run()
    assert outcome.ended == "ok", outcome.error
    assert outcome.result["value"] == outcome.result["expected"] == 8 * loops * experiment.PIECES[name]


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_the_extension_is_what_the_chapter_says(label):
    """The same pieces, and its import leaves the GIL off on t-builds."""
    program = (
        f"import json, sys; sys.path.insert(0, {str((ROOT / experiment.ARMS).parent)!r}); import arms; "
        f"m = arms.load({str(NATIVE_OUT / 'critical_sections')!r}); "
        "print(json.dumps([m.pieces(), getattr(sys, '_is_gil_enabled', lambda: True)()]))"
    )
    python = installed.load(BY_LABEL[label]).python
    pieces, gil = json.loads(subprocess.run([python, "-I", "-c", program], capture_output=True, check=True).stdout)
    assert {name: increments for name, increments, _ in pieces} == experiment.PIECES
    assert [name for name, increments, safe in pieces if safe and increments] == exercise.SAFE
    assert gil != label.endswith("t")


@pytest.fixture(scope="module")
def record():
    """Made up: t-builds cost 1.4 times (3.13) and 1.08 times (3.14) as much; a hundred atomics cost four locks of a hundred."""
    rng = np.random.default_rng(3)
    labels = ["3.13", "3.13t", "3.14", "3.14t"]
    cells = {}
    for label in labels:
        factor = {"3.13t": 1.4, "3.14t": 1.08}.get(label, 1)
        for arm in experiment.arms():
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
            blocks.append({"restart": restart, "ns": ns})
    run = {"plan": {"seed": 1, "interpreters": labels, "blocks": 4}}
    return Record(None, run, loops=dict.fromkeys(cells, 100_000), blocks=blocks)


def test_the_tax_is_found(record):
    for version, truth in (("3.13", 1.4), ("3.14", 1.08)):
        found = results.tax(record, version, list(experiment.OPERATIONS)).at()
        assert found.low - 0.002 <= truth <= found.high + 0.002
    assert results.tax(record, "3.15", ["function call"]) is None
    assert both_builds(record.interpreters) == ["3.13", "3.14"]
    assert figures.every_version(record).shape[1] == 3
    taxes = results.taxes(record, {})
    table = figures.taxes(taxes)
    assert list(table["documented for one thread"]) == ["about 40 %"] * 2 + ["5 to 10 %"] * 2
    words = figures.other_taxes(taxes)
    assert words.startswith("For the other versions here: 3.13t / 3.13, interpreter 1.")
    assert words.count("], boundary 1.") == 1
    assert "3.14" not in words
    pair = {cell: n for cell, n in record.loops.items() if not cell.startswith("3.13")}
    run = {"plan": {**record.run["plan"], "interpreters": [GIL, FREE_THREADED]}}
    alone = Record(None, run, loops=pair, blocks=record.blocks)
    assert figures.other_taxes(results.taxes(alone, {})) == ""


def test_a_binding_of_another_version_on_one_build_is_no_pair():
    """PyO3 has an older version of itself on 3.13t: the tax of that version is computed without it."""
    stand_ins = {"3.13": {}, "3.13t": {"PyO3": "another version stands in"}, "3.14": {}}
    assert results.boundary_arms("3.14", stand_ins) == results.BOUNDARY_ARMS
    left = set(results.BOUNDARY_ARMS) - set(results.boundary_arms("3.13", stand_ins))
    assert left == {experiment.boundary.name("PyO3", experiment.boundary.INT)}


def test_an_arm_that_starts_a_thread_shares_no_process_with_what_is_compared():
    """On 3.13t the first thread changes what counting references costs, for the rest of the process."""
    groups = {arm.name: arm.group for arm in experiment.arms()}
    starts = f"{experiment.FOREIGN}, in C"
    assert [name for name, group in groups.items() if group == groups[starts]] == [starts]
    assert {groups[name] for name in results.BOUNDARY_ARMS} == {"shared"}


def test_a_version_without_a_documented_tax_says_so():
    assert SOURCES["3.15"].documented_tax == "none of its own"


def test_an_arm_that_was_not_timed_is_left_out(record):
    arm = results.BOUNDARY_ARMS[0]
    loops = {cell: n for cell, n in record.loops.items() if cell != f"3.14t/{arm}"}
    less = Record(None, record.run, loops=loops, blocks=record.blocks)
    assert arm not in set(results.operation_ratios(less, "3.14").operation)
    assert arm in set(results.operation_ratios(less, "3.13").operation)
    found = results.tax(less, "3.14", results.BOUNDARY_ARMS).at()
    assert found.value == pytest.approx(1.08, rel=0.01)


def code(gil=2.0, free_threaded=23.0):
    """What was seen of the code of locks: so many of 500 instructions are from the header of atomics."""
    return [
        {"interpreter": label, "what": what, "by_file": {"pyatomic_gcc.h": n, "clock.h": 7.0, "ceval.c": 493.0 - n}}
        for label, n in ((GIL, gil), (FREE_THREADED, free_threaded))
        for what in (experiment.PYO3_CALL, "dict, write")
    ]


def session_of(record, seen):
    observed = {"code of locks": seen, "bindings by a stand-in": {}}
    return SimpleNamespace(corner="critical_sections", timed={"single": record}.get, observed=observed.get)


def test_every_claim_gets_what_its_rule_asks_for(record):
    handed = claims.measurements(session_of(record, code())).complete()
    ours = {claim.id: {test.measured for test in claim.tests} for claim in declared("critical_sections").claims}
    assert {claim: set(measurements) for claim, measurements in handed.measurements.items()} == ours
    assert handed.measurements["A6"]["boundary, 3.13t / 3.13"].interval.value == pytest.approx(1.4, rel=0.01)
    assert handed.measurements["A8"]["PyMutex / atomic increment"].interval.value == pytest.approx(14 / 6, rel=0.01)
    share = handed.measurements["A9"][f"share of atomics and locks in a PyO3 call on {FREE_THREADED}"]
    assert share.interval.value == pytest.approx(0.046)


def test_what_is_missing_has_a_reason(record):
    labels = [GIL, FREE_THREADED]
    loops = {cell: n for cell, n in record.loops.items() if cell.split("/")[0] in labels}
    run = {"plan": {**record.run["plan"], "interpreters": labels}}
    less = Record(None, run, loops=loops, blocks=record.blocks)
    handed = claims.measurements(session_of(less, "no valgrind")).complete()
    assert handed.measurements["A9"] == {}
    assert set(handed.missing["A9"].values()) == {"no valgrind"}
    reason = handed.missing["A6"]["boundary, 3.13t / 3.13"]
    assert reason.startswith("CPython 3.13 and 3.13t (KERNELS=all")
    broken = [{**row, "by_file": None, "reason": "it failed"} for row in code()]
    assert results.lock_share(broken, GIL, experiment.PYO3_CALL) == "it failed"


def ratio(value, error=0.004):
    return Measurement(Location(np.log(value), error, 20, 30, log=True), "ratio of times")


def share(value):
    return processes.exact(value, "share of instructions")


RULES = {
    "A6": {
        "boundary, 3.13t / 3.13": [(ratio(1.4), HOLDS), (ratio(1.0), DOES_NOT_HOLD), (ratio(1.05), UNDECIDED)],
        f"boundary, {FREE_THREADED} / {GIL}": [
            (ratio(1.05), HOLDS),
            (ratio(1.2), DOES_NOT_HOLD),
            (ratio(1.1), UNDECIDED),
        ],
    },
    "A8": {
        "100 atomic increments / 100 increments under one PyMutex": [
            (ratio(4), HOLDS),
            (ratio(1), DOES_NOT_HOLD),
            (ratio(1.2, 0.1), UNDECIDED),
        ],
        "PyMutex / atomic increment": [(ratio(2), HOLDS), (ratio(0.5), DOES_NOT_HOLD), (ratio(1.05), UNDECIDED)],
    },
    # What was counted is not undecided.
    "A9": {
        f"share of atomics and locks in a PyO3 call on {FREE_THREADED}": [
            (share(0.046), HOLDS),
            (share(0.004), DOES_NOT_HOLD),
        ],
        f"share of atomics and locks in a PyO3 call on {GIL}": [(share(0.004), HOLDS), (share(0.046), DOES_NOT_HOLD)],
    },
}


def test_every_rule_gives_all_of_its_answers():
    for claim in declared("critical_sections").claims:
        assert set(RULES[claim.id]) == {test.measured for test in claim.tests}
        for test in claim.tests:
            for measurement, expected in RULES[claim.id][test.measured]:
                assert test.answer(measurement).verdict == expected, (claim.id, test.measured, measurement)


def test_shares_of_time_are_no_size_for_shares_of_instructions():
    tests = [test for claim in declared("critical_sections").claims for test in claim.tests]
    assert not any(isinstance(test, Size) for test in tests)


def test_made_up_records_give_the_verdicts_that_are_true():
    for truth in TRUTHS:
        found = {name: row["verdict"] for name, row in rows("critical_sections", truth, "full", 0, noise=0).items()}
        right = verdicts.HOLDS if truth in ("as published", "half the size") else verdicts.REFUTED
        assert found == dict.fromkeys(("A6", "A8", "A9"), right), truth


def test_headers_are_told_apart():
    table = figures.code_of_locks(code())
    assert list(table.columns) == ["CPython", "what", "instructions", *results.HEADERS]
    assert list(table.atomics) == ["2 (0.4%)"] * 2 + ["23 (4.6%)"] * 2
    assert set(table.mutexes) == {"0 (0.0%)"}  # a clock is no lock


class Recording:
    """A session that runs nothing: it makes up the rates that each case gives."""

    def __init__(self, cores=2):
        self.interpreters = [GIL, FREE_THREADED]
        self.budget = SimpleNamespace(few=5, repeats=10)
        self.machine = {"cores_usable": cores}

    def run(self, title, cases, repeats):
        rng = np.random.default_rng(9)
        rows = []
        for case in cases:
            for _ in range(repeats):
                factor = 0.8 if case.columns["shared"] == experiment.ONE else case.columns["threads"]
                alone = 1e7 * np.exp(rng.normal(0, 0.01))
                rows.append({"interpreter": case.interpreter, **case.columns, "alone": alone, "together": 1e7 * factor})
        return pd.DataFrame(rows)

    def observe(self, title, look, *arguments):
        return look(*arguments)


@pytest.mark.parametrize("name", experiment.OBJECTS)
def test_scaling_is_found(name):
    runs = experiment.objects(Recording())
    for label in (GIL, FREE_THREADED):
        found = results.scaling(runs, label, experiment.OBJECTS).set_index(["name", "threads", "shared"])
        assert list(found.loc[name].index) == [
            (2, "foreign objects"),
            (2, "one object"),
            (2, "own objects"),
            (4, "one object"),
        ]
        assert found.loc[(name, 2, "own objects")].value == pytest.approx(2, rel=0.05)
        assert found.loc[(name, 2, "one object")].value == pytest.approx(0.8, rel=0.05)


def test_figures_show_every_case(record):
    runs = experiment.objects(Recording())
    found = results.scaling(runs, FREE_THREADED, experiment.OBJECTS)
    assert "less than one in 3 of 3 cases" in words.in_company(found, experiment.ONE, PASSED)
    table = figures.scaling(found)
    cases = ["2 threads, foreign objects", "2 threads, one object", "2 threads, own objects", "4 threads, one object"]
    assert list(table.columns) == ["name", *cases, "n (processes)"]
    assert set(table["n (processes)"]) == {5}
    assert list(table.name) == list(experiment.OBJECTS)
    texts = results.scaling(experiment.texts(Recording()), FREE_THREADED, experiment.TEXTS)
    assert list(figures.texts_in_company(texts)["from two threads"]) == list(experiment.TEXTS)
    assert set(figures.when_table().lock) == set(experiment.PIECES)


@pytest.fixture(scope="module")
def locks():
    return experiment.locks(Recording())


def test_locks_have_a_table_for_each_way_of_sharing(locks):
    scaled = results.scaling(locks, FREE_THREADED, experiment.IN_COMPANY)
    for shared, gain in ((experiment.OWN, "2.0"), (experiment.MADE_ELSEWHERE, "2.0"), (experiment.ONE, "0.8")):
        table = figures.lock_table(locks, scaled, shared)
        assert list(table.lock) == list(experiment.IN_COMPANY)
        assert not (table == draw.NOT_MEASURED).to_numpy().any()
        assert all(found.startswith((gain, "1.9", "0.7")) for found in table["rate, 2 / 1"])
    many = table.set_index("lock").loc["PyMutex", "each of 4, ns"]
    assert many.startswith("500")  # four threads do 8 million a second: each waits 500 ns for one of its own


def test_cases_that_records_lack_are_said_to_be_missing(locks):
    """Records of an older version hold fewer cases."""
    less = locks[locks["name"] != "PyMutex"]
    scaled = results.scaling(less, FREE_THREADED, experiment.IN_COMPANY)
    table = figures.lock_table(less, scaled, experiment.OWN).set_index("lock")
    assert table.loc["PyMutex", "1 thread, ns"] == draw.NOT_MEASURED
    runs = experiment.bindings(BuiltAll())
    shared = runs[runs.shared == experiment.ONE]
    assert set(results.own_over_shared(shared, experiment.LOADED_TWICE).values()) == {None}
    assert all(found.value > 2 for found in results.own_over_shared(runs, experiment.LOADED_TWICE).values())


def test_a_machine_of_one_core_has_two_cases():
    """Two threads on one object are then also two for each core."""
    found = results.scaling(experiment.objects(Recording(cores=1)), FREE_THREADED, experiment.OBJECTS)
    assert figures.scaling(found).shape == (3, 5)


def calibrated(processes, threads, cores=2):
    rng = np.random.default_rng(1)
    runs = {
        how: [value * np.exp(rng.normal(0, 0.02)) for _ in range(10)]
        for how, value in (("processes", processes), ("threads", threads))
    }
    return [check.passed for check in results.calibrated(pd.DataFrame(runs), cores)]


def test_a_calibration_that_fails_is_known_as_such():
    assert calibrated(1.95, 1.9) == [True, True]
    assert calibrated(1.0, 1.9) == [False, True]  # two processes are not faster than one
    assert calibrated(1.95, 1.0) == [True, False]
    assert calibrated(3.0, 1.9) == [False, True]  # beyond what two can do
    assert calibrated(1.0, 1.0, cores=1) == [False, False]
    wide = pd.DataFrame({"processes": [1.2, 2.0, 2.1, 2.2, 7.0], "threads": [0.1, 1.7, 1.9, 2.0, 2.0]})
    assert not any(check.passed for check in results.calibrated(wide, 2))
    few = pd.DataFrame({"processes": [1.9], "threads": [1.9]})
    assert not any(check.passed for check in results.calibrated(few, 2))


def test_the_calibration_is_a_check_on_which_no_claim_rests():
    runs = pd.DataFrame({how: [1.9 + 0.01 * n for n in range(5)] for how in ("processes", "threads")})
    session = SimpleNamespace(frame={"two at once": runs}.get, machine={"cores_usable": 2})
    found = claims.controls(session)
    assert [check.passed for check in found] == [True, True]
    assert {check.claims for check in found} == {()}
    assert "1.92 [" in words.calibration(found)


PASSED = [Check("two at once", "two processes", "1.9", True)]
FAILED = [Check("two at once", "two processes", "1.0", False)]


def test_a_failed_calibration_withholds_every_sentence_on_threads(monkeypatch, record, locks):
    def glued(checks):
        found = {}
        monkeypatch.setattr(draw, "glue", found.__setitem__)
        two = Interval(1.95, 1.9, 2.0)
        figures.glue_company(record, locks, results.scaling(locks, FREE_THREADED, experiment.IN_COMPANY), two, checks)
        objects = experiment.objects(Recording())
        figures.glue_objects(
            {one: results.scaling(objects, one, experiment.OBJECTS) for one in (GIL, FREE_THREADED)}, two, checks
        )
        bindings = experiment.bindings(BuiltAll())
        scaled = results.scaling(bindings, FREE_THREADED, experiment.boundary.BINDINGS)
        figures.glue_bindings(bindings, scaled, two, checks)
        figures.glue_texts(results.scaling(experiment.texts(Recording()), FREE_THREADED, experiment.TEXTS), checks)
        return found

    assert not any(text.startswith("Withheld") for text in glued(PASSED).values())
    withheld = glued(FAILED)
    # What the first thread of a process changes is seen by one thread alone.
    assert {name for name, text in withheld.items() if not text.startswith("Withheld")} == {"started-threads"}


def test_a_documented_tax_is_read_as_ratios():
    assert results.documented("3.14") == (1.05, 1.10)
    assert results.documented("3.13") == (1.4, 1.4)
    assert results.documented("3.15") is None


def test_locks_are_put_in_order(record):
    order, told = results.order_of_locks(record)
    assert [name for name, _ in order] == ["atomic increment", "PyMutex", *[name for name, _ in order[2:]]]
    assert told[0]
    assert not told[2]  # made equal


@pytest.mark.slow
def test_calibration_compares_with_one_alone():
    fixed = {"folder": experiment.LIBRARIES, "milliseconds": 2}
    outcome = Case(FREE_THREADED, experiment.EXPERIMENTS, "calibration", fixed=fixed).run()
    assert outcome.ended == "ok", outcome.error
    assert set(outcome.result) == {"processes", "threads"}
    assert all(value > 0 for value in outcome.result.values())


@pytest.mark.slow
def test_an_object_of_its_own_costs_less_than_a_foreign_one():
    """Not a race: the foreign half of a reference count is atomic."""
    found = Case(
        FREE_THREADED, experiment.EXPERIMENTS, "reference_counts", fixed={"folder": experiment.LIBRARIES}
    ).run()
    assert found.result["owner"] < found.result["foreign"]


def with_price(locks, name, ns):
    """The same runs, with a price for each of two threads on one object."""
    chosen = (locks["name"] == name) & (locks.shared == experiment.ONE) & (locks.threads == 2)
    return locks.assign(together=locks.together.where(~chosen, 2e9 / ns))


class Stressed(Recording):
    """A session in which so many increments were lost."""

    def __init__(self, lost=0):
        super().__init__()
        self.lost = lost

    def observe(self, title, look, *arguments):
        return {"value": 1_000 - self.lost, "expected": 1_000}


def test_self_check_of_the_lock(locks):
    runs = with_price(locks, "atomic increment", 10)

    def check(lock, lost=0):
        return " ".join(exercise.check_lock(lock, Stressed(lost), runs))

    assert "Cheap: 10" in check("atomic increment")
    assert "Not the cheapest" in check("PyMutex")
    assert "20 of 1,000 increments were lost" in check("no lock", lost=20)
    assert "proves nothing" in check("no lock")
    for open_ in ("", "reference count", "spin lock"):
        assert "Still open" in check(open_)
        assert "; ".join(exercise.CHOICES) in check(open_)


def test_self_check_of_the_lock_accepts_no_other_task(locks):
    for name in exercise.OTHER_TASKS:
        assert exercise.check_lock(name, Stressed(), locks)[0].startswith("Not this task")
    assert set(exercise.CHOICES) | set(exercise.OTHER_TASKS) == set(exercise.COUNTERS)
    assert not set(exercise.CHOICES) & set(exercise.OTHER_TASKS)


class FromRecords(Recording):
    """A session that is read, and holds no answer like this."""

    def observe(self, title, look, *arguments):
        raise UserError("the records do not hold it")


def test_self_checks_say_that_records_hold_no_such_answer(locks):
    assert exercise.check_lock("PyMutex", FromRecords(), locks) == ["Not run: the records do not hold it"]
    assert exercise.check_counter("", FromRecords())[0].startswith("Not run: this page is made from records")


COUNTER = """
{imports}
class Counter:
    def __init__(self):
        self.value, self.cells, self.local, self.lock = 0, [], threading.local(), threading.Lock()

    def adder(self):
        cell = [0]
        self.cells.append(cell)

        def add():
            {add}

        return add

    def total(self):
        return {total}
"""
OF_CELLS = "sum(cell[0] for cell in self.cells)"


def source(add, total="self.value"):
    return COUNTER.format(imports="import threading", add=add, total=total)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (source("cell[0] += 1", OF_CELLS), "Correct after eight more"),
        (source("with self.lock: self.value += 1"), "Correct after eight more"),
        (source("self.value += 1"), "Not correct after eight threads"),
        (source("cell[0] += 2", OF_CELLS), "counted twice"),
        (source("cell[0] += 1", f"{OF_CELLS} if self.cells.clear() else 0"), "Not correct"),
        (source("self.lock.acquire()"), "No end within"),
        (source("pass", "no_such_name"), "NameError"),
        ("", "It stopped with an error"),
        ("class Counter: pass", "AttributeError"),
        ("class Counter:", "IndentationError"),
    ],
)
def test_self_check_of_the_counter(monkeypatch, answer, said):
    monkeypatch.setattr(experiment, "COUNTER_SECONDS", 10)
    found = exercise.check_counter(answer, Recording())
    assert said in " ".join(found)
    if said.startswith("Correct"):
        assert any("times the work of one" in line for line in found)


@pytest.mark.slow
def test_the_counter_of_the_solution_is_correct_and_that_of_the_exercise_is_not():
    cells = json.loads((ROOT / "notebooks/critical_sections/critical_sections.ipynb").read_text())["cells"]
    found = {}
    for cell in cells:
        if cell["id"] in ("counter-broken", "counter-repaired"):
            names = {}
            exec("".join(cell["source"]).partition("print(")[0], names)
            found[cell["id"]] = " ".join(exercise.check_counter(names["counter"], Recording()))
    assert "Not correct after eight threads" in found["counter-broken"]
    assert "Correct after eight more: 1,600,000" in found["counter-repaired"]


@pytest.mark.slow
@pytest.mark.parametrize("name", experiment.LOADED_TWICE)
def test_a_module_that_is_loaded_twice_has_functions_of_its_own(name):
    """Or the process says that it hands out the same function again."""
    factors = {"name": name, "threads": 2, "shared": experiment.OWN}
    fixed = {"libraries": experiment.boundary.LIBRARIES, "milliseconds": 1}
    outcome = Case(FREE_THREADED, experiment.EXPERIMENTS, "contended_binding", factors, fixed).run()
    assert outcome.ended == "ok", outcome.error


@pytest.mark.slow
@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_inlined_atomics_are_seen_by_their_source_file():
    def atomics(label):
        found = instructions.by_file(label, experiment.operation("dict, write"))
        if set(found) == {"???"}:
            pytest.skip("this interpreter has no debugging information")
        return sum(n for file, n in found.items() if "atomic" in file)

    assert atomics(FREE_THREADED) > atomics(GIL) + 5


class BuiltAll(Recording):
    """A session in which every binding was built."""

    def observe(self, title, look, *arguments):
        return {GIL: {}, FREE_THREADED: {}}


def test_a_binding_that_was_not_built_is_left_out(monkeypatch):
    monkeypatch.setattr(
        experiment.boundary, "not_built", lambda session: {GIL: {}, FREE_THREADED: {"PyO3": "no compiler"}}
    )
    runs = experiment.bindings(Recording())
    assert set(runs.name) == set(experiment.boundary.BINDINGS) - {"PyO3"}


def test_no_duration_is_below_nothing():
    runs = pd.DataFrame({"alone": [1e8] * 5, "together": [1e7, 2e8, 1e9, 3e8, 5e7], "threads": 2})
    assert 0 < results.of_each(runs).low < results.of_each(runs).value
    assert results.of_each(runs[runs.threads == 4]) is None
