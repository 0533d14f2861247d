"""The chapter on loaders: both loaders return the same on every interpreter; the analysis finds what was put in."""

import json
import re
import runpy

import numpy as np
import pandas as pd
import pytest

from ffilab import draw
from ffilab.bench.case import Case
from ffilab.bench.plan import plan
from ffilab.bench.record import Record
from ffilab.bench.runner import Restart
from ffilab.budget import BUDGETS
from ffilab.judge import controls, ledger, statistics, verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Interval, Location, Measurement, Share
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED
from ffilab.judge.simulation import TRUTHS, Simulated
from ffilab.paths import ROOT
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.provision.installed import load
from notebooks.loaders import claims, exercise, experiment, figures, results, simulated, words


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


def test_which_number_carries_over_is_found(made_up_record):
    """The made-up record has one ratio for noop and getpid, and so two differences."""
    rng, cells = np.random.default_rng(6), {f"{GIL}/empty loop": 5.0}
    price = {"same difference": lambda _: 20.0, "same ratio": lambda attached: 0.4 * attached}
    for what, extra in price.items():
        for function, attached in {"noop": 50.0, **dict.fromkeys(results.OTHERS, 200.0)}.items():
            cells |= {f"{GIL}/PyDLL {function}": 5 + attached, f"{GIL}/CDLL {function}": 5 + attached + extra(attached)}
        blocks = [
            {"restart": restart, "ns": {key: int(1e6 * ns * rng.normal(1, 0.001)) for key, ns in cells.items()}}
            for restart in range(12)
            for _ in range(4)
        ]
        run = {"plan": {"seed": 1, "interpreters": [GIL], "blocks": 4}}
        record = Record(None, run, loops=dict.fromkeys(cells, 1_000_000), blocks=blocks)
        prices = results.prices(record).set_index("function")
        missed = results.misses(record, GIL)
        verdict = {
            key: results.carries(Interval.of(prices.loc["noop"]), missed[key]) for key in ("difference", "ratio")
        }
        right = {"difference": HOLDS, "ratio": DOES_NOT_HOLD}
        if what == "same ratio":
            right = {"difference": DOES_NOT_HOLD, "ratio": HOLDS}
        assert verdict == right, what
        assert set(prices.n) == {12}


def test_no_price_carries_nothing_and_too_few_values_say_nothing():
    close = {"getpid": Interval(0.0, -0.1, 0.1)}
    assert results.carries(Interval(1.0, -1.0, 3.0), close) == UNDECIDED
    assert results.carries(Interval(20.0, np.nan, np.nan), close) == UNDECIDED
    assert results.carries(Interval(20.0, 19.0, 21.0), {"getpid": Interval(0.0, np.nan, np.nan)}) == UNDECIDED
    assert results.carries(Interval(-20.0, -21.0, -19.0), close) == HOLDS


def test_an_alarm_of_the_chapters_own_a_a_test_withholds_the_claim_that_rests_on_it(made_up_record):
    class Session:
        def timed(self, name):
            return made_up_record

    assert [(check.passed, check.claims) for check in claims.controls(Session())] == [(True, ("A12",))] * 2
    assert controls.differ(Interval(1.02, 1.015, 1.025))
    assert not controls.differ(Interval(1.004, 1.002, 1.006))


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
    assert (row.crashes, row.deadlocks, row.how) == (Share(1, 2), Share(2, 4), "killed by SIGSEGV, ok")


class Counting:
    """A session that runs nothing, and remembers how often which case was to run."""

    def __init__(self, budget, interpreters):
        self.budget, self.interpreters, self.runs = BUDGETS[budget], interpreters, {}

    def run(self, title, cases, repeats, may_fail):
        assert may_fail
        for case in cases:
            key = case.interpreter, case.factors["loader"], case.named["what"]
            assert key not in self.runs
            self.runs[key] = title, repeats
        return pd.DataFrame([{"interpreter": case.interpreter, **case.columns} for case in cases])


@pytest.mark.parametrize(("budget", "safe", "others"), [("smoke", 2, 1), ("quick", 30, 5), ("full", 30, 15)])
def test_what_should_be_safe_runs_thirty_times_and_every_case_runs(budget, safe, others):
    session = Counting(budget, [GIL, FREE_THREADED, "3.13"])
    assert len(experiment.hazards(session)) == len(session.runs) == 3 * 2 * 2
    for case, found in session.runs.items():
        expected = (experiment.SAFE, safe) if case in experiment.SHOULD_BE_SAFE else (experiment.RISKY, others)
        assert found == expected
    tests = next(claim for claim in declared("loaders").claims if claim.id == "A14").tests
    rate = {test.rate for test in tests if type(test).__name__ == "Never"}
    # None of so many is enough for the rule, and for the sentences.
    assert rate == {words.RARE}
    assert Share(0, experiment.SAFE_PROCESSES).at().high <= words.RARE


