"""The chapter on the boundary: the analysis finds what was put in; every claim gets what its rule asks for; a binding is
one folder."""

import re
import runpy
import shutil
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from docutils import nodes

from ffilab import draw
from ffilab.bench import instructions, profile
from ffilab.bench.case import Case
from ffilab.bench.instructions import Node
from ffilab.bench.plan import plan
from ffilab.bench.record import Record
from ffilab.budget import BUDGETS
from ffilab.judge import ledger, verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Interval
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED
from ffilab.judge.simulation import TRUTHS, Simulated
from ffilab.paths import BY_PRODUCTS, NATIVE
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.boundary import claims, exercise, experiment, figures, results, simulated, words
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
    # Other forms: one that is faster than the form in the matrix, one that is as fast.
    "nanobind, NOMINSIZE": 30.0,
    "nanobind, stable ABI": 36.0,
    "cffi ABI, out of line": 280.0,
}
T_BUILD = 1.2


def made_up(absent: dict[tuple[str, str], str], seed: int = 11) -> Record:
    """The same costs for every signature, 1.2 times as much on the t-build, without the cells of `absent`."""
    rng = np.random.default_rng(seed)
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


DETACHED = ("no-op, detached", "callback, detached")
PYDLL_CANNOT_DETACH = {(label, f"ctypes PyDLL: {what}"): "AttributeError: no" for label in PAIR for what in DETACHED}


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
    observed = {"where the time goes, by process": profiles, "call trees": trees}
    session = SimpleNamespace(corner="boundary", timed={"claims": record}.get, observed=observed.get)
    return claims.measurements(session).complete()


def test_cost_over_the_floor_is_found(record):
    for binding, cost in COST.items():
        found = results.over_floor(record, GIL, binding, experiment.INT)
        slack = 0.01 * cost
        assert found.low - slack <= cost - COST["C API"] <= found.high + slack


def test_order_is_that_of_the_paired_ratios(record):
    said = words.order(figures.order(record, GIL))
    assert said.startswith("From cheapest to dearest: C API < Cython < ")
    assert said.endswith(" < pybind11 < cffi API < cffi ABI < ctypes PyDLL < ctypes CDLL.")


def test_every_number_of_a_call_holds_the_loop(record):
    """The answer to prediction 1, the heat map, the table of the order and the first figure say the same."""
    cheapest, dearest, found = results.widest(record, GIL)
    assert (cheapest, dearest) == ("C API", "ctypes CDLL")
    assert found.value == pytest.approx((460 + LOOP) / (20 + LOOP), rel=0.01)
    cells = results.matrix(record).set_index(["interpreter", "signature", "binding"])
    assert cells.times[GIL, experiment.INT, dearest] == pytest.approx(found.value, rel=0.01)
    first = results.headline(record).set_index(["interpreter", "binding"]).value
    assert first[GIL, dearest] / first[GIL, cheapest] == pytest.approx(found.value, rel=0.02)
    assert first[GIL, results.LOOP] == pytest.approx(LOOP, rel=0.05)
    shown = figures.order(record, GIL).set_index("binding")[figures.TURN]
    assert shown[dearest] == draw.text(
        Interval.of(results.headline(record).set_index(["interpreter", "binding"]).loc[(GIL, dearest)])
    )


def test_pairs_that_change_places_are_counted(record):
    changes = results.order_changes(record, GIL)
    assert set(changes) == set(SIGNATURES) - {experiment.INT}
    # All signatures were given the same costs.
    assert not any(changes.values())

    class Swapped:
        kept, noise, units = record.kept, record.noise, record.units
        measured = staticmethod(record.measured)

        def times(self, label, arm):
            swap = {"C API: callback": "ctypes CDLL: callback", "ctypes CDLL: callback": "C API: callback"}
            return record.times(label, swap.get(arm, arm))

    changed = results.order_changes(Swapped(), GIL)
    # The two themselves, and each with everything that lies between them.
    assert changed["callback"] == 2 * (len(BINDINGS) - 2) + 1
    assert sum(map(bool, changed.values())) == 1


def test_missing_cells_say_why(record):
    table = figures.missing(record, {label: {} for label in PAIR})
    assert list(table.CPython) == PAIR
    assert set(table.binding) == {"ctypes PyDLL"}
    assert "never detaches" in table.why.iloc[0]
    assert "ctypes PyDLL" not in results.present(record, GIL, "no-op, detached")


