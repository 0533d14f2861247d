"""The sentences of the chapter "The GIL convoy" that a run chooses: each from the intervals that the verdicts use.

A ratio is an Interval, a verdict one of ffilab/judge/rules.py; None: there is nothing to say it from.
"""

from ffilab.draw import listed, text
from ffilab.judge.estimates import Interval, known
from ffilab.judge.rules import NO, YES

UNKNOWN = "too few values, or none"
# Of shares of requests: more than this is called the rule, more than a half most of them.
MOST = 0.8
# Two values in switch intervals that are no further apart are called near.
NEAR = 0.1
# A time whose interval reaches no further to each side is called the same in every process.
SAME = 0.01
# Requests per second without CPU work over those beside a CPU thread, by the author.
PUBLISHED_FALL = 300


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


def idle(ratio: Interval | None) -> str:
    """Rate beside a CPU process over that alone."""
    return _fold(
        ratio,
        "Here the server answers {} times as many requests beside a CPU process as alone. An explanation, not tested here: alone, "
        "client and server put each other's core to sleep and wake it up again with every byte, and a CPU process keeps the cores "
        "awake.",
        "Here a CPU process takes requests from the server: alone, it answers {} times as many.",
        f"Whether a CPU process changes the server's rate cannot be told here ({_found(ratio)}).",
    )


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


def convoy(thread: Interval | None, process: Interval | None, verdict: str) -> str:
    """C3: rate without CPU work, and beside a CPU process, over that beside a CPU thread; the verdict is that of the second."""
    both = (
        f"a CPU process leaves {text(process)} times the rate that a CPU thread leaves" if known(process) else UNKNOWN
    )
    if verdict == YES:
        alone = f"; without any CPU work it is {text(thread)} times" if known(thread) else ""
        return f"The convoy is there: {both}{alone}."
    if verdict == NO:
        return f"No convoy of the size that would matter is seen here: {both}."
    return f"Whether there is a convoy cannot be told here: {both}."


def strangers(ratio: Interval | None) -> str:
    """Rate beside one CPU thread without strangers over that with two."""
    return _fold(
        ratio,
        "Two strangers cost the server with a CPU thread something: without them it answers {} times as many requests.",
        "With two strangers the server beside a CPU thread answers more requests, {} times as many.",
        f"Whether two strangers change the rate beside a CPU thread cannot be told here ({_found(ratio)}).",
    )


def model(some: Interval | None, two: Interval | None, verdict: str) -> str:
    """C10: shares of requests beside one CPU thread that wait for one switch interval or more, and for two or more; what the rule
    says of the second."""
    if not (known(some) and known(two)):
        return f"How often a request waits beside one CPU thread is not known here: {UNKNOWN}."
    said = f"Of the requests beside one CPU thread, {_part(some)} wait for one switch interval or more, {_part(two)} for two or more"
    if verdict == YES:
        return f"{said}: by the model all wait for two, and here it is the rule."
    if verdict == NO:
        return f"{said}: by the model all wait for two, and that is not so here."
    return f"{said}; whether the two of the model are the rule cannot be told from that."


def _part(share: Interval) -> str:
    """A share of requests; where no process has one, or every process nothing else, there is no interval to name."""
    if share.low == share.high and share.value in (0, 1):
        return "all" if share.value else "none"
    return text(share, "%", 100)


def mixture(where: str, none: Interval | None, one: Interval | None, two: Interval | None) -> str:
    """Shares of requests that took about no switch interval, about one, and about two."""
    if not (known(none) and known(one) and known(two)):
        return f"{where}, how requests divide is not known here: {UNKNOWN}."
    each = f"of the requests, {_part(none)} take next to no switch interval, {_part(one)} about one, {_part(two)} about two"
    rules = {"no wait": none, "one wait": one, "two waits": two}
    for rule, share in rules.items():
        if share.low > MOST:
            return f"{where}, {each}: {rule} a request, as a rule."
        if share.low > 0.5:
            return f"{where}, {each}: mostly {rule}."
    if sum(share.low > 0.05 for share in rules.values()) > 1:
        return f"{where}, {each}: a mixture."
    return f"{where}, {each}; which of them is the rule cannot be told."


def pooled(added: Interval | None, medians: list[float]) -> str:
    """Is the average what any process has? medians: of single requests by process, in switch intervals."""
    if not known(added) or not medians:
        return f"Whether the average stands for a process is not known here: {UNKNOWN}."
    near = sum(abs(median - added.value) < NEAR for median in medians)
    said = (
        f"On average over requests and processes, one CPU thread adds {text(added)} switch intervals to a request; of "
        f"{len(medians)} processes, {near} have a median request within a tenth of an interval of that"
    )
    if near == 0:
        return f"{said}: it is a value that no process shows, and describes how many were of which kind."
    if added.half_width > NEAR:
        return f"{said}; the average itself is not known that closely, as averages of processes differ."
    if near > MOST * len(medians):
        return f"{said}: it stands for them."
    return f"{said}: it stands for some of them."


def calls(shares: dict[str, Interval | None]) -> str:
    """Shares of the server's calls that waited half a switch interval or longer, by call."""
    if not all(known(share) for share in shares.values()):
        return f"Which of the calls wait is not known here: {UNKNOWN}."
    each = listed([f"{call} in {text(share, '%', 100)} of its calls" for call, share in shares.items()])
    (one, first), (other, second) = shares.items()
    if first.low > second.high or second.low > first.high:
        more, less = (one, other) if first.value > second.value else (other, one)
        return f"A long wait is seen after {each}: {more} pays more often than {less}."
    return f"A long wait is seen after {each}; which of them pays more often cannot be told."


