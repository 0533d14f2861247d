"""What the chapter "Arenas" shows: tables and figures."""

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen, interval_of
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e
from notebooks.arenas import results
from notebooks.arenas.results import AS_RUN, HUGE, HUGE_NONE, KEPT

NO_RUST = "not measured here: the extension in Rust was not built"
# The talk's table. Data to compare with.
TALK_NAMES = ("glibc", "jemalloc", "tcmalloc", "macOS libmalloc", "Windows HeapAlloc")
TALK_RATINGS = {
    "many short-lived threads": "△ ★ ○ × ×",
    "long-lived server, RSS-sensitive": "△ ★ △ × ×",
    "latency-critical, multi-threaded": "○ ○ ★ × △",
    "short-lived processes": "★ ○ ○ × ×",
    "tight memory limit": "○ ★ △ × ×",
    "high thread count": "× ○ ○ × △",
    "fork-heavy": "○ ★ ○ × ×",
    "backgrounding app": "× △ △ ★ ×",
    "NUMA / many-core": "△ ★ ○ × △",
    "production leak profiling": "△ ★ ○ ○ ○",
}
# As the talk's rows call them, where the name here is shorter.
FULL = {
    "short-lived processes": "Cloud functions / short-lived processes",
    "tight memory limit": "tight memory limit (containers, 256–512 MiB)",
    "high thread count": "high thread-count backend",
    "fork-heavy": "Fork/exec heavy (prefork workers)",
    "NUMA / many-core": "NUMA / many-core (>32 cores)",
    "production leak profiling": "production leak/frag profiling needed",
}
NOT_STAGED = {
    "backgrounding app": "an application of macOS",
    "NUMA / many-core": "a machine with several memory nodes",
    "production leak profiling": "a judgement of tools, not of numbers",
}
# Of what decides a scenario.
UNITS = {
    "many short-lived threads": "MiB held at the end",
    "long-lived server, RSS-sensitive": "MiB held after a second without work",
    "latency-critical, multi-threaded": "ns, 99.9 % quantile of malloc + free (p50: the median)",
    "short-lived processes": "ms for an empty Python process",
    "tight memory limit": "MiB at the peak",
    "high thread count": "MiB held at the end",
    "fork-heavy": "MiB that a child does not share",
}
# By interpreter and condition.
TALK_RSS = {(GIL, AS_RUN): 0.59, (FREE_THREADED, KEPT): 32.60}
# The tunables of glibc's malloc that the chapter speaks of.
SPOKEN_OF = ("arena_max", "mmap_threshold", "trim_threshold", "tcache_count")


def shown(frame: pd.DataFrame, column: str, unit: str = "", **which) -> str:
    """Trimmed mean of a column with its interval in words; a value that all processes share, alone."""
    found = interval_of(frame, column, **which)
    if found is not None and found.low == found.high:
        return draw.number(found.value, 0)
    return draw.words(found, unit)


def shown_positive(frame: pd.DataFrame, column: str, **which) -> str:
    """The same of what cannot fall below 0 and differs many times over: on the scale of logarithms."""
    found = results.positive(chosen(frame, **which), column)
    return shown(frame, column, **which) if found is None or found.low == found.high else draw.text(found)


def counted(frame: pd.DataFrame, column: str, **which) -> str:
    """Median of a number that has a cap, with its smallest and largest."""
    values = pd.to_numeric(chosen(frame, **which)[column]).dropna()
    if values.empty:
        return draw.NOT_MEASURED
    return results.middle(values)


def without_constants(table: pd.DataFrame, keep: tuple[str, ...]) -> tuple[pd.DataFrame, str]:
    """A table without the columns that say one thing in all rows, and that, for the line below it."""
    alike = [name for name in table.columns if name not in keep and len(table) > 1 and table[name].nunique() == 1]
    said = "; ".join(f"{name}: {table[name].iloc[0]}" for name in alike)
    return table.drop(columns=alike), f" In all rows: {said}." if said else ""


def printout_table() -> pd.DataFrame:
    """The talk's terminal, and what follows from it: growth over amplification is what the calls saw grow."""
    return pd.DataFrame(
        [
            {
                "CPython": version + build,
                "RSS grown, MiB": f"{grown:.2f}",
                "amplification": f"{factor:.2f}x",
                "so grown inside the forty calls, MiB": f"{grown / factor:.2f}",
                "outside of them, MiB": f"{grown - grown / factor:.2f}",
            }
            for version, (gil, of_gil, none, of_none) in results.TERMINAL.items()
            for build, grown, factor in ((", with the GIL", gil, of_gil), (', "no-GIL"', none, of_none))
        ]
    )


