"""The exercise of the chapter "Measuring on a noisy machine": three small benchmarks, each with one flaw."""

FLAWS = {
    "A": "The two functions run one after the other; whatever changes in between counts as a difference.",
    "B": "A thousand timings of one process are treated as a thousand independent values.",
    "C": "Each timing holds one call, which is of the size of the clock's step and the wrapper.",
}
KEYWORDS = {"A": "order", "B": "restart", "C": "batch"}


def check_flaws(answers: dict[str, str]) -> list[str]:
    """The self-check: for A, B and C one remedy out of `order`, `restart`, `batch`. Returns one line for each."""
    lines = []
    for name, remedy in KEYWORDS.items():
        given = answers.get(name)
        if not given:
            lines.append(f"{name}: still open.")
        elif given not in KEYWORDS.values():
            lines.append(f"{name}: choose one of {', '.join(sorted(KEYWORDS.values()))}.")
        else:
            lines.append(f"{name}: {'right. ' + FLAWS[name] if given == remedy else 'not this one.'}")
    return lines
