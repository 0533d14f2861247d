"""What the chapter "GIL Balm" measures (claims B1-B6). The page quotes all of it."""

import dataclasses
import functools
import json
import runpy
import subprocess
from pathlib import Path

import pandas as pd

from ffilab.bench import case, instructions
from ffilab.bench.case import Case, Outcome, Step
from ffilab.bench.plan import Arm
from ffilab.bench.record import Record
from ffilab.bench.session import Session
from ffilab.machine import compiler
from ffilab.paths import BUILT, NATIVE, resolved, without_paths
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL

# [setting]
SOURCES = NATIVE / "balm"
ARMS, NANOARROW, EXPERIMENTS = (f"native/balm/{name}.py" for name in ("arms", "nanoarrow_arm", "experiments"))
LINES: int = runpy.run_path(str(SOURCES / "corpus.py"))["LINES"]
# [/setting]

# [layout facts]
FOLDER = {"folder": f"{BUILT}/balm"}


def layout_facts(session: Session) -> pd.DataFrame:
    """B6: where each build keeps what a forgery has to fill in: a row for each field."""
    cases = [Case(label, EXPERIMENTS, "layout_facts", fixed=FOLDER) for label in session.interpreters]
    return session.run("layouts of objects", cases, repeats=1)


# [/layout facts]

# [original]
NEW, POOLED, BLOCK = ORIGINAL = ("new", "pooled", "block")
THREADS = 16
# A block is so fast that 16 threads need the original's number of tuples to forget their start. The other two take
# long: outside `full` they make a tenth. What is measured is a time for each string. Processes that are twice as long
# scatter only a little less, so that more of them tell more than longer ones.
PUBLISHED_TUPLES, FEWER_TUPLES = 10_000, 1_000


def original(session: Session) -> pd.DataFrame:
    """B1-B3 as the author ran them, by one thread and by 16, our strings made with the GIL released."""
    cases = []
    for threads in (1, THREADS):
        for method in ORIGINAL:
            how = "kept" if method == NEW else "original"
            factors = {"method": method, "threads": threads, "tuples": tuples(session, method), "how": how}
            cases.append(Case(GIL, EXPERIMENTS, "churn", factors, FOLDER, timeout_s=300))
    # A ratio of two processes scatters by a quarter, so that it takes many.
    repeats = session.budget.shares if session.budget.is_result else session.budget.repeats
    return session.run("as the author ran it", cases, repeats)


def tuples(session: Session, method: str) -> int:
    """How many tuples one process of `original` makes in this budget."""
    most = FEWER_TUPLES if method != BLOCK and session.budget.name != "full" else PUBLISHED_TUPLES
    return max(THREADS, round(most * session.budget.scale))


# [/original]

# [arenas]
HELD, GIVEN_BACK = ARENAS = ("held", "given back")
ARENAS_TUPLES = 600


def arenas(session: Session) -> pd.DataFrame:
    """B1, B2: one thread as above, with the arenas of CPython's allocator held, or one of them given back by each tuple."""
    count = max(16, round(ARENAS_TUPLES * session.budget.scale))
    cases = [
        Case(GIL, EXPERIMENTS, "churn", {"method": method, "arenas": state, "how": how}, churned(count), timeout_s=300)
        for method, how, states in ((NEW, "kept", ARENAS), (POOLED, "original", [HELD]), (BLOCK, "original", [HELD]))
        for state in states
    ]
    return session.run("arenas held and given back", cases, session.budget.few)


def churned(count: int) -> dict:
    return {**FOLDER, "threads": 1, "tuples": count}


# [/arenas]

# [ways]
BLOCK_TUPLE, BEST = "block and tuple", "pages and tuple"
OURS = (POOLED, "compact", BLOCK, BLOCK_TUPLE, "pages", BEST)
# What no way to make such strings can do without, and no string at all; the words of floors.c stand behind the colon.
FLOOR, BYTES, FIELDS, NEAR, MEMORY, TUPLE = FLOORS = tuple(
    f"floor: {what}" for what in ("bytes and drop", "bytes", "fields", "near", "memory", "tuple alone")
)
AGAIN = "new, again"
RELEASED = ", released"
LAZY, ARROW = "lazy sequence", "Arrow array (nanoarrow)"
EVERY = {"all": 1, "one in ten": 10, "one in a hundred": 100}


