"""What the records of the chapter "The boundary" say: costs over the floor, ratios, shares and their intervals."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge import processes, statistics
from ffilab.judge.estimates import LEVEL, Estimate, Interval, Location
from ffilab.judge.questions import NO, OPEN, YES, above
from ffilab.measure import profile
from ffilab.measure.instructions import Node
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import description
from notebooks.boundary import experiment as e
from notebooks.boundary.experiment import name
from notebooks.boundary.looks import WITHOUT_HAND_OVER

COPIES = [(name(binding, e.INT), name(binding, e.INT) + e.AGAIN) for binding in (e.FLOOR, "ctypes CDLL")]
TARGET_SHARE = 0.05
WITH_PYDLL = ("cffi ABI", "ctypes PyDLL", "pybind11", "PyO3")
# Which bindings detach the thread state around every call, and so release the GIL: the manuals of ctypes and cffi.
DETACHING = ("cffi API", "cffi ABI", "ctypes CDLL")
# What the talk printed for the call that returns an int, in ns, by set of tables: std over cv.
PUBLISHED = {
    "set 1": (278.7, 260.3, 189.8, 138.7),
    "set 2, no GIL": (303.6, 302.3, 252.0, 148.2),
    "set 3, no GIL": (198.3, 264.4, 177.9, 145.6),
    "set 4": (119.7, 168.0, 107.7, 77.5),
}
# The numbers of claims that stand beside them, or are the talk's own.
NONE_TOLD = "the corrected experiment tells no two of the talk's four apart"
MISRANKED = "processes of the talk's program that name another winner than the corrected experiment"
NEXT = "libffi among libffi and the largest of the others, PyDLL"
ARGUMENT = "an int argument / the hand-over of the GIL, ctypes CDLL"
FASTEST = "the fastest other / PyO3"
FASTEST_OF_FOUR = "the fastest other of the talk's four / PyO3"
EQUALS = f"both detach: cffi API / {e.FLOOR}"
AS_RUN_LOCK = "as run: pthread_mutex_lock below take_gil and drop_gil"
# drop_gil is inlined there.
LOCK = r"pthread_mutex_lock", r"take_gil|drop_gil|_PyEval_ReleaseLock"
# The p below which the talk's method calls a winner.
P_SMALL = 0.01
# Symbols of our own bindings, beside those that the profile knows.
OURS = (("code of the binding", re.compile("boundary_")),)
# The groups of symbols that A10 speaks of.
HAND_OFF, LIBFFI = profile.HAND_OFF, "libffi"
CONVERSION = profile.CONVERSION
# What a call through ctypes adds beside these two, and so what may be next; the interpreter's loop and the function
# that is called are no part of it.
OTHERS = (CONVERSION, profile.CALLING, "locks of objects")
# The same by steps of the call, by the names of functions.
STEPS_LEFT = (
    (
        "types and conversion",
        re.compile(
            r"IsInstance|IsSubtype|GetTypeData|ModuleByDef|fielddesc|simple_instance|StgInfo|ConvParam|from_param|GetResult"
            r"|\b[a-z]+\d*_[sg]et\b|PyLong_(As|From)"
        ),
    ),
    ("_ctypes_callproc", re.compile("_ctypes_callproc")),
    ("PyCFuncPtr_call", re.compile("PyCFuncPtr_call")),
)
GROUPINGS = BY_FILE, BY_STEP, BY_FUNCTION = "by file", "by step", "by function"
# A11: the links of the two call paths, as (what it says, a function, what has to lie below it). A call tree holds what
# calls what, and not what comes first: of two that one function calls, the order is not seen.
INTERPRETER = "_PyEval_EvalFrameDefault"
PATHS = {
    "ctypes CDLL": (
        ("the interpreter gets to the type's call slot", INTERPRETER, "PyCFuncPtr_call"),
        ("the slot calls _ctypes_callproc", "PyCFuncPtr_call", "_ctypes_callproc"),
        ("which converts the arguments", "_ctypes_callproc", "ConvParam|from_param"),
        ("which detaches the thread state", "_ctypes_callproc", "PyEval_SaveThread|PyThreadState_Detach"),
        ("which goes through libffi", "_ctypes_callproc", "ffi_call"),
        ("which attaches the thread state", "_ctypes_callproc", "PyEval_RestoreThread|PyThreadState_Attach"),
    ),
    "PyO3": (
        ("the interpreter calls a trampoline (METH_FASTCALL)", INTERPRETER, "trampoline::fastcall"),
        ("the trampoline calls the function of the binding", "trampoline::fastcall", "boundary_pyo3"),
    ),
}
# The general entry of a call, which the talk's diagram puts into PyO3's path.
VECTORCALL = "PyObject_Vectorcall"
BY_VECTORCALL = f"PyO3: {VECTORCALL} in its call tree"
# What a call path must not hold.
DETOURS = {"PyO3": ("no libffi, and no call slot with a tuple", r"\bffi_|MakeTpCall|PyCFuncPtr_call")}
# What one call does, in order, as (what it says, the functions that do it): the picture of the two paths.
STEPS = {
    "ctypes CDLL": (
        ("pack the arguments\ninto a tuple", "_PyTuple_FromArray"),
        ("call from_param,\nconvert the argument", "PyObject_CallOneArg|ConvParam"),
        ("describe the call\nto libffi", "ffi_prep_cif"),
        ("detach the\nthread state", "PyEval_SaveThread"),
        ("libffi calls\nthe C function", r"ffi_call\b"),
        ("attach the\nthread state", "PyEval_RestoreThread"),
        ("make the result", "GetResult|PyLong_From"),
    ),
    "PyO3": (
        ("trampoline: mark as\nattached, catch panics", "trampoline::fastcall"),
        ("read the arguments\nfrom the array", "extract_arguments"),
        ("convert the argument", "FromPyObject|PyLong_As"),
        ("call the C function", "^add_one$"),
        ("make the result", "PyLong_From"),
    ),
}
# The three places of a ctypes call that prediction 3 asks for: their branches of the call tree do not overlap.
PLACES = {
    "converting": "PyObject_CallOneArg|ConvParam|GetResult",
    "the hand-over of the GIL": "PyEval_SaveThread|PyEval_RestoreThread",
    "libffi": r"ffi_call\b|ffi_prep_cif",
}
# The cases of the reader: signature, and the tools in question.
CASES = {
    "cpp": (e.METHOD, (*e.CPP, "PyO3")),
    "text": ("str in, ASCII", tuple(binding for binding in e.BINDINGS if binding not in (e.FLOOR, "C API, limited"))),
    "hot": (e.INT, e.BINDINGS),
    "no-compiler": (e.INT, tuple(b for b, one in e.DECLARED.items() if one.loads_at_run_time and b != "ctypes PyDLL")),
}
# Which of them a sentence names.
PLACE = {"cheapest": 0, "next": 1, "dearest": -1}
UNINITIALISED = "uninitialised memory"
FIRST_USE = ("import_ms", "resident_kib", "first_call_ns", "later_call_ns")


def present(record: Record, label: str, signature: str = e.INT) -> list[str]:
    """The bindings that were measured on this interpreter with this signature."""
    return [binding for binding in e.BINDINGS if record.has(label, name(binding, signature))]


def over_floor(record: Record, label: str, binding: str, signature: str) -> Interval:
    """Nanoseconds that a binding takes more than the C API for the same signature, paired by block."""
    return difference(record, (label, name(binding, signature)), (label, name(e.FLOOR, signature)))


def difference(record: Record, one: tuple[str, str], other: tuple[str, str]) -> Interval:
    """Nanoseconds that a cell takes more than another one, paired by block."""
    return statistics.over_units(record, medians(record.times(*one) - record.times(*other))).at()


def without_loop(record: Record, build: str, arm: str) -> np.ndarray:
    """Nanoseconds of an arm without the loop around it, by layout. build: an interpreter, or GIL_ON.

    The loop of one build takes longer than that of the other: wherever builds are compared, it is taken off. From the
    first conversion of a text the making of that text is taken off, and with it the loop.
    """
    suffix, label = (e.ON, FREE_THREADED) if build == e.GIL_ON else ("", build)
    less = e.TEXT_MADE + suffix if arm.endswith(e.TEXT) and record.has(label, e.TEXT_MADE + suffix) else EMPTY
    less = f"{EMPTY} (GIL on)" if less == EMPTY and suffix else less
    return medians(record.times(label, arm + suffix) - record.times(label, less))


def alone(record: Record, cell: tuple[str, str]) -> Interval:
    """Nanoseconds of a call, without the loop around it."""
    return statistics.over_units(record, without_loop(record, *cell)).at()


def between_builds(record: Record, arm: str, above: str, below: str) -> Location:
    """Time of an arm on one build over that on another, without the loop."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(without_loop(record, above, arm) / without_loop(record, below, arm))
    return statistics.over_units(record, logs, log=True)


