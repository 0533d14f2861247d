"""What the chapter "GIL Balm" measures (claims B1-B6). The page quotes all of it."""

import dataclasses
import functools
import runpy

import pandas as pd

from ffilab.measure import instructions
from ffilab.measure.case import Case, Outcome, Step
from ffilab.measure.plan import Arm
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.paths import BUILT, NATIVE, without_paths
from ffilab.setup import installed
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL

# [setting]
SOURCES = NATIVE / "balm"
ARMS, NANOARROW, EXPERIMENTS = (f"native/balm/{name}.py" for name in ("arms", "nanoarrow_arm", "experiments"))
LINES: int = runpy.run_path(str(SOURCES / "corpus.py"))["LINES"]
# [/setting]

# [layout facts]
FOLDER = {"folder": f"{BUILT}/balm"}


def layout_facts(session: Session) -> pd.DataFrame:
    """B6: where each build keeps what a forgery has to fill in: a row for each field."""
    cases = [Case.of(label, EXPERIMENTS, "layout_facts", fixed=FOLDER) for label in session.interpreters]
    return session.run("layouts of objects", cases, repeats=1)


# [/layout facts]

# [original]
NEW, POOLED, BLOCK = ("new", "pooled", "block")
# The original's two designs as their author wrote them, on builds with a GIL; without the suffix they are our own.
WRITTEN = ", as written"
ORIGINAL = (NEW, POOLED + WRITTEN, BLOCK + WRITTEN)
THREADS = 16
# A block is so fast that 16 threads need the original's number of tuples to forget their start. The other two take
# long: outside `full` they make a tenth. What is measured is a time for each string. Processes that are twice as long
# scatter only a little less, so that more of them tell more than longer ones.
PUBLISHED_TUPLES, FEWER_TUPLES = 10_000, 1_000


def original(session: Session) -> pd.DataFrame:
    """B1-B3 as the author ran them, by one thread and by 16, his strings made with the GIL released."""
    cases = []
    for threads in (1, THREADS):
        for method in ORIGINAL:
            how = "kept" if method == NEW else "released"
            factors = {"method": method, "threads": threads, "tuples": tuples(session, method), "how": how}
            cases.append(Case.of(GIL, EXPERIMENTS, "churn", factors, FOLDER, timeout_s=300))
    # With 16 threads a ratio of two processes scatters by a seventh, so that it takes many.
    repeats = session.budget.shares if session.budget.is_result else session.budget.repeats
    return session.run("as the author ran it", cases, repeats)


def tuples(session: Session, method: str) -> int:
    """How many tuples one process of `original` makes in this budget."""
    is_block = method == BLOCK + WRITTEN
    most = PUBLISHED_TUPLES if is_block or session.budget.name == "full" else FEWER_TUPLES
    return max(THREADS, round(most * session.budget.scale))


# [/original]

# [arenas]
HELD, GIVEN_BACK = ARENAS = ("held", "given back")
ARENAS_TUPLES = 600


def arenas(session: Session) -> pd.DataFrame:
    """B1, B2: one thread as above, with the arenas of CPython's allocator held, or one of them given back by each tuple."""
    count = max(16, round(ARENAS_TUPLES * session.budget.scale))
    cases = [
        Case.of(
            GIL, EXPERIMENTS, "churn", {"method": method, "arenas": state, "how": how}, churned(count), timeout_s=300
        )
        for method, how, states in ((NEW, "kept", ARENAS), (POOLED, "released", [HELD]), (BLOCK, "released", [HELD]))
        for state in states
    ]
    return session.run("arenas held and given back", cases, session.budget.few)


def churned(count: int) -> dict:
    return {**FOLDER, "threads": 1, "tuples": count}


# [/arenas]

# [ways]
BLOCK_TUPLE, BEST = "block and tuple", "pages and tuple"
OURS = (POOLED, "compact", BLOCK, BLOCK_TUPLE, "pages", BEST)
# Loops that do a part of the work, and make no string; the words of floors.c stand behind the colon.
TWO_PASSES, BYTES, NEAR, MEMORY = LOOPS = tuple(
    f"loop: {what}" for what in ("bytes and drop", "bytes", "near", "memory")
)
AGAIN = "new, again"
RELEASED = ", released"
LAZY, ARROW = "lazy sequence", "Arrow array (nanoarrow)"
EVERY = {"all": 1, "one in ten": 10, "one in a hundred": 100}


