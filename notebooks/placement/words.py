"""The sentences of the chapter "Code placement" that a run chooses: each from the intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". Verdicts are those of ffilab/judge/rules.py; a number that could not be had
comes as the reason why, a text.
"""

import math

from ffilab.draw import capital, listed, number, text
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.rules import NO, OPEN, YES
from notebooks.placement.experiment import APART, DENSE, MANY, Cache
from notebooks.placement.results import (
    BY_A_COIN,
    CALL_BYTES,
    ORDERS,
    PUBLISHED,
    SAME_WORK,
    THRESHOLDS,
    TOO_SLOW,
    matters,
    sets_met,
)

# What two orders, or kinds of links, have to differ by to matter.
SMALL = f"{100 * (THRESHOLDS[0] - 1):.0f} %"
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


def _by_answer(what: str, found: dict[str, tuple[Interval | str | None, str]], sentences: dict[str, str]) -> str:
    """One sentence for each answer that some have, with their names and intervals in it; where there is no number, why."""
    said, lacking = [], {}
    for name, (one, _) in found.items():
        if not isinstance(one, Interval):
            lacking.setdefault(one or UNKNOWN, []).append(name)
    for answer, sentence in sentences.items():
        names = [
            f"{name} ({text(one)})"
            for name, (one, given) in found.items()
            if isinstance(one, Interval) and (given if given in sentences else OPEN) == answer
        ]
        said += [capital(sentence.format(listed(names)))] if names else []
    for why, names in lacking.items():
        said.append(f"Nothing is known of {what}{f' in {listed(names)}' * (len(names) < len(found))}: {why}.")
    return " ".join(said)


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
    limit = f"take {TOO_SLOW:g} times as long as ones 16 bytes apart"
    if math.isnan(kept):
        return f"At {APART} bytes, how many functions keep their time is not known: {UNKNOWN}."
    if math.isinf(slow):
        return f"At {APART} bytes, no number of functions from which on all {limit} or longer is beyond doubt here."
    if kept >= slow:
        return f"At {APART} bytes, how many functions keep their time cannot be told here."
    start = (
        f"up to {kept:.0f} functions surely take less than" if kept else "no number of functions surely takes less than"
    )
    said = (
        f"At {APART} bytes, {start} {TOO_SLOW:g} times as long as ones 16 bytes apart, and from {slow:.0f} on all surely take longer. "
        + "".join(f"With {n} functions it is {text(one)} all the same. " for n, one in before.items())
        + f"The level-1 instruction cache ({cache.name}) has {cache.ways} ways. "
    )
    if not kept and cache.ways < slow:
        return f"{said}Whether the two agree cannot be told."
    if kept <= cache.ways < slow:
        return f"{said}The two agree: what overflows may well be this cache."
    if kept > cache.ways:
        return (
            f"{said}So more of them keep their time than that cache can hold. An explanation, not tested here: processors of today "
            "keep decoded instructions in a cache of its own, and fetch ahead of what they execute."
        )
    return f"{said}Something smaller than this cache overflows first, or something else disturbs this run."


def pages_or_sets(of_pages: Interval, of_sets: Interval, elsewhere: dict[int, Interval]) -> str:
    """Which of the two explains more of what APART costs? elsewhere: other numbers of functions with which pages cost something."""
    dear_pages, dear_sets = (one.is_known and one.low > 1 for one in (of_pages, of_sets))
    nothing_of_pages, nothing_of_sets = (one.is_known and one.high < TOO_SLOW for one in (of_pages, of_sets))
    pages_, sets_ = f"extra pages ({text(of_pages)})", f"conflicts in a cache set ({text(of_sets)})"
    if dear_pages and dear_sets:
        which = "which of them more cannot be told"
        if of_sets.low > of_pages.high:
            which = "the sets more than the pages"
        elif of_pages.low > of_sets.high:
            which = "the pages more than the sets"
        said = f"With {MANY} functions, {pages_} and {sets_} both cost something; {which}."
    elif dear_sets:
        said = f"With {MANY} functions, {sets_} are expensive; {_dear(pages_, nothing_of_pages)}."
    elif dear_pages:
        said = f"With {MANY} functions, {pages_} are expensive; {_dear(sets_, nothing_of_sets)}. Think of the instruction TLB first."
    else:
        said = f"With {MANY} functions, whether {pages_} or {sets_} cost anything cannot be told here."
    if elsewhere:
        costs = listed([f"{n} ({text(one)})" for n, one in elsewhere.items()])
        said += f" With fewer functions, extra pages cost something: {costs}."
    return said


def _dear(what: str, nothing: bool) -> str:
    return f"{what} are not" if nothing else f"whether {what} cost anything cannot be told here"


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
        return f"no {what} are slower by {SMALL}: slowest fifth over fastest {text(found)}"
    if not found.excludes(1):
        return f"whether the {what} differ cannot be told: slowest fifth over fastest {text(found)}"
    if found.value > 1:
        return f"the {what} differ: the slowest fifth takes {text(found)} times as long as the fastest"
    return (
        f"the {what} that were slow in one half of the processes were fast in the other ({text(found)}): something changed while "
        "it was measured"
    )


