"""What the records of the chapter "Code placement" say: what fits into a cache, the lottery's spread, the story's ratios."""

import numpy as np
import pandas as pd

from ffilab.judge import processes, statistics
from ffilab.judge.processes import exact, extremes, range_without_noise
from ffilab.judge.statistics import Interval, Measurement
from notebooks.placement.experiment import PACKED, Cache
from notebooks.placement.lottery import BENCHMARKS

# A layout no longer fits when a call takes this many times as long as in the packed one.
TOO_SLOW = 1.5
# Misses of a call below which functions are said to fit.
FEW_MISSES = 0.05
# Of the caller, for each function that it calls.
CALL_BYTES = 5
# What somebody might call a regression.
THRESHOLDS = (1.02, 1.05)
RESAMPLES = 2_000


def table(found: list[dict] | str) -> pd.DataFrame | str:
    """Rows as a frame; the reason why there are none stays as it is."""
    return found if isinstance(found, str) else pd.DataFrame(found)


# ---- functions at a distance ----


def slower(runs: pd.DataFrame, distance: int, n: int) -> np.ndarray:
    """Time of a call over that of the packed layout with as many functions, one value per process."""
    wide = runs[runs.n == n].pivot(index="process", columns="distance", values="ns")
    return (wide[distance] / wide[PACKED]).to_numpy()


def times_as_long(runs: pd.DataFrame, distance: int, n: int) -> Interval:
    """The same over all processes."""
    return statistics.location_interval(np.log(slower(runs, distance, n))).map(np.exp)


def fits(runs: pd.DataFrame, distance: int) -> np.ndarray:
    """By process, the largest number of functions that are still as fast as packed ones; infinity if all are."""
    numbers = sorted(runs[runs.distance == distance].n.unique())
    slow = np.array([slower(runs, distance, n) > TOO_SLOW for n in numbers])
    first = np.where(slow.any(axis=0), slow.argmax(axis=0), len(numbers))
    return np.array([*[0.0], *map(float, numbers[:-1]), float("inf")])[first]


