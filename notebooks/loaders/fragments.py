"""What the sentences of the chapter "CDLL and PyDLL" name and no form can say: lists, and extremes of several numbers."""

from collections.abc import Callable
from functools import partial

from ffilab.judge import sentences
from ffilab.judge.controls import NEGLIGIBLE, off
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.questions import OPEN, YES, above, larger
from ffilab.judge.wording import listed, number, text
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.loaders import numbers, results
from notebooks.loaders.results import LOADERS

# The largest share of processes that "none so far" may leave open: that of the rule "occurs" in claims.toml.
RARE = 0.15


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    made = {
        "alarms": partial(alarms, session),
        "nearer": partial(nearer, session),
        "prediction-5": partial(hung, session),
    }
    for build, (label, _) in sentences.BUILDS.items():
        made[f"room-{build}"] = partial(room, session, label)
        made[f"extremes-{build}"] = partial(extremes, session, label)
        made[f"apart-{build}"] = partial(apart, session, label)
        made[f"farthest-{build}"] = partial(farthest, session, label)
        for what in ("difference", "ratio"):
            made[f"missed-{what}-{build}"] = partial(missed, session, label, what)
    return made


def alarms(session: Session) -> str:
    """The A/A tests of the chapter, and what an alarm does."""
    known = [twin.ratio for twin in results.twins(session.timed("calls")).values() if twin.ratio.is_known]
    if not known:
        return "The A/A test says nothing here: there are too few values for an interval."
    found = [ratio for ratio in known if above(ratio, 1) != OPEN]
    if not found:
        return f"No A/A test of this section, of {len(known)}, raised a false alarm."
    said = f"A/A tests of this run that raised a false alarm: {len(found)} of {len(known)}."
    if any(off(ratio, 1) > NEGLIGIBLE for ratio in found):
        return f"{said} The two copies differ by more than what is negligible: a number that could not bear as much is marked as withheld."
    return f"{said} The difference is smaller than what this book calls negligible, and no number is withheld for it."


def nearer(session: Session) -> str:
    """Which of two conditions is the published "no GIL" nearer to? The price of a call on the free-threaded build over that with
    the GIL: with the build's own GIL off, and on."""
    shares = results.shares_of_the_price(session.timed("calls"))
    off_, on = shares[FREE_THREADED], shares.get(results.SWITCHED)
    if on is None or not (off_.is_known and on.is_known):
        return "Here too little was measured with the GIL switched on to compare."
    told = (
        f"By the terminal, CDLL costs {results.PUBLISHED_SHARE:.2f} times as many nanoseconds on the free-threaded build as with the GIL. Here it is "
        f"{text(off_)} times with that build's GIL off, and {text(on)} times with it on"
    )
    farther = larger(off_.distance(results.PUBLISHED_SHARE), on.distance(results.PUBLISHED_SHARE))
    if farther == OPEN:
        return f"{told}. Which of the two the talk had cannot be told by that."
    return f"{told}: nearer to its GIL {'on' if farther == YES else 'off'}, by one run of the talk's."


def hung(session: Session) -> str:
    """Through which loader, in which build, did the handshake hang? And of which too few processes say nothing?"""
    shares: dict[str, Share] = {}
    for label, where in sentences.BUILDS.values():
        for loader in LOADERS:
            if share := numbers.ends(session, label, loader, "handshake", "deadlocks"):
                shares[f"{loader} {where}"] = share
    events = [name for name, share in shares.items() if share.events]
    open_ = [name for name, share in shares.items() if not share.events and not share.never(RARE)]
    said = (
        f"It hung through {' and through '.join(events)}."
        if events
        else "It hung through neither loader, in neither build."
    )
    return f"{said} Too few processes to call it rare: {', '.join(open_)}." if open_ else said


def of_label(session: Session, label: str) -> dict[str, Interval]:
    found = results.prices(session.timed("calls"))
    return {row.function: Interval.of(row) for row in found[found.interpreter == label].itertuples()}


def room(session: Session, label: str) -> str:
    """What the rule allows, in ns."""
    allowed = results.WITHIN * abs(of_label(session, label)["noop"].value)
    return number(allowed, allowed / 5)


def missed(session: Session, label: str, what: str) -> str:
    """From where to where noop's number misses the others."""
    found = results.misses(session.timed("calls"), label)[what]
    low, high = min(one.low for one in found.values()), max(one.high for one in found.values())
    allowed = results.WITHIN * abs(of_label(session, label)["noop"].value)
    return f"{number(low, allowed / 5)} to {number(high, allowed / 5)} ns"


def extremes(session: Session, label: str) -> str:
    prices = of_label(session, label)
    least, most = (pick(prices, key=lambda name: prices[name].value) for pick in (min, max))
    return f"from {text(prices[least], 'ns')} for {least} to {text(prices[most], 'ns')} for {most}"


def apart(session: Session, label: str) -> str:
    """The functions whose price certainly is another one than noop's."""
    found = results.misses(session.timed("calls"), label)["difference"]
    differ = [name for name, one in found.items() if above(one, 0) != OPEN]
    return f" For {listed(differ)} the price certainly is another one; why is not known." if differ else ""


def farthest(session: Session, label: str) -> str:
    """The function that noop's ratio misses by most."""
    found = results.misses(session.timed("calls"), label)["ratio"]
    return max(found, key=lambda name: abs(found[name].value))
