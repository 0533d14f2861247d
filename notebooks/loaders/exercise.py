"""The exercise of the chapter "CDLL and PyDLL": its self-check, from the page's own measurements."""

import pandas as pd

from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.provision.catalogue import GIL
from notebooks.loaders import results
from notebooks.loaders.experiment import LOADERS

FUNCTIONS = ("noop", "sleep_ms", "PyList_New")


def check_choice(choice: dict[str, str], record: Record, shares: pd.DataFrame, ends: pd.DataFrame) -> list[str]:
    """With the GIL: correct first, then fast.

    choice: loader for `noop`, `sleep_ms` and `PyList_New`. Returns what to say, one line each.
    """
    if open_ := [name for name in FUNCTIONS if choice.get(name) not in LOADERS]:
        return [f"Still open: {', '.join(open_)}. Choose 'CDLL' or 'PyDLL' for each."]
    wrong = []
    api = choice["PyList_New"]
    crashes = results.of(ends, GIL, api).crashes.at()
    if crashes.value > 0:
        wrong.append(f"Not correct: {crashes.value:.0%} of the processes that called PyList_New through {api} crashed.")
    sleeper = choice["sleep_ms"]
    kept = results.of(shares, GIL, sleeper).value
    if kept < 0.5:
        wrong.append(
            f"Not good enough: while sleep_ms ran through {sleeper}, another thread kept {kept:.1%} of its speed."
        )
    if wrong:
        return wrong
    cost = {loader: statistics.per_call(record, (GIL, f"{loader} noop")).value for loader in LOADERS}
    extra = cost[choice["noop"]] - min(cost.values())
    if extra > 0:
        return ["Correct.", f"Not yet fast: each call of noop costs {extra:.0f} ns more than it needs to."]
    return ["Correct.", "Fast: noop goes through the cheaper loader."]