def test_matrix_leaves_no_cell_out(record):
    cells = results.matrix(record)
    assert len(cells) == 2 * (len(SIGNATURES) * len(BINDINGS) - 2)
    table = figures.matrix(cells, GIL)
    assert table.shape == (len(SIGNATURES), len(BINDINGS) + 1)
    assert (table == "see above").to_numpy().sum() == 2


def test_another_form_of_a_tool_is_compared_with_the_form_in_the_matrix(record):
    forms = results.variants(record)
    assert len(forms) == len(PAIR) * len(experiment.VARIANTS) * len(experiment.OF_VARIANTS)
    faster = forms[forms.form == "nanobind, NOMINSIZE"]
    assert faster.value.median() == pytest.approx((30 + LOOP) / (36 + LOOP), rel=0.02)
    said = words.another_form(forms)
    assert "“nanobind, NOMINSIZE” is faster for no-op on 3.14; " in said
    assert "slower" not in said.partition("cffi")[0]
    assert figures.variants(forms).shape == (len(PAIR) * len(experiment.VARIANTS), 2 + len(experiment.OF_VARIANTS))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.8, 0.9, "“x” is faster for no-op on 3.14."),
        (0.9, 1.1, "“x” is not told apart"),
        (1.1, 1.2, "“x” is slower for no-op on 3.14."),
    ],
)
def test_what_is_said_of_another_form_follows_its_interval(low, high, said):
    row = {"interpreter": GIL, "form": "x", "signature": "no-op", "value": (low + high) / 2, "low": low, "high": high}
    assert said in words.another_form(pd.DataFrame([row]))


def test_names_in_tables_lead_to_the_code(record):
    page = (NATIVE.parent / "notebooks" / "boundary" / "bindings.md").read_text()
    for binding, address in figures.CODE.items():
        anchor = address.partition("#")[2]
        assert f"({anchor})=\n## {binding}\n" in page
        # What Sphinx makes of it.
        assert nodes.make_id(anchor) == anchor
    rows = figures.order(record, GIL).to_html(index=False)
    assert '<td><a href="bindings.html#binding-c-api">C API</a></td>' in draw.linked(rows, figures.CODE)
    assert draw.linked("<td>a &lt; b</td><td>c</td>", {"a < b": "x"}) == '<td><a href="x">a &lt; b</a></td><td>c</td>'


def test_the_page_on_the_bindings_shows_every_file_of_every_project():
    page = (NATIVE.parent / "notebooks" / "boundary" / "bindings.md").read_text()
    shown = set(re.findall(r"literalinclude} ../../native/boundary/(\S+)", page))
    assert all((NATIVE / "boundary" / path).exists() for path in shown)
    folders = [path.parent for path in NATIVE.glob("boundary/*/binding.toml")]
    neither = {"binding.toml", "crates.lock"}
    there = {path for folder in folders for path in folder.rglob("*") if path.is_file() and path.name not in neither}
    there = {str(path.relative_to(NATIVE / "boundary")) for path in there if not BY_PRODUCTS & set(path.parts)}
    assert there == shown


def test_surcharge_of_the_t_build(record):
    ratios = results.without_gil(record)
    assert len(ratios) == len(SIGNATURES) * len(BINDINGS) - 2
    dear = ratios[ratios.binding == "ctypes CDLL"]
    assert dear.value.median() == pytest.approx((460 * T_BUILD + LOOP) / (460 + LOOP), rel=0.01)


PRICE = {10: 20.0, 100: 40.0, 1_000: 50.0, 10_000: 60.0}


def worked(price: dict[int, float], scatter: float = 0.3, seed: int = 5) -> Record:
    """Calls whose price at each length is given (ns), through every binding; twenty times as much through ctypes."""
    rng = np.random.default_rng(seed)
    cells = {f"{GIL}/empty loop": LOOP}
    for n, ns in price.items():
        cells[f"{GIL}/C: work {n}"] = float(n)
        for binding in experiment.WORKED:
            cells[f"{GIL}/{binding}: work {n}"] = n + LOOP + ns * (20 if binding == "ctypes CDLL" else 1)
    blocks = [
        {"restart": restart, "ns": {k: int(1e5 * (v + rng.normal(0, scatter))) for k, v in cells.items()}}
        for restart in range(20)
        for _ in range(4)
    ]
    run = {"plan": {"seed": 1, "interpreters": [GIL], "blocks": 4}}
    return Record(None, run, loops=dict.fromkeys(cells, 100_000), restarts=[{"missing": {GIL: {}}}], blocks=blocks)


