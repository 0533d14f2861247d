"""What is to be measured: arms, interpreters, restarts, blocks, and the seed of their order."""

import math
import secrets
from dataclasses import KW_ONLY, dataclass, field, replace

from ffilab.run.budget import Budget
from ffilab.run.errors import UserError

EMPTY = "empty loop"
# So begin the names of arms that are in a plan for its controls.
OURS = (EMPTY, "control")
MIN_BLOCKS = 4
# The controls of a run. STEPS_MORE is one per cent more instructions (tests/test_controls.py counts them).
STEPS, STEPS_MORE = 100, 101
APART, APART_AGAIN = "control, a process apart", "control, another process apart"
# What the arms of a reader's own code share: see `Arm.beside`.
YOURS = "yours"
# Pairs of controls on all interpreters together; and on each of them at least: the work of the first two is the same.
PAIRS, PAIRS_OF_EACH = 4, 2


@dataclass(frozen=True)
class Arm:
    """One thing to be timed: a statement and its setup, as in `timeit`.

    setup: run once in each process; what it assigns are fast locals of the timed loop. uses: source of functions,
    imports and constants, run before it. BUILT in any of these stands for the folder of what was built.
    group: arms of one group share a worker process. That cancels what a process
    brings along (address layout, hash seed); an arm that changes its process for
    good, such as an audit hook, needs a group of its own.
    interpreters: labels to which the arm is confined; empty for all.
    beside: a word that arms share which are compared: in each block they run next to each other.
    gil: switch the GIL on in a free-threaded build (PYTHON_GIL=1), as a module that does not declare itself GIL-free
    does. Arms with it need a group of their own.
    own_loop: the statement makes all passes itself, and is given their number as `loops`.
    file, function, arguments: for what takes more than a statement. `function(**arguments)` in `file` (a path below
    the repository) makes an object whose `timeit(loops)` returns ns. BUILT in an argument stands for the folder of
    what was built.
    """

    name: str
    statement: str = ""
    setup: str = ""
    uses: str = ""
    group: str = "shared"
    interpreters: tuple[str, ...] = ()
    beside: str = ""
    gil: bool = False
    _: KW_ONLY
    own_loop: bool = False
    file: str = ""
    function: str = ""
    arguments: dict = field(default_factory=dict)


def empty_loop() -> Arm:
    """The loop without anything in it: what every arm's time includes."""
    return Arm(EMPTY, "pass")


def control_pair(number: int) -> tuple[str, str]:
    """The names of one pair of controls: some work, and one per cent more of it."""
    return f"control {number}", f"control {number}, 1 % more work"


def controls(interpreters: int = 1) -> list[Arm]:
    """What a plan on so many interpreters times beside its own arms, on each of them.

    Pairs in one process: the same work twice (no difference may be found) and with one per cent more of it (this
    difference must be found). And the same work in two processes (no difference may be found).
    """
    pairs = range(1, max(PAIRS_OF_EACH, math.ceil(PAIRS / interpreters)) + 1)
    names = [(name, steps, "shared") for n in pairs for name, steps in zip(control_pair(n), (STEPS, STEPS_MORE))]
    names += [(APART, STEPS, "apart"), (APART_AGAIN, STEPS, "apart again")]
    return [
        Arm(name, "for _ in steps: pass", f"steps = range({steps})", group=group, beside="control")
        for name, steps, group in names
    ]


# Two pieces of work that do not differ: in one process, in two processes.
TWINS = ((control_pair(2)[0], control_pair(1)[0]), (APART_AGAIN, APART))


@dataclass(frozen=True)
class Plan:
    """A whole measurement. `interpreters` are labels such as 3.14t.

    pin: keep all workers of a restart on one core, chosen anew for each restart. Only one worker runs at a time,
    so they do not compete, and what slows the whole core slows all arms of a block alike. What shares the core does
    not: see neighbour.py. Not for arms that start threads.
    wall_s: if given, no restart begins after so many seconds, and nothing is measured again. It looks at the clock
    alone.
    kept: groups whose worker lives through all restarts and moves to the core of each: restarted in name only.
    """

    name: str
    arms: tuple[Arm, ...]
    interpreters: tuple[str, ...]
    restarts: int
    blocks: int
    batch_ns: float
    seed: int
    budget: str
    seconds: float
    pin: bool = True
    wall_s: float | None = None
    kept: tuple[str, ...] = ()

    def cells(self) -> list[tuple[str, Arm]]:
        """Every (interpreter label, arm) to be measured."""
        return [
            (i, arm) for i in self.interpreters for arm in self.arms if not arm.interpreters or i in arm.interpreters
        ]


def plan(
    name: str,
    arms,
    interpreters,
    budget: Budget,
    seed: int | None = None,
    with_controls: bool = True,
    controls_on: tuple[str, ...] = (),
    **further,
) -> Plan:
    """A plan with the limits of a budget. The seed is drawn afresh and recorded unless one is given.

    further: `pin`, `wall_s` and `kept`, as in Plan. Every group gets an empty loop of its own, as the loop's cost
    belongs to its process. with_controls: False only where the plan is an A/A test itself, and its wall time is
    compared.
    controls_on: labels to which the controls are confined; empty for all.
    """
    arms = list(arms)
    groups = dict.fromkeys((arm.group, arm.interpreters, arm.gil) for arm in arms)
    if with_controls:
        arms += [replace(arm, interpreters=controls_on) for arm in controls(max(1, len(controls_on or interpreters)))]
    for group, confined, gil in groups:
        title = EMPTY if group == "shared" else f"{EMPTY} ({group})"
        if title not in [arm.name for arm in arms]:
            arms.append(replace(empty_loop(), name=title, group=group, interpreters=confined, gil=gil))
    if len({arm.name for arm in arms}) != len(arms):
        raise ValueError("two arms have the same name")
    if not interpreters:
        raise UserError("No interpreter is set up to measure on: run `python3 ffilab/bootstrap.py kernels`.")
    made = Plan(
        name=name,
        arms=tuple(arms),
        interpreters=tuple(interpreters),
        restarts=budget.restarts,
        blocks=budget.blocks,
        batch_ns=budget.batch_ms * 1e6,
        seed=secrets.randbits(32) if seed is None else seed,
        budget=budget.name,
        seconds=budget.seconds,
        **further,
    )
    if made.wall_s is not None:
        return made
    # Blocks are fitted into the time, unless the run stops between restarts.
    restarts_s = len(made.cells()) * budget.batch_ms / 1e3 * budget.restarts
    return replace(made, blocks=min(budget.blocks, max(MIN_BLOCKS, int(budget.seconds / restarts_s))))
