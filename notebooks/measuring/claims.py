"""What the chapter "Measuring on a noisy machine" hands in to the ledger, from its records alone. Rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.statistics import Measurement
from notebooks.measuring import results


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    alarms = results.share_of_alarms(results.pairs_of_copies(session.frame("the talk's method against itself")))
    handed.put(
        "A5",
        "share of A/A pairs that the talk's method calls significant",
        Measurement(alarms, alarms.half_width, "share of pairs"),
    )
    handed.put(
        "D7",
        "spread between processes over the spread that noise within them explains",
        Measurement(results.between_over_within(session.timed("copies")), 0.0, "ratio of spreads"),
    )
    return handed
