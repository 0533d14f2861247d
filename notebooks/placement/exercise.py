"""The exercises of the chapter "Code placement": their programs, and their self-checks."""

import pandas as pd

from ffilab.judge.selfcheck import answered, correct_then_fast
from ffilab.measure.session import Session
from notebooks.placement import counting, history, story
from notebooks.placement.story import AT

# [suspects]
# One is slower by its work, one by its place: it does more, or it is the commit that was blamed.
MORE_WORK = {
    "file": "operations.h",
    "find": "return (value + n) & 0xffff;",
    "replace": "return (value * 5 / 3 % 4099 + n) & 0xffff;",
}
SUSPECTS = {
    "before": {"commit": 0, "changes": []},
    "suspect 1": {"commit": 0, "changes": [MORE_WORK]},
    "suspect 2": {"commit": AT, "changes": []},
}
# [/suspects]
# Suspect: the right verdict, and why.
TRUTH = {
    "suspect 1": ("real", "it executes more instructions than before."),
    "suspect 2": ("placement", "it executes the same instructions as before."),
}

# More or less of the same work: a jump more or less here and there.
SAME_WORK = 0.02


def check_mending(session: Session, change: dict[str, str]) -> list[str]:
    """Is the slow commit with the reader's change as fast as the commit before it, and is its work the same? What to
    say."""
    versions = {"fast": (AT - 1, []), "slow": (AT, []), "mended": (AT, [change])}
    versions = {name: {"commit": commit, "changes": changes} for name, (commit, changes) in versions.items()}
    names = story.compiled(session, story.commits(session)[history.TRAP], versions)
    if wrong := faults(change, counting.table(story.counts(session, names))):
        return correct_then_fast(wrong, None)
    times = story.times(session, "my change", names, 2 * session.budget.repeats)
    return correct_then_fast([], history.ratio(times, "mended", "fast"), pair=("your version", "the commit before"))


def faults(change: dict[str, str], counts: pd.DataFrame | str) -> list[str]:
    """What is wrong with a change, from the instructions of the programs."""
    wrong = []
    if change["file"] == "report.h":
        wrong.append("the reports shall stay on pages of their own: change something else")
    if "hot" in change["replace"]:
        wrong.append("this is the page's own way: find another one")
    if not isinstance(counts, str):
        instructions = counts.set_index("program").instructions
        work = instructions["mended"] / instructions["slow"] - 1
        if abs(work) > SAME_WORK:
            more = f"{abs(work):.0%} {'more' if work > 0 else 'fewer'}"
            wrong.append(f"it executes {more} instructions: leave the work as it is")
    return wrong


def check_verdicts(verdicts: dict[str, str]) -> list[str]:
    """What to say, one line for each suspect."""
    return answered(verdicts, TRUTH, ("real", "placement"))
