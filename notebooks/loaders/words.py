"""The sentences of the chapter "CDLL and PyDLL" that a run chooses: each from the intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". Verdicts are those of ffilab/judge/rules.py.
"""

from ffilab.draw import capital, listed, number, text
from ffilab.judge.controls import NEGLIGIBLE, off
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.rules import NO, OPEN, YES
from notebooks.loaders.experiment import SLEEP_MS
from notebooks.loaders.results import PUBLISHED_SHARE, WITHIN, carries, costs_more

UNKNOWN = "there are too few values for an interval"
# What the first prediction offers: so much longer.
OFFERED = (0.02, 0.2, 2.0)
# The largest share of processes that "none so far" may leave open: that of the rule "occurs" in claims.toml.
RARE = 0.15
# What the recap says of PyDLL without the GIL.
RECAP = 1.2


def times_as_long(where: str, function: str, ratio: Interval) -> str:
    """CDLL / PyDLL."""
    if not ratio.is_known:
        return f"{capital(where)}, the loaders cannot be compared for {function}: {UNKNOWN}."
    if not ratio.excludes(1):
        return f"{capital(where)}, no difference between the loaders is seen for {function}: CDLL over PyDLL is {text(ratio)}."
    slow, fast = ("CDLL", "PyDLL") if ratio.value > 1 else ("PyDLL", "CDLL")
    longer = text(ratio if ratio.value > 1 else ratio.inverse)
    return f"{capital(where)}, a call of {function} through {slow} takes {longer} times as long as through {fast}."


def same_call_twice(ratios: list[Interval]) -> str:
    """The A/A tests of the chapter, and what an alarm does."""
    known = [ratio for ratio in ratios if ratio.is_known]
    if not known:
        return f"The A/A test says nothing here: {UNKNOWN}."
    alarms = [ratio for ratio in known if ratio.excludes(1)]
    if not alarms:
        return f"No A/A test of this section, of {len(known)}, raised a false alarm."
    said = f"A/A tests of this run that raised a false alarm: {len(alarms)} of {len(known)}."
    if any(off(ratio, 1) > NEGLIGIBLE for ratio in alarms):
        return f"{said} The two copies differ by more than what is negligible: a number that could not bear as much is marked as withheld."
    return f"{said} The difference is smaller than what this book calls negligible, and no number is withheld for it."


def rounds(share: Share, gain: Interval) -> str:
    """Does one run of the talk's program order the two builds as the corrected experiment does? share: rounds in which the
    free-threaded build has the larger ratio; gain: as in `gain`, for getpid."""
    told = f"In {share.events or 'none'} of {share.trials} rounds the free-threaded build shows the larger ratio"
    if not gain.is_known or not gain.excludes(1):
        return f"{told}; which is larger, the corrected experiment does not tell either."
    truth = "with the GIL" if gain.value > 1 else "without it"
    wrong = share.events if gain.value > 1 else share.trials - share.events
    if wrong:
        return f"{told}. By the corrected experiment it is larger {truth}: {wrong} of these runs put the builds in the wrong order."
    return f"{told}. By the corrected experiment it is larger {truth}: each of these runs has the order right."


def gain(noop: Interval, getpid: Interval) -> str:
    """Which build gains more? Each is CDLL / PyDLL with the GIL over that without it."""
    if min(noop.low, getpid.low) > 1:
        return "PyDLL gains more with the GIL, as in the terminal of the talk. Its recap gives the 20 % to the build without the GIL."
    if max(noop.high, getpid.high) < 1:
        return "PyDLL gains more without the GIL, though in the terminal of the talk it was more with it."
    return "The two functions do not both show one answer beyond doubt, so this run does not settle it."


def recap(noop: Interval, getpid: Interval) -> str:
    """Over 20 % without the GIL? CDLL / PyDLL there."""
    if not (noop.is_known and getpid.is_known):
        return f"Whether PyDLL gains over 20 % without the GIL is not known: {UNKNOWN}."
    said = f"Without the GIL, getpid takes {text(getpid)} times as long through CDLL as through PyDLL, and noop {text(noop)} times"
    if max(noop.high, getpid.high) < RECAP:
        return f"{said}: PyDLL gains less than the 20 % of the recap."
    if min(noop.low, getpid.low) > RECAP:
        return f"{said}: PyDLL gains over 20 %, as the recap says."
    return f"{said}. That is not under 20 % for both, and not over it for both."