def computed_fit(cache: Cache, distance: int) -> int:
    """Functions of one line that a cache holds at this distance: its ways, in every set that they fall into."""
    sets = cache.size // cache.line // cache.ways
    lines_apart = max(1, distance // cache.line)
    functions_a_line = max(1, cache.line // distance)
    return cache.ways * max(1, sets // lines_apart) * functions_a_line


def simulated_edges(found: pd.DataFrame, cache: Cache) -> dict[int, int]:
    """By distance, the largest number of functions that this cache runs without a miss; 0 if none."""
    edges = {}
    for distance, part in found[found.cache == cache.name].groupby("distance"):
        fitting = part[part.misses < FEW_MISSES].n
        edges[distance] = int(fitting.max()) if len(fitting) else 0
    return edges


def distance_intervals(runs: pd.DataFrame) -> pd.DataFrame:
    """ns of a call with its interval. Columns distance, n, value, low, high."""
    return pd.DataFrame(
        [
            {"distance": distance, "n": n, **vars(statistics.location_interval(part.ns.to_numpy()))}
            for (distance, n), part in runs.groupby(["distance", "n"])
        ]
    )


# ---- a loop, and an environment ----


def offsets_apart(runs: pd.DataFrame) -> Interval:
    """The slowest fifth of all offsets over the fastest, not biased by the choice."""
    return extremes(np.log(runs.pivot(index="offset", columns="process", values="ns").to_numpy()))


def environments_apart(runs: pd.DataFrame) -> dict[bool, Interval]:
    """The same for sizes of the environment, with random addresses (True) and without, where both were measured."""
    return {
        bool(random): extremes(np.log(part.pivot(index="bytes", columns="round", values="ns").to_numpy()))
        for random, part in runs.groupby("random")
    }


# ---- the lottery ----


def copies_centre(runs: pd.DataFrame, benchmark: str) -> float:
    """Median over the copies of the default of their median log."""
    chosen = runs[(runs.benchmark == benchmark) & (runs.kind == "copy")]
    return chosen.groupby("name").log.median().median()


def ratios(runs: pd.DataFrame, benchmark: str, kind: str) -> pd.Series:
    """Median ratio to the copies' centre by program of a kind (`order`, `copy`, or an order with a reason)."""
    chosen = runs[(runs.benchmark == benchmark) & (runs.kind == kind)]
    return np.exp(chosen.groupby("name").log.median() - copies_centre(runs, benchmark))


def over_default(runs: pd.DataFrame, benchmark: str, name: str) -> Interval:
    """Time of one program over the copies' centre, over rounds."""
    logs = runs[(runs.benchmark == benchmark) & (runs.name == name)].log.to_numpy()
    return statistics.location_interval(logs - copies_centre(runs, benchmark)).map(np.exp)


def faster_orders(runs: pd.DataFrame, benchmark: str, name: str) -> tuple[int, int]:
    """Shuffled orders that are faster than one program, and how many there are."""
    logs = runs[(runs.benchmark == benchmark) & (runs.name == name)].log.to_numpy() - copies_centre(runs, benchmark)
    among = ratios(runs, benchmark, "order").to_numpy()
    return int((among < np.exp(np.median(logs))).sum()), len(among)


def by_round(runs: pd.DataFrame, benchmark: str, kind: str) -> np.ndarray:
    """Logs of the programs of a kind, shape (programs, rounds)."""
    chosen = runs[(runs.benchmark == benchmark) & (runs.kind == kind)]
    return chosen.pivot(index="name", columns="round", values="log").to_numpy()


def spread(runs: pd.DataFrame, benchmark: str, seed: int = 0) -> tuple[float, Interval]:
    """Slowest over fastest median of the orders, and what noise alone gives for as many programs.

    The first is too large by what noise adds to the largest and takes from the smallest. The second shows how much
    that is: the middle 95 % of the same statistic over sets of medians drawn from the copies' residuals.
    """
    rng = np.random.default_rng(seed)
    orders, copies = by_round(runs, benchmark, "order"), by_round(runs, benchmark, "copy")
    value, rounds = float(np.exp(np.ptp(np.median(orders, axis=1)))), copies.shape[1]
    if rounds < statistics.MIN_RESTARTS:
        return value, Interval(*[float("nan")] * 3)
    # A residual of n rounds is smaller than the noise by the factor sqrt((n - 1) / n).
    residuals = (copies - copies.mean(axis=1, keepdims=True)).ravel() * np.sqrt(rounds / (rounds - 1))
    noise = np.median(rng.choice(residuals, size=(RESAMPLES, *orders.shape)), axis=2)
    alone = np.exp(np.ptp(noise, axis=1))
    return value, Interval(float(np.median(alone)), *map(float, np.quantile(alone, (0.025, 0.975))))


def true_spread(runs: pd.DataFrame, benchmark: str) -> Interval:
    """Slowest over fastest order with the noise taken out: see `processes.range_without_noise`."""
    return range_without_noise(by_round(runs, benchmark, "order"))


def passing(runs: pd.DataFrame, benchmark: str, kind: str, threshold: float) -> tuple[int, int]:
    """Programs of a kind that are slower than the copies' centre by the threshold or more, and how many there are."""
    found = ratios(runs, benchmark, kind)
    return int((found >= threshold).sum()), len(found)


def differing(runs: pd.DataFrame) -> list[str]:
    """Benchmarks in which the orders differ beyond noise."""
    return [name for name in BENCHMARKS if true_spread(runs, name).low > 1]


def five_hottest(found: dict | str) -> Measurement | str:
    """Share of the five hottest functions in a profile; or why there is none."""
    if isinstance(found, str):
        return found
    five, unit = sum(cost for _, cost in found["hottest"][:5]), f"share of {found['what']}"
    if found["what"] != "samples":
        return exact(five / found["total"], unit)  # instructions were all counted
    return Measurement(statistics.share_interval(five, found["total"]), 0.0, unit)


# ---- the story ----


def ratio(times: pd.DataFrame, slow: str, fast: str) -> Measurement | None:
    """Time of one program over that of another, paired by round."""
    ordered = times.sort_values("round")
    return processes.ratio(*(ordered[ordered.program == name].ns.to_numpy() for name in (slow, fast)))


def counted_ratio(counts: pd.DataFrame | str, what: str) -> Measurement | str:
    """`instructions` or `misses` of the slow program over those of the fast one; or why there is none."""
    if isinstance(counts, str):
        return counts
    column = counts.set_index("program")[what]
    return exact(column["slow"] / column["fast"], "ratio")


def stalls_ratio(hardware: dict[str, dict] | str) -> Measurement | str:
    """Stalled front-end cycles of the slow program over those of the fast one; or why there is none."""
    event = "stalled-cycles-frontend"
    if isinstance(hardware, str):
        return hardware
    if not all(event in found for found in hardware.values()):
        return "this processor does not count stalled front-end cycles for us"
    return exact(hardware["slow"][event] / hardware["fast"][event], "ratio")
