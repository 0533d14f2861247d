"""What the chapter "Races" measures (claims A15 to A18 and C7). The page quotes all of it; its tools: detection.py."""

import dataclasses
import dis
import runpy

import pandas as pd

from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.paths import BUILT, ROOT
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL

# [setting]
ARMS, EXPERIMENTS = "native/races/arms.py", "native/races/experiments.py"
FOLDER = f"{BUILT}/races"
# Way of calling: does it release the GIL?
WAYS: dict[str, bool] = runpy.run_path(str(ROOT / ARMS))["WAYS"]
LOADERS = ("ctypes PyDLL", "ctypes CDLL")
# Thirty runs of which none is bad leave room for 14 % of bad runs (Clopper and Pearson, 98 %): enough for a table. What the
# verdicts rest on has trials of its own, further below.
RUNS = 30


def repeats(session: Session) -> int:
    """Processes for each case: RUNS, or fewer where the budget asks for fewer; in a smoke test a few."""
    budget = session.budget
    return max(min(RUNS, budget.shares), budget.repeats) if budget.is_result else budget.repeats


# [/setting]

# [as_run]
# The talk's parameters.
THREADS, ITERATIONS, ROUNDS = 50, 10_000, 5
AS_RUN = "as the talk ran it"


def as_run(session: Session) -> pd.DataFrame:
    """A15 to A17 as the talk ran them. Its calls keep the GIL where it is on, so that its losses are of a build with its GIL off."""
    fixed = {"folder": FOLDER, "rounds": ROUNDS}
    cases = [
        Case.of(
            label, EXPERIMENTS, "as_run", fixed=fixed, named={"gil": "off" if BY_LABEL[label].free_threaded else "on"}
        )
        for label in session.interpreters
    ]
    return session.run(AS_RUN, cases, repeats(session))


def start_and_work(session: Session) -> pd.DataFrame:
    """ns to start a thread, of its whole life, and of one call of the talk's counter, on both builds."""
    fixed = {"folder": FOLDER, "iterations": ITERATIONS}
    cases = [Case.of(label, EXPERIMENTS, "start_and_work", fixed=fixed) for label in (GIL, FREE_THREADED)]
    return session.run("starting a thread", cases, repeats(session))


# [/as_run]

# [crossed_counter]
# Threads that meet inside of the call, and increments of each. Two of them work long enough to overlap on two cores.
TWO = {"threads": 2, "iterations": 100_000}
AS_IN_THE_TALK = {"threads": THREADS, "iterations": ITERATIONS}
VARIANTS = ("unsafe", "mutex", "atomic")
# Who keeps the GIL lets nobody in: the first one inside need not wait for long to see that.
KEPT_OUT_NS = 20_000_000
TEAMS = (TWO, AS_IN_THE_TALK)


def lets_others_in(label: str, way: str) -> bool:
    """Can a second thread be in the call? Not if it keeps a GIL."""
    return WAYS[way] or BY_LABEL[label].free_threaded


def crossed_counter(session: Session) -> pd.DataFrame:
    """A15 crossed with the way of calling: share of updates lost, and how the threads met, by way, team and variant.

    A lock is tested where a second thread can come; where none can, there is nothing to lock out."""
    cases = []
    for label in session.interpreters:
        for way in WAYS:
            kept_out = {"variants": ("unsafe",), "patience_ns": KEPT_OUT_NS}
            how = {"variants": VARIANTS} if lets_others_in(label, way) else kept_out
            teams = [{**team, **how} for team in TEAMS]
            cases.append(
                Case.of(label, EXPERIMENTS, "crossed_counter", {"way": way}, {"folder": FOLDER, "teams": teams})
            )
    return session.run("counter, crossed", cases, repeats(session))


# [/crossed_counter]

# [crowds]
CROWD_SIZES, SHORT, LONG = (2, THREADS), ITERATIONS, 100 * ITERATIONS
CROWDS = [
    {"threads": threads, "iterations": iterations, "variants": ["unsafe"]}
    for threads in CROWD_SIZES
    for iterations in (SHORT, LONG)
]
RELEASING = "ctypes CDLL"


