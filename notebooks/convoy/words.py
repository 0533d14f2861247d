"""The sentences of the chapter "The GIL convoy" that a run chooses: each from the intervals that the verdicts use.

A ratio is an Interval, a verdict one of ffilab/judge/rules.py; None: there is nothing to say it from.
"""

from ffilab.draw import listed, text
from ffilab.judge.estimates import Interval, known
from ffilab.judge.rules import NO, OPEN, YES

UNKNOWN = "too few values, or none"
# Of shares of requests: more than this is called the rule, more than a half most of them.
MOST = 0.8
# Requests per second without CPU work over those beside a CPU thread, and the latter, by the author; switch intervals of a request.
PUBLISHED_FALL, PUBLISHED_RATE, PUBLISHED_INTERVALS = 300, 100, 2.006


def _fold(ratio: Interval, more: str, less: str, nothing: str) -> str:
    """A ratio in words, as a factor above 1."""
    if not known(ratio):
        return nothing
    if not ratio.excludes(1):
        return nothing
    return more.format(text(ratio)) if ratio.value > 1 else less.format(text(ratio.inverse))


def _found(ratio: Interval | None) -> str:
    return f"a ratio of {text(ratio)}" if known(ratio) else UNKNOWN


def divided(ratio: Interval | None, verdict: str) -> str:
    """C1: a step of two threads together over one of a single thread."""
    if verdict == YES:
        return f"With the GIL, two threads are no faster at it than one: a step takes {text(ratio)} times the time."
    if verdict == NO:
        return f"Even with the GIL, two threads are faster at it than one: {text(ratio.inverse)} times as many steps a second."
    return f"Whether two threads are faster than one with the GIL cannot be told here ({_found(ratio)})."


def hashed(ratio: Interval | None, verdict: str) -> str:
    """C2: SHA-256 in one thread over two."""
    if verdict == YES:
        return f"With the GIL, two threads hash {text(ratio)} times as fast as one: hashlib lets go of it."
    if verdict == NO:
        return f"With the GIL, two threads do not hash faster than one by what would matter ({_found(ratio)})."
    return f"Whether two threads hash faster than one with the GIL cannot be told here ({_found(ratio)})."


def short_intervals(one: Interval | None, eight: Interval | None, verdict: str, published: float) -> str:
    """C5: a step at 1 µs over one at 5 ms, with one thread and with eight, each within its processes; the author's with eight."""
    alone = f"With a single thread, which nobody else asks for the GIL, the ratio is {text(one)}." if known(one) else ""
    if verdict == YES:
        said = f"With eight threads, a step takes {text(eight)} times as long at 1 µs as at 5 ms: a short interval has its price."
    elif verdict == NO:
        said = f"With eight threads, a step does not take longer at 1 µs than at 5 ms by what would matter ({_found(eight)})."
    else:
        said = f"Whether a short interval slows eight threads cannot be told here ({_found(eight)})."
    return f"{said} The author's ratio is {published:.4g}. {alone}".strip()


def awake(rates: list[Interval | None], gain: Interval | None, nodelay: Interval | None) -> str:
    """Requests a second without CPU work, client and server on one core, on two, and on two that idle spinners keep awake; the last
    over the second; and with TCP_NODELAY over without, on one core."""
    if not all(map(known, rates)):
        return f"What a rate without CPU work is made of is not known here: {UNKNOWN}."
    one, two, kept = (text(rate) for rate in rates)
    said = f"Without CPU work, client and server answer each other {one} times a second on one core, {two} on two, and {kept} on two that do not fall asleep"
    rest = _fold(
        gain,
        "So a part of the rate alone is what it takes to wake a core up, here a factor of {}: it is a number of the machine.",
        "So cores that are kept awake slow the server here, by a factor of {}.",
        f"Whether the sleep of cores has a part in it cannot be told ({_found(gain)}).",
    )
    delay = _fold(
        nodelay,
        "TCP_NODELAY, which the author does not set, makes it {} times as fast.",
        "TCP_NODELAY, which the author does not set, makes it slower, by a factor of {}.",
        f"TCP_NODELAY, which the author does not set, makes no difference that can be told ({_found(nodelay)}).",
    )
    return f"{said}. {rest} {delay}"


