"""The numbers of the chapter "Calls from outside", by name, a module for each page. The rules: claims.toml,
sentences.toml."""

from ffilab.judge.numbers import Declarations
from notebooks.outside import crossings, states, waiting
from notebooks.outside.states import controls

__all__ = ["controls", "number"]
number = Declarations(states.number, waiting.number, crossings.number)