def test_the_price_is_found_at_each_length_and_where_it_is_a_small_share():
    found = results.prices(worked(PRICE))
    part = found[found.binding == "C API"]
    for row, (n, ns) in zip(part.itertuples(), PRICE.items(), strict=True):
        assert row.work_ns == pytest.approx(n, rel=0.05)
        assert row.price.low - 0.5 <= ns <= row.price.high + 0.5
        assert row.share.value == pytest.approx(ns / (ns + n), rel=0.05)
    assert part.more.iloc[0].value == 0
    assert part.more.iloc[-1].low > 35
    # Between 100 and 1,000 ns the price rises from 40 to 50: 19 times 49.5 is 940.
    threshold = results.threshold(found, "C API")
    assert threshold.low <= threshold.value <= threshold.high
    assert threshold.value == pytest.approx(940, rel=0.02)
    # 20 times 60 is 1,200 ns, more than a twentieth of 10 µs.
    assert np.isinf(results.threshold(found, "ctypes CDLL").value)
    assert results.threshold(found, "ctypes PyDLL") is None
    assert figures.prices(found).shape == (len(experiment.WORKED), 2 + len(PRICE))
    assert "price value" in figures.plain(found)


def test_the_threshold_is_where_the_curve_of_the_figure_crosses():
    """By the same points: at the threshold the share, drawn straight between the points' prices, is the target."""
    found = results.prices(worked(PRICE))
    part = found[found.binding == "PyO3"]
    at = results.threshold(found, "PyO3").value
    price = np.interp(np.log(at), np.log(part.work_ns), [one.value for one in part.price])
    assert price / (price + at) == pytest.approx(results.TARGET_SHARE, rel=0.01)


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (dict.fromkeys(PRICE, 30.0), "compatible with a fixed one: C API"),
        ({n: 30 + 0.01 * n for n in PRICE}, "a line that rises: C API"),
        (PRICE, "neither fixed nor a straight line: C API"),
    ],
)
def test_a_price_is_fixed_or_a_line_or_neither(price, said):
    # A wider scatter would hide the line, a level of 98 % finds a line in one of fifty fixed prices: one binding is asked.
    fitted = results.lines(worked(price))
    row = fitted.set_index("binding").loc["C API"]
    assert said in words.fixed_price({"C API": row.slope}, {"C API": row.bend})
    if said.startswith("a line"):
        assert row.slope.value == pytest.approx(10, rel=0.05)
        assert row.start.value == pytest.approx(30, rel=0.05)
    figure = plt.figure()
    figures.plot_prices(figure, results.prices(worked(price)), fitted)
    figures.plot_shares(figure, results.prices(worked(price)))


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


def profiled(taken: float, libffi: float, how: str = "perf cpu-clock") -> dict:
    """A profile of one process, with samples in and beside the two groups that A10 speaks of."""
    samples = {
        "ffi_call": libffi,
        "take_gil": taken,
        "PyCFuncPtr_call": 20,
        "_PyEval_EvalFrameDefault": 100,
        "boundary_pyo3": 9,
    }
    return {"how": how, "costs": [[symbol, "object", count] for symbol, count in samples.items()]}


def test_every_claim_gets_what_its_rule_asks_for(record):
    found = [profiled(60, 20)] * 10
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
    share, among = handed.measurements["A10"].values()
    assert share.interval.value == pytest.approx(60 / 209)
    assert among.interval.value == pytest.approx(60 / 80)
    assert share.estimate.n == among.estimate.n == 10
    assert handed.measurements["A11"]["PyO3: share of its links that the call tree shows"].interval.value == 0
    looks = results.groups({GIL: {"PyO3": found}}, GIL, "PyO3")
    assert len(looks) == 10
    assert looks[0]["code of the binding"] == 9
    assert set(looks[0]) == {name for name, _ in profile.GROUPS} | {profile.OTHER}


