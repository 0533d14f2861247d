"""What the chapter "Measuring on a noisy machine" says of a run: sentences that the run chooses, by the intervals of its verdicts."""

from ffilab import draw
from ffilab.judge.controls import NEGLIGIBLE
from ffilab.judge.estimates import LEVEL, Interval, Share, ShareDifference
from notebooks.measuring.results import p_value

# What a test at the talk's level calls different where nothing is; and what an interval at the level of the book excludes.
BY_CHANCE, AT_THE_BOOKS_LEVEL = 0.05, 1 - LEVEL
RARE = f"{100 * AT_THE_BOOKS_LEVEL:.0f} %"
NOTHING_LEFT = (
    "After step 2 the alarms are not told from those of chance, so step 3 had nothing certain to remove: this run does not show what restarts are for. Two "
    "copies of one call in one process share what a process draws."
)
STEPS = {1: "one process, one copy after the other", 2: "one process, interleaved", 3: "eight processes, interleaved"}


def _percent(interval: Interval) -> str:
    """A share or a fraction with its interval, in per cent."""
    return draw.text(interval, "%", 100)


def _count(share: Share) -> str:
    return f"{share.events} of {share.trials}"


# ---- the talk's method ----


def talks_table(different: int, pairs: int, largest: float) -> str:
    """What the talk's table of one process says: pairs called different, of all, and the largest adjusted p."""
    if different == pairs:
        return f"The table looks convincing: it calls all {pairs} pairs different, the largest adjusted p is {p_value(largest)}."
    if different:
        return f"In this process {different} of {pairs} pairs are called different."
    return "In this process the test sees no difference. One process alone decides nothing; see the next section."


def separated(share: Interval, processes: int) -> str:
    """How often the talk's method calls every pair of its four bindings different."""
    told = f"It was run in {processes} fresh processes. In {_percent(share)} of them it called all six pairs different"
    if share.low > 0.5:
        return f"{told}: in most of them. That is half of what a reader wants to know."
    if share.high < 0.5:
        return f"{told}: in fewer than half of them. A table of one process then depends on which process it was."
    return f"{told}. Whether that is more than half of them cannot be told here."


def winners(faster: dict[str, dict[str, int]]) -> str:
    """Whether processes agree on who is the faster one of a pair. faster: by pair, in how many processes each is called so."""
    turned = {pair: counts for pair, counts in faster.items() if len(counts) - ("neither" in counts) > 1}
    if not turned:
        return "On the faster one of each pair all processes agree that name one."
    each = "; ".join(
        f"{pair}, {' and '.join(f'{name} in {n}' for name, n in counts.items())}" for pair, counts in turned.items()
    )
    return f"On the faster one processes do not agree for {len(turned)} of {len(faster)} pairs, by medians of one process: {each}."


def first_table(faster: dict[str, int]) -> str:
    """Whom the talk's program calls the faster one of ctypes and cffi here, beside the talk's table. faster: as in `winners`."""
    ctypes, cffi = (faster.get(name, 0) for name in ("ctypes CDLL", "cffi ABI"))
    told = f"The talk's first table calls cffi faster than ctypes; here the same program names ctypes in {ctypes} of {sum(faster.values())} processes"
    side = _side(Share(ctypes, ctypes + cffi)) if ctypes + cffi else 0
    if side > 0:
        return f"{told}: the other way round. Why is not tested; the machine, the build and the versions are others."
    return f"{told}, and cffi in {cffi}: {'as in the talk' if side < 0 else 'who is the faster one cannot be told'}."


def beyond(found: dict[str, Share], reach: float) -> str:
    """Which pairs lie further apart than 98 % of the copies do, in more processes than copies would. found: processes, by pair."""
    within = [pair for pair, share in found.items() if share.at().low <= AT_THE_BOOKS_LEVEL]
    each = "; ".join(f"{pair}, {_count(share)}" for pair, share in found.items())
    told = f"Processes in which a pair lies further apart than {LEVEL:.0%} of the copies do ({reach:.1%}): {each}."
    if not within:
        return f"{told} Each is certainly more than the {RARE} of copies: more than the script alone does."
    return f"{told} What the table shows for {draw.listed(within)} may be the script."


