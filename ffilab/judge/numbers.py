"""The numbers of a chapter, by name: the only way out of its records.

`numbers(session)` in notebooks/<chapter>/numbers.py returns a dictionary: the name of each number that a claim or a
sentence speaks of, and the function that makes it. That returns an estimate (an interval is one), or the reason why
there is none. A number is made when it is first asked for, and what is read of the session meanwhile is what it rests
on.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ffilab.judge import groups
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Estimate, Location
from ffilab.measure.reading import watched
from ffilab.measure.record import once

NOT_MEASURED = "was not measured"
Made = Estimate | str | None
Makers = dict[str, Callable[[], Made]]
ONE_CORE = "there is one core here, and what runs at once takes two"


def at_once(session, make: Callable[[], Made]) -> Callable[[], Made]:
    """The maker of a number that says something only where two threads, or two processes, can run at once."""
    return lambda: ONE_CORE if session.machine["cores_usable"] < 2 else make()


@dataclass(frozen=True)
class Number:
    """An estimate, or why there is none. rests_on: the plans and titles that were read for it."""

    estimate: Estimate | None
    missing: str = ""
    rests_on: frozenset[str] = frozenset()


class Numbers:
    """All numbers of a session; {GIL} and {FREE_THREADED} in a name stand for the labels of the chapter pair.

    Several sessions (`make more`) are groups: a number that is made of processes alone is put together from what each
    session says.
    """

    def __init__(self, session, make: Makers):
        self.session = session
        self._make = {in_words(name): function for name, function in make.items()}
        if len(self._make) < len(make):
            raise ValueError(f"notebooks/{session.chapter}/numbers.py has two numbers of one name")
        self._made: dict[str, Number] = {}
        # Each session by itself, and the experiments of which it has lost most, but all together have not.
        self._each: list[tuple[Numbers, set[str]]] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __contains__(self, name: str) -> bool:
        return in_words(name) in self._make

    def __getitem__(self, name: str) -> Number:
        """Raises ValueError if there is no number of this name."""
        name = in_words(name)
        if name not in self._make:
            raise ValueError(f"notebooks/{self.session.chapter}/numbers.py has no number {name!r}")
        if name not in self._made:
            self._made[name] = self._of_sessions(name, self._alone(name))
        # Whoever asks for it rests on what it rests on.
        self.session.reads |= self._made[name].rests_on
        return self._made[name]

    def _alone(self, name: str) -> Number:
        made, rests_on = watched(self.session, self._make[name])
        if made is None or isinstance(made, str):
            return Number(None, made or NOT_MEASURED, rests_on)
        return Number(made, "", rests_on)

    def _of_sessions(self, name: str, whole: Number) -> Number:
        """Processes of one session are not independent. Of timed plans `statistics.over_units` has seen to that, and
        events are counted."""
        if not self.session.earlier or whole.estimate is None:
            return whole
        estimate = whole.estimate
        if whole.rests_on & set(self.session.plans) or not isinstance(estimate, Location):
            return whole
        parts = [
            part.estimate
            for one, lost in self._sessions()
            if not whole.rests_on & lost and (part := one[name]).estimate
        ]
        if parts and all(map(groups.is_whole, parts)):
            estimate = groups.combined(parts)
        estimate = replace(estimate, sessions=len(self._sessions()))
        return replace(whole, estimate=estimate)

    def _sessions(self) -> list[tuple["Numbers", set[str]]]:
        if self._each is None:
            titles = {line["title"] for line in self.session.record.experiments}
            healed = {title for title in titles if not self.session.mostly_lost(title)}
            self._each = [
                (numbers_of(one), {title for title in healed if one.mostly_lost(title)}) for one in self.session.each
            ]
        return self._each


@once
def numbers_of(session) -> Numbers:
    """The numbers of a session."""
    chapter = importlib.import_module(f"notebooks.{session.chapter}.numbers")
    return Numbers(session, chapter.numbers(session))
