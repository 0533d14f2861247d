"""What all pages of the chapter make of rows of children."""

from collections.abc import Callable

import pandas as pd

from ffilab.judge.estimates import Share
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL

PAIR = (GIL, FREE_THREADED)
# What came after the pair, with the guards of PEP 788, and what came before.
NEWER = [label for label, one in BY_LABEL.items() if one.version > BY_LABEL[GIL].version]
OLDER = [label for label, one in BY_LABEL.items() if one.version < BY_LABEL[GIL].version]
# A child that never came to the point, or whose tool was not built, tried nothing.
NO_TRIAL = ("not at the point", "not here")


def trials(session: Session, title: str, **which) -> pd.DataFrame | None:
    """Children of an experiment that tried, disturbed or not; None if there are no records of it."""
    frame = session.frame(title, disturbed=True)
    if frame.empty:
        return None
    rows = chosen(frame, **which)
    return rows[~rows.outcome.isin(NO_TRIAL)]


def share_of(session: Session, title: str, event: Callable[[pd.DataFrame], pd.Series], **which) -> Share | None:
    """Children of an experiment for which `event(rows)` is true, among those that tried. An event counts, whatever else
    ran."""
    rows = trials(session, title, **which)
    return None if rows is None or rows.empty else Share(int(event(rows).sum()), len(rows))