def baselines(alone: list[float], apart: list[float], thread: Interval | None) -> str:
    """Requests a second without CPU work, by process: not pinned, and with the client on a core of its own; the latter over those
    beside one CPU thread, the client again on a core of its own."""
    if not alone:
        return "What the server does without CPU work is not known here."

    def ends(rates: list[float]) -> str:
        return f"from {min(rates):,.0f} to {max(rates):,.0f} requests/s"

    said = f"Without CPU work, the rates of single processes range {ends(alone)}"
    if not apart:
        return f"{said}."
    said = f"{said}; with the client on a core of its own, {ends(apart)}."
    fall = _fold(
        thread,
        "With the client there, a CPU thread makes the rate fall by a factor of {}.",
        "With the client there, the rate rises beside a CPU thread, by a factor of {}.",
        f"Whether a CPU thread changes the rate with the client there cannot be told here ({_found(thread)}).",
    )
    return f"{said} {fall}"


def convoy(rate: Interval | None, thread: Interval | None, process: Interval | None, verdict: str) -> str:
    """C3: rate beside a CPU thread; rate without CPU work, and beside a CPU process, over it; the verdict is that of the latter."""
    beside = f"{text(rate)} requests a second beside a CPU thread" if known(rate) else "the rate is not known"
    both = (
        f"a CPU process leaves {text(process)} times the rate that a CPU thread leaves" if known(process) else UNKNOWN
    )
    if verdict == YES:
        alone = f"; without any CPU work it is {text(thread)} times" if known(thread) else ""
        return (
            f"The convoy is there: {beside}, and the author saw {PUBLISHED_RATE}. {both[0].upper()}{both[1:]}{alone}."
        )
    if verdict == NO:
        return f"No convoy of the size that would matter is seen here: {both}."
    return f"Whether there is a convoy cannot be told here: {both}."


def strangers(ratio: Interval | None) -> str:
    """Rate beside one CPU thread without strangers over that with two."""
    return _fold(
        ratio,
        "Two strangers cost the server with a CPU thread something: without them it answers {} times as many requests.",
        "With two strangers the server beside a CPU thread answers more requests, {} times as many: beside them the busy thread is often "
        "not on a core when the GIL is let go. That is an explanation.",
        f"Whether two strangers change the rate beside a CPU thread cannot be told here ({_found(ratio)}).",
    )


def model(apart: dict[str, Interval | None], one: Interval | None, told: list[str]) -> str:
    """C10: shares of calls that wait, of recv and send on different cores, and of send on one core; what the rules say of the three."""
    if not (known(one) and all(map(known, apart.values()))):
        return f"Which calls wait for the GIL is not known here: {UNKNOWN}."
    recv, send = map(_part, apart.values())
    said = (
        f"With the server's two threads on different cores, {recv} of its calls of recv wait for the GIL, and {send} of its calls of send; "
        f"on one core, {_part(one)} of its calls of send"
    )
    if set(told) == {YES}:
        return f"{said}. That is the model: two waits a request on several cores, and none for send on one."
    about = ("recv on different cores", "send on different cores", "send on one core")
    answers = {YES: "is right about {}", NO: "is not right about {}", OPEN: "is undecided about {}"}
    parts = [
        verdict.format(listed([call for call, found in zip(about, told, strict=True) if found == answer]))
        for answer, verdict in answers.items()
        if answer in told
    ]
    return f"{said}. The model {'; '.join(parts)}."


def as_run(lost: Interval | None, request: Interval | None) -> str:
    """C10: what a request loses with the threads on different cores; what it takes as the author ran it; in switch intervals."""
    if not (known(lost) and known(request)):
        return f"What a request loses in all is not known here: {UNKNOWN}."
    return (
        f"Both calls together cost the server's thread {text(lost)} switch intervals a request there; the model predicts 2. A client that pauses "
        f"does not see the wait after send. With one that never pauses, and nothing pinned, a request takes {text(request)} of them, and {PUBLISHED_INTERVALS:g} by the author's arithmetic."
    )


def _part(share: Interval) -> str:
    """A share of requests; where no process has one, or every process nothing else, there is no interval to name."""
    if share.low == share.high and share.value in (0, 1):
        return "all" if share.value else "none"
    return text(share, "%", 100)


def one_wait(wait: Interval | None, verdict: str) -> str:
    """C8: from asking for the GIL to having it, in switch intervals."""
    if verdict == YES:
        return f"Who asks for the GIL has it after one switch interval: {text(wait)}."
    if verdict == NO:
        return f"Who asks for the GIL does not have it after one switch interval here, but after {text(wait)}."
    return f"Whether one switch interval is the wait cannot be told here ({text(wait) if known(wait) else UNKNOWN})."


