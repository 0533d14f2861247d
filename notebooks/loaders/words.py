"""The sentences of the chapter "CDLL and PyDLL" that a run chooses: each from the intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". Verdicts are those of ffilab/judge/rules.py.
"""

from ffilab.draw import capital, number, text
from ffilab.judge.controls import NEGLIGIBLE, off
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.rules import NO, YES
from notebooks.loaders.experiment import SLEEP_MS
from notebooks.loaders.results import WITHIN, carries, costs_more

UNKNOWN = "there are too few values for an interval"
# What the first prediction offers: so much longer.
OFFERED = (0.02, 0.2, 2.0)
# The largest share of processes that "none so far" may leave open: that of the rule "never" in claims.toml.
RARE = 0.02


def times_as_long(where: str, function: str, ratio: Interval) -> str:
    """CDLL / PyDLL."""
    if not ratio.is_known:
        return f"{capital(where)}, the loaders cannot be compared for {function}: {UNKNOWN}."
    if not ratio.excludes(1):
        return f"{capital(where)}, no difference between the loaders is seen for {function}: CDLL over PyDLL is {text(ratio)}."
    slow, fast = ("CDLL", "PyDLL") if ratio.value > 1 else ("PyDLL", "CDLL")
    longer = text(ratio if ratio.value > 1 else ratio.inverse)
    return f"{capital(where)}, a call of {function} through {slow} takes {longer} times as long as through {fast}."


def price(where: str, difference: Interval) -> str:
    """CDLL - PyDLL of noop, in ns."""
    if not difference.is_known:
        return f"{capital(where)}, the price of CDLL is not known: {UNKNOWN}."
    if not difference.excludes(0):
        return f"{capital(where)}, whether CDLL costs anything cannot be told: {text(difference, 'ns')} more."
    if difference.value < 0:
        return f"{capital(where)}, CDLL costs {text(-difference, 'ns')} less than PyDLL."
    return f"{capital(where)}, CDLL costs {text(difference, 'ns')} more than PyDLL."


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


def gain(noop: Interval, getpid: Interval) -> str:
    """Which build gains more? Each is CDLL / PyDLL with the GIL over that without it."""
    if min(noop.low, getpid.low) > 1:
        return "The ratio is larger with the GIL, as in the terminal of the talk. The recap of the talk says otherwise."
    if max(noop.high, getpid.high) < 1:
        return "The ratio is larger without the GIL, as in the recap of the talk. Its terminal says otherwise."
    return "The two functions do not both show one answer beyond doubt, so this run does not settle it."


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


def difference_carried(where: str, noop: Interval, prices: dict[str, Interval], missed: dict[str, Interval]) -> str:
    """Do the nanoseconds of noop say those of other functions? prices, missed: by function, in ns."""
    verdict = carries(noop, missed)
    if verdict == YES:
        return f"{capital(where)}, the difference carries over: {_reach('that of noop', noop, missed)}."
    if verdict == NO:
        every = {"noop": noop, **prices}
        least, most = (pick(every, key=lambda name: every[name].value) for pick in (min, max))
        return (
            f"{capital(where)}, the difference does not carry over: it goes from {text(every[least], 'ns')} for {least} to "
            f"{text(every[most], 'ns')} for {most}. Measure your own signature."
        )
    return f"{capital(where)}, whether the difference carries over cannot be told here: {_why(noop, missed)}."


def ratio_carried(where: str, noop: Interval, missed: dict[str, Interval]) -> str:
    """Does the ratio of noop say the price of other functions? missed: by function, in ns."""
    verdict = carries(noop, missed)
    if verdict == YES:
        return f"{capital(where)}, the ratio carries over: {_reach('that of noop', noop, missed)}."
    if verdict == NO:
        worst = max(missed, key=lambda name: abs(missed[name].value))
        return (
            f"{capital(where)}, the ratio does not carry over: from that of noop, the price of {worst} comes out wrong by "
            f"{text(_size(missed[worst]), 'ns')}."
        )
    return f"{capital(where)}, whether the ratio carries over cannot be told here: {_why(noop, missed)}."


def _size(found: Interval) -> Interval:
    """How far from zero: of a negative number, its amount."""
    return found if found.value >= 0 else -found


