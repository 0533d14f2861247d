"""The figures and tables of the chapter "Calls from outside"."""

import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside.crossings import ACTIONS, ENDS, NOT_HERE, ended, is_at_home

# ---- states ----

# ---- who waits for whom ----

# ---- what may cross ----

COLUMNS = {GIL: "with the GIL", FREE_THREADED: "without"}


def outcomes_table(children: pd.DataFrame, first: str) -> pd.DataFrame:
    """How the children of each scene ended, on both builds."""
    return pd.DataFrame(
        {first: what, **{title: ended(chosen(rows, interpreter=label)) for label, title in COLUMNS.items()}}
        for what, rows in children.groupby("what", sort=False)
    )


def callbacks_table(children: pd.DataFrame) -> pd.DataFrame:
    """The same, with what becomes of the exception, and of C's result where there is one."""

    def left(rows: pd.DataFrame) -> str:
        rows = rows[rows.outcome == ENDS]
        if rows.empty:
            return ""
        answers = {"0": "0", "7": "7"} | dict.fromkeys(set(rows.answer) - {"0", "7"}, "another number")
        got = " or ".join(sorted({answers[answer] for answer in rows.answer}))
        said = "printed" if rows.printed.all() else "not printed"
        has_result = str(rows.what.iloc[0]).startswith(("ctypes", "cffi"))
        return f"{said}; C gets {got}" if has_result else said

    table = outcomes_table(children, "tool")
    return table.assign(exception=[left(chosen(children, what=tool)) for tool in table.tool])


def elsewhere_table(children: pd.DataFrame) -> pd.DataFrame:
    """The same, with where the thread attached; a tool that does not import says so."""

    def where(rows: pd.DataFrame) -> str:
        if len(rows) and rows.refused.astype(bool).all():
            return "does not import"
        well = rows[rows.outcome == ENDS]
        home = ("its caller's" if is_at_home(well).all() else "the main one") if len(well) else ""
        return ended(rows) + (f": {home}" if home else "")

    return pd.DataFrame(
        {"way in": what, **{title: where(chosen(rows, interpreter=label)) for label, title in COLUMNS.items()}}
        for what, rows in children.groupby("what", sort=False)
    )


def may_i_table(session: Session) -> pd.DataFrame:
    """Every action of the three pages: how its children ended, and what to do instead where they did not all end well."""
    rows = []
    for action, title, which, instead in ACTIONS:
        frame = session.frame(title, disturbed=True)
        found = {
            name: ended(chosen(frame, interpreter=label, **which)) if len(frame) else NOT_HERE
            for label, name in COLUMNS.items()
        }
        rows.append({"may I …": action, **found, "instead": instead})
    return pd.DataFrame(rows)
