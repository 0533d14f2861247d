"""What the chapter "Arenas" hands in to the ledger, from its records alone. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import chosen, difference, measured, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas import results
from notebooks.arenas.experiment import HUGE, MEET, PREFERRED

NO_HUGE_PAGES = "this system gave no huge pages to a program that asked for them"
HELD_BACK = {"mmap_threshold=131072": "large, pinned", "trim_threshold=1073741824": "small"}


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the talk's condition twice. An alarm withholds what rests on this experiment."""
    return [
        Control(
            "A/A of the talk's experiment",
            f"{column} in MiB, the same − the same, on {label}",
            "the talk's experiment",
            found.estimate,
            truth=0.0,
        )
        for (label, column), found in results.twins(results.talk(session.frame("the talk's experiment"))).items()
    ]


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def put(claim: str, name: str, make: Callable, *arguments) -> None:
        handed.put(claim, name, partial(make, session, *arguments))

    for name, column in (("RSS grown", "rss"), ("held by glibc", "held")):
        put("A19", f"{name}, huge pages for all: {FREE_THREADED} − {GIL}", more_with_huge_pages, column)
    put("A19", f"RSS grown by the native threads, as the talk ran it: {FREE_THREADED} − {GIL}", more_by_native_threads)
    for name, column in (("held by glibc", "held"), ("native threads at once", "at_once")):
        put("A19", f"{name}, touched blocks, 8 × 50: {FREE_THREADED} / {GIL}", times_of_touched, column)
    for name, fewer in (("24 × 200", None), ("24 × 200 minus 2 × 200", 2)):
        put("A20", f"RSS grown by the native threads at {name}: {FREE_THREADED}", in_the_grid, fewer)
    for name, allocator in PREFERRED.items():
        put("A21", f"{name}: {allocator} / glibc", over_glibc, name, allocator)
    for setting, case in HELD_BACK.items():
        put("A22", f"MiB held, {case}: {setting} minus nothing", held_back, setting, case)
    return handed


def looked_at(session: Session) -> dict:
    """What the chapter found here: see experiment.this_system."""
    return session.observed("this system", session.interpreters)


def not_built(session: Session, *labels: str) -> str | None:
    """Why the extension in Rust is absent on one of these interpreters; None if it is there on all."""
    absent = looked_at(session)["absent extension"]
    return next((absent[label] for label in labels if label in absent), None)


def of_pair(runs: pd.DataFrame, column: str, condition: str) -> tuple[np.ndarray, np.ndarray]:
    """A column under one condition: free-threaded build, build with the GIL."""
    free_threaded, gil = (
        chosen(runs, interpreter=label, condition=condition)[column].to_numpy() for label in (FREE_THREADED, GIL)
    )
    return free_threaded, gil


def more_with_huge_pages(session: Session, column: str) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    found = difference(*of_pair(runs, column, HUGE), "MiB") if results.huge_pages(runs) else NO_HUGE_PAGES
    return not_built(session, GIL, FREE_THREADED) or found


def more_by_native_threads(session: Session) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    grown = [results.grown_by_native_threads(runs, label) for label in (FREE_THREADED, GIL)]
    return difference(*grown, "MiB") or not_built(session, GIL, FREE_THREADED)


def times_of_touched(session: Session, column: str) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    return ratio(*of_pair(runs, column, MEET)) or not_built(session, GIL, FREE_THREADED)


def in_the_grid(session: Session, fewer: int | None) -> Measurement | str | None:
    """MiB by 200 native threads a call at 24 Python threads; less that with fewer Python threads, if so many are given."""
    cells = results.grid(session.frame("Python × native threads"))
    most = results.native_part(cells, FREE_THREADED, 24, 200)
    if fewer is None:
        found = measured(most, "MiB")
    else:
        found = difference(most, results.native_part(cells, FREE_THREADED, fewer, 200), "MiB")
    return found or not_built(session, FREE_THREADED)


def over_glibc(session: Session, scenario: str, allocator: str) -> Measurement | str | None:
    runs = results.scenarios(session.frame("scenarios"))
    ours, glibc = (chosen(runs, scenario=scenario, allocator=which) for which in (allocator, "glibc"))
    return ratio(ours.value, glibc.value) or looked_at(session)["absent allocators"].get(allocator)


def held_back(session: Session, setting: str, case: str) -> Measurement | None:
    runs = session.frame("thresholds")
    with_, without = (chosen(runs, setting=which, case=case) for which in (setting, "nothing"))
    return difference(with_.held.to_numpy(), without.held.to_numpy(), "MiB")
