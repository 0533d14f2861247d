"""The sentences of the chapter "Code placement" that a run chooses: each from the intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". Verdicts are those of ffilab/judge/rules.py; a number that could not be had
comes as the reason why, a text.
"""

import math

from ffilab.draw import capital, listed, number, text, words
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.rules import NO, YES
from notebooks.placement.experiment import APART, DENSE, MANY, SPREAD, Cache
from notebooks.placement.results import CALL_BYTES, ORDERS, PUBLISHED, THRESHOLDS, TOO_SLOW, sets_met

# Of bisections in which nothing but noise differs, the part that stands: of two new times of equal programs, the first on the fast
# side of the limit and the second on the slow one.
BY_A_COIN = 0.25
# Misses of a thousand instructions, as in D3.
MATTERS = 1.0

UNKNOWN = "there are too few values for an interval"


def _compared(slow: str, fast: str, ratio: Interval | None, of: str = "") -> str:
    """Which of two takes longer, and how many times as long; or that it cannot be told."""
    if ratio is None or not ratio.is_known:
        return f"whether {slow} and {fast} differ{of} is not known: {UNKNOWN}"
    if not ratio.excludes(1):
        return f"whether {slow} and {fast} differ{of} cannot be told here: {slow} over {fast} {text(ratio)}"
    if ratio.value < 1:
        slow, fast, ratio = fast, slow, ratio.inverse
    return f"{slow} takes {text(ratio)} times as long{of} as {fast}"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def share_fragment(found: Share) -> str:
    """`3 of 30 (2 % to 29 %)`, with the exact interval."""
    at = found.at()
    return f"{found.events} of {found.trials} ({_percent(at.low)} to {_percent(at.high)})"


# ---- functions at a distance ----


def stay_fast(kept: float, slow: float, before: dict[int, Interval], cache: Cache) -> str:
    """How many functions APART keep their time, and from which number on none does (see `results.fits`), beside the ways of the
    cache. before: smaller numbers that nevertheless take too long, with their ratio to packed ones."""
    limit = f"take {TOO_SLOW:g} times as long as packed ones"
    if math.isnan(kept):
        return f"At {APART} bytes, how many functions keep their time is not known: {UNKNOWN}."
    if math.isinf(slow):
        return f"At {APART} bytes, no number of functions from which on all {limit} or longer is beyond doubt here."
    if kept >= slow:
        return f"At {APART} bytes, how many functions keep their time cannot be told here."
    start = (
        f"up to {kept:.0f} functions do not {limit}"
        if kept
        else f"no number of functions surely keeps below that: all may {limit}"
    )
    said = (
        f"At {APART} bytes, {start}, and from {slow:.0f} on all take longer, by the clock (whole intervals). "
        + "".join(f"With {n} functions it is {text(one)} all the same. " for n, one in before.items())
        + f"The level-1 instruction cache ({cache.name}) has {cache.ways} ways. "
    )
    if kept <= cache.ways < slow:
        return f"{said}The two agree: what overflows may well be this cache."
    if kept > cache.ways:
        return (
            f"{said}So, by this limit, more of them keep their time than that cache can hold. An explanation, not tested here: "
            "processors of today keep decoded instructions in a cache of its own, and fetch ahead of what they execute. The clock "
            "sees what overflows and hurts."
        )
    return f"{said}Something smaller than this cache overflows first, or something else disturbs this run."


def two_sets(over: Interval) -> str:
    """How many functions keep their time at 2048 bytes, over how many at APART: what the steps leave open."""
    half = APART // 2
    if not over.is_known:
        return f"How {half} and {APART} bytes compare cannot be told here: at one of them, all or none keep their time."
    range_ = f"between {number(over.low, 0.1)} and {number(over.high, 0.1)} times as many functions"
    said = f"At {half} bytes there are two sets to share, so twice as many should fit. By the clock, {range_} keep their time as at {APART}"
    if over.excludes(2):
        return f"{said}: not twice as many, so this cache alone does not explain it."
    if over.excludes(1):
        return f"{said}: twice as many is one of the answers that this leaves open."
    return f"{said}: the steps are too coarse, and whether it is twice as many cannot be told here."


