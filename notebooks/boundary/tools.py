"""What the tools let through, keep, and cost at their first use."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Counted, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from notebooks.boundary import experiment as e

number = Declarations()
UNINITIALISED = "uninitialised memory"
FIRST_USE = ("import_ms", "resident_kib", "first_call_ns", "later_call_ns")
FIRST_RULE = e.CONTRACTS[0]
# All ways together, and each of them.
WAYS = {"any way": e.BINDINGS, **{binding: (binding,) for binding in e.BINDINGS}}


# ---- awkward arguments ----


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


def is_error(answer) -> bool:
    """Was the call refused with an exception?"""
    return str(answer).endswith(("Error", "Exception"))


@number(f"{{ways}} answers {FIRST_RULE}", frame="awkward arguments", over={"ways": WAYS})
def answered(runs: pd.DataFrame, ways: tuple[str, ...]) -> Share | None:
    """How many bindings answer a number that does not fit instead of raising; None if none was asked."""
    answers = contracts(runs).set_index("call").loc[FIRST_RULE].dropna()
    return Share.of(not is_error(answers[binding]) for binding in ways if binding in answers)


# ---- one object, and another interpreter ----


@number(
    "processes with additions {what}, {method}: {ways}",
    frame="one object, two threads",
    over={"what": ("lost", "refused"), "method": e.METHODS, "ways": WAYS},
)
def hit(runs: pd.DataFrame, what: str, method: str, ways: tuple[str, ...]) -> Share | None:
    """In how many processes additions to one object were lost, or refused; None if nothing was measured."""
    return Share.of(runs[what][(runs.method == method) & runs.binding.isin(ways)] > 0)


def elsewhere(runs: pd.DataFrame) -> dict[str, str]:
    """What became of each binding in an interpreter of its own: what it says, or how its process ended."""
    said = {
        row.binding: row.ended if row.ended != "ok" else "works" if pd.isna(row.said) else row.said
        for row in runs.itertuples()
    }
    return {binding: said[binding] for binding in e.BINDINGS if binding in said}


@number(
    "second interpreter works (1), is refused (0), or ends (-1): {binding}",
    frame="another interpreter",
    over={"binding": e.BINDINGS},
)
def works_elsewhere(runs: pd.DataFrame, binding: str) -> Counted | None:
    """1 if a binding works in a second interpreter, 0 if it is refused, -1 if the process ended; None if it was not
    tried."""
    said = elsewhere(runs).get(binding)
    return said and Counted(1 if said == "works" else 0 if is_error(said.partition(":")[0]) else -1)


# ---- the first use ----


def first_use(runs: pd.DataFrame, binding: str, key: str) -> Interval | None:
    """What the first use of a binding costs, linked as it is by default; None if it was not measured."""
    values = runs[(runs.binding == binding) & (runs.linking == "default")][key].dropna()
    return Location.of(values.to_numpy(float), signed=False).interval if len(values) else None


@number("first_call_ns: lazy / default", frame="import and first call")
def linking_effect(runs: pd.DataFrame) -> Interval:
    """Median over bindings, by round, of the first call where symbols are resolved lazily over that under the
    default."""
    part = runs[runs.binding.isin(e.RELINKED)].dropna(subset=list(FIRST_USE))
    table = part.pivot(index=["round", "binding"], columns="linking", values="first_call_ns").dropna()
    logs = np.log(table["lazy"] / table["default"]).groupby("round").median()
    return Location.of(logs.to_numpy(), log=True).interval


@number("import of cffi's ABI mode: in line / out of line", frame="import and first call")
def import_ratio(runs: pd.DataFrame) -> Interval | None:
    """Import of cffi's ABI mode in line over that out of line, by round, linked by default; None without both."""
    forms = [e.VARIANTS[e.OUT_OF_LINE], e.OUT_OF_LINE]
    part = runs[runs.binding.isin(forms) & (runs.linking == "default")].dropna(subset=["import_ms"])
    table = part.pivot(index="round", columns="binding", values="import_ms").reindex(columns=forms).dropna()
    logs = np.log(table[forms[0]] / table[forms[1]])
    return Location.of(logs.to_numpy(), log=True).interval if len(table) else None
