"""The numbers of the chapter "Code placement", by name: each module declares those of its records; and its own
controls. The rules: claims.toml, sentences.toml."""

from ffilab.judge.controls import Control
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from notebooks.placement import geometry, history, lots
from notebooks.placement.lottery import BENCHMARKS, BUILDS

number = Declarations(geometry.number, history.number, lots.number)


def controls(session: Session) -> list[Control]:
    """The lottery's own A/A test: the linker's own order against itself. An alarm withholds what random orders are
    asked for."""
    runs = session.frame("relink lottery")
    return [
        Control(
            "A/A of the lottery",
            f"{benchmark}: the linker's own order / itself on {label}",
            "relink lottery",
            lots.itself(runs, benchmark=benchmark, interpreter=label),
        )
        for label in BUILDS
        if len(chosen(runs, interpreter=label, kind="copy"))
        for benchmark in BENCHMARKS
    ]
