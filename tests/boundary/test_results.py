"""The chapter on the boundary: the analysis finds what was put in; every claim gets what its rule asks for; a binding is
one folder."""

import runpy
import shutil
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ffilab.bench import instructions, profile
from ffilab.bench.case import Case
from ffilab.bench.instructions import Node
from ffilab.bench.record import Record
from ffilab.judge import ledger
from ffilab.judge.claims import declared
from ffilab.paths import NATIVE
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.boundary import claims, exercise, experiment, figures, results
from notebooks.boundary.experiment import BINDINGS, SIGNATURES, name

PAIR = [GIL, FREE_THREADED]
LOOP = 5.0
# A binding that is not among these costs 60.
COST = dict.fromkeys(BINDINGS, 60.0) | {
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


def made_up(absent: dict[tuple[str, str], str]) -> Record:
    """The same costs for every signature, 1.2 times as much on the t-build, without the cells of `absent`."""
    rng = np.random.default_rng(11)
    cells = {}
    for label, factor in zip(PAIR, (1, T_BUILD)):
        for arm in experiment.arms():
            if (label, arm.name) not in absent:
                cells[f"{label}/{arm.name}"] = COST[arm.arguments["binding"]] * factor + LOOP
        cells[f"{label}/empty loop"] = LOOP
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))
        for _ in range(4):
            ns = {k: int(1e5 * v * process * np.exp(rng.normal(0, 0.004))) for k, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns})
    missing = {label: {arm: reason for (one, arm), reason in absent.items() if one == label} for label in PAIR}
    run = {"plan": {"seed": 1, "interpreters": PAIR, "blocks": 4}}
    return Record(None, run, loops=dict.fromkeys(cells, 100_000), restarts=[{"missing": missing}], blocks=blocks)


PYDLL_CANNOT_DETACH = {(label, "ctypes PyDLL: no-op, detached"): "AttributeError: no" for label in PAIR}


@pytest.fixture(scope="module")
def record():
    return made_up(PYDLL_CANNOT_DETACH)


@pytest.fixture(scope="module")
def less():
    """Two bindings were not built."""
    gone = ("PyO3", "cffi ABI")
    return made_up(
        PYDLL_CANNOT_DETACH
        | {(label, name(b, s)): "ImportError: no compiler" for label in PAIR for b in gone for s in SIGNATURES}
    )


@pytest.fixture(scope="module")
def rules():
    """As the processes hand it over: ctypes truncates, all others refuse."""
    return results.contracts(
        pd.DataFrame(
            [
                {"binding": binding, "expression": expression, "ended": "ok"}
                | ({"value": "-2147483647"} if "ctypes" in binding else {"error": "OverflowError"})
                for expression in reversed(experiment.CONTRACTS)
                for binding in BINDINGS
            ]
        )
    )


def handed_in(record, profiles, trees):
    observed = {"where the time goes": profiles, "call trees": trees}
    session = SimpleNamespace(corner="boundary", timed={"matrix": record}.get, observed=observed.get)
    return claims.measurements(session).complete()


def test_cost_over_the_floor_is_found(record):
    for binding, cost in COST.items():
        found = results.over_floor(record, GIL, binding, experiment.INT)
        slack = 0.01 * cost
        assert found.low - slack <= cost - COST["C API"] <= found.high + slack


def test_order_is_that_of_the_paired_ratios(record):
    words = figures.order_in_words(figures.order(record, GIL))
    assert words.startswith("C API < Cython < ")
    assert words.endswith(" < pybind11 < cffi API < cffi ABI < ctypes PyDLL < ctypes CDLL")


def test_order_joins_what_cannot_be_told_apart():
    columns = ["binding", "a call", "over the one above", "BH p", "told apart"]
    rows = [("x", "", "", "", ""), ("y", "", "", "", "no (smallest to be found: 1 %)"), ("z", "", "", "", "yes")]
    assert figures.order_in_words(pd.DataFrame(rows, columns=columns)) == "x ≈ y < z"


def test_missing_cells_say_why(record):
    table = figures.missing(record, {label: {} for label in PAIR})
    assert list(table.CPython) == PAIR
    assert set(table.binding) == {"ctypes PyDLL"}
    assert "never detaches" in table.why.iloc[0]
    assert "ctypes PyDLL" not in results.present(record, GIL, "no-op, detached")


def test_matrix_leaves_no_cell_out(record):
    cells = results.matrix(record)
    assert len(cells) == 2 * (len(SIGNATURES) * len(BINDINGS) - 1)
    table = figures.matrix(cells, "not counted", GIL)
    assert table.shape == (len(SIGNATURES), len(BINDINGS) + 1)
    assert (table == "see above").to_numpy().sum() == 1


