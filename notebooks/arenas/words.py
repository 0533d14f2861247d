"""The sentences of the chapter "Arenas" that a run chooses: each from the intervals and verdicts that the ledger uses.

Verdicts are those of ffilab/judge/rules.py, intervals of MiB if nothing else is said. None: it was not measured here.
"""

import math
from collections.abc import Sequence

from ffilab.draw import listed, number, text
from ffilab.judge.estimates import Interval, known
from ffilab.judge.rules import NO, YES
from notebooks.arenas.results import ALARM, SHOWS, middle

MIB = "MiB"
# Of a rule: the interval contains no effect and reaches none of interest, or lies between the two; of several: they differ.
NO_EFFECT, TOO_LITTLE, IN_PART = "no effect of interest", "less than is of interest", "with it in part"
UNKNOWN = "too few values were measured for an interval"


def _mib(found: Interval | None) -> str:
    return text(found, MIB) if found is not None else "a number that was not measured"


def _from_to(found: Interval, unit: str = "") -> str:
    """An interval in words; where it is wider than its own value, its ends alone, as the value says nothing then."""
    if found.low > 0 and 0 < abs(found.value) < 2 * found.half_width:
        low, high = number(found.low, found.low), number(found.high, found.half_width)
        return f"anything from {low} to {high}{' ' if unit else ''}{unit}"
    return text(found, unit)


def _factor(ratio: Interval) -> str:
    """A ratio as a factor above 1."""
    return f"{text(ratio if ratio.value >= 1 else ratio.inverse)} times as"


def grew(condition: str, gil: Interval | None, free_threaded: Interval | None, more: Interval | None) -> str:
    """What grew on each build under a condition, and how much more without the GIL."""
    if not known(more):
        return f"{condition}: whether the builds differ is not known, {UNKNOWN}."
    both = f"{_mib(gil)} with the GIL and {_mib(free_threaded)} without it"
    if not more.excludes(0):
        return f"{condition}: {both}; no difference is seen between the builds."
    return f"{condition}: {both}; the builds differ by {text(more, MIB)}."


def published_number(
    where: str, side: str, size: str, more: Interval | None, published: float, factor: Interval | None = None
) -> str:
    """A19, the number: what the free-threaded build grew by more, under a condition. Verdicts on its side and its size. factor: of
    both builds, as the talk has it."""
    if not known(more):
        return f"{where}, whether the talk's number appears cannot be told: it was not measured here, or {UNKNOWN}."
    times = f", a factor of {text(factor)} (it prints HIGH above 1.5)" if known(factor) else ""
    said = f"the builds differ by {text(more, MIB)}{times}, and the talk's by {published:g} {MIB}"
    if side == YES and size == YES:
        return f"{where}, the talk's number appears: {said}."
    if side == YES:
        how = "of another size" if size == NO else "its size is not resolved"
        return f"{where}, the talk's direction appears, {how}: {said}."
    if side == NO:
        return f"{where}, the talk's number does not appear: {said}."
    return f"{where}, whether the talk's number appears cannot be told: {said}."


def nearer(published: float, on: Interval | None, off: Interval | None) -> str:
    """What all calls together saw grow, in MiB: on the free-threaded build with its GIL on, and off; and by the talk's print."""
    if not known(on) or not known(off):
        return f"To which of the two the talk's print is nearer cannot be told here: {UNKNOWN}."
    said = f"the calls saw {text(on, MIB)} grow with the GIL on and {text(off, MIB)} with it off, and the talk's saw {published:.2f} {MIB}"
    far_on, far_off = (
        [abs(math.log(published / max(end, 0.01))) for end in (found.low, found.high)] for found in (on, off)
    )
    if max(far_on) < min(far_off):
        return f"The talk's print is nearer to the build with its GIL on: {said}."
    if max(far_off) < min(far_on):
        return f"The talk's print is nearer to the build with its GIL off: {said}."
    return f"To which of the two the talk's print is nearer cannot be told: {said}."


