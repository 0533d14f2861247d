"""The records of the page on who waits for whom: from rows to numbers. A child is one trial."""

from functools import partial
from itertools import product

from ffilab.judge.estimates import Interval, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import interval_of
from ffilab.measure.session import Session
from notebooks.outside.experiment import FORKS, GUARDS, HOWS, IN_SECTION, MAINS, MANNERS, WAYS, WORLD
from notebooks.outside.results import NEWER, OLDER, PAIR, share_of

# What the process says at its end of the thread that attached.
FATES = {"hangs": "hang", "came through": "come through", "terminated": "are terminated"}
# The last of FORKS, unless a reader adds another one.
DEFAULT = "the default"


def share(session: Session, title: str, column: str, value, **which) -> Share | None:
    """Children of an experiment whose `column` has this value; None if no child told it."""
    if column not in session.frame(title, disturbed=True):
        return None
    return share_of(session, title, lambda rows: rows[column] == value, **which)


def otherwise(session: Session, label: str) -> Share | None:
    """Children whose default start method is another than forkserver."""
    found = share(session, "fork", "method", "forkserver", how=DEFAULT, interpreter=label)
    return found and Share(found.trials - found.events, found.trials)


def typical(session: Session, title: str, column: str, **which) -> Interval | None:
    """Trimmed mean over the children, in the unit of the column."""
    frame = session.frame(title)
    return None if frame.empty else interval_of(frame, column, **which)


def numbers(session: Session) -> Makers:
    made: Makers = {}
    # By SIGSEGV, or by SIGABRT after a fatal error.
    killed = lambda rows: rows.outcome.str.startswith("killed")  # noqa: E731

    def count(name: str, title: str, column: str, value, **which) -> None:
        made[name] = partial(share, session, title, column, value, **which)

    def mean(name: str, title: str, column: str = "ms", **which) -> None:
        made[name] = partial(typical, session, title, column, **which)

    for label in PAIR:
        here = {"interpreter": label}
        for way, stop in product(WAYS, WORLD):
            of = {"way": way, "stop": stop, **here}
            count(f"children that hang: {way}, {stop}, {label}", "lock order", "outcome", "hangs", **of)
        for thread in MANNERS:
            of = {"thread": thread, **here}
            count(f"children that hang: {thread}, {label}", "shutdown", "outcome", "hangs", **of)
            count(f"children that end well: {thread}, {label}", "shutdown", "outcome", "ends", **of)
            made[f"children killed: {thread}, {label}"] = partial(share_of, session, "shutdown", killed, **of)
            for fate, what in FATES.items():
                count(f"threads that {what}: {thread}, {label}", "shutdown", "fate", fate, **of)
        for how in HOWS:
            of = {"how": how, **here}
            count(f"handlers run during the call: {how}, {label}", "signals", "outcome", "during the call", **of)
            count(f"handlers late: {how}, {label}", "signals", "late", True, **of)
            mean(f"ms until a handler runs: {how}, {label}", "signals", **of)
        for main in MAINS:
            of = {"main": main, **here}
            name = f"pending calls run while main is busy: {main}, {label}"
            count(name, "pending calls", "outcome", "while it lasts", **of)
            mean(f"ms until a pending call runs: {main}, {label}", "pending calls", **of)
        for how in FORKS:
            count(f"children that hang: {how}, {label}", "fork", "outcome", "hangs", how=how, **here)
        count(f"children that start with forkserver: {label}", "fork", "method", "forkserver", how=DEFAULT, **here)
        made[f"children that start otherwise than with forkserver: {label}"] = partial(otherwise, session, label)
        mean(f"ns of PyErr_CheckSignals: {label}", "price of a check", "ns", **here)
    for label, inside in product(PAIR, IN_SECTION[:2]):
        of = {"inside": inside, "interpreter": label}
        count(f"children that hang: in a section, {inside}, {label}", "critical sections", "outcome", "hangs", **of)
    for label, inside in product((*PAIR, *OLDER, *NEWER), IN_SECTION[2:]):
        of = {"inside": inside, "interpreter": label}
        count(f"children that lose counts: {inside}, {label}", "a section twice", "outcome", "loses counts", **of)
    for label in NEWER:
        of = {"thread": "a new state", "interpreter": label}
        count(f"threads that come through: a new state, {label}", "shutdown", "fate", "came through", **of)
    # Finalization did not wait: the process ended, and the thread was not through.
    late = lambda rows: (rows.outcome == "ends") & (rows.fate != "came through")  # noqa: E731
    for label, by in product(NEWER, GUARDS):
        of = {"by": by, "interpreter": label}
        # Of threads that had an answer.
        answered = {"fate": ("came through", "refused"), **of}
        count(f"threads that come through: {by}, {label}", "guards", "fate", "came through", **answered)
        count(f"children that hang: {by}, {label}", "guards", "outcome", "hangs", **of)
        made[f"threads that come too late: {by}, {label}"] = partial(share_of, session, "guards", late, **of)
    mended = {"way": WAYS[1:]}
    count("children that hang: detached, or a PyMutex", "lock order", "outcome", "hangs", **mended)
    return made
