"""What the chapter "Measuring on a noisy machine" hands in to the ledger, from its records alone. Rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.ledger import Handed
from notebooks.measuring import results
from notebooks.measuring.experiment import ITSELF, TALK

SEPARATED = "share of processes in which all six pairs of the four bindings are called different"


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    itself = "share of A/A pairs that the talk's method calls significant"
    handed.put("A5", SEPARATED, lambda: results.all_separated(results.of_bindings(session.frame(TALK))))
    handed.put("A5", itself, lambda: results.share_significant(results.pairs(session.frame(ITSELF))))
    spreads = "spread of restarted processes over that of a kept one"
    handed.put("D7", spreads, lambda: results.restarted_over_kept(session.timed("copies")))
    return handed


def controls(session: Session) -> list[Control]:
    """Are the copies of one call alike? D7 rests on the same run."""
    return [
        Control("A/A of copies", f"{pair.slow[1]} / {pair.fast[1]} on {pair.slow[0]}", "copies", pair.estimate)
        for pair in results.copies_compared(session.timed("copies"))
    ]
