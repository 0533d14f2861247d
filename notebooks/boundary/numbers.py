"""The numbers of the chapter "The boundary", by name. The rules: claims.toml, sentences.toml."""

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Counted, Estimate, Interval, Share
from ffilab.judge.numbers import Made, Makers, numbers_of
from ffilab.judge.processes import exact
from ffilab.judge.questions import OPEN, above
from ffilab.measure.instructions import Node
from ffilab.measure.plan import EMPTY
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as e
from notebooks.boundary import results
from notebooks.boundary.experiment import name
from notebooks.boundary.looks import COMPARED, WITHOUT_HAND_OVER

ORDER = "share of its links that the call tree shows"


def numbers(session: Session) -> Makers:
    return {
        name: make
        for some in (of_claims, of_times, of_order, of_trees, of_profiles, of_tools, of_work)
        for name, make in some(session).items()
    }


def of_claims(session: Session) -> Makers:
    """A10 and A11 rest on no timed plan: each number reads what it is made from, and nothing else."""
    made = {
        "share of the hand-off in a CDLL call": lambda: own_time(session, GIL, results.HAND_OFF),
        results.NEXT: lambda: results.next_bottleneck(session.observed("where the time goes, by process")),
        results.AS_RUN_LOCK: lambda: lock(session),
        results.BY_VECTORCALL: lambda: in_tree(
            session, "PyO3", lambda tree: results.leads(tree, results.INTERPRETER, results.VECTORCALL)
        ),
        results.MISRANKED: lambda: misranked(session),
    }
    for binding in results.PATHS:
        made[f"{binding}: {ORDER}"] = lambda binding=binding: in_tree(
            session, binding, lambda tree: results.links(tree, binding).met.mean()
        )
    for what, cells in results.as_run().items():
        made[what] = lambda cells=cells: results.ratio_as_run(results.single_calls(session.frame(e.PROGRAM)), *cells)
    for _, what, _, make in results.deciding():
        made[what] = lambda make=make: make(session.timed("claims"))
    return made


def own_time(session: Session, label: str, group: str) -> Estimate | str:
    """From the profiles of processes, each with one value. Instructions are no shares of time."""
    profiles, cell = session.observed("where the time goes, by process"), (label, "ctypes CDLL")
    reason = results.no_time(profiles, *cell)
    return reason or results.share(results.shares(results.groups(profiles, *cell), group))


def lock(session: Session) -> Estimate | str:
    talk = session.observed("the talk's loop, profiled")
    found = results.symbol(talk, "ctypes CDLL", *results.LOCK)
    return results.share(found) if len(found) else str(talk)


def misranked(session: Session) -> Estimate | str:
    wrong, among = results.misranked(session.frame(e.PROGRAM), session.timed("claims"))
    return Share(wrong.process.nunique(), among) if among else results.NONE_TOLD


def in_tree(session: Session, binding: str, look: Callable[[list[Node]], float]) -> Estimate | str:
    """What a recorded call tree shows of a binding."""
    trees = session.observed("call trees")
    if isinstance(trees, str):
        return trees
    return exact(look(results.nodes(trees[binding]))) if binding in trees else f"{binding} was not built"