def nearer(off: Interval, on: Interval | None) -> str:
    """Which of two conditions is the published "no GIL" nearer to? The price of a call on the free-threaded build over that with
    the GIL: with the build's own GIL off, and on."""
    if on is None or not (off.is_known and on.is_known):
        return "Here too little was measured with the GIL switched on to compare."
    told = (
        f"By the terminal, CDLL costs {PUBLISHED_SHARE:.2f} times as many nanoseconds on the free-threaded build as with the GIL. Here it is "
        f"{text(off)} times with that build's GIL off, and {text(on)} times with it on"
    )
    nearest, farthest = zip(_distances(off), _distances(on))
    if farthest[0] < nearest[1]:
        return f"{told}: nearer to its GIL off, by one run of the talk's."
    if farthest[1] < nearest[0]:
        return f"{told}: nearer to its GIL on, by one run of the talk's."
    return f"{told}. Which of the two the talk had cannot be told by that."


def _distances(found: Interval) -> tuple[float, float]:
    """How far the published share lies from an interval: at least, at most."""
    ends = abs(found.low - PUBLISHED_SHARE), abs(found.high - PUBLISHED_SHARE)
    return 0.0 if found.low <= PUBLISHED_SHARE <= found.high else min(ends), max(ends)


def switched(share: Interval) -> str:
    """What the counting thread keeps beside PyDLL on the free-threaded build with the GIL on."""
    told = f"On the free-threaded build with its GIL switched on, the thread keeps {text(share, '%', 100)} of its speed beside PyDLL"
    if share.high < 0.5:
        return f"{told}. So the talk's counts without the GIL, which hardly differ, were made with the GIL off."
    if share.low > 0.5:
        return f"{told}: it is not blocked there, so the talk's counts do not say whether its GIL was off."
    return f"{told}. Whether it is blocked there cannot be told here."


def cycle(where: str, alone: Interval | None, share: Interval | None) -> str:
    """The bare cycle in ns, and as a share of what CDLL costs more; None if that is not known to be more than nothing."""
    if alone is None:
        return f"{capital(where)}, the bare cycle could not be measured here."
    said = f"{capital(where)}, one detach and attach takes {text(alone, 'ns')}"
    if share is None or not share.is_known:
        return f"{said}; there is no known price of CDLL here to compare it with."
    part = f"{said}, which is {text(share, '%', 100)} of what CDLL costs more"
    if not share.excludes(1):
        return f"{part}: the two are not told apart here."
    return f"{part}: {'less' if share.value < 1 else 'more'} than all of it."


def hook(cost: Interval | None) -> str:
    """What an idle audit hook adds with the GIL, in ns."""
    if cost is None or not cost.is_known:
        return "What an idle hook adds is not known here."
    if not cost.excludes(0):
        return f"Whether an idle hook adds anything cannot be told here: {text(cost, 'ns')}."
    if cost.value < 0:
        return f"Here the call is not slower with an idle hook, but faster: {text(cost, 'ns')}. Look for what else differs."
    return f"One idle hook adds {text(cost, 'ns')} to each call with the GIL."


def difference_carried(where: str, prices: dict[str, Interval], missed: dict[str, Interval]) -> str:
    """Do the nanoseconds of noop say those of other functions? prices: of every function, missed: of the others, in ns."""
    noop = prices["noop"]
    if nothing := _nothing_to_carry(noop, missed):
        return f"{capital(where)}, no price of noop can be carried over: {nothing}."
    far, room = _room(noop, missed)
    told = f"{capital(where)}, noop's {text(noop, 'ns')} is wrong for the others by {far} ns"
    verdict = carries(noop, missed)
    if verdict == YES:
        return f"{told}, less than the {room} ns of the rule: the nanoseconds carry over."
    apart = [name for name, one in missed.items() if one.excludes(0)]
    differ = f" For {listed(apart)} the price certainly is another one; why is not known." if apart else ""
    if verdict == NO:
        least, most = (pick(prices, key=lambda name: prices[name].value) for pick in (min, max))
        return (
            f"{told}, for one of them certainly by more than the {room} ns of the rule: from {text(prices[least], 'ns')} for {least} to "
            f"{text(prices[most], 'ns')} for {most}.{differ}"
        )
    return f"{told}; the rule allows {room} ns, and is not decided by that.{differ}"


def ratio_carried(where: str, noop: Interval, missed: dict[str, Interval]) -> str:
    """Does the ratio of noop say the price of other functions? missed: by function, in ns."""
    if _nothing_to_carry(noop, missed):
        return f"{capital(where)}, no ratio can be carried over either."
    far, _ = _room(noop, missed)
    verdict = carries(noop, missed)
    if verdict == NO:
        worst = max(missed, key=lambda name: abs(missed[name].value))
        return f"The ratio of noop is wrong by {far} ns, most for {worst}: it does not carry over."
    rest = ": it carries over, too" if verdict == YES else ", which does not decide the rule"
    return f"The ratio of noop is wrong by {far} ns{rest}."