def pages(found: Interval) -> str:
    """SPREAD over DENSE: what a page for each function costs, with the same number of lines in all sets."""
    said = f"The price of pages, {MANY} functions: "
    return said + _compared(f"a call at {SPREAD} bytes", f"a call at {DENSE} bytes", found) + "."


def sets(found: Interval) -> str:
    """APART over SPREAD: what one set costs, with a page for each function."""
    said = f"The price of sets, {MANY} functions: "
    return said + _compared(f"a call at {APART} bytes", f"a call at {SPREAD} bytes", found) + "."


def pages_or_sets(of_pages: Interval, of_sets: Interval) -> str:
    """Which of the two explains more of what APART costs?"""
    dear_pages, dear_sets = (one.is_known and one.low > 1 for one in (of_pages, of_sets))
    if dear_pages and dear_sets:
        if of_sets.low > of_pages.high:
            return "Both cost something here, and the sets more than the pages."
        if of_pages.low > of_sets.high:
            return "Both cost something here, and the pages more than the sets."
        return "Both cost something here; which of them more cannot be told."
    if dear_sets:
        return "Here the sets cost something, and a price of the pages is not seen: the instruction TLB does not explain it."
    if dear_pages:
        return "Here the pages cost something, and a price of the sets is not seen: think of the instruction TLB first."
    return (
        f"Whether pages or sets cost anything cannot be told here: neither makes {MANY} calls take longer beyond doubt."
    )


def simulated_geometry(edges: dict[int, int] | str, cache: Cache) -> str:
    """Size and associativity, read off the simulated misses: `edges`, by distance how many functions run without a miss."""
    if isinstance(edges, str):
        return f"Nothing was simulated here: {edges}."
    # Each call in the caller takes some bytes of the cache as well.
    kib = edges[DENSE] * (DENSE + CALL_BYTES) / 1024
    ways = edges[APART] // sets_met(cache, APART)
    said = (
        f"In the simulation, {edges[APART]} functions at {APART} bytes run without a miss, and the next number that was tried does "
        f"not: {ways} ways. At {DENSE} bytes, {edges[DENSE]} functions fit, which with their caller are {kib:.0f} KiB of lines. "
        f"Put in were {cache.ways} ways and {cache.size // 1024} KiB."
    )
    return said if ways == cache.ways else f"{said} The two do not agree, so something else than the cache was counted."


def agreement(misses: dict[int, float] | str, seen: Interval) -> str:
    """Do simulation and clock point the same way? misses: of a call by distance; seen: APART over DENSE, by the clock."""
    if isinstance(misses, str):
        return f"There is no simulation to compare with: {misses}."
    said = (
        f"With {MANY} functions the simulation counts {misses[APART]:.2f} misses a call at {APART} bytes, and {misses[DENSE]:.2f} at "
        f"{DENSE}; by the clock, {APART} bytes over {DENSE} is {text(seen)}."
    )
    if not seen.is_known or not seen.excludes(1):
        return f"{said} Whether the clock agrees cannot be told here."
    return f"{said} They {'agree' if (misses[APART] > misses[DENSE]) == (seen.value > 1) else 'do not agree'} in direction."


def counters(found: list[dict] | str) -> str:
    """What the processor's counters say of the functions; or why they say nothing."""
    misses = "L1-icache-load-misses"
    if isinstance(found, str):
        return f"The processor's own counters: not measured here, as {found}."
    if not all(misses in row for row in found):
        return "The processor counts instructions for us, and no misses of the instruction cache: they are not known."
    rows = [
        f"{row[misses]:.2f} misses and {row['instructions']:.1f} instructions a call at {row['distance']} bytes"
        for row in found
    ]
    return f"By the processor's own counters: {'; '.join(rows)}."


# ---- a loop, and an environment ----


