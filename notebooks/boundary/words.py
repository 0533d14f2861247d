"""The sentences of the chapter "The boundary" that a run chooses: pure functions of intervals, counts and frames.

Each has a form for what the run shows, for the contrary, and for what it cannot tell.
"""

import math

import pandas as pd

from ffilab import draw
from ffilab.judge.estimates import Interval, known

UNKNOWN = "could not be measured here"
# Of the time of a short buffer: what a long one may take more and still count as the same.
SAME = 0.1
# Of a ratio of two tools: what is less than that is told, and is little.
SMALL = 0.05
# The same of a price in ns: less than a call by hand takes.
SMALL_NS = 10


def _listed(names: list[str]) -> str:
    """`a, b and c`. A title with a comma in it would look like two."""
    names = [name.replace("C API, limited", "limited C API") for name in names]
    return draw.listed(names)


def _signed(found: Interval | None) -> str:
    """Nanoseconds more or less, with the sign in front."""
    return f"{'+' if found.value > 0 else ''}{draw.text(found, 'ns')}"


def _ratio(found: Interval, what: tuple[str, str, str]) -> str:
    """A ratio of times in words, with the factor above 1. what: how to say that it is above, below, or neither."""
    above, below, neither = what
    if not known(found) or not found.excludes(1):
        return neither.removesuffix(".") + (f" ({draw.text(found)})." if known(found) else ".")
    if found.value > 1:
        return f"{above.format(draw.text(found))}"
    return f"{below.format(draw.text(found.inverse))}"


def _grouped(kinds: dict[str, list[str]]) -> str:
    """The kinds that hold something, each with its names put in place of {}."""
    return "; ".join(kind.format(_listed(names)) for kind, names in kinds.items() if names)


# Calls


def talk_pairs(n: tuple[int, int], p: tuple[float, float], smallest: float) -> str:
    """n: fewest and most values of a sample; p: smallest and largest of the table of pairs; smallest: least |Cliff's delta|."""
    many = f"{n[0]}" if n[0] == n[1] else f"{n[0]} to {n[1]}"
    if p[1] >= 0.01:
        return f"With {many} values of each, not all pairs are called significant here: the largest p is {p[1]:.2g}."
    apart = "no two samples overlap" if smallest == 1 else f"the smallest Cliff's delta is {smallest:.2f} in size"
    size = (
        f"the largest p is about 10 to the power of {math.log10(p[1]):.0f}"
        if p[1]
        else "the largest p is too small for a float"
    )
    return f"With {many} values of each, every pair is called significant here ({size}), and {apart}."


def order(table: pd.DataFrame) -> str:
    """The order of the bindings from a table with the columns binding and `told apart`; ≈ joins those that are not."""
    if table.empty:
        return f"The order {UNKNOWN}."
    words = table.binding.iloc[0]
    for binding, apart in zip(table.binding.iloc[1:], table["told apart"].iloc[1:]):
        words += f" {'<' if apart == 'yes' else '≈'} {binding}"
    return f"From cheapest to dearest: {words}."


def _power(p: float) -> str:
    return f"10 to the power of {math.log10(p):.0f}" if p else "too small for a float"


def misranked(found: pd.DataFrame, among: int) -> str:
    """Where the talk's method called the wrong one of two the faster one. found: columns pair, process, p, called, right, printed."""
    if not among:
        return "The corrected experiment tells no two of the four apart here, so that nothing can be held against it."
    if found.empty:
        return f"In none of {among} processes did the talk's program name a winner with a p below 0.01 that the corrected experiment contradicts."
    said = [
        f"the same program here names {called} the winner of “{pair}” in {part.process.nunique()} of {among} processes (the smallest p is about "
        f"{_power(part.p.min())}); the corrected experiment says {right}{', as the talk printed' * (printed == right)}"
        for (pair, called, right, printed), part in found.groupby(["pair", "called", "right", "printed"], sort=False)
    ]
    return f"A p tells of what was timed, harness included: {_listed(said)}."


def two_ways(found: dict[str, Interval]) -> str:
    """Time through ctypes over that through cffi, by signature and harness."""
    told = {what: one for what, one in found.items() if known(one)}
    said = "; ".join(f"{what} {draw.text(one)}" for what, one in told.items())
    sides = {one.value > 1 for one in told.values() if one.excludes(1)}
    if not sides:
        return "This run does not tell ctypes from cffi" + (f": {said}." if said else ".")
    verb = "depends on harness and signature" if len(sides) > 1 else "lies on one side wherever this run tells it"
    return f"The time through ctypes over that through cffi {verb}: {said}."