def forced(demanded: Interval | None, free: Interval | None, verdict: str) -> str:
    """C8: share of releases of the GIL after which the thread that waited had it first: on its demand, and before it demanded."""
    if not known(demanded):
        return f"Who has the GIL first after a release is not known here: {UNKNOWN}."
    said = f"After {_part(demanded)} of the releases on demand the waiting thread had the GIL first"
    other = f"; before it demanded, after {_part(free)}" if known(free) else ""
    if verdict == YES:
        why = (
            "the demand decides" if known(free) and free.high < demanded.low else "what the demand adds cannot be told"
        )
        return f"{said}{other}: forced switching is there, and {why}."
    if verdict == NO:
        return f"{said}{other}: no forced switching is seen."
    return f"{said}{other}; whether that is the rule cannot be told."


def slack(with_slack: Interval | None, without: Interval | None, difference: Interval | None) -> str:
    """What the median request takes beyond one interval at 10 µs, in µs: with the system's timer slack, with 1 ns, and the
    difference, process by process."""
    if not known(difference):
        return f"What the timer slack adds is not known here: {UNKNOWN}."
    both = f"{text(with_slack, 'µs')} with the slack, {text(without, 'µs')} without"
    if difference.low > 0:
        return (
            f"At 10 µs a request takes, beyond one interval, {both}: {text(difference, 'µs')} of it is the timer slack."
        )
    if difference.high < 0:
        return f"At 10 µs a request takes, beyond one interval, {both}: without the slack it is not less but more."
    return f"At 10 µs a request takes, beyond one interval, {both}; whether the slack has a part in it cannot be told."


def polling(apart: Interval | None, one: Interval | None) -> str:
    """What the median request takes at 1 µs without slack beyond one interval, in µs: threads on different cores, and on one."""
    if not (known(apart) and known(one)):
        return f"What the shortest interval costs without slack is not known here: {UNKNOWN}."
    said = (
        f"At 1 µs without slack a request takes {text(apart, 'µs')} with the server's threads on different cores, and "
        f"{text(one, 'µs')} with both on one"
    )
    if one.low > 2 * apart.high:
        return (
            f"{said}. An explanation, not tested here: the timed wait returns at once, so the waiting thread polls, and keeps the only "
            "core from the holder, who has to run to see the demand."
        )
    return f"{said}: no thread keeps the core from another here, as far as the median shows."


def relief(ratio: Interval | None, verdict: str, published: float, work: Interval | None) -> str:
    """C4: rate at 10 µs over that at 5 ms, one CPU thread; the author's; what is left of the speed of the CPU thread."""
    price = f" The CPU thread then works at {text(work, '%', 100)} of its speed at 5 ms." if known(work) else ""
    return f"{_relief(ratio, verdict)}{price} The author's ratio is {published:.4g}."


def _relief(ratio: Interval | None, verdict: str) -> str:
    if verdict == YES:
        return f"A shorter interval relieves the server: {text(ratio)} times as many requests at 10 µs as at 5 ms."
    if verdict == NO:
        return (
            f"A shorter interval does not relieve the server by what would matter ({_found(ratio)} at 10 µs over 5 ms)."
        )
    return f"Whether a shorter interval relieves the server cannot be told here ({_found(ratio)} at 10 µs over 5 ms)."


def one_core(one: Interval | None, same: Interval | None, left: Interval | None, relieves: str, apart: str) -> str:
    """C6: rate on one core over not pinned, with the client on the same core over apart, and apart over not pinned; the answers for
    the first and the last."""
    places = f"the same core over apart: {_found(same)}"
    rest = f"; apart over not pinned: {_found(left)}"
    first = {
        YES: f"Everything on one core relieves the server ({_found(one)})",
        NO: f"Everything on one core does not relieve the server by what would matter ({_found(one)})",
    }.get(relieves, f"Whether one core relieves the server cannot be told here ({_found(one)})")
    second = {
        YES: f"with the client apart it relieves, too ({places}{rest}), and the author's note is not confirmed",
        NO: f"with the client apart it does not ({places}{rest}): it is the client on the same core that counts, as the author's note says",
    }.get(apart, f"whether it does with the client apart cannot be told ({places}{rest})")
    return f"{first}; {second}."


def without_gil(ratio: Interval | None) -> str:
    """Rate without CPU work over that beside one CPU thread, free-threaded build."""
    return _fold(
        ratio,
        "Without the GIL, a CPU thread still takes something from the server: alone it answers {} times as many requests.",
        "Without the GIL, the server answers {} times as many requests beside a CPU thread as alone. An explanation, not tested "
        "here: beside it, client and server share a core, and neither has to wake another one.",
        f"Without the GIL, no difference is seen between a server alone and one beside a CPU thread ({_found(ratio)}).",
    )