def between(record: Record, above: tuple[str, str], below: tuple[str, str]) -> Interval:
    """Time of one cell over that of another, which have the arm in common, without the loop."""
    return between_builds(record, below[1], above[0], below[0]).at()


def net_ratio(record: Record, one: tuple[str, str], other: tuple[str, str]) -> Interval:
    """Time of a cell over that of another one, without the loop."""
    return statistics.compare(record, one, other).net_ratio


def times_floor(record: Record, label: str, binding: str, signature: str) -> float:
    """Median over restarts of the time of a binding over that of the C API, paired by block; NaN if no pair was
    kept."""
    cells = (label, name(binding, signature)), (label, name(e.FLOOR, signature))
    logs = statistics.log_ratios(record, *cells)
    return float(np.exp(np.nanmedian(logs))) if np.isfinite(logs).any() else np.nan


def matrix(record: Record) -> pd.DataFrame:
    """One row per interpreter, signature and binding: ns of a turn of the loop, ns over the floor (both with interval),
    ratio."""
    return pd.DataFrame(
        {
            "interpreter": label,
            "signature": signature,
            "binding": binding,
            "ns": statistics.per_call(record, (label, name(binding, signature))),
            "over": over_floor(record, label, binding, signature),
            "times": times_floor(record, label, binding, signature),
        }
        for label in record.interpreters
        for signature in e.SIGNATURES
        for binding in present(record, label, signature)
    )