def clear(found: dict[str, Interval]) -> str:
    """Which ratios of two tools are told from 1, and which of those are little; in the order in which they are claimed."""
    kinds = {"clear: {}": [], "clear, and small: {}": [], "the other way round: {}": [], "not told by this run: {}": []}
    for what, one in found.items():
        place = 3 if not known(one) or not one.excludes(1) else 2 if one.value < 1 else int(one.value < 1 + SMALL)
        kinds[list(kinds)[place]].append(f"{what} ({draw.text(one)})" if known(one) else what)
    return f"The order of the four, two by two: {_grouped(kinds)}." if found else f"The order of the four {UNKNOWN}."


def nearer(found: pd.DataFrame, build: str) -> str:
    """Columns binding and nearer: `off`, `on`, or `neither`."""
    kinds = {
        "the build without the GIL for {}": list(found[found.nearer == "off"].binding),
        "the same build with its GIL on for {}": list(found[found.nearer == "on"].binding),
        "neither, as far as this run tells, for {}": list(found[found.nearer == "neither"].binding),
    }
    if found.empty:
        return f"The third condition {UNKNOWN}."
    return f"Of {build}, the published surcharge without the GIL is nearer to {_grouped(kinds)}."


def same_work(plain: Interval | None, both: Interval | None) -> str:
    """cffi's API mode over the C API by hand: for a no-op, and where both detach the thread state."""
    if not known(plain) or not known(both):
        return f"What cffi adds to a call that releases the GIL by hand {UNKNOWN}."
    first = (
        f"For a no-op, cffi's API mode takes {draw.text(plain)} times as long as the C API by hand, which keeps the GIL"
    )
    if not both.excludes(1):
        return f"{first}; where both release it, this run cannot tell them apart ({draw.text(both)})."
    return f"{first}; where both release it, {draw.text(both)} times."


def one_argument(found: Interval | None) -> str:
    """ns that a call with an int takes more than one without an argument, both by hand."""
    if not known(found) or not found.excludes(0):
        return "By hand, this run cannot tell a call with an int from one without an argument."
    return f"By hand, a call with an int takes {draw.text(found if found.value > 0 else -found, 'ns')} {'more' if found.value > 0 else 'less'} than one without an argument."


def errors(over: dict[str, Interval]) -> str:
    """ns that an error takes more through each tool than by hand; the first two carry it as a C++ exception."""
    told = {tool: one for tool, one in over.items() if known(one)}
    if len(told) < 2:
        return f"What an error costs {UNKNOWN}."
    ranked = sorted(told, key=lambda tool: -told[tool].value)
    said = _listed([f"{tool} {_signed(told[tool])}" for tool in ranked])
    apart = told[ranked[0]].low > told[ranked[-1]].high
    return f"An error costs {f'most through {ranked[0]}' if apart else 'about as much through all'}, against the C API by hand: {said}."


def prediction_1(cheapest: str, dearest: str, found: Interval | None) -> str:
    if not known(found) or not found.excludes(1):
        return "This run cannot tell the slowest from the fastest."
    return (
        f"With the GIL, and without the loop, {dearest} is the slowest: it takes {draw.text(found)} times as long as {cheapest}, "
        "the fastest."
    )


def prediction_2(changes: dict[str, int]) -> str:
    """changes: by kind of call, how many pairs of tools stand the other way round than for an int."""
    if not changes:
        return f"Other kinds of call {UNKNOWN}."
    most = max(changes.values())
    if not most:
        return "For no kind of call does this run show a pair of tools the other way round than for int → int."
    first = _listed([f"“{what}”" for what, number in changes.items() if number == most])
    none = sum(number == 0 for number in changes.values())
    rest = f" For {none} of {len(changes)} kinds none changes places." if none else ""
    return f"For {first}: {most} pairs of tools that this run tells apart stand the other way round than for int → int.{rest}"


def over_floor(what: str, found: dict[str, Interval]) -> str:
    """How each binding's time for a kind of call compares with the floor's, by the difference in ns."""
    kinds = {"{} cannot be told from it by this run": [], "{} takes longer": [], "{} takes less time": []}
    for binding, one in found.items():
        place = 0 if not known(one) or not one.excludes(0) else 1 if one.value > 0 else 2
        numbers = f" ({_signed(one)})" if known(one) else ""
        kinds[list(kinds)[place]].append(f"{binding}{numbers}")
    if not found:
        return f"For “{what}”, the difference to the floor {UNKNOWN}."
    said = [
        kind.format(_listed(names)).replace("takes", "take" if len(names) > 1 else "takes")
        for kind, names in kinds.items()
        if names
    ]
    return f"For “{what}”, compared with the floor: {'; '.join(said)}."