def arms() -> list[Arm]:
    """Every way to make the strings of the text, ours and the rivals. Where one cannot be made, the record says why."""

    def strings(name: str, method: str, released: bool = False) -> Arm:
        return Arm.of(name, ARMS, "strings", {**FOLDER, "method": method, "released": released})

    found = [
        *(strings(name, name) for name in (NEW, "from string", "writer", *OURS)),
        *(strings(method + RELEASED, method, True) for method in (POOLED, BLOCK, BEST)),
        *(dataclasses.replace(strings(name, name, True), interpreters=(GIL,)) for name in ORIGINAL[1:]),
        strings(AGAIN, NEW),
        Arm.of("one decode, then splitlines", ARMS, "one_decode"),
        *(Arm.of(name, ARMS, "loop", {**FOLDER, "what": name.removeprefix("loop: ")}) for name in LOOPS),
        Arm.of("memoryviews", ARMS, "views"),
        Arm.of("made once, tuple again", ARMS, "made_once", FOLDER),
    ]
    for share, every in EVERY.items():
        for method in (NEW, BEST):
            found.append(Arm.of(f"{method}, {share} read", ARMS, "read", {**FOLDER, "method": method, "every": every}))
        found.append(Arm.of(f"{LAZY}, {share} read", ARMS, "lazy", {**FOLDER, "every": every}))
    # On a free-threaded build nanoarrow turns the GIL on; it is installed for the chapter's interpreter alone.
    for share, read in (("none", False), ("all", True)):
        found.append(Arm.of(f"{ARROW}, {share} read", NANOARROW, "array", {"read": read}, "nanoarrow", (GIL,)))
    return found


def ways(session: Session) -> Record:
    """One thread: all ways on all interpreters, interleaved."""
    budget = dataclasses.replace(session.budget, seconds=session.budget.seconds / 2)
    return session.time("ways", arms(), budget=budget)


# [/ways]


# [counts]
# Not the loop over memory: it may be one instruction that repeats itself, which callgrind counts anew for each byte.
COUNTED = (NEW, POOLED, BLOCK, BLOCK_TUPLE, "pages", BEST, TWO_PASSES, BYTES)
# Tuples of the longer batch.
COUNTED_TUPLES = 12


def counts(session: Session) -> dict:
    """For each string of the text, made and dropped: instructions by interpreter and arm, or why they cannot be counted here; and
    the bytes written for it, in a block and in pages, by interpreter.
    """

    def look():
        layouts = {label: Case.of(label, ARMS, "written", fixed=FOLDER).run().result for label in PAIR}
        if reason := instructions.available():
            return {"instructions": reason, "bytes": layouts}
        counted = [arm for arm in arms() if arm.name in COUNTED]
        many = {(label, arm.name): COUNTED_TUPLES for label in PAIR for arm in counted}
        found = instructions.per_call(list(PAIR), counted, many)
        each = {label: {arm: n / LINES for (other, arm), n in found.items() if other == label} for label in PAIR}
        return {"instructions": each, "bytes": layouts}

    return session.observe("instructions and bytes", look)


# [/counts]

# [grid]
PAIR = (GIL, FREE_THREADED)
# What is slow needs fewer for as long a time.
GRID_TUPLES = {NEW: 300, POOLED: 300, BLOCK: 1_000, BEST: 2_000}


def grid(session: Session) -> pd.DataFrame:
    """B3 on both builds, from one thread to four times the cores; each number of threads in processes of its own."""
    cases = []
    for label in PAIR:
        for method, most in GRID_TUPLES.items():
            fixed = {**FOLDER, "tuples": max(THREADS, round(most * session.budget.scale))}
            for how in hows(label, method):
                for threads in thread_counts(session):
                    factors = {"method": method, "how": how, "threads": threads}
                    cases.append(Case.of(label, EXPERIMENTS, "churn", factors, fixed, timeout_s=120))
    return session.run("threads", cases, session.budget.few)


def hows(label: str, method: str) -> tuple[str, ...]:
    """What is done with the GIL while strings are made: a free-threaded build has none, and the pool's are its author's."""
    if label == FREE_THREADED or method == NEW:
        return ("kept",)
    return ("released",) if method == POOLED else ("kept", "released")


def thread_counts(session: Session) -> list[int]:
    """1, 2, the number of cores, and four times as many."""
    cores = session.machine["cores_usable"]
    return sorted({1, 2, cores, 4 * cores})


# [/grid]

# [second thread]
# Tuples of each thread: few, as a thread of a server may make, and many.
EACH = {"few": 10, "many": 500}
COLD, WARM = ("cold", "warm")
# What is slow needs fewer for as long a time.
AS_LONG = {NEW: 1, BLOCK: 4, BEST: 8}


def second_thread(session: Session) -> pd.DataFrame:
    """Without the GIL: what a second thread brings, to threads that have just started and to those that run for long."""
    ways = [(NEW, "few", COLD), (NEW, "few", WARM), *((method, "many", WARM) for method in AS_LONG)]
    cases = []
    for method, length, state in ways:
        each = max(EACH["few"], round(EACH[length] * AS_LONG[method] * session.budget.scale))
        for threads in (1, 2):
            factors, fixed = {"method": method, "state": state, "threads": threads}, {**FOLDER, "each": each}
            cases.append(Case.of(FREE_THREADED, EXPERIMENTS, "started", factors, fixed, {"length": length}))
    return session.run("a second thread", cases, session.budget.repeats)


# [/second thread]