def blocks(published: tuple[int, int], ours: tuple[int, int]) -> str:
    """With less room than one block: processes that ended well, of all, with the talk's worker and with ours."""
    if not published[1] or not ours[1]:
        return "Whether the talk's blocks are asked for at all was not tested here."
    what = "whether the talk's program asks for its blocks cannot be told"
    if published[0] == published[1] and not ours[0]:
        what = "as built here, the compiler took the talk's block away, and the program never asks malloc for it. What its native threads take is their stacks, and what starting them takes"
    elif published[0] != published[1] and not ours[0]:
        what = "the talk's program does ask malloc for its blocks"
    return f"With less room than one block, {published[0]} of {published[1]} processes ended well with the talk's worker and {ours[0]} of {ours[1]} with ours, which hides the block from the optimiser: {what}."


def arenas_account(verdict: str, held: Interval | None, rss: Interval | None) -> str:
    """A19, is it memory of arenas? The builds' difference in what glibc holds, and in RSS, with huge pages for all."""
    if not known(held) or not known(rss):
        return "How much of it is memory of arenas cannot be told here: there are no huge pages, or too few values, to compare."
    said = f"with the GIL off against on, by glibc's own account the builds differ by {text(held, MIB)}, by the kernel's by {text(rss, MIB)}"
    if verdict == YES:
        return f"What the arenas hold differs too: {said}."
    if verdict == NO:
        return f"It is not memory of arenas: {said}."
    return f"Whether it is memory of arenas cannot be told here: {said}."


def native_threads(where: str, part: Interval | None) -> str:
    """RSS under a condition, less that without native threads."""
    if not known(part):
        return f"{where}, what the native threads add is not known: {UNKNOWN}."
    if not part.excludes(0):
        return (
            f"{where}, no growth by the native threads is seen: {text(part, MIB)} beyond what the Python threads take."
        )
    if part.value < 0:
        return f"{where}, memory grew by less with native threads than without: the difference is {text(-part, MIB)}."
    return f"{where}, the native threads add {text(part, MIB)} to what the Python threads take."


def for_each_python_thread(found: dict[int, Sequence[float]]) -> str:
    """MiB of huge pages without any native thread, over Python threads alive at once, by the number of them asked for."""
    if not found:
        return "How many huge pages a Python thread comes to was not measured here."
    if max(max(values) for values in found.values()) < 0.2:
        return "No huge pages became resident for Python threads here."
    every = listed([f"{middle(values)} with {threads}" for threads, values in found.items()])
    return f"MiB of huge pages for each Python thread that was alive at once, by how many were asked for: {every}."


def objects(elsewhere: Interval | None) -> str:
    """MiB of the huge pages that came, in mappings where Python threads keep their objects, less all of them."""
    if not known(elsewhere):
        return f"In which mappings they lie is not known here: {UNKNOWN}."
    if elsewhere.high < 0:
        return f"Not all of them lie in mappings where Python threads keep their objects: {text(-elsewhere, MIB)} are elsewhere."
    return "They lie in the mappings where Python threads keep their objects: none is seen elsewhere."


def cap(where: str, at: int, processes: int, most: int) -> str:
    """In how many processes glibc made as many arenas as it may."""
    if not processes:
        return f"{where}: not measured here."
    said = f"{where}, arenas at the cap of {most}, the main one included:"
    if at == processes:
        return f"{where}, all {processes} processes reached the cap of {most} arenas, so the count tells you the cap and nothing else."
    if not at:
        return f"{said} no, in none of {processes} processes."
    return f"{said} in {at} of {processes} processes, so their number is cut off in some and undecided."


def equal_concurrency(held: Interval | None) -> str:
    """What glibc holds with 400 native threads at once: without the GIL over with it."""
    if not known(held):
        return f"At equal concurrency the builds cannot be compared: {UNKNOWN}."
    if not held.excludes(1):
        return f"At equal concurrency, no difference between the builds is seen in what glibc holds: {text(held)} without the GIL over with it."
    build = "without the GIL" if held.value > 1 else "with the GIL"
    return f"At equal concurrency, glibc still holds {_factor(held)} much {build}."