def buffers(found: dict[str, Interval]) -> str:
    """Time for a million doubles over time for a thousand, by binding."""
    kinds = {
        "it takes as long as one of a thousand, within a tenth, through {}": [],
        "it takes longer through {}": [],
        "this run cannot tell for {}": [],
    }
    for binding, one in found.items():
        same = known(one) and one.high < 1 + SAME
        place = 0 if same else 1 if known(one) and one.low > 1 else 2
        kinds[list(kinds)[place]].append(binding)
    return f"A buffer of a million doubles: {_grouped(kinds)}." if found else f"Buffers of two lengths {UNKNOWN}."


def another_form(ratios: pd.DataFrame) -> str:
    """Which form of a tool is faster for which signature; columns form, signature, interpreter, value, low, high."""
    said = []
    for form in dict.fromkeys(ratios.form):
        here = ratios[ratios.form == form]
        kinds = {
            "faster": [f"{row.signature} on {row.interpreter}" for row in here.itertuples() if row.high < 1],
            "slower": [f"{row.signature} on {row.interpreter}" for row in here.itertuples() if row.low > 1],
        }
        words = [f"{kind} for {'; '.join(found)}" for kind, found in kinds.items() if found]
        told = ", and ".join(words) or "not told apart from the form in the matrix by this run"
        said.append(f"The form “{form}” is {told}.")
    return " ".join(said) or "No other form was measured here."


def takeaway_order(changes: dict[str, int]) -> str:
    changed = sum(number > 0 for number in changes.values())
    if not changes:
        return f"Kinds of call {UNKNOWN}."
    if not changed:
        return f"No kind of call, of {len(changes)} others, changes the order of the tools that an int gives, as far as this run tells."
    return f"The kind of call changes the order of the tools: in {changed} of {len(changes)} kinds at least one pair changes places."


# Where the time goes


def tree_counts(ctypes: float | None, pyo3: float | None) -> str:
    """Instructions of one call with an int, loop included."""
    if ctypes is None or pyo3 is None:
        return f"The instructions of the two calls {UNKNOWN}."
    if max(ctypes, pyo3) / min(ctypes, pyo3) < 1 + SAME:
        return f"A call through ctypes takes {ctypes:,.0f} instructions, one through PyO3 {pyo3:,.0f}: about as many."
    more, fewer = ("ctypes", "PyO3") if ctypes > pyo3 else ("PyO3", "ctypes")
    return (
        f"A call through ctypes takes {ctypes:,.0f} instructions, one through PyO3 {pyo3:,.0f}: {more} needs "
        f"{max(ctypes, pyo3) / min(ctypes, pyo3):.1f} times as many as {fewer}."
    )


def prediction_3(places: dict[str, float] | None, close: float) -> str:
    """Shares of a ctypes call's instructions. close: nearer than this, two are not told apart."""
    if not places:
        return f"The instructions of a ctypes call {UNKNOWN}."
    ranked = sorted(places.items(), key=lambda item: -item[1])
    said = _listed([f"{what} {share:.0%}" for what, share in ranked])
    (first, most), (second, next_) = ranked[:2]
    if most - next_ < close:
        return f"By instructions, {first} and {second} are too close to be told apart: {said}."
    return f"By instructions, {first} is the largest of the three: {said}."


def slow_because(found: Interval | None, ns: dict[str, Interval], plain: Interval | None) -> str:
    """found: what an int argument adds to a ctypes call over what the hand-over adds. ns: both, as `argument` and `hand-over, int`,
    and `excess`, all that is over code by hand. plain: time over that of code by hand, without an argument and the loop."""
    if not known(found) or not ns:
        return f"Whether an int argument or the hand-over of the GIL costs ctypes more {UNKNOWN}."
    least = _ratio(
        plain,
        (
            "Without an argument, ctypes still takes {} times as long as code by hand.",
            "Without an argument, code by hand takes {} times as long as ctypes.",
            "Without an argument, this run cannot tell ctypes from code by hand.",
        ),
    )
    numbers = (
        f"of {draw.text(ns['excess'], 'ns')} over code by hand, the argument is {draw.text(ns['argument'], 'ns')}, and the hand-over "
        f"{draw.text(ns['hand-over, int'], 'ns')}. {least}"
    )
    if not found.excludes(1):
        return f"In a ctypes call, this run does not tell whether one int argument or the hand-over of the GIL costs more: {numbers}"
    return f"In a ctypes call, one int argument costs {'more' if found.value > 1 else 'less'} than the hand-over of the GIL: {numbers}"


