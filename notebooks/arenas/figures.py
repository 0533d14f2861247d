"""What the chapter "Arenas" shows: tables, figures and the texts that its prose takes up."""

import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.judge import statistics
from ffilab.judge.processes import chosen, interval_of
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas import results
from notebooks.arenas.experiment import (
    ALLOCATORS,
    AS_RUN,
    CONDITIONS,
    EQUAL,
    HUGE,
    HUGE_NONE,
    LIMITS_MIB,
    MEET,
    NONE,
    RATED,
    RELEASED,
    REMEDIES,
    ROUNDS,
    SCENARIOS,
    THRESHOLDS,
    WAYS,
    WORK,
)

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
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
NOT_STAGED = {
    "backgrounding app": "an application of macOS",
    "NUMA / many-core": "a machine with several memory nodes",
    "production leak profiling": "a judgement of tools, not of numbers",
}


def words(frame: pd.DataFrame, column: str, unit: str = "", **which) -> str:
    """Trimmed mean of a column with its interval in words."""
    return draw.words(interval_of(frame, column, **which), unit)


def talk_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment under each condition."""
    rows = []
    for condition in CONDITIONS:
        for label in sorted(set(runs.interpreter)):
            which = {"interpreter": label, "condition": condition}
            rows.append(
                {
                    "condition": condition,
                    "CPython": label,
                    "RSS grown, MiB": words(runs, "rss", **which),
                    "of it huge pages": words(runs, "huge", **which),
                    "held by glibc, MiB": words(runs, "held", **which),
                    "new arenas": words(runs, "arenas", **which),
                    "native threads at once": words(runs, "at_once", **which),
                    "RSS after malloc_trim": words(runs, "trimmed.rss", **which),
                }
            )
    return pd.DataFrame(rows)


def plot_talk(figure, runs: pd.DataFrame) -> None:
    """Growth of RSS by condition, both builds."""
    rows = [
        {"condition": condition, "CPython": label, **vars(found)}
        for condition in CONDITIONS
        for label in PAIR.values()
        if (found := interval_of(runs, "rss", interpreter=label, condition=condition))
    ]
    axes = figure.subplots()
    if not rows:
        axes.text(0.5, 0.5, NO_RUST, ha="center", va="center")
        return
    draw.intervals(axes, pd.DataFrame(rows), "condition", "CPython")
    axes.set(xlabel="RSS grown, MiB", ylabel="", xlim=(0, None))
    axes.tick_params(axis="y", labelsize=9)


def talk_words(runs: pd.DataFrame) -> str:
    """The same in words, for the figure's alt text."""
    return "; ".join(
        f"{condition}: "
        + ", ".join(f"{label} {words(runs, 'rss', interpreter=label, condition=condition)}" for label in PAIR.values())
        for condition in CONDITIONS
    )


def glue_system(here: dict) -> None:
    """Hand this system's setting of huge pages to the prose."""
    draw.glue("huge-pages-setting", here["huge pages"])


# What the prose takes up: condition, its name there, columns, builds.
TAKEN_UP = [
    (AS_RUN, "run", ("rss", "arenas"), PAIR),
    (NONE, "none", ("rss",), PAIR),
    (HUGE, "huge", ("rss", "held"), PAIR),
    (HUGE_NONE, "huge-none", ("rss",), PAIR),
    (MEET, "meet", ("held", "at_once"), PAIR),
    (RELEASED, "released", ("held", "at_once"), ("gil",)),
    (EQUAL, "equal", ("held",), PAIR),
]


def glue_talk(runs: pd.DataFrame) -> None:
    """Hand the numbers that the answer names to the prose."""
    for condition, short, columns, builds in TAKEN_UP:
        for column in columns:
            unit = "MiB" if column in ("rss", "held") else ""
            for build in builds:
                found = words(runs, column, unit, interpreter=PAIR[build], condition=condition)
                draw.glue(f"{short}-{column.removeprefix('at_')}-{build}", found)


def false_alarm(runs: pd.DataFrame) -> pd.DataFrame:
    """The running A/A test: the talk's condition against a second copy of itself."""
    rows = []
    for label in sorted(set(runs.interpreter)):
        for column in ("rss", "held"):
            found = results.same_minus_same(runs, label, column)
            rows.append(
                {
                    "CPython": label,
                    "what": {"rss": "RSS grown", "held": "held by glibc"}[column],
                    "same − same, MiB": draw.text(found.interval),
                    "smallest difference to be found": f"{found.mde:.3f} MiB",
                    "false alarm": "yes" if found.interval.excludes(0) else "no",
                }
            )
    return pd.DataFrame(rows)


def plot_grid(figure, cells: pd.DataFrame) -> None:
    """Heat maps of arenas and MiB over Python and native threads: both builds on one scale."""
    if cells.empty:
        figure.text(0.5, 0.5, NO_RUST, ha="center", va="center")
        return
    axes = figure.subplots(2, 2)
    for row, (column, title) in enumerate((("arenas", "new arenas"), ("rss", "RSS grown, MiB"))):
        table = cells.pivot_table(
            index=["interpreter", "native_threads"], columns="python_threads", values=column, aggfunc="median"
        )
        for number, label in enumerate(PAIR.values()):
            if label not in table.index.get_level_values(0):
                continue
            sns.heatmap(
                table.loc[label].sort_index(ascending=False),
                ax=axes[row][number],
                annot=True,
                fmt=".3g",
                cmap="viridis",
                vmin=table.min().min(),
                vmax=table.max().max(),
                cbar=number == 1,
            )
            axes[row][number].set(title=f"{title}, {label}", xlabel="Python threads", ylabel="native threads a call")


