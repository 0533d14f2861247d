"""What the chapter "Arenas" shows: tables and figures."""

from functools import partial

import pandas as pd
import seaborn as sns

from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen, interval_of
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e
from notebooks.arenas import numbers
from notebooks.arenas.numbers import AS_RUN, HUGE, HUGE_NONE, NONE, ON

# Of what decides a program.
UNITS = {
    "many short-lived threads": "MiB at the end",
    "many short-lived threads, all freed": "MiB at the end",
    numbers.SERVER: "MiB after 0.6 s without work (beside: after 0.1 s)",
    numbers.LATENCY: "ns, slowest 0.1 %, less the clock (beside: median)",
    "short-lived processes": "ms for an empty process",
    "tight memory limit": "MiB at the peak",
    "high thread count": "MiB at the end",
    "fork-heavy": "MiB of a child's own",
}
# MiB, by condition and build.
TALK_RSS = {(AS_RUN, f"{GIL}{ON}"): "0.59", (AS_RUN, f"{FREE_THREADED}{ON}"): "32.60"}
# The tunables of glibc's malloc that the chapter speaks of.
SPOKEN_OF = ("arena_max", "mmap_threshold", "trim_threshold", "tcache_count")


def shown(frame: pd.DataFrame, column: str, **which) -> Interval | str | None:
    """Trimmed mean of a column with its interval; a value that all processes share, alone."""
    found = interval_of(frame, column, **which)
    return draw.number(found.value, 0) if found and found.low == found.high else found


def shown_positive(frame: pd.DataFrame, column: str, **which) -> Interval | str | None:
    """What cannot fall below 0 and differs many times over, in a cell: on the scale of logarithms."""
    found = numbers.positive(chosen(frame, **which), column)
    return shown(frame, column, **which) if found is None or found.low == found.high else found


def counted(frame: pd.DataFrame, column: str, **which) -> str:
    """Median of a number that has a cap, with its smallest and largest."""
    values = pd.to_numeric(chosen(frame, **which)[column]).dropna()
    return draw.NOT_MEASURED if values.empty else numbers.middle(values)


def printout_table() -> pd.DataFrame:
    """The talk's terminal, and what follows from it: growth over amplification is what the calls saw grow."""
    return pd.DataFrame(
        {
            "CPython": version + build,
            "RSS grown, MiB": f"{grown:.2f}",
            "amplification": f"{factor:.2f}x",
            "inside the calls, MiB": f"{grown / factor:.2f}",
            "outside of them, MiB": f"{grown - grown / factor:.2f}",
        }
        for version, (gil, of_gil, none, of_none) in numbers.TERMINAL.items()
        for build, grown, factor in ((", with the GIL", gil, of_gil), (', "no-GIL"', none, of_none))
    )


def talk_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment under each condition; beside its own, what the talk published."""
    titles = {
        "RSS grown, MiB": partial(shown, column="rss"),
        "inside the calls, MiB": partial(shown, column="inside"),
        "huge pages, MiB": partial(counted, column="huge"),
        "held by glibc, MiB": partial(shown, column="held"),
        "new arenas": partial(counted, column="arenas"),
        "native threads at once": partial(counted, column="at_once"),
        "Python threads at once": partial(counted, column="python_at_once"),
    }
    known = dict.fromkeys(name.removesuffix(ON) for name in e.CONDITIONS)
    found = draw.summary(numbers.named(runs), {"condition": known, "build": ()}, titles)
    published = [TALK_RSS.get(which, "–") for which in zip(found.condition, found.build)]
    found.insert(3, "published, MiB", published)
    return found


def talk_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Growth under the conditions that the chapter's question turns on, and those that a reader has added: what is
    drawn."""
    pair = numbers.named(chosen(runs, interpreter=(GIL, FREE_THREADED)))
    added = sorted({*pair.condition.dropna()}.difference(e.CONDITIONS))
    found = {
        (condition, build): interval_of(pair, "rss", condition=condition, build=build)
        for condition in (NONE, AS_RUN, HUGE_NONE, HUGE, *added)
        for build in sorted(set(pair.build))
    }
    return draw.points(found, "condition", "CPython")


def plot_talk(figure, rows: pd.DataFrame) -> None:
    """Growth of RSS by condition, both builds."""
    axes = draw.intervals(figure, rows, "condition", "CPython", xlabel="RSS grown, MiB", xlim=(0, None))
    axes.tick_params(axis="y", labelsize=9)


# What each of the four numbers counts, over the addresses of one arena: from where to where, in parts of a hundred. A
# sketch.
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


def grid_table(cells: pd.DataFrame, together: bool) -> pd.DataFrame:
    """The talk's matrix as it ran it, with what it draws; or ours, Python threads together."""
    cells = cells[cells.together == together]
    pairs = zip(cells.python_threads, cells.native_threads)
    cells = cells.assign(threads=[f"{python} × {native}" for python, native in pairs])
    order = [f"{python} × {native}" for python, native in (e.TOGETHER if together else e.CELLS)]
    titles = {
        "RSS grown, MiB": partial(shown, column="rss"),
        "inside the calls, MiB": partial(shown, column="inside"),
        "amplification": partial(counted, column="amplification"),
        "held by glibc, MiB": partial(shown_positive, column="held"),
        "new arenas": partial(counted, column="arenas"),
        "Python threads at once": partial(shown, column="python_at_once"),
    }
    return draw.summary(cells, {"build": (), "threads": order}, titles)


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
        place.set_xticks([0, 3, numbers.ROUNDS, numbers.ROUNDS + 1], ["start", "3", str(numbers.ROUNDS), "trim"])
    axes[0].set_ylim(bottom=0)
    handles, labels = axes[-1].get_legend_handles_labels()
    axes[-1].get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)


