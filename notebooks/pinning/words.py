"""The sentences of the chapter "Where threads run" that a run chooses: each from the intervals that the verdicts use.

A ratio is an Interval, a verdict one of ffilab/judge/rules.py; None: there is nothing to say it from.
"""

import re

from ffilab.draw import listed, text
from ffilab.judge.estimates import Interval, known
from ffilab.judge.rules import NO, OPEN, YES

UNKNOWN = "too few values, or none"


def _found(ratio: Interval | None) -> str:
    return f"a ratio of {text(ratio)}" if known(ratio) else UNKNOWN


def _change(ratio: Interval | None, more: str, less: str) -> str:
    """A ratio as a factor above 1, or that it cannot be told from 1."""
    if not known(ratio) or not ratio.excludes(1):
        return f"no difference that can be told ({_found(ratio)})"
    return f"{more} by a factor of {text(ratio)}" if ratio.value > 1 else f"{less} by a factor of {text(ratio.inverse)}"


def _gain(what: str, ratio: Interval | None, verdict: str) -> str:
    if verdict == YES:
        return f"{what}: pinning gains, the throughput grows by a factor of {text(ratio)}."
    if verdict == NO:
        if known(ratio) and ratio.high < 1:
            return f"{what}: pinning costs, without it the throughput is larger by a factor of {text(ratio.inverse)}."
        return f"{what}: pinning gains no throughput by what would matter ({_found(ratio)})."
    return f"{what}: whether pinning gains throughput cannot be told here ({_found(ratio)})."


def steadier(ratio: Interval | None, verdict: str) -> str:
    """Spread of one thread's turns in a process: not pinned over pinned."""
    if verdict == YES:
        return f"Pinning steadies a measurement here: not pinned, its turns spread {text(ratio)} times as far."
    if verdict == OPEN and known(ratio) and ratio.low > 1:
        return f"Pinning steadies a measurement here ({_found(ratio)}); whether by as much as would matter is open."
    if verdict == NO:
        if known(ratio) and ratio.high < 1:
            return f"Pinning makes a measurement less steady here: pinned, its turns spread {text(ratio.inverse)} times as far."
        return f"Pinning does not steady a measurement here by what would matter ({_found(ratio)})."
    return f"Whether pinning steadies a measurement cannot be told here ({_found(ratio)})."


def native_gain(ratio: Interval | None, verdict: str) -> str:
    """Throughput of a native call in two threads with the GIL: a core each over not pinned."""
    return _gain("Two threads in a native call, with the GIL", ratio, verdict)


def python_gain(ratio: Interval | None, verdict: str) -> str:
    """Throughput of Python in two threads without the GIL: a core each over not pinned."""
    return _gain("Two threads of Python, without the GIL", ratio, verdict)


def one_core(native: Interval | None, python: Interval | None, gil: Interval | None) -> str:
    """Throughput on one core over not pinned: a native call with the GIL, Python without it, Python with it."""
    each = {"A native call": native, "Python without the GIL": python, "Python with the GIL": gil}
    said = [f"{what}: {_change(ratio, 'faster', 'slower')}" for what, ratio in each.items()]
    return f"All threads on one core, against not pinned. {'; '.join(said)}."


def moves(free: Interval | None, apart: Interval | None) -> str:
    """Moves a second of a thread, not pinned and with a core each: mean over processes."""
    if not known(free):
        return f"How often a thread moves is not known here: {UNKNOWN}."
    said = f"Not pinned, a thread moved about {text(free)} times a second"
    if known(apart) and apart.high > 0 and apart.low > 0:
        return f"{said}; pinned, still {text(apart)} times, so that the pinning is not what it says."
    if free.low > 1:
        return f"{said}: there is something that pinning takes away."
    if free.high < 1:
        return f"{said}, that is, hardly ever: there is little for pinning to take away."
    return f"{said}, perhaps hardly ever."


