"""The numbers of the chapter "Calls from outside", by name, a part for each page. The rules: claims.toml,
sentences.toml."""

from ffilab.judge.numbers import Makers
from ffilab.measure.session import Session
from notebooks.outside import crossings, states, waiting


def numbers(session: Session) -> Makers:
    return {name: make for part in (states, waiting, crossings) for name, make in part.numbers(session).items()}