def alarms(share: Interval, processes: int, reach: dict[float, float], tiny: Share | None) -> str:
    """How often the talk's script tells a call from itself; reach, tiny: as in results.yardstick and results.tiny."""
    low, high = (f"{part:.0%} of the pairs by less than {shift:.1%}" for part, shift in reach.items())
    told = f"Over {processes} fresh processes, the test called {_percent(share)} of the pairs different. Two copies lie apart: {low}, {high}."
    if tiny:
        told += f" Of the pairs called different, {_count(tiny)} lie less than {NEGLIGIBLE:.0%} apart: significant is not large."
    if share.low > BY_CHANCE:
        return f"{told} The share should be 5 %: on this machine, the samples of one process are not what the formula behind the p-value assumes."
    if share.high < BY_CHANCE:
        return f"{told} That is fewer than the 5 % which the test allows itself."
    return f"{told} That may be the 5 % which the test allows itself; whether it is more cannot be told here."


def _side(share: Share) -> int:
    """1 or -1 if more or fewer than half, 0 if that cannot be told."""
    interval = share.at()
    return 1 if interval.low > 0.5 else -1 if interval.high < 0.5 else 0


def position(leaning: dict[str, Share]) -> str:
    """Do the false alarms lean to one side, and to which? leaning: as in results.leaning."""
    if not leaning:
        return "No pair was called significant here, so whether false alarms lean to one side cannot be told."
    measured, loaded = leaning["measured"], leaning["loaded"]
    told = (
        f"In half of the processes the second copy was measured first. Of the significant pairs, the copy that was measured first "
        f"was the slower one in {_count(measured)}, and the copy that was loaded first in {_count(loaded)}."
    )
    sides = _side(measured), _side(loaded)
    which = {1: "slower", -1: "faster"}
    if all(sides):
        return (
            f"{told} Both lean: the copy measured first looks {which[sides[0]]}, and the copy loaded first looks {which[sides[1]]}. "
            "These alarms are no luck: the script is biased on this machine."
        )
    if sides[0]:
        return (
            f"{told} This is position bias: who is measured first looks {which[sides[0]]}, whichever copy it is. More samples "
            "in the same order keep that; random order takes it out."
        )
    if sides[1]:
        return f"{told} This follows the copy and not its position: who was loaded first looks {which[sides[1]]}."
    return f"{told} Neither is told from one half: position bias was not found here, and not ruled out."


def reader_of_tables(separates: Interval, itself: Interval) -> str:
    """What the two shares mean for a reader of a table that separates all its pairs."""
    if separates.low > BY_CHANCE and itself.low > BY_CHANCE:
        return (
            "Here, on a machine without the talk's settings, its script separates the bindings, and a call from itself too often. Its word that two calls differ means: "
            "these two sets of samples were not taken alike. It does not mean that one binding is faster."
        )
    if separates.low > BY_CHANCE and itself.high < 2 * BY_CHANCE:
        return (
            "Here the script separates the bindings, and no evidence was found that it separates a call from itself more often "
            "than it should: its word counts."
        )
    if separates.high < 2 * BY_CHANCE:
        return "Here the script hardly tells the bindings apart more often than chance would: its table says little."
    return "Here the shares are too uncertain: what the script's word is worth cannot be told."


# ---- a benchmark, step by step ----


def _drop(shares: dict[int, Share], step: int) -> Interval:
    """By how much the share of alarms falls from the step before to this one."""
    before, after = shares[step - 1], shares[step]
    return ShareDifference(before.events, before.trials, after.events, after.trials).at()


def _by_chance(share: Share) -> bool:
    """Are the alarms no more than those of chance, as far as can be told?"""
    return share.at().low <= AT_THE_BOOKS_LEVEL


