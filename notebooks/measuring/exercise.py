"""The exercises of the chapter "Measuring on a noisy machine": three small benchmarks, each with one flaw; one to
repair; and a loop that the compiler leaves out."""

import ctypes
import math
import random
import statistics as stdlib_statistics

import numpy as np

from ffilab.judge import selfcheck, statistics
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Location
from ffilab.judge.questions import OPEN, YES, above
from ffilab.judge.rules import NO
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import GIL

FLAWS = {
    "A": "the two functions run one after the other; whatever changes in between counts as a difference.",
    "B": "a thousand timings of one process are treated as a thousand independent values.",
    "C": "each timing holds one call, which is of the size of the clock's step and the wrapper.",
}
KEYWORDS = {"A": "order", "B": "restart", "C": "batch"}
# What each remedy mends, said where it is the wrong one.
MENDS = {
    "order": "it mends two functions of which one always comes first.",
    "restart": "it mends timings that share one process.",
    "batch": "it mends timings as short as a step of the clock.",
}


def check_flaws(answers: dict[str, str]) -> list[str]:
    """The self-check: for A, B and C one remedy out of `order`, `restart`, `batch`. Returns one line for each."""
    asked = {}
    for name, remedy in KEYWORDS.items():
        given = answers.get(name, "")
        asked[name] = remedy, FLAWS[name] if given == remedy else MENDS.get(given, "")
    return selfcheck.answered(answers, asked, MENDS)


# The simulated machine: a call takes NS; each process multiplies the time of each function by luck of its own, each
# timing adds noise, each timing of a process is a little slower than the one before, and every second one takes longer
# (standard deviations and steps of the logarithm).
NS, LUCK, NOISE, DRIFT, EVERY_SECOND = 100.0, 0.03, 0.02, 0.001, 0.03
# Of how many benchmarks the check counts the alarms; how many it lets pass; the difference that has to be found, and
# how often.
TRIED, MOST_ALARMS, SLOWER, FOUND = 100, 0.06, 1.1, 0.9
MOST_TIMINGS = 2_000


class Machine:
    """A machine whose truth is known. `start()` starts a process; g takes `ratio` times as long as f."""

    def __init__(self, ratio: float, seed: int):
        self.ratio, self.lots = ratio, random.Random(seed)
        # By process, the order of its timings.
        self.log: list[list[str]] = []

    def start(self):
        """A new process: a function that gives one timing (ns) of "f" or of "g"."""
        truth = {"f": NS, "g": NS * self.ratio}
        luck = {name: self.lots.gauss(0, LUCK) for name in truth}
        order: list[str] = []
        self.log.append(order)

        def time_of(name: str) -> float:
            if name not in truth:
                raise ValueError(f'time_of takes "f" or "g", not {name!r}')
            if sum(map(len, self.log)) >= MOST_TIMINGS:
                raise ValueError(f"a benchmark may take {MOST_TIMINGS:,} timings at most")
            position = DRIFT * len(order) + EVERY_SECOND * (len(order) % 2)
            order.append(name)
            return truth[name] * math.exp(luck[name] + position + self.lots.gauss(0, NOISE))

        return time_of


def says(benchmark, ratio: float, seed: int) -> tuple[str, list[float], list[list[str]]]:
    """What a benchmark says of a simulated machine: does its interval lie above 1? With the ratios that it returned,
    and the order of its timings."""
    machine = Machine(ratio, seed)
    random.seed(seed)
    ratios = [float(one) for one in benchmark(machine.start)]
    if not all(math.isfinite(one) and one > 0 for one in ratios):
        raise ValueError("every ratio has to be a positive number")
    if len(ratios) < MIN_VALUES:
        return OPEN, ratios, machine.log
    interval = Location.of(np.log(ratios), log=True).at()
    return above(interval, 1), ratios, machine.log


def flaw_of_counting(ratios: list[float], log: list[list[str]]) -> str | None:
    """What is wrong with what is counted as an independent value; None if nothing is seen."""
    names = {name for order in log for name in order}
    if names != {"f", "g"}:
        return "it has to take timings of both f and g."
    if len(ratios) < MIN_VALUES:
        return f"it returns {len(ratios)} ratios; an interval takes at least {MIN_VALUES}, one for each process."
    if len(log) == 1:
        return "all timings come from one process, whose luck counts as a difference. Call start() for each ratio."
    if len(ratios) > len(log):
        return f"{len(ratios)} ratios come from {len(log)} processes. Those of one share its luck: return one of each."
    return None


