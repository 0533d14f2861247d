"""The analysis of the chapter on the boundary finds what was put in."""

import copy
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from notebooks.boundary.experiment import BINDINGS, SIGNATURES, name
from of_chapter import PAIR

from ffilab.measure.instructions import Node
from ffilab.measure.record import Record
from ffilab.run.paths import NATIVE
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import exercise, experiment, looks, results

LOOP = 5.0


# ---- the matrix ----


def record_of(cells: dict[str, float], scatter: float = 0.004, seed: int = 11) -> Record:
    """Twenty restarts of four blocks in which a call takes these ns."""
    rng = np.random.default_rng(seed)
    blocks = [
        {"restart": restart, "ns": {key: int(1e5 * ns * np.exp(rng.normal(0, scatter))) for key, ns in cells.items()}}
        for restart in range(20)
        for _ in range(4)
    ]
    run = {"plan": {"seed": 1, "interpreters": sorted({key.partition("/")[0] for key in cells}), "blocks": 4}}
    restarts = [{"restart": number, "missing": {label: {} for label in PAIR}} for number in range(20)]
    return Record(None, run, loops=dict.fromkeys(cells, 100_000), restarts=restarts, blocks=blocks)


COST = {binding: 20.0 + 40 * place for place, binding in enumerate(BINDINGS)}
T_BUILD = 1.2


@pytest.fixture(scope="module")
def record():
    """The same costs for every signature, 1.2 times as much on the t-build; a form costs as much as its binding."""
    cells = {f"{label}/empty loop": LOOP for label in PAIR}
    for label, factor in zip(PAIR, (1, T_BUILD)):
        for arm in experiment.whole():
            binding = arm.name.partition(": ")[0]
            cost = COST[experiment.VARIANTS.get(binding, binding)]
            cells[f"{label}/{arm.name}"] = cost * factor + LOOP
    return record_of(cells)


def test_cost_over_the_floor_is_found(record):
    for binding, cost in COST.items():
        over = results.over_floor(record, GIL, binding, experiment.INT)
        slack = 0.01 * cost
        assert over.low - slack <= cost - COST[experiment.FLOOR] <= over.high + slack


def test_what_a_call_costs_holds_no_loop_and_a_turn_does(record):
    """The factor in the answer to a prediction is about the call; the heat map is about turns of the loop."""
    cheapest, dearest, widest = results.widest(record, GIL)
    assert (cheapest, dearest) == (min(COST, key=COST.get), max(COST, key=COST.get))
    assert widest.value == pytest.approx(COST[dearest] / COST[cheapest], rel=0.02)
    ratio = (COST[dearest] + LOOP) / (COST[cheapest] + LOOP)
    cells = results.matrix(record).set_index(["interpreter", "signature", "binding"])
    assert cells.times[GIL, experiment.INT, dearest] == pytest.approx(ratio, rel=0.01)


def test_the_loop_of_another_build_is_no_surcharge():
    """A call of the same length in both builds, in loops of 5 and 9 ns: no surcharge, also with the GIL on."""
    arm, made = name("C API", experiment.TEXT), experiment.TEXT_MADE
    cells = {f"{GIL}/empty loop": 5.0, f"{FREE_THREADED}/empty loop": 9.0, f"{FREE_THREADED}/empty loop (GIL on)": 9.0}
    int_arm = name("C API", experiment.INT)
    for label, loop, suffix in ((GIL, 5.0, ""), (FREE_THREADED, 9.0, ""), (FREE_THREADED, 9.0, experiment.ON)):
        cells |= {f"{label}/{int_arm}{suffix}": loop + 20, f"{label}/{made}{suffix}": loop + 30}
        # A conversion takes half as long again without the GIL, and its text takes as long to make.
        cells[f"{label}/{arm}{suffix}"] = loop + 30 + (20 if label == GIL else 30)
    record = record_of(cells, scatter=0.001)
    for build in (FREE_THREADED, experiment.GIL_ON):
        assert results.between_builds(record, int_arm, build, GIL).at().value == pytest.approx(1, rel=0.01)
        assert results.text_surcharge(record, experiment.TEXT, build).interval.value == pytest.approx(1.5, rel=0.02)