def test_surcharge_of_the_t_build(record):
    ratios = results.without_gil(record)
    assert len(ratios) == len(SIGNATURES) * len(BINDINGS) - 1
    dear = ratios[ratios.binding == "ctypes CDLL"]
    assert dear.value.median() == pytest.approx((460 * T_BUILD + LOOP) / (460 + LOOP), rel=0.01)


def test_a_call_is_worth_it_from_nineteen_times_its_boundary(record):
    worth = results.worth_crossing(record)["C API"]
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
    assert results.below(TREE, "ffi_call") == pytest.approx(0.12)
    assert results.below(TREE, "_ctypes_callproc") == pytest.approx(0.8)
    assert results.below(TREE, "nothing") == 0
    assert "ffi_call" in figures.tree_text(TREE)


def test_every_claim_gets_what_its_rule_asks_for(record):
    samples = {
        "ffi_call": 20,
        "take_gil": 60,
        "PyCFuncPtr_call": 20,
        "_PyEval_EvalFrameDefault": 100,
        "boundary_pyo3": 9,
    }
    found = {"how": "perf", "costs": [[symbol, "object", count] for symbol, count in samples.items()]}
    tree = [vars(node) for node in TREE]
    handed = handed_in(
        record,
        {label: {b: found for b in experiment.COMPARED} for label in PAIR},
        dict.fromkeys(experiment.COMPARED, tree),
    )
    assert not any(handed.missing.values())
    ours = {claim.id: {test.measured for test in claim.tests} for claim in declared("boundary").claims}
    assert {claim: set(measurements) for claim, measurements in handed.measurements.items()} == ours
    assert handed.measurements["A1"]["cffi ABI / pybind11"].interval.value == pytest.approx(285 / 85, rel=0.01)
    assert handed.measurements["A10"]["share of the hand-off in a CDLL call"].interval.value == 60 / 209
    assert handed.measurements["A10"]["hand-off among hand-off and libffi"].interval.value == 60 / 80
    assert handed.measurements["A11"]["ctypes: share below ffi_call"].interval.value == pytest.approx(0.12)
    assert results.groups({GIL: {"PyO3": found}}, GIL, "PyO3")["code of the binding"] == 9
    assert set(results.groups({GIL: {"PyO3": found}}, GIL, "PyO3")) == {name for name, _ in profile.GROUPS} | {
        profile.OTHER
    }


def test_claims_without_tools_are_handed_in_unmeasured(record):
    handed = handed_in(record, "no perf", "no valgrind")
    assert handed.measurements["A10"] == handed.measurements["A11"] == {}
    assert set(handed.missing["A10"].values()) == {"no perf"}
    not_profiled = handed_in(record, {label: {} for label in PAIR}, "no valgrind")
    assert set(not_profiled.missing["A10"].values()) == {"ctypes CDLL was not profiled"}
    rows = {handed_row["id"]: handed_row for _, handed_row in ledger.rows_of(handed, {"is_result": True})}
    assert rows["A11"]["verdict"] == ledger.CANNOT_TEST
    assert "no valgrind" in rows["A11"]["reason"]