def _nothing_to_carry(noop: Interval, missed: dict[str, Interval]) -> str:
    if not noop.is_known or not all(one.is_known for one in missed.values()):
        return UNKNOWN
    return "" if noop.excludes(0) else "none is seen"


def _room(noop: Interval, missed: dict[str, Interval]) -> tuple[str, str]:
    """By how much one is wrong, and what the rule allows."""
    low, high = min(one.low for one in missed.values()), max(one.high for one in missed.values())
    room = WITHIN * abs(noop.value)
    return f"{number(low, room / 5)} to {number(high, room / 5)}", number(room, room / 5)


def number_to_carry(where: str, prices: dict[str, Interval], ratio: str) -> str:
    """The advice: what to add for a function that was not measured. prices: of every function, in ns; ratio: does it carry over?"""
    low, high = min(one.low for one in prices.values()), max(one.high for one in prices.values())
    if not low > 0:
        return (
            f"{capital(where)}, measure your own signature: not every function here is known to cost more through CDLL."
        )
    known = f"{capital(where)} and in a process of one thread, CDLL cost {low:.0f} to {high:.0f} ns more for the functions here"
    rest = {NO: "the ratio of noop does not say it for the others", YES: "the ratio of noop would do as well"}
    return f"{known}; {rest.get(ratio, 'whether the ratio would do as well is not known')}."


def blocking(gil: str, free_threaded: str) -> str:
    """Claim A13. The verdicts on: PyDLL blocks with the GIL; the other thread keeps its speed without it."""
    with_gil = {
        YES: "Where there is a GIL, a sleeping call through PyDLL blocked the other thread",
        NO: "Even where there is a GIL, a sleeping call through PyDLL did not block the other thread",
    }.get(gil, "Whether a sleeping call through PyDLL blocks another thread where there is a GIL cannot be told here")
    without = {
        YES: "without a GIL, the other thread kept its speed",
        NO: "without a GIL, the other thread did not keep its speed",
    }.get(free_threaded, "whether the other thread keeps its speed without a GIL cannot be told here")
    return f"{with_gil}; {without}."


def releasing(verdict: str) -> str:
    """The part of A14: does another thread keep its speed beside CDLL, with the GIL?"""
    if verdict == YES:
        return "Beside a sleeping call through CDLL, another thread kept its speed with the GIL."
    if verdict == NO:
        return "Beside a sleeping call through CDLL, another thread did not keep its speed with the GIL."
    return "Whether another thread keeps its speed beside a sleeping call through CDLL cannot be told here."


def pause(where: str, pause_ms: float, processes: int) -> str:
    """The longest pause of the counting thread beside PyDLL: median over processes, in ms."""
    said = f"{capital(where)}, the longest pause of the counting thread beside PyDLL is {pause_ms:.3g} ms (median of {processes} processes)"
    if pause_ms > 0.9 * SLEEP_MS:
        return f"{said}: as long as the call, or longer."
    if pause_ms < 0.1 * SLEEP_MS:
        return f"{said}: less than a tenth of the call."
    return f"{said}: a part of the call, so neither blocked throughout nor undisturbed."


def _has(share: Share) -> str:
    """YES if it happens; NO if it is rare; else neither is known. As the rules "occurs" and "never" have it."""
    if share.events:
        return YES
    return NO if share.never(RARE) else ""


def removing_the_gil(gil: Share, free_threaded: Share) -> str:
    """Deadlocks of PyDLL in both builds: does the deadlock go with the GIL?"""
    with_gil, without = _has(gil), _has(free_threaded)
    counts = f"{gil.events} of {gil.trials} processes with the GIL, {free_threaded.events} of {free_threaded.trials} without it"
    if with_gil == YES and without == NO:
        return f"In this program, PyDLL deadlocked only where there is a GIL ({counts})."
    if without == YES:
        return f"In this program, PyDLL deadlocked without a GIL ({counts})."
    if with_gil == without == NO:
        return f"In this program, PyDLL did not deadlock in either build ({counts})."
    return f"Whether the deadlock of PyDLL goes with the GIL cannot be told here ({counts})."