def of_times(session: Session) -> Makers:
    """From the matrix, and from the plan of the pairs that decide."""
    made: Makers = {}

    def timed(what: str, make: Callable, *cells: tuple[str, str], plan: str = "matrix") -> None:
        """A number of these cells, if they were measured."""

        def of_cells() -> Made:
            record = session.timed(plan)
            return make(record, *cells) if all(record.has(*cell) for cell in cells) else None

        made[what] = of_cells

    def cell(binding: str, signature: str, label: str = GIL) -> tuple[str, str]:
        return label, name(binding, signature)

    for signature, binding in itertools.product(e.SIGNATURES, e.BINDINGS):
        here, there = cell(binding, signature), cell(binding, signature, FREE_THREADED)
        timed(f"{signature} through {binding}: ns", two_digits(statistics.per_call), here)
        over = two_digits(results.difference)
        timed(f"{signature} through {binding}: ns over our C, two digits", over, here, cell(e.FLOOR, signature))
        timed(f"{signature} through {binding}: over the floor, ns", results.difference, here, cell(e.FLOOR, signature))
        timed(f"{signature} through {binding}: {FREE_THREADED} / {GIL}", results.between, there, here)
        for label, arm in (here, there):
            timed(
                f"{signature} through {binding}: ns without the loop on {label}",
                two_digits(results.alone),
                (label, arm),
            )
    for binding in e.BINDINGS:
        buffers = [cell(binding, one) for one in ("1,000,000 doubles", "1,000 doubles")]
        timed(f"a million doubles / a thousand: {binding}", statistics.ratio, *buffers)
    timed(f"no-op: cffi API / {e.FLOOR} on {GIL}", statistics.ratio, cell("cffi API", "no-op"), cell(e.FLOOR, "no-op"))
    timed(f"empty loop on {GIL}", statistics.per_call, (GIL, EMPTY))
    timed(f"{e.INT} without the loop: dearest / cheapest", lambda record: results.widest(record, GIL)[2])
    without = cell("ctypes CDLL", e.ANSWER), cell(e.FLOOR, e.ANSWER)
    timed(f"{e.ANSWER} without the loop: ctypes CDLL / {e.FLOOR}", results.net_ratio, *without)
    for case in results.CASES:
        timed(f"cheapest / next: {case}", partial(results.first_two, case=case))
        for which, place in results.PLACE.items():
            timed(f"{which}, ns: {case}", partial(results.placed, case=case, place=place))
    for one in (e.INT, *e.TAXED):
        both = [cell(e.FLOOR, one, label) for label in (FREE_THREADED, GIL)]
        timed(f"{one} by hand: {FREE_THREADED} / {GIL}", results.between, *both, plan="claims")
    with_int = cell("ctypes CDLL", e.INT), cell(e.FLOOR, e.INT)
    timed("call with an int through CDLL over one by hand, ns", results.difference, *with_int, plan="claims")
    for what, part in (("an int", "argument"), ("the hand-over", "hand-over, int")):
        timed(f"{what} in a call through CDLL, ns", partial(results.part, what=part), plan="claims")
    buffers = [f"a million doubles / a thousand: {binding}" for binding in e.BINDINGS]
    made["a million doubles / a thousand: largest"] = partial(largest, session, buffers)
    errors = [f"{e.ERROR} through {binding}: over the floor, ns" for binding in ("nanobind", "pybind11", "PyO3")]
    for which, pick in (("dearest", max), ("cheapest", min)):
        made[f"{e.ERROR}, over the floor, ns: {which}"] = partial(extreme, session, errors, pick)
    made["largest time over our C"] = lambda: Counted(results.dearest_cell(session.timed("matrix"))[0])
    return made


def two_digits(make: Callable) -> Callable:
    """A maker whose interval has two digits, as prose takes it; the tables have more."""
    return lambda *given: make(*given).map(lambda ns: float(f"{ns:.2g}"))


def measured(session: Session, names: list[str]) -> list[Interval]:
    return [one.interval for name in names if (one := numbers_of(session)[name].estimate)]


def largest(session: Session, names: list[str]) -> Interval | None:
    """The largest of several numbers; of the bounds, too, the largest."""
    found = measured(session, names)
    return Interval(*(max(getattr(one, end) for one in found) for end in ("value", "low", "high"))) if found else None


def extreme(session: Session, names: list[str], pick: Callable) -> Interval | None:
    """The dearest or the cheapest of several, with its own interval; None if fewer than two are there."""
    found = measured(session, names)
    return pick(found, key=lambda interval: interval.value) if len(found) > 1 else None


def of_order(session: Session) -> Makers:
    """How many pairs of tools stand the other way round than for an int."""

    def of_kind(signature: str) -> Counted | None:
        found = session.once(changes)
        return Counted(found[signature]) if signature in found else None

    counts = {
        "kinds of call": len,
        "kinds of call in which pairs change places": lambda pairs: len(pairs) - pairs.count(0),
        "most pairs that change places": max,
    }
    made: Makers = {f"pairs that change places: {one}": partial(of_kind, one) for one in e.SIGNATURES}
    for what, count in counts.items():
        made[what] = lambda count=count: Counted(count([*session.once(changes).values()]))
    return made


def changes(session: Session) -> dict[str, int]:
    return results.order_changes(session.timed("matrix"), GIL)


def of_trees(session: Session) -> Makers:
    """What the call trees of ctypes and PyO3 count."""
    made: Makers = {}

    def seen(what: str, look: Callable[[list[Node]], float], binding: str = COMPARED[0]) -> None:
        made[what] = partial(in_tree, session, binding, look)

    def times() -> Counted | None:
        both = [numbers_of(session)[f"instructions of a call: {binding}"].estimate for binding in COMPARED]
        return Counted(both[0].interval.value / both[1].interval.value) if all(both) else None

    for binding in COMPARED:
        seen(f"instructions of a call: {binding}", lambda tree: tree[0].instructions, binding)
    made[f"instructions of a call: {' / '.join(COMPARED)}"] = times
    share = "share of the instructions of a call through ctypes"
    for what, pattern in {**results.PLACES, "from_param": "PyObject_CallOneArg"}.items():
        seen(f"{share}: {what}", lambda tree, pattern=pattern: results.below(tree, pattern))
    places = results.PLACES.values()
    seen(
        f"{share}: largest place less the next",
        lambda tree: np.diff(sorted(results.below(tree, p) for p in places))[-1],
    )
    return made


