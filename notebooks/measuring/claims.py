"""What the chapter "Measuring on a noisy machine" hands in to the ledger, from its records alone. Rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.ledger import Handed
from notebooks.measuring import results


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    for name, title in (
        ("share of processes in which CDLL and PyDLL are called different", "the talk's method"),
        ("share of A/A pairs that the talk's method calls significant", "the talk's method against itself"),
    ):
        handed.put("A5", name, lambda title=title: results.share_significant(results.pairs(session.frame(title))))
    spreads = "spread of restarted processes over that of a kept one"
    handed.put("D7", spreads, lambda: results.restarted_over_kept(session.timed("copies")))
    return handed


def controls(session: Session) -> list[Control]:
    """Are the copies of one call alike? D7 rests on the same run."""
    return [
        Control("A/A of copies", f"{pair.slow[1]} / {pair.fast[1]} on {pair.slow[0]}", "copies", pair.estimate)
        for pair in results.copies_compared(session.timed("copies"))
    ]