def grid_words(cells: pd.DataFrame) -> str:
    """The corners of the heat maps in words."""
    parts = []
    for label in PAIR.values() if len(cells) else ():
        for end in ("min", "max"):
            python, native = cells[["python_threads", "native_threads"]].agg(end)
            found = chosen(cells, interpreter=label, python_threads=[python], native_threads=[native])
            parts.append(
                f"{label}, {python} × {native}: {found.arenas.median():.0f} arenas, {found.rss.median():.1f} MiB"
            )
    return "; ".join(parts)


def plot_growth(figure, runs: pd.DataFrame) -> None:
    """RSS after each round, and after malloc_trim, by way."""
    axes = figure.subplots(1, len(WAYS), sharey=True)
    names = {True: "a small block stays behind", False: "all is freed"}
    # malloc_trim comes after the last round.
    runs = runs.assign(keep=runs.keep.map(names), step=runs.done + (runs.state == "trimmed"))
    for place, way in zip(axes, WAYS, strict=True):
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
            legend=way == WAYS[-1],
        )
        place.set(title=way, xlabel="round", ylabel="RSS, MiB")
        place.set_xticks([0, 3, ROUNDS, ROUNDS + 1], ["start", "3", str(ROUNDS), "trim"])
    axes[0].set_ylim(bottom=0)
    handles, labels = axes[-1].get_legend_handles_labels()
    axes[-1].get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)


def growth_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Before, after the last round and after malloc_trim: MiB resident, held and in use; arenas."""
    rows = []
    for way in WAYS:
        for keep in (True, False):
            which = {"way": way, "keep": keep}
            end, trimmed = {**which, "state": "worked", "done": ROUNDS}, {**which, "state": "trimmed"}
            rows.append(
                {
                    "threads": way,
                    "small block left": "yes" if keep else "no",
                    "arenas": words(runs, "arenas", **end),
                    "in use, MiB": words(runs, "in_use", **end),
                    "held, MiB": words(runs, "held", **end),
                    "RSS, MiB": words(runs, "rss", **end),
                    "PSS, MiB": words(runs, "pss", **end),
                    "RSS after malloc_trim": words(runs, "rss", **trimmed),
                }
            )
    return pd.DataFrame(rows)


def remedies_table(runs: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """Memory and throughput of each remedy under both kinds of work. runs: as results.grown makes them; missing: why an
    allocator is."""
    rows = []
    for name, remedy in REMEDIES.items():
        row = {"remedy": name}
        for work in WORK:
            which = {"remedy": name, "work": work}
            found = chosen(runs, **which)
            if remedy.allocator in missing:
                row |= {
                    f"{work}: RSS grown, MiB": missing[remedy.allocator],
                    f"{work}: arenas": "",
                    f"{work}: million blocks/s": "",
                }
                continue
            row[f"{work}: RSS grown, MiB"] = words(runs, "grown", **which)
            row[f"{work}: arenas"] = words(runs, "arenas", **which) if remedy.allocator == "glibc" else "–"
            rate = statistics.location_interval(found.blocks_per_second.to_numpy() / 1e6)
            row[f"{work}: million blocks/s"] = draw.text(rate)
        rows.append(row)
    return pd.DataFrame(rows)


def scenarios_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """A21: what was measured of each allocator that the talk rates, with its rating; what was not staged, with the rating."""
    rows = []
    for scenario, ratings in TALK_RATINGS.items():
        row = {"scenario": scenario, "measured here (less is better)": f"not staged: {NOT_STAGED.get(scenario)}"}
        row |= {name: f"talk: {rating}" for name, rating in zip(TALK_NAMES, ratings.split(), strict=True)}
        if scenario in SCENARIOS:
            row["measured here (less is better)"] = SCENARIOS[scenario].unit
            for name in RATED:
                value = missing.get(name) or words(found, "value", scenario=scenario, allocator=name)
                row[name] = f"{value} ({row[name]})"
        rows.append(row)
    return pd.DataFrame(rows)


def limits_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """How many of the processes came to their end under each limit."""
    rows = []
    for name in ALLOCATORS:
        row = {"allocator": name}
        for mib in LIMITS_MIB:
            part = chosen(found, allocator=name, mib=mib).ended
            row[f"{mib} MiB"] = missing.get(name) or f"{(part == 'ok').sum()} of {len(part)} ended"
        rows.append(row)
    return pd.DataFrame(rows)


def thresholds_table(found: pd.DataFrame) -> pd.DataFrame:
    """A22: what stays held under each setting."""
    return pd.DataFrame(
        [
            {
                "setting": setting,
                **{case: words(found, "held", setting=setting, case=case) for case in dict.fromkeys(found.case)},
            }
            for setting in THRESHOLDS
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
    """The tunables of this system's malloc."""
    return pd.DataFrame(list(found.items()), columns=["tunable", "value here (0: the default), and range"])


def arenas_table(found: pd.DataFrame) -> pd.DataFrame:
    """Each arena's MiB."""
    return found[["arena", "held", "free"]].round(2).rename(columns={"held": "held, MiB", "free": "free in it, MiB"})