def of_profiles(session: Session) -> Makers:
    """Where a profiler found the time of a call."""
    title = "where the time goes, by process"

    def processes(label: str) -> Counted | str:
        profiles = session.observed(title)
        return results.no_time(profiles, label, "ctypes CDLL") or Counted(len(profiles[label]["ctypes CDLL"]))

    def libffi(grouping: str) -> Made:
        profiles = session.observed(title)
        found = results.contest(profiles, *WITHOUT_HAND_OVER)
        return results.no_time(profiles, *WITHOUT_HAND_OVER) or found.get(grouping, (None, None))[1]

    return {
        f"profiles of ctypes CDLL on {FREE_THREADED}": partial(processes, FREE_THREADED),
        "share of libffi in a CDLL call": partial(own_time, session, GIL, results.LIBFFI),
        f"share of the hand-off in a CDLL call on {FREE_THREADED}": partial(
            own_time, session, FREE_THREADED, results.HAND_OFF
        ),
        **{f"{results.NEXT}, {grouping}": partial(libffi, grouping) for grouping in results.GROUPINGS},
    }


def of_tools(session: Session) -> Makers:
    """What the tools let through, keep, and cost at the first use."""

    def answered(*bindings: str) -> Share | None:
        found = results.answers(session.once(rules), e.CONTRACTS[0])
        refused = [results.is_error(found[binding]) for binding in bindings if binding in found]
        return Share(refused.count(False), len(refused)) if refused else None

    def hit(what: str, method: str, *bindings: str) -> Share | None:
        runs = session.frame("one object, two threads")
        part = runs[(runs.method == method) & runs.binding.isin(bindings)]
        return Share(int((part[what] > 0).sum()), len(part)) if len(part) else None

    def elsewhere(binding: str) -> Counted | None:
        said = results.elsewhere(session.frame("another interpreter")).get(binding)
        return said and Counted(1 if said == "works" else 0 if results.is_error(said.partition(":")[0]) else -1)

    def first_use(make: Callable, *arguments) -> Made:
        return make(session.frame("import and first call"), *arguments)

    made: Makers = {f"ways that answer {e.CONTRACTS[0]}": partial(answered, *e.BINDINGS)}
    for binding in e.BINDINGS:
        made[f"{binding} answers {e.CONTRACTS[0]}"] = partial(answered, binding)
        made[f"second interpreter works (1), is refused (0), or ends (-1): {binding}"] = partial(elsewhere, binding)
    for what, method in itertools.product(("lost", "refused"), e.METHODS):
        made[f"processes with additions {what}, {method}"] = partial(hit, what, method, *e.BINDINGS)
        for binding in e.BINDINGS:
            made[f"processes with additions {what}, {method}: {binding}"] = partial(hit, what, method, binding)
    made["import of cffi's ABI mode: in line / out of line"] = partial(
        first_use, results.import_ratio, e.VARIANTS[e.OUT_OF_LINE], e.OUT_OF_LINE
    )
    made["first_call_ns: lazy / default"] = partial(first_use, results.linking_effect)
    return made


def rules(session: Session) -> pd.DataFrame:
    return results.contracts(session.frame("awkward arguments"))


def of_work(session: Session) -> Makers:
    """From the calls beside work in C."""

    def moved() -> Interval | None:
        """Of the changes of prices from that of the shortest work, as far as they show, the largest in size."""
        found = itertools.chain(*results.changes(session.once(prices)).values())
        told = [one for one in found if one.is_known and above(one, 0) != OPEN]
        most = max(told, key=lambda one: abs(one.value), default=None)
        return -most if most and most.value < 0 else most

    def reach(binding: str) -> Interval | None:
        found = results.threshold(session.once(prices), binding)
        return found and found.map(lambda ns: ns / 1000)

    made: Makers = {
        "largest change of a price with the work, in size, ns": moved,
        "longest work, in µs": lambda: Counted(max(session.once(prices).work_ns, default=0.0) / 1000),
    }
    for binding in e.WORKED:
        made[f"work from which the price is under 5%, in µs: {binding}"] = partial(reach, binding)
        made[f"work from which the price is under 5%, in µs, without bounds: {binding}"] = lambda binding=binding: (
            (found := reach(binding)) and Counted(found.value)
        )
    return made


def prices(session: Session) -> pd.DataFrame:
    return results.prices(session.timed("work"))
