"""The records of the page on who waits for whom: from rows to numbers."""

from ffilab.judge.numbers import Makers
from ffilab.measure.session import Session


def numbers(session: Session) -> Makers:
    return {}
