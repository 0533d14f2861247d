"""The chapter on marshaling: the analysis finds what was put in; every claim gets what its rule asks for."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ffilab.bench import instructions, profile
from ffilab.bench.instructions import Node
from ffilab.bench.record import Record
from ffilab.corners import marshaling
from ffilab.corners import marshaling_page as page
from ffilab.judge import ledger

LOOP = 5.0
COST = {
    "C API": 20.0,
    "Cython": 30.0,
    "nanobind": 36.0,
    "pybind11": 80.0,
    "PyO3": 36.0,
    "cffi API": 90.0,
    "cffi ABI": 280.0,
    "ctypes PyDLL": 400.0,
    "ctypes CDLL": 460.0,
}
T_BUILD = 1.2


@pytest.fixture(scope="module")
def record():
    """Made up: the same costs for every signature, 1.2 times as much on 3.14t; PyDLL cannot detach."""
    rng = np.random.default_rng(11)
    cells = {}
    for label, factor in (("3.14", 1), ("3.14t", T_BUILD)):
        for arm in marshaling.arms():
            binding = arm.arguments.get("binding")
            cells[f"{label}/{arm.name}"] = (COST[binding] if binding else 50.0) * factor + LOOP
        cells[f"{label}/empty loop"] = LOOP
    absent = [("3.14", "ctypes PyDLL: no-op, detached"), ("3.14t", "ctypes PyDLL: no-op, detached")]
    for label, arm in absent:
        del cells[f"{label}/{arm}"]
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))
        for _ in range(4):
            ns = {k: int(1e5 * v * process * np.exp(rng.normal(0, 0.004))) for k, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns, "loops": dict.fromkeys(ns, 100_000)})
    restarts = [{"missing": {label: {arm: "AttributeError: no"} for label, arm in absent}}]
    return Record(None, {"plan": {"seed": 1, "kernels": ["3.14", "3.14t"], "blocks": 4}}, restarts, blocks, [], False)


@pytest.fixture(scope="module")
def rules():
    rows = []
    for expression in marshaling.CONTRACTS:
        row = dict.fromkeys(marshaling.BINDINGS, "OverflowError")
        row.update({"call": expression, "ctypes CDLL": "-2147483647", "ctypes PyDLL": "-2147483647"})
        rows.append(row)
    return pd.DataFrame(rows)


def test_cost_over_the_floor_is_found(record):
    for binding, cost in COST.items():
        found = marshaling.over_floor(record, "3.14", binding, marshaling.INT)
        slack = 0.01 * cost
        assert found.low - slack <= cost - COST["C API"] <= found.high + slack


def test_order_is_that_of_the_paired_ratios(record):
    words = page.order_words(page.order(record, "3.14"))
    assert words.startswith("C API < Cython < ")
    assert words.endswith(" < pybind11 < cffi API < cffi ABI < ctypes PyDLL < ctypes CDLL")


def test_order_joins_what_cannot_be_told_apart():
    columns = ["binding", "a call", "over the one above", "BH p", "told apart"]
    rows = [("x", "", "", "", ""), ("y", "", "", "", "no (smallest to be found: 1 %)"), ("z", "", "", "", "yes")]
    assert page.order_words(pd.DataFrame(rows, columns=columns)) == "x ≈ y < z"


def test_missing_cells_say_why(record):
    table = page.missing_table(record)
    assert list(table.CPython) == ["3.14", "3.14t"]
    assert set(table.binding) == {"ctypes PyDLL"}
    assert "never detaches" in table.why.iloc[0]
    assert "ctypes PyDLL" not in marshaling.present(record, "3.14", "no-op, detached")


def test_matrix_leaves_no_cell_out(record):
    cells = marshaling.matrix(record)
    assert len(cells) == 2 * (len(marshaling.SIGNATURES) * len(marshaling.BINDINGS) - 1)
    table = page.matrix_table(cells, "not counted", "3.14")
    assert table.shape == (len(marshaling.SIGNATURES), len(marshaling.BINDINGS) + 1)
    assert (table == "see above").to_numpy().sum() == 1


def test_surcharge_of_the_t_build(record):
    ratios = marshaling.without_gil(record)
    assert len(ratios) == len(marshaling.SIGNATURES) * len(marshaling.BINDINGS) - 1
    dear = ratios[ratios.binding == "ctypes CDLL"]
    assert dear.value.median() == pytest.approx((460 * T_BUILD + LOOP) / (460 + LOOP), rel=0.01)


def test_a_call_is_worth_it_from_nineteen_times_its_boundary(record):
    worth = marshaling.worth_crossing(record)["C API"]
    assert worth.value == pytest.approx(19 * 20, rel=0.05)


TREE = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "_ctypes_callproc", 80, 0.8),
    Node(2, "ffi_call", 10, 0.1),
    Node(3, "ffi_call_int", 8, 0.08),
    Node(1, "ffi_prep_cif", 5, 0.05),
    Node(1, "ffi_call", 2, 0.02),
    Node(1, "trampoline", 50, 0.5),
]


def test_share_below_counts_the_outermost_once():
    assert marshaling.below(TREE, "ffi_call") == pytest.approx(0.12)
    assert marshaling.below(TREE, "_ctypes_callproc") == pytest.approx(0.8)
    assert marshaling.below(TREE, "nothing") == 0
    assert "ffi_call" in page.tree_text(TREE)


def test_every_claim_gets_what_its_rule_asks_for(record):
    groups = {name: 100 for name, _ in profile.GROUPS} | {profile.OTHER: 50}
    where = {(label, b): ("perf", groups) for label in ("3.14", "3.14t") for b in ("ctypes CDLL", "PyO3")}
    handed = marshaling.claim_measurements(record, where, {"ctypes CDLL": TREE, "PyO3": TREE})
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "marshaling"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours


def test_claims_without_tools_are_handed_in_unmeasured(record):
    handed = marshaling.claim_measurements(record, "no perf", "no valgrind")
    assert handed["A10"] == {}
    assert ledger.judge(ledger.claim("A11"), {"measurements": {}, "provenance": {"is_result": True}})["verdict"] == (
        ledger.CANNOT_TEST
    )


def test_lines_of_code_leave_out_comments_and_docstrings(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""Docstring."""\n\n# comment\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert marshaling.lines_of_code(tmp_path / "a.py") == 3
    (tmp_path / "a.c").write_text("/* one\n   two */\nint x; // here\n\nint y;\n")
    assert marshaling.lines_of_code(tmp_path / "a.c") == 2