def step_alarms(shares: dict[int, Share], step: int) -> str:
    """How many false alarms a step gives, and whether they are fewer than those of the step before."""
    if step not in shares or (step > 1 and step - 1 not in shares):
        return "Here too few benchmarks of this kind were completed: its false alarms cannot be counted."
    share = shares[step]
    told = f"False alarms: {_count(share)} benchmarks, {_percent(share.at())}."
    if step == 1:
        low, high = share.at().low, share.at().high
        if low > AT_THE_BOOKS_LEVEL:
            return f"{told} It should be {RARE}. This benchmark tells a call from itself."
        if high < BY_CHANCE:
            return f"{told} It should be {RARE}, and hardly more were seen: on this machine the simplest benchmark was good enough."
        return f"{told} Whether that is more than the {RARE} that it should be cannot be told here."
    drop = _drop(shares, step)
    if drop.low > 0:
        still = f" They are certainly more than {RARE} still." if share.at().low > AT_THE_BOOKS_LEVEL else ""
        return f"{told} They have fallen, by {draw.text(drop, 'points', 100)}.{still}"
    if drop.high < 0:
        return f"{told} They have not fallen but risen, by {draw.text(-drop, 'points', 100)}."
    return f"{told} Whether they have fallen cannot be told: the difference is {draw.text(drop, 'points', 100)}."


def steps_together(shares: dict[int, Share]) -> str:
    """What became of the false alarms from the first step to the last, and whether the last one passes its own control."""
    if 1 not in shares or 3 not in shares:
        return "What became of the false alarms over the three steps cannot be told here."
    first, last = shares[1], shares[3]
    nothing_left = " " + NOTHING_LEFT if 2 in shares and _by_chance(shares[2]) else ""
    drop = ShareDifference(first.events, first.trials, last.events, last.trials).at()
    if last.at().low > AT_THE_BOOKS_LEVEL:
        control = (
            f"The third step fails its own control: it still calls more than {RARE} of equal pairs different. "
            "On this machine these lines are not enough."
        )
    else:
        control = f"The third step is not caught by its own control: its share is not told from {RARE}, nor from {100 * last.at().high:.0f} %.{nothing_left}"
    if drop.low > 0:
        return f"From the first step to the third, the false alarms have fallen by {draw.text(drop, 'points', 100)}. {control}"
    if drop.high < 0:
        return f"From the first step to the third, the false alarms have risen. {control}"
    return f"Whether the false alarms have fallen from the first step to the third cannot be told here. {control}"


# ---- the corrected experiment ----


def spread(ratio: Interval) -> str:
    """Do new processes differ from each other by more than a kept one differs from itself?"""
    if not ratio.is_known:
        return "Here there were too few restarts to compare the spread of new processes with that of a kept one."
    told = f"The spread over restarts of the new ones is {draw.text(ratio)} times that of the kept one"
    if ratio.low > 1:
        return (
            f"{told}: a process keeps its luck. An explanation, not tested here: its address layout and its hash seed decide how "
            "fast its copy of the same code is."
        )
    if ratio.high < 1:
        return f"{told}: in this run the kept process varied more than new ones differ."
    return f"{told}. Whether new processes differ from each other by more than one differs from itself cannot be told here."


def pseudo_replication(widths: dict[str, float], dealt: Interval) -> str:
    """What the widths (fractions) of this run say: over blocks as if they were independent, and over restarts. dealt: over restarts
    to which the blocks were dealt out by chance, as in results.pseudo_replication."""
    if not (widths["restarts"] > 0 and widths["blocks"] > 0 and dealt.is_known):
        return "Here there were too few restarts for two widths."
    told = (
        f"Blocks would print ±{widths['blocks']:.2%} for the time of this call, restarts ±{widths['restarts']:.2%}. Medians of a few blocks "
        f"scatter more by themselves: with the same blocks dealt out by chance, restarts print ±{_percent(dealt)}."
    )
    if widths["restarts"] > dealt.high:
        factor = widths["restarts"] / dealt.value
        return f"{told} Blocks of one process go together: as if independent, they are too narrow by a factor of {factor:.1f}, a false precision."
    if widths["restarts"] < dealt.low:
        return f"{told} In this run restarts are the more exact: what moves the blocks of one process is not what it is born with."
    return f"{told} Whether the blocks of one process go together cannot be told here."


