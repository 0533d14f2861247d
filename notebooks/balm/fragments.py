"""What the sentences of the chapter "GIL Balm" name and no form can say: CPythons and probes by their answers, and what costs most."""

from collections.abc import Callable
from functools import partial

from ffilab.judge.controls import unequal
from ffilab.judge.numbers import of
from ffilab.judge.questions import larger
from ffilab.judge.rules import NO, OPEN, YES, Equal, Side
from ffilab.judge.sentences import BUILDS, Poured
from ffilab.judge.wording import capital, listed, text
from ffilab.measure.session import Session
from notebooks.balm import numbers, results
from notebooks.balm.experiment import BEST, BLOCK, PAIR, POOLED

# Is a ratio above 1? And are two copies of the rule alike, or do they raise an alarm?
SIDE = Side("", direction="above", null=1.0, interest=0.0)
TWICE = Equal("", null=1.0, margin=results.ALARM)
WAYS = {POOLED: "his pooled strings", BLOCK: "his block strings", BEST: "our strings of pages and tuple"}
GAINS = {
    YES: "{way} strings are {gain} times as fast",
    NO: "{way} strings take {gain.inverse} times as long",
    OPEN: "{way} strings are not told apart from CPython's own ({gain})",
    None: "{way} strings could not be compared",
}
# What can be taken away from a block.
PARTS = {
    "Freeing strings one at a time": "block, GIL kept / block and tuple",
    "Taking a block, and not pages, beside such a tuple": "block and tuple / pages and tuple",
    "Giving each head cache lines of its own, in a loop that only writes": "loop that writes, bytes / near",
}
COSTS = {YES: "costs time", NO: "costs nothing, and saves time", OPEN: "is not seen to cost anything"}
COPIES = {
    NO: "On {where}, the two copies differ by more than {alarm:.0%}: what tells two copies apart would be taken for a gain, and a number of this "
    "experiment that could not bear as much is marked as withheld.",
    YES: "On {where}, the two copies differ by {alarm:.0%} at most.",
    OPEN: "On {where}, this run cannot tell whether the two copies differ by more than {alarm:.0%}: the test says nothing there.",
}
CONSEQUENCES = {
    "hash": ("a hash of 0", "it was equal and was not found"),
    "nul": ("no NUL at the end", "x == '12' was true and int(x) took it for no number"),
    "ascii": ("bytes that are not ASCII", "the process ended by it"),
    "borrowed": ("a borrowed reference", "the address held another string"),
    "interpreter": ("another interpreter", "the import was refused"),
    "thread": ("the maker's thread is gone", "strings outlived their thread with the right hash"),
    "exit": ("alive at exit", "the process ended well with strings alive"),
}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    def works():
        return session.frame(numbers.WORKS)

    return {
        "holds-on": partial(holds_on, session),
        "holds-where": partial(holds_where, session),
        "same-twice": partial(same_twice, session),
        **{f"what-bounds-{build}": partial(what_bounds, session, build) for build in BUILDS},
        **{f"misuse-{name}": partial(misused, session, *both) for name, both in CONSEQUENCES.items()},
        **{name: lambda find=find: listed(find()) for name, find in numbers.lists(session).items()},
        "both builds": lambda: listed(list(PAIR)),
        "name of the copied type": lambda: results.copied(works(), "type(x).__name__"),
        "copied type, pickled": lambda: results.copied(works(), "pickle.loads(pickle.dumps(x))").rstrip("."),
        "CPythons where an append of its own works": lambda: listed(
            [label for label, well in results.own_append(session.frame(numbers.LISTS)).items() if well]
        ),
        "the way that lost most": lambda: ", ".join(one.found for one in unequal("ways", session.timed("ways"))),
    }


def answered(session: Session, name: str, rule=SIDE) -> dict[str, str | None]:
    """What a rule answers to a number of the corrected experiment, by CPython; None where it was not measured."""
    found = {label: of(session)[f"{name}, one thread: {label}"] for label in session.timed("ways").interpreters}
    return {
        label: rule.answer(number).verdict if (number := one.measurement) and number.interval.is_known else None
        for label, one in found.items()
    }


def holds_where(session: Session) -> str:
    """The question of the page: where is each way faster than CPython's own strings?"""
    said = []
    for way, who in WAYS.items():
        answers = answered(session, f"new / {way}")
        faster = [label for label, answer in answers.items() if answer == YES]
        everywhere = {(YES,): "faster", (NO,): "slower"}.get(tuple(set(answers.values())))
        where = "every CPython" if everywhere or faster else "any CPython"
        said.append(
            f"{who} are {everywhere or 'not seen to be faster'} than CPython's own on {where} of this run"
            + (f", but on {listed(faster)}" if faster and not everywhere else "")
        )
    *his, ours = said
    return f"On one thread, all ways in one process, {'; '.join(his)}. Beside them, {ours}."


def holds_on(session: Session) -> str:
    """The same with its numbers, by CPython."""
    said = [holds_where(session)]
    for label in session.timed("ways").interpreters:
        parts = []
        for way in WAYS:
            gain = Poured(of(session)[f"new / {way}, one thread: {label}"])
            parts.append(GAINS[answered(session, f"new / {way}")[label]].format(way=way, gain=gain))
        said.append(f"On {label}: {', '.join(parts)}.")
    return " ".join(said)


def same_twice(session: Session) -> str:
    """The A/A test by CPython, and what an alarm does. A copy of which this run knows too little has not passed."""
    answers = answered(session, "new, again / new", TWICE)
    where = {answer: [label for label, one in answers.items() if one == answer] for answer in COPIES}
    said = [COPIES[one].format(where=listed(labels), alarm=results.ALARM) for one, labels in where.items() if labels]
    return " ".join(said) or "The A/A test says nothing here: there are too few values for an interval."


def what_bounds(session: Session, build: str) -> str:
    """What takes a block's time, by what was taken away: the time with it over the time without; the largest first."""
    label, where = BUILDS[build]
    found = {what: of(session)[f"{name}, one thread: {label}"].measurement for what, name in PARTS.items()}
    if not all(one and one.interval.is_known for one in found.values()):
        return f"{capital(where)}, what bounds the block is not known: not all of its parts were measured."
    said, ordered = [], sorted(found.items(), key=lambda part: -part[1].interval.value)
    for what, one in ordered:
        is_most = not said and YES in (larger(one.interval, other.interval) for other in found.values())
        answer = SIDE.answer(one).verdict
        costs = "costs most" if answer == YES and is_most else COSTS[answer]
        said.append(f"{what} {costs} ({text(one.interval)} times).")
    return f"{capital(where)}: {' '.join(said)}"


def misused(session: Session, misuse: str, what: str) -> str:
    """On which CPythons a misuse had its consequence."""
    happened = results.happened(session.frame(numbers.MISUSED), misuse)
    where = {
        answer: listed([label for label, one in happened.items() if one is answer]) for answer in (True, False, None)
    }
    forms = {True: "on {}, {}", False: "not so on {}", None: "no answer on {}, as the process ended"}
    parts = [forms[answer].format(labels, what) for answer, labels in where.items() if labels]
    return f"{capital('; '.join(parts))}." if parts else f"Whether {what} was not asked here."