def _reach(what: str, noop: Interval, missed: dict[str, Interval]) -> str:
    far = max(max(abs(one.low), abs(one.high)) for one in missed.values())
    return (
        f"{what} says the price of the other {len(missed)} functions to within {number(far, far / 10)} ns, less than "
        f"{WITHIN:.0%} of the price of noop"
    )


def _why(noop: Interval, missed: dict[str, Interval]) -> str:
    if not noop.is_known or not all(one.is_known for one in missed.values()):
        return UNKNOWN
    if not noop.excludes(0):
        return "for noop no price is seen that could be carried"
    low, high = min(one.low for one in missed.values()), max(one.high for one in missed.values())
    room = WITHIN * abs(noop.value)
    return (
        f"that of noop misses the others by something between {number(low, room / 5)} and {number(high, room / 5)} ns, and "
        f"{WITHIN:.0%} of the price of noop is {number(room, room / 5)} ns"
    )


def number_to_carry(where: str, difference: str, ratio: str) -> str:
    """The advice, from the two verdicts."""
    if difference == YES and ratio == YES:
        return f"{capital(where)}, both the nanoseconds and the ratio of noop can be carried to the other functions tested."
    if difference == YES:
        rest = "not the ratio" if ratio == NO else "of the ratio nothing is known"
        return f"{capital(where)}, carry the nanoseconds of noop; {rest}."
    if ratio == YES:
        rest = "not the nanoseconds" if difference == NO else "of the nanoseconds nothing is known"
        return f"{capital(where)}, carry the ratio of noop; {rest}."
    if difference == ratio == NO:
        return f"{capital(where)}, neither the nanoseconds nor the ratio of noop can be carried; measure your own signature."
    if NO in (difference, ratio):
        lost, left = ("ratio", "nanoseconds") if ratio == NO else ("nanoseconds", "ratio")
        return (
            f"{capital(where)}, do not carry the {lost} of noop; whether the {left} can be carried is undecided here."
        )
    return f"{capital(where)}, which number of noop can be carried is undecided here; measure your own signature."


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


def _seen(share: Share) -> str:
    """How often, and what that leaves room for."""
    if share.events:
        return f"in {share.events} of {share.trials} processes"
    return f"in none of {share.trials} processes, which leaves room for up to {share.at().high:.0%} of all"


def deadlock(where: str, loader: str, share: Share) -> str:
    return f"{capital(where)}, the handshake through {loader} deadlocked {_seen(share)}."


def crash(where: str, loader: str, share: Share) -> str:
    return f"{capital(where)}, the call of the C API through {loader} crashed {_seen(share)}."


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
        return f"A call of the C API through CDLL crashed in both builds ({counts})."
    if gil.events or free_threaded.events:
        return f"A call of the C API through CDLL crashed in one of the builds ({counts}). No crash is no proof that it is safe."
    return f"No call of the C API through CDLL crashed here ({counts}). That is no proof that it is safe."


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


def prediction_2(gil: Interval, free_threaded: Interval, more: Interval) -> str:
    """The price of noop in both builds, and with the GIL less that without it, in ns."""
    if gil.high < 0 and free_threaded.high < 0:
        return "In neither: in both builds a call through CDLL costs fewer nanoseconds here than one through PyDLL."
    if not more.is_known or not more.excludes(0):
        return "In which build CDLL costs more nanoseconds cannot be told here."
    build = "with the GIL" if more.value > 0 else "without the GIL"
    return f"CDLL costs more nanoseconds {build}: the builds differ by {text(_size(more), 'ns')}."


def prediction_3(shares: dict[tuple[str, str], Interval], blocked: str, unblocked: str) -> str:
    """The shares that the counting thread keeps, by (where, loader), and the verdicts of A13."""
    every = "; ".join(f"{loader} {where} {text(share, '%', 100)}" for (where, loader), share in shares.items())
    return f"It keeps: {every}. {blocking(blocked, unblocked)}"


def prediction_4(gil: tuple[str, str], free_threaded: tuple[str, str]) -> str:
    """Which number carries over: for each build, the verdicts on the difference and on the ratio."""
    return f"{number_to_carry('with the GIL', *gil)} {number_to_carry('without the GIL', *free_threaded)}"


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