def test_numbers_of_hazards_are_handed_to_the_prose(monkeypatch):
    glued = {}
    monkeypatch.setattr(draw, "glue", glued.__setitem__)
    rows = [
        {"interpreter": label, "loader": loader, "crashes": Share(5, 5), "deadlocks": Share(0, 30)}
        for label in (GIL, FREE_THREADED)
        for loader in experiment.LOADERS
    ]
    figures.glue_ends(pd.DataFrame(rows))
    assert "5 of 5" in glued["crash-CDLL-gil"]
    assert "none of 30 processes, which leaves room for up to 14% of all" in glued["deadlock-CDLL-gil"]
    assert "did not deadlock in either build" in glued["removing-the-gil"]


def test_words_of_none_among_many_are_those_of_the_ledgers_rule():
    tests = next(claim for claim in declared("loaders").claims if claim.id == "A14").tests
    assert {test.rate for test in tests if type(test).__name__ == "Never"} == {words.RARE}


def test_the_answers_of_the_rules_choose_the_words():
    for truth, says in (
        ("as published", "without a GIL, the other thread kept its speed"),
        ("no effect", "did not block"),
    ):
        session = Simulated("loaders", truth, simulated.INTERPRETERS, "quick", noise=0)
        simulated.simulated(session)
        assert says in words.blocking(*figures.blocked(ledger.sides(session))), truth


def located(value, error=0.01):
    return Measurement(Location(value, error, 20, 30), "share")


def ratio(value, error=0.004):
    return Measurement(Location(np.log(value), error, 20, 30, log=True), "ratio of times")


def bad(events, trials=30):
    return Measurement(Share(events, trials), "share of processes")


RULES = {
    "A12": {
        f"ratio on {GIL}": [(ratio(1.222), HOLDS), (ratio(1.0), DOES_NOT_HOLD), (ratio(1.02), UNDECIDED)],
        f"ratio on {FREE_THREADED}": [
            (ratio(1.089), HOLDS),
            (ratio(0.95), DOES_NOT_HOLD),
            (ratio(1.03, 0.1), UNDECIDED),
        ],
    },
    "A13": {
        f"share kept by PyDLL on {GIL}": [
            (located(0.07), HOLDS),
            (located(0.99), DOES_NOT_HOLD),
            (located(0.5), UNDECIDED),
        ],
        f"share kept by PyDLL on {FREE_THREADED}": [
            (located(0.99), HOLDS),
            (located(0.5), DOES_NOT_HOLD),
            (located(1.0, 0.1), UNDECIDED),
        ],
    },
    "A14": {
        f"share kept by CDLL on {GIL}": [
            (located(1), HOLDS),
            (located(0.07), DOES_NOT_HOLD),
            (located(0.9), UNDECIDED),
        ],
        f"share kept by PyDLL on {GIL}": [
            (located(0.07), HOLDS),
            (located(1), DOES_NOT_HOLD),
            (located(0.5), UNDECIDED),
        ],
        f"crashes of the C API through CDLL on {GIL}": [(bad(1, 5), HOLDS), (bad(0, 5), UNDECIDED)],
        f"crashes of the C API through PyDLL on {GIL}": [
            (bad(0), HOLDS),
            (bad(1), DOES_NOT_HOLD),
            (bad(0, 28), UNDECIDED),
        ],
        f"deadlocks of PyDLL on {GIL}": [(bad(1, 5), HOLDS), (bad(0, 5), UNDECIDED)],
        f"deadlocks of CDLL on {GIL}": [(bad(0), HOLDS), (bad(1), DOES_NOT_HOLD), (bad(0, 10), UNDECIDED)],
    },
}


def test_every_rule_gives_all_of_its_answers():
    for claim in declared("loaders").claims:
        assert set(RULES[claim.id]) == {test.measured for test in claim.tests}
        for name, found in RULES[claim.id].items():
            side = next(test for test in claim.tests if test.measured == name)
            for measurement, expected in found:
                assert side.answer(measurement).verdict == expected, (claim.id, name, measurement)


def test_made_up_records_give_the_verdicts_that_are_true():
    for truth in TRUTHS:
        found = {name: row["verdict"] for name, row in rows("loaders", truth, "full", 0, noise=0).items()}
        published, half = truth == "as published", truth == "half the size"
        direction = verdicts.IN_DIRECTION if half else verdicts.HOLDS
        refuted = dict.fromkeys(("A12", "A13", "A14"), verdicts.REFUTED)
        right = {"A12": direction, "A13": verdicts.HOLDS, "A14": verdicts.HOLDS}
        assert found == (right if published or half else refuted), truth


def test_one_crash_in_a_safe_case_refutes_its_part_and_no_other():
    session = Simulated("loaders", "as published", simulated.INTERPRETERS, "quick", noise=0)
    simulated.simulated(session)
    crashed = next(
        child
        for child in session.record.children
        if child["title"] == experiment.SAFE and child["factors"] == {"loader": "PyDLL", "what": "C API"}
    )
    crashed |= {"result": None, "ended": "killed by SIGSEGV"}
    handed = claims.measurements(session).complete()
    row = next(row for _, row in ledger.rows_of(handed, {"is_result": True}, []) if row["id"] == "A14")
    refuted = [part["part"] for part in row["parts"] if part["verdict"] == DOES_NOT_HOLD]
    assert refuted == [f"crashes of the C API through PyDLL on {GIL}"]
    assert ledger.verdict_of(row) == f"{verdicts.REFUTED} (1 of 6 parts)"


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
        assert restart.facts[f"{FREE_THREADED}/shared"]["gil_enabled"] is False
    finally:
        restart.close()


