"""The exercise of the chapter "Code placement": one program, two that are slower, and its self-check."""

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
TRUTH = {"suspect 1": "real", "suspect 2": "placement"}


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