def company(share: float, moved: Interval, restarts: int) -> str:
    """Whether a ratio depends on the neighbour; moved: over so many restarts, NaN bounds if there was too little company, or too much."""
    if not moved.is_known:
        return (
            f"Here the probes saw company in {share:.1%} of the work: too little to tell what it does to a ratio, or too much. "
            "A core that has company all the time would look like a quiet one."
        )
    told = f"with company CDLL over PyDLL is {draw.text(moved)} times what it is without, over the {restarts} restarts with both"
    if moved.excludes(1):
        side = "larger" if moved.low > 1 else "smaller"
        return (
            f"The ratio depends on it, and is {side} with company: {told}. Over both, it would say how busy the neighbour was in these minutes. An explanation, "
            "not tested here: code that fills the core's width loses more to a neighbour than code that waits for one result "
            "after the other."
        )
    return f"Whether this ratio depends on it was not found out: {told}."


# ---- layouts ----


def layouts(misses: Share | None, next_build: Interval | None, drawn: bool = True) -> str:
    """How far the interval of one binary can be trusted. misses: layouts whose own interval does not contain the mean of all;
    None where no layout had an interval of its own. drawn: whether layouts were."""
    if misses is None and drawn:
        return "Here each layout had too few restarts for an interval of its own."
    if misses is None:
        return (
            "No layouts were drawn here: the interpreter was not compiled on this machine, or no linker can order functions. "
            "What another binary would show is not known."
        )
    told = (
        f"Of {misses.trials} intervals, each from the restarts of one binary, {misses.trials - misses.events} contain the mean over "
        f"all of them. {_percent(misses.at())} do not; of honest intervals it would be {RARE}."
    )
    if misses.at().high < BY_CHANCE:
        return f"{told} In this run one binary would have been as good as another."
    if misses.at().low > AT_THE_BOOKS_LEVEL:
        return (
            f"{told} Each of these may be right about its own binary, and is wrong about the version. A single link of the next "
            f"build has to be expected anywhere in {draw.bounds(next_build.low, next_build.high)}."
        )
    return f"{told} Whether one binary would have been as good as another cannot be told here."


def levels(layout: Interval | None, below: Interval | None, zero: Interval | None) -> str:
    """Which level scatters more, by their intervals; None where no layouts were drawn. below: what is left within a layout, of a
    restart and of its blocks; zero: the same for a call and itself, where nothing can differ."""
    if layout is None or below is None:
        return "Nothing is known of what a layout adds."
    sizes = f"A layout adds {_percent(layout)}; within a layout, restarts scatter by {_percent(below)}, noise of their blocks included (95 % intervals)."
    if zero is not None:
        sizes += f" For a call and itself, which share a process, it is {_percent(zero)}."
        if zero.low > below.high:
            return f"{sizes} That is more: this scale fails its own zero, and what it shows is not told from noise. The levels are not compared."
        sizes += " More than that is the process's." if below.low > zero.high else " So it may be noise, all of it."
    if layout.low > below.high:
        return (
            f"{sizes} Restarting one binary, however often, averages the smaller of the two away, and never the larger."
        )
    if layout.high < below.low:
        return f"{sizes} Here what lies below the layout is larger: more restarts average that away, and what the layout adds stays."
    return f"{sizes} Which of the two is larger this run cannot tell."


# ---- the collector, copies ----


def collector(found: dict[str, Interval]) -> str:
    """For which statements it matters that timeit switches the collector off."""
    words = []
    for what, interval in found.items():
        if not interval.is_known:
            words.append(f"for {what} it cannot be told")
        elif interval.low > 1:
            more = interval.map(lambda ratio: 100 * (ratio - 1))
            words.append(f"{what} takes {draw.text(more, '%')} more with the collector on")
        elif interval.high < 1:
            words.append(f"{what} takes less time with the collector on, by {draw.text(_less(interval), '%')}")
        else:
            words.append(
                f"for {what} no difference was found, {draw.text(interval)} times as long with the collector on"
            )
    return f"Here {'; '.join(words)}."


def _less(ratio: Interval) -> Interval:
    """A ratio below 1 as per cent saved."""
    return Interval(100 * (1 - ratio.value), 100 * (1 - ratio.high), 100 * (1 - ratio.low))


def copies(alarms: int | None, pairs: int) -> str:
    """Does the instrument pass its own A/A test? alarms: as in results.alarms_among."""
    if alarms is None:
        return (
            "There were too few restarts, or no copies: whether the instrument passes its own test cannot be told here."
        )
    if alarms:
        return (
            f"The instrument fails its own test: copies in {alarms} of {pairs} pairs certainly differ by more than {NEGLIGIBLE:.0%}, at "
            "a level that counts all of them. What this section would say of the loaders is withheld."
        )
    return (
        f"The instrument passes its own test: in none of {pairs} pairs do the copies certainly differ by more than {NEGLIGIBLE:.0%}, "
        "at a level that counts all of them."
    )


