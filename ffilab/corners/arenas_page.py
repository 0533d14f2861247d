"""What the chapter "Arenas" shows: tables, figures and the texts that its prose takes up."""

from pathlib import Path

import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.corners.arenas import (
    AGAIN,
    ALLOCATORS,
    AS_RUN,
    CONDITIONS,
    EQUAL,
    HUGE,
    HUGE_NONE,
    KERNEL,
    LIMITS_MIB,
    MEET,
    NONE,
    NOT_STAGED,
    RELEASED,
    REMEDIES,
    ROUNDS,
    SCENARIOS,
    TALK_RATINGS,
    THRESHOLDS,
    WAYS,
    WITH_GIL,
    WORK,
)
from ffilab.judge import statistics
from ffilab.judge.processes import chosen, difference, interval_of

PAIR = (WITH_GIL, KERNEL)
NOT_HERE = "not measured here"
NO_RUST = "not measured here: the extension in Rust was not built"
TALK_NAMES = ("glibc", "jemalloc", "tcmalloc")


def words(frame: pd.DataFrame, column: str, unit: str = "", **which) -> str:
    """Trimmed mean of a column with its interval in words."""
    found = interval_of(frame, column, **which)
    return draw.text(found, unit) if found else NOT_HERE


def talk_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment under each condition."""
    rows = []
    for condition in CONDITIONS:
        for label in sorted(set(runs.kernel)):
            which = {"kernel": label, "condition": condition}
            rows.append(
                {
                    "condition": condition,
                    "CPython": label,
                    "RSS grown, MiB": words(runs, "rss", **which),
                    "of it huge pages": words(runs, "huge", **which),
                    "held by glibc, MiB": words(runs, "held", **which),
                    "new arenas": words(runs, "arenas", **which),
                    "native threads at once": words(runs, "at_once", **which),
                    "RSS after malloc_trim": words(runs, "trimmed", **which),
                }
            )
    return pd.DataFrame(rows)


def plot_talk(figure, runs: pd.DataFrame) -> None:
    """Growth of RSS by condition, both builds."""
    rows = [
        {"condition": condition, "CPython": label, **vars(interval_of(runs, "rss", kernel=label, condition=condition))}
        for condition in CONDITIONS
        for label in PAIR
        if len(chosen(runs, kernel=label, condition=condition))
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
        + ", ".join(f"{label} {words(runs, 'rss', kernel=label, condition=condition)}" for label in PAIR)
        for condition in CONDITIONS
    )


def glue_talk(runs: pd.DataFrame) -> None:
    """Hand the numbers that the answer names to the prose."""
    names = {
        "run": AS_RUN,
        "none": NONE,
        "huge": HUGE,
        "huge-none": HUGE_NONE,
        "meet": MEET,
        "released": RELEASED,
        "equal": EQUAL,
    }
    for short, condition in names.items():
        for label in PAIR:
            which = {"kernel": label, "condition": condition}
            draw.glue(f"{short}-rss-{label}", words(runs, "rss", "MiB", **which))
            draw.glue(f"{short}-held-{label}", words(runs, "held", "MiB", **which))
            draw.glue(f"{short}-once-{label}", words(runs, "at_once", **which))
            draw.glue(f"{short}-arenas-{label}", words(runs, "arenas", **which))
    draw.glue("huge-pages-setting", huge_pages_setting())


def huge_pages_setting() -> str:
    """What this system does with transparent huge pages."""
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "not known"
    return text[text.index("[") + 1 : text.index("]")]


def false_alarm(runs: pd.DataFrame) -> pd.DataFrame:
    """The running A/A test: the talk's condition against a second copy of itself."""
    rows = []
    for label in sorted(set(runs.kernel)):
        for column in ("rss", "held"):
            again, first = (
                chosen(runs, kernel=label, condition=condition)[column].to_numpy() for condition in (AGAIN, AS_RUN)
            )
            found = difference(again, first, "MiB")
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
        table = cells.pivot_table(index=["kernel", "native"], columns="python", values=column, aggfunc="median")
        for number, label in enumerate(PAIR):
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
    for label in PAIR if len(cells) else ():
        for python, native in ((cells.python.min(), cells.native.min()), (cells.python.max(), cells.native.max())):
            found = chosen(cells, kernel=label, python=[python], native=[native])
            parts.append(
                f"{label}, {python} × {native}: {found.arenas.median():.0f} arenas, {found.rss.median():.1f} MiB"
            )
    return "; ".join(parts)