def growth_table(grown: pd.DataFrame) -> pd.DataFrame:
    """After the last round and after malloc_trim: MiB more than before the first, but for arenas. grown: of numbers."""
    titles = {
        "RSS more, MiB": partial(shown_positive, column="grown"),
        "after malloc_trim, MiB": partial(shown_positive, column="trimmed"),
        "held more, MiB": partial(shown_positive, column="more_held"),
        "in use more, MiB": partial(shown, column="more_in_use"),
        "arenas": partial(counted, column="arenas"),
    }
    kept = grown.assign(left=grown.keep.map({True: "yes", False: "no"}))
    found = draw.summary(kept, {"way": e.WORK.values(), "left": ("yes", "no")}, titles)
    return found.rename(columns={"way": "threads", "left": "small block left"})


def remedies_table(runs: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """Memory and throughput of each remedy under both kinds of work. runs: as numbers.grown makes them; missing: why an
    allocator is."""
    titles = {}
    for work in e.WORK:
        titles |= {
            f"{work}: MiB": partial(shown_positive, column="grown", work=work),
            f"{work}: million blocks/s": partial(shown_positive, column="rate", work=work),
            f"{work}: arenas": partial(counted, column="arenas", work=work),
        }
    # Of each kind of work.
    titles["n"] = lambda runs, remedy: chosen(runs, remedy=remedy).work.value_counts().min()
    rates = runs.assign(rate=runs.blocks_per_second / 1e6)
    whole = draw.summary(rates, {"remedy": e.REMEDIES}, titles, "")
    return pd.concat([whole, pd.DataFrame({"remedy": f"{name}: {why}"} for name, why in missing.items())]).fillna("")


def scenarios_table(found: pd.DataFrame, missing: dict[str, str]) -> pd.DataFrame:
    """A21: our programs, with the talk's ratings of their scenario and what was seen, the best first: shortly, and with
    intervals."""
    rows = []
    for scenario, ratings in numbers.RATINGS.items():
        said = sorted(zip(ratings.split(), numbers.RATED), key=lambda one: numbers.SYMBOLS.index(one[0]))
        arms = {arm: chosen(found, scenario=scenario, arm=arm) for arm in e.ARMS}
        seen = {arm: numbers.positive(part, "value") for arm, part in arms.items() if len(part)}
        best_first = sorted(seen, key=lambda arm: seen[arm].value)
        whole = []
        for arm in best_first:
            beside = arms[arm].beside.notna().any()
            more = f" (beside: {draw.cell(shown_positive(arms[arm], 'beside'))})" if beside else ""
            whole.append(f"{arm}: {draw.cell(shown_positive(arms[arm], 'value'))}{more}")
        row = {
            "our program": f"{scenario}: {UNITS[scenario]}",
            "the talk": ", ".join(f"{name} {symbol}" for symbol, name in said),
            "here": ", ".join(f"{arm} {seen[arm].value:.3g}" for arm in best_first),
            "here, in full": "; ".join([*whole, *(f"{name}: {why}" for name, why in missing.items())]),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def thresholds_table(found: pd.DataFrame) -> pd.DataFrame:
    """A22: what stays held under each setting."""
    found = found.pivot(index=["setting", "process"], columns="case", values="held").reset_index()
    titles = {f"{case}: MiB": partial(shown, column=case) for case in ("large, pinned", "small")}
    return draw.summary(found, {"setting": e.THRESHOLDS}, titles)


def domains_table(found: pd.DataFrame) -> pd.DataFrame:
    """Does a request to CPython's allocators come from glibc's malloc? Yes if nearly all of its bytes do."""
    share = found.pivot(index=["domain", "size"], columns="interpreter", values="share")
    said = share.map(lambda one: "yes" if one > 0.9 else "no" if one < 0.1 else f"{one:.0%} of the bytes")
    return said.rename_axis(columns=None).reset_index()


def tests_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What each program left, and what each test gave back, in MiB."""
    titles = {"left": "left", e.COLLECT: e.COLLECT, f"0.3 s later, {e.MORE}": e.MORE, e.TRIM_ALL: e.TRIM_ALL}
    columns = {title: partial(shown, column=column) for title, column in titles.items()}
    columns |= {"objects that it found": partial(shown, column="found")}
    return draw.summary(runs, {"cause": (*e.CAUSES,), "interpreter": (*e.PAIR,)}, columns)


def tunables_table(found: dict[str, str]) -> pd.DataFrame:
    """Those tunables of this system's malloc that the chapter speaks of."""
    spoken_of = [(name, value) for name, value in found.items() if name.rpartition(".")[2] in SPOKEN_OF]
    return pd.DataFrame(spoken_of, columns=["tunable", "value here (0: the default), and range"])


def arenas_table(found: pd.DataFrame) -> pd.DataFrame:
    """Each arena's MiB."""
    return found[["arena", "held", "free"]].round(2).rename(columns={"held": "held, MiB", "free": "free in it, MiB"})
