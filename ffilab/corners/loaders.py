"""Chapter "CDLL and PyDLL": what the loader of ctypes costs, and what it blocks (claims A12, A13, A14)."""

import random
import secrets

import numpy as np
import pandas as pd

from ffilab import draw
from ffilab.bench import child, runner
from ffilab.bench.plan import EMPTY, Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.statistics import Interval
from ffilab.paths import NATIVE, NATIVE_OUT

SOURCES = NATIVE / "loaders"
LIBRARY = NATIVE_OUT / "loaders" / "libloaders.so"
EXPERIMENTS = SOURCES / "experiments.py"
LOADERS = ("CDLL", "PyDLL")
TALK_CALLS = 2_000_000
# The talk does not say how long its usleep took; this is ours.
SLEEP_MS = 100
# Long enough to tell waiting from deadlock: the other thread needs 50 ms.
DEADLOCK_MS = 300


def arms() -> list[Arm]:
    """Both loaders on a no-op and on getpid, a second copy for the A/A test, an audited call, the bare cycle."""
    file, library = str(SOURCES / "arms.py"), str(LIBRARY)

    def call(name, loader, function, path, group="shared", maker="call"):
        return Arm(name, file, maker, {"loader": loader, "function": function, "library": path}, group)

    return [
        *(call(f"{loader} noop", loader, "noop", library) for loader in LOADERS),
        *(call(f"{loader} getpid", loader, "getpid", None) for loader in LOADERS),
        call("CDLL noop again", "CDLL", "noop", library),
        # Two processes that differ in the hook only.
        call("CDLL noop, audited", "CDLL", "noop", library, "audited", "audited_call"),
        call("CDLL noop, not audited", "CDLL", "noop", library, "not audited"),
        Arm("detach and attach", file, "detach_attach", {"folder": str(LIBRARY.parent)}, "extension"),
    ]


def measure(labels: list[str]) -> Record:
    """Time all arms on all kernels, interleaved in one run."""
    return runner.run(plan("loaders.calls", arms(), labels, current()))


def loader_comparison(record: Record, label: str, function: str) -> statistics.Comparison:
    """CDLL over PyDLL for `noop` or `getpid` on one kernel."""
    return statistics.compare(record, (label, f"CDLL {function}"), (label, f"PyDLL {function}"))


def comparisons(record: Record) -> pd.DataFrame:
    """One row per kernel and function: the ratio CDLL / PyDLL and the difference in ns."""
    rows = []
    for label in record.kernels:
        for function in ("noop", "getpid"):
            result = loader_comparison(record, label, function)
            rows.append(
                {
                    "kernel": label,
                    "function": function,
                    "comparison": result,
                    "value": result.ratio.value,
                    "low": result.ratio.low,
                    "high": result.ratio.high,
                }
            )
    return pd.DataFrame(rows)


def false_alarm(record: Record) -> pd.DataFrame:
    """The running A/A test: the same call twice, once per kernel. `alarm` is a false positive."""
    rows = []
    for label in record.kernels:
        result = statistics.compare(record, (label, "CDLL noop"), (label, "CDLL noop again"))
        rows.append(
            {
                "kernel": label,
                "value": result.ratio.value,
                "low": result.ratio.low,
                "high": result.ratio.high,
                "mde": result.mde,
                "alarm": result.ratio.excludes(1),
            }
        )
    return pd.DataFrame(rows)


def gain_with_gil_over_without(record: Record, function: str, version: str) -> Interval:
    """(CDLL / PyDLL on the GIL build) over (CDLL / PyDLL on the t-build): above 1, the GIL build gains more."""
    pairs = [((k, f"CDLL {function}"), (k, f"PyDLL {function}")) for k in (version, f"{version}t")]
    return statistics.ratio_of_ratios(record, *pairs)


def detach_attach_cost(record: Record) -> pd.DataFrame:
    """Nanoseconds for one detach and attach: alone in a C loop, and as the difference CDLL - PyDLL.

    A kernel on which the extension could not be loaded is left out; `record.missing` says why.
    """
    rows = []
    for label in record.kernels:
        if (label, "detach and attach") in record.missing:
            continue
        alone = statistics.per_call(record, (label, "detach and attach"))
        rows.append({"kernel": label, "how": "alone, in a C loop", **vars(alone)})
        difference = loader_comparison(record, label, "noop").difference
        rows.append({"kernel": label, "how": "CDLL minus PyDLL", **vars(difference)})
    return pd.DataFrame(rows)