def remedies(gains: dict[str, Interval | None]) -> str:
    """Rate with each remedy over that with the convoy."""
    better = [name for name, gain in gains.items() if known(gain) and gain.low > 1]
    worse = [name for name, gain in gains.items() if known(gain) and gain.high < 1]
    others = [name for name in gains if name not in (*better, *worse)]
    said = []
    if better:
        said.append(f"More requests than beside the CPU thread came with: {listed(better)}")
    if worse:
        said.append(f"{'fewer' if said else 'Fewer'} with: {listed(worse)}")
    if others:
        said.append(f"{'not' if said else 'Not'} told apart from it: {listed(others)}")
    return "; ".join(said) + "."


def references(foreign: Interval | None) -> str:
    """Time of a count by another thread over that by the owner."""
    return _fold(
        foreign,
        "Another thread's count, an atomic one, takes {} times as long as the owner's.",
        "The owner's count takes longer here, {} times as long as another thread's.",
        f"Whether the owner's count is cheaper cannot be told here ({_found(foreign)}).",
    )


def prediction_1(thread: Interval | None) -> str:
    """Rate without CPU work over that beside a CPU thread."""
    if known(thread) and not thread.excludes(PUBLISHED_FALL):
        beside = f"the interval contains the author's {PUBLISHED_FALL}"
    else:
        less = known(thread) and thread.value < PUBLISHED_FALL
        beside = f"{'less' if less else 'more'} than the author's {PUBLISHED_FALL}, which is for his machine"
    return _fold(
        thread,
        f"The rate falls by a factor of {{}}: {beside}.",
        "It does not fall: it rises, {} times as many requests.",
        f"By what factor it falls cannot be told here ({_found(thread)}).",
    )


def prediction_2(process: Interval | None) -> str:
    """Rate without CPU work over that beside a CPU process."""
    return _fold(
        process,
        "It falls by a factor of {}; the author's fell from 30,000 to about 20,000.",
        "It does not fall: it rises, {} times as many requests; the author's fell from 30,000 to about 20,000.",
        f"Whether it changes at all cannot be told here ({_found(process)}).",
    )


def prediction_3(shares: dict[str, list[Interval | None]]) -> str:
    """Shares of requests that lose no switch interval, one, and two, by where the server's threads run."""
    if not shares or not all(known(share) for three in shares.values() for share in three):
        return f"How many intervals a request loses is not known here: {UNKNOWN}."
    said = [
        "{} {:.0%} of the requests lose no interval, {:.0%} one, {:.0%} two".format(
            where, *(share.value for share in three)
        )
        for where, three in shares.items()
    ]
    return f"{'; '.join([said[0], *(one[0].lower() + one[1:] for one in said[1:])])}.".replace("%", " %")


def prediction_4(one: Interval | None, apart: Interval | None) -> str:
    """Rates over that without pinning: everything on one core, and the client apart."""

    def side(ratio: Interval | None) -> str:
        if not known(ratio) or not ratio.excludes(1):
            return f"not told from unpinned ({_found(ratio)})"
        factor = text(ratio if ratio.value > 1 else ratio.inverse)
        return f"{'better' if ratio.value > 1 else 'worse'} by a factor of {factor}"

    return f"With the client on the same core: {side(one)}. With the client on another core: {side(apart)}."


def prediction_5(rate: Interval | None, ratio: Interval | None) -> str:
    """Requests a second beside one CPU thread on the free-threaded build; rate alone over that."""
    if not known(rate):
        return f"The rate on the free-threaded build is not known here: {UNKNOWN}."
    return f"It is {text(rate, 'requests/s')}. {without_gil(ratio)}"


def objection_sample(fewest: int, processes: int, mean: Interval | None) -> str:
    """Fewest requests of a process with one CPU thread, number of processes, and their rate."""
    base = f"The cases that decide have {processes} processes with at least {fewest} requests each"
    if not known(mean):
        return f"{base}; there is no interval, so nothing is decided here."
    enough = "enough for a p99" if fewest >= 100 else "too few for a p99, and none is printed"
    within = f"{mean.half_width / mean.value:.0%}".replace("%", " %")
    if mean.half_width < 0.25 * mean.value:
        return f"{base}, {enough}. Over processes, the rate is known to within {within}: narrow beside a factor of two."
    return (
        f"{base}, {enough}. Over processes, the rate is known to within {within} only: what divides processes decides."
    )


def objection_slack(gone: Interval | None) -> str:
    """Share of the excess at 10 µs that goes away without the timer slack."""
    if not known(gone):
        return f"How much of the floor is the timer slack is not known here: {UNKNOWN}."
    share = f"of what a request takes beyond one interval of 10 µs, {text(gone, '%', 100)} go away with it"
    if gone.low > 0.5:
        return f"Right, for short intervals: {share}."
    if gone.high < 0.5:
        return f"Not for the most part here: {share}."
    return f"Whether it is the larger part cannot be told here: {share}."