def flaw_of_order(log: list[list[str]]) -> str | None:
    """What is wrong with the order of the timings, if it raises alarms; None if nothing is seen."""
    alone = [order for order in log if len(set(order)) < 2]
    if alone:
        return "a process takes timings of one function only, so that its drift does not cancel. Time both in each."
    if all(order == sorted(order) or order == sorted(order, reverse=True) for order in log):
        return "in each process one function is timed before the other: drift counts as a difference. Interleave."
    if len({tuple(order) for order in log}) == 1:
        return "the order is the same in every process, so that the position counts as a difference. Draw it at random."
    return None


def check_benchmark(benchmark) -> list[str]:
    """The self-check: runs `benchmark(start)` on simulated machines, with equal functions and with one slower than the
    other.

    benchmark returns ratios, time of g over time of f, that the check takes for independent values.
    """
    state = random.getstate()
    try:
        equal = [says(benchmark, 1.0, seed) for seed in range(TRIED)]
        slower = [says(benchmark, SLOWER, TRIED + seed) for seed in range(TRIED)]
    except Exception as error:
        return [f"It does not run: {type(error).__name__}: {error}."]
    finally:
        random.setstate(state)
    alarms = sum(said != OPEN for said, *_ in equal) / TRIED
    found = sum(said == YES for said, *_ in slower) / TRIED
    lines = [
        f"Equal functions: {alarms:.0%} false alarms in {TRIED} benchmarks (at most {MOST_ALARMS:.0%}; {1 - LEVEL:.0%} "
        "is honest).",
        f"g {SLOWER - 1:.0%} slower: found in {found:.0%} (at least {FOUND:.0%}).",
    ]
    counting = [flaw for _, ratios, log in equal if (flaw := flaw_of_counting(ratios, log))]
    order = [flaw for _, _, log in equal if (flaw := flaw_of_order(log))]
    if counting:
        lines.append(f"Not yet: {stdlib_statistics.mode(counting)}")
    elif alarms > MOST_ALARMS and order:
        lines.append(f"Not yet: {stdlib_statistics.mode(order)}")
    elif alarms > MOST_ALARMS:
        lines.append("Not yet: it tells a function from itself. Is each ratio made of timings of one process?")
    elif found < FOUND:
        lines.append("Not yet: it misses a real difference. Take more processes, and return g over f.")
    else:
        lines.append("Right: it is silent where nothing is, and finds what is there.")
    return lines


SPIN = "{built}/measuring/libspin.so"
# How far the loop runs; how many times as far in a second arm; and how many times as long that has to take, whatever
# disturbs.
FAR, TIMES, GROWS = 10_000, 10, 5


def check_count(session: Session, mine: str) -> list[str]:
    """Does the reader's `count_to` count, in a time that grows with how far, and is it as fast as the original's
    `spin`?

    mine: what `mine.build` returned.
    """
    library = f"{mine}/libspin.so"
    outcome = Case(GIL, counted_to, fixed={"library": library, "far": FAR}, timeout_s=4).run()
    if not outcome.result or outcome.result["counted"] != FAR:
        returned = outcome.result["counted"] if outcome.result else f"nothing: {outcome.ended}"
        return selfcheck.correct_then_fast([f"count_to({FAR}) returned {returned}."], None)
    arms = [
        Arm(name, "f(n)", f"import ctypes; f, n = ctypes.PyDLL({file!r}).{function}, {far}", beside="count")
        for name, file, function, far in (
            ("spin", SPIN, "spin", FAR),
            ("count_to", library, "count_to", FAR),
            (f"count_to, {TIMES} times as far", library, "count_to", TIMES * FAR),
        )
    ]
    record = session.time("my count_to", arms, [GIL])
    draw.arms(record)
    spin, once, further = ((GIL, arm.name) for arm in arms)
    growth = statistics.compare(record, further, once).ratio
    line = f"{TIMES} times as far takes {draw.text(growth)} times as long, and more than {GROWS} times is asked."
    grows = above(growth, GROWS)
    undecided = [line] * (grows == OPEN)
    return selfcheck.correct_then_fast(
        [line] * (grows == NO), statistics.compare(record, once, spin), undecided=undecided
    )


def counted_to(library, far):
    return {"counted": ctypes.PyDLL(library).count_to(far)}