def crowds(session: Session) -> pd.DataFrame:
    """How many threads, and how long they work: the same call, which detaches, on both builds."""
    fixed = {"folder": FOLDER, "teams": CROWDS}
    cases = [
        Case.of(label, EXPERIMENTS, "crossed_counter", {"way": RELEASING}, fixed) for label in (GIL, FREE_THREADED)
    ]
    return session.run("crowds", cases, repeats(session))


# [/crowds]

# [bank]
CUSTOMERS, ATTEMPTS = 100, 3


def banks(session: Session) -> pd.DataFrame:
    """A16 corrected: withdrawals and what is left, by loader and case."""
    fixed = {"folder": FOLDER, "threads": CUSTOMERS, "attempts": ATTEMPTS}
    cases = [
        Case.of(label, EXPERIMENTS, "bank", {"loader": loader}, fixed)
        for label in session.interpreters
        for loader in LOADERS
    ]
    return session.run("bank", cases, repeats(session))


# [/bank]

# [double_payments]
WINDOWS_NS = (0, 100, 300, 1_000, 3_000, 10_000)
SPREAD_NS, PAYMENT_ROUNDS = 20_000, 500


def double_payments(session: Session) -> pd.DataFrame:
    """How often two threads hit a window, by its width: share of rounds with two payments."""
    fixed = {"folder": FOLDER, "rounds": PAYMENT_ROUNDS, "spread_ns": SPREAD_NS, "windows_ns": WINDOWS_NS}
    cases = [Case.of(FREE_THREADED, EXPERIMENTS, "double_payments", fixed=fixed)]
    return session.run("width of the window", cases, repeats(session))


# [/double_payments]


# [bytecode]
def bytecode(session: Session, statement: str) -> pd.DataFrame:
    """The instructions of a loop around a statement on `total`, in the interpreter of this page."""
    return pd.DataFrame(session.observe("bytecode", instructions, statement))


def instructions(statement: str) -> list[dict]:
    """One row for each instruction, with the places that matter for a race."""
    namespace = {}
    exec(f"def loop(n):\n    global total\n    for _ in range(n):\n        {statement}\n", namespace)
    rows = []
    for instruction in dis.get_instructions(namespace["loop"]):
        name, argument = instruction.opname, instruction.argrepr
        place = {"LOAD_GLOBAL": "reads total", "STORE_GLOBAL": "writes total"} if argument == "total" else {}
        # A call of a Python function enters it, and the RESUME at its beginning looks.
        looks = name == "RESUME" or (name.startswith("JUMP_BACKWARD") and not name.endswith("NO_INTERRUPT"))
        rows.append(
            {
                "instruction": f"{name} {argument}".strip(),
                "race": place.get(name, ""),
                "may hand over the GIL": "yes" if looks else "in what it calls" if name.startswith("CALL") else "",
            }
        )
    return rows


# [/bytecode]

# [python_races]
# Seconds, as CPython's switch interval.
INTERVALS = {"5 ms (the default)": 0.005, "1 µs": 1e-6}
PYTHON_LOOPS = 300_000


def python_loops(session: Session) -> int:
    """Additions of each thread."""
    return round(PYTHON_LOOPS * session.budget.scale) or 1


def python_races(session: Session) -> pd.DataFrame:
    """C7: share of updates lost by two threads, by switch interval and statement."""
    fixed = {"threads": 2, "loops": python_loops(session), "intervals": INTERVALS}
    cases = [Case.of(label, EXPERIMENTS, "python_race", fixed=fixed) for label in session.interpreters]
    return session.run("total += 1", cases, repeats(session))


# [/python_races]

# [trials]
# None of 152 runs leaves room for 3 % of bad runs (Clopper and Pearson, 98 %). A few more, since a run whose threads did not meet
# is no trial of a lock.
TRIALS = {"smoke": 2, "room": 30, "quick": 160, "full": 480}
IN_PYTHON = {"intervals": {"1 µs": INTERVALS["1 µs"]}, "statements": ["total += 1"]}
# The post's loop; it runs it "in multiple threads".
AS_IN_THE_POST = {"threads": 8, "loops": 1_000}


