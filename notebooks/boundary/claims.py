"""What the chapter "The boundary" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.estimates import Measurement, Share
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from notebooks.boundary import results
from notebooks.boundary.experiment import PROFILED, PROGRAM

ORDER = "share of its links that the call tree shows"


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    # These rest on no timed plan, so they come before the one that all others rest on.
    hand_off(handed, session.observed("where the time goes, by process"), session.observed("the talk's loop, profiled"))
    call_paths(handed, session.observed("call trees"))
    runs = session.frame(PROGRAM)
    means = results.single_calls(runs)
    for claim, ratios in results.as_run().items():
        for name, cells in ratios.items():
            handed.put(claim, name, results.ratio_as_run(means, *cells))
    decisive = session.timed("claims")
    wrong, among = results.misranked(runs, decisive)
    share = Measurement(Share(wrong.process.nunique(), among), "share of processes") if among else results.NONE_TOLD
    handed.put("A1", results.MISRANKED, share)
    for row in results.decisive(decisive).itertuples():
        handed.put(row.claim, row.name, row.found)
    return handed


def hand_off(handed: Handed, profiles: dict | str, talk: dict | str) -> None:
    """A10, from the profiles of several processes, each with one value. Instructions are no shares of time."""
    taken, reason = results.groups(profiles, *PROFILED), results.no_time(profiles, *PROFILED)
    found = reason or results.share(results.shares(taken, results.HAND_OFF))
    handed.put("A10", "share of the hand-off in a CDLL call", found)
    handed.put("A10", results.NEXT, results.next_bottleneck(profiles))
    lock = results.symbol(talk, "ctypes CDLL", *results.LOCK)
    handed.put("A10", results.AS_RUN_LOCK, results.share(lock) if len(lock) else str(talk))


def call_paths(handed: Handed, trees: dict | str) -> None:
    """A11, from the recorded call trees."""

    def met(binding: str) -> float:
        return results.links(results.nodes(trees[binding]), binding).met.mean()

    def vectorcall(binding: str) -> bool:
        return results.leads(results.nodes(trees[binding]), results.INTERPRETER, results.VECTORCALL)

    asked = [(binding, f"{binding}: {ORDER}", met) for binding in results.PATHS]
    for binding, name, look in [*asked, ("PyO3", results.BY_VECTORCALL, vectorcall)]:
        if isinstance(trees, str):
            handed.put("A11", name, trees)
        else:
            found = exact(look(binding), "share of links") if binding in trees else f"{binding} was not built"
            handed.put("A11", name, found)