def unsafe(gil: Share, free_threaded: Share) -> str:
    """Crashes of the C API through CDLL in both builds."""
    counts = f"{gil.events} of {gil.trials} processes with the GIL, {free_threaded.events} of {free_threaded.trials} without it"
    if gil.events and free_threaded.events:
        return f"Calling the C API through CDLL crashed either build ({counts})."
    if gil.events or free_threaded.events:
        return f"Calling the C API through CDLL crashed one of the builds ({counts}). No crash is no proof that it is safe."
    return f"Calling the C API through CDLL crashed neither build here ({counts}). That is no proof that it is safe."


def cheaper(gil: Interval, free_threaded: Interval, more: Interval) -> str:
    """The price of CDLL in both builds, and with the GIL less without, in ns."""
    if not (gil.is_known and free_threaded.is_known and more.is_known):
        return f"The price of CDLL in the two builds cannot be compared here: {UNKNOWN}."
    if gil.high < 0 or free_threaded.high < 0:
        return f"CDLL costs more than PyDLL in one build at most: {text(gil, 'ns')} with the GIL, {text(free_threaded, 'ns')} without it."
    there = "is still there" if free_threaded.low > 0 else "is not seen any more"
    both = f"{text(gil, 'ns')} with the GIL, {text(free_threaded, 'ns')} without it"
    if more.low > 0:
        return f"Without the GIL, the price of CDLL is smaller, and {there} ({both})."
    if more.high < 0:
        return f"Without the GIL, the price of CDLL is not smaller but larger ({both})."
    return f"Whether the price of CDLL depends on the build cannot be told here ({both})."


def timeline(where: str, difference: Interval) -> str:
    """The caption of the picture for one build. difference: CDLL - PyDLL of noop, in ns."""
    if costs_more(difference):
        return (
            f"{capital(where)}, detach and attach are drawn as long as what CDLL costs more: {text(difference, 'ns')}."
        )
    if difference.is_known and difference.high < 0:
        return f"{capital(where)}, CDLL does not cost more here ({text(difference, 'ns')}), so detach and attach have no length."
    return f"{capital(where)}, CDLL is not told from PyDLL here, so detach and attach have no known length."


def prediction_1(gil: Interval, free_threaded: Interval) -> str:
    """How much longer through CDLL? Ratios of noop."""
    return f"{_nearest('with the GIL', gil)} {_nearest('without the GIL', free_threaded)}"


def _nearest(where: str, ratio: Interval) -> str:
    """Which of the offered percentages lies nearest, on a scale of factors."""
    if not ratio.is_known or not ratio.excludes(1):
        return f"{capital(where)}, no difference is known, so none of the three is right or wrong."
    if ratio.high < 1:
        return f"{capital(where)}, CDLL does not take longer at all, so none of the three is right."
    longer = text(ratio.map(lambda x: x - 1), "%", 100)
    answers = [min(OFFERED, key=lambda one: max(one / end, end / one)) for end in (ratio.low - 1, ratio.high - 1)]
    low, high = (f"{one:.0%}".replace("%", " %") for one in answers)
    if low == high:
        return f"{capital(where)}, it is {longer} more; of the three, {low} is nearest."
    return f"{capital(where)}, it is {longer} more; between {low} and {high} this run does not decide."


def prediction_3(shares: dict[tuple[str, str], Interval], blocked: str, unblocked: str) -> str:
    """The shares that the counting thread keeps, by (where, loader), and the verdicts of A13."""
    every = "; ".join(f"{loader} {where} {text(share, '%', 100)}" for (where, loader), share in shares.items())
    return f"It keeps: {every}. {blocking(blocked, unblocked)}"


def prediction_4(gil: tuple[str, str], free_threaded: tuple[str, str]) -> str:
    """Which number carries over: for each build, the verdicts on the difference and on the ratio."""
    said = {YES: "are nearly the same", NO: "are not nearly the same", OPEN: "are not decided"}
    each = (
        f"{where}, the nanoseconds {said[difference]}, and the ratios {said[ratio]}"
        for where, (difference, ratio) in (("With the GIL", gil), ("without the GIL", free_threaded))
    )
    return f"{'; '.join(each)}."


def prediction_5(deadlocks: dict[tuple[str, str], Share]) -> str:
    """Deadlocks by (where, loader)."""
    hung = [f"{loader} {where}" for (where, loader), share in deadlocks.items() if share.events]
    open_ = [f"{loader} {where}" for (where, loader), share in deadlocks.items() if _has(share) == ""]
    said = (
        f"It hung through {' and through '.join(hung)}."
        if hung
        else "It hung through neither loader, in neither build."
    )
    return f"{said} Too few processes to call it rare: {', '.join(open_)}." if open_ else said