def loop_names(share: float | None, names: float | None) -> str:
    """Shares of the samples of the talk's script around PyO3: in dict lookup, and below the names of the module."""
    if share is None or not share:
        return f"What dict lookup takes in the talk's script {UNKNOWN}."
    return (
        f"In the talk's script around PyO3, in one process, dict lookup has {share:.0%} of the samples, and looking up and storing the names of the module "
        f"has {names:.0%}."
    )


def largest_left(found: dict[str, tuple[str, Interval]] | str) -> str:
    """found: by grouping the largest other part of what PyDLL leaves, and libffi's share of the two."""
    if isinstance(found, str) or not found:
        return f"What is left when the hand-over is gone cannot be told here: {found or 'nothing of it was seen'}."
    said = "; ".join(
        f"{grouping}, libffi has {draw.text(one, '%', 100)} of itself and “{other}”"
        for grouping, (other, one) in found.items()
    )
    sides = {
        0 if not known(one) or not one.excludes(0.5) else 1 if one.value > 0.5 else -1 for _, one in found.values()
    }
    if {1, -1} <= sides:
        return f"Whether libffi is next depends on the grouping: {said}."
    if sides == {0}:
        return f"Through PyDLL, libffi and the largest other part are not told apart: {said}."
    verb = "is the largest part of what is left" if 1 in sides else "is not the next bottleneck"
    return f"Through PyDLL, libffi {verb}, {'as far as' if 0 in sides else 'by every grouping that'} this run tells: {said}."


def without_gil(what: str, found: dict[str, Interval]) -> str:
    """Which bindings take longer on the t-build for a kind of call, and which less long."""
    kinds = {"it takes longer through {}": [], "it takes less time through {}": [], "this run cannot tell for {}": []}
    for binding, one in found.items():
        place = 2 if not known(one) or not one.excludes(1) else 0 if one.value > 1 else 1
        times = f" ({draw.text(one)} times)" if place == 0 else ""
        if place == 1:
            times = f" (the GIL build takes {draw.text(one.inverse)} times as long)"
        kinds[list(kinds)[place]].append(binding + times)
    if not found:
        return f"The call “{what}” {UNKNOWN} on both builds."
    return f"A call of the kind “{what}”, without the GIL: {_grouped(kinds)}."


def prediction_4(found: dict[str, Interval]) -> str:
    """Time on the t-build over time on the GIL build for int → int, by binding."""
    faster = [binding for binding, one in found.items() if known(one) and one.high < 1]
    slower = [binding for binding, one in found.items() if known(one) and one.low > 1]
    open_ = [binding for binding in found if binding not in (*faster, *slower)]
    if not faster and not slower:
        return "For int → int, this run can tell for no tool whether it gets faster."
    first = (
        f"For int → int, {_listed(faster)} {'gets' if len(faster) == 1 else 'get'} faster"
        if faster
        else ("For int → int, no tool is shown to get faster")
    )
    parts = [first] + ([f"slower: {_listed(slower)}"] if slower else [])
    return "; ".join(parts + ([f"not told: {_listed(open_)}"] if open_ else [])) + "."


def texts(tax: dict[str, Interval], excess: dict[str, Interval]) -> str:
    """tax: t-build over GIL build by text; excess: the same over that of an int."""
    kinds = {"larger for {}": [], "smaller for {}": [], "not told from it for {}": []}
    for text, one in excess.items():
        place = 2 if not known(one) or not one.excludes(1) else 0 if one.value > 1 else 1
        numbers = [
            f"{draw.text(one)} {what}" for what, one in (("over that", one), ("by itself", tax.get(text))) if known(one)
        ]
        kinds[list(kinds)[place]].append(f"“{text}”{f' ({_listed(numbers)})' if numbers else ''}")
    if not excess:
        return f"Texts {UNKNOWN} on both builds."
    return (
        f"Against what an int takes longer on the free-threaded build, what a text takes longer is {_grouped(kinds)}."
    )


