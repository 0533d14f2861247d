"""What the sentences of the chapter "The boundary" name and no form can say: tools by what holds for them, and by their
place.

A part of sentences.toml with the name "group/item" says "what holds for …|item": items for which the same holds stand
together.
"""

import re
from collections.abc import Callable
from functools import partial

from ffilab.judge import sentences
from ffilab.judge.numbers import numbers_of
from ffilab.judge.poured import grouped
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from notebooks.boundary import costs

# How what holds for several tools is joined to what holds for others.
JOINED = {"detour": ", "}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    """Those that a sentence names."""
    read = sentences.read_sentences(session.chapter)
    made = {"dearest cell": partial(dearest_cell, session)}
    for which, place in costs.PLACE.items():
        made |= {f"{which}: {case}": partial(tool, session, case, place) for case in costs.CASES}
    for group in {name.partition("/")[0] for name in read if "/" in name}:
        made |= of_group(session, group)
    taken = {name for sentence in read.values() for name in sentence.poured.values()}
    return {name: make for name, make in made.items() if f"@{name}" in taken}


def of_group(session: Session, group: str) -> dict[str, Callable[[], str]]:
    """What the parts of a group say: in the order of their forms, or from the largest number down; and items of it by
    their place, empty where there are too few."""

    def parts() -> dict[str, str]:
        return {item: plain(said) for item, said in sentences.sentences_of(session).items_of(f"{group}/").items()}

    def by_size() -> dict[str, str]:
        said, read = parts(), sentences.read_sentences(session.chapter)
        numbers = {item: numbers_of(session)[read[f"{group}/{item}"].questions[0].number] for item in said}
        order = sorted(said, key=lambda item: -numbers[item].estimate.interval.value)
        return {item: said[item] for item in order}

    return {
        f"{group}/": lambda: grouped(parts().values(), JOINED.get(group, "; ")),
        f"{group}/ by size": lambda: listed([*by_size().values()]),
        f"largest of {group}/": lambda: "".join([*by_size()][:1]),
        f"second of {group}/": lambda: "".join([*by_size()][1:2]),
        f"last of {group}/": lambda: "".join([*by_size()][-1:]),
    }


def tool(session: Session, case: str, place: int) -> str:
    """A tool by its place among those of a case."""
    return plain("".join(costs.cheapest(session.timed("matrix"), **costs.CASES[case])[place:][:1]))


def plain(said: str) -> str:
    """Names of tools as prose has them."""
    return re.sub(r"(?<!limited )\bC API\b", "hand-written C", said.replace("C API, limited", "the limited C API"))


def dearest_cell(session: Session) -> str:
    """The tool and the kind of call that take the most, against hand-written C."""
    _, binding, signature = costs.dearest_cell(session.timed("matrix"))
    return f"{binding}, “{signature}”"