def loops(found: Interval, processes: int) -> str:
    """The slowest fifth of the offsets over the fastest, not biased by the choice."""
    said = f"{capital(_fifths('places of the loop', found))} (n = {processes} processes)."
    if matters(found):
        return f"{said} An explanation, not tested here: a loop that begins late in a block of code takes one block more to fetch."
    return said


def environment(random: Interval | None, fixed: Interval | None) -> str:
    """The same for sizes of the environment, with random addresses and with fixed ones; None: not measured."""
    if random is None or fixed is None:
        return "With random or fixed addresses alone, as this system allows it, what randomisation does to an effect cannot be told."
    both = " ".join(
        f"With {how} addresses, {_fifths('sizes of the environment', one)}."
        for how, one in (("random", random), ("fixed", fixed))
    )
    if matters(random):
        return (
            f"{both} Where addresses are random, a size cannot say where the stack lies: this run has no explanation."
        )
    if matters(fixed):
        return (
            f"{both} An explanation, not tested here: randomisation moves the stack anyway, and turns a constant error into noise, which "
            "an interval shows."
        )
    return both


# ---- the lottery ----


def lots(found: dict[str, tuple[Interval | str, str]], published: Share) -> str:
    """What random orders decide: how far one pair in twenty differs, by benchmark and build, with the answer of D1; and how many
    orders of call_method are as much slower as the slow binary of 2016."""
    said = _by_answer(
        "random orders",
        _graded(found),
        {
            YES: f"Chance makes regressions of {SMALL} in {{}}: one pair of random orders in twenty differs by so much or more, without "
            "the noise.",
            SOME: f"Orders differ in {{}}, and whether one pair in twenty does by {SMALL} is open.",
            OPEN: "Whether orders differ cannot be told in {}.",
            NO: f"Fewer than one pair of orders in twenty differs by {SMALL} in {{}}.",
        },
    )
    if not published.trials:
        return said
    slow = f"as much slower than the linker's own as the slow binary of 2016 was than the fast one, {_percent(PUBLISHED - 1)}"
    if published.events:
        return f"{said} {share_fragment(published)} random orders of call_method are {slow}."
    return f"{said} None of {published.trials} random orders of call_method is {slow}; the share of all orders may be up to {_percent(published.at().high)}."


# Between yes and open: they differ, and it is open by how much.
SOME = "some"


def _graded(found: dict[str, tuple[Interval | str, str]]) -> dict[str, tuple[Interval | str, str]]:
    """The same, with SOME where it is open by how much orders differ, and not whether."""
    return {
        name: (
            one,
            SOME if answer not in (YES, NO) and isinstance(one, Interval) and one.is_known and one.low > 1 else answer,
        )
        for name, (one, answer) in found.items()
    }


def own_order(found: dict[str, tuple[Interval | None, list[float]]]) -> str:
    """Random orders over the linker's own, in the middle, and each of them: is the linker's a lucky lot?"""
    said, open_ = [], []
    for name, (middle, each) in found.items():
        if middle is None or not middle.is_known or not middle.excludes(1):
            open_.append(name)
            continue
        lucky, n = middle.value > 1, len(each)
        worse = sum(one > 1 for one in each) if lucky else sum(one < 1 for one in each)
        apart = sorted(100 * abs(one - 1) for one in each)
        by = f", by {apart[0]:.1f} to {apart[-1]:.1f} %" if worse == n else ""
        said.append(
            f"The linker's own order is {'a fast one' if lucky else 'a slow one'} in {name}: {f'all {n}' if worse == n else f'{worse} of {n}'} "
            f"random orders are {'slower' if lucky else 'faster'}{by}, in the middle {text(middle)} times its time."
        )
    if open_:
        it = "it" if said else "the linker's own order"
        said.append(f"Whether {it} is a fast one in {listed(open_)} cannot be told.")
    return " ".join(said)


def expected_fragment(number_: float) -> str:
    """`2.1`, or that it is not known."""
    return "a number that is not known" if math.isnan(number_) else f"{number_:.1f}"


def hot_together(found: dict[str, tuple[Interval | str | None, str]]) -> str:
    """Links with the hot functions together over links with them anywhere, with the answers of D6."""
    return _by_answer(
        "hot functions together",
        found,
        {
            YES: f"Hot functions together make it faster by {SMALL} or more in {{}}: time together over time anywhere.",
            NO: f"Hot functions together do not make it faster by {SMALL} in {{}}.",
            OPEN: f"Whether hot functions together make it faster by {SMALL} cannot be told in {{}}.",
        },
    )


def miss_more(found: dict[str, tuple[Interval | str | None, str]], highest: dict[str, float]) -> str:
    """Misses of a thousand instructions, slower less faster half of the orders, with the answers of D3. highest: of all orders."""
    said = _by_answer(
        "misses",
        found,
        {
            YES: "Slow orders miss more often than fast ones in {}: misses of a thousand instructions, slower less faster half.",
            NO: f"Slow orders do not miss {MATTERS:g} more of a thousand instructions in {{}}.",
            OPEN: f"Whether slow orders miss {MATTERS:g} more of a thousand instructions cannot be told in {{}}.",
        },
    )
    none = [name for name, one in highest.items() if one < MATTERS]
    if not none:
        return said
    return (
        f"{said} In {listed(none)}, no order misses more than {max(highest[name] for name in none):.2f} of a thousand instructions: what "
        "fits into the cache has no misses to lose, in whatever order it lies."
    )