def through_rust(found: dict[str, Interval], absent: list[str]) -> str:
    """Time through each tool over the time through PyO3, Rust and cxx."""
    kinds = {
        "faster than {}": [b for b, one in found.items() if known(one) and one.low > 1],
        "slower than {}": [b for b, one in found.items() if known(one) and one.high < 1],
        "not told from {} by this run": [b for b, one in found.items() if not known(one) or not one.excludes(1)],
        "not compared with {}": absent,
    }
    told = ", ".join(kind.format(_listed(names)) for kind, names in kinds.items() if names)
    return f"For a method call with the GIL, the detour through Rust is {told}."


def prediction_5(found: Interval | None) -> str:
    """Time of a method through pybind11 over the time through PyO3, Rust and cxx."""
    return _ratio(
        found,
        (
            "Faster: pybind11 takes {} times as long as the detour through Rust.",
            "Slower: the detour through Rust takes {} times as long as pybind11.",
            "This run cannot tell the detour from pybind11.",
        ),
    )


# Choosing


def answers(what: str, rules: pd.DataFrame, call: str) -> str:
    """What each binding makes of one awkward call, from the table of answers (columns call, and the bindings)."""
    here = rules[rules.call == call]
    row = here.iloc[0].drop("call").dropna() if len(here) else pd.Series(dtype=object)
    if row.empty:
        return f"{what}: not asked here."
    refused = [binding for binding, answer in row.items() if _is_error(answer)]
    died = [binding for binding, answer in row.items() if _is_end(answer)]
    values: dict[str, list[str]] = {}
    for binding, answer in row.items():
        if binding not in (*refused, *died):
            values.setdefault("with nothing" if answer == "None" else str(answer), []).append(binding)
    parts = [
        f"{_listed(names)} {'answers' if len(names) == 1 else 'answer'} {value}" for value, names in values.items()
    ]
    others = len(refused) > 2 and (values or died)
    who = f"the other {len(refused)}" if others else _listed(refused)
    parts += [f"{who} {'raises' if len(refused) == 1 else 'raise'} an exception"] if refused else []
    parts += [f"the process of {_listed(died)} ended ({row[died[0]]})"] if died else []
    return f"{what}: {'; '.join(parts)}."


def _is_error(answer) -> bool:
    """Was the call refused with an exception?"""
    return str(answer).endswith(("Error", "Exception"))


def _is_end(answer) -> bool:
    """Did the process end?"""
    return str(answer).startswith(("killed", "exit", "ended"))


def prediction_6(rules: pd.DataFrame, call: str) -> str:
    here = rules[rules.call == call]
    row = here.iloc[0].drop("call").dropna() if len(here) else pd.Series(dtype=object)
    if row.empty:
        return "Nobody was asked here."
    wrong = [binding for binding, answer in row.items() if not _is_error(answer)]
    if not wrong:
        return f"All {len(row)} ways refused it with an exception."
    return f"Of {len(row)} ways, {len(wrong)} answered without an exception: {_listed(wrong)}."


def kept(found: pd.DataFrame) -> str:
    """Which bindings lost additions with and without the tool's lock; columns binding, method, n, lost, refused."""
    if found.empty:
        return f"Two threads on one object {UNKNOWN}."
    locked, bare = (found[found.method == method] for method in ("add", "add_unlocked"))
    lost = list(locked[locked.lost > 0].binding)
    first = (
        f"With the tool's lock, additions were lost through {_listed(lost)}."
        if lost
        else ("With the tool's lock, no process lost an addition.")
    )
    lost, refused = list(bare[bare.lost > 0].binding), list(bare[bare.refused > 0].binding)
    second = f"Without it, they were lost through {_listed(lost)}" if lost else "Without it, none was seen to be lost"
    third = f"; {_listed(refused)} refused some with an exception." if refused else "; none was refused."
    return f"{first} {second}{third}"


def elsewhere(said: dict[str, str]) -> str:
    """What each binding says in an interpreter with a GIL of its own."""
    if not said:
        return f"A second interpreter {UNKNOWN}."
    works = [binding for binding, what in said.items() if what == "works"]
    refused = [binding for binding, what in said.items() if _is_error(what.partition(":")[0])]
    others = [binding for binding in said if binding not in (*works, *refused)]
    parts = [f"{_listed(works)} {'works' if len(works) == 1 else 'work'}"] if works else []
    parts += [f"{_listed(refused)} {'refuses' if len(refused) == 1 else 'refuse'} with an exception"] if refused else []
    parts += [f"the process of {_listed(others)} ended"] if others else []
    return f"In a second interpreter, {'; '.join(parts)}."