def test_a_process_is_one_value_however_many_samples_it_has():
    few, many = [profiled(6, 2), profiled(4, 2)], [profiled(6000, 2000), profiled(4, 2)]
    for profiles in (few, many):
        looks = results.groups({GIL: {"ctypes CDLL": profiles}}, GIL, "ctypes CDLL")
        found = results.shares(looks, results.HAND_OFF, results.HAND_OFF, results.LIBFFI)
        assert found == pytest.approx([6 / 8, 4 / 6])
    assert not len(results.shares([{"a": 0, "b": 0}], "a", "a", "b"))
    assert figures.share_in_words(np.array([0.1])) == "10.0"
    assert "[" in figures.share_in_words(np.array([0.1, 0.11, 0.1, 0.12, 0.1]))
    assert figures.share_in_words(np.array([])) == draw.NOT_MEASURED


def test_the_table_of_profiles_has_an_interval_where_there_were_several():
    table = figures.where({GIL: {"ctypes CDLL": [profiled(60 + n, 20) for n in range(5)], "PyO3": [profiled(0, 0)]}})
    table = table.set_index("own time of")
    assert list(table.loc["n"]) == ["5", "1"]
    assert ["[" in said for said in table.loc[results.HAND_OFF]] == [True, False]
    # What it says of the two groups follows the same shares.
    known = {GIL: {"ctypes CDLL": [profiled(60 + n, 20) for n in range(5)]}, FREE_THREADED: {}}
    share = results.share(
        results.shares(
            results.groups(known, GIL, "ctypes CDLL"), results.CONVERSION, results.CONVERSION, results.HAND_OFF
        )
    )
    assert "the hand-over takes longer" in words.hand_off(share.interval)
    counted = {GIL: {"ctypes CDLL": [profiled(60, 20, "callgrind, own cost")]}}
    assert "cannot be told here" in words.hand_off(results.no_time(counted, GIL, "ctypes CDLL"))


def test_claims_without_tools_are_handed_in_unmeasured(record):
    handed = handed_in(record, "no perf", "no valgrind")
    assert handed.measurements["A10"] == handed.measurements["A11"] == {}
    assert set(handed.missing["A10"].values()) == {"no perf"}
    not_profiled = handed_in(record, {label: {} for label in PAIR}, "no valgrind")
    assert set(not_profiled.missing["A10"].values()) == {"ctypes CDLL was not profiled"}
    found = judged(handed)
    assert found["A11"]["verdict"] == verdicts.CANNOT_TEST
    assert "no valgrind" in found["A11"]["reason"]


def test_counted_instructions_are_no_shares_of_time(record):
    """Where perf may not sample, A10 has no number, and says why."""
    found = {"ctypes CDLL": [profiled(60, 20, "callgrind, own cost")]}
    handed = handed_in(record, {label: found for label in PAIR}, "no valgrind")
    row = judged(handed)["A10"]
    assert (row["verdict"], row["measured"]) == (verdicts.CANNOT_TEST, {})
    assert "instructions were counted" in row["reason"]


class Timing:
    """A session that only says what it was asked to time."""

    def __init__(self, budget: str):
        self.budget, self.interpreters = BUDGETS[budget], ["3.13", *PAIR]

    def time(self, name, arms, interpreters=None, budget=None):
        return plan(name, arms, interpreters or self.interpreters, budget, 1)


def test_the_plan_of_the_claims_has_the_cells_that_claims_compare_and_no_others():
    made = experiment.claims(Timing("quick"))
    assert made.name == "claims"
    assert list(made.interpreters) == PAIR
    compared = {
        (label, name(binding, signature))
        for ratios in results.pairs().values()
        for cells in ratios.values()
        for label, binding, signature in cells
    }
    # What the page says of texts, it says beside an int, and of later conversions too.
    shown = {(label, name(experiment.FLOOR, s)) for label in PAIR for s in (experiment.INT, *experiment.TEXTS)}
    # One cell for both interpreters, though A23 is judged on one of them.
    cpp = {(label, name(binding, experiment.METHOD)) for label in PAIR for binding in (*experiment.CPP, "PyO3")}
    both = {(label, name(b, experiment.ANSWER)) for label in PAIR for b in (*experiment.TALK, "ctypes PyDLL")}
    assert compared <= shown | cpp | both
    ours = {(label, arm.name) for label, arm in made.cells() if arm.file == experiment.ARMS}
    assert ours == shown | cpp | both