def audit_cost(record: Record) -> dict[str, Interval]:
    """Nanoseconds that one idle audit hook adds to a CDLL call, per kernel. The two arms run in different processes."""
    costs = {}
    for label in record.kernels:
        audited = record.times(label, "CDLL noop, audited") - record.times(label, f"{EMPTY} (audited)")
        plain = record.times(label, "CDLL noop, not audited") - record.times(label, f"{EMPTY} (not audited)")
        costs[label] = statistics.location_interval(np.nanmedian(audited - plain, axis=1), record.run["plan"]["seed"])
    return costs


def original_getpid(labels: list[str]) -> pd.DataFrame:
    """A12 as the talk ran it, once per kernel: seconds for 2,000,000 calls of each loader."""
    calls = int(TALK_CALLS * current().scale)
    rows = []
    for label in labels:
        seconds = child.result(label, EXPERIMENTS, "original_getpid", calls)
        rows.append(
            {
                "kernel": label,
                "calls": f"{calls:,}",
                "CDLL s": round(seconds["CDLL"], 3),
                "PyDLL s": round(seconds["PyDLL"], 3),
                "CDLL / PyDLL": round(seconds["CDLL"] / seconds["PyDLL"], 3),
            }
        )
    return pd.DataFrame(rows)


def original_blocking(labels: list[str]) -> pd.DataFrame:
    """A13 as the talk ran it, once per kernel and loader: iterations of a counting thread during one C call."""
    rows = []
    for label in labels:
        for loader in LOADERS:
            found = child.result(label, EXPERIMENTS, "original_blocking", loader, LIBRARY, SLEEP_MS)
            rows.append({"kernel": label, "loader": loader, "iterations": f"{found['iterations']:,}"})
    return pd.DataFrame(rows)


def counting(labels: list[str]) -> pd.DataFrame:
    """A13 corrected, one row per child process: share of its own counting rate that the thread keeps, and pauses (ms)."""
    jobs = [(label, EXPERIMENTS, "counting", loader, LIBRARY, SLEEP_MS) for label in labels for loader in LOADERS]
    rows = []
    for job, outcome in child.repeat("counting thread", jobs, current().repeats, random.Random(secrets.randbits(32))):
        if outcome.result is None:
            rows.append(
                {"kernel": job[0], "loader": job[3], "share": np.nan, "pause_ms": np.nan, "ended": outcome.ended}
            )
            continue
        rate = {
            phase: outcome.result["counts"][phase] / outcome.result["elapsed"][phase] for phase in ("reference", "call")
        }
        rows.append(
            {
                "kernel": job[0],
                "loader": job[3],
                "share": rate["call"] / rate["reference"],
                "pause_ms": outcome.result["pauses"]["call"] / 1e6,
                "ended": outcome.ended,
            }
        )
    return pd.DataFrame(rows)


def shares_kept(runs: pd.DataFrame) -> pd.DataFrame:
    """Share (centre over processes) with interval, and median longest pause (ms), per kernel and loader."""
    rows = []
    for (kernel, loader), part in runs.dropna().groupby(["kernel", "loader"], sort=False):
        interval = statistics.location_interval(part["share"].to_numpy())
        rows.append(
            {
                "kernel": kernel,
                "loader": loader,
                **vars(interval),
                "pause_ms": float(part["pause_ms"].median()),
                "mde": statistics.minimum_detectable_effect(interval, len(part)),
                "runs": len(part),
            }
        )
    return pd.DataFrame(rows).sort_values(["kernel", "loader"], ignore_index=True)


def hazards(labels: list[str]) -> pd.DataFrame:
    """Shares of fresh processes that crash on a Python C API call, or deadlock in a handshake, per kernel and loader."""
    jobs = []
    for label in labels:
        for loader in LOADERS:
            jobs.append((label, EXPERIMENTS, "python_api", loader))
            jobs.append((label, EXPERIMENTS, "handshake", loader, LIBRARY, DEADLOCK_MS))
    outcomes = child.repeat("crashes and deadlocks", jobs, current().repeats, random.Random(secrets.randbits(32)))
    rows = []
    for label in labels:
        for loader in LOADERS:
            api = [o for j, o in outcomes if j[0] == label and j[2:4] == ("python_api", loader)]
            shake = [o for j, o in outcomes if j[0] == label and j[2:4] == ("handshake", loader)]
            rows.append(
                {
                    "kernel": label,
                    "loader": loader,
                    "crashes": statistics.share_interval(sum(o.ended.startswith("killed by") for o in api), len(api)),
                    "deadlocks": statistics.share_interval(sum(not met(o) for o in shake), len(shake)),
                    "how": ", ".join(sorted({o.ended for o in api})),
                }
            )
    return pd.DataFrame(rows)