def in_line(found: Interval | None) -> str:
    """Import of cffi's ABI mode in line over that out of line."""
    return _ratio(
        found,
        (
            "In line, the import takes {} times as long as out of line.",
            "Out of line, the import takes {} times as long as in line.",
            "This run cannot tell the two imports apart.",
        ),
    )


def lazy(what: str, found: Interval | None) -> str:
    """Lazy linking over the default. what: `import` or `first call`."""
    return _ratio(
        found,
        (
            f"With lazy binding, the {what} takes {{}} times as long.",
            f"Without lazy binding, the {what} takes {{}} times as long.",
            f"For the {what}, this run cannot tell lazy binding from the default.",
        ),
    )


def bound_fragment(found: Interval | None, longest: float) -> str:
    """A threshold in µs; `longest`: the longest time of the C function that was measured, ns."""
    if found is None:
        return draw.NOT_MEASURED
    if math.isinf(found.value):
        at_least = min(found.low, longest)
        return f"over {at_least / 1000:.2g}"
    if math.isinf(found.high):
        return f"{found.value / 1000:.2g} [{found.low / 1000:.2g}, over {longest / 1000:.2g}]"
    return draw.text(found, "", 1e-3)


def threshold(binding: str, found: Interval | None, longest: float, share: float) -> str:
    """From which work on the price of a binding is a small share of the call."""
    if found is None:
        return f"For {binding}, the share of the price {UNKNOWN}."
    if math.isinf(found.value):
        return f"Through {binding}, the price is {share:.0%} or more of the call up to {longest / 1000:.2g} µs, the longest measured."
    if math.isinf(found.high):
        return (
            f"Through {binding}, the price falls below {share:.0%} from about {found.value / 1000:.2g} µs on; this run cannot "
            "tell its upper bound, which lies beyond the longest measured."
        )
    return f"Through {binding}, the price is less than {share:.0%} of the call from {draw.text(found, 'µs', 1e-3)} on."


def without_compiler(tools: list[str], rules: pd.DataFrame, calls: dict[str, str]) -> str:
    """What the tools that load a library by its name let through. calls: what it is, by the call."""
    here = rules.set_index("call")
    known_tools = [tool for tool in tools if tool in here.columns]
    asked = {call: what for call, what in calls.items() if call in here.index}
    if not known_tools or not asked:
        return "What they let through was not asked here."
    said = []
    for tool in known_tools:
        through = [what for call, what in asked.items() if not _is_error(here.loc[call, tool])]
        said.append(f"{tool} lets {_listed(through)} through" if through else f"{tool} refuses all")
    return f"Asked for {_listed(list(asked.values()))}: {'; '.join(said)}."


def cheapest(what: str, names: list[str], apart: bool | None) -> str:
    """names: tools from the cheapest on for one kind of call. apart: are the first two told apart? None: not measured."""
    names = [name.replace("C API, limited", "the limited C API") for name in names]
    if apart is None or len(names) < 2:
        return f"For “{what}”, the tools {UNKNOWN}."
    if not apart:
        return f"For “{what}”, this run does not tell the two cheapest apart, {names[0]} and {names[1]}."
    return f"For “{what}”, {names[0]} is the cheapest here, before {names[1]}."


def fixed_price(found: dict[str, list[Interval]]) -> str:
    """By binding, how far its prices lie from that of the shortest work, in ns."""
    known_ones = [(binding, one) for binding, changes in found.items() for one in changes if known(one)]
    if not known_ones:
        return f"Whether the price of a call is fixed {UNKNOWN}."
    told = [(binding, one) for binding, one in known_ones if one.excludes(0)]
    if not told:
        missed = max(max(-one.low, one.high) for _, one in known_ones)
        return f"No price was seen to change with the work of the C function; a change of more than {missed:.0f} ns would have shown."
    binding, most = max(told, key=lambda one: abs(one[1].value))
    ends = [pick(told, key=lambda one: one[1].value) for pick in (min, max)]
    said = " to ".join(dict.fromkeys(f"{_signed(one)} through {binding}" for binding, one in ends))
    return (
        f"The price of a call hardly depends on the work of the C function: the largest change that this run shows is "
        f"{_signed(most)}, through {binding}."
        if abs(most.value) < SMALL_NS
        else f"The price of a call changes with the work of the C function. Told from that of the shortest work, by intervals adjusted for "
        f"so many: {len(told)} of {len(known_ones)} prices, {said}."
    )