def loaders(ratio: Interval, mde: float, alarms: int | None) -> str:
    """CDLL over PyDLL in the run of the copies, and what the run could have found; alarms: as in `copies`."""
    if alarms:
        return "CDLL over PyDLL is withheld, as copies of one call were called different in the same run."
    if not ratio.is_known:
        return "CDLL over PyDLL cannot be told here: there were too few restarts."
    told = (
        f"Between the loaders, the same run says CDLL over PyDLL {draw.text(ratio)}. Its minimum detectable effect, the smallest "
        f"that it would find in four cases of five, is {mde:.2%}: it says how blind a run was that found nothing."
    )
    if ratio.low > 1:
        return f"{told} CDLL takes longer."
    if ratio.high < 1:
        return f"{told} PyDLL takes longer."
    return f"{told} No difference was found."


# ---- the predictions ----


def prediction_1(share: Interval) -> str:
    """In what share of processes does the rank test call two copies different?"""
    if share.low > BY_CHANCE:
        return f"Here: in {_percent(share)}, certainly more than 5 %."
    if share.high < BY_CHANCE:
        return f"Here: in {_percent(share)}, certainly less than 5 %."
    return f"Here: in {_percent(share)}. Undecided whether that is another share than 5 %."


def prediction_2(shares: dict[int, Share]) -> str:
    """Which change removes more false alarms, to interleave or to restart?"""
    if not {1, 2, 3} <= set(shares):
        return "Here: not decided, as too few benchmarks were completed."
    interleaving, restarting = _drop(shares, 2), _drop(shares, 3)
    told = (
        f"Here, fewer false alarms by interleaving: {draw.text(interleaving, 'points', 100)}; by restarting: "
        f"{draw.text(restarting, 'points', 100)}."
    )
    if interleaving.low > 0 and _by_chance(shares[2]):
        return f"{told} Interleaving removed more: behind it, restarting had nothing left to remove."
    if interleaving.low > max(0, restarting.high):
        return f"{told} Interleaving removed more."
    if restarting.low > max(0, interleaving.high):
        return f"{told} Restarting removed more."
    return f"{told} Which removed more is undecided here."


def prediction_3(ratio: Interval) -> str:
    """Do new processes differ from each other by more than one process differs from itself?"""
    if not ratio.is_known:
        return "Here: not decided, as there were too few restarts."
    if ratio.low > 1:
        return f"Here: yes, {draw.text(ratio)} times as much."
    if ratio.high < 1:
        return f"Here: no, the kept process differs from itself by more; the ratio of spreads is {draw.text(ratio)}."
    return f"Here: undecided; the ratio of spreads is {draw.text(ratio)}."


def prediction_4(moved: Interval) -> str:
    """Does company on the core change the ratio of two calls?"""
    if not moved.is_known:
        return "Here: not decided, as there was too little company on the core, or too much."
    if moved.excludes(1):
        side = "larger" if moved.low > 1 else "smaller"
        return f"Here: yes, with company the ratio is {side}, by a factor of {draw.text(moved)}."
    return f"Here: undecided; with company the ratio is {draw.text(moved)} times what it is without."


def prediction_5(instructions: float | None, times: Interval, alarms: int | None) -> str:
    """Does the ratio of instructions say the ratio of the times? instructions: CDLL over PyDLL, None if not counted; alarms: as in
    `copies`."""
    if alarms:
        return "Here: withheld, as copies of one call were called different in the same run."
    if instructions is None or not times.is_known:
        return "Here: not decided, as instructions were not counted, or times not measured often enough."
    told = f"CDLL over PyDLL is {instructions:.3f} by instructions and {draw.text(times)} by time, both with the loop."
    if times.low > instructions:
        return f"Here: no. {told} The time's ratio is the larger one."
    if times.high < instructions:
        return f"Here: no. {told} The time's ratio is the smaller one."
    return f"Here: undecided; no difference was found. {told}"