def _fifths(what: str, found: Interval) -> str:
    if not found.is_known:
        return f"whether the {what} differ is not known: {UNKNOWN}"
    if 1 / THRESHOLDS[0] < found.low and found.high < THRESHOLDS[0]:
        return (
            f"the {what} show no difference of {_percent(THRESHOLDS[0] - 1)} or more: the slowest fifth over the fastest is "
            f"{text(found)}"
        )
    if not found.excludes(1):
        return (
            f"whether the {what} differ cannot be told from noise: the slowest fifth over the fastest is {text(found)}"
        )
    if found.value > 1:
        return f"the {what} differ: the slowest fifth takes {text(found)} times as long as the fastest"
    return (
        f"the {what} that were slow in one half of the processes were fast in the other: {text(found)}. That is no effect of "
        "theirs; something changed while it was measured"
    )


def loops(found: Interval, processes: int) -> str:
    """The slowest fifth of the offsets over the fastest, not biased by the choice."""
    said = f"{capital(_fifths('places of the loop', found))} (n = {processes} processes)."
    if found.is_known and found.low > 1:
        return f"{said} An explanation, not tested here: a loop that begins late in a block of code takes one block more to fetch."
    return said


def environment(addresses: str, found: Interval | None) -> str:
    """The same for sizes of the environment. addresses: `random` or `fixed`."""
    if found is None:
        return f"With {addresses} addresses: not measured here, as this system does not allow it."
    return f"With {addresses} addresses, {_fifths('sizes of the environment', found)}."


def environments(random: Interval | None, fixed: Interval | None) -> str:
    """What the two say together, and what would explain it."""
    seen = [one is not None and one.is_known and one.low > 1 for one in (random, fixed)]
    if fixed is None:
        return "Without fixed addresses to compare with, what randomisation does to an effect cannot be told here."
    if seen == [False, True]:
        return (
            "So the size decides where addresses are fixed, and with random ones it is not seen. An explanation, not tested here: "
            "randomisation moves the stack anyway, and turns a constant error into noise, which an interval shows."
        )
    if seen == [True, False]:
        return (
            "That is the reverse of what one expects: where addresses are random, a size cannot say where the stack lies. So this run "
            "has no explanation for it; chance, or something that comes with the size itself, such as more to copy, is not ruled out."
        )
    if all(seen):
        return (
            "So the size decides in both. That it does with random addresses as well has no explanation in where the stack lies, for "
            "that is drawn afresh in each process."
        )
    return (
        "So an effect of the environment is not seen in either, and what randomisation does to it cannot be told here."
    )


# ---- the lottery ----


def orders_differ(where: str, benchmark: str, found: Interval | str, verdict: str) -> str:
    """How far one pair of random orders in twenty differs, with the noise taken out. verdict: that of D1, or by its limit."""
    what = f"{capital(where)}, {benchmark}: "
    if isinstance(found, str):
        return f"{what}not measured here, as {found}."
    if not found.is_known:
        return f"{what}how far two orders lie apart is not known: {UNKNOWN}."
    apart = f"of two random orders, one pair in twenty differs by a factor of {text(found)} or more, noise taken out"
    if verdict == YES:
        return f"{what}orders differ: {apart}."
    if verdict == NO:
        return f"{what}orders do not differ by what somebody would call a regression: {apart}."
    return f"{what}whether two orders can differ by {_percent(THRESHOLDS[0] - 1)} cannot be told here: {apart}."


def luck(
    where: str, found: dict[float, dict[str, Share]], expected: dict[float, dict[str, float]], published: Share
) -> str:
    """How many orders pass for a regression, by threshold and benchmark, and how many of equal programs would by noise alone;
    and how many reach the document's."""
    said = []
    for threshold, by_benchmark in found.items():
        counts = [
            f"{share_fragment(one)} in {name} (expected of noise alone: {expected_fragment(expected[threshold][name])})"
            for name, one in by_benchmark.items()
        ]
        said.append(f"{_percent(threshold - 1)} or more: {listed(counts)}")
    # Exact interval against what noise makes one expect.
    beyond = [
        name for name, one in found[THRESHOLDS[0]].items() if one.trials * one.at().low > expected[THRESHOLDS[0]][name]
    ]
    end = (
        f"As much slower as the slow binary of 2016, {_percent(PUBLISHED - 1)}: {share_fragment(published)}."
        if published.events
        else f"None of {published.trials} is as much slower as the slow binary of 2016, {_percent(PUBLISHED - 1)}, which leaves "
        f"room for up to {_percent(published.at().high)} of all orders."
    )
    start = (
        f"more orders look like a regression than noise alone makes one expect in {listed(beyond)}"
        if beyond
        else "no more orders look like a regression than noise alone may give"
    )
    return f"{capital(where)}, {start}. {'. '.join(map(capital, said))}. {end}"