def talk_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment under each condition; beside its own, what the talk published."""
    rows = []
    for condition in results.names(runs, "condition", e.CONDITIONS):
        for label in sorted(set(runs.interpreter)):
            which = {"interpreter": label, "condition": condition}
            if (part := results.named(chosen(runs, **which))).empty:
                continue
            published = TALK_RSS.get((label, condition))
            rows.append(
                {
                    "condition": part.condition.iloc[0],
                    "CPython": part.build.iloc[0] + (" (as run)" if published else ""),
                    "n": len(part),
                    "RSS grown, MiB": shown(runs, "rss", **which),
                    "published, MiB": f"{published:.2f}" if published else "–",
                    "sum of what calls saw grow, MiB": shown(runs, "inside", **which),
                    "of it huge pages, MiB": counted(runs, "huge", **which),
                    "held by glibc, MiB": shown(runs, "held", **which),
                    "new arenas": counted(runs, "arenas", **which),
                    "native threads at once": counted(runs, "at_once", **which),
                    "Python threads at once": counted(runs, "python_at_once", **which),
                }
            )
    return pd.DataFrame(rows)


def talk_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Growth by condition, both builds: what is drawn."""
    pair = results.named(runs[runs.interpreter.isin((GIL, FREE_THREADED))])
    return pd.DataFrame(
        [
            {"condition": condition, "CPython": build, "value": found.value, "low": found.low, "high": found.high}
            for condition in results.names(pair, "condition", e.CONDITIONS)
            for build in sorted(set(pair.build))
            if (found := interval_of(pair, "rss", condition=condition, build=build))
        ],
        columns=["condition", "CPython", "value", "low", "high"],
    )


def plot_talk(figure, rows: pd.DataFrame) -> None:
    """Growth of RSS by condition, both builds."""
    axes = figure.subplots()
    if rows.empty:
        axes.text(0.5, 0.5, NO_RUST, ha="center", va="center")
        return
    draw.intervals(axes, rows, "condition", "CPython")
    axes.set(xlabel="RSS grown, MiB", ylabel="", xlim=(0, None))
    axes.tick_params(axis="y", labelsize=9)


def talk_for_alt(rows: pd.DataFrame) -> str:
    """The conditions that the chapter's question turns on, for the figure's alt text; the data beside it have all."""
    few = rows[rows.condition.isin((AS_RUN, HUGE, HUGE_NONE))]
    return "; ".join(f"{row.condition}, {row.CPython}: {draw.text(Interval.of(row))}" for row in few.itertuples())


# What each of the four numbers counts, over the addresses of one arena: from where to where, in parts of a hundred. A sketch.
KINDS = pd.DataFrame(
    [
        ("mapped: address space", 0, 100),
        ("held: glibc has it from the system", 0, 62),
        ("resident: pages that were touched", 0, 48),
        ("resident: pages that were touched", 52, 58),
        ("in use: blocks not freed", 0, 6),
        ("in use: blocks not freed", 20, 24),
        ("in use: blocks not freed", 54, 56),
    ],
    columns=["what", "from", "to"],
)


def plot_kinds(figure) -> None:
    """KINDS, a line for each number."""
    axes = figure.subplots()
    for level, (what, pieces) in enumerate(KINDS.groupby("what", sort=False)):
        spans = list(zip(pieces["from"], pieces["to"] - pieces["from"], strict=True))
        axes.broken_barh(spans, (level, 0.45), color=draw.PALETTE[level])
        axes.text(0, level - 0.06, what, va="bottom", fontsize=10)
    axes.set(ylim=(3.6, -0.5), xlim=(0, 100), xticks=[], yticks=[], xlabel="addresses of one arena (a sketch)")
    axes.grid(visible=False)


def allocators_table(here: dict) -> pd.DataFrame:
    """Which allocator comes from where."""
    sources = {name: draw.NOT_MEASURED for name in e.ALLOCATORS[1:]} | here["allocators"] | here["absent allocators"]
    return pd.DataFrame(sources.items(), columns=["allocator", "sources, as locked"])