def met(outcome: child.Outcome) -> bool:
    """Did the handshake end? A child that crashed or hung counts as one that did not."""
    return bool(outcome.result and outcome.result["met"])


def claim_measurements(record: Record, shares: pd.DataFrame, found: pd.DataFrame) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""

    def loader_ratio(label):
        result = loader_comparison(record, label, "getpid")
        return Measurement(result.ratio, result.mde, "CDLL / PyDLL")

    def share(label, loader):
        row = shares[(shares.kernel == label) & (shares.loader == loader)].iloc[0]
        return Measurement(Interval(row.value, row.low, row.high), row.mde, "share of the reference rate")

    def hazard(label, loader, kind):
        interval = found[(found.kernel == label) & (found.loader == loader)].iloc[0][kind]
        return Measurement(interval, interval.half_width, "share of processes")

    return {
        "A12": {f"ratio on {label}": loader_ratio(label) for label in ("3.14", "3.14t")},
        "A13": {f"share kept by PyDLL on {label}": share(label, "PyDLL") for label in ("3.14", "3.14t")},
        "A14": {
            "share kept by CDLL on 3.14": share("3.14", "CDLL"),
            "share kept by PyDLL on 3.14": share("3.14", "PyDLL"),
            "crashes of the C API through CDLL on 3.14": hazard("3.14", "CDLL", "crashes"),
            "crashes of the C API through PyDLL on 3.14": hazard("3.14", "PyDLL", "crashes"),
            "deadlocks of PyDLL on 3.14": hazard("3.14", "PyDLL", "deadlocks"),
            "deadlocks of CDLL on 3.14": hazard("3.14", "CDLL", "deadlocks"),
        },
    }


