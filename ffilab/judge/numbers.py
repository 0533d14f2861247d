"""The numbers of a chapter, by name: the only way out of its records.

A number that a claim or a sentence speaks of is a function under `@number(...)` in notebooks/<chapter>/numbers.py, or
in a module whose declarations that one takes over. It returns an estimate (an interval is one), or the reason why there
is none. A number is made when it is first asked for, and what is read of the session meanwhile is what it rests on.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from ffilab.judge import controls, groups
from ffilab.judge.chapter import numbers_module
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Estimate, Location
from ffilab.measure.reading import watched
from ffilab.measure.record import once
from ffilab.setup.catalogue import FREE_THREADED, GIL

NOT_MEASURED = "was not measured"
ONE_CORE = "there is one core here, and what runs at once takes two"
Made = Estimate | str | None
Makers = dict[str, Callable[[], Made]]
# What a parameter may be: its values by the words that stand for them in a number's name, or words that are the values.
Values = Mapping[str, object] | Iterable[str | int]


@dataclass(frozen=True)
class Declaration:
    """A function that makes a number, or one for each combination of values. See `Declarations`."""

    make: Callable[..., Made]
    name: str
    read: Callable[..., object]
    over: Mapping[str, Values | Callable[..., Values]]
    fixed: Mapping[str, object]
    two_cores: bool
    missing: str

    def makers(self, session) -> Iterator[tuple[str, Callable[[], Made]]]:
        """Each number's name, and what makes it of this session."""
        values = [values(session) if callable(values) else values for values in self.over.values()]
        of_word = [values if isinstance(values, Mapping) else dict(zip(values, values)) for values in values]
        for words in itertools.product(*of_word):
            given = dict(self.fixed)
            for parameter, word, of in zip(self.over, words, of_word):
                value = of[word]
                given |= value if isinstance(value, dict) else {parameter: value}
            yield in_words(self.name).format(**dict(zip(self.over, words))), partial(self._number, session, given)

    def _number(self, session, given: dict) -> Made:
        if self.two_cores and session.machine["cores_usable"] < 2:
            return ONE_CORE
        source = self.read(session)
        # A text in its place says why there is nothing to read.
        return source if isinstance(source, str) else self.make(source, **given) or self.missing


class Declarations:
    """The numbers that a module declares, with those of other modules (`parts`):

        number = Declarations()

        @number("share kept by {loader} on {where}", frame="counting thread", over={"loader": LOADERS, "where": WHERE})
        def share_kept(runs, loader, where): ...

    One function may make several: under several decorators, or `number("…", timed="calls", label=GIL)(price)`.
    """

    def __init__(self, *parts: "Declarations", missing: str = ""):
        # missing: why there is no number if a function returns nothing, in other words than "was not measured".
        self._missing = missing
        self._declared = [declaration for part in parts for declaration in part._declared]

    def __call__(
        self,
        name: str,
        *,
        timed: str = "",
        frame: str = "",
        seen: str = "",
        of: Callable[..., object] | None = None,
        two_cores: bool = False,
        over: Mapping[str, Values | Callable[..., Values]] | None = None,
        **fixed,
    ):
        """Declare a number, or one for each combination of values of `over`.

        name: as claims and sentences say it, with {parameter} for a word of `over`, and with {GIL} and {FREE_THREADED}.
        timed, frame, seen: the timed plan, the experiment, or what was seen under this title, that the function gets
        first; the session, without any. of: a function of the session, worked out once, whose value the function gets
        first. What is a text is the reason why there is no number.
        two_cores: whether it says something only where two threads, or two processes, can run at once.
        over: the values of parameters, by the words that stand for them; a function of the session may return them. A
        value that is a dictionary is handed in as keywords.
        fixed: further arguments.
        """

        def read(session):
            if of:
                return session.once(of)
            if seen:
                return session.observed(seen)
            if timed:
                return session.timed(timed)
            return session.frame(frame) if frame else session

        def declare(make):
            self._declared.append(Declaration(make, name, read, over or {}, fixed, two_cores, self._missing))
            return make

        return declare

    def makers(self, session) -> Makers:
        """What makes each number of this session, by name. Raises ValueError if two have one name."""
        made = [pair for declaration in self._declared for pair in declaration.makers(session)]
        if len(makers := dict(made)) < len(made):
            names = [name for name, _ in made]
            raise ValueError(f"two numbers have one name: {max(names, key=names.count)}")
        return makers


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
        self._made: dict[str, Number] = {}

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
            made, rests_on = watched(self.session, self._make[name])
            found = (made, "") if isinstance(made, Estimate) else (None, made or NOT_MEASURED)
            whole = Number(*found, rests_on)
            self._made[name] = self._of_sessions(name, whole)
        # Whoever asks for it rests on what it rests on.
        self.session.reads |= self._made[name].rests_on
        return self._made[name]

    def disturbed(self, name: str) -> str:
        """Return why no sentence tells this number: most of what it rests on stayed disturbed. Empty if it is told.
        Raises ValueError if there is no number of this name."""
        disturbed = controls.mostly_disturbed(self.session)
        return next((disturbed[source] for source in sorted(self[name].rests_on & set(disturbed))), "")

    def told(self, name: str) -> Number:
        """Return the number as a sentence tells it: without an estimate where it is disturbed."""
        why = self.disturbed(name)
        return replace(self[name], estimate=None, missing=why) if why else self[name]

    def _of_sessions(self, name: str, whole: Number) -> Number:
        """Processes of one session are not independent. Of timed plans `statistics.over_units` has seen to that, and
        events are counted."""
        if not self.session.earlier or whole.estimate is None:
            return whole
        estimate = whole.estimate
        if whole.rests_on & set(self.session.plans) or not isinstance(estimate, Location):
            return whole
        parts = [
            part.estimate for one, lost in self._sessions if not whole.rests_on & lost and (part := one[name]).estimate
        ]
        if parts and all(map(groups.is_whole, parts)):
            estimate = groups.combined(parts)
        estimate = replace(estimate, sessions=len(self._sessions))
        return replace(whole, estimate=estimate)

    @cached_property
    def _sessions(self) -> list[tuple["Numbers", set[str]]]:
        """Each session by itself, and the experiments of which it has lost most, but all together have not."""
        healed = {title for title in self.session.record.titles if not self.session.mostly_lost(title)}
        return [(numbers_of(one), {title for title in healed if one.mostly_lost(title)}) for one in self.session.each]


def every(session) -> list[str]:
    """The chapter pair, and the other interpreters of a session: what `over` may run over."""
    return list(dict.fromkeys((GIL, FREE_THREADED, *session.interpreters)))


@once
def numbers_of(session) -> Numbers:
    """The numbers of a session."""
    return Numbers(session, numbers_module(session.chapter).number.makers(session))
