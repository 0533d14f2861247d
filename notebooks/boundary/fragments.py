"""What the sentences of the chapter "The boundary" name and no form can say: tools by what holds for them, and their order.

A part of sentences.toml with the name "group/item" says "what holds for …|item": items for which the same holds stand together.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial

from ffilab.judge import sentences
from ffilab.judge.numbers import of
from ffilab.judge.poured import grouped
from ffilab.judge.rules import YES, Side
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from notebooks.boundary import numbers, results
from notebooks.boundary.experiment import CONTRACTS, DECLARED, INT, NONE_AS_A_POINTER, PROGRAM, VARIANTS

# What may come through a tool that knows a function by its name alone.
LET_THROUGH = {CONTRACTS[0]: "2³¹", CONTRACTS[1]: "1.5", CONTRACTS[2]: "an argument too many", CONTRACTS[9]: "a null"}
# By group, what stands between those of one kind and of another, and how those of one kind are joined.
JOINED = {"detour": (", ",), "forms": (" ",), **dict.fromkeys(VARIANTS, (", and ", "; ".join))}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    """Those that a sentence names."""
    read = sentences.read(session.chapter)
    made = {
        "let through": partial(let_through, session),
        "winners": partial(winners, session),
        **{f"order on {label}": partial(order, session, label) for label, _ in sentences.BUILDS.values()},
        **{call: partial(answers, session, call) for call in (*CONTRACTS, *NONE_AS_A_POINTER)},
    }
    for which, place in {"cheapest": 0, "next": 1, "dearest": -1}.items():
        made |= {f"{which}: {case}": partial(tool, session, case, place) for case in results.CASES}
    for grouping in results.GROUPINGS:
        made[f"other, {grouping}"] = lambda grouping=grouping: numbers.contest(session).get(grouping, ("",))[0]
    for group in {name.partition("/")[0] for name in read if "/" in name}:
        say, how = partial(parts, session, group), JOINED.get(group, ())
        made[f"{group}/"] = lambda say=say, how=how: grouped(say().values(), *how)
        made[f"{group}/ by size"] = lambda say=say: listed([*say(by_size=True).values()])
        made[f"largest of {group}/"] = lambda say=say: "".join([*say(by_size=True)][:1])
        made[f"second of {group}/"] = lambda say=say: "".join([*say(by_size=True)][1:2])
    taken = {name for sentence in read.values() for name in sentence.poured.values()}
    return {name: make for name, make in made.items() if f"@{name}" in taken}


def parts(session: Session, group: str, by_size: bool = False) -> dict[str, str]:
    """What the parts of a group say, by item: in the order of their forms, or from the largest number down."""
    found = {
        item: said.replace("C API, limited", "limited C API")
        for item, said in sentences.said(session).items_of(f"{group}/").items()
    }
    if not by_size:
        return found
    asked = {item: sentences.read(session.chapter)[f"{group}/{item}"].questions[0].number for item in found}
    size = {item: of(session)[name].measurement.interval.value for item, name in asked.items()}
    return {item: found[item] for item in sorted(found, key=lambda item: -size[item])}


def order(session: Session, label: str) -> str:
    """Tools from the cheapest to the dearest; ≈ joins two that this run does not tell apart."""
    ranked = results.ranked(session.timed("matrix"), label)
    said = ranked[0]
    for cheap, dear in itertools.pairwise(ranked):
        step = of(session)[f"{INT}: {dear} / {cheap} on {label}"].measurement
        told = Side("", direction="above", null=1.0, interest=0.0).answer(step).verdict == YES
        said += f" {'<' if told else '≈'} {dear}"
    return said


def tool(session: Session, case: str, place: int) -> str:
    """A tool by its place among those of a case."""
    tools = results.cheapest(session.timed("matrix"), case)
    return "".join(tools[place:][:1]).replace("C API, limited", "the limited C API")


def answers(session: Session, call: str) -> str:
    """What each tool makes of an awkward call: what some answer, who raises an exception, whose process ended."""
    found = results.answers(session.once(numbers.rules), call)
    refused = [binding for binding, answer in found.items() if results.is_error(answer)]
    ended = {binding: answer for binding, answer in found.items() if results.is_end(answer)}
    said = [
        f"… answer(s) {'with nothing' if answer == 'None' else answer}|{binding}"
        for binding, answer in found.items()
        if binding not in refused and binding not in ended
    ]
    if len(refused) > 2 and len(refused) < len(found):
        said.append(f"the other {len(refused)} raise an exception")
    else:
        said += [f"… raise(s) an exception|{binding}" for binding in refused]
    said += [f"the process of … ended ({answer})|{binding}" for binding, answer in ended.items()]
    return grouped(one.replace("C API, limited", "limited C API") for one in said)


def let_through(session: Session) -> str:
    """What the tools that load a library by its name let through."""
    rules = session.once(numbers.rules).set_index("call")
    said = []
    for binding in (one for one in rules if DECLARED[one].loads_at_run_time):
        through = [what for call, what in LET_THROUGH.items() if not results.is_error(rules.loc[call, binding])]
        said.append(f"{binding} lets {listed(through)} through" if through else f"{binding} refuses all")
    return "; ".join(said)


def winners(session: Session) -> str:
    """Where the talk's method called the wrong one of two the faster one, and in how many processes."""
    found, among = results.misranked(session.frame(PROGRAM), session.timed("claims"))
    return listed(
        [
            f"the same program here names {called} the winner of “{pair}” in {part.process.nunique()} of {among} processes (the smallest p is "
            f"about {f'10 to the power of {math.log10(part.p.min()):.0f}' if part.p.min() else 'too small for a float'}); the corrected "
            f"experiment says {right}{', as the talk printed' * (printed == right)}"
            for (pair, called, right, printed), part in found.groupby(
                ["pair", "called", "right", "printed"], sort=False
            )
        ]
    )