def test_linking_effect_is_the_ratio_to_the_default():
    rows = [
        {
            "binding": b,
            "linking": linking,
            "import_ms": ms * (1 + 0.001 * n),
            "resident_kib": 1,
            "first_call_ns": 1,
            "later_call_ns": 1,
        }
        for n in range(10)
        for b in marshaling.RELINKED
        for linking, ms in (("default", 2.0), ("lazy", 1.0), ("bind now", 2.0))
    ]
    found = marshaling.linking_effect(pd.DataFrame(rows), "import_ms", "lazy")
    assert found.value == pytest.approx(0.5)
    assert len(page.first_use_table(pd.DataFrame(rows))) == len(marshaling.RELINKED)


@pytest.mark.parametrize(
    ("choice", "parser", "plugin"),
    [
        ({}, "still open", "still open"),
        ({"parser": "ctypes CDLL", "plugin": "PyO3"}, "not correct", "not correct"),
        ({"parser": "pybind11", "plugin": "ctypes PyDLL"}, "not yet fast", "not correct"),
        ({"parser": "C API", "plugin": "ctypes CDLL"}, "by hand", "not yet fast"),
        ({"parser": "Cython", "plugin": "cffi ABI"}, "no tool is faster", "the faster"),
    ],
)
def test_self_check(record, rules, choice, parser, plugin):
    first, second = marshaling.check_binding(choice, record, rules)
    assert parser in first
    assert plugin in second


@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_call_trees_show_the_two_paths():
    trees = marshaling.call_trees("3.14")
    assert marshaling.below(trees["ctypes CDLL"], "_ctypes_callproc") > 0
    assert marshaling.below(trees["ctypes CDLL"], "ffi_call") > 0
    for nodes in trees.values():
        assert nodes[0].share == 1
        assert all(0 < node.share <= 1 for node in nodes)


def test_a_binding_that_was_not_built_leaves_the_others(record, rules):
    absent = {
        label: {
            marshaling.name(b, s): "ImportError: no compiler"
            for b in ("PyO3", "cffi ABI")
            for s in marshaling.SIGNATURES
        }
        for label in ("3.14", "3.14t")
    }
    less = Record(None, record.run, [*record.restarts, {"missing": absent}], record.blocks, [], False)
    cells = marshaling.matrix(less)
    assert {"PyO3", "cffi ABI"}.isdisjoint(cells.binding)
    assert (page.matrix_table(cells, "not counted", "3.14")["PyO3"] == "see above").all()
    assert "no compiler" in set(page.missing_table(less).why)
    for plot in (
        lambda figure: page.plot_matrix(figure, cells, ["3.14", "3.14t"]),
        lambda figure: page.plot_without_gil(figure, marshaling.without_gil(less)),
    ):
        plot(plt.figure())
    assert marshaling.cpp_table(less).empty
    handed = marshaling.claim_measurements(less, "no perf", "no valgrind")
    assert handed["A23"] == handed["A1"] == {}
    assert len(handed["A7"]) == 3
    assert "still open" in marshaling.check_binding({"parser": "PyO3"}, less, rules)[0]
    runs = pd.DataFrame([{"binding": b, "linking": "default", "import_ms": 1.0} for b in marshaling.BINDINGS])
    assert "PyO3" not in set(page.choice_table(less, cells, rules, runs).binding)
