"""The numbers of the chapter "The boundary", by name. The rules: claims.toml, sentences.toml."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Counted, Interval, Measurement, Share
from ffilab.judge.numbers import Made, Makers, of
from ffilab.judge.processes import exact
from ffilab.judge.questions import OPEN, above
from ffilab.measure.instructions import Node
from ffilab.measure.plan import EMPTY
from ffilab.measure.session import Session
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.boundary import results
from notebooks.boundary.experiment import (
    ANSWER,
    BINDINGS,
    CONTRACTS,
    ERROR,
    FLOOR,
    INT,
    METHODS,
    OF_VARIANTS,
    OUT_OF_LINE,
    PROGRAM,
    SIGNATURES,
    TALK,
    TAXED,
    VARIANTS,
    WORKED,
    name,
)
from notebooks.boundary.looks import COMPARED, WITHOUT_HAND_OVER

ORDER = "share of its links that the call tree shows"


def numbers(session: Session) -> Makers:
    return {
        name: make
        for some in (of_claims, of_times, of_order, of_program, of_trees, of_profiles, of_tools, of_work)
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
        made[what] = lambda cells=cells: results.ratio_as_run(results.single_calls(session.frame(PROGRAM)), *cells)
    for _, what, _, make in results.deciding():
        made[what] = lambda make=make: make(session.timed("claims"))
    return made


def own_time(session: Session, label: str, group: str) -> Measurement | str:
    """From the profiles of processes, each with one value. Instructions are no shares of time."""
    profiles, cell = session.observed("where the time goes, by process"), (label, "ctypes CDLL")
    reason = results.no_time(profiles, *cell)
    return reason or results.share(results.shares(results.groups(profiles, *cell), group))


def lock(session: Session) -> Measurement | str:
    talk = session.observed("the talk's loop, profiled")
    found = results.symbol(talk, "ctypes CDLL", *results.LOCK)
    return results.share(found) if len(found) else str(talk)


def misranked(session: Session) -> Measurement | str:
    wrong, among = results.misranked(session.frame(PROGRAM), session.timed("claims"))
    return Measurement(Share(wrong.process.nunique(), among), "share of processes") if among else results.NONE_TOLD


def in_tree(session: Session, binding: str, look: Callable[[list[Node]], float]) -> Measurement | str:
    """What a recorded call tree shows of a binding."""
    trees = session.observed("call trees")
    if isinstance(trees, str):
        return trees
    return (
        exact(look(results.nodes(trees[binding])), "share of links") if binding in trees else f"{binding} was not built"
    )


def extremes(session: Session, what: str, names: Iterable[str]) -> Makers:
    """The smallest and the largest of several numbers; of those, too, the bounds are the smallest and the largest."""

    def at(pick: Callable) -> Interval | None:
        measured = [one for name in names if (one := of(session)[name].measurement)]
        known = [one.interval for one in measured if one.interval.is_known]
        ends = ("value", "low", "high")
        return Interval(*(pick(getattr(one, end) for one in known) for end in ends)) if known else None

    names = list(names)
    return {f"{what}: smallest": partial(at, min), f"{what}: largest": partial(at, max)}


def ends(session: Session, what: str, names: list[str]) -> Makers:
    """The dearest and the cheapest of several numbers, each with its own interval; None if fewer than two are there."""

    def at(pick: Callable) -> Interval | None:
        found = [one.interval for name in names if (one := of(session)[name].measurement)]
        return pick(found, key=lambda interval: interval.value) if len(found) > 1 else None

    return {f"{what}: cheapest": partial(at, min), f"{what}: dearest": partial(at, max)}


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

    for signature, binding in itertools.product(SIGNATURES, BINDINGS):
        here, there = cell(binding, signature), cell(binding, signature, FREE_THREADED)
        timed(f"{signature} through {binding}: over the floor, ns", results.difference, here, cell(FLOOR, signature))
        timed(f"{signature} through {binding}: {FREE_THREADED} / {GIL}", results.between, there, here)
    for binding in BINDINGS:
        buffers = [cell(binding, one) for one in ("1,000,000 doubles", "1,000 doubles")]
        timed(f"a million doubles / a thousand: {binding}", statistics.ratio, *buffers)
    for label, both in itertools.product((GIL, FREE_THREADED), itertools.permutations(BINDINGS, 2)):
        timed(f"{INT}: {' / '.join(both)} on {label}", statistics.ratio, *(cell(one, INT, label) for one in both))
    timed(f"no-op: cffi API / {FLOOR} on {GIL}", statistics.ratio, cell("cffi API", "no-op"), cell(FLOOR, "no-op"))
    for form, binding in VARIANTS.items():
        others = f"{form} / its form in the matrix"
        names = {f"{one}: {others} on {label}": (one, label) for label in BY_LABEL for one in OF_VARIANTS}
        for what, where in names.items():
            timed(what, statistics.ratio, cell(form, *where), cell(binding, *where))
        made |= extremes(session, others, names)
    for what, ending, bindings, pick in (
        (INT, f"{FREE_THREADED} / {GIL}", BINDINGS, extremes),
        (ERROR, "over the floor, ns", ("nanobind", "pybind11", "PyO3"), ends),
    ):
        made |= pick(session, f"{what}, {ending}", [f"{what} through {one}: {ending}" for one in bindings])
    timed(f"empty loop on {GIL}", statistics.per_call, (GIL, EMPTY))
    timed("what an int adds to a call by hand, ns", results.difference, cell(FLOOR, INT), cell(FLOOR, ANSWER))
    timed(f"{INT} without the loop: dearest / cheapest", lambda record: results.widest(record, GIL)[2])
    without = cell("ctypes CDLL", ANSWER), cell(FLOOR, ANSWER)
    timed(f"{ANSWER} without the loop: ctypes CDLL / {FLOOR}", results.net_ratio, *without)
    for case in results.CASES:
        timed(f"cheapest / next: {case}", partial(results.first_two, case=case))
    for one in (INT, *TAXED):
        both = [cell(FLOOR, one, label) for label in (FREE_THREADED, GIL)]
        timed(f"{one} by hand: {FREE_THREADED} / {GIL}", results.between, *both, plan="claims")
    with_int = cell("ctypes CDLL", INT), cell(FLOOR, INT)
    timed("call with an int through CDLL over one by hand, ns", results.difference, *with_int, plan="claims")
    for what, part in (("an int", "argument"), ("the hand-over", "hand-over, int")):
        timed(f"{what} in a call through CDLL, ns", partial(results.part, what=part), plan="claims")
    ways = (f"{TALK[0]} / {TALK[1]}", f"as run: {TALK[0]} on {GIL} / {TALK[1]} on {GIL}")
    return made | extremes(session, "ctypes / cffi", [*ways, f"{INT}: {TALK[0]} / {TALK[1]} on {GIL}"])


def of_order(session: Session) -> Makers:
    """How many pairs of tools stand the other way round than for an int."""

    def of_kind(signature: str) -> Counted | None:
        found = session.once(changes)
        return Counted(found[signature]) if signature in found else None

    counts = {
        "kinds of call": len,
        "kinds of call in which pairs change places": lambda pairs: len(pairs) - pairs.count(0),
        "kinds of call in which none changes places": lambda pairs: pairs.count(0),
        "most pairs that change places": max,
    }
    made: Makers = {f"pairs that change places: {one}": partial(of_kind, one) for one in SIGNATURES}
    for what, count in counts.items():
        made[what] = lambda count=count: Counted(count([*session.once(changes).values()]))
    return made


def changes(session: Session) -> dict[str, int]:
    return results.order_changes(session.timed("matrix"), GIL)


def of_program(session: Session) -> Makers:
    """From single calls, as the talk ran them."""
    nearest = "published surcharge nearer to the GIL off (1), or on (-1)"

    def nearer(binding: str) -> Counted | None:
        found = results.nearer(results.single_calls(session.frame(PROGRAM))).set_index("binding").nearer
        return Counted({"off": 1, "on": -1}.get(found[binding], 0)) if binding in found else None

    def talk(pick: Callable) -> Callable[[], Made]:
        return lambda: pick(*results.talk_pairs(session.frame(PROGRAM)))

    return {
        "step of the clock, ns": lambda: Counted(results.tick(session.frame(PROGRAM))),
        "fewest values of a sample": talk(lambda _, n: Counted(min(n))),
        "most values of a sample": talk(lambda _, n: Counted(max(n))),
        "largest p of the pairs": talk(lambda table, _: Counted(table["BH p"].max())),
        "largest p of the pairs, as a power of ten": talk(
            lambda table, _: Counted(np.log10(p)) if (p := table["BH p"].max()) else None
        ),
        "smallest Cliff's delta of the pairs": talk(lambda table, _: Counted(table["Cliff's delta"].abs().min())),
        **{f"{nearest}: {one}": partial(nearer, one) for one in TALK},
    }


def of_trees(session: Session) -> Makers:
    """What the call trees of ctypes and PyO3 count."""
    made: Makers = {}

    def seen(what: str, look: Callable[[list[Node]], float], binding: str = COMPARED[0]) -> None:
        made[what] = partial(in_tree, session, binding, look)

    def times() -> Counted | None:
        both = [of(session)[f"instructions of a call: {binding}"].measurement for binding in COMPARED]
        return Counted(both[0].interval.value / both[1].interval.value) if all(both) else None

    for binding in COMPARED:
        seen(f"instructions of a call: {binding}", lambda tree: tree[0].instructions, binding)
    made[f"instructions of a call: {' / '.join(COMPARED)}"] = times
    share = "share of the instructions of a call through ctypes"
    for what, pattern in {**results.PLACES, "from_param": "PyObject_CallOneArg"}.items():
        seen(f"{share}: {what}", lambda tree, pattern=pattern: results.below(tree, pattern))
    seen(f"{share}: largest place less the next", lambda tree: np.diff(sorted(results.places(tree).values()))[-1])
    return made


def contest(session: Session) -> dict[str, tuple[str, Measurement]]:
    return results.contest(session.observed("where the time goes, by process"), *WITHOUT_HAND_OVER)


def of_profiles(session: Session) -> Makers:
    """Where a profiler found the time of a call."""
    profiles = partial(session.observed, "where the time goes, by process")

    def processes(label: str) -> Counted | str:
        return results.no_time(profiles(), label, "ctypes CDLL") or Counted(len(profiles()[label]["ctypes CDLL"]))

    def libffi(grouping: str) -> Made:
        return results.no_time(profiles(), *WITHOUT_HAND_OVER) or contest(session).get(grouping, (None, None))[1]

    def of_talk(what: str) -> Counted | None:
        found = results.symbol(session.observed("the talk's loop, profiled"), "PyO3", *results.SYMBOLS[what][0])
        return Counted(float(found.mean())) if len(found) and found.mean() else None

    made: Makers = {
        **{f"profiles of ctypes CDLL on {label}": partial(processes, label) for label in (GIL, FREE_THREADED)},
        "share of libffi in a CDLL call": partial(own_time, session, GIL, results.LIBFFI),
        f"share of the hand-off in a CDLL call on {FREE_THREADED}": partial(
            own_time, session, FREE_THREADED, results.HAND_OFF
        ),
    }
    groupings = {f"{results.NEXT}, {grouping}": partial(libffi, grouping) for grouping in results.GROUPINGS}
    made |= groupings | extremes(session, results.NEXT, groupings)
    return made | {f"share of the talk's loop around PyO3: {what}": partial(of_talk, what) for what in results.SYMBOLS}


def of_tools(session: Session) -> Makers:
    """What the tools let through, keep, and cost at the first use."""

    def answered(*bindings: str) -> Share | None:
        found = results.answers(session.once(rules), CONTRACTS[0])
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

    made: Makers = {f"ways that answer {CONTRACTS[0]}": partial(answered, *BINDINGS)}
    for binding in BINDINGS:
        made[f"{binding} answers {CONTRACTS[0]}"] = partial(answered, binding)
        made[f"second interpreter works (1), is refused (0), or ends (-1): {binding}"] = partial(elsewhere, binding)
    for what, method in itertools.product(("lost", "refused"), METHODS):
        made[f"processes with additions {what}, {method}"] = partial(hit, what, method, *BINDINGS)
        for binding in BINDINGS:
            made[f"processes with additions {what}, {method}: {binding}"] = partial(hit, what, method, binding)
    made["import of cffi's ABI mode: in line / out of line"] = partial(
        first_use, results.import_ratio, VARIANTS[OUT_OF_LINE], OUT_OF_LINE
    )
    for key in ("import_ms", "first_call_ns"):
        made[f"{key}: lazy / default"] = partial(first_use, results.linking_effect, key, "lazy")
    return made


def rules(session: Session) -> pd.DataFrame:
    return results.contracts(session.frame("awkward arguments"))


def of_work(session: Session) -> Makers:
    """From the calls beside work in C."""

    def moved(*bindings: str) -> list[Interval]:
        """Changes of prices from that of the shortest work."""
        found = results.changes(session.once(prices))
        return [one for binding in bindings for one in found.get(binding, ()) if one.is_known]

    def missed() -> Counted | None:
        found = [max(-one.low, one.high) for one in moved(*WORKED)]
        return Counted(max(found)) if found else None

    def told(*bindings: str) -> list[Interval]:
        return [one for one in moved(*bindings) if above(one, 0) != OPEN]

    def largest(*bindings: str) -> Interval | None:
        return max(told(*bindings), key=lambda one: abs(one.value), default=None)

    def size() -> Interval | None:
        found = largest(*WORKED)
        return -found if found and found.value < 0 else found

    def reach(binding: str) -> Interval | None:
        found = results.threshold(session.once(prices), binding)
        return found and found.map(lambda ns: ns / 1000)

    made: Makers = {
        "prices that change with the work": lambda: Counted(len(told(*WORKED))) if moved(*WORKED) else None,
        "change of a price that would have shown, ns": missed,
        "largest change of a price with the work, in size, ns": size,
        "longest work, in µs": lambda: Counted(max(session.once(prices).work_ns, default=0.0) / 1000),
    }
    for binding in WORKED:
        made[f"largest change of the price with the work, ns: {binding}"] = partial(largest, binding)
        made[f"work from which the price is under 5%, in µs: {binding}"] = partial(reach, binding)
        made[f"work from which the price is under 5%, in µs, without bounds: {binding}"] = lambda binding=binding: (
            (found := reach(binding)) and Counted(found.value)
        )
    return made


def prices(session: Session) -> pd.DataFrame:
    return results.prices(session.timed("work"))