def apart(record: Record) -> pd.DataFrame:
    """Every two bindings of one interpreter and signature: time of the first over that of the second, paired by block,
    with its interval, and which of the two took less."""
    rows = []
    for label, signature in itertools.product(record.interpreters, e.SIGNATURES):
        for one, other in itertools.combinations(present(record, label, signature), 2):
            cells = [(label, name(binding, signature)) for binding in (one, other)]
            rows.append([label, signature, one, other, *cheaper(statistics.ratio(record, *cells))])
    return pd.DataFrame(
        rows, columns=["CPython", "signature", "binding a", "binding b", "ratio", "low", "high", "answer"]
    )


def cheaper(ratio: Interval) -> tuple[float, float, float, str]:
    """A ratio of times with the answer to "which of the two?"; one without bounds answers nothing."""
    return ratio.value, ratio.low, ratio.high, {NO: "first", YES: "second", OPEN: "undecided"}[above(ratio, 1)]


def variants(record: Record) -> pd.DataFrame:
    """Other forms of a tool over the form that the matrix has, by interpreter and signature."""
    rows = []
    for label in record.interpreters:
        for form, binding in e.VARIANTS.items():
            for signature in e.SIGNATURES:
                cells = (label, name(form, signature)), (label, name(binding, signature))
                if all(record.has(*cell) for cell in cells):
                    found = statistics.ratio(record, *cells)
                    rows.append({"interpreter": label, "form": form, "signature": signature, **vars(found)})
    return pd.DataFrame(rows, columns=["interpreter", "form", "signature", "value", "low", "high"])


def widest(record: Record, label: str) -> tuple[str, str, Interval]:
    """The cheapest and the dearest binding for an int, and the time of the dearest over that of the cheapest, without
    the loop."""
    order = ranked(record, label)
    return order[0], order[-1], net_ratio(record, *[(label, name(binding, e.INT)) for binding in (order[-1], order[0])])


def dearest_cell(record: Record) -> tuple[float, str, str]:
    """With the GIL, the largest time over that of the C API, with its binding and its signature."""
    cells = itertools.product(e.BINDINGS, e.SIGNATURES)
    found = [(times_floor(record, GIL, *one), *one) for one in cells if record.has(GIL, name(*one))]
    return max(one for one in found if np.isfinite(one[0]))


def order_changes(record: Record, label: str) -> dict[str, int]:
    """By signature, how many pairs of bindings stand the other way round than for `int → int`, each told apart both
    times."""

    def sides(signature: str) -> dict[tuple[str, str], str]:
        here = present(record, label, signature)
        found = {}
        for one, other in itertools.combinations(here, 2):
            logs = statistics.log_ratios(record, *[(label, name(binding, signature)) for binding in (one, other)])
            found[one, other] = above(statistics.over_units(record, logs).at(), 0)
        return found

    plain = sides(e.INT)
    changes = {}
    for signature in e.SIGNATURES:
        if signature != e.INT:
            here = sides(signature)
            changes[signature] = sum({side, plain.get(pair)} == {YES, NO} for pair, side in here.items())
    return changes


