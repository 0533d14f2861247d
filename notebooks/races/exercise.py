"""The exercise of the chapter "Races": its self-check, in words. What it does with an answer: detection.py."""

from ffilab.judge.estimates import Share
from notebooks.races.detection import CLEAN, EXERCISE, RACE

# What the check of each exercise prints when it is solved.
SOLVED = {
    "safe-or-not": r"\A(.*: right; .*\n){6}\Z",
    "safe-tally": r"^Fast\.\n\Z",
}

# Far above the noise: counting into memory of one's own needs no lock in the loop.
GOAL = 5


SAFE, UNSAFE = "safe", "can go wrong"
# Situation: (the right answer, and why). The answers follow from the code; what a run shows is told beside them.
SITUATIONS = {
    "unsafe counter, PyDLL, with the GIL": (SAFE, "the call keeps the GIL, and no second thread can be in it"),
    "unsafe counter, CDLL, with the GIL": (UNSAFE, "the call releases the GIL, and a second thread can be in it"),
    "unsafe counter, PyDLL, without the GIL": (UNSAFE, "to be attached excludes nobody where there is no GIL"),
    "atomic counter, CDLL, without the GIL": (SAFE, "the addition is one step for all other threads"),
    "bank of atomic load and store, CDLL, with the GIL": (UNSAFE, "between the two steps another thread may act"),
    "bank of compare and exchange, CDLL, without the GIL": (SAFE, "it acts only if what it saw is still true"),
}


def check_choice(choice: dict[str, str], seen: dict[str, Share]) -> list[str]:
    """One line for each situation: is the answer right, why, and in how many runs of this page it went wrong."""
    lines = []
    for situation, (right, why) in SITUATIONS.items():
        given = choice.get(situation, "")
        if given not in (SAFE, UNSAFE):
            lines.append(f"{situation}: answer with {SAFE!r} or {UNSAFE!r}.")
            continue
        runs = seen[situation]
        verdict = "right" if given == right else "not right"
        lines.append(
            f"{situation}: {verdict}; {why}. It went wrong in {runs.events} of {runs.trials} runs of this page."
        )
    return lines


def racy_tally() -> str:
    """The source that the exercise starts with: a histogram with a race."""
    return (EXERCISE / "tally.c").read_text()


def check_tally(seen: dict) -> list[str]:
    """Does it compile, is it exact under stress, does ThreadSanitizer accept it, and is it fast? One line each."""
    if "compiler" in seen:
        return [f"It does not compile: {seen['compiler']}"]
    if "ended" in seen:
        return [f"Not correct: the stress run ended with {seen['ended']}. {seen['error']}".strip()]
    mine = seen["mine"]
    if mine["lost"]:
        return [f"Not correct: {mine['lost']:,} of {mine['bytes']:,} bytes were not counted."]
    lines = [f"Exact this time: all {mine['bytes']:,} bytes were counted."]
    if seen["sanitizer"] is None:
        lines.append("This compiler has no ThreadSanitizer, so that nobody looked for a race that did not happen.")
    else:
        found, report = seen["sanitizer"]["found"], seen["sanitizer"]["report"]
        if found == RACE:
            place = next((line.strip() for line in report.splitlines() if "#0" in line), "")
            return [*lines, f"Not correct: ThreadSanitizer found a data race, {place}"]
        lines.append("ThreadSanitizer found nothing." if found == CLEAN else f"ThreadSanitizer {found}.")
    naive = seen["mutex per byte"]
    lines.append(
        f"{mine['ns_per_byte']:.2f} ns a byte with {mine['threads']} threads; a mutex for each byte takes "
        f"{naive['ns_per_byte']:.2f}."
    )
    faster = naive["ns_per_byte"] / mine["ns_per_byte"]
    lines.append("Fast." if faster > GOAL else f"Not yet fast: aim at more than {GOAL} times the mutex for each byte.")
    return lines
