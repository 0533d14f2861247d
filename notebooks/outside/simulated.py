"""Made-up records of the chapter "Calls from outside", by what is true of its claims: see ffilab/judge/simulation.py."""

import itertools

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside.experiment import (
    ALONE,
    BRIDGES,
    BUSY,
    CHILDREN,
    EVENTS,
    FORKS,
    GUARDS,
    HOW,
    IN_SECTION,
    NOTHING,
    OBJECT_LEFT,
    OTHERS,
    OTHERS_THERE,
    ROWS,
    THREADS,
    TOGETHER,
    VISITED,
)
from notebooks.outside.results import NEWER, OLDER
from notebooks.outside.states import RUN_AS
from notebooks.outside.waiting import DEFAULT

INTERPRETERS = [GIL, FREE_THREADED]
# E9 speaks of the version that comes next.
GUARDED = [label for label in NEWER if BY_LABEL[label].version == BY_LABEL[NEWER[0]].version]
# Standard deviation over processes of the logarithm of a time, as seen in a run of `quick`.
PROCESSES = 0.05


def simulated(session: Simulated) -> None:
    of_states(session)
    of_waiting(session)
    of_crossings(session)


def of_states(session: Simulated) -> None:
    """Thread states and the way in: each event makes an end longer by as much as its claim says."""
    n, few = session.budget.repeats, session.budget.few
    made, after = {GIL: 800.0}, {}
    after[GIL] = made[GIL] * session.true("E6", f"1 {THREADS} / none, {GIL}")
    after[FREE_THREADED] = after[GIL] * session.true("E5", f"a state made: 1 {THREADS}, {FREE_THREADED} / {GIL}")
    made[FREE_THREADED] = after[FREE_THREADED] / session.true("E6", f"1 {THREADS} / none, {FREE_THREADED}")
    cases = []
    for label, (event, counts) in itertools.product((GIL, FREE_THREADED), EVENTS.items()):
        kept = after[label] / session.true("E5", f"a state made / kept: 1 {THREADS}, {label}")
        columns = [session.scattered(after[label] if count else made[label], PROCESSES, n) for count in counts]
        rows = [
            [{"count": count, "ns": float(ns[run]), "kept": kept} for count, ns in zip(counts, columns)]
            for run in range(n)
        ]
        cases.append((label, {"event": event, "bytecode": "own"}, rows))
    still = [[{"count": count, "ns": made[FREE_THREADED], "kept": 200.0} for count in (0, 1)]] * n
    cases.extend((FREE_THREADED, {"event": event, "bytecode": "shared"}, still) for event in EVENTS)
    session.add_processes("end of a state", cases)
    cases = []
    for label in (GIL, FREE_THREADED):
        longer = session.scattered(
            50 + session.true("E7", f"ns longer beside {OTHERS[1]} newer states, {label}"), PROCESSES, n
        )
        rows = [[{"others": OTHERS[0], "ns": 50.0}, {"others": OTHERS[1], "ns": float(ns)}] for ns in longer]
        cases.append((label, {}, rows))
    session.add_processes("end beside others", cases)
    cases = []
    for event in VISITED:
        seen = [[{"count": count, "readings": 4096 if count else 0} for count in EVENTS[event]]] * few
        cases.append((FREE_THREADED, {"event": event}, seen))
    session.add_processes("visits", cases)
    beside = [(label, {"after": after}, [{"ns": 200_000.0}] * few) for label in INTERPRETERS for after in (0, 1)]
    session.add_processes("a thread of Python", beside)
    alike = [[{"state": state, "threads": threads, "ns": 500.0} for state in HOW for threads in TOGETHER]] * few
    before = itertools.product(INTERPRETERS, (NOTHING, OTHERS_THERE, OBJECT_LEFT))
    session.add_processes("several threads", [(label, {"before": one}, alike) for label, one in before])
    cases = []
    for build, which in RUN_AS.items():
        if which["interpreter"] == FREE_THREADED:
            true = session.true("E8", f"rows per second, {ROWS[0]} in a callback, kept / made on {build}")
            kept = session.scattered(55_000 * true, PROCESSES, n)
            rows = [[{"kept": False, "rows_per_s": 55_000.0}, {"kept": True, "rows_per_s": float(one)}] for one in kept]
            cases.append((which["interpreter"], {"gil": which["gil"], "rows": ROWS[0]}, rows))
    session.add_processes("rows per second", cases)
    of_tools = [
        [{"tool": tool, "kept": kept, "ns": 500.0 if kept else 5000.0} for tool in TOOLS for kept in (True, False)]
    ] * n
    session.add_processes("ways in", [(label, {}, of_tools) for label in (GIL, FREE_THREADED)])
    answers = [[{"way": way, "us": 100.0, "worst": 200.0} for way in BRIDGES]] * n
    beside = itertools.product((GIL, FREE_THREADED), (ALONE, BUSY))
    session.add_processes("bridge", [(label, {"beside": one}, answers) for label, one in beside])
    cases = []
    for label in (GIL, FREE_THREADED):
        bad = {
            (tool, kept): session.events(
                session.true(
                    claim,
                    f"processes in which a threading.local {event}: {tool}, {'kept' if kept else 'made'}, {label}",
                ),
                session.budget.shares,
            )
            for claim, tool, kept, event in (
                ("E1", "ctypes", False, "survived"),
                ("E1", "ctypes", True, "lost"),
                ("E7", "cffi", False, "lost"),
            )
        }
        rows = []
        for run in range(session.budget.shares):
            row = [
                {
                    "tool": tool,
                    "kept": kept,
                    "outcome": "survived" if events[run] == (tool == "ctypes" and not kept) else "lost",
                }
                for (tool, kept), events in bad.items()
            ]
            rows.append(row)
        cases.append((label, {}, rows))
    session.add_processes("threading.local", cases)


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
                *(("E19", "attached", stop) for stop in ("nothing", "os.fork()", "a trace function", "another class")),
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
        if label == FREE_THREADED:
            for what in IN_SECTION[:2]:
                hang("critical sections", "E20", f"in a section, {what}", inside=what)
        for title, rows in scenes.items():
            session.add_processes(title, [(label, {}, [rows])])

    def happens(claim: str, number: str) -> list[bool]:
        return session.events(session.true(claim, number), CHILDREN).tolist()

    for label in (FREE_THREADED, *(one for one in OLDER if BY_LABEL[one].free_threaded)):
        rows = []
        for what in IN_SECTION[2:] if label == FREE_THREADED else IN_SECTION[2:3]:
            lost = happens("E20", f"children that lose counts: {what}, {label}")
            rows += [{"inside": what, "outcome": "loses counts" if one else "ends"} for one in lost]
        session.add_processes("a section twice", [(label, {}, [rows])])
    closed, never, view = GUARDS
    for label in GUARDED:
        late = happens("E9", f"threads that come too late: {closed}, {label}")
        waits = happens("E9", f"children that hang: {never}, {label}")
        enters = happens("E9", f"threads that come through: {view}, {label}")
        rows = [
            *({"by": closed, "outcome": "ends", "fate": "hangs" if one else "came through"} for one in late),
            *({"by": never, "outcome": "hangs" if one else "ends", "fate": None} for one in waits),
            *({"by": view, "outcome": "ends", "fate": "came through" if one else "refused"} for one in enters),
        ]
        session.add_processes("guards", [(label, {}, [rows])])


