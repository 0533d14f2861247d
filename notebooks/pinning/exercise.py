"""The exercises of the chapter "Where threads run": what pinning does here, and a function that hands out cores."""

from collections.abc import Callable

import pandas as pd

from ffilab.judge.estimates import Interval, known
from ffilab.judge.questions import NO, OPEN, YES, above
from ffilab.page.draw import text
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.pinning import results
from notebooks.pinning.experiment import APART, FREE, NATIVE, ONE_CORE, PYTHON

# By the label of an exercise: what the lines of its check look like once it is solved.
SOLVED = {
    "pinning-sides": r"\A(.*: right; .*\n){4}\Z",
    "pinning-places": r"^Correct: ",
}

# By question: interpreter, work, and the placement that is compared with "not pinned", two threads.
ASKED = {
    "a native call, a core each": (GIL, NATIVE, APART),
    "a native call, one core": (GIL, NATIVE, ONE_CORE),
    "Python with the GIL, one core": (GIL, PYTHON, ONE_CORE),
    "Python without the GIL, one core": (FREE_THREADED, PYTHON, ONE_CORE),
}
ANSWERS = ("faster", "slower", "cannot be told")


def over_free(question: str, speeds: pd.DataFrame) -> Interval | None:
    """Throughput of the placement that a question asks for over that of threads which are not pinned; None if it is not known."""
    label, work, placement = ASKED[question]
    found = results.over(speeds, "per_s", placement, FREE, interpreter=label, work=work, threads=2)
    return found.interval if found is not None and known(found.interval) else None


def told(question: str, speeds: pd.DataFrame) -> str:
    """What this run tells to a question: one of ANSWERS."""
    one = over_free(question, speeds)
    return "cannot be told" if one is None else dict(zip((YES, NO, OPEN), ANSWERS))[above(one, 1)]


def check_sides(said: dict[str, str], speeds: pd.DataFrame) -> list[str]:
    """Are two threads faster or slower there than where nothing is pinned? Against this run, one line for each question."""
    lines = []
    for question in ASKED:
        answer, one = said.get(question), over_free(question, speeds)
        if answer not in ANSWERS:
            lines.append(f"{question}: choose from {', '.join(ANSWERS)}.")
            continue
        found = "this run has no interval for it" if one is None else f"throughput over not pinned {text(one)}"
        lines.append(f"{question}: {'right' if answer == told(question, speeds) else 'not so'}; {found}.")
    return lines


def check_places(place: Callable[[int, set[int]], set[int] | None]) -> list[str]:
    """Does `place(number, allowed)` hand out cores as it should? Returns what to say, one line each; nothing is pinned."""
    for allowed in ({0, 1}, {2, 5, 7}, {3}, {8, 9, 10, 11}):
        given = [place(number, set(allowed)) for number in range(2 * len(allowed))]
        for number, cores in enumerate(given):
            if cores is not None and (not cores or not set(cores) <= allowed):
                return [f"Not correct: of {sorted(allowed)}, thread {number} is put on {sorted(cores)}."]
        first = [frozenset(cores or ()) for cores in given[: len(allowed)]]
        if len(allowed) > 1 and (len(set(first)) < len(first) or any(len(cores) != 1 for cores in first)):
            return [f"Not a core each: of {sorted(allowed)}, the first threads get {[sorted(one) for one in first]}."]
        if any(cores is not None for cores in given[len(allowed) :]):
            return [
                f"With more threads than {len(allowed)} cores, the further ones should stay free: return None for them."
            ]
    return [
        "Correct: a core each while there are cores, never one that is not allowed, and the rest is left to the system."
    ]