def expected_fragment(number_: float) -> str:
    """`2.1`, or that it is not known."""
    return "a number that is not known" if math.isnan(number_) else f"{number_:.1f}"


def no_lottery(where: str, lacking: str) -> str:
    """Why a build was not linked."""
    return f"{capital(where)}, there was no lottery here: {lacking}."


def linking(seconds: float) -> str:
    """How long all random orders took to link."""
    if not seconds:
        return "Nothing was linked here, so how long it takes is not known."
    if seconds < 60:
        return f"To link all random orders of both builds took {seconds:.1f} seconds."
    return f"To link all random orders of both builds took {seconds / 60:.1f} minutes."


def hot_together(
    where: str, benchmark: str, ratio: Interval | None, faster: Share | None, verdict: str, lacking: str = ""
) -> str:
    """The hot functions together over the middle random order, and how many orders are faster. verdict: D6's, or by its limit."""
    if lacking or ratio is None or faster is None:
        return f"{capital(where)}, there is no program with its hot functions together here: {lacking or UNKNOWN}."
    said = f"{capital(where)}, in {benchmark}, "
    among = f"{faster.events} of {faster.trials} random orders are faster than it"
    middle = f"its time over that of the middle random order is {text(ratio)}, and {among}"
    if verdict == YES:
        return f"{said}hot functions together are faster than half of all orders: {middle}."
    if verdict == NO:
        return f"{said}hot functions together are not faster than half of all orders by what would matter: {middle}."
    return f"{said}whether hot functions together are faster than half of all orders cannot be told here: {middle}."


def miss_more(where: str, benchmark: str, found: Interval | str, lowest: float, highest: float, verdict: str) -> str:
    """Misses of a thousand instructions: slower less faster half of the orders, and lowest and highest of all. verdict: D3's,
    or by its limit."""
    what = f"{capital(where)}, {benchmark}: "
    if isinstance(found, str) and not highest:
        return f"{what}nothing was counted here: {found}."
    uncertain = max(0.01, (highest - lowest) / 10)
    among = f"by order, {number(lowest, uncertain)} to {number(highest, uncertain)} misses of a thousand instructions"
    if highest < 1:
        among += ", next to none in any of them"
    if isinstance(found, str):
        return f"{what}{among}. Whether slow orders miss more often cannot be asked: {found}."
    if not found.is_known:
        return f"{what}{among}. Whether slow orders miss more often is not known: {UNKNOWN}."
    apart = f"slower less faster half {text(found)}"
    if verdict == YES:
        return f"{what}{among}. The slow orders miss more often than the fast ones: {apart}."
    if found.high < 0:
        return f"{what}{among}. The slow orders miss less often than the fast ones: {apart}."
    if verdict == NO and found.low > -MATTERS:
        return f"{what}{among}. Slow and fast orders show no difference of {MATTERS:g} or more: {apart}."
    if verdict == NO:
        return (
            f"{what}{among}. The slow orders do not miss more often than the fast ones by what would matter: {apart}."
        )
    return f"{what}{among}. Whether the slow orders miss more often cannot be told here: {apart}."


def own_order(where: str, benchmark: str, more: Share | str) -> str:
    """Random orders that miss more often than the linker's own."""
    if isinstance(more, str):
        return f"{capital(where)}, {benchmark}: how the linker's own order compares is not known: {more}."
    said = f"{capital(where)}, {benchmark}: {share_fragment(more)} random orders miss more often than the linker's own"
    at = more.at()
    if at.low > 0.5:
        return f"{said}, which is a lucky lot."
    if at.high < 0.5:
        return f"{said}, which is an unlucky lot."
    return f"{said}; whether it is a lucky lot cannot be told here."


