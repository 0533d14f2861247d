"""The exercises of the chapter "Code placement": their programs, and their self-checks."""

import pandas as pd

from notebooks.placement.story import AT

# What the check of each exercise prints when it is solved.
SOLVED = {
    "placement-or-real": r"^suspect 1: right\.\nsuspect 2: right\.\n\Z",
    "mend-the-slow-commit": r"\AMended: ",
}

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
TRUTH = {"suspect 1": "real", "suspect 2": "placement"}

# [mending]
# More or less of the same work: a jump more or less here and there.
SAME_WORK = 0.02
# Of the misses that the commit brought.
GONE = 0.9


def mending(change: dict[str, str]) -> dict[str, dict]:
    """The slow commit, the one before it, and the slow one with a change of yours."""
    return {
        "slow": {"commit": AT, "changes": []},
        "fast": {"commit": AT - 1, "changes": []},
        "mended": {"commit": AT, "changes": [change] if change["replace"] != change["find"] else []},
    }


def check_mending(change: dict[str, str], counts: pd.DataFrame | str) -> list[str]:
    """What to say of a change that is to mend the slow commit, from instructions and misses of the three; one line each."""
    if change["replace"] == change["find"]:
        return ["Still open: this change changes nothing."]
    if change["file"] == "report.h":
        return ["Not this way: the reports shall stay on pages of their own. Change something else."]
    if "hot" in change["replace"]:
        return ["This is the page's own way. Find another one."]
    if isinstance(counts, str):
        return [f"This check counts with valgrind, and cannot: {counts}. Compare the times instead."]
    found = counts.set_index("program")
    work = found.instructions["mended"] / found.instructions["slow"] - 1
    if abs(work) > SAME_WORK:
        return [
            f"Not this way: it executes {abs(work):.0%} {'more' if work > 0 else 'fewer'} instructions. Leave the work as it is."
        ]
    gone = (found.misses["slow"] - found.misses["mended"]) / (found.misses["slow"] - found.misses["fast"])
    if gone < GONE:
        return [
            f"Not yet: the same work, and {max(0.0, gone):.0%} of the misses that the commit brought are gone. Most of them should be."
        ]
    return [f"Mended: the same work, and {gone:.0%} of the misses that the commit brought are gone."]


# [/mending]


def check_verdicts(verdicts: dict[str, str]) -> list[str]:
    """What to say, one line for each suspect."""
    lines = []
    for name, truth in TRUTH.items():
        said = verdicts.get(name, "")
        if said not in ("real", "placement"):
            lines.append(f'{name}: still open. Say "real" or "placement".')
        elif said == truth:
            lines.append(f"{name}: right.")
        else:
            why = "more instructions than" if truth == "real" else "the same instructions as"
            lines.append(f"{name}: no. It executes {why} before. Look at both columns again.")
    return lines