def reached(at_once: str, held: str, threads: Interval | None, mib: Interval | None) -> str:
    """A19, the mechanism: verdicts and ratios, without the GIL over with it, where calls keep the GIL and touch their blocks."""
    if not known(threads) or not known(mib):
        return f"How many threads exist at once in each build is not known here: {UNKNOWN}."
    ways = {
        YES: "more native threads exist at once without the GIL",
        NO: "there are not more native threads at once without the GIL",
    }
    amounts = {YES: "glibc holds more with them", NO: "glibc does not hold more"}
    first = ways.get(at_once, "whether more native threads exist at once without the GIL cannot be told")
    then = amounts.get(held, "whether glibc holds more cannot be told")
    return f"Where calls keep the GIL, {first} (factor {text(threads)}); {then} (factor {text(mib)})."


def released(ratio: Interval | None) -> str:
    """Native threads at once with the GIL: calls that release it over calls that keep it."""
    if not known(ratio):
        return f"What releasing the GIL changes is not known here: {UNKNOWN}."
    if not ratio.excludes(1):
        return f"If the calls release the GIL, no difference is seen in the threads at once: {text(ratio)}."
    if ratio.value < 1:
        return f"If the calls release the GIL, fewer threads exist at once, and not more: by a factor of {text(ratio.inverse)}."
    return f"If the calls release the GIL, the build with the GIL reaches {text(ratio)} times as many threads at once."


def risk(released_ratio: Interval | None, at_once: str) -> str:
    """What removing the GIL changes: threads at once by release of the GIL, and the verdict on those without the GIL."""
    more = known(released_ratio) and released_ratio.low > 1
    if more and at_once == YES:
        return "Calls that queue up for the GIL run at the same time without it; a library that releases the GIL had that risk all along."
    if at_once == YES:
        return "More native threads exist at once without the GIL; that releasing it does the same was not seen here."
    if at_once == NO:
        return "In this run, removing the GIL does not let more native threads exist at once."
    return "Whether removing the GIL lets more native threads exist at once cannot be told here."


def more_arenas(changes: dict[str, tuple[Interval | None, Interval | None]], most: int, allowed: int) -> str:
    """What so many arenas change where blocks are touched: ratios of what glibc holds and of what is resident, by interpreter.
    most: the cap of this machine."""
    said = [
        f"on {label}, {_change(held)} is held and {_change(rss)} resident"
        for label, (held, rss) in changes.items()
        if known(held) and known(rss)
    ]
    if not said:
        return f"What {allowed} arenas change cannot be told here: {UNKNOWN}."
    return f"With {allowed} arenas allowed and blocks that are touched, against {most}: {'; '.join(said)}."


def _change(ratio: Interval) -> str:
    how = "as much, as far as is seen," if not ratio.excludes(1) else "more" if ratio.value > 1 else "less"
    return f"{how} (a factor of {text(ratio)})"


def control(name: str, where: str, rss: Interval | None) -> str:
    """A control against the talk's condition: MiB of RSS more."""
    if not known(rss):
        return f"With {name}, on {where}: what it changes is not known here, {UNKNOWN}."
    said = f"With {name}, on {where}, "
    if not rss.excludes(0):
        return said + f"RSS is not seen to change against the talk's program, GIL off: {text(rss, MIB)}."
    if rss.value > 0:
        return said + f"RSS grew by more than in the talk's program, GIL off, by {text(rss, MIB)}."
    return said + f"RSS grew by less than in the talk's program, GIL off, by {text(-rss, MIB)}."


def steps(what: str, parts: dict[str, Interval]) -> str:
    """One step over the grid, in MiB by interpreter: where memory grew, where it fell, where neither is told."""
    kinds = {"grew": [], "fell": [], "is not seen to change": []}
    for label, one in parts.items():
        kind = (
            "is not seen to change"
            if not one.is_known or not one.excludes(0)
            else ("grew" if one.value > 0 else "fell")
        )
        kinds[kind].append(f"{label} ({text(one, MIB)})")
    said = [f"{kind} on {listed(labels)}" for kind, labels in kinds.items() if labels]
    return f"{what}, memory {'; '.join(said)}." if said else f"{what}: not measured here."