@pytest.mark.parametrize(("budget", "batch_ms"), [("smoke", 1), ("quick", 2), ("full", 2)])
def test_claims_get_more_blocks_than_the_matrix_and_both_no_more_time_than_one_plan(budget, batch_ms):
    session = Timing(budget)
    claimed, whole = experiment.claims(session), experiment.matrix(session)
    assert claimed.batch_ns == batch_ms * 1e6
    assert whole.batch_ns == 1e6
    assert claimed.seconds + whole.seconds == pytest.approx(session.budget.seconds)
    assert claimed.restarts == whole.restarts
    if session.budget.is_result:
        assert claimed.blocks > whole.blocks


def test_pairs_are_those_that_the_rules_ask_for():
    ours = {claim.id: {test.measured for test in claim.tests} for claim in declared("boundary").claims}
    assert {claim: set(ratios) for claim, ratios in results.pairs().items()} == {
        claim: names for claim, names in ours.items() if claim not in ("A10", "A11")
    }


def test_the_page_shows_the_numbers_that_decide(record):
    """The table, the words and the figure's points of a claim come from the plan of the claims, not from the matrix."""
    other = made_up(PYDLL_CANNOT_DETACH, seed=12)
    found = results.decisive(record)
    table = figures.decisive(found).set_index(["claim", "ratio"])["time over time, loop in both"]
    handed = handed_in(record, "no perf", "no valgrind")
    for claim, ratios in results.pairs().items():
        for ratio in ratios:
            assert table[claim, ratio] == draw.text(handed.measurements[claim][ratio].interval)
    rust = results.through_rust(other, record).set_index(["interpreter", "signature", "binding"])
    assert draw.text(Interval.of(rust.loc[GIL, experiment.METHOD, "Cython"])) == table["A23", "Cython / PyO3"]
    tax = results.text_tax(record)
    assert draw.text(tax["str out"]) == table["A7", f"str out: {FREE_THREADED} / {GIL}"]


def test_what_the_plan_of_the_claims_lacks_comes_from_the_matrix(record):
    part = Record(
        None,
        record.run,
        loops={key: n for key, n in record.loops.items() if experiment.METHOD in key},
        blocks=[
            {**block, "ns": {key: ns for key, ns in block["ns"].items() if experiment.METHOD in key}}
            for block in record.blocks
        ],
    )
    other = made_up(PYDLL_CANNOT_DETACH, seed=12)
    found, whole = results.through_rust(other, part), results.through_rust(other, other)
    assert len(found) == len(whole)
    same = found.value == whole.value
    assert same[found.signature != experiment.METHOD].all()
    assert not same[found.signature == experiment.METHOD].any()


def judged(handed) -> dict[str, dict]:
    """The ledger's rows of a run that passed its controls, by claim."""
    return {row["id"]: row for _, row in ledger.rows_of(handed, {"is_result": True, "minutes": None}, [])}


@pytest.mark.parametrize("truth", TRUTHS)
def test_without_noise_the_verdict_is_that_of_the_truth(truth):
    found = rows("boundary", truth, "full", 0, noise=0)
    assert list(found) == ["A1", "A2", "A3", "A4", "A7", "A10", "A11", "A23"]
    accepted = {
        "as published": {verdicts.HOLDS},
        "half the size": {verdicts.HOLDS, verdicts.IN_DIRECTION},
        "no effect": {verdicts.REFUTED},
        "the wrong sign": {verdicts.REFUTED},
    }
    assert {row["verdict"] for row in found.values()} <= accepted[truth]
    if truth == "half the size":
        # A half of a published size is not that size.
        sizes = {name for name, row in found.items() if any(part["kind"] == "size" for part in row["parts"])}
        assert {name for name, row in found.items() if row["verdict"] == verdicts.IN_DIRECTION} == sizes


def test_what_is_published_is_not_confirmed_by_a_run_that_can_tell_nothing():
    for claim, row in rows("boundary", "as published", "full", 1, noise=150).items():
        if claim != "A11":  # its trees are counted: a run has them, or it has not
            assert row["verdict"] == verdicts.UNDECIDED_HERE, claim
            assert row["takes"]