def test_an_argument_is_told_from_the_hand_over():
    cells = {f"{GIL}/empty loop": 5.0}
    for binding, ns in (("ctypes CDLL", 100.0), ("ctypes PyDLL", 60.0)):
        cells |= {f"{GIL}/{name(binding, experiment.ANSWER)}": ns, f"{GIL}/{name(binding, experiment.INT)}": ns + 120}
    record = record_of(cells, scatter=0.001)
    assert results.argument_over_hand_over(record).interval.value == pytest.approx(3, rel=0.02)
    assert set(results.parts(record)) == {"argument", "hand-over", "hand-over, int"}
    assert "was not measured" in results.argument_over_hand_over(record_of({f"{GIL}/empty loop": 5.0}))


# ---- the talk's own program ----


def single(ns: dict[str, float], n: int = 12) -> pd.DataFrame:
    """Processes of the talk's method with the GIL, by binding what a call takes."""
    rng = np.random.default_rng(3)
    cells = [(process, *each) for process in range(n) for each in ns.items()]
    return pd.DataFrame(
        [{"build": GIL, "process": n, "binding": one, "ns": rng.normal(ns, 2, 195).tolist()} for n, one, ns in cells]
    )


def test_a_winner_with_a_small_p_is_held_against_the_corrected_experiment():
    runs = single({"ctypes CDLL": 100.0, "cffi ABI": 110.0})
    for ctypes, wrong in ((103, 12), (98, 0)):
        cells = {"ctypes CDLL": ctypes, "cffi ABI": 100.0}
        record = record_of({f"{GIL}/{name(one, experiment.ANSWER)}": ns for one, ns in cells.items()})
        found, among = results.misranked(runs, record)
        assert (found.process.nunique(), among) == (wrong, 12)
        assert set(found.called) <= {"ctypes CDLL"}
    equal = record_of({f"{GIL}/{name(one, experiment.ANSWER)}": 100.0 for one in ("ctypes CDLL", "cffi ABI")})
    assert results.misranked(runs, equal)[1] == 0


def test_a_symbol_of_the_talks_loop_counts_below_its_callers():
    look = {
        "how": "perf cycles",
        "stacks": [[["pthread_mutex_lock@@G", "take_gil"], 6], [["pthread_mutex_lock@@G", "other"], 2], [["x"], 92]],
    }
    assert results.symbol({"ctypes CDLL": [look]}, "ctypes CDLL", *results.LOCK) == pytest.approx([0.06])
    assert results.symbol({"ctypes CDLL": [look]}, "ctypes CDLL", "pthread_mutex_lock") == pytest.approx([0.08])
    assert not len(results.symbol("no perf", "ctypes CDLL", "x"))


def test_pairs_that_change_places_are_counted(record):
    changes = results.order_changes(record, GIL)
    assert set(changes) == set(SIGNATURES) - {experiment.INT}
    # All signatures were given the same costs.
    assert not any(changes.values())
    swapped = copy.deepcopy(record)
    one, other = (
        f"{GIL}/{name(binding, 'callback')}" for binding in (min(COST, key=COST.get), max(COST, key=COST.get))
    )
    for block in swapped.blocks:
        block["ns"][one], block["ns"][other] = block["ns"][other], block["ns"][one]
    changed = results.order_changes(swapped, GIL)
    # The two themselves, and each with everything that lies between them.
    assert changed["callback"] == 2 * (len(BINDINGS) - 2) + 1
    assert sum(map(bool, changed.values())) == 1


@pytest.mark.parametrize(
    ("choice", "parser", "plugin"),
    [
        ({}, "still open", "still open"),
        ({"parser": "ctypes CDLL", "plugin": "PyO3"}, "not correct", "not correct"),
        ({"parser": "pybind11", "plugin": "ctypes PyDLL"}, "not yet fast", "not correct"),
        ({"parser": "C API", "plugin": "ctypes CDLL"}, "by hand", "not yet fast"),
    ],
)
def test_the_choice_of_a_binding_is_checked(record, choice, parser, plugin):
    answers = [
        {"binding": binding, "expression": expression, "ended": "ok"}
        | ({"value": "-2147483647"} if "ctypes" in binding else {"error": "OverflowError"})
        for expression in experiment.CONTRACTS
        for binding in BINDINGS
    ]
    first, second = exercise.check_binding(choice, record, results.contracts(pd.DataFrame(answers)))
    assert parser in first
    assert plugin in second