def stall_more(found: dict[str, tuple[Interval | str | None, str]]) -> str:
    """Stalled front-end cycles, slower over faster half of the orders, with the answers of D2."""
    return _by_answer(
        "stalls",
        found,
        {
            YES: "Slow orders stall more at the front end than fast ones in {}: slower over faster half.",
            NO: "Slow orders do not stall more at the front end by a quarter in {}.",
            OPEN: "Whether slow orders stall more at the front end by a quarter cannot be told in {}.",
        },
    )


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


def same_work(instructions: float | str, misses: float | str) -> str:
    """Slow over fast by a simulator. Counts have no interval."""
    if isinstance(instructions, str) or isinstance(misses, str):
        return f"Instructions and misses: not measured here, as {instructions if isinstance(instructions, str) else misses}."
    more = f"{number(misses, max(0.1, misses / 100))} times as many misses"
    if abs(instructions - 1) <= SAME_WORK:
        return f"Slow over fast, counted by a simulator: the same instructions to within {100 * SAME_WORK:g} %, and {more}."
    return f"Slow over fast, counted by a simulator: other instructions, {instructions:.4f} times as many, and {more}. The work differs."


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
        return f"{said}: bisection finds it."
    if verdict == NO:
        return f"{said}: bisection does not find it in seven of ten cases."
    return f"{said}. Whether it finds it in seven of ten cases cannot be told here."


def blamed_by_chance(messages: dict[str, int], stands: Share, without_code: int, verdict: str) -> str:
    """Bisections without a trap: how many different commits they blame, and how often the blame stands a second look.

    without_code: how many of those that stand blame a commit that changes no machine code. verdict: D5's."""
    many, events = len(messages), stands.events
    said = (
        f"Without a trap, {sum(messages.values())} bisections blame {many} different commit{'s' * (many > 1)}. Measured again, "
        f"{share_fragment(stands)} blamed commits are still slow; noise alone would leave {BY_A_COIN * stands.trials:.0f}"
    )
    if events == 1:
        said += f", and this one changes {'no ' * without_code}machine code"
    elif events:
        said += {
            0: f", and all {events} change machine code",
            events: f", and none of the {events} changes machine code",
        }.get(without_code, f", and {without_code} of the {events} change no machine code")
    if verdict == YES:
        return f"{said}. Bisection blamed noise."
    if verdict == NO:
        return f"{said}. So something does differ between these commits."
    return f"{said}. Whether it blamed noise cannot be told here."


# ---- limits ----


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


# ---- the predictions ----


def prediction_1(found: Interval) -> str:
    """A call APART over one packed."""
    return f"{MANY} functions: {_compared(f'a call at {APART} bytes', 'one at 16 bytes', found)}."


def prediction_2(found: dict[str, Interval | str]) -> str:
    """How far apart are the fastest and the slowest order of call_method, by build?"""
    said = [
        f"{where} {f'not known, as {one}' if isinstance(one, str) else 'as long' if one.high == 1 else f'{text(one)} times as long'}"
        for where, one in found.items()
    ]
    return f"Without the noise, the slowest of {ORDERS} orders of call_method would take, against the fastest, {listed(said)}."


def prediction_3(found: dict[str, tuple[Share, float]]) -> str:
    """Orders that pass for a regression of 2 %, by benchmark and build, and how many of equal programs would by noise alone."""
    if not found:
        return "Nothing was linked here."
    said = [
        f"{one.events} of {one.trials} in {name} (by noise alone {expected_fragment(noise)})"
        for name, (one, noise) in found.items()
    ]
    return f"So many orders look slower than the linker's own by {SMALL}: {listed(said)}."


def prediction_4(trap: Share, messages: dict[str, int]) -> str:
    """What does bisection say? Of the history with the trap, and of that without."""
    return (
        f"A commit's name, each time: it has no other answer. With the trap it is the trap's {trap.events} times of {trap.trials}; without "
        f"one, {sum(messages.values())} bisections give {len(messages)} name{'s' * (len(messages) > 1)}."
    )


def takeaway(found: dict[str, tuple[Interval | str, str]]) -> str:
    """What the lots say, in one sentence. found: as in `lots`."""
    graded = _graded(found)
    by = {answer: [name for name, (_, given) in graded.items() if given == answer] for answer in (YES, SOME, NO)}
    if by[YES]:
        return f"Linking alone makes a regression of {SMALL} here, in {listed(by[YES])}: one pair of random orders in twenty differs by more."
    if by[SOME]:
        return f"Random orders of CPython differ here, in {listed(by[SOME])}; whether by {SMALL} is open."
    if len(by[NO]) == len(found):
        return f"Fewer than one pair in twenty of CPython's random orders differs by {SMALL} here."
    return "Whether random orders of CPython differ cannot be told from noise here; do not conclude that they agree."