def plot_growth(figure, runs: pd.DataFrame) -> None:
    """RSS after each round, and after malloc_trim, by way and build."""
    axes = figure.subplots(1, len(WAYS), sharey=True)
    names = {"keep": "a small block stays behind", "none": "all is freed"}
    for place, way in zip(axes, WAYS, strict=True):
        part = runs[runs.way == way].replace({"keep": names})
        sns.lineplot(
            part,
            x="round",
            y="rss",
            hue="kernel",
            hue_order=list(PAIR),
            style="keep",
            style_order=list(names.values()),
            ax=place,
            palette=draw.PALETTE[:2],
            errorbar=("pi", 100),
            markers=True,
            legend=way == WAYS[-1],
        )
        place.set(title=way, xlabel="round", ylabel="RSS, MiB")
        place.set_xticks([-1, 2, ROUNDS - 1, ROUNDS], ["start", "3", str(ROUNDS), "trim"])
    axes[0].set_ylim(bottom=0)
    handles, labels = axes[-1].get_legend_handles_labels()
    axes[-1].get_legend().remove()
    shown = [(h, name) for h, name in zip(handles, labels, strict=True) if name not in ("kernel", "keep")]
    figure.legend(*zip(*shown, strict=True), loc="outside lower center", ncols=4, fontsize=8)


def growth_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Before, after the last round and after malloc_trim: MiB resident, held and in use; arenas."""
    rows = []
    for label in PAIR:
        for way in WAYS:
            for keep in ("keep", "none"):
                which = {"kernel": label, "way": way, "keep": keep}
                end, trimmed = {**which, "round": [ROUNDS - 1]}, {**which, "round": [ROUNDS]}
                rows.append(
                    {
                        "CPython": label,
                        "threads": way,
                        "small block left": "yes" if keep == "keep" else "no",
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
    """Memory and throughput of each remedy under both kinds of work; why one is missing."""
    rows = []
    for name, (allocator, _, _) in REMEDIES.items():
        row = {"remedy": name}
        for work in WORK:
            which = {"remedy": name, "work": work}
            found = chosen(runs, **which)
            if name in missing:
                row |= {
                    f"{work}: RSS grown, MiB": missing[name],
                    f"{work}: arenas": "",
                    f"{work}: million blocks/s": "",
                }
                continue
            row[f"{work}: RSS grown, MiB"] = words(runs, "grown", **which)
            row[f"{work}: arenas"] = "–" if allocator else words(runs, "arenas", **which)
            rate = statistics.location_interval(found.rate.to_numpy() / 1e6)
            row[f"{work}: million blocks/s"] = draw.text(rate)
        rows.append(row)
    return pd.DataFrame(rows)


def scenarios_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """A21: what was measured, with the talk's rating behind it; what was not staged."""
    rows = []
    for scenario, (_, _, unit) in SCENARIOS.items():
        ratings = dict(zip(TALK_NAMES, TALK_RATINGS[scenario].split(), strict=True))
        row = {"scenario": scenario, "measured here (less is better)": unit}
        for allocator in ("glibc", "jemalloc", "tcmalloc", "mimalloc"):
            value = missing.get(allocator) or words(found, "value", scenario=scenario, allocator=allocator)
            row[allocator] = value + (f" (talk: {ratings[allocator]})" if allocator in ratings else "")
        rows.append(row)
    for scenario, why in NOT_STAGED.items():
        rows.append({"scenario": scenario, "measured here (less is better)": f"not staged: {why}"})
    return pd.DataFrame(rows).fillna("the talk's judgement")


def limits_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """How many of the processes came to their end under each limit."""
    rows = []
    for name in ALLOCATORS:
        row = {"allocator": name}
        for mib in LIMITS_MIB:
            part = chosen(found, allocator=name, mib=[mib]).ended
            row[f"{mib} MiB"] = missing.get(name) or f"{part.sum()} of {len(part)} ended"
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
    table = found.pivot(index=["domain", "size"], columns="kernel", values="words")
    order = [(d, s) for d in ("PyMem_RawMalloc", "PyMem_Malloc", "PyObject_Malloc") for s in ("small", "large")]
    return table.reindex(order).rename_axis(columns=None).reset_index()


def tunables_table(found: dict[str, str]) -> pd.DataFrame:
    """The tunables of this system's malloc."""
    return pd.DataFrame(list(found.items()), columns=["tunable", "value here (0: the default), and range"])


def arenas_table(found: pd.DataFrame) -> pd.DataFrame:
    """Each arena's MiB."""
    return found.round(2).rename(columns={"held": "held, MiB", "free": "free in it, MiB"})