def _tail(where: str, ratio: Interval | None, verdict: str) -> str:
    if verdict == YES:
        return f"{where}, a core for each thread shortens the tail: p99 falls by a factor of {text(ratio)}."
    if verdict == NO:
        if known(ratio) and ratio.high < 1:
            return f"{where}, a core for each thread makes the tail longer: p99 grows by a factor of {text(ratio.inverse)}."
        return f"{where}, a core for each thread does not shorten the tail by what would matter ({_found(ratio)})."
    return f"{where}, whether a core for each thread shortens the tail cannot be told here ({_found(ratio)})."


def tail_gil(ratio: Interval | None, verdict: str) -> str:
    """p99 beside a Python thread with the GIL: not pinned over a core each."""
    return _tail("With the GIL", ratio, verdict)


def tail_free(ratio: Interval | None, verdict: str) -> str:
    """The same without the GIL."""
    return _tail("Without the GIL", ratio, verdict)


def tail_one_core(gil: Interval | None, free: Interval | None) -> str:
    """p50 on one core over not pinned, beside a Python thread: with the GIL and without."""
    both = {"with the GIL": gil, "without it": free}
    said = [f"{what}, {_change(ratio, 'longer', 'shorter')}" for what, ratio in both.items()]
    return f"The median answer with both threads on one core, against not pinned: {'; '.join(said)}."


def race(more: Interval | None, apart: Interval | None, one: Interval | None, verdict: str) -> str:
    """Share of updates lost: a core each minus one core, and both, without the GIL."""
    both = ""
    if known(apart) and known(one):
        both = f": {text(apart, '%', 100)} with a core each, {text(one, '%', 100)} on one core"
    if verdict == YES:
        return (
            f"Where the threads run decides what the race costs{both}. On one core the same mistake is harder to see."
        )
    if verdict == NO:
        return f"Two cores do not make this race cost more by what would matter{both or f' ({UNKNOWN})'}."
    return f"Whether the race costs more on two cores cannot be told here{both or f' ({UNKNOWN})'}."


def race_gil(apart: Interval | None, one: Interval | None) -> str:
    """Share of updates lost with the GIL, a core each and on one core: the loop runs without it there, too."""
    if not (known(apart) and known(one)):
        return f"What the same costs on the build with the GIL is not known here: {UNKNOWN}."
    lost = f"{text(apart, '%', 100)} with a core each, {text(one, '%', 100)} on one core"
    said = f"On the build with the GIL, which the native loop runs without, too: {lost}"
    if apart.low > one.high:
        return f"{said}. There, too, two cores lose more."
    if one.low > apart.high:
        return f"{said}. There one core loses more: so it is no rule that one core loses less."
    return f"{said}. Which of the two loses more cannot be told there."


def beside_alone(gil: Interval | None, free: Interval | None) -> str:
    """p99 of a thread on one core with a Python thread, over that of a thread alone: with the GIL and without."""
    both = {"with the GIL": gil, "without it": free}
    said = [f"{what}, {_change(ratio, 'longer', 'shorter')}" for what, ratio in both.items()]
    why = ""
    if any(known(ratio) and ratio.high < 1 for ratio in both.values()):
        why = " A core that computes does not fall asleep, so that nothing has to wake it: that is an explanation."
    return f"The p99 on one core with a busy thread, against alone: {'; '.join(said)}.{why}"


def bugs(events: int, processes: int) -> str:
    """Processes that lost updates with a core each, without the GIL."""
    if not processes:
        return "Whether updates get lost was not measured here."
    if events:
        return f"With a core for each thread, {events} of {processes} processes lost updates: such bugs are to be expected where code is not safe."
    return f"None of {processes} processes lost an update with a core for each thread; that is no proof that none can."