def five_hottest(found: Interval | str, unit: str, verdict: str) -> str:
    """The share of the five hottest functions of call_method. verdict: that of D4."""
    if isinstance(found, str):
        return f"What part of call_method five functions hold was not measured here, as {found}."
    # A share of instructions is counted once, and has no interval.
    part = f"{100 * found.value:.1f} %" if found.low == found.high else text(found, "%", 100)
    said = f"Five functions hold {part} of call_method ({unit})"
    if verdict == YES:
        return f"{said}: more than the 64 % of the text."
    if verdict == NO:
        return f"{said}: less than the 64 % of the text."
    return f"{said}: on which side of the text's 64 % that lies cannot be told here."


def lottery_for_alt(ranges: dict[tuple[str, str], tuple[float, float, float, float]]) -> str:
    """By (build, benchmark): lowest and highest ratio of the orders, and of the copies."""
    if not ranges:
        return "Nothing was linked, so nothing is known."
    said = []
    for (build, benchmark), (low, high, copies_low, copies_high) in ranges.items():
        said.append(
            f"{build}, {benchmark}: orders from {low:.3f} to {high:.3f}, copies from {copies_low:.3f} to {copies_high:.3f}"
        )
    return f"{'; '.join(said)}."


# ---- the story ----


def planted(found: Interval | None) -> str:
    """Slow over fast: the two sides of the commit."""
    return f"{capital(_compared('the slow program', 'the fast program', found))}."


def mended(found: Interval | None) -> str:
    """Slow over hot."""
    said = _compared("the slow program", "the program with its hot functions together", found)
    return f"{capital(said)}."


def as_before(found: Interval | None) -> str:
    """Hot over fast: has the mending brought everything back?"""
    said = f"{capital(_compared('the mended program', 'the fast program', found))}."
    if found is None or not found.is_known or not found.excludes(1):
        return said
    return (
        f"{said} An explanation, not tested here: no layout is neutral; the operations lie closer together than before the commit, "
        "and have other neighbours."
    )


def aligned(found: Interval | None) -> str:
    """Hot and aligned over hot."""
    return (
        f"{capital(_compared('the mended program with functions at the beginning of a line', 'one without', found))}."
    )


def same_work(instructions: float | str, misses: float | str, verdict: str) -> str:
    """Slow over fast by a simulator, and the verdict of D2 on the instructions. Counts have no interval."""
    if isinstance(instructions, str) or isinstance(misses, str):
        return f"Instructions and misses: not measured here, as {instructions if isinstance(instructions, str) else misses}."
    more = f"{number(misses, max(0.1, misses / 100))} times as many misses"
    if verdict == YES:
        return f"Slow over fast, counted by a simulator: the same instructions to within 0.2 %, and {more}."
    if verdict == NO:
        return f"Slow over fast, counted by a simulator: other instructions, {instructions:.4f} times as many, and {more}. The work differs."
    return "Whether slow and fast execute the same instructions cannot be told here."


def stalls(found: Interval | str | None) -> str:
    """Stalled front-end cycles, slow over fast, by the processor."""
    if found is None or isinstance(found, str):
        return f"The processor's own counters, which the original used: not measured here, as {found or UNKNOWN}."
    if not found.is_known or not found.excludes(1):
        return f"Stalled front-end cycles, slow over fast, by the processor: {text(found)}; which has more cannot be told here."
    return f"Stalled front-end cycles, slow over fast, by the processor: {text(found)}, {'more' if found.value > 1 else 'fewer'} in the slow program."