def arms() -> list[Arm]:
    """Every way to make the strings of the text, ours and the rivals. Where one cannot be made, the record says why."""

    def strings(name: str, method: str, released: bool = False) -> Arm:
        return Arm(name, ARMS, "strings", {**FOLDER, "method": method, "released": released})

    found = [
        *(strings(name, name) for name in (NEW, "from string", "writer", *OURS)),
        *(strings(method + RELEASED, method, True) for method in (POOLED, BLOCK, BEST)),
        strings(AGAIN, NEW),
        Arm("one decode, then splitlines", ARMS, "one_decode"),
        *(Arm(name, ARMS, "floor", {**FOLDER, "what": name.removeprefix("floor: ")}) for name in FLOORS),
        Arm("memoryviews", ARMS, "views"),
        Arm("made once, tuple again", ARMS, "made_once", FOLDER),
    ]
    for share, every in EVERY.items():
        for method in (NEW, BEST):
            found.append(Arm(f"{method}, {share} read", ARMS, "read", {**FOLDER, "method": method, "every": every}))
        found.append(Arm(f"{LAZY}, {share} read", ARMS, "lazy", {**FOLDER, "every": every}))
    # On a free-threaded build nanoarrow turns the GIL on; it is installed for the chapter's interpreter alone.
    for share, read in (("none", False), ("all", True)):
        found.append(Arm(f"{ARROW}, {share} read", NANOARROW, "array", {"read": read}, "nanoarrow", (GIL,)))
    return found


def ways(session: Session) -> Record:
    """One thread: all ways on all interpreters, interleaved."""
    budget = dataclasses.replace(session.budget, seconds=session.budget.seconds / 2)
    return session.time("ways", arms(), budget=budget)


# [/ways]


# [counts]
# Not the floor of memory: it may be one instruction that repeats itself, which callgrind counts anew for each byte.
COUNTED = (NEW, POOLED, BLOCK, BLOCK_TUPLE, "pages", BEST, FLOOR, BYTES, FIELDS, TUPLE)
# Tuples of the longer batch.
COUNTED_TUPLES = 12


def counts(session: Session) -> dict:
    """For each string of the text, made and dropped: instructions by interpreter and arm, or why they cannot be counted here; and
    the bytes written for it, in a block and in pages, by interpreter.
    """

    def look():
        layouts = {label: Case(label, ARMS, "written", fixed=FOLDER).run().result for label in PAIR}
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
# Three times in each process. What is slow needs fewer for as long a time.
GRID_TUPLES = {NEW: 75, POOLED: 75, BLOCK: 200, BEST: 200}


def grid(session: Session) -> pd.DataFrame:
    """B3 on both builds, from one thread to four times the cores; each number of threads in processes of its own."""
    cases = []
    for label in PAIR:
        for method, most in GRID_TUPLES.items():
            fixed = {**FOLDER, "tuples": max(THREADS, round(most * session.budget.scale))}
            for how in hows(label, method):
                for threads in thread_counts(session):
                    factors = {"method": method, "how": how, "threads": threads}
                    cases.append(Case(label, EXPERIMENTS, "three_times", factors, fixed, timeout_s=120))
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

# [texts]
# Texts whose strings take a twentieth of the memory, as much, and four times as much.
TEXTS = (LINES // 20, LINES, 4 * LINES)
TEXTS_STRINGS = 3_000_000


def texts(session: Session) -> pd.DataFrame:
    """B3: is a block bound by memory? Then a string of a small text, which stays in the nearest cache, is cheaper."""
    fixed = {**FOLDER, "strings": max(TEXTS[-1], round(TEXTS_STRINGS * session.budget.scale)), "lines": TEXTS}
    cases = [Case(label, EXPERIMENTS, "texts", {"method": BLOCK}, fixed) for label in PAIR]
    return session.run("texts of several lengths", cases, session.budget.few)


# [/texts]

# [memory]
ALIVE_TUPLES = 20
# The strings of pages are those of pages in a tuple of ours.
ALIVE = (NEW, POOLED, "compact", BLOCK, BEST)


def memory(session: Session) -> pd.DataFrame:
    """Bytes for each string: alive, after all were dropped; the peak in MiB. Nothing where there is no /proc."""
    fixed = {**FOLDER, "tuples": ALIVE_TUPLES}
    cases = [Case(label, EXPERIMENTS, "memory", {"method": method}, fixed) for label in PAIR for method in ALIVE]
    linux = session.machine["system"].startswith("Linux")
    return session.run("memory", cases if linux else [], session.budget.few)


# [/memory]


# [what works]
def behaviour(session: Session) -> pd.DataFrame:
    """B4, B6: what Python answered, by interpreter, probe and kind of string."""
    cases = [Case(label, EXPERIMENTS, "behaviour", fixed=FOLDER) for label in session.interpreters]
    return session.run("what works", cases, repeats=1)


def layouts(session: Session) -> pd.DataFrame:
    """B5: how many strings differ from CPython's, by interpreter, way and text."""
    cases = [Case(label, EXPERIMENTS, "layouts", fixed=FOLDER) for label in session.interpreters]
    return session.run("layouts", cases, repeats=1)


# [/what works]


# [sizes]
def sizes(session: Session) -> pd.DataFrame:
    """What sys.getsizeof says of the strings of the text, by interpreter and way."""
    cases = [Case(label, EXPERIMENTS, "sizes", fixed=FOLDER) for label in session.interpreters]
    return session.run("what sys.getsizeof says", cases, repeats=1)


# [/sizes]

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
        Case(label, EXPERIMENTS, "misuse", {"what": what}, FOLDER) for label in session.interpreters for what in MISUSE
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
    return Case(label, EXPERIMENTS, "another_layout", {"made": made, "layout": layout}).run(seed)


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
        Case(label, EXPERIMENTS, "mutable", {"what": what}, FOLDER)
        for label in session.interpreters
        for what in MUTABLE
    ]
    return session.run("a list in memory of ours", cases, repeats=1, may_fail=True)