def could_find(throughput: float | None, tail: float | None) -> str:
    """The smallest effects that this run finds in four cases of five: of throughput, and of p99, as fractions."""
    if throughput is None or tail is None or throughput != throughput or tail != tail:
        return (
            "What this run could have found is not known: threads were not pinned here, or too few processes came back."
        )
    said = (
        f"Of every five gains of {throughput:.1%} in throughput this run finds four, and of every five tails that are longer by {tail:.0%} "
        "without pinning"
    )
    missed = [
        f"{what} that A24a asks for"
        for what, misses in (("the 5 % of throughput", throughput > 0.05), ("the 25 % of a tail", tail > 0.25))
        if misses
    ]
    said = f"{said}; it may miss {listed(missed)}." if missed else f"{said}: what A24a asks for is within its reach."
    return re.sub(r"(?<=\d)%", " %", said)


def same_again(ratios: list[Interval], alarms: int) -> str:
    """The A/A tests: second copies over first ones, and how many of them are alarms."""
    if not ratios:
        return "The A/A tests say nothing here: there are no copies."
    if alarms:
        return (
            f"{alarms} of {len(ratios)} copies differ, at a level that counts all of them: a number that could not bear as much is marked as "
            "withheld."
        )
    differ = sum(known(ratio) and ratio.excludes(1) for ratio in ratios)
    if differ:
        return f"{differ} of {len(ratios)} copies differ, which may be chance among so many."
    return f"None of {len(ratios)} copies differs from the first by what this run can tell."


def prediction_1(ratio: Interval | None) -> str:
    """Throughput of a native call with the GIL, a core each over not pinned."""
    if not known(ratio) or not ratio.excludes(1):
        return f"Whether the throughput changes with a core each cannot be told here ({_found(ratio)})."
    return f"With a core each, throughput over not pinned is {_change(ratio, 'larger', 'smaller')}."


def prediction_2(gil: Interval | None, free: Interval | None) -> str:
    """p99 beside a Python thread: a core each over not pinned, with the GIL and without."""
    both = {"with the GIL": gil, "without it": free}
    said = [f"{what}, {_change(ratio, 'longer', 'shorter')}" for what, ratio in both.items()]
    return f"The p99 with a core each, against not pinned: {'; '.join(said)}."


def prediction_3(ratio: Interval | None) -> str:
    """Throughput of Python with the GIL on one core over not pinned."""
    if not known(ratio) or not ratio.excludes(1):
        return f"Whether they are faster or slower on one core cannot be told here ({_found(ratio)})."
    return f"On one core, two Python threads with the GIL are {_change(ratio, 'faster', 'slower')}."


def prediction_4(more: Interval | None) -> str:
    """Share of updates lost, a core each minus one core, without the GIL."""
    if not known(more) or not more.excludes(0):
        return "Whether one core loses fewer updates cannot be told here."
    if more.value > 0:
        return f"One core loses fewer: the share that is lost is smaller by {text(more, '%', 100)} of all updates."
    return f"One core loses more: the share that is lost is larger by {text(-more, '%', 100)} of all updates."


def objection_machine(cores: int, free: Interval | None) -> str:
    """How many cores there were, and how often a thread moved that was not pinned."""
    base = f"This run had {cores} cores, so that two busy threads fill {'them' if cores == 2 else 'some of them'}"
    if not known(free):
        return f"{base}; how often threads move is not known."
    if free.high < 1:
        return f"{base}, and threads hardly moved. Where many more compete, and caches are apart, pinning may have more to win; that is not tested here."
    if free.low > 1:
        return f"{base}, and threads did move, {text(free)} times a second."
    return f"{base}; threads moved {text(free)} times a second, perhaps hardly ever."


def takeaway(gains: dict[str, str]) -> str:
    """The verdicts of the rules on gains, by what they are about."""
    parts = {
        "it pays for": [what for what, verdict in gains.items() if verdict == YES],
        "it does not pay for": [what for what, verdict in gains.items() if verdict == NO],
        "it cannot be told for": [what for what, verdict in gains.items() if verdict not in (YES, NO)],
    }
    said = "; ".join(f"{which} {listed(whats)}" for which, whats in parts.items() if whats)
    return f"Pinning each thread to a core of its own, here: {said}."