def ranked(record: Record, label: str, signature: str = e.INT) -> list[str]:
    """Bindings from cheapest to dearest.

    By the paired ratio, not by the times: what slows a block slows both of a pair.
    """
    return sorted(present(record, label, signature), key=lambda binding: times_floor(record, label, binding, signature))


def cheapest(record: Record, case: str) -> list[str]:
    """The tools of a case with the GIL, from the cheapest to the dearest."""
    signature, among = CASES[case]
    return [binding for binding in ranked(record, GIL, signature) if binding in among]


def first_two(record: Record, case: str) -> Interval | None:
    """Time through the cheapest tool of a case over that through the next."""
    two = [(GIL, name(binding, CASES[case][0])) for binding in cheapest(record, case)[:2]]
    return statistics.ratio(record, *two) if len(two) == 2 else None


def placed(record: Record, case: str, place: int) -> Interval | None:
    """What a tool of a case takes, by its place among them."""
    tools = cheapest(record, case)[place:][:1]
    return statistics.per_call(record, (GIL, name(tools[0], CASES[case][0]))) if tools else None


def single_calls(runs: pd.DataFrame) -> pd.DataFrame:
    """What the talk prints of a process: the mean after Tukey's rule, by process (rows) and by build and binding
    (columns).

    The processes of a build are numbered as they ran, so that a row holds those that ran about the same time.
    """
    means = runs.assign(mean=[float(description.tukey(np.array(ns)).mean()) for ns in runs.ns])
    means["number"] = means.groupby("build").process.rank(method="dense").astype(int)
    return means.pivot(index="number", columns=["build", "binding"], values="mean")


def ratio_as_run(means: pd.DataFrame, above: tuple[str, str], below: tuple[str, str]) -> Estimate | str:
    """Ratio of two of its columns, process by process; or why there is none."""
    for cell in (above, below):
        if cell not in means:
            return f"{cell[1]} was not measured on {cell[0]}"
    both = means[[above, below]].dropna().to_numpy().T
    return processes.ratio(*both) or "no process brought both"


def misranked(runs: pd.DataFrame, decisive: Record) -> tuple[pd.DataFrame, int]:
    """Where the talk's method, in a process with the GIL, calls the wrong one of two bindings the faster one, with a p
    below
    P_SMALL: wrong is what the corrected experiment contradicts. Columns pair, process, called; and of how many
    processes, 0 if that experiment tells no two apart."""
    faster, couples = {}, list(itertools.combinations(e.TALK, 2))
    for one, other in couples:
        found = comparison(decisive, (GIL, one, e.ANSWER), (GIL, other, e.ANSWER))
        # Told apart by chance, any of them would be held against the method.
        ratio = None if isinstance(found, str) else found.at(1 - (1 - LEVEL) / len(couples))
        if ratio and (dearer := above(ratio, 1)) != OPEN:
            faster[f"{one} vs {other}"] = one if dearer == NO else other
    rows, wanted = [], runs[(runs.build == GIL) & runs.binding.isin(e.TALK)]
    for process, part in wanted.groupby("process"):
        by_binding = dict(zip(part.binding, part.ns))
        samples = {binding: np.array(by_binding[binding]) for binding in e.TALK if binding in by_binding}
        for row in description.pairs(samples).to_dict("records"):
            called, right = row["faster"], faster.get(row["pair"])
            if right and row["BH p"] < P_SMALL and called not in (right, "neither"):
                rows.append([row["pair"], process, called])
    return pd.DataFrame(rows, columns=["pair", "process", "called"]), wanted.process.nunique() if faster else 0


def elsewhere(runs: pd.DataFrame) -> dict[str, str]:
    """What became of each binding in an interpreter of its own: what it says, or how its process ended."""
    said = {
        row.binding: row.ended if row.ended != "ok" else "works" if pd.isna(row.said) else row.said
        for row in runs.itertuples()
    }
    return {binding: said[binding] for binding in e.BINDINGS if binding in said}


