"""What a call costs beside work in C, by the timed plan "work": prices, and from which work on they are small."""

import itertools

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, Counted, Interval
from ffilab.judge.numbers import Declarations
from ffilab.judge.questions import OPEN, above
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL
from notebooks.boundary import experiment as e

number = Declarations()
TARGET_SHARE = 0.05


def prices(record: Record) -> pd.DataFrame:
    """What a call through each binding takes more than one in C, without the loop: a row for each length, with ns, and
    the growth of the price since the shortest length (`more`).

    The fixed price is the one of the shortest length.
    """
    # Each difference of prices is one of so many that are looked at: its interval is as much wider.
    rows, compared = [], len(e.WORKED) * (len(e.WORK) - 1)
    for binding in e.WORKED:
        first = None
        for n in e.WORK:
            cells = [(GIL, f"{binding}: work {n}"), (GIL, f"C: work {n}")]
            if not all(record.has(*cell) for cell in cells):
                continue
            alone, through = record.times(*cells[1]), record.times(*cells[0]) - record.times(GIL, EMPTY)
            price = medians(through - alone)
            first = price if first is None else first
            estimate = statistics.over_units(record, price)
            rows.append(
                {
                    "binding": binding,
                    "work_ns": float(np.nanmedian(alone)),
                    "price": estimate.at(),
                    "more": statistics.over_units(record, price - first).at(1 - (1 - LEVEL) / compared),
                    "n": estimate.n,
                }
            )
    return pd.DataFrame(rows, columns=["binding", "work_ns", "price", "more", "n"])


def threshold(prices: pd.DataFrame, binding: str) -> Interval | None:
    """From which time (ns) of the C function on the price is less than TARGET_SHARE of a call, at every longer one
    measured.

    Between the measured lengths the price is drawn as the figure draws it: straight, on a log axis. The bounds are
    where the curves through the ends of the intervals cross. A bound or value that lies beyond the longest length is
    infinite; one below the shortest is that length. None if the binding was not measured.
    """
    part = prices[prices.binding == binding]
    if part.empty:
        return None
    work = np.geomspace(part.work_ns.iloc[0], part.work_ns.iloc[-1], 4_000)
    limit = work * TARGET_SHARE / (1 - TARGET_SHARE)

    def crossing(end: str) -> float:
        drawn = [getattr(price, end) for price in part.price]
        above = np.interp(np.log(work), np.log(part.work_ns), drawn) >= limit
        if not above.any():
            return float(work[0])
        last = int(np.nonzero(above)[0][-1])
        return np.inf if last == len(work) - 1 else float(work[last + 1])

    return Interval(*map(crossing, ("value", "low", "high")))


# ---- the numbers ----


def of_session(session: Session) -> pd.DataFrame:
    """The prices of calls beside work in C of a session: see `prices`."""
    return prices(session.timed("work"))


@number("largest change of a price with the work, in size, ns", of=of_session)
def largest_change(prices: pd.DataFrame) -> Interval | None:
    """Of the changes of prices from that of the shortest work, as far as they show, the largest in size."""
    changes = itertools.chain.from_iterable(part.more.iloc[1:] for _, part in prices.groupby("binding", sort=False))
    shown = [change for change in changes if change.is_known and above(change, 0) != OPEN]
    most = max(shown, key=lambda change: abs(change.value), default=None)
    return -most if most and most.value < 0 else most


@number("longest work, in µs", of=of_session)
def longest(prices: pd.DataFrame) -> Counted:
    """The longest time of the C function that was measured, in µs."""
    return Counted(max(prices.work_ns, default=0.0) / 1000)


@number("work from which the price is under 5%, in µs: {binding}", of=of_session, over={"binding": e.WORKED})
def reach(prices: pd.DataFrame, binding: str) -> Interval | None:
    """From which time of the C function on the price is small, in µs; None if the binding was not measured."""
    limit = threshold(prices, binding)
    return limit and limit.map(lambda ns: ns / 1000)


@number(
    "work from which the price is under 5%, in µs, without bounds: {binding}", of=of_session, over={"binding": e.WORKED}
)
def bare_reach(prices: pd.DataFrame, binding: str) -> Counted | None:
    """From which time of the C function on the price is small, in µs, without its bounds, one of which may have no
    end."""
    limit = reach(prices, binding)
    return limit and Counted(limit.value)
