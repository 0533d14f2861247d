"""What the sentences of the chapter "Measuring on a noisy machine" name and no form can say: p-values, lists of pairs,
and the contest."""

from collections.abc import Callable
from functools import partial

from ffilab.judge.estimates import LEVEL
from ffilab.judge.rules import YES, Side
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from notebooks.measuring import contest_results, numbers, results

# More often than copies are so far apart.
MORE_THAN_COPIES = Side("", direction="above", null=1 - LEVEL, interest=0.0)


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {
        "largest-p": lambda: results.p_value(numbers.first_process(session)["BH p"].max()),
        "talk-apart": lambda: results.p_value(results.APART),
        "winners": partial(winners, session),
        "beyond": partial(beyond, session),
        "noise": lambda: session.said("copies"),
        "contest": lambda: contest_results.in_words(contest_results.kept()),
    }


def winners(session: Session) -> str:
    """Whether processes agree on who is the faster one of a pair."""
    every = results.by_pair(session.once(numbers.bindings))
    pairs = zip(every.pair, every.faster)
    turned = {pair: faster for pair, faster in pairs if len(set(faster) - {"neither"}) > 1}
    if not turned:
        return "On the faster one of each pair all processes agree that name one."
    each = "; ".join(
        f"{pair}, {' and '.join(f'{name} in {n}' for name, n in counts.items())}" for pair, counts in turned.items()
    )
    return (
        f"On the faster one processes do not agree for {len(turned)} of {len(every)} pairs, by medians of one "
        f"process: {each}."
    )


def beyond(session: Session) -> str:
    """Which pairs lie further apart than 98 % of the copies do, in more processes than copies would."""
    reach = results.yardstick(session.once(numbers.copies))[LEVEL]
    found = results.beyond(session.once(numbers.bindings), reach)
    each = "; ".join(f"{pair}, {share}" for pair, share in found.items())
    told = f"Processes in which a pair lies further apart than {LEVEL:.0%} of the copies do ({reach:.1%}): {each}."
    within = [pair for pair, share in found.items() if MORE_THAN_COPIES.answer(share).verdict != YES]
    if not within:
        return f"{told} Each is certainly more than the 2 % of copies: more than the script alone does."
    return f"{told} What the table shows for {listed(within)} may be the script."
