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


# Items of a group by their place, from the largest number down.
BY_SIZE = {"largest": 0, "second": 1, "last": -1}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    """Those that a sentence names."""
    read = sentences.read_sentences(session.chapter)
    made = {"dearest cell": partial(dearest_cell, session)}
    for which, place in costs.PLACE.items():
        made |= {f"{which}: {case}": partial(tool, session, case, place) for case in costs.CASES}
    for group in {name.partition("/")[0] for name in read if "/" in name}:
        made[f"{group}/"] = partial(together, session, group)
        made[f"{group}/ by size"] = partial(all_by_size, session, group)
        made |= {f"{which} of {group}/": partial(by_place, session, group, place) for which, place in BY_SIZE.items()}
    taken = {name for sentence in read.values() for name in sentence.poured.values()}
    return {name: make for name, make in made.items() if f"@{name}" in taken}


def parts(session: Session, group: str) -> dict[str, str]:
    """What the parts of a group say, by item, in the order of their forms."""
    return {item: plain(said) for item, said in sentences.sentences_of(session).items_of(f"{group}/").items()}


def parts_by_size(session: Session, group: str) -> dict[str, str]:
    """What the parts of a group say, by item, from the largest number down."""
    said, read = parts(session, group), sentences.read_sentences(session.chapter)
    asked = {item: read[f"{group}/{item}"].questions[0].number for item in said}
    size = {item: numbers_of(session)[name].estimate.interval.value for item, name in asked.items()}
    return {item: said[item] for item in sorted(said, key=lambda item: -size[item])}


def together(session: Session, group: str) -> str:
    """What all parts say; items for which the same holds stand together."""
    return grouped(parts(session, group).values(), JOINED.get(group, "; "))


def all_by_size(session: Session, group: str) -> str:
    """What all parts say, as a list."""
    return listed([*parts_by_size(session, group).values()])


def by_place(session: Session, group: str, place: int) -> str:
    """The item at a place; empty if there are too few."""
    return "".join([*parts_by_size(session, group)][place:][:1])


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