def blamed(found: Share, others: dict[str, int], verdict: str) -> str:
    """Bisections with the trap that blame the commit that moved the operations, and what others were blamed. verdict: D5's."""
    said = f"With the trap, {share_fragment(found)} blame the commit that moved the operations"
    said += "".join(f"; {count} {'blames' if count == 1 else 'blame'} “{message}”" for message, count in others.items())
    if verdict == YES:
        return f"{said}. So bisection finds it, in more than seven of ten cases."
    if verdict == NO:
        return f"{said}. So bisection does not find it in seven of ten cases."
    return f"{said}. Whether it finds it in seven of ten cases cannot be told here."


def _by_a_coin(stands: Share, without_code: int) -> str:
    """How many of those that stand blame a commit that cannot matter, and how many tosses of a coin would let stand."""
    chance = f"tosses of a coin would let {BY_A_COIN * stands.trials:.0f} stand"
    if not stands.events:
        return f"; {chance}"
    which = f"{without_code} of these {stands.events}" if stands.events > 1 else f"{without_code} of them"
    return f"; {which} {'changes' if without_code == 1 else 'change'} no machine code at all, and {chance}"


def blamed_by_chance(messages: dict[str, int], stands: Share, without_code: int, verdict: str) -> str:
    """Bisections without a trap: how many different commits they blame, and how often the blame stands a second look.

    without_code: how many of those that stand blame a commit that changes no machine code. verdict: D5's."""
    trials, many = sum(messages.values()), len(messages)
    said = (
        f"Without a trap, {trials} bisections blame {many} different commit{'s' * (many > 1)}, the commonest "
        f"{max(messages.values())} times. Measured again, {share_fragment(stands)} are slow again with a fast parent{_by_a_coin(stands, without_code)}"
    )
    if verdict == YES:
        return f"{said}. So more than half of what bisection blames here falls at the second look."
    if verdict == NO:
        return (
            f"{said}. So more than half of it stands the second look, and something does differ between these commits."
        )
    return f"{said}. Whether more than half of it falls at the second look cannot be told here."


# ---- limits and objections ----


def limits(virtual: bool | None, governor: str | None, counters_: list | str, processor: str | None) -> str:
    """What this machine could see of itself."""
    said = {
        True: "This is a virtual machine: which physical pages back the code, and who shares the core, is not known.",
        False: "This is no virtual machine. Which physical pages back the code is still not known to a program.",
        None: "Whether this is a virtual machine is not known.",
    }[virtual]
    said += (
        f" The document's processor was an Intel Xeon X5680 (Westmere, 2010), and this one is called {processor}: how it fetches, "
        "decodes and predicts may be quite another matter."
        if processor
        else " Which processor this is, is not known; the document's was an Intel Xeon X5680 (Westmere, 2010)."
    )
    said += (
        f" The system governs the frequency (its governor is called {governor})"
        if governor
        else " The frequency cannot be pinned or read here"
    )
    if isinstance(counters_, str):
        return f"{said}, and there are no counters: {counters_}. So cycles, stalls and real misses were not measured."
    return f"{said}, and the processor's counters can be read: they stand beside what was simulated."


def objection_planted(differ: list[str], stands: Share | None, without_code: int = 0) -> str:
    """“You built the trap.” differ: verdicts of D1 by lot, one for each build; stands: of bisections without a trap, of which
    so many blame a commit that changes no machine code."""
    known = [one for one in differ if one in (YES, NO)]
    if len(known) < len(differ) or not differ:
        said = "What chance does to CPython's call_method cannot be told in every build of this run."
    elif set(known) == {YES}:
        said = "Chance does it as well, in its measure: in every build that was linked, random orders of call_method differ."
    elif set(known) == {NO}:
        said = "Chance does not do it to call_method here: its random orders do not differ by what would matter."
    else:
        said = "Chance does it in one build and not in the other: random orders of call_method differ in one only."
    second = (
        ""
        if stands is None
        else f" And without a trap, {share_fragment(stands)} of what bisection blames stand a second look{_by_a_coin(stands, without_code)}."
    )
    return f"The trap is built, and no verdict takes its size for a result. {said}{second}"


def objection_pages(of_pages: Interval, of_sets: Interval) -> str:
    """“At 4096 bytes the number of pages differs too.”"""
    return f"It does: so {SPREAD} bytes stand between, with as many pages and all sets. {pages(of_pages)} {sets(of_sets)} {pages_or_sets(of_pages, of_sets)}"