def check_choice(choice: dict[str, str], record: Record, shares: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    """The exercise's self-check on 3.14, from this page's own measurements: correct first, then fast.

    choice: loader for `noop`, `sleep_ms` and `PyList_New`. Returns what to say, one line each.
    """
    functions = ("noop", "sleep_ms", "PyList_New")
    if open_ := [f for f in functions if choice.get(f) not in LOADERS]:
        return [f"Still open: {', '.join(open_)}. Choose 'CDLL' or 'PyDLL' for each."]
    wrong = []
    api = choice["PyList_New"]
    crashes = found[(found.kernel == "3.14") & (found.loader == api)].iloc[0].crashes
    if crashes.value > 0:
        wrong.append(f"Not correct: {crashes.value:.0%} of the processes that called PyList_New through {api} crashed.")
    sleeper = choice["sleep_ms"]
    kept = shares[(shares.kernel == "3.14") & (shares.loader == sleeper)].iloc[0].value
    if kept < 0.5:
        wrong.append(
            f"Not good enough: while sleep_ms ran through {sleeper}, another thread kept {kept:.1%} of its speed."
        )
    if wrong:
        return wrong
    cost = {loader: statistics.per_call(record, ("3.14", f"{loader} noop")).value for loader in LOADERS}
    extra = cost[choice["noop"]] - min(cost.values())
    if extra > 0:
        return ["Correct.", f"Not yet fast: each call of noop costs {extra:.0f} ns more than it needs to."]
    return ["Correct.", "Fast: noop goes through the cheaper loader."]


def as_interval(row) -> Interval:
    """The interval in a row of one of this module's tables."""
    return Interval(row.value, row.low, row.high)


def ratio_table(ratios: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in words; p-values adjusted over this family."""
    family = statistics.adjusted([row.comparison.p for row in ratios.itertuples()])
    return pd.DataFrame(
        [
            {
                "CPython": row.kernel,
                "function": row.function,
                "CDLL / PyDLL": draw.text(row.comparison.ratio),
                "without the loop": draw.text(row.comparison.net_ratio),
                "CDLL - PyDLL": draw.text(row.comparison.difference, "ns"),
                "Wilcoxon p, BH": f"{p:.2g}",
                "restarts": row.comparison.restarts,
            }
            for row, p in zip(ratios.itertuples(), family)
        ]
    )


def glue_ratios(record: Record, ratios: pd.DataFrame) -> None:
    """Hand every ratio and difference to the prose."""
    for row in ratios.itertuples():
        name = f"{row.function}-{row.kernel}"
        draw.glue(f"ratio-{name}", draw.text(row.comparison.ratio))
        draw.glue(f"net-ratio-{name}", draw.text(row.comparison.net_ratio))
        draw.glue(f"difference-{name}", draw.text(row.comparison.difference, "ns"))
    for label in record.kernels:
        draw.glue(f"empty-{label}", draw.text(statistics.per_call(record, (label, EMPTY)), "ns"))
    noop = ratios[ratios.function == "noop"]
    listing = "; ".join(f"{row.kernel}: {draw.text(row.comparison.ratio)}" for row in noop.itertuples())
    draw.glue("ratio-every-kernel", f"For noop, on every kernel of this run: {listing}.")


def false_alarm_table(alarms: pd.DataFrame) -> pd.DataFrame:
    """The A/A test in words."""
    return pd.DataFrame(
        [
            {
                "CPython": row.kernel,
                "same / same": draw.text(as_interval(row)),
                "smallest effect to be found": f"{row.mde:.2%}",
                "false alarm": "yes" if row.alarm else "no",
            }
            for row in alarms.itertuples()
        ]
    )


def glue_alarms(alarms: pd.DataFrame) -> None:
    """Hand the A/A result to the prose."""
    draw.glue("alarms", f"{int(alarms.alarm.sum())} of {len(alarms)} A/A tests of this run raised a false alarm.")
    draw.glue("mde", f"{alarms.mde.max():.2%} of a call's time on the kernel where it is largest")


def glue_gain(gain: dict[str, Interval]) -> None:
    """Hand the answer to the talk's contradiction to the prose."""
    for function, interval in gain.items():
        draw.glue(f"gain-{function}", draw.text(interval))
    if all(interval.low > 1 for interval in gain.values()):
        words = "PyDLL gains more with the GIL. The terminal of the talk was right, and the recap a slip."
    elif all(interval.high < 1 for interval in gain.values()):
        words = "Here PyDLL gains more without the GIL, as the recap of the talk says and its terminal does not."
    else:
        words = "The two functions do not agree beyond doubt here, so this run does not settle it."
    draw.glue("gain-words", words)


def glue_cost(record: Record, cost: pd.DataFrame) -> None:
    """Hand the cost of the bare cycle to the prose, in ns and as a share of the loaders' difference."""
    alone = cost[cost.how == "alone, in a C loop"].set_index("kernel")
    for label, row in alone.iterrows():
        draw.glue(f"cycle-{label}", draw.text(as_interval(row), "ns"))
        cycle = np.nanmedian(record.times(label, "detach and attach"), axis=1)
        loaders = np.nanmedian(record.times(label, "CDLL noop") - record.times(label, "PyDLL noop"), axis=1)
        share = statistics.location_interval(cycle / loaders, record.run["plan"]["seed"])
        draw.glue(f"cycle-share-{label}", draw.text(share, "%", 100))


def audit_table(audit: dict[str, Interval]) -> pd.DataFrame:
    """The cost of an idle audit hook in words."""
    return pd.DataFrame([{"CPython": label, "added by one hook": draw.text(i, "ns")} for label, i in audit.items()])


def glue_audit(audit: dict[str, Interval]) -> None:
    """Hand the cost of an idle audit hook to the prose."""
    for label, interval in audit.items():
        draw.glue(f"audit-{label}", draw.text(interval, "ns"))


def glue_shares(shares: pd.DataFrame) -> None:
    """Hand the counting thread's shares and pauses to the prose."""
    for row in shares.itertuples():
        draw.glue(f"share-{row.loader}-{row.kernel}", draw.text(as_interval(row), "%", 100))
        draw.glue(f"pause-{row.loader}-{row.kernel}", f"{row.pause_ms:.3g} ms (median of {row.runs} processes)")


def loader_table(record: Record, shares: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """A14: the talk's loader table with the values of this run."""
    rows = []
    for row in found.itertuples():
        kept = shares[(shares.kernel == row.kernel) & (shares.loader == row.loader)].iloc[0]
        rows.append(
            {
                "CPython": row.kernel,
                "loader": row.loader,
                "call of noop": draw.text(statistics.per_call(record, (row.kernel, f"{row.loader} noop")), "ns"),
                "others keep": draw.text(as_interval(kept), "%", 100),
                "C API crashes": f"{draw.text(row.crashes, '%', 100)} ({row.how})",
                "handshake deadlocks": draw.text(row.deadlocks, "%", 100),
            }
        )
    return pd.DataFrame(rows)