def answers(claim: str, measured: str, times=None, profiles=None, trees=None) -> dict[str, str]:
    """What each kind of test says of a number, in a session that is as published but for what is given."""
    session = Simulated("boundary", "as published", PAIR, "full", 3)
    simulated.simulated(session)
    if times:
        cells, scatter = times
        session.add_times("claims", {**simulated.cells(session), **cells}, scatter)
    if profiles:
        session.add_observation("where the time goes, by process", {GIL: {"ctypes CDLL": profiles}, FREE_THREADED: {}})
    if trees:
        session.add_observation("call trees", trees)
    row = judged(ledger.measured(session))[claim]
    tests = next(one for one in declared("boundary").claims if one.id == claim).tests
    return {
        part["kind"]: part["verdict"]
        for part, test in zip(row["parts"], tests, strict=True)
        if test.measured == measured
    }


TIMED = [
    # claim, its number, slow, fast, and a ratio that holds, that is of another size, and that does not hold
    ("A1", "ctypes CDLL / cffi ABI", (GIL, "ctypes CDLL: → int"), (GIL, "cffi ABI: → int"), 1.073, 1.5, 0.95),
    (
        "A3",
        f"cffi ABI / ctypes PyDLL on {FREE_THREADED}",
        (FREE_THREADED, "cffi ABI: → int"),
        (FREE_THREADED, "ctypes PyDLL: → int"),
        1.333,
        1.1,
        1.0,
    ),
    ("A4", "ctypes PyDLL / pybind11", (GIL, "ctypes PyDLL: → int"), (GIL, "pybind11: → int"), 1.1, None, 1.0),
    # Not dearer, and not cheaper either: that is the order, as it was published. A fiftieth cheaper is not.
    (
        "A2",
        f"ctypes CDLL / cffi ABI on {FREE_THREADED}",
        (FREE_THREADED, "ctypes CDLL: → int"),
        (FREE_THREADED, "cffi ABI: → int"),
        1.0,
        None,
        0.96,
    ),
    ("A2", f"PyO3: {FREE_THREADED} / {GIL}", (FREE_THREADED, "PyO3: → int"), (GIL, "PyO3: → int"), 1.065, 1.3, 1.0),
    (
        "A7",
        f"str out: {FREE_THREADED} / {GIL}",
        (FREE_THREADED, "C API: str out"),
        (GIL, "C API: str out"),
        1.1,
        None,
        1.0,
    ),
    ("A23", "nanobind / PyO3", (GIL, "nanobind: C++ method"), (GIL, "PyO3: C++ method"), 1.1, None, 0.715),
]


@pytest.mark.parametrize(("claim", "measured", "slow", "fast", "holds", "other_size", "refuted"), TIMED)
def test_a_ratio_of_times_holds_is_refuted_or_stays_open(claim, measured, slow, fast, holds, other_size, refuted):
    def of(ratio, scatter=0.001):
        return answers(claim, measured, times=({slow: 100.0 * ratio, fast: 100.0}, scatter))

    sized = {"size": HOLDS} if other_size else {}
    assert of(holds) == {"side": HOLDS, **sized}
    assert of(refuted)["side"] == DOES_NOT_HOLD
    assert of(holds, 1.0) == {"side": UNDECIDED, **{kind: UNDECIDED for kind in sized}}
    if other_size:
        assert of(other_size) == {"side": HOLDS, "size": DOES_NOT_HOLD}


def test_the_hand_off_holds_is_refuted_or_stays_open():
    share, among = "share of the hand-off in a CDLL call", "hand-off among hand-off and libffi"

    def processes(*both):
        return [profiled(taken, libffi) for taken, libffi in both]

    # Among 129 samples of other groups.
    larger = processes(*[(11 + n % 2, 2) for n in range(10)])
    assert answers("A10", share, profiles=larger) == {"side": HOLDS, "size": HOLDS}
    assert answers("A10", among, profiles=larger) == {"side": HOLDS}
    smaller = processes(*[(0.5 + 0.1 * (n % 2), 20) for n in range(10)])
    assert answers("A10", share, profiles=smaller) == {"side": DOES_NOT_HOLD, "size": DOES_NOT_HOLD}
    assert answers("A10", among, profiles=smaller) == {"side": DOES_NOT_HOLD}
    apart = processes(*[(30, 2), (0, 30)] * 2)
    assert answers("A10", share, profiles=apart) == {"side": UNDECIDED, "size": UNDECIDED}
    assert answers("A10", among, profiles=apart) == {"side": UNDECIDED}
    # However many samples it has, one process decides nothing.
    assert answers("A10", among, profiles=processes((9000, 200)))["side"] == UNDECIDED


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


