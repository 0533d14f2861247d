"""How much builds, layouts, sessions and restarts add to the scatter of a ratio (book/evidence/levels.json)."""

import json
import math
import secrets
import tempfile
import time
from pathlib import Path

import pandas as pd
from scipy import stats

from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, Interval
from ffilab.run import machine
from ffilab.run.progress import say, step
from ffilab.setup import layout_pool, relink
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.measuring.variances import alone, between
from studies import kept
from studies.calibration.arms import BUILDS, compiled, ratios, timed

LAYOUTS, SESSIONS, RESTARTS, COPIES = 8, 4, 2, 10
LEVELS = ("build", "layout", "session", "layout in a session", "restart")


def pilot(folder: Path) -> tuple[pd.DataFrame, dict[str, float]]:
    """Logarithms of each ratio on 3.14t: builds × layouts × sessions × restarts, and copies of one layout beside them.

    Columns ratio, session, build, layout (None for a copy), copy, log. And what a link and a restart cost, in seconds.
    """
    began, seed = time.monotonic(), secrets.randbits(32)
    drawn = layout_pool.make(folder / "drawn", [FREE_THREADED], BUILDS * LAYOUTS, seed, list(range(1, BUILDS + 1)))[
        FREE_THREADED
    ]
    link_s = (time.monotonic() - began) / len(drawn)
    copies = [
        layout_pool.make(folder / f"copy-{number}", [FREE_THREADED], 1, seed)[FREE_THREADED][0]
        for number in range(COPIES)
    ]
    assert len({one.id for one in copies}) == 1, "copies of one layout have to be the same bytes"
    pool = {FREE_THREADED: [*drawn, *copies]}
    rows, restart_s = [], []
    for session in range(SESSIONS):
        began = time.monotonic()
        record = timed(folder, f"session-{session}", (FREE_THREADED,), pool, RESTARTS * len(pool[FREE_THREADED]))
        restart_s.append((time.monotonic() - began) / len(record.noise.restarts))
        for name, cells in ratios((FREE_THREADED,)).items():
            values = statistics.log_ratios_by_restart(record, *cells)
            for number, value in zip(record.noise.restarts, values):
                if math.isnan(value):
                    # All its batches had company.
                    continue
                unit = record.units[number]
                copy = unit.layout - len(drawn)
                where = {"layout": unit.layout, "copy": None} if copy < 0 else {"layout": None, "copy": copy}
                rows.append({"ratio": name, "session": session, "build": unit.build, **where, "log": value})
    return pd.DataFrame(rows), {"link_s": link_s, "restart_s": sum(restart_s) / len(restart_s)}


def components(values: pd.DataFrame) -> dict[str, Interval]:
    """Standard deviation that each level adds to one ratio (log scale), with 95 % intervals.

    Method of moments of a balanced design: layouts within builds, crossed with sessions. Intervals by Ting et al. 1990
    (J. Statist. Comput. Simul. 35), which need no normality of the estimate. A layout that lacks a session is left out;
    where a session's restarts of a layout are not all there, their harmonic mean stands for their number.
    """
    table = values.groupby(["build", "layout", "session"])["log"].agg(["mean", "var", "count"]).reset_index()
    whole = table.groupby("layout")["count"].transform(lambda counts: (counts > 0).sum()) == SESSIONS
    table = table[whole]
    # As many layouts of each build.
    fewest = table.groupby("build").layout.nunique().min()
    table = table[table.groupby("build").layout.transform(lambda found: found.rank(method="dense")) <= fewest]
    builds, sessions, r = table.build.nunique(), SESSIONS, len(table) / float((1 / table["count"]).sum())
    grand, layout = table["mean"].mean(), table.groupby("layout")["mean"].transform("mean")
    of_build = table.groupby("build")["mean"].transform("mean")
    session = table.groupby("session")["mean"].transform("mean")
    squares = {
        "build": (r * ((of_build - grand) ** 2).sum(), builds - 1),
        "layout": (r * ((layout - of_build) ** 2).sum(), builds * (fewest - 1)),
        "session": (r * ((session - grand) ** 2).sum(), sessions - 1),
        "layout in a session": (
            r * ((table["mean"] - layout - session + grand) ** 2).sum(),
            (builds * fewest - 1) * (sessions - 1),
        ),
        "restart": (((table["count"] - 1) * table["var"]).sum(), int((table["count"] - 1).sum())),
    }
    means = {level: (total / freedom, freedom) for level, (total, freedom) in squares.items()}
    above = {
        "build": ("layout", r * sessions * fewest),
        "layout": ("layout in a session", r * sessions),
        "session": ("layout in a session", r * builds * fewest),
        "layout in a session": ("restart", r),
    }
    found = {level: between(means[level], means[under], times) for level, (under, times) in above.items()}
    return {**found, "restart": alone(*means["restart"])}


def copies_scatter(values: pd.DataFrame) -> dict[str, float]:
    """Of the copies of one layout: the standard deviation between them, and the F test's p that there is none."""
    groups = [part.log.to_numpy() for _, part in values.groupby("copy")]
    groups = [group for group in groups if len(group) > 1]
    within = sum(group.var(ddof=1) * (len(group) - 1) for group in groups) / sum(len(group) - 1 for group in groups)
    between_copies = pd.Series([group.mean() for group in groups]).var() - within / len(groups[0])
    return {"sd": math.sqrt(max(0.0, between_copies)), "p": float(stats.f_oneway(*groups).pvalue)}


def restarts_a_layout(found: dict[str, Interval], cost: dict[str, float]) -> float:
    """The cheapest number of restarts with one layout (Kalibera and Jones 2013, section 7): by the variances and the
    costs of the two levels."""
    of_restart = math.hypot(found["restart"].value, found["layout in a session"].value)
    if not found["layout"].value:
        return math.inf
    return math.sqrt(cost["link_s"] / cost["restart_s"]) * of_restart / found["layout"].value


def variances() -> list[dict]:
    """Run the pilot; one object for each ratio."""
    with tempfile.TemporaryDirectory(dir=layout_pool.POOLS.parent) as scratch:
        values, cost = pilot(Path(scratch))
    rows = []
    for name, part in values.groupby("ratio"):
        found = components(part[part.layout.notna()])
        rows.append(
            {
                "ratio": name,
                "levels": {level: [one.value, one.low, one.high] for level, one in found.items()},
                "copies": copies_scatter(part[part["copy"].notna()]),
                "restarts_a_layout": restarts_a_layout(found, cost),
                "half_widths": {str(n): half_width(found, n) for n in (20, 40, 110)},
                "cost": cost,
                "design": {"builds": BUILDS, "layouts": LAYOUTS, "sessions": SESSIONS, "restarts": RESTARTS},
                "differences": relink.differences(FREE_THREADED, 1, 2),
                "machine": machine.facts(),
            }
        )
    return rows


def half_width(found: dict[str, Interval], number: int) -> float:
    """Half-width of a 98 % interval over so many layouts, one restart each, as these variances predict it."""
    scatter = math.sqrt(sum(found[level].value ** 2 for level in ("layout", "layout in a session", "restart")))
    return float(stats.t.ppf(0.5 + LEVEL / 2, number - 1)) * scatter / math.sqrt(number)


def main(budget: str) -> None:
    """Run the study on all builds of the pair."""
    compiled(BUILDS)
    with step("the study of levels"):
        found = variances()
    (kept.EVIDENCE / "levels.json").write_text(json.dumps(found, indent=1, default=str) + "\n")
    say("  kept in levels.json")