def test_functions_with_an_argument_return_what_they_should(library):
    arms = runpy.run_path(str(ROOT / experiment.ARMS))
    expected = {"add_one": 8, "halve": 1.25, "first_byte": ord("m")}
    assert tuple(arms["DECLARED"]) == experiment.DECLARED == tuple(expected)
    for loader in experiment.LOADERS:
        for function, value in expected.items():
            names = arms["declared_call"](loader, function, str(library)).inner.__globals__
            assert names["foreign"](names["argument"]) == value


def frames(kept=0.05):
    ends = pd.DataFrame(
        [
            {"interpreter": GIL, "loader": "CDLL", "crashes": Share(5, 5)},
            {"interpreter": GIL, "loader": "PyDLL", "crashes": Share(0, 30)},
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
def test_self_check_of_the_first_exercise(made_up_record, choice, says):
    lines = exercise.check_choice(choice, made_up_record, *frames())
    assert any(line.startswith(says) for line in lines)


def test_where_the_loaders_are_not_told_apart_either_will_do():
    assert exercise.speed("noop", "CDLL", Interval(1.0, -1.0, 3.0)).startswith("Either")
    assert exercise.speed("noop", "CDLL", Interval(-9.0, -10.0, -8.0)).startswith("Fast")


class Repairing:
    """A session that looks at the second exercise, and keeps nothing."""

    def observe(self, title, look, *arguments):
        return look(*arguments)


SOLUTION = """
import ctypes
def load(library):
    native, short = ctypes.CDLL(library), ctypes.PyDLL(library)
    short.halve.argtypes, short.halve.restype = [ctypes.c_double], ctypes.c_double
    new_list = ctypes.pythonapi.PyList_New
    new_list.argtypes, new_list.restype = [ctypes.c_ssize_t], ctypes.py_object
    return {"wait": native.wait_for_announcement, "halve": short.halve, "new_list": new_list}
"""
PROGRAMS = [
    (SOLUTION, ["Correct", "Fast"]),
    (SOLUTION.replace("short = ctypes.CDLL(library), ctypes.PyDLL(library)", "short = [ctypes.CDLL(library)] * 2"), ["Correct", "Not yet fast"]),
    (SOLUTION.replace("native, short = ctypes.CDLL", "native, short = ctypes.PyDLL"), ["wait: wait(500) returned 0. The call waits for"]),
    (SOLUTION.replace("ctypes.pythonapi.", "ctypes.CDLL(None)."), ["new_list: its process ended so: killed by"]),
    (SOLUTION.replace(", new_list.restype = [ctypes.c_ssize_t], ctypes.py_object", " = [ctypes.c_ssize_t]"), ["new_list: new_list(0) returned"]),
    (SOLUTION.replace("short.halve.argtypes", "short.add_one.argtypes"), ["halve: ArgumentError"]),
    (SOLUTION.replace(": short.halve,", ": lambda value: value / 2,"), ["halve: this is not the C function"]),
    (SOLUTION.replace(": native.wait_for_announcement", ": native.announce"), ["wait: this is not the C function"]),
    (SOLUTION.replace("import ctypes\n", "import ctypes\nwhile True: pass\n"), ["wait: it did not end", "halve: it did", "new_list: it"]),
    ("", ["wait: KeyError", "halve: KeyError", "new_list: KeyError"]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("program", "says"), PROGRAMS)
def test_self_check_of_the_second_exercise(monkeypatch, library, program, says):
    monkeypatch.setattr(experiment, "LIBRARY", str(library))
    monkeypatch.setattr(exercise, "price", lambda record: Interval(20.0, 19.0, 21.0))
    lines = exercise.check_program(Repairing(), program, None)
    assert len(lines) == len(says)
    assert all(line.startswith(start) for line, start in zip(lines, says)), lines


@pytest.mark.slow
def test_the_programs_on_the_page_are_broken_and_repaired(monkeypatch, library):
    notebook = json.loads((ROOT / "notebooks/loaders/loaders.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if "check_program" in "".join(cell["source"])]
    broken, repaired = (re.search(r'program = """(.*?)"""', source, re.DOTALL)[1] for source in sources)
    monkeypatch.setattr(experiment, "LIBRARY", str(library))
    monkeypatch.setattr(exercise, "price", lambda record: Interval(20.0, 19.0, 21.0))
    assert [line.split(":")[0] for line in exercise.check_program(Repairing(), broken, None)] == list(experiment.TASKS)
    assert exercise.check_program(Repairing(), repaired, None)[0].startswith("Correct")
