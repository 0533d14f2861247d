"""What the small machine shows: its programs by the clock and by counts, and whom its bisections blame."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from ffilab.judge import processes
from ffilab.judge.estimates import Counted, Estimate, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import exact, interval_of
from ffilab.measure.session import Session
from notebooks.placement.counting import table
from notebooks.placement.experiment import PROGRAMS
from notebooks.placement.lots import SAME_WORK, share
from notebooks.placement.lottery import STALLED
from notebooks.placement.story import CHANGE_CODE, HISTORIES

number = Declarations()
TRAP, NO_TRAP = HISTORIES
# Of bisections in which nothing but noise differs, the part that stands: of two new times of equal programs, the first
# on the fast side of the limit and the second on the slow one.
BY_A_COIN = 0.2
# What the small machine was built for, told by its counts, and by no clock.
AS_BUILT = {
    "the same instructions": lambda of: abs(of.instructions["slow"] / of.instructions["fast"] - 1) <= SAME_WORK,
    "twice the misses": lambda of: of.misses["slow"] >= 2 * of.misses["fast"],
    "misses gone with its hot functions together": lambda of: (
        of.misses["slow"] - of.misses["hot"] >= 0.9 * (of.misses["slow"] - of.misses["fast"])
    ),
}


# ---- the programs ----


number("ns of an operation: {program}", frame="the small machine", over={"program": [*PROGRAMS]}, column="ns")(
    interval_of
)


@number("slow / fast, a change that never runs", frame="the small machine", slow="slow", fast="fast")
@number("slow / hot functions together", frame="the small machine", slow="slow", fast="hot")
@number("hot functions together / fast", frame="the small machine", slow="hot", fast="fast")
@number("hot functions together, aligned / not aligned", frame="the small machine", slow="hot, aligned", fast="hot")
def ratio(times: pd.DataFrame, slow: str, fast: str) -> Estimate | None:
    """Time of one program over that of another, paired by round."""
    ordered = times.sort_values("round")
    return processes.ratio(*(ordered[ordered.program == name].ns.to_numpy() for name in (slow, fast)))


def counts(session: Session) -> pd.DataFrame | str:
    """Instructions and simulated misses by program; or why there are none."""
    rows = table(session.observed("instructions and misses of the small machine", list(PROGRAMS)))
    return rows if isinstance(rows, str) else rows.set_index("program")


@number("the small machine: {is_so} (simulated)", of=counts, over={"is_so": AS_BUILT})
def as_built(counts: pd.DataFrame, is_so) -> Counted:
    """1 if the counts of the programs are as the small machine was built for, 0 if not."""
    return exact(is_so(counts))


@number("{what}, slow / fast (simulated)", of=counts, over={"what": ("instructions", "misses")})
def counted_ratio(counts: pd.DataFrame, what: str) -> Counted | str:
    """Instructions, or misses, of the slow program over those of the fast one; or why there is no ratio."""
    column = counts[what]
    return exact(column["slow"] / column["fast"]) if column["fast"] else f"the fast program has no {what}"


@number("stalled front-end cycles, slow / fast (counted)", seen="hardware counters of the small machine")
def stalled(hardware: dict[str, list[dict]]) -> Estimate | str | None:
    """Stalled front-end cycles of the slow program over those of the fast one, run by run; or why there is no ratio."""
    if not all(STALLED in row for rows in hardware.values() for row in rows):
        return "this processor does not count stalled front-end cycles for us"
    return processes.ratio(*(np.array([row[STALLED] for row in hardware[name]]) for name in ("slow", "fast")))


# ---- the bisections ----


def of_history(bisections: pd.DataFrame, history: str) -> pd.DataFrame:
    """The bisections of one of the two histories."""
    return bisections[bisections.history == history]


# Those that blame the commit that moved the operations; and those whose blamed commit is slow again, and its parent
# fast again, when both are measured anew.
@number("share of bisections that blame the unrelated commit", frame="git bisect", history=TRAP, column="found")
@number("share of blamed commits that stand, without a trap", frame="git bisect", history=NO_TRAP, column="stands")
def share_of_bisections(bisections: pd.DataFrame, history: str, column: str) -> Share | str:
    """Bisections of a history of which a column is 1."""
    return share(of_history(bisections, history)[column] == 1)


def innocent(bisections: pd.DataFrame) -> pd.Series:
    """Whether a commit is blamed that changes no machine code: it cannot have changed the time."""
    return ~bisections.message.isin(CHANGE_CODE)


@number("bisections without a trap that blame a commit which changes no machine code", frame="git bisect")
def unrelated(bisections: pd.DataFrame) -> Share | str:
    """Bisections without a trap that blame a commit which changes no machine code."""
    return share(innocent(of_history(bisections, NO_TRAP)))


STANDS = "blamed commits that stand"


@number("commits blamed without a trap", frame="git bisect", count=lambda quiet: quiet.message.nunique())
@number(STANDS, frame="git bisect", count=lambda quiet: quiet.stands.sum())
@number(f"{STANDS} by noise alone", frame="git bisect", count=lambda quiet: BY_A_COIN * len(quiet))
@number(
    f"{STANDS} and change no machine code",
    frame="git bisect",
    count=lambda quiet: innocent(quiet[quiet.stands == 1]).sum(),
)
def without_trap(bisections: pd.DataFrame, count: Callable[[pd.DataFrame], float]) -> Counted:
    """What is counted of the bisections of the history without a trap."""
    return exact(count(of_history(bisections, NO_TRAP)))