def contracts(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per call, one column per binding: the value, the exception, or how the process ended."""
    runs = runs.reindex(columns=["binding", "expression", "value", "error", "ended"])
    # ctypes stores no result if a callback raises, so C returns what stood in that memory
    # (Modules/_ctypes/callbacks.c).
    chance = runs.expression.eq(e.CONTRACTS[-1]) & runs.binding.str.startswith("ctypes") & runs.value.notna()
    runs = runs.assign(value=runs.value.mask(chance, UNINITIALISED))
    answers = runs.assign(answer=runs.value.combine_first(runs.error).combine_first(runs.ended))
    table = answers.pivot(index="expression", columns="binding", values="answer")
    calls = [*e.CONTRACTS, *(call for call in e.NONE_AS_A_POINTER if call in table.index)]
    table = table.reindex(index=calls, columns=[binding for binding in e.BINDINGS if binding in table])
    return table.rename_axis(index="call", columns=None).reset_index()


def answers(rules: pd.DataFrame, call: str) -> pd.Series:
    """What the bindings that were asked make of one of these calls, by binding."""
    here = rules[rules.call == call]
    return here.iloc[0].drop("call").dropna() if len(here) else pd.Series(dtype=object)


def is_error(answer) -> bool:
    """Was the call refused with an exception?"""
    return str(answer).endswith(("Error", "Exception"))


def nodes(lines: list[dict]) -> list[Node]:
    """A call tree as it was recorded."""
    return [Node(**line) for line in lines]


def below(tree: list[Node], pattern: str) -> float:
    """Share of a call's instructions below the functions whose name has `pattern` in it; the outermost counts."""
    total, inside = 0.0, None
    for node in tree:
        if inside is not None and node.depth > inside:
            continue
        inside = None
        if re.search(pattern, node.function):
            total, inside = total + node.share, node.depth
    return total


def leads(tree: list[Node], outer: str, inner: str) -> bool:
    """Is there a function with `inner` in its name anywhere below one with `outer`?"""
    above: list[str] = []
    for node in tree:
        del above[node.depth :]
        if re.search(inner, node.function) and any(re.search(outer, function) for function in above):
            return True
        above.append(node.function)
    return False


def links(tree: list[Node], binding: str) -> pd.DataFrame:
    """A11: the links of a binding's call path as columns link, met, and share (of the instructions, below what the link
    leads to)."""
    rows = [
        {"link": what, "met": leads(tree, outer, inner), "share": below(tree, inner)}
        for what, outer, inner in PATHS[binding]
    ]
    if binding in DETOURS:
        what, pattern = DETOURS[binding]
        rows.append({"link": what, "met": not leads(tree, "", pattern), "share": below(tree, pattern)})
    return pd.DataFrame(rows)


def groups(profiles: dict | str, label: str, binding: str) -> list[dict[str, int]]:
    """Samples by group of symbols, one entry for each process; empty if nothing was profiled."""
    found = [] if isinstance(profiles, str) else profiles[label].get(binding, [])
    return [profile.grouped(one, OURS) for one in found]


def no_time(profiles: dict | str, label: str, binding: str) -> str | None:
    """Why these profiles say nothing about time; None if they do."""
    if isinstance(profiles, str):
        return profiles
    found = profiles[label].get(binding)
    if not found:
        return f"{binding} was not profiled"
    if not found[0]["how"].startswith("perf"):
        return "perf may not sample here: instructions were counted instead, and the claim is about time"
    return None


def shares(found: list[dict[str, int]], part: str) -> np.ndarray:
    """Share of one group of symbols among all of them, one value for each process."""
    return np.array([one[part] / total for one in found if (total := sum(one.values()))])


def contest(profiles: dict | str, label: str, binding: str) -> dict[str, tuple[str, Estimate]]:
    """A10: by grouping, the largest of what PyDLL leaves beside libffi, over all processes, and libffi's share of the
    two."""
    looks = [] if isinstance(profiles, str) else profiles[label].get(binding, [])
    counted = {BY_FILE: [], BY_STEP: [], BY_FUNCTION: []}
    for look, files in zip(looks, groups(profiles, label, binding)):
        counted[BY_FILE].append(Counter({group: files[group] for group in (LIBFFI, *OTHERS)}))
        steps, functions = Counter({LIBFFI: files[LIBFFI]}), Counter({LIBFFI: files[LIBFFI]})
        for symbol, _, cost in look["costs"]:
            if step := next((what for what, pattern in STEPS_LEFT if pattern.search(symbol)), None):
                steps[step] += cost
                functions[re.split(r"@|\.cold", symbol.removeprefix("[.] "))[0]] += cost
        counted[BY_STEP].append(steps)
        counted[BY_FUNCTION].append(functions)
    found = {}
    for grouping, each in counted.items():
        both = sum(each, Counter())
        if other := max((what for what in both if what != LIBFFI), key=both.get, default=None):
            among = [one[LIBFFI] / total for one in each if (total := one[LIBFFI] + one[other])]
            found[grouping] = other, share(np.array(among))
    return found


def next_bottleneck(profiles: dict | str) -> Estimate | str:
    """A10: libffi's share by step. Where two groupings say the contrary of each other, the grouping is what varies:
    then it is the mean over groupings, and its interval is as wide as they make it."""
    if reason := no_time(profiles, *WITHOUT_HAND_OVER):
        return reason
    found = {grouping: one for grouping, (_, one) in contest(profiles, *WITHOUT_HAND_OVER).items()}
    if {YES, NO} <= {above(one.interval, 0.5) for one in found.values()}:
        among = Location.of(np.array([one.centre for one in found.values()]))
        # No number of runs makes the groupings agree.
        return replace(among, floor=among.error, stays=among.error)
    return found.get(BY_STEP, "nothing of ctypes was seen")


def share(values: np.ndarray) -> Estimate:
    """Shares of processes as a measurement."""
    return Location.of(values)


def symbol(profiles: dict | str, binding: str, ran: str, above: str = "") -> np.ndarray:
    """Share of the samples of the talk's loop in functions that match `ran`, below ones that match `above`; one value
    for each process."""
    looks = [] if isinstance(profiles, str) else profiles.get(binding, [])
    found = []
    for look in looks:
        total = sum(n for _, n in look["stacks"])
        inside = sum(
            n
            for (first, *outer), n in look["stacks"]
            if re.search(ran, first) and (not above or any(re.search(above, one) for one in outer))
        )
        found.append(inside / total if total else np.nan)
    return np.array(found)


def without_gil(record: Record) -> pd.DataFrame:
    """Time without the GIL over time with it, by binding and signature, without the loop."""
    rows = []
    for signature, binding in itertools.product(e.SIGNATURES, e.BINDINGS):
        arm = name(binding, signature)
        if record.has(GIL, arm) and record.has(FREE_THREADED, arm):
            interval = between_builds(record, arm, FREE_THREADED, GIL).at()
            rows.append({"signature": signature, "binding": binding, **vars(interval)})
    return pd.DataFrame(rows, columns=["signature", "binding", "value", "low", "high"])


def text_surcharge(record: Record, signature: str, build: str = FREE_THREADED) -> Estimate | str:
    """A7: the surcharge of another build on a text over its surcharge on an int, through the C API; or why it was not
    measured."""
    arms = [name(e.FLOOR, one) for one in (signature, e.INT)]
    label, suffix = (FREE_THREADED, e.ON) if build == e.GIL_ON else (build, "")
    for cell in [(label, arm + suffix) for arm in arms] + [(GIL, arm) for arm in arms]:
        if not record.has(*cell):
            return record.missing.get(cell, f"{cell[1]} was not measured on {cell[0]}")
    with np.errstate(invalid="ignore", divide="ignore"):
        text, integer = (np.log(without_loop(record, build, arm) / without_loop(record, GIL, arm)) for arm in arms)
    return statistics.over_units(record, text - integer, log=True)


def parts(record: Record) -> dict[str, np.ndarray] | str:
    """What a call through ctypes with the GIL is made of, in ns by layout: `argument`, what one int adds; `hand-over`,
    what CDLL takes more than PyDLL; `hand-over, int`, the same for a call with an int. Or why it was not measured."""
    cells = [(GIL, name(binding, one)) for binding in ("ctypes CDLL", "ctypes PyDLL") for one in (e.ANSWER, e.INT)]
    if absent := [cell for cell in cells if not record.has(*cell)]:
        return record.missing.get(absent[0], f"{absent[0][1]} was not measured")
    none, one, held, held_one = (record.times(*cell) for cell in cells)
    differences = {"argument": one - none, "hand-over": none - held, "hand-over, int": one - held_one}
    return {what: medians(ns) for what, ns in differences.items()}


def part(record: Record, what: str) -> Interval | str:
    """One of these parts, in ns."""
    found = parts(record)
    return found if isinstance(found, str) else statistics.over_units(record, found[what]).at()


def argument_over_hand_over(record: Record) -> Estimate | str:
    """A10: what an int argument adds to a ctypes call over what the hand-over of the GIL takes in it."""
    found = parts(record)
    if isinstance(found, str):
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(found["argument"] / found["hand-over, int"])
    return statistics.over_units(record, logs, log=True)


def prices(record: Record) -> pd.DataFrame:
    """What a call through each binding takes more than one in C, without the loop: a row for each length, with ns, the
    growth of the price since the shortest length (`more`), the share of the call, and the fixed price's share there.

    The fixed price is the one of the shortest length.
    """
    # Each difference of prices is one of so many that are looked at: its interval is as much wider.
    rows, compared = [], len(e.WORKED) * (len(e.WORK) - 1)
    for binding in e.WORKED:
        first = None
        for n in e.WORK:
            cells = [(GIL, f"{binding}: work {n}"), (GIL, f"C: work {n}")]
            if not all(record.has(*cell) for cell in cells):
                continue
            alone, through = record.times(*cells[1]), record.times(*cells[0]) - record.times(GIL, EMPTY)
            price = medians(through - alone)
            first = price if first is None else first
            work_ns = float(np.nanmedian(alone))
            found = statistics.over_units(record, price)
            rows.append(
                {
                    "binding": binding,
                    "work_ns": work_ns,
                    "price": found.at(),
                    "more": statistics.over_units(record, price - first).at(1 - (1 - LEVEL) / compared),
                    "n": found.n,
                }
            )
    return pd.DataFrame(rows, columns=["binding", "work_ns", "price", "more", "n"])


def changes(found: pd.DataFrame) -> dict[str, list[Interval]]:
    """By binding the differences of its prices from that of the shortest work."""
    return {
        binding: list(part.more.iloc[1:]) for binding, part in found.groupby("binding", sort=False) if len(part) > 1
    }


def threshold(found: pd.DataFrame, binding: str) -> Interval | None:
    """From which time (ns) of the C function on the price is less than TARGET_SHARE of a call, at every longer one
    measured.

    Between the measured lengths the price is drawn as the figure draws it: straight, on a log axis. The bounds are
    where the curves through the ends of the intervals cross. A bound or value that lies beyond the longest length is
    infinite; one below the shortest is that length. None if the binding was not measured.
    """
    part = found[found.binding == binding]
    if part.empty:
        return None
    work = np.geomspace(part.work_ns.iloc[0], part.work_ns.iloc[-1], 4_000)
    limit = work * TARGET_SHARE / (1 - TARGET_SHARE)

    def crossing(prices: list[float]) -> float:
        above = np.interp(np.log(work), np.log(part.work_ns), prices) >= limit
        if not above.any():
            return float(work[0])
        last = int(np.nonzero(above)[0][-1])
        return np.inf if last == len(work) - 1 else float(work[last + 1])

    return Interval(*[crossing([getattr(one, end) for one in part.price]) for end in ("value", "low", "high")])


def steps(tree: list[Node], binding: str) -> list[tuple[str, float]]:
    """The steps of a call in order, each with its instructions in the call tree; NaN if the tree does not show it."""
    total = tree[0].instructions
    shares = [(what, below(tree, pattern)) for what, pattern in STEPS[binding]]
    return [(what, total * share if share else np.nan) for what, share in shares]


def linking_effect(runs: pd.DataFrame) -> Interval:
    """Median over bindings, by round, of the first call where symbols are resolved lazily over that under the
    default."""
    part = runs[runs.binding.isin(e.RELINKED)].dropna(subset=list(FIRST_USE))
    table = part.pivot(index=["round", "binding"], columns="linking", values="first_call_ns").dropna()
    logs = np.log(table["lazy"] / table["default"]).groupby("round").median()
    return Location.of(logs.to_numpy(), log=True).interval


def first_use(runs: pd.DataFrame, binding: str, key: str) -> Interval | None:
    """What the first use of a binding costs, linked as it is by default; None if it was not measured."""
    found = runs[(runs.binding == binding) & (runs.linking == "default")][key].dropna()
    return Location.of(found.to_numpy(float)).interval if len(found) else None


def import_ratio(runs: pd.DataFrame, above: str, below: str) -> Interval | None:
    """The import of one binding over that of another, by round, linked as they are by default; None without both."""
    part = runs[runs.binding.isin((above, below)) & (runs.linking == "default")].dropna(subset=["import_ms"])
    table = part.pivot(index="round", columns="binding", values="import_ms").reindex(columns=[above, below]).dropna()
    return Location.of(np.log(table[above] / table[below]).to_numpy(), log=True).interval if len(table) else None


def pairs() -> dict[str, dict[str, tuple[tuple[str, str, str], tuple[str, str, str]]]]:
    """What decides the claims about times: by claim and name of the ratio, the cells (interpreter, binding, signature)
    above and below the line."""
    found = {claim: {} for claim in ("A1", "A2", "A3", "A4", "A23")}
    for a, b in itertools.pairwise(e.TALK):
        found["A1"][f"{a} / {b}"] = (GIL, a, e.ANSWER), (GIL, b, e.ANSWER)
        found["A2"][f"{a} / {b} on {FREE_THREADED}"] = (FREE_THREADED, a, e.ANSWER), (FREE_THREADED, b, e.ANSWER)
    for build, a in itertools.product((FREE_THREADED, e.GIL_ON), e.TALK):
        found["A2"][f"{a}: {build} / {GIL}"] = (build, a, e.ANSWER), (GIL, a, e.ANSWER)
    a, b = WITH_PYDLL[:2]
    for build in (FREE_THREADED, e.GIL_ON):
        found["A3"][f"{a} / {b} on {build}"] = (build, a, e.ANSWER), (build, b, e.ANSWER)
        found["A3"][f"{e.TALK[0]} / {b} on {build}"] = (build, e.TALK[0], e.ANSWER), (build, b, e.ANSWER)
    for a, b in itertools.pairwise(WITH_PYDLL):
        found["A4"][f"{a} / {b}"] = (GIL, a, e.ANSWER), (GIL, b, e.ANSWER)
    for a in (*e.CPP, *e.WITH_THE_GIL[e.METHOD]):
        found["A23"][f"a method: {a} / PyO3"] = (GIL, a, e.METHOD), (GIL, "PyO3", e.METHOD)
    for a in ("pybind11", "nanobind"):
        found["A23"][f"an error: {a} / PyO3"] = (GIL, a, e.ERROR), (GIL, "PyO3", e.ERROR)
    found["A1"][EQUALS] = (GIL, "cffi API", e.DETACHED), (GIL, e.FLOOR, e.DETACHED)
    return found


def as_run() -> dict[str, tuple[tuple[str, str], tuple[str, str]]]:
    """The published sizes, which the talk's own program is asked for: by name the cells (build, binding)."""
    (dear, cffi, pybind11, pyo3), held = e.TALK, "ctypes PyDLL"
    found = [
        *(((GIL, a), (GIL, b)) for a, b in itertools.pairwise(e.TALK)),
        *(((FREE_THREADED, a), (FREE_THREADED, b)) for a, b in itertools.pairwise((cffi, pybind11, pyo3))),
        *(((FREE_THREADED, a), (GIL, a)) for a in (dear, cffi, pybind11, pyo3)),
        ((FREE_THREADED, cffi), (FREE_THREADED, held)),
    ]
    return {f"as run: {a[1]} on {a[0]} / {b[1]} on {b[0]}": (a, b) for a, b in found}


def deciding() -> list[tuple[str, str, str, Callable[[Record], Estimate | str]]]:
    """The ratios that decide: the claim that asks, the name, the kind of call, and how it is made from the plan of the
    claims."""
    found = [
        (claim, name, cells[0][2], partial(comparison, slow=cells[0], fast=cells[1]))
        for claim, named in pairs().items()
        for name, cells in named.items()
    ]
    for text, build in [*((text, FREE_THREADED) for text in e.TAXED), (e.TEXT, e.GIL_ON)]:
        name = f"{text}, over int: {build} / {GIL}"
        found.append(("A7", name, text, partial(text_surcharge, signature=text, build=build)))
    found.append(("A10", ARGUMENT, e.INT, argument_over_hand_over))
    for name, others in (
        (FASTEST_OF_FOUR, ("pybind11", *e.WITH_THE_GIL[e.METHOD])),
        (FASTEST, (*e.CPP, *e.WITH_THE_GIL[e.METHOD])),
    ):
        found.append(("A23", name, e.METHOD, partial(fastest_other, others=others)))
    return found


def fastest_other(record: Record, others: tuple[str, ...]) -> Estimate | str:
    """A23: the ratio to PyO3 of the fastest of the other ways to a C++ method; or why there is none.

    A superlative needs no more than one that beats it, and no less than all that do not.
    """
    found = [comparison(record, (GIL, one, e.METHOD), (GIL, "PyO3", e.METHOD)) for one in others]
    measured = [one for one in found if not isinstance(one, str)]
    return min(measured, key=lambda one: one.centre, default=found[0])


def comparison(record: Record, slow: tuple[str, str, str], fast: tuple[str, str, str]) -> Estimate | str:
    """Ratio of two cells (build, binding, signature), without the loop if they are of two builds; or the reason why one
    of them could not be measured."""
    cells = [
        (FREE_THREADED, name(binding, one) + e.ON) if build == e.GIL_ON else (build, name(binding, one))
        for build, binding, one in (slow, fast)
    ]
    for cell in cells:
        if not record.has(*cell):
            return record.missing.get(cell, f"{cell[1]} was not measured on {cell[0]}")
    if slow[0] != fast[0]:
        return between_builds(record, name(*slow[1:]), slow[0], fast[0])
    return statistics.ratio_over_units(record, *cells)