# [/mutable]

# [sanitizers]
SANITIZED_STRINGS = 5_000_000
# Sanitizer: build of the module, its runtime library, interpreters that it serves.
SANITIZERS = {
    "AddressSanitizer": ("balm_asan", "libasan.so", PAIR),
    "ThreadSanitizer": ("balm_tsan", "libtsan.so", (FREE_THREADED,)),
}
NO_REPORT, REPORT = "nothing about our code", "a report about our code"
NO_ROOM = "its shadow memory does not fit this system's address randomisation, which cannot be switched off here"


def sanitizers(session: Session) -> pd.DataFrame:
    """Our code under each sanitizer, once: how many strings it made, and the verdict."""
    strings = max(100_000, round(SANITIZED_STRINGS * session.budget.scale))
    steps = [
        Step(functools.partial(sanitized, name, label, strings), {"sanitizer": name}, label)
        for name, (_, _, labels) in SANITIZERS.items()
        for label in labels
    ]
    return session.run("sanitizers", steps, repeats=1)


def sanitized(sanitizer: str, label: str, strings: int, seed: int = 0, folder: str = FOLDER["folder"]) -> Outcome:
    """One run. Its row: strings, the verdict, what was said about our code, and what the process itself reports.

    CPython itself is not instrumented: what it does without us is seen at its calls of the C library only.
    """
    module, runtime, _ = SANITIZERS[sanitizer]
    interpreter = installed.load(BY_LABEL[label])
    note = Path(resolved(folder)) / installed.soabi(interpreter) / f"missing-{module}.txt"
    if note.exists():
        return not_here(note.read_text())
    environment = {
        "TSAN_OPTIONS": "exitcode=0 history_size=4",
        "LSAN_OPTIONS": "use_poisoned=1",
        # Objects of CPython that we must not touch come from malloc too, where that can be asked for.
        **({} if interpreter.interpreter.free_threaded else {"PYTHONMALLOC": "malloc"}),
    }
    # ThreadSanitizer's shadow memory does not fit every address layout.
    fixed = instructions.fixed_addresses() if module == "balm_tsan" else []
    library = subprocess.run([compiler(), f"-print-file-name={runtime}"], capture_output=True, text=True).stdout.strip()
    fixed_arguments = {"folder": folder, "name": module, "strings": strings}
    worker = Case(label, EXPERIMENTS, "sanitized", fixed=fixed_arguments, environment=environment).command()
    # Preloaded for Python only: setarch must be able to run before addresses are as the sanitizer needs them.
    command = [*fixed, "env", f"LD_PRELOAD={library}", *worker]
    ended, out, err = case.program(command, 600, environment, memory_bytes=None)
    err = without_paths(err)
    if "unexpected memory mapping" in err:
        return not_here(NO_ROOM)
    files = [f"/{path.name}" for path in (SOURCES / "balm").glob("*.[ch]")]
    ours = [line.strip() for line in err.splitlines() if any(name in line for name in (f"/{module}.", *files))]
    said = "\n".join(ours)
    # ThreadSanitizer ends a process that crashed with the code for its own reports, which is 0 here.
    if ended != "ok" or not out:
        verdict = f"no result, {ended}: {said or err[-200:]}"
        return Outcome({"strings": 0, "verdict": verdict, "said": said}, ended, err[-case.KEPT_CHARACTERS :])
    found = json.loads(out.splitlines()[-1])
    row = {"verdict": REPORT if said else NO_REPORT, "said": said, **found["result"]}
    return Outcome(row, ended, err[-case.KEPT_CHARACTERS :], found["gil_enabled"])


def not_here(reason: str) -> Outcome:
    """A sanitizer that cannot run here."""
    return Outcome({"strings": 0, "verdict": f"not here: {without_paths(reason)}", "said": ""}, "ok")


# [/sanitizers]


# [forgery]
def forgery(session: Session, data: bytes, length: int, unknown_hash: int) -> dict:
    """The exercise: one forged string and what it answers, in a process that may die of it."""
    return session.observe("exercise: forge a twelve", forged, data.hex(), length, unknown_hash)


def forged(data: str, length: int, unknown_hash: int) -> dict:
    """How the process ended, and what was right; no answers if it died."""
    string = {"data": data, "length": length, "unknown_hash": unknown_hash}
    outcome = Case(GIL, EXPERIMENTS, "forged", string, FOLDER).run()
    return {"answers": outcome.result, "ended": outcome.ended, "error": without_paths(outcome.error)}


# [/forgery]