def trees(ctypes=CTYPES, pyo3=PYO3) -> dict[str, list[dict]]:
    return {"ctypes CDLL": [vars(node) for node in ctypes], "PyO3": [vars(node) for node in pyo3]}


def path(binding: str, **changed) -> dict[str, str]:
    return answers("A11", f"{binding}: share of its links that the call tree shows", trees=trees(**changed))


def test_a_call_path_is_that_of_the_diagram_or_is_not():
    assert path("ctypes CDLL") == path("PyO3") == {"equal": HOLDS}
    # All functions are there; libffi is called by something else.
    moved = [*(node for node in CTYPES if node.function != "ffi_call"), Node(1, "ffi_call", 10, 0.1)]
    assert results.below(moved, "ffi_call") == results.below(CTYPES, "ffi_call")
    assert path("ctypes CDLL", ctypes=moved) == {"equal": DOES_NOT_HOLD}
    for left_out in range(2, len(CTYPES)):
        part = [node for number, node in enumerate(CTYPES) if number != left_out]
        assert path("ctypes CDLL", ctypes=part) == {"equal": DOES_NOT_HOLD}, CTYPES[left_out]
    for detour in ("ffi_call", "_PyObject_MakeTpCall"):
        assert path("PyO3", pyo3=[*PYO3, Node(1, detour, 1, 0.01)]) == {"equal": DOES_NOT_HOLD}
    assert path("PyO3", pyo3=PYO3[:1]) == {"equal": DOES_NOT_HOLD}


def test_a_call_tree_that_cannot_be_had_leaves_its_half_open(record):
    row = judged(handed_in(record, "no perf", {"ctypes CDLL": trees()["ctypes CDLL"]}))["A11"]
    assert (row["verdict"], row["qualifier"]) == (verdicts.IN_PART, "1 of 2; 1 without a number")
    assert "PyO3 was not built" in row["reason"]


def test_the_table_of_links_says_which_are_met():
    table = figures.links(trees())
    assert set(table["in the tree"]) == {"yes"}
    assert len(table) == sum(map(len, results.PATHS.values())) + len(results.DETOURS)
    assert list(figures.links({"PyO3": [vars(PYO3[0])]})["in the tree"]) == ["no", "no", "yes"]


def test_a_function_leads_to_what_lies_below_it_only():
    assert results.leads(TREE, "_ctypes_callproc", "ffi_call")
    assert results.leads(TREE, "EvalFrame", "ffi_call_int")
    assert not results.leads(TREE, "ffi_call", "trampoline")
    assert not results.leads(TREE, "_ctypes_callproc", "ffi_prep_cif")


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
        (
            {"parser": "Cython", "plugin": "cffi ABI"},
            "no tool that it is faster",
            "no other fitting one that it is faster",
        ),
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
    for binding, tree in trees.items():
        assert results.links(tree, binding).met.all(), figures.tree_text(tree)
    assert results.below(trees["ctypes CDLL"], "_ctypes_callproc") > 0
    assert results.below(trees["ctypes CDLL"], "ffi_call") > 0
    for tree in trees.values():
        assert tree[0].share == 1
        assert all(0 < node.share <= 1 for node in tree)


@pytest.mark.parametrize(("how", "processes"), [("perf cpu-clock", 10), ("callgrind, own cost", 1)])
def test_one_profile_is_taken_in_many_processes_where_time_is_sampled(monkeypatch, how, processes):
    monkeypatch.setattr(profile, "look", lambda label, arm, loops: {"how": how, "costs": [["take_gil", "", 1]]})
    session = SimpleNamespace(budget=SimpleNamespace(repeats=10, scale=1), observe=lambda title, look: look())
    found = experiment.profiles(session, {GIL: {"PyO3": "no compiler"}, FREE_THREADED: {}})
    assert {label: {b: len(one) for b, one in part.items()} for label, part in found.items()} == {
        GIL: {"ctypes CDLL": processes},
        FREE_THREADED: {"ctypes CDLL": 1},
    }


