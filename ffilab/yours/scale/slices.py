"""From slices to a number: which of them count, and what the work of several threads is over that of one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ffilab.judge.estimates import Interval, Location

# A slice counts if it waited for its core for less than this share of its time and was not preempted, and one of
# several threads if slices of the others that count reach to within this share of its ends.
WAITED, EDGE = 0.04, 0.1
# Fewer slices of a kind tell nothing of a process.
LEAST = 5
PHASE, BEGAN, ENDED, DELAY, PREEMPTED, WAITS, FAULTS = range(7)


@dataclass(frozen=True)
class Process:
    """What the slices of one process say.

    alone, together: ns of a pass, by thread, of slices that count; NaN if they are too few. rates: work of a thread
    while all run over its work alone, of all slices; with the GIL by how many slices it got done. used, total: slices
    of all threads together. waits, faults: of a pass, while all run. empty: ns of a pass of the empty loop.
    """

    alone: tuple[float, ...]
    together: tuple[float, ...]
    rates: tuple[float, ...]
    used: int
    total: int
    waits: float
    faults: float
    empty: float
    gil: bool = False

    @property
    def ratio(self) -> float:
        """Work of all threads over that of one, each compared with itself, of slices that count."""
        return sum(alone / together for alone, together in zip(self.alone, self.together))

    @property
    def throughput(self) -> float:
        """Work of all threads over that of one, of all slices."""
        return sum(self.rates)


def clean(rows: np.ndarray) -> np.ndarray:
    """Which rows were neither preempted nor kept waiting for a core."""
    return (rows[:, PREEMPTED] == 0) & (rows[:, DELAY] < WAITED * (rows[:, ENDED] - rows[:, BEGAN]))


def spans(mine: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each of my rows, the first and the last row (not included) of another thread that overlap it in time."""
    first = np.searchsorted(others[:, ENDED], mine[:, BEGAN], "right")
    last = np.searchsorted(others[:, BEGAN], mine[:, ENDED], "left")
    return first, np.maximum(first, last)


def covered(mine: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of my rows another thread covers with rows that count, from one end to the other."""
    if not len(others):
        return np.zeros(len(mine), bool)
    first, last = spans(mine, others)
    unclean = np.concatenate([[0], np.cumsum(~clean(others))])
    edge = EDGE * (mine[:, ENDED] - mine[:, BEGAN])
    some = last > first
    begins = others[np.minimum(first, len(others) - 1), BEGAN] <= mine[:, BEGAN] + edge
    ends = others[np.maximum(last - 1, 0), ENDED] >= mine[:, ENDED] - edge
    return some & (unclean[last] == unclean[first]) & begins & ends


def process_of(answer: dict) -> Process:
    """What one process answered, as `rows` of `ffilab_child/running.py`."""
    threads = [np.array(rows, dtype=float).reshape(-1, 7) for rows in answer["rows"]]
    count, alone, together, rates, used, total, passes, events = len(threads), [], [], [], 0, 0, 0, np.zeros(2)
    phases = np.unique(np.concatenate([rows[:, PHASE] for rows in threads]))
    shared = int((phases % (count + 1) == count).sum())
    for which, (rows, size) in enumerate(zip(threads, answer["sizes"])):
        others = [other for number, other in enumerate(threads) if number != which]
        in_all = rows[:, PHASE] % (count + 1) == count
        apart, beside = rows[~in_all], rows[in_all]
        free = clean(apart)
        met = clean(beside)
        for other in others:
            first, last = spans(apart, other)
            free &= first == last
            met &= covered(beside, other)
        times = [(part[:, ENDED] - part[:, BEGAN]) / size for part in (apart, beside)]
        alone.append(middle(times[0][free]))
        together.append(middle(times[1][met]))
        if answer.get("gil"):
            # Threads wait for it between slices, too: what counts is how many slices a phase had room for.
            rates.append(slices_a_phase(beside, shared) / slices_a_phase(apart, len(np.unique(apart[:, PHASE]))))
        else:
            rates.append(float(times[0].mean() / times[1].mean()) if len(apart) and len(beside) else float("nan"))
        used, total, passes = used + int(met.sum()), total + len(beside), passes + len(beside) * size
        events += beside[:, [WAITS, FAULTS]].sum(axis=0)
    waits, faults = (float(each) for each in events / max(1, passes))
    times = tuple(alone), tuple(together), tuple(rates)
    return Process(*times, used, total, waits, faults, answer["empty"], bool(answer.get("gil")))


def slices_a_phase(rows: np.ndarray, phases: int) -> float:
    return len(rows) / phases if phases else float("nan")


def middle(times: np.ndarray) -> float:
    return float(np.median(times)) if len(times) >= LEAST else float("nan")


def interval(values: Sequence[float]) -> Interval:
    """The interval of a ratio over processes; unknown for fewer than three."""
    known = np.array([value for value in values if np.isfinite(value) and value > 0])
    return Location.of(np.log(known), log=True).at()


def ratio(processes: Sequence[Process]) -> Interval:
    """Work of all threads over that of one, over processes."""
    return interval([one.ratio for one in processes])


def throughput(processes: Sequence[Process]) -> Interval:
    """Work of all threads over that of one, of all slices, also those that were preempted or that waited."""
    return interval([one.throughput for one in processes])


def left_out(processes: Sequence[Process]) -> float:
    """The share of slices that do not count."""
    total = sum(one.total for one in processes)
    return 1 - sum(one.used for one in processes) / total if total else 1.0
