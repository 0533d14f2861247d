"""What the chapter "Arenas" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import chosen, difference, measured, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas import results
from notebooks.arenas.experiment import MEET

# Where the talk prefers one of two allocators that Linux has.
PREFERRED = {
    "many short-lived threads": "jemalloc",
    "long-lived server, RSS-sensitive": "jemalloc",
    "latency-critical, multi-threaded": "tcmalloc",
    "short-lived processes": "jemalloc",
    "tight memory limit": "jemalloc",
    "high thread count": "jemalloc",
    "fork-heavy": "jemalloc",
}
HELD_BACK = {"mmap_threshold=131072": "large, pinned", "trim_threshold=1073741824": "small"}


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    here = session.observed("this system", session.interpreters)
    runs = results.talk(session.frame("the talk's experiment"))
    cells = results.grid(session.frame("Python × native threads"))
    scenarios, thresholds = results.scenarios(session.frame("scenarios")), session.frame("thresholds")

    def not_built(*labels: str) -> str | None:
        return next((here["absent extension"][label] for label in labels if label in here["absent extension"]), None)

    grown = {label: results.grown_by_native_threads(runs, label) for label in (GIL, FREE_THREADED)}
    handed.put(
        "A19",
        f"RSS grown by the native threads, as the talk ran it: {FREE_THREADED} − {GIL}",
        difference(grown[FREE_THREADED], grown[GIL], "MiB") or not_built(GIL, FREE_THREADED),
    )
    held = {label: chosen(runs, interpreter=label, condition=MEET).held.to_numpy() for label in (GIL, FREE_THREADED)}
    handed.put(
        "A19",
        f"held by glibc, touched blocks, 8 × 50: {FREE_THREADED} / {GIL}",
        ratio(held[FREE_THREADED], held[GIL]) or not_built(GIL, FREE_THREADED),
    )

    most = results.native_part(cells, FREE_THREADED, 24, 200)
    handed.put(
        "A20",
        f"RSS grown by the native threads at 24 × 200: {FREE_THREADED}",
        measured(most, "MiB") or not_built(FREE_THREADED),
    )
    handed.put(
        "A20",
        f"RSS grown by the native threads at 24 × 200 minus 2 × 200: {FREE_THREADED}",
        difference(most, results.native_part(cells, FREE_THREADED, 2, 200), "MiB") or not_built(FREE_THREADED),
    )

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
