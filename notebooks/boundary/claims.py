"""What the chapter "The boundary" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from notebooks.boundary import results
from notebooks.boundary.experiment import PROFILED

ORDER = "share of its links that the call tree shows"


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    # These rest on no timed plan, so they come before the one that all others rest on.
    hand_off(handed, session.observed("where the time goes, by process"))
    call_paths(handed, session.observed("call trees"))
    for row in results.decisive(session.timed("claims")).itertuples():
        handed.put(row.claim, row.name, row.found)
    return handed


def hand_off(handed: Handed, profiles: dict | str) -> None:
    """A10, from the profiles of several processes, each with one value. Instructions are no shares of time."""
    looks = results.groups(profiles, *PROFILED)
    reason = results.no_time(profiles, *PROFILED)
    hand_off, libffi = results.HAND_OFF, results.LIBFFI
    for name, part, whole in (
        ("share of the hand-off in a CDLL call", hand_off, ()),
        ("hand-off among hand-off and libffi", hand_off, (hand_off, libffi)),
        ("libffi among libffi and the largest of the others", libffi, (libffi, results.largest_other(looks))),
    ):
        handed.put("A10", name, reason or results.share(results.shares(looks, part, *whole)))


def call_paths(handed: Handed, trees: dict | str) -> None:
    """A11, from the recorded call trees."""
    for binding in results.PATHS:
        name = f"{binding}: {ORDER}"
        if isinstance(trees, str):
            handed.put("A11", name, trees)
        elif binding in trees:
            found = results.links(results.nodes(trees[binding]), binding)
            handed.put("A11", name, exact(found.met.mean(), "share of links"))
        else:
            handed.put("A11", name, f"{binding} was not built")
