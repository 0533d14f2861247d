"""The numbers of the chapter "Measuring on a noisy machine", by name, and its own controls. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.numbers import Makers
from notebooks.measuring import results
from notebooks.measuring.experiment import ITSELF, TALK

SEPARATED = "share of processes in which all six pairs of the four bindings are called different"


def numbers(session: Session) -> Makers:
    return {
        SEPARATED: lambda: results.all_separated(results.of_bindings(session.frame(TALK))),
        "share of A/A pairs that the talk's method calls significant": lambda: results.share_significant(
            results.pairs(session.frame(ITSELF))
        ),
        "spread of restarted processes over that of a kept one": lambda: results.restarted_over_kept(
            session.timed("copies")
        ),
    }


def controls(session: Session) -> list[Control]:
    """Are the copies of one call alike? D7 rests on the same run."""
    return [
        Control("A/A of copies", f"{pair.slow[1]} / {pair.fast[1]} on {pair.slow[0]}", "copies", pair.estimate)
        for pair in results.copies_compared(session.timed("copies"))
    ]