def of_crossings(session: Simulated) -> None:
    """What may cross: one row for each child. Where a claim asks nothing of a scene, its children end."""
    usual = {"outcome": "ends", "hooked": True, "printed": True, "refused": False, "raised": ""}
    for label in INTERPRETERS:

        def rows(what: str, *events: tuple, label=label, **seen) -> list[dict]:
            """events: (claim, number, columns): by which number's share, rows show these columns instead of what is `seen`."""
            children = [{"what": what, "answer": "", **usual, **seen} for _ in range(CHILDREN)]
            for claim, number, columns in events:
                for row, one in zip(
                    children, session.events(session.true(claim, f"{number}{label}"), CHILDREN), strict=True
                ):
                    row |= columns if one else {}
            return children

        def add(title: str, *children: list[dict], label=label) -> None:
            session.add_processes(title, [(label, {}, [list(itertools.chain.from_iterable(children))])])

        well, killed = {"outcome": "ends"}, {"outcome": "killed by SIGABRT"}
        add(
            "exceptions",
            rows("C++, noexcept between", ("E23", "children that end well: C++, noexcept between, ", well), **killed),
            rows("C++, caught by its caller", ("E23", "children killed: C++, caught by its caller, ", killed)),
            rows("Rust, extern C between", ("E17", "children that end well: Rust, extern C between, ", well), **killed),
            rows("Rust, caught by its caller", ("E17", "children killed: Rust, caught by its caller, ", killed)),
            rows("thread ended in C++", ("E16", "threads whose destructor ran: ", {"answer": "1"}), answer="0"),
            rows("thread ended in noexcept", ("E16", "children killed: thread ended in noexcept, ", killed)),
        )
        unseen, garbage = (
            "ctypes callbacks that sys.unraisablehook did not see: ",
            "ctypes callbacks after which C had another number than 0: ",
        )
        add(
            "exceptions in callbacks",
            rows("ctypes", ("E21", unseen, {"hooked": False}), ("E21", garbage, {"answer": "1193298944"}), answer="0"),
            rows(
                "cffi",
                ("E22", "cffi callbacks that printed nothing, or gave C another number than 0: ", {"answer": "1"}),
                answer="0",
            ),
            rows(
                "cffi, error=7",
                ("E22", "cffi callbacks with error=7 that gave C another number: ", {"answer": "0"}),
                answer="7",
            ),
            rows(
                "cffi, onerror",
                ("E22", "cffi callbacks with onerror that printed: ", {"printed": True}),
                printed=False,
                answer="7",
            ),
        )
        home, away = {"answer": "1 1"}, {"answer": "1 0"}
        ways = (
            "threads of C in their caller's interpreter: PyGILState_Ensure, ",
            "threads of C in another interpreter than their caller's: PyThreadState_New, ",
        )
        of_ctypes = (
            ("E4", "children killed: elsewhere, ctypes, ", {**killed, "answer": ""})
            if label == GIL
            else ("E4", "ctypes callbacks that came to their caller's interpreter: ", home)
        )
        add(
            "interpreters",
            rows("PyGILState_Ensure", ("E4", ways[0], home), **away),
            rows("PyThreadState_New", ("E4", ways[1], away), **home),
            rows("ctypes", of_ctypes, **away),
        )