# ---- the price of work ----

PRICE = {10: 20.0, 100: 40.0, 1_000: 50.0, 10_000: 60.0}


def worked(price: dict[int, float]) -> Record:
    """Calls whose price at each length is given (ns), through every binding; twenty times as much through ctypes."""
    rng = np.random.default_rng(5)
    cells = {f"{GIL}/empty loop": LOOP}
    for n, ns in price.items():
        cells[f"{GIL}/C: work {n}"] = float(n)
        for binding in experiment.WORKED:
            cells[f"{GIL}/{binding}: work {n}"] = n + LOOP + ns * (20 if binding == "ctypes CDLL" else 1)
    record = record_of(cells)
    for block in record.blocks:
        block["ns"] = {key: int(1e5 * (ns + rng.normal(0, 0.3))) for key, ns in cells.items()}
    return record


def test_the_price_is_found_at_each_length_and_where_it_is_a_small_share():
    found = results.prices(worked(PRICE))
    part = found[found.binding == "C API"]
    for row, (n, ns) in zip(part.itertuples(), PRICE.items(), strict=True):
        assert row.work_ns == pytest.approx(n, rel=0.05)
        assert row.price.low - 0.5 <= ns <= row.price.high + 0.5
    # Between 100 and 1,000 ns the price rises from 40 to 50: 19 times 49.5 is 940.
    threshold = results.threshold(found, "C API")
    assert threshold.low <= threshold.value <= threshold.high
    assert threshold.value == pytest.approx(940, rel=0.02)
    # 20 times 60 is 1,200 ns, more than a twentieth of 10 µs.
    assert np.isinf(results.threshold(found, "ctypes CDLL").value)
    assert results.threshold(found, "ctypes PyDLL") is None


def test_a_price_is_compared_with_that_of_the_shortest_work():
    found = results.changes(results.prices(worked(PRICE)))["C API"]
    assert [one.value for one in found] == pytest.approx([20, 30, 40], abs=1)


# ---- profiles and call trees ----


def profiled(taken: float, libffi: float, rest: float = 20, how: str = "perf cpu-clock") -> dict:
    """A profile of one process, with samples in and beside the two groups that A10 speaks of, and in the rest of ctypes."""
    samples = {
        "ffi_call": libffi,
        "take_gil": taken,
        "PyCFuncPtr_call": rest,
        "_PyEval_EvalFrameDefault": 100,
        "boundary_pyo3": 9,
    }
    return {"how": how, "costs": [[symbol, "object", count] for symbol, count in samples.items()]}


def test_a_process_is_one_value_however_many_samples_it_has():
    few, many = [profiled(6, 2), profiled(4, 2)], [profiled(6000, 2000), profiled(4, 2)]
    for profiles in (few, many):
        looks = results.groups({GIL: {"ctypes CDLL": profiles}}, GIL, "ctypes CDLL")
        shares = results.shares(looks, results.HAND_OFF, results.HAND_OFF, results.LIBFFI)
        assert shares == pytest.approx([6 / 8, 4 / 6])
        assert looks[0]["code of the binding"] == 9
    assert not len(results.shares([{"a": 0, "b": 0}], "a", "a", "b"))


def test_what_is_next_stays_open_where_it_depends_on_the_grouping():
    """libffi has more than any function of ctypes, and less than all of them."""

    def found(callproc: float, slot: float):
        costs = [
            ["ffi_call", "", 100.0],
            ["[.] _ctypes_callproc", "", callproc],
            ["[.] PyCFuncPtr_call.cold", "", slot],
        ]
        looks = [{"how": "perf cpu-clock", "costs": costs}] * 4
        return results.next_bottleneck({GIL: {"ctypes PyDLL": looks}}).interval

    assert found(80, 70).low < 0.5 < found(80, 70).high
    assert found(200, 70).high < 0.5 < found(20, 30).low


