"""The numbers of the chapter "The boundary", by name: each module declares those of its records. The rules:
claims.toml, sentences.toml."""

from ffilab.judge.numbers import Declarations
from notebooks.boundary import beside_work, costs, inside, talk, tools

number = Declarations(*(module.number for module in (costs, talk, inside, tools, beside_work)))