@pytest.mark.slow
def test_first_use_brings_all_that_the_table_shows_lazily_linked_too():
    seen = []
    session = SimpleNamespace(budget=SimpleNamespace(repeats=1), run=lambda title, cases, repeats: seen.extend(cases))
    experiment.first_use(session, {GIL: {}})
    relinked = [case for case in seen if case.columns["binding"] == experiment.FLOOR]
    assert [case.columns["linking"] for case in relinked] == ["default", "lazy"]
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
    assert (figures.matrix(cells, GIL)["PyO3"] == "see above").all()
    assert "no compiler" in set(figures.missing(less, {label: {} for label in PAIR}).why)
    for plot in (
        lambda figure: figures.plot_matrix(figure, cells, PAIR),
        lambda figure: figures.plot_without_gil(figure, results.without_gil(less)),
    ):
        plot(plt.figure())
    assert results.through_rust(less, less).empty
    handed = handed_in(less, "no perf", "no valgrind")
    assert handed.measurements["A23"] == handed.measurements["A1"] == {}
    assert handed.missing["A23"]["Cython / PyO3"] == "ImportError: no compiler"
    assert len(handed.measurements["A7"]) == 3
    table = figures.decisive(results.decisive(less)).set_index(["claim", "ratio"])["time over time, loop in both"]
    assert table["A23", "Cython / PyO3"] == "ImportError: no compiler"
    assert "[" in table["A7", f"str out: {FREE_THREADED} / {GIL}"]
    assert "still open" in exercise.check_binding({"parser": "PyO3"}, less, rules)[0]
    runs = pd.DataFrame([{"binding": b, "linking": "default", "import_ms": 1.0} for b in BINDINGS])
    sizes = {binding: {"code": 10, "packaging": 5, "built": 2048} for binding in BINDINGS}
    for label, found in ((GIL, results.prices(worked(PRICE))), (FREE_THREADED, None)):
        table = figures.choice(less, cells, label, found)
        assert "PyO3" not in set(table.binding)
        assert len(table.columns) <= 8
    terms = figures.terms(rules, runs, sizes)
    assert len(terms.columns) <= 8
    assert list(terms.binding) == list(BINDINGS)


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("return ctypes.c_int(value)", "gave -2147483648, and the contract asks for OverflowError"),
        ("return value", "not correct"),
        ("os.abort()", "the process ended"),
        ("return ctypes.c_int(min(max(value, -(2**31)), 2**31 - 1))", "asks for OverflowError"),
        ("return ctypes.c_int(int(value))", "asks for TypeError"),
    ],
)
def test_a_declaration_that_breaks_the_contract_is_told_where(answer, said):
    found = exercise.check_declaration(DECLARATION.format(answer))
    assert said in "\n".join(found)
    assert all(line.startswith("not correct") for line in found)


DECLARATION = """
import ctypes, os

class Int:
    @classmethod
    def from_param(cls, value):
        {}
"""
REPAIRED = """if not isinstance(value, int):
            raise TypeError("no int")
        if not -2**31 <= value < 2**31:
            raise OverflowError("no C int")
        return ctypes.c_int(value)"""


def test_the_repaired_declaration_keeps_the_contract():
    assert exercise.check_declaration(DECLARATION.format(REPAIRED)) == [
        f"correct: all {len(exercise.CONTRACT)} calls are answered as the contract asks."
    ]
    # Another task: no conversion of this name.
    assert "KeyError: 'Int'" in exercise.check_declaration("absolute = abs")[0]


def test_the_picture_of_the_paths_has_a_box_for_each_step():
    figure = plt.figure()
    figures.plot_paths(figure, trees())
    for axes, binding in zip(figure.axes, trees()):
        shown = [text.get_text() for text in axes.texts]
        assert all(what in shown for what, _ in results.STEPS[binding])
    known = dict(results.steps(CTYPES, "ctypes CDLL"))
    assert known["libffi calls\nthe C function"] == pytest.approx(10)
    assert np.isnan(known["make the result"])
    assert results.places(CTYPES)["the hand-over of the GIL"] == pytest.approx(0.15)
    assert "then" in figures.paths_for_alt(trees())


def test_how_many_processes_lost_something_is_counted():
    rows = [
        {"binding": "Cython", "method": method, "lost": lost, "refused": 0.0}
        for method, shares in (("add", (0, 0, 0)), ("add_unlocked", (0, 0.01, 0.03)))
        for lost in shares
    ]
    table = figures.one_object(results.together(pd.DataFrame(rows))).iloc[0]
    assert table["add: lost"] == "0 of 3"
    assert table["add_unlocked: lost"] == "2 of 3, 0 to 3 %"