def together(label: str, verdict: str, more: Interval | None) -> str:
    """A20: MiB that Python threads and native threads add together beyond what each adds alone."""
    if not known(more):
        return f"Whether both numbers add more together on {label} than each alone is not known: {UNKNOWN}."
    how = {
        YES: "both numbers together add more than each alone",
        NO: "both numbers together do not add more than each alone, by what would matter",
    }.get(verdict, "whether both numbers together add more than each alone cannot be told")
    return f"On {label}, {how}: the rest is {text(more, MIB)}."


def product(verdict: str, small: Interval | None, large: Interval | None, factor: int) -> str:
    """A20: is growth in proportion to the product, by half at least? The native part in the smallest cell and the largest."""
    if not known(small) or not known(large):
        return f"Whether growth is in proportion to the product is not known: {UNKNOWN}."
    parts = f"{text(small, MIB)} in the smallest cell, {text(large, MIB)} in the largest, where the product is {factor} times as large"
    if verdict == YES:
        return f"Growth is in proportion to the product, by half at least: {parts}."
    if verdict == NO:
        return f"Growth is not proportional to the product: a fixed cost in the smallest cell is enough for that. {parts[0].upper()}{parts[1:]}."
    return f"Whether growth is in proportion to the product cannot be told: {parts}."


def amplified(verdict: str, ratio: Interval | None) -> str:
    """A20 as run: what the talk's matrix draws, in its largest cell over its smallest."""
    if not known(ratio):
        return f"How the amplification goes over the matrix cannot be told here: {UNKNOWN}."
    how = {
        YES: "is larger in the largest cell than in the smallest",
        NO: f"is {'smaller in' if ratio.high < 1 else 'not larger, by what would matter, in'} the largest cell than in the smallest",
    }.get(verdict, "may be larger or not in the largest cell than in the smallest")
    return f"The amplification that the talk draws {how}: a factor of {text(ratio)}."


def in_use(way: str, more: Interval | None, left_kib: float) -> str:
    """MiB that glibc counts as in use after the last round, more than before the first; and what our code left behind."""
    if not known(more):
        return f"With {way}, what is in use is not known: {UNKNOWN}."
    said = f"With {way}, what glibc counts as in use changed by {text(more, 'KiB', 1024)}; our entries left behind are {left_kib:.1f} KiB"
    if more.low * 1024 > left_kib:
        return f"{said}. The rest is not ours: threads keep what was freed in a cache (tcache), and glibc counts that as in use; an explanation, not tested here."
    if more.high * 1024 < left_kib:
        return f"{said}, and glibc does not count all of them."
    return f"{said}: the two are not told apart."


def held(way: str, more: Interval | None, left: Interval | None) -> str:
    """MiB resident after the last round, more than before the first; and the part of it that malloc_trim left, as a ratio."""
    if not known(more) or not known(left):
        return f"With {way}, what is held is not known: {UNKNOWN}."
    if more.low <= 0:
        return f"With {way}, no memory is seen to stay: {text(more, MIB)}."
    stay = f"With {way}, {_from_to(more, MIB)} stay resident"
    if not left.excludes(1):
        return f"{stay}, and malloc_trim is not seen to give any back: over what stayed it leaves {_from_to(left)}."
    return f"{stay}; malloc_trim {'gives memory back' if left.value < 1 else 'adds to it'}: over what stayed it leaves {_from_to(left)}."


def still_growing(later: dict[str, tuple[int, int]]) -> str:
    """Processes that grew by more than SHOWS in the second half of the rounds, of all, by way: is held memory taken again?"""
    ends = {True: "the next round takes it again", False: "whether the next round takes it again is not decided"}
    said = [
        f"{grew} of {n} processes grew with {way}, so {'memory goes on growing' if grew == n else ends[grew == 0]}"
        for way, (grew, n) in later.items()
        if n
    ]
    if not said:
        return "Whether a later round takes what is held again was not measured here."
    return f"In the second half of the rounds, counting what is more than {SHOWS:g} {MIB}: {'; '.join(said)}."