def one_wait(wait: Interval | None, verdict: str) -> str:
    """C8: from asking for the GIL to having it, in switch intervals."""
    if verdict == YES:
        return f"Who asks for the GIL has it after one switch interval: {text(wait)}."
    if verdict == NO:
        return f"Who asks for the GIL does not have it after one switch interval here, but after {text(wait)}."
    return f"Whether one switch interval is the wait cannot be told here ({text(wait) if known(wait) else UNKNOWN})."


def forced(share: Interval | None) -> str:
    """Share of long waits that were over with the first demand: see results.first_demands."""
    if not known(share):
        return f"How many demands a wait took is not known here: {UNKNOWN}."
    said = f"{text(share, '%', 100)} of the waits were over within one and a half intervals, so with the first demand"
    if share.low > 1 - 0.05:
        return (
            f"Of a server that had to wait, {said}. As these waits suggest, the busy thread, made to let go, did not take the GIL "
            "back first."
        )
    if share.high < MOST:
        return (
            f"Of a server that had to wait, only {said}. The others waited longer than forced switching would have it."
        )
    return f"Of a server that had to wait, {said}; whether the rest took another demand, or the system was late, is not known."


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


def starved(ratio: Interval | None, beyond: Interval | None) -> str:
    """Requests a second at 1 µs, with the slack over without; what the median request takes there beyond one interval without
    slack, in µs."""
    same = ""
    if known(beyond) and beyond.half_width < SAME * beyond.value:
        same = (
            f" A request takes {text(beyond, 'µs')} beyond one interval there, about the same in every process: that looks like a "
            "constant of the system."
        )
    return _fold(
        ratio,
        "What it breaks: at 1 µs the server without slack answers fewer requests; with it, {} times as many."
        f"{same} Where that comes from is not known here.",
        "At 1 µs the server answers more requests without slack, {} times as many: here it breaks nothing.",
        f"Whether the server suffers at 1 µs without slack cannot be told here ({_found(ratio)}).",
    )


def relief(ratio: Interval | None, verdict: str, published: float) -> str:
    """C4: rate at 10 µs over that at 5 ms, one CPU thread; the author's."""
    return f"{_relief(ratio, verdict)} The author's ratio is {published:.4g}."


def _relief(ratio: Interval | None, verdict: str) -> str:
    if verdict == YES:
        return f"A shorter interval relieves the server: {text(ratio)} times as many requests at 10 µs as at 5 ms."
    if verdict == NO:
        return (
            f"A shorter interval does not relieve the server by what would matter ({_found(ratio)} at 10 µs over 5 ms)."
        )
    return f"Whether a shorter interval relieves the server cannot be told here ({_found(ratio)} at 10 µs over 5 ms)."


def one_core(one: Interval | None, same: Interval | None, relieves: str, flaw: str) -> str:
    """C6: rate on one core over not pinned, and with the client on the same core over apart; the verdicts of both parts."""
    places = f"the same core over apart: {_found(same)}"
    first = {
        YES: f"Everything on one core relieves the server ({_found(one)})",
        NO: f"Everything on one core does not relieve the server by what would matter ({_found(one)})",
    }.get(relieves, f"Whether one core relieves the server cannot be told here ({_found(one)})")
    second = {
        YES: f"with the client apart the relief is gone ({places}), as the author's note says",
        NO: f"with the client apart most of it stays ({places}), and the author's note is not confirmed",
    }.get(flaw, f"whether the client's place decides cannot be told ({places})")
    return f"{first}; {second}."


def without_gil(ratio: Interval | None) -> str:
    """Rate without CPU work over that beside one CPU thread, free-threaded build."""
    return _fold(
        ratio,
        "Without the GIL, a CPU thread still takes something from the server: alone it answers {} times as many requests.",
        "Without the GIL, the server answers {} times as many requests beside a CPU thread as alone. An explanation, not tested "
        "here: alone, the cores fall asleep between two bytes, and a CPU thread keeps them awake.",
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
        "It does not fall: it rises, {} times as many requests.",
        f"Whether it changes at all cannot be told here ({_found(process)}).",
    )


def prediction_3(
    some: Interval | None, two: Interval | None, verdict: str, added: Interval | None, medians: list[float]
) -> str:
    """As in model and pooled."""
    return f"{model(some, two, verdict)} {pooled(added, medians)}"


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


def objection_slack(gross: Interval | None, net: Interval | None) -> str:
    """Share of the excess at 10 µs that goes away without the timer slack: of all of it, and of what a request without CPU work
    does not take, too. Beside the CPU thread its own way may be shorter than that, so that the truth lies between."""
    if not (known(gross) and known(net)):
        return f"How much of the floor is the timer slack is not known here: {UNKNOWN}."
    shares = (
        f"of what a request takes beyond one interval of 10 µs, {text(gross, '%', 100)} go away with it; less the request's own way, "
        f"as it is without CPU work, {text(net, '%', 100)} of the rest"
    )
    if min(gross.low, net.low) > 0.5:
        return f"Right, for short intervals: {shares}."
    if max(gross.high, net.high) < 0.5:
        return f"Not for the most part here: {shares}."
    return f"Whether it is the larger part cannot be told here: {shares}."