def trials(session: Session) -> pd.DataFrame:
    """A15, A16, A18, C7: one trial of each in a process, of what the rules ask never to happen, or to happen at all.

    All processes count, also those that others disturbed: an event that was seen has happened."""
    pydll, cdll = LOADERS
    locked_out = {**AS_IN_THE_TALK, "variants": ["unsafe"], "patience_ns": KEPT_OUT_NS}
    let_in = {**AS_IN_THE_TALK, "variants": ["unsafe"]}
    teams = ({"threads": 2, "loops": python_loops(session)}, AS_IN_THE_POST)
    in_python = [{**IN_PYTHON, **team} for team in teams]
    both = [{"way": pydll, "teams": [locked_out]}, {"way": cdll, "teams": [let_in]}]
    every = [{"way": pydll, "teams": [{**AS_IN_THE_TALK, "variants": VARIANTS}]}]
    cases = []
    for label, counters, accounts, python in (
        (GIL, both, ["unsafe"], in_python),
        (FREE_THREADED, every, ["unsafe", "safe"], []),
    ):
        account = {"loader": pydll, "threads": CUSTOMERS, "attempts": ATTEMPTS, "cases": accounts}
        fixed = {"folder": FOLDER, "counters": counters, "account": account, "python": python}
        cases.append(Case.of(label, EXPERIMENTS, "trial", fixed=fixed))
    session.run("trials", cases, TRIALS[session.budget.name])
    return session.frame("trials", disturbed=True)


# [/trials]

# [kinds]
SLOTS, KIND_LOOPS = 300, 10_000


def kinds(session: Session) -> pd.DataFrame:
    """More kinds of shared state: share of wrong answers, by loader and kind."""
    fixed = {"folder": FOLDER, "slots": SLOTS, "loops": KIND_LOOPS}
    cases = [
        Case.of(label, EXPERIMENTS, "kinds", {"loader": loader}, fixed)
        for label in session.interpreters
        for loader in LOADERS
    ]
    return session.run("more kinds", cases, repeats(session))


# [/kinds]

# [borrowed]
BORROWED = {
    "PyList_GetItem (borrowed)": "first_borrowed",
    "PyList_GetItemRef (strong)": "first_strong",
    "PyDict_Next without a lock": "sum_unlocked",
    "PyDict_Next in a critical section": "sum_locked",
}
READS = 300_000
# It reads for less than a second: a corrupted heap that goes on for longer hangs.
HANG_S = 10


def borrowed(session: Session) -> pd.DataFrame:
    """References that nobody holds: processes that read through each function. They may die, or hang."""
    fixed = {"folder": FOLDER, "reads": READS}
    cases = [
        Case.of(label, EXPERIMENTS, "borrowed", {"function": function}, fixed, {"what": what}, timeout_s=HANG_S)
        for label in session.interpreters
        for what, function in BORROWED.items()
    ]
    return session.run("borrowed references", cases, session.budget.repeats, may_fail=True)


# [/borrowed]

# [remedies]
REMEDIES = (
    "no protection",
    "PyMutex",
    "atomic",
    "critical section",
    "sharded, 16 atomics",
    "per-thread state",
    "read in place",
    "read under a PyMutex",
    "read an immutable snapshot",
)
UNSAFE = ("no protection", "read in place")
AGAIN = "atomic, again"
BATCH_MS, TOGETHER_MS = 2, 5


def arms() -> list[Arm]:
    """Every remedy alone in a C loop, and a second copy of one for the A/A test."""
    names = {**{name: name for name in REMEDIES}, AGAIN: "atomic"}
    return [Arm.of(arm, ARMS, "remedy", {"folder": FOLDER, "name": name}) for arm, name in names.items()]


def remedies(session: Session) -> Record:
    """Time the remedies on one thread, with the GIL and without it. They are short, and so are their batches."""
    budget = session.budget
    shorter = dataclasses.replace(budget, batch_ms=min(BATCH_MS, budget.batch_ms), seconds=budget.seconds / 5)
    pair = [label for label in session.interpreters if label in (GIL, FREE_THREADED)]
    return session.time("remedies", arms(), pair, shorter)


def remedies_with_rivals(session: Session) -> pd.DataFrame:
    """Operations per second of two threads, and of twice as many as there are cores, without the GIL, by remedy."""
    threads = [2, 2 * session.machine["cores_usable"]]
    fixed = {"folder": FOLDER, "milliseconds": TOGETHER_MS, "threads": threads}
    cases = [Case.of(FREE_THREADED, EXPERIMENTS, "remedy_together", {"remedy": name}, fixed) for name in REMEDIES]
    return session.run("remedies with rivals", cases, session.budget.repeats)


# [/remedies]
