"""Made-up records of the chapter "Calls from outside", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside.experiment import CHILDREN, FORKS
from notebooks.outside.waiting import DEFAULT

INTERPRETERS = [GIL, FREE_THREADED]


def simulated(session: Simulated) -> None:
    of_states(session)
    of_waiting(session)
    of_crossings(session)


def of_states(session: Simulated) -> None:
    """Thread states and the way in."""


def of_waiting(session: Simulated) -> None:
    """Who waits for whom: one row for each child."""
    for label in INTERPRETERS:
        scenes: dict[str, list[dict]] = {}

        def add(title: str, which: dict, label=label, scenes=scenes, **columns: dict) -> None:
            """Children of one case. columns: what each shows, and by which claim and number how often; else something else."""
            rows = [{**which, "outcome": "ends", **dict.fromkeys(columns, "ends")} for _ in range(CHILDREN)]
            for column, seen in columns.items():
                for value, (claim, number) in seen.items():
                    happened = session.events(session.true(claim, f"{number}, {label}"), CHILDREN)
                    for row, one in zip(rows, happened, strict=True):
                        row[column] = value if one else row[column]
            scenes.setdefault(title, []).extend(rows)

        def hang(title: str, claim: str, what: str, **which: str) -> None:
            add(title, which, outcome={"hangs": (claim, f"children that hang: {what}")})

        if label == FREE_THREADED:
            for claim, way, stop in (
                *(("E18", way, "gc.collect()") for way in ("attached", "detached", "PyMutex")),
                *(
                    ("E19", "attached", stop)
                    for stop in ("nothing", "os.fork()", "a trace function", "a new __class__")
                ),
                ("E19", "detached", "nothing"),
            ):
                hang("lock order", claim, f"{way}, {stop}", way=way, stop=stop)
        fates = {"hangs": "threads that hang", "terminated": "threads that are terminated"}
        kept = "a kept state"
        add(
            "shutdown",
            {"thread": kept},
            fate={fate: ("E2", f"{number}: {kept}") for fate, number in fates.items()},
            outcome={"hangs": ("E10", f"children that hang: {kept}")},
        )
        new = "a new state"
        add("shutdown", {"thread": new}, fate={"came through": ("E2", f"threads that come through: {new}")})
        for thread in ("a new state, at the very end", "new states, in a loop"):
            killed = {"killed by SIGSEGV": ("E3", f"children killed: {thread}")}
            add("shutdown", {"thread": thread}, outcome=killed)
        for thread in ("a kept state, and a lock", "a loop, joined by atexit"):
            hang("shutdown", "E10", thread, thread=thread)
        for claim, how in (("E12", "attached"), ("E12", "detached"), ("E13", "another thread checks")):
            during = {"during the call": (claim, f"handlers run during the call: {how}")}
            add("signals", {"how": how}, outcome=during)
        add("signals", {"how": "checks"}, late={True: ("E13", "handlers late: checks")})
        for main in ("sleeps in a system call", "works in C"):
            early = {"while it lasts": ("E11", f"pending calls run while main is busy: {main}")}
            add("pending calls", {"main": main}, outcome=early)
        for how in FORKS[:2]:
            hang("fork", "E14", how, how=how)
        default = DEFAULT
        other = session.events(
            session.true("E15", f"children that start otherwise than with forkserver: {label}"), CHILDREN
        )
        hang("fork", "E15", default, how=default)
        for row, one in zip(scenes["fork"][-CHILDREN:], other, strict=True):
            row["method"] = "spawn" if one else "forkserver"
        for title, rows in scenes.items():
            session.add_processes(title, [(label, {}, [rows])])


def of_crossings(session: Simulated) -> None:
    """What may cross."""
