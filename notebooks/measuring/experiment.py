"""What the chapter "Measuring on a noisy machine" measures (claims A5, D7). The page quotes all of it."""

import dataclasses

import pandas as pd

# [setting]
from notebooks.loaders.experiment import LIBRARY
from notebooks.loaders.experiment import call as call_of

from ffilab.measure import instructions, profile
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm, empty_loop
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, without_paths
from ffilab.setup.catalogue import FREE_THREADED, GIL

SPIN_ARMS = "native/measuring/arms.py"
TALK_METHOD = "native/measuring/talk_method.py"
STEPS = "native/measuring/steps.py"
# [/setting]

# [as the talk]
# Fresh processes for each question: a share near 1 needs few, one near 0.05 many.
PROCESSES, PAIRS = 60, 440
BINDINGS, LIBRARIES = ("ctypes CDLL", "cffi ABI", "pybind11", "PyO3"), f"{BUILT}/boundary"
TALK, ITSELF = "the talk's method", "the talk's method against itself"


def enough(session: Session, processes: int) -> int:
    """So many processes; in a smoke test a few."""
    return processes if session.budget.is_result else session.budget.repeats


def as_the_talk(session: Session) -> pd.DataFrame:
    """A5 as the talk ran it: samples of a call through each of four bindings, in one process. Then again, in fresh ones."""
    case = Case.of(GIL, TALK_METHOD, "four_bindings", fixed={"folder": LIBRARIES, "bindings": BINDINGS})
    return session.run(TALK, [case], enough(session, PROCESSES))


# [/as the talk]


# [against itself]
def against_itself(session: Session) -> pd.DataFrame:
    """The talk's method on two copies of one call, in fresh processes.

    In half of them the second copy is measured first.
    """
    fixed = {"library": LIBRARY, "function": "noop"}
    orders = [Case.of(GIL, TALK_METHOD, "copies", {"measured_first": number}, fixed) for number in (0, 1)]
    return session.run(ITSELF, orders, enough(session, PAIRS // 2))


# [/against itself]


# [steps in one process]
# Benchmarks of each kind; and processes that a restarted one starts.
BENCHMARKS, RESTARTED, OF_EACH = 100, 40, 8


def step(name: str, **further) -> Case:
    """One process of one step, on two copies of one call."""
    fixed = {"library": LIBRARY, "function": "noop", **further}
    return Case.of(GIL, STEPS, name, fixed=fixed, named={"step": name})


def in_one_process(session: Session) -> pd.DataFrame:
    """Steps 1 and 2: many benchmarks, each of them one process."""
    cases = [step("one_after_the_other"), step("interleaved", seed="{seed}")]
    return session.run("a benchmark of one process", cases, enough(session, BENCHMARKS))


# [/steps in one process]


# [steps, restarted]
def restarted(session: Session) -> pd.DataFrame:
    """Step 3: the same code as in step 2, in eight processes for each benchmark."""
    processes = enough(session, RESTARTED * OF_EACH)
    return session.run("a benchmark, restarted", [step("interleaved", seed="{seed}")], processes)


# [/steps, restarted]

# [collector]
ON = ", collector on"
# What is done in each loop: nothing that the collector looks at, and a container that it has to.
COLLECTED = {"a call": "f()", "a list of ten lists": "[[] for _ in range(10)]"}


def collected() -> list[Arm]:
    """The same work as timeit runs it, with the collector off and on, in a process of their own."""
    return [
        Arm.of(
            f"{what}{ON * on}",
            SPIN_ARMS,
            "statement",
            {"statement": statement, "collector": on},
            "collector",
            beside=what,
        )
        for what, statement in COLLECTED.items()
        for on in (False, True)
    ]


# [/collector]


# [copies]
COPIES = ("copy 1", "copy 2", "copy 3")
# Each in a process of its own that is kept through all restarts: restarted in name only.
KEPT, REFERENCE = "copy in a kept process", "reference in a kept process"


def arms() -> list[Arm]:
    """Copies of one call, PyDLL, the same call in the two processes that are kept, and the collector's arms."""

    def call(name, loader, group="shared"):
        return dataclasses.replace(call_of(loader, "noop"), name=name, group=group, beside="")

    kept = [call(name, "CDLL", name) for name in (KEPT, REFERENCE)]
    return [*(call(name, "CDLL") for name in COPIES), call("PyDLL", "PyDLL"), *kept, *collected()]


def copies(session: Session) -> Record:
    """Time the arms in as many short restarts as fit into the budget's time."""
    given = session.budget
    # Many short restarts, several with each layout: the spread between processes is what has to be averaged.
    budget = dataclasses.replace(
        given,
        restarts=10 * given.restarts,
        blocks=max(2, given.blocks // 8),
        batch_ms=given.batch_ms / 2.5,
    )
    return session.time("copies", arms(), [GIL], budget, kept=(KEPT, REFERENCE), wall_s=budget.seconds)


# [/copies]


# [instructions]
def counted() -> list[dict] | str:
    """Instructions per pass of the loop, for both loaders and for the empty loop; or why they cannot be counted here."""
    if reason := instructions.available():
        return reason
    chosen = {COPIES[0]: "CDLL", "PyDLL": "PyDLL", empty_loop().name: "empty loop"}
    found = instructions.per_call([GIL, FREE_THREADED], [arm for arm in [*arms(), empty_loop()] if arm.name in chosen])
    return [{"interpreter": label, "arm": chosen[arm], "instructions": n} for (label, arm), n in found.items()]


def instruction_counts(session: Session) -> list[dict] | str:
    """The second axis, on both builds."""
    return session.observe("instructions", counted)


# [/instructions]


# [profile]
def profiled(loops: int) -> list[dict] | str:
    """Where the time of a call through CDLL goes, by symbol, on both builds; or why that cannot be seen here."""
    try:
        return [{"interpreter": label, **profile.look(label, arms()[0], loops)} for label in (GIL, FREE_THREADED)]
    except UserError as error:
        return without_paths(str(error))


def time_spent(session: Session) -> list[dict] | str:
    """The third axis: a second or two of calls."""
    return session.observe("where the time goes", profiled, int(20_000_000 * min(1, session.budget.scale)))


# [/profile]
