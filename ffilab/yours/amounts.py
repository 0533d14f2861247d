"""Numbers with a unit, as people type them: 2%, 500ms, 1h."""

import click

from ffilab.run.errors import UserError


class Amount(click.ParamType):
    """A number with one of these units."""

    def __init__(self, name: str, like: str, units: dict[str, float]):
        self.name, self.like, self.units = name, like, units

    def convert(self, value, param, context):
        return self.read(value, param.opts[-1])

    def read(self, value: str, called: str) -> float:
        """The number that a text stands for. called: what a mistake is told of. Raises UserError."""
        word = str(value).strip()
        # The longest first: ms is no s.
        unit = max((unit for unit in self.units if word.endswith(unit)), key=len, default=None)
        try:
            if unit is None:
                raise ValueError
            amount = float(word.removesuffix(unit)) * self.units[unit]
        except ValueError:
            amount = -1.0
        if 0 <= amount < float("inf"):
            return amount
        raise UserError(f"{called} is {value!r}: say it as in {self.like}.")


# Not without its sign: 0.02 may mean 2 % or 0.02 %.
SHARE = Amount("N%", "1%", {"%": 0.01})
SECONDS = Amount("TIME", "60s, 2m or 1h", {"h": 3600, "m": 60, "s": 1, "ms": 0.001, "": 1})