def test_lines_of_code_leave_out_comments_and_docstrings(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""Docstring."""\n\n# comment\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert experiment.lines_of_code(tmp_path / "a.py") == 3
    (tmp_path / "a.c").write_text("/* one\n   two */\nint x; // here\n\nint y;\n")
    assert experiment.lines_of_code(tmp_path / "a.c") == 2


def test_linking_effect_is_the_ratio_to_the_default():
    rows = [
        {
            "binding": b,
            "linking": linking,
            "import_ms": ms * (1 + 0.001 * n),
            "resident_kib": 1,
            "first_call_ns": 1,
            "later_call_ns": 1,
            "round": n,
        }
        for n in range(10)
        for b in experiment.RELINKED
        for linking, ms in (("default", 2.0), ("lazy", 1.0), ("bind now", 2.0))
    ]
    found = results.linking_effect(pd.DataFrame(rows), "import_ms", "lazy")
    assert found.value == pytest.approx(0.5)
    assert len(figures.first_use(pd.DataFrame(rows))) == len(experiment.RELINKED)


@pytest.mark.parametrize(
    ("choice", "parser", "plugin"),
    [
        ({}, "still open", "still open"),
        ({"parser": "ctypes CDLL", "plugin": "PyO3"}, "not correct", "not correct"),
        ({"parser": "pybind11", "plugin": "ctypes PyDLL"}, "not yet fast", "not correct"),
        ({"parser": "C API", "plugin": "ctypes CDLL"}, "by hand", "not yet fast"),
        ({"parser": "Cython", "plugin": "cffi ABI"}, "no tool is faster", "no other that fits is faster"),
    ],
)
def test_self_check(record, rules, choice, parser, plugin):
    first, second = exercise.check_binding(choice, record, rules)
    assert parser in first
    assert plugin in second


@pytest.mark.slow
@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_call_trees_show_the_two_paths():
    session = SimpleNamespace(observe=lambda title, look: look())
    trees = {b: results.nodes(lines) for b, lines in experiment.call_trees(session, {GIL: {}}).items()}
    assert results.below(trees["ctypes CDLL"], "_ctypes_callproc") > 0
    assert results.below(trees["ctypes CDLL"], "ffi_call") > 0
    for nodes in trees.values():
        assert nodes[0].share == 1
        assert all(0 < node.share <= 1 for node in nodes)


@pytest.mark.slow
def test_early_binding_is_asked_for_in_the_environment():
    """The linking is what the process is started with; each process brings all that the table shows."""
    seen = []
    session = SimpleNamespace(budget=SimpleNamespace(repeats=1), run=lambda title, cases, repeats: seen.extend(cases))
    experiment.first_use(session, {GIL: {}})
    assert {case.columns["linking"] for case in seen if case.environment} == {"bind now"}
    relinked = [case for case in seen if case.columns["binding"] == experiment.FLOOR]
    assert [case.columns["linking"] for case in relinked] == ["default", "lazy", "bind now"]
    for case in relinked:
        assert set(case.run().result) == set(results.FIRST_USE)


@pytest.mark.slow
def test_the_talks_method_takes_as_many_samples_of_each_binding():
    fixed = {"folder": experiment.LIBRARIES, "bindings": ["C API", "ctypes CDLL"]}
    rows = Case(GIL, experiment.EXPERIMENTS, "original", fixed=fixed).run().result
    assert [row["binding"] for row in rows] == fixed["bindings"]
    assert len({len(row["ns"]) for row in rows}) == 1


def test_a_binding_that_was_not_built_leaves_the_others(less, rules):
    cells = results.matrix(less)
    assert {"PyO3", "cffi ABI"}.isdisjoint(cells.binding)
    assert (figures.matrix(cells, "not counted", GIL)["PyO3"] == "see above").all()
    assert "no compiler" in set(figures.missing(less, {label: {} for label in PAIR}).why)
    for plot in (
        lambda figure: figures.plot_matrix(figure, cells, PAIR),
        lambda figure: figures.plot_without_gil(figure, results.without_gil(less)),
    ):
        plot(plt.figure())
    assert results.through_rust(less).empty
    handed = handed_in(less, "no perf", "no valgrind")
    assert handed.measurements["A23"] == handed.measurements["A1"] == {}
    assert handed.missing["A23"]["Cython / PyO3"] == "ImportError: no compiler"
    assert len(handed.measurements["A7"]) == 3
    assert "still open" in exercise.check_binding({"parser": "PyO3"}, less, rules)[0]
    runs = pd.DataFrame([{"binding": b, "linking": "default", "import_ms": 1.0} for b in BINDINGS])
    sizes = {binding: {"code": 10, "packaging": 5, "built": 2048} for binding in BINDINGS}
    assert "PyO3" not in set(figures.choice(less, cells, rules, runs, sizes).binding)


def test_a_process_that_died_is_an_answer_too():
    runs = [
        {"binding": "C API", "expression": experiment.CONTRACTS[0], "error": "OverflowError", "ended": "ok"},
        {"binding": "pybind11", "expression": experiment.CONTRACTS[0], "ended": "killed by SIGSEGV"},
    ]
    row = results.contracts(pd.DataFrame(runs)).iloc[0]
    assert (row["C API"], row["pybind11"]) == ("OverflowError", "killed by SIGSEGV")


def test_a_binding_is_one_folder(tmp_path):
    """Its binding.toml puts it in its place; with two projects more than today, figures still have a marker for each."""
    for path in NATIVE.glob("boundary/*/binding.toml"):
        (tmp_path / path.parent.name).mkdir()
        shutil.copy(path, tmp_path / path.parent.name)
    shutil.copy(NATIVE / "boundary" / "arms.py", tmp_path)
    for title, order in (("Zig", 5), ("SWIG", 1000)):
        (tmp_path / title.lower()).mkdir()
        (tmp_path / title.lower() / "binding.toml").write_text(
            f'[[binding]]\ntitle = "{title}"\norder = {order}\nmodule = "boundary_{title.lower()}"\n'
        )
    found = runpy.run_path(str(tmp_path / "arms.py"))
    assert tuple(found["BINDINGS"]) == ("Zig", *BINDINGS, "SWIG")
    assert found["BINDINGS"]["Zig"].module == "boundary_zig"
    assert found["STANDS_IN"] == {"pyo3": "pyo3_0_27"}


def test_more_bindings_than_markers_can_be_drawn(record):
    worth = results.worth_crossing(record)
    many = {f"{binding} {n}": interval for n in range(4) for binding, interval in worth.items()}
    shares = pd.DataFrame([{"binding": b, "work_ns": 10.0, "value": 0.5, "low": 0.4, "high": 0.6} for b in many])
    figures.plot_work(plt.figure(), shares, many)