def objection_simulated(found: dict[str, tuple[Interval | str, str]], counters_: list | str) -> str:
    """“A simulator is no processor.” found: by benchmark and build, slower less faster orders, and its verdict."""
    seen = (
        "No counters check it here."
        if isinstance(counters_, str)
        else "Counters of the processor stand beside it, for the functions and the small machine."
    )
    counted = {name: verdict for name, (one, verdict) in found.items() if not isinstance(one, str)}
    if not counted:
        return f"It is not. {seen} And this run simulated no order that it can tell from another, so nothing is known of how its misses go with time."
    by = {answer: [name for name, verdict in counted.items() if verdict == answer] for answer in (YES, NO)}
    open_ = [name for name in counted if name not in (*by[YES], *by[NO])]
    parts = []
    if by[YES]:
        parts.append(f"slow orders also miss more often in {listed(by[YES])}")
    if by[NO]:
        parts.append(f"time and simulated misses do not go together in {listed(by[NO])}")
    if open_:
        parts.append(f"whether they do cannot be told in {listed(open_)}")
    return f"It is not. {seen} What can be asked without them is whether its misses go with the time of the clock: {'; '.join(parts)}."


# ---- the predictions ----


def prediction_1(found: Interval) -> str:
    """A call APART over one packed."""
    return f"{MANY} functions: {_compared(f'a call at {APART} bytes', 'a packed one', found)}."


def prediction_2(found: dict[str, tuple[Interval | str, str]]) -> str:
    """How far apart are the fastest and the slowest order of call_method, by build? With the answers of the limit of D1."""
    said = [
        f"{where}, not measured, as {one}" if isinstance(one, str) else f"{where}, {_apart(one, verdict)}"
        for where, (one, verdict) in found.items()
    ]
    return f"For call_method, slowest over fastest of {ORDERS} orders, noise taken out: {'; '.join(said)}."


def _apart(found: Interval, verdict: str) -> str:
    if not found.is_known:
        return f"not known, as {UNKNOWN}"
    if verdict == YES:
        return f"{text(found)}"
    if verdict == NO:
        return f"nothing that somebody would call a regression, {text(found)}"
    return f"whether they differ by {_percent(THRESHOLDS[0] - 1)} or more cannot be told, {text(found)}"


def prediction_3(found: dict[str, tuple[Share, Share, float] | str]) -> str:
    """By build, orders of call_method that pass for a regression of 2 %, copies of one program that do, and how many orders
    would by noise alone."""
    said = [f"{where}, {_pass(one)}" for where, one in found.items()]
    return f"As regressions of 2 %, by call_method: {'; '.join(said)}."


def _pass(found: tuple[Share, Share, float] | str) -> str:
    if isinstance(found, str):
        return f"not measured, as {found}"
    orders, copies, expected = found
    at = orders.at()
    of_copies = f"{copies.events} of {copies.trials} copies of one program pass" if copies.trials else "no copy was run"
    return (
        f"{orders.events} of {orders.trials}, which stands for {100 * at.low:.0f} to {100 * at.high:.0f} in a hundred (noise alone "
        f"makes one expect {expected_fragment(expected)}; {of_copies})"
    )


def prediction_4(with_a_trap: str, without: str) -> str:
    """What does bisection say? The sentences of both histories."""
    return f"A commit's name, each time: it has no other answer. {with_a_trap} {without}"


def takeaway(differ: dict[str, Interval | str]) -> str:
    """The largest distance between random orders that this run is sure of. By benchmark and build."""
    sure = {name: one for name, one in differ.items() if not isinstance(one, str) and one.is_known and one.low > 1}
    if not sure:
        return "That random orders of CPython differ cannot be told from noise here; draw more of them, and do not conclude that they agree."
    name = max(sure, key=lambda one: sure[one].low)
    return (
        f"Random orders of CPython differ here, most surely in {name}: {words(sure[name])} between fastest and slowest of {ORDERS}, "
        "noise taken out."
    )
