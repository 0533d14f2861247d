"""The figures and tables of the chapter "Calls from outside"."""

import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.setup.catalogue import FREE_THREADED, GIL

# ---- states ----

# ---- who waits for whom ----

# The columns of the chapter pair, which are in sight; others are in the whole table.
COLUMNS = (f"CPython {GIL}", f"CPython {FREE_THREADED}")


def endings_table(runs: pd.DataFrame, factors: dict[str, str], ms: bool = False) -> pd.DataFrame:
    """How the children of each case ended, by interpreter. factors: columns of `runs`, with their headings. ms: with their median."""
    rows = []
    # Later interpreters may have more cases.
    for which in runs.sort_values("interpreter", kind="stable")[list(factors)].drop_duplicates().to_dict("records"):
        row = {heading: which[name] for name, heading in factors.items()}
        for label in sorted(runs.interpreter.unique()):
            row[f"CPython {label}"] = endings(chosen(runs, interpreter=label, **which), ms)
        rows.append(row)
    return pd.DataFrame(rows)


def endings(children: pd.DataFrame, ms: bool) -> str:
    """How many ended how, and what became of a thread of theirs."""
    if children.empty:
        return "–"
    fates = children.get("fate", pd.Series(index=children.index, dtype=object))
    ended = [outcome if pd.isna(fate) else f"thread {fate}" for outcome, fate in zip(children.outcome, fates, strict=True)]
    words = ", ".join(f"{one}: {ended.count(one)} of {len(ended)}" for one in sorted(set(ended)))
    return f"{words}; {children.ms.median():.2g} ms" if ms else words

# ---- what may cross ----