def threshold(setting: str, other: str, verdict: str, more: Interval | None) -> str:
    """A22: MiB that glibc holds under one value of a threshold, less those under the other."""
    name, values = setting.partition("=")[0], [one.partition("=")[2] for one in (setting, other)]
    if not known(more):
        return f"What {name} does is not known here: {UNKNOWN}."
    said = f"held with {values[0]} minus held with {values[1]} is {text(more, MIB)}"
    if verdict == YES:
        return f"Setting {name} does what the talk says: {said}."
    if verdict == NO:
        return f"Setting {name} does not do what the talk says: {said}."
    return f"Whether {name} does what the talk says cannot be told here: {said}."


def remedy(name: str, work: str, memory: Interval | None, rate: Interval | None) -> str:
    """A remedy over none: MiB grown, and blocks a second."""
    if not known(memory) or not known(rate):
        return f"With {name}, {work}: it cannot be compared here, {UNKNOWN}."
    if not memory.excludes(1):
        size = f"no difference in memory is seen (a factor of {_from_to(memory)})"
    else:
        times = text(memory.inverse if memory.value < 1 else memory)
        size = f"memory is {'smaller' if memory.value < 1 else 'larger'} by a factor of {times}"
    if not rate.excludes(1):
        return f"With {name}, {work}: {size}, and no difference in speed is seen (a factor of {_from_to(rate)})."
    times = text(rate.inverse if rate.value < 1 else rate)
    return f"With {name}, {work}: {size}, and the work is {'slower' if rate.value < 1 else 'faster'} by a factor of {times}."


def ratings(verdicts: dict[str, str]) -> str:
    """A21: how the rules answer, by scenario: is the allocator that the talk prefers the better one?"""
    named = {YES: "with the talk", NO: "against it"}
    kinds = {YES: [], NO: [], IN_PART: [], TOO_LITTLE: [], NO_EFFECT: [], "undecided or not measured": []}
    for scenario, verdict in verdicts.items():
        kinds[verdict if verdict in kinds else "undecided or not measured"].append(scenario)
    parts = [f"{named.get(kind, kind)} {len(found)} ({'; '.join(found)})" for kind, found in kinds.items() if found]
    return f"Of {len(verdicts)} scenarios the rules decide so: {', '.join(parts)}."


def order(verdict: str, ratio: Interval | None) -> str:
    """A21d, an order without a size: an empty process with jemalloc over one with glibc."""
    if not known(ratio):
        return f"Whether an empty process takes longer with jemalloc is not known here: {UNKNOWN}."
    how = {YES: "takes longer with jemalloc", NO: "does not take longer with jemalloc"}
    small = ". The effect is small: less than the fifth that the other scenarios ask for" if ratio.high < 1.2 else ""
    said = how.get(verdict, "may take longer with jemalloc or not")
    return f"An empty process {said}, over glibc a factor of {text(ratio)}{small}."


# What is said of the effects of allocators: those of this factor or more.
LARGE, SAID = 2.0, 6


def largest(effects: dict[tuple[str, str], Interval]) -> str:
    """The largest differences to glibc's, by scenario and allocator; less is better in all of them."""
    clear = {which: one for which, one in effects.items() if one.is_known and (one.low > LARGE or one.high < 1 / LARGE)}
    if not clear:
        return f"No allocator differs from glibc's by a factor of {LARGE:g} or more, as far as this run tells."
    ordered = sorted(clear, key=lambda which: -abs(math.log(clear[which].value)))
    parts = [
        f"{scenario}, {arm}: {'larger' if one.value > 1 else 'smaller'} by a factor of {text(one if one.value > 1 else one.inverse)}"
        for (scenario, arm), one in ((which, clear[which]) for which in ordered[:SAID])
    ]
    return f"The largest differences to glibc's that are a factor of {LARGE:g} or more: {'; '.join(parts)}."


def python_objects(size: str, shares: dict[str, float]) -> str:
    """Of requests of a size to PyObject_Malloc, the share that glibc serves, by interpreter; one process each."""
    kinds = {"none": [], "all": [], "a part": []}
    for label, share in shares.items():
        kinds["none" if share < 0.1 else "all" if share > 0.9 else "a part"].append(label)
    said = [f"{kind} of them on {listed(labels)}" for kind, labels in kinds.items() if labels]
    what = f"Of {size} requests for Python objects, glibc serves"
    return (
        f"{what} {'; '.join(said)}."
        if said
        else f"What glibc serves of {size} requests for Python objects was not measured."
    )


