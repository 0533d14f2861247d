"""How long a run will take: its parts as they last took on this machine, else as they did on two slow cores.

What they took is kept beside the interpreters in the cache, as `seconds.json`.
"""

import contextlib
import json
import os

from ffilab.paths import NATIVE_OUT, cache
from ffilab.progress import minutes, say
from ffilab.provision import build, interpreters
from ffilab.provision.catalogue import Interpreter, Request

INTERPRETERS, NATIVE, LAYOUTS, CHAPTER = "interpreters", "native projects", "layouts", "chapter"
RENDERING, FIRST = "rendering", "rendering the first chapter"
# Seconds on two slow cores. Of native projects: for one interpreter, with its environment.
DEFAULTS = {
    NATIVE: 100,
    RENDERING: 25,
    **{f"{LAYOUTS} {budget}": seconds for budget, seconds in {"smoke": 5, "room": 12, "quick": 30, "full": 60}.items()},
    **{
        f"{CHAPTER} {budget}": seconds
        for budget, seconds in {"smoke": 20, "room": 80, "quick": 160, "full": 1_400}.items()
    },
}


def remembered() -> dict[str, float]:
    """Seconds that parts took on this machine when they were last done, by name."""
    try:
        found = json.loads((cache() / "seconds.json").read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {part: float(seconds) for part, seconds in known if type(seconds) in (int, float) and 0 <= seconds < 1e7}


def remember(part: str, seconds: float) -> None:
    """Keep what a part took, if the cache can be written: no run is lost for a forecast."""
    target = cache() / "seconds.json"
    fresh = target.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps({**remembered(), part: round(seconds, 1)}, indent=1))
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)


class Forecast:
    """What is still to be done, with the seconds that are expected of each part; `done` takes one off."""

    def __init__(self, parts: dict[str, float]):
        self._left = dict(parts)
        # Of the chapters so far, which tell how the others will go.
        self._expected = self._took = 0.0

    def done(self, part: str, seconds: float | None = None) -> float:
        """Take a part off, and return what was expected of it, 0 if it was not in the forecast.

        seconds: that it took, which is what the next run expects.
        """
        if part not in self._left:
            return 0.0
        expected = self._left.pop(part)
        if seconds is not None:
            remember(part, seconds)
            if part.startswith(CHAPTER):
                self._expected, self._took = self._expected + expected, self._took + seconds
        return expected

    def left(self) -> float:
        """Seconds."""
        pace = self._took / self._expected if self._expected else 1.0
        return sum(seconds * (pace if part.startswith(CHAPTER) else 1) for part, seconds in self._left.items())

    def announce(self) -> None:
        """Say how long all of it takes, and what."""
        groups = {}
        for part, seconds in self._left.items():
            name = "chapters" if part.startswith((CHAPTER, LAYOUTS)) else RENDERING if part == FIRST else part
            groups[name] = groups.get(name, 0) + seconds
        parts = ", ".join(f"{name} {about(seconds)}" for name, seconds in groups.items() if seconds)
        if self._left:
            say(f"  about {about(self.left())} in all: {parts}")

    def say_left(self, done: str) -> None:
        """Say what was done, and how long the rest takes, if anything is known of it."""
        if self._left:
            say(f"  {done}; about {about(self.left())} left")


def about(seconds: float) -> str:
    """An expectation in words, to ten seconds."""
    return minutes(round(seconds, -1))


def of(request: Request, corners: list[str], budget: str, early: bool) -> Forecast:
    """What a run that measures will take. An interpreter that is not at hand counts as one to be compiled.

    early: the book is rendered with its first chapter, too.
    """
    lacking, known = interpreters.not_at_hand(request), {**DEFAULTS, **remembered()}
    fresh = [one for one in request.required if not has_extensions(one)]
    # While the next interpreter is compiled, the native projects of those before it are built: one remains.
    remaining = min(1, len(fresh)) if lacking else len(fresh)
    parts = {
        INTERPRETERS: len(lacking) * build.expected_seconds(),
        NATIVE: remaining * known[NATIVE],
        f"{LAYOUTS} {budget}": known[f"{LAYOUTS} {budget}"],
    }
    for corner in corners:
        name = chapter(budget, corner)
        parts[name] = known.get(name, known[f"{CHAPTER} {budget}"])
    if early:
        parts[FIRST] = known[RENDERING]
    return Forecast({**parts, RENDERING: known[RENDERING]})


def chapter(budget: str, corner: str) -> str:
    """Name of a chapter as a part of a run."""
    return f"{CHAPTER} {budget} {corner}"


def has_extensions(interpreter: Interpreter) -> bool:
    """Was something built for this interpreter in this clone?"""
    return any(NATIVE_OUT.glob(f"*/{interpreter.name.replace('.', '')}-*"))
