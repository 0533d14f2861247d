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
from notebooks.boundary import results

# How what holds for several tools is joined to what holds for others.
JOINED = {"detour": ", "}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    """Those that a sentence names."""
    read = sentences.read_sentences(session.chapter)
    made: dict[str, Callable[[], str]] = {"dearest cell": partial(dearest_cell, session)}
    for which, place in results.PLACE.items():
        made |= {f"{which}: {case}": partial(tool, session, case, place) for case in results.CASES}
    for group in {name.partition("/")[0] for name in read if "/" in name}:
        say, how = partial(parts, session, group), JOINED.get(group, "; ")
        made[f"{group}/"] = lambda say=say, how=how: grouped(say().values(), how)
        made[f"{group}/ by size"] = lambda say=say: listed([*say(by_size=True).values()])
        made[f"largest of {group}/"] = lambda say=say: "".join([*say(by_size=True)][:1])
        made[f"last of {group}/"] = lambda say=say: "".join([*say(by_size=True)][-1:])
        made[f"second of {group}/"] = lambda say=say: "".join([*say(by_size=True)][1:2])
    taken = {name for sentence in read.values() for name in sentence.poured.values()}
    return {name: make for name, make in made.items() if f"@{name}" in taken}


def parts(session: Session, group: str, by_size: bool = False) -> dict[str, str]:
    """What the parts of a group say, by item: in the order of their forms, or from the largest number down."""
    found = {item: plain(said) for item, said in sentences.sentences_of(session).items_of(f"{group}/").items()}
    if not by_size:
        return found
    asked = {item: sentences.read_sentences(session.chapter)[f"{group}/{item}"].questions[0].number for item in found}
    size = {item: numbers_of(session)[name].estimate.interval.value for item, name in asked.items()}
    return {item: found[item] for item in sorted(found, key=lambda item: -size[item])}


def tool(session: Session, case: str, place: int) -> str:
    """A tool by its place among those of a case."""
    return plain("".join(results.cheapest(session.timed("matrix"), case)[place:][:1]))


def plain(said: str) -> str:
    """Names of tools as prose has them."""
    return re.sub(r"(?<!limited )\bC API\b", "hand-written C", said.replace("C API, limited", "the limited C API"))


def dearest_cell(session: Session) -> str:
    """The tool and the kind of call that take the most, against hand-written C."""
    _, binding, signature = results.dearest_cell(session.timed("matrix"))
    return f"{binding}, “{signature}”"