TREE = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "_ctypes_callproc", 80, 0.8),
    Node(2, "ffi_call", 10, 0.1),
    Node(3, "ffi_call_int", 8, 0.08),
    Node(1, "ffi_prep_cif", 5, 0.05),
    Node(1, "ffi_call", 2, 0.02),
    Node(1, "trampoline", 50, 0.5),
]


def test_a_function_leads_to_what_lies_below_it_only_and_counts_once():
    assert results.below(TREE, "ffi_call") == pytest.approx(0.12)
    assert results.below(TREE, "nothing") == 0
    assert results.leads(TREE, "_ctypes_callproc", "ffi_call")
    assert results.leads(TREE, "EvalFrame", "ffi_call_int")
    assert not results.leads(TREE, "ffi_call", "trampoline")
    assert not results.leads(TREE, "_ctypes_callproc", "ffi_prep_cif")


CTYPES = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "PyObject_Vectorcall", 95, 0.95),
    Node(2, "PyCFuncPtr_call", 90, 0.9),
    Node(3, "_ctypes_callproc", 80, 0.8),
    Node(4, "PyCSimpleType_from_param", 20, 0.2),
    Node(4, "ffi_call", 10, 0.1),
    Node(4, "PyEval_RestoreThread", 10, 0.1),
    Node(4, "PyEval_SaveThread", 5, 0.05),
]
PYO3 = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "pyo3::impl_::trampoline::fastcall_cfunction_with_keywords", 60, 0.6),
    Node(2, "boundary_pyo3::__pyfunction_add_one", 40, 0.4),
]


def test_a_call_path_is_that_of_the_diagram_or_is_not():
    def is_met(binding, tree):
        return results.links(tree, binding).met.all()

    assert is_met("ctypes CDLL", CTYPES)
    assert is_met("PyO3", PYO3)
    # All functions are there; libffi is called by something else.
    moved = [*(node for node in CTYPES if node.function != "ffi_call"), Node(1, "ffi_call", 10, 0.1)]
    assert not is_met("ctypes CDLL", moved)
    for left_out in range(2, len(CTYPES)):
        assert not is_met("ctypes CDLL", CTYPES[:left_out] + CTYPES[left_out + 1 :]), CTYPES[left_out]
    for detour in ("ffi_call", "_PyObject_MakeTpCall"):
        assert not is_met("PyO3", [*PYO3, Node(1, detour, 1, 0.01)])
    assert not is_met("PyO3", PYO3[:1])


# ---- smaller experiments ----


def test_a_process_that_died_is_an_answer_too():
    runs = [
        {"binding": "C API", "expression": experiment.CONTRACTS[0], "error": "OverflowError", "ended": "ok"},
        {"binding": "pybind11", "expression": experiment.CONTRACTS[0], "ended": "killed by SIGSEGV"},
    ]
    row = results.contracts(pd.DataFrame(runs)).iloc[0]
    assert (row["C API"], row["pybind11"]) == ("OverflowError", "killed by SIGSEGV")


@pytest.mark.skipif(not shutil.which("strip"), reason="needs strip")
def test_sizes_leave_out_symbols_and_debug_information(tmp_path):
    assert all(looks.built(binding) for binding in BINDINGS)
    source = NATIVE / "boundary" / "library" / "boundary.c"
    with_all, without = tmp_path / "with.so", tmp_path / "without.so"
    for target, flag in ((with_all, "-g"), (without, "-s")):
        subprocess.run(["cc", flag, "-shared", "-fPIC", source, "-o", target, "-lm"], check=True)
    assert looks.stripped(with_all) == without.stat().st_size < with_all.stat().st_size


def test_lines_of_code_leave_out_comments_and_docstrings(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""Docstring."""\n\n# comment\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert looks.lines_of_code(tmp_path / "a.py") == 3
    (tmp_path / "a.c").write_text("/* one\n   two */\nint x; // here\n\nint y;\n")
    assert looks.lines_of_code(tmp_path / "a.c") == 2