def alarms(found: list[Interval]) -> str:
    """The A/A tests: the talk's condition less a second copy of itself."""
    seen = [one for one in found if one.is_known]
    if not seen:
        return f"The A/A test says nothing here: {UNKNOWN}."
    false = [one for one in seen if one.excludes(0)]
    if not false:
        return f"No A/A test of this section, of {len(seen)}, raised a false alarm."
    said = f"A/A tests of this section that raised a false alarm: {len(false)} of {len(seen)}."
    if any(one.low > ALARM or one.high < -ALARM for one in false):
        return f"{said} The two copies differ by more than {ALARM:g} {MIB}, and what rests on them is withheld where that is half of what is asked for, or more."
    return f"{said} They differ by less than the {ALARM:g} {MIB} that would matter."


def prediction_1(part: Interval | None, threads: int) -> str:
    """Untouched blocks: RSS, less that without native threads. threads: native ones, of all calls of a round."""
    if not known(part):
        return f"It cannot be told here: {UNKNOWN}."
    each = text(part, "KiB", 1024 / threads)
    return f"{native_threads('Where their memory is asked for', part)} Shared out among {threads} native threads: {each} for each, beside its 64 MiB."


def prediction_2(whole: Interval | None, none: Interval | None, part: Interval | None) -> str:
    """Free-threaded build: RSS as the talk ran it, without native threads, and the difference."""
    if not known(part) or not known(none):
        return f"What is left cannot be told here: {UNKNOWN}."
    said = f"without native threads {_mib(none)}, with them {_mib(whole)}"
    if not part.excludes(0):
        return f"On the free-threaded build, all of it as far as can be told: {said}."
    if part.value < 0:
        return f"On the free-threaded build, even more than all of it: {said}."
    if none.low <= 0:
        return f"On the free-threaded build, nothing that can be seen: {said}."
    return f"On the free-threaded build, all but {text(part, MIB)}: {said}."


def prediction_3(stays: dict[str, tuple[Interval | None, Interval | None]]) -> str:
    """MiB resident more than before, by what was left behind: after threads that ended, and in a pool that takes turns."""
    return " ".join(_where_more_stays(state, *pair) for state, pair in stays.items())


def _where_more_stays(state: str, ended: Interval | None, pooled: Interval | None) -> str:
    if not known(ended) or not known(pooled):
        return f"{state}, it is not known here: {UNKNOWN}."
    said = f"{text(ended, MIB)} after threads that ended, {text(pooled, MIB)} in a pool whose threads take turns"
    if pooled.low > ended.high:
        return f"{state}, more stays where threads stay: {said}."
    if pooled.high < ended.low:
        return f"{state}, more stays where threads ended: {said}."
    return f"{state}, which of the two keeps more cannot be told here: {said}."


def both_works(name: str, by_turns: tuple[Interval | None, ...], at_once: tuple[Interval | None, ...]) -> str:
    """A setting under both kinds of work, each memory and speed against no setting: what it saves in one it may cost in the other."""
    return f"{remedy(name, 'by turns', *by_turns)} {remedy(name, 'all at once', *at_once)}"


def prediction_4(
    settings: dict[str, tuple[Interval | None, Interval | None]],
    at_once: dict[str, tuple[Interval | None, Interval | None]],
) -> str:
    """By setting of glibc, memory and speed against no setting: for the work by turns, and all at once."""
    helps = {name: pair for name, pair in settings.items() if known(pair[0]) and pair[0].high < 1}
    if not helps:
        return "No setting of glibc is seen to make this work's memory smaller here, or nothing is known of it."
    best = min(helps, key=lambda name: helps[name][0].value)
    rivals = [name for name, (memory, _) in helps.items() if name != best and memory.low <= helps[best][0].high]
    beside = f" {listed(rivals)} cannot be told from it." if rivals else ""
    return f"{remedy(best, 'by turns', *helps[best])}{beside} {remedy(best, 'all at once', *at_once[best])}"