def grid_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Ours, Python threads together: median MiB of RSS and new arenas of each cell, and its processes."""
    by = ["build", "python_threads", "native_threads"]
    cells = cells[cells.together == True]  # noqa: E712
    return cells.groupby(by, as_index=False).agg(rss=("rss", "median"), arenas=("arenas", "median"), n=("rss", "size"))


def drawn_table(cells: pd.DataFrame) -> pd.DataFrame:
    """The talk's matrix as it ran it: what it draws, and what that is made of."""
    return pd.DataFrame(
        [
            {
                "build": build,
                "Python × native threads": f"{cell[0]} × {cell[1]}",
                "n": len(part),
                "VmRSS grown, MiB": shown(part, "vmrss"),
                "sum of what calls saw grow, MiB": shown(part, "inside"),
                "amplification, as drawn: median (range)": _median(part.amplification),
                "Python threads at once": shown(part, "python_at_once"),
            }
            for build in sorted(set(cells.build))
            for cell in results.drawn(cells)
            if len(part := results.as_drawn(cells, build, cell))
        ]
    )


def _median(values: pd.Series) -> str:
    return f"{values.median():.2f} ({values.min():.2f} to {values.max():.2f})"


def plot_grid(figure, cells: pd.DataFrame, most: int) -> None:
    """Heat maps of MiB over Python and native threads, all interpreters on one scale, with one bar; arenas below each number."""
    if cells.empty:
        figure.text(0.5, 0.5, NO_RUST, ha="center", va="center")
        return
    labels = sorted(set(cells.build))
    columns = min(3, len(labels))
    grids = figure.subplots(-(-len(labels) // columns), columns, squeeze=False).flat
    for axes, label in zip(grids, labels, strict=False):
        rss, arenas = (
            cells[cells.build == label]
            .pivot(index="native_threads", columns="python_threads", values=value)
            .sort_index(ascending=False)
            for value in ("rss", "arenas")
        )
        marks = [
            [_cell(*pair, most) for pair in zip(*row, strict=True)]
            for row in zip(rss.to_numpy(), arenas.to_numpy(), strict=True)
        ]
        sns.heatmap(
            rss,
            ax=axes,
            annot=np.array(marks),
            fmt="",
            annot_kws={"size": 10},
            cmap="viridis",
            vmin=cells.rss.min(),
            vmax=cells.rss.max(),
            cbar=False,
            linewidths=1,
        )
        axes.set(title=label, xlabel="Python threads", ylabel="native threads a call")
    for axes in list(grids):
        axes.set_visible(False)
    figure.colorbar(figure.axes[0].collections[0], ax=figure.axes, label="RSS grown, MiB")


def _cell(mib: float, arenas: float, most: int) -> str:
    return f"{mib:.2f}\n{arenas:.0f} arenas{'*' if arenas >= most - 1 else ''}"


def grid_for_alt(cells: pd.DataFrame) -> str:
    """The grid in words."""
    return "; ".join(
        f"{row.build}, {row.python_threads} × {row.native_threads}: {row.rss:.2f} MiB, {row.arenas:.0f} arenas"
        for row in cells.itertuples()
    )


def plot_growth(figure, runs: pd.DataFrame) -> None:
    """RSS after each round, and after malloc_trim, by way."""
    axes = figure.subplots(1, len(e.WORK), sharey=True)
    names = {True: "a small block stays behind", False: "all is freed"}
    # malloc_trim comes after the last round.
    runs = runs.assign(keep=runs.keep.map(names), step=runs.done + (runs.state == "trimmed"))
    for place, way in zip(axes, e.WORK.values(), strict=True):
        part = runs[runs.way == way]
        sns.lineplot(
            part,
            x="step",
            y="rss",
            hue="keep",
            hue_order=list(names.values()),
            style="keep",
            style_order=list(names.values()),
            ax=place,
            palette=draw.PALETTE[:2],
            errorbar=("pi", 100),
            markers=True,
            legend=place is axes[-1],
        )
        place.set(title=way, xlabel="round", ylabel="RSS, MiB")
        place.set_xticks([0, 3, results.ROUNDS, results.ROUNDS + 1], ["start", "3", str(results.ROUNDS), "trim"])
    axes[0].set_ylim(bottom=0)
    handles, labels = axes[-1].get_legend_handles_labels()
    axes[-1].get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)


def growth_table(runs: pd.DataFrame, grown: pd.DataFrame) -> pd.DataFrame:
    """Before, after the last round and after malloc_trim: MiB more than before the first, but for arenas. grown: of results."""
    rows = []
    for way in e.WORK.values():
        for keep in (True, False):
            part = chosen(grown[grown.keep == keep], way=way)
            rows.append(
                {
                    "threads": way,
                    "small block left": "yes" if keep else "no",
                    "n": len(part),
                    "arenas: median (range)": counted(part, "arenas"),
                    "in use more than before, MiB": shown(part, "more_in_use"),
                    "held more, MiB": shown_positive(part, "more_held"),
                    "RSS more, MiB": shown_positive(part, "grown"),
                    "RSS more after malloc_trim, MiB": shown_positive(part, "trimmed"),
                }
            )
    return pd.DataFrame(rows)


def remedies_table(runs: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """Memory and throughput of each remedy under both kinds of work. runs: as results.grown makes them; missing: why an
    allocator is."""
    rows = []
    for name in results.names(runs, "remedy", e.REMEDIES):
        row = {"remedy": name}
        for work in e.WORK:
            which = {"remedy": name, "work": work}
            found = chosen(runs, **which)
            if name in missing:
                row |= {
                    f"{work}: RSS grown, MiB": missing[name],
                    f"{work}: arenas, median (range)": "",
                    f"{work}: million blocks/s": "",
                }
                continue
            row["n"] = len(found)
            row[f"{work}: RSS grown, MiB"] = shown_positive(runs, "grown", **which)
            row[f"{work}: arenas, median (range)"] = (
                counted(runs, "arenas", **which) if set(found.allocator) == {"glibc"} else "–"
            )
            row[f"{work}: million blocks/s"] = shown_positive(found.assign(rate=found.blocks_per_second / 1e6), "rate")
        rows.append(row)
    return pd.DataFrame(rows)


def scenarios_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """A21: what was measured of each allocator on Linux, with the talk's rating of it; what was not staged, and why."""
    rows = []
    for scenario, ratings in TALK_RATINGS.items():
        rating = dict(zip(TALK_NAMES, ratings.split(), strict=True)) | {"mimalloc": "not rated"}
        staged = scenario in UNITS
        row = {
            "scenario": FULL.get(scenario, scenario),
            "measured here (less is better)": UNITS[scenario] if staged else f"not staged: {NOT_STAGED[scenario]}",
        }
        for name in e.ALLOCATORS:
            if not staged:
                row[name] = f"published: {rating[name]}"
                continue
            arms = [e.PURGING, name] if name == "jemalloc" and e.PREFERRED[scenario] == e.PURGING else [name]
            values = [missing.get(name) or _staged(found, scenario, arm) for arm in arms]
            row[name] = f"{'; by default '.join(values)}; published: {rating[name]}"
        rows.append(row)
    return pd.DataFrame(rows)


def _staged(found: pd.DataFrame, scenario: str, arm: str) -> str:
    part = chosen(found, scenario=scenario, arm=arm)
    beside = results.BESIDE.get(scenario)
    more = f"; {beside} {shown_positive(part, 'beside')}" if beside else ""
    said = f"{shown_positive(part, 'value')}{more}; n = {len(part)}"
    return f"purging in the background: {said}" if arm == e.PURGING else said


def thresholds_table(found: pd.DataFrame) -> pd.DataFrame:
    """A22: what stays held under each setting."""
    return pd.DataFrame(
        [
            {
                "setting": setting,
                "n": len(chosen(found, setting=setting, case=found.case.iloc[0])),
                **{
                    f"{case}, MiB": shown(found, "held", setting=setting, case=case)
                    for case in dict.fromkeys(found.case)
                },
            }
            for setting in results.names(found, "setting", e.THRESHOLDS)
        ]
    )


def domains_table(found: pd.DataFrame) -> pd.DataFrame:
    """Does a request to CPython's allocators come from glibc's malloc? Yes if nearly all of its bytes do."""
    found = found.assign(
        words=["yes" if share > 0.9 else "no" if share < 0.1 else f"{share:.0%} of the bytes" for share in found.share]
    )
    table = found.pivot(index=["domain", "size"], columns="interpreter", values="words")
    order = [(d, s) for d in ("PyMem_RawMalloc", "PyMem_Malloc", "PyObject_Malloc") for s in ("small", "large")]
    return table.reindex(order).rename_axis(columns=None).reset_index()


def tunables_table(found: dict[str, str]) -> pd.DataFrame:
    """Those tunables of this system's malloc that the chapter speaks of."""
    spoken_of = [(name, value) for name, value in found.items() if name.rpartition(".")[2] in SPOKEN_OF]
    return pd.DataFrame(spoken_of, columns=["tunable", "value here (0: the default), and range"])


def arenas_table(found: pd.DataFrame) -> pd.DataFrame:
    """Each arena's MiB."""
    return found[["arena", "held", "free"]].round(2).rename(columns={"held": "held, MiB", "free": "free in it, MiB"})
