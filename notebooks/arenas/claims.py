"""What the chapter "Arenas" hands in to the ledger, from its records alone. The rules: claims.toml."""

import numpy as np

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
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
    here = session.observed("this system", session.interpreters)
    runs = results.talk(session.frame("the talk's experiment"))
    cells = results.grid(session.frame("Python × native threads"))
    scenarios, thresholds = results.scenarios(session.frame("scenarios")), session.frame("thresholds")

    def not_built(*labels: str) -> str | None:
        return next((here["absent extension"][label] for label in labels if label in here["absent extension"]), None)

    def of_pair(column: str, condition: str) -> tuple[np.ndarray, np.ndarray]:
        """A column under one condition: free-threaded build, build with the GIL."""
        free_threaded, gil = (
            chosen(runs, interpreter=label, condition=condition)[column].to_numpy() for label in (FREE_THREADED, GIL)
        )
        return free_threaded, gil

    no_rust = not_built(GIL, FREE_THREADED)
    for name, column in (("RSS grown", "rss"), ("held by glibc", "held")):
        found = difference(*of_pair(column, HUGE), "MiB") if results.huge_pages(runs) else NO_HUGE_PAGES
        handed.put("A19", f"{name}, huge pages for all: {FREE_THREADED} − {GIL}", no_rust or found)
    grown = [results.grown_by_native_threads(runs, label) for label in (FREE_THREADED, GIL)]
    handed.put(
        "A19",
        f"RSS grown by the native threads, as the talk ran it: {FREE_THREADED} − {GIL}",
        difference(*grown, "MiB") or no_rust,
    )
    for name, column in (("held by glibc", "held"), ("native threads at once", "at_once")):
        found = ratio(*of_pair(column, MEET)) or no_rust
        handed.put("A19", f"{name}, touched blocks, 8 × 50: {FREE_THREADED} / {GIL}", found)

    most, few = (results.native_part(cells, FREE_THREADED, 24, native) for native in (200, 10))
    fewer_callers = results.native_part(cells, FREE_THREADED, 2, 200)
    for name, found in (
        ("24 × 200", measured(most, "MiB")),
        ("24 × 200 minus 2 × 200", difference(most, fewer_callers, "MiB")),
        ("24 × 10", measured(few, "MiB")),
    ):
        no_extension = not_built(FREE_THREADED)
        handed.put("A20", f"RSS grown by the native threads at {name}: {FREE_THREADED}", found or no_extension)

    for name, allocator in PREFERRED.items():
        found = ratio(
            *(chosen(scenarios, scenario=name, allocator=which)["value"].to_numpy() for which in (allocator, "glibc"))
        )
        handed.put("A21", f"{name}: {allocator} / glibc", found or here["absent allocators"].get(allocator))

    for setting, case in HELD_BACK.items():
        with_, without = (
            chosen(thresholds, setting=which, case=case).held.to_numpy() for which in (setting, "nothing")
        )
        handed.put("A22", f"MiB held, {case}: {setting} minus nothing", difference(with_, without, "MiB"))
    return handed
