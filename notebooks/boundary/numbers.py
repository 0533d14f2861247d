"""The numbers of the chapter "The boundary", by name. The rules: claims.toml."""

from collections.abc import Callable

from ffilab.bench.session import Session
from ffilab.judge.estimates import Measurement, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import exact
from notebooks.boundary import results
from notebooks.boundary.experiment import PROFILED, PROGRAM

ORDER = "share of its links that the call tree shows"


def numbers(session: Session) -> Makers:
    """A10 and A11 rest on no timed plan: each number reads what it is made from, and nothing else."""
    made = {
        "share of the hand-off in a CDLL call": lambda: hand_off(session),
        results.NEXT: lambda: results.next_bottleneck(session.observed("where the time goes, by process")),
        results.AS_RUN_LOCK: lambda: lock(session),
        results.BY_VECTORCALL: lambda: in_tree(session, "PyO3", by_vectorcall),
        results.MISRANKED: lambda: misranked(session),
    }
    for binding in results.PATHS:
        made[f"{binding}: {ORDER}"] = lambda binding=binding: in_tree(session, binding, links_met)
    for name, cells in results.as_run().items():
        made[name] = lambda cells=cells: results.ratio_as_run(results.single_calls(session.frame(PROGRAM)), *cells)
    for _, name, _, make in results.deciding():
        made[name] = lambda make=make: make(session.timed("claims"))
    return made


def hand_off(session: Session) -> Measurement | str:
    """From the profiles of several processes, each with one value. Instructions are no shares of time."""
    profiles = session.observed("where the time goes, by process")
    taken, reason = results.groups(profiles, *PROFILED), results.no_time(profiles, *PROFILED)
    return reason or results.share(results.shares(taken, results.HAND_OFF))


def lock(session: Session) -> Measurement | str:
    talk = session.observed("the talk's loop, profiled")
    found = results.symbol(talk, "ctypes CDLL", *results.LOCK)
    return results.share(found) if len(found) else str(talk)


def misranked(session: Session) -> Measurement | str:
    wrong, among = results.misranked(session.frame(PROGRAM), session.timed("claims"))
    return Measurement(Share(wrong.process.nunique(), among), "share of processes") if among else results.NONE_TOLD


def links_met(tree: dict, binding: str) -> float:
    return results.links(results.nodes(tree), binding).met.mean()


def by_vectorcall(tree: dict, _) -> bool:
    return results.leads(results.nodes(tree), results.INTERPRETER, results.VECTORCALL)


def in_tree(session: Session, binding: str, look: Callable) -> Measurement | str:
    """What a recorded call tree shows of a binding."""
    trees = session.observed("call trees")
    if isinstance(trees, str):
        return trees
    return exact(look(trees[binding], binding), "share of links") if binding in trees else f"{binding} was not built"