# [texts]
# Texts whose strings take a twentieth of the memory, as much, and four times as much.
TEXTS = (LINES // 20, LINES, 4 * LINES)
TEXTS_STRINGS = 3_000_000


def texts(session: Session) -> pd.DataFrame:
    """B3: is a block bound by memory? Then a string of a small text, which stays in the nearest cache, is cheaper."""
    fixed = {**FOLDER, "strings": max(TEXTS[-1], round(TEXTS_STRINGS * session.budget.scale)), "lines": TEXTS}
    cases = [Case.of(label, EXPERIMENTS, "texts", {"method": BLOCK}, fixed) for label in PAIR]
    return session.run("texts of several lengths", cases, session.budget.few)


# [/texts]

# [memory]
ALIVE_TUPLES = 100
# The strings of pages are those of pages in a tuple of ours.
ALIVE = (NEW, POOLED, "compact", BLOCK, BEST)


def memory(session: Session) -> pd.DataFrame:
    """Bytes for each string: alive, after all were dropped, and written for it. Nothing where there is no /proc."""
    fixed = {**FOLDER, "tuples": ALIVE_TUPLES}
    cases = [Case.of(label, EXPERIMENTS, "memory", {"method": method}, fixed) for label in PAIR for method in ALIVE]
    linux = session.machine["system"].startswith("Linux")
    return session.run("memory", cases if linux else [], session.budget.few)


# [/memory]


# [what works]
def behaviour(session: Session) -> pd.DataFrame:
    """B4, B6: what Python answered, by interpreter, probe and kind of string."""
    cases = [Case.of(label, EXPERIMENTS, "behaviour", fixed=FOLDER) for label in session.interpreters]
    return session.run("what works", cases, repeats=1)


def layouts(session: Session) -> pd.DataFrame:
    """B5: how many strings differ from CPython's, by interpreter, way and text."""
    cases = [Case.of(label, EXPERIMENTS, "layouts", fixed=FOLDER) for label in session.interpreters]
    return session.run("layouts", cases, repeats=1)


# [/what works]


# [misuse]
MISUSE = (
    "a hash of 0",
    "no NUL at the end",
    "bytes that are not ASCII",
    "a borrowed reference",
    "another interpreter",
    "the maker's thread is gone",
    "alive at exit",
)


def misuse(session: Session) -> pd.DataFrame:
    """B6: what must not be done, each in a process that may die of it."""
    cases = [
        Case.of(label, EXPERIMENTS, "misuse", {"what": what}, FOLDER)
        for label in session.interpreters
        for what in MISUSE
    ]
    return session.run("what must not be done", cases, repeats=1, may_fail=True)


# [/misuse]

# [another layout]
A_STRING, A_TUPLE, A_MODULE = MADE = ("a str", "a tuple", "our module")


def another_layout(session: Session, facts: pd.DataFrame) -> pd.DataFrame:
    """B6: on each interpreter, objects written by the layout of each, and our module as it was built for each."""
    steps = []
    for label in session.interpreters:
        for of in session.interpreters:
            part = facts[facts.interpreter == of]
            known = {field: None if pd.isna(value) else int(value) for field, value in zip(part.field, part["is"])}
            for made in MADE:
                factors = {"made": made, "layout_of": of}
                steps.append(Step(functools.partial(by_layout, label, made, of, known), factors, label))
    return session.run("the layout of another build", steps, repeats=1, may_fail=True)


def by_layout(label: str, made: str, of: str, layout: dict, seed: int = 0) -> Outcome:
    """One object by one layout, in a process that may die of it. As it was installed: all builds lie in its folder."""
    if made == A_MODULE:
        layout = {**FOLDER, "tag": installed.soabi(installed.load(BY_LABEL[of]))}
    return Case.of(label, EXPERIMENTS, "another_layout", {"made": made, "layout": layout}).run(seed)


# [/another layout]

# [mutable]
MUTABLE = (
    "sort it",
    "append one item, for which there is room",
    "append two items, one too many",
    "clear it",
    "its own append: append two items",
    "its own append: append one item, then heapq.heappush",
)
# What makes CPython's allocator take or free memory that is not its own.
GROWS = (MUTABLE[2], MUTABLE[3], MUTABLE[5])


def mutable(session: Session) -> pd.DataFrame:
    """B6: a list whose items are in memory of ours, each act in a process that may die of it."""
    cases = [
        Case.of(label, EXPERIMENTS, "mutable", {"what": what}, FOLDER)
        for label in session.interpreters
        for what in MUTABLE
    ]
    return session.run("a list in memory of ours", cases, repeats=1, may_fail=True)


# [/mutable]


# [forgery]
def forgery(session: Session, data: bytes, length: int, unknown_hash: int) -> dict:
    """The exercise: one forged string and what it answers, in a process that may die of it."""
    return session.observe("exercise: forge a twelve", forged, data.hex(), length, unknown_hash)


def forged(data: str, length: int, unknown_hash: int) -> dict:
    """How the process ended, and what was right; no answers if it died."""
    string = {"data": data, "length": length, "unknown_hash": unknown_hash}
    outcome = Case.of(GIL, EXPERIMENTS, "forged", string, FOLDER).run()
    return {"answers": outcome.result, "ended": outcome.ended, "error": without_paths(outcome.error)}


# [/forgery]
