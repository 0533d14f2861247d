"""What the sentences of the chapter "Critical sections" list, and no form can say."""

import math
from collections.abc import Callable
from functools import partial

from ffilab.judge.wording import capital, listed
from ffilab.measure.session import Session
from notebooks.critical_sections import numbers

# More cases than these need not be listed: they stand in the table.
MANY = 3


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    made = {f"gains-{group}": partial(gains, session, group) for group in numbers.COMPANY}
    return made | {
        "calibrated": lambda: capital("; ".join(f"{one.what}: {one.found}" for one in numbers.controls(session))),
        "lost-texts": lambda: listed([*numbers.by_gain(session, "texts")["less"]]),
        "gained-gil": lambda: listed([*numbers.by_gain(session, "objects-gil")["more"]]),
    }


def gains(session: Session, group: str) -> str:
    """`two threads do more than one in 2 of 3 cases (A; B), and less in 1 of 3 (C)`."""
    found = numbers.by_gain(session, group)
    n = sum(map(len, found.values()))
    if not n:
        return "nothing was measured"

    def cases(gain: str) -> str:
        names = found[gain]
        if len(names) == n > 1:
            return f"in all {n} cases"
        return f"in {len(names)} of {n} cases" + (f" ({'; '.join(names)})" if len(names) <= MANY else "")

    parts = [f"{gain} than one {cases(gain)}" for gain in ("more", "less") if found[gain]]
    if found["no more"]:
        most = max(rate.high for rate in found["no more"].values())
        parts.append(f"at most {math.ceil((most - 1) * 100 - 1e-9)} % more than one {cases('no more')}")
    said = [f"two threads do {', and '.join(parts)}"] if parts else []
    if found["open"]:
        said.append(f"it is too close to call {cases('open')}")
    return "; ".join(said)
