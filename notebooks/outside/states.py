"""The records of the page on thread states, and the way in: from rows to numbers."""

from ffilab.judge.numbers import Makers
from ffilab.measure.session import Session


def numbers(session: Session) -> Makers:
    return {}
