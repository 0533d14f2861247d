"""The exercise of the chapter "Races": its self-check, in words. What it does with an answer: detection.py."""

from notebooks.races.detection import CLEAN, EXERCISE, RACE

# Far above the noise: counting into memory of one's own needs no lock in the loop.
GOAL = 5


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
