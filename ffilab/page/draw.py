"""Figures, tables and glued numbers of a notebook.

A figure has two colourings, for light and for dark pages, and carries its alt text.
"""

import base64
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown, display
from pandas.api.types import is_numeric_dtype

from ffilab.judge import controls, ledger, statistics
from ffilab.judge.estimates import LEVEL, Estimate, Interval  # noqa: F401
from ffilab.judge.numbers import numbers_of
from ffilab.judge.questions import OPEN, above
from ffilab.judge.wording import NOT_MEASURED, bounds, capital, listed, number, text, words  # noqa: F401
from ffilab.measure.changed import changed_in
from ffilab.measure.plan import OURS
from ffilab.measure.record import Record, medians
from ffilab.page import elsewhere
from ffilab.page.player import Scenes, as_data, lanes_of, plot_scene
from ffilab.page.plots import GRID, INK, MARKERS, PALETTE, intervals, legend_above, pictures, plain_ticks, points, reach  # noqa: F401
from ffilab.page.words import translated
from ffilab.run import settings

# Which of the two is seen: the book's theme, or JupyterLab's, says so on an outer element.
SWITCH = """<style>
.ffi-dark {display: none}
html[data-theme=dark] .ffi-dark, body[data-jp-theme-light=false] .ffi-dark {display: inline}
html[data-theme=dark] .ffi-light, body[data-jp-theme-light=false] .ffi-light {display: none}
.ffi-figure img {max-width: 100%; height: auto; background: transparent}
.ffi-figure {margin: 0; overflow-x: auto}
@media (max-width: 600px) {.ffi-figure img {max-width: none; width: 40rem}}
.ffi-csv {font-size: 0.8em; text-align: right; margin: 0}
</style>"""
# A cell with a longer text wraps.
SHORT = 25
SMOKE = "smoke test: no result"
GLUE_PREFIX = "application/papermill.record/"
# In the metadata of an output: what the notebook keeps for the press, whose modules need more than a kernel has.
KEPT = "ffilab"
# `chapter.begin` says how the numbers of this page are marked; see start_page.
_page = {"is_result": True}


def start_page(is_result: bool) -> None:
    """From here on, mark every figure, table and number as no result, or not at all."""
    _page.update(is_result=is_result)


def mark() -> str:
    """Return why what is shown now is no result; empty if it is one."""
    return "" if _page["is_result"] else SMOKE


def short(marked: str) -> str:
    """Return the first word or two of a mark."""
    return marked.partition(":")[0]


def figure(
    plot,
    caption: str,
    numbers: str = "",
    *,
    size: tuple[float, float] = (7.2, 3.6),
    data: pd.DataFrame | None = None,
    name: str = "",
) -> None:
    """Display `plot(figure)` for light and dark pages, under a caption that states its finding.

    numbers: what the alt text says besides the caption. data: what is drawn, as a table; a link beside the figure holds
    it as CSV; without rows the caption stands alone.
    name: the page can show the figure anywhere, also above the cell that draws it, by the directive `{glue} name`.
    """
    if data is not None and data.empty:
        shown = f"<p><em>{translated('Nothing to draw here.')}</em> {with_code(translated(caption))}</p>"
    else:
        # What a page shows above the cell that draws it opens the page: its numbers are at hand, on the first screen.
        above = drawn_numbers(data) if name and data is not None else ""
        shown = framed(plot, caption, numbers, size, above=above)
        shown += "" if data is None else csv_link(data, "figure")
    _shown(shown, name)


def drawn_numbers(data: pd.DataFrame) -> str:
    """Return what is drawn as a folded table, a value and its bounds in one cell; `reading.js` sorts it."""
    if {"value", "low", "high"} <= {*data}:
        values = [Quantity(Interval.of(row)) for row in data.itertuples()]
        data = data.drop(columns=["low", "high"]).assign(value=values)
    rows = bare(data.map(lambda cell: number(cell, 0) if isinstance(cell, float) else cell))
    return folded(translated("The numbers in this picture"), f'<div class="ffi-numbers ffi-table">{rows}</div>')


def nothing(why: str, name: str = "") -> None:
    """Say in the place of a figure or a table what was missing for it. name: as of the figure."""
    _shown(f"<p><em>Nothing to show here: {with_code(why.rstrip('.'))}.</em></p>", name)


def _shown(shown: str, name: str) -> None:
    display(HTML(shown))
    if name:
        _glued(name, "text/html", shown)


def _glued(name: str, kind: str, shown: str, **kept) -> None:
    """Hand something to the page: the same record that myst_nb.glue writes; importing myst_nb would bring Sphinx into
    the measured kernels."""
    about = {"scrapbook": {"name": name, "mime_prefix": GLUE_PREFIX}, **kept}
    display({f"{GLUE_PREFIX}{kind}": shown}, raw=True, metadata=about)


def framed(
    plot, caption: str, numbers: str, size: tuple[float, float], inside: str = "", which: str = "", above: str = ""
) -> str:
    """Return a figure as HTML. inside, above: what else it holds, below and above the picture. which: attributes that
    say what it is."""
    caption = translated(caption)
    alt = html.escape(f"{caption} {numbers}".replace("`", "").strip())
    images = [
        f'<img class="ffi-{mode}" alt="{alt}" src="data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}">'
        for mode, drawn in pictures(plot, size, mark()).items()
    ]
    above = f"<figcaption>{with_code(caption)}</figcaption>{above}"
    return f'{SWITCH}<figure class="ffi-figure"{which}>{above}{"".join(images)}{inside}</figure>'


def player(
    scenes: Scenes, settings: tuple[str, ...], caption: str, *, first: tuple[str, ...] = (), name: str = ""
) -> None:
    """Display recorded scenes that can be played, by the values of their settings; the picture of the first is seen
    without JavaScript.

    An address that ends in `#gil=`, the values of the settings and a time in µs leads to a moment of a scene.
    name: as of the figure.
    """
    if not scenes:
        if name:
            nothing("no run was recorded to be played", name)
        return
    chosen = first if first in scenes else next(iter(scenes))
    data = json.dumps(as_data(scenes, settings, chosen, translated), ensure_ascii=False, separators=(",", ":"))
    # `</script>` in a text would end it.
    data = data.replace("</", r"<\/")
    script = f'<script type="application/json">{data}</script>'
    scene = scenes[chosen]
    size = 7.2, 1.2 + 0.45 * len(lanes_of(scene))
    drawn = partial(plot_scene, scene=scene)
    _shown(framed(drawn, caption, "", size, script, ' data-player="gil"'), name)


# What stands in a caption for a sentence, until all of the chapter is measured.
PLACE = re.compile(r"⟦([^⟧]+)⟧")


def filled_in(shown: str, said: dict[str, str]) -> str:
    """Return HTML with the sentences in their places, in alt texts and in captions. Raises KeyError for one that is not
    said."""
    shown = re.sub(
        r'alt="[^"]*"', lambda alt: PLACE.sub(lambda name: html.escape(said[name[1]].replace("`", "")), alt[0]), shown
    )
    return PLACE.sub(lambda name: with_code(said[name[1]]), shown)


def with_code(text: str) -> str:
    """Return a text as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def csv_link(frame: pd.DataFrame, name: str) -> str:
    """Return a link that holds a table as a CSV file, with values and bounds in columns of their own."""
    data = base64.b64encode(spread_out(frame).to_csv(index=False).encode()).decode()
    return f'<p class="ffi-csv"><a download="{name}.csv" href="data:text/csv;base64,{data}">CSV</a></p>'


@dataclass(frozen=True)
class Quantity:
    """A number in a cell of a table: data until it is shown, as a string what `words` makes of it.

    estimate: None if it was not measured. unit, factor: as of `words`. signed: a positive number gets a plus sign.
    """

    estimate: Estimate | None
    unit: str = ""
    factor: float = 1
    signed: bool = False

    def __str__(self) -> str:
        is_positive = self.estimate is not None and self.estimate.interval.value * self.factor > 0
        return "+" * (self.signed and is_positive) + words(self.estimate, self.unit, self.factor)

    @property
    def columns(self) -> dict[str, float | str]:
        """Cells of a CSV file by how their columns end, at full precision and in its unit; words without a number."""
        if self.estimate is None or math.isnan(self.estimate.interval.value):
            return {"": str(self)}
        value, low, high = (part * self.factor for part in astuple(self.estimate.interval))
        return {"": value, **({", unit": self.unit} if self.unit else {}), ", low": low, ", high": high}

    @property
    def kept(self) -> dict | str:
        """What a notebook keeps of it; JSON has no infinity, and pandas writes ten digits."""
        if self.estimate is None:
            return str(self)
        return vars(self) | {"estimate": [repr(float(part)) for part in astuple(self.estimate.interval)]}

    @classmethod
    def read(cls, kept):
        """Read a kept cell of a table, also one that is no quantity."""
        if not isinstance(kept, dict):
            return kept
        return replace(cls(**kept), estimate=Interval(*map(float, kept["estimate"])))


def quantity(session, name: str) -> Quantity:
    """A number of a chapter, for a cell of a table."""
    return Quantity(numbers_of(session)[name].estimate)


def cell(found):
    """Make a cell of a table: an estimate becomes a quantity, None too, and all else stays."""
    return Quantity(found) if found is None or isinstance(found, Estimate) else found


def summary(
    frame: pd.DataFrame, by: dict[str, Iterable], columns: dict[str, Callable] | Callable, count: str = "n"
) -> pd.DataFrame:
    """Return a row for each combination of values in the columns `by` that `frame` has.

    by: the values that are known beforehand, in their order; others follow, sorted. columns: by title, a function of
    the frame that takes a combination as keywords; or one such function that gives the cells of a row by title. count:
    title of the last column, the rows of a combination; empty for none.
    """
    frame = frame.reindex(columns=[*by]) if frame.empty else frame
    orders = {name: [*known, *sorted({*frame[name].dropna()}.difference(known))] for name, known in by.items()}
    groups = frame.groupby([pd.Categorical(frame[name], order) for name, order in orders.items()], observed=True)
    said = columns if callable(columns) else lambda *a, **k: {title: of(*a, **k) for title, of in columns.items()}
    rows = []
    for which, part in groups:
        case = dict(zip(by, which))
        cells = {title: cell(found) for title, found in said(frame, **case).items()}
        rows.append({**case, **cells, **({count: len(part)} if count else {})})
    return pd.DataFrame(rows, columns=None if rows else [*by]).rename(columns={"interpreter": "CPython"})


def in_words(rows: pd.DataFrame, unit: str = "", factor: float = 1) -> str:
    """Say what `intervals` draws, for an alt text: what each row is of, and its value with its interval."""
    of = [column for column in rows if column not in ("value", "low", "high", "n", "model")]
    return "; ".join(
        f"{', '.join(str(row[name]) for name in of)}: {text(Interval.of(row), unit, factor)}"
        for _, row in rows.iterrows()
    )


def spread_out(frame: pd.DataFrame) -> pd.DataFrame:
    """Split columns that hold quantities into value, unit and bounds, at full precision."""
    columns = {}
    for name, column in frame.items():
        if not any(isinstance(cell, Quantity) for cell in column):
            columns[name] = column
            continue
        parts = pd.DataFrame(
            [cell.columns if isinstance(cell, Quantity) else {"": cell} for cell in column], frame.index, dtype=object
        )
        columns |= {f"{name}{part}": parts[part] for part in parts}
    return pd.DataFrame(columns)


def glue(name: str, value: str) -> None:
    """Hand a text to the prose: {glue:text}`name`, where nothing is rendered as code. Marked if this is a smoke test:
    the page's banner says the rest."""
    value = value.replace("`", "")
    _glued(name, "text/plain", repr(f"{value} ({short(mark())})" if value and mark() else value))


def table(
    frame: pd.DataFrame,
    caption: str = "",
    *,
    columns: tuple[str, ...] = (),
    rows: pd.Series | slice | None = None,
    fold: bool = False,
    links: dict[str, str] | None = None,
    keep: str = "",
) -> None:
    """Display a table without its index; `caption` says what is in it. A link below holds all of it as CSV.

    frame: numbers with an interval become Quantities, so that both are made of the same.
    columns, rows: what is shown; the whole table is folded below it. fold: all of it is folded, under its caption.
    links: addresses, by the whole text of the cells and of the headings that lead there.
    keep: a name under which the notebook keeps the table, for pages that are no chapter (tables.py).
    """
    frame = frame.map(lambda found: Quantity(found) if isinstance(found, Estimate) else found)
    if keep:
        keep_table(frame, caption, keep)
    whole = f"{rows_of(frame, links)}{csv_link(frame, 'table')}"
    marked, caption = mark(), translated(caption)
    if fold and len(frame):
        display(HTML(folded(with_code(caption) + (f" <b>({marked})</b>" if marked else ""), whole)))
        return
    part = frame if rows is None else frame[rows]
    if caption:
        said = f"*{caption}*" + (f" **({marked})**" if marked else "")
        display(Markdown(said if len(part) else f"{said} {translated('Nothing of this was measured here.')}"))
    if not len(part):
        whole = folded("The whole table", whole) if len(frame) else ""
    elif columns or rows is not None:
        part = part[list(columns)] if columns else part
        size = f"{frame.shape[0]} rows, {frame.shape[1]} columns"
        whole = rows_of(part, links) + folded(f"The whole table: {size}", whole)
    display(HTML(whole))


def rows_of(frame: pd.DataFrame, links: dict[str, str] | None = None) -> str:
    """Return a table as HTML, in a box that can scroll."""
    return f'<div class="ffi-table" style="overflow-x: auto">{bare(frame, links)}</div>'


def bare(frame: pd.DataFrame, links: dict[str, str] | None = None, absent: str = "NaN") -> str:
    """Return a table as HTML. absent: what stands in a cell without a value."""

    def head(said) -> str:
        said = translated(str(said))
        address, shown = (links or {}).get(said), html.escape(said, quote=False)
        return f'<a href="{html.escape(address)}">{shown}</a>' if address else shown

    def body(value):
        if not isinstance(value, str | Quantity):
            return math.nan if value is None else value
        if isinstance(value, Quantity):
            # Within an interval no line breaks.
            return re.sub(r"\[.*?\]", lambda interval: interval[0].replace(" ", "\u00a0"), head(value))
        return f'<div class="ffi-long">{head(value)}</div>' if len(translated(value)) > SHORT else head(value)

    cells = {
        head(name): column if is_numeric_dtype(column) else pd.Series([*map(body, column)], column.index, object)
        for name, column in frame.items()
    }
    return pd.DataFrame(cells).to_html(index=False, border=0, justify="left", na_rep=absent, escape=False)


def folded(title: str, shown: str) -> str:
    """Return HTML that is seen when its title is opened."""
    return f"<details><summary>{title}</summary>{shown}</details>"


def arms(record: Record) -> None:
    """Display every arm of a run, in a fold, with what its controls say.

    What could not be measured is named above it, with the reason; in JupyterLab, what a reader changed stands first.
    """
    if settings.in_lab() and (yours := changed_in(record)):
        changed(record, yours, "What you changed, in the whole run.")
    if absent := not_measured(record):
        display(Markdown(f"Not measured: {absent}"))
    frame = times(record, [cell.split("/", 1) for cell in record.loops])
    checks = controls.settled(controls.of_record(record.run["plan"]["name"], record))
    failed = [controls.check_in_words(check) for check in checks if check.is_off]
    said = f"failed: {'; '.join(failed)}" if failed else f"none of {len(checks)} shows a bias"
    title = f"Every arm of this run, the loop included. Controls: {html.escape(said)}"
    display(HTML(folded(title, rows_of(frame) + csv_link(frame, "arms"))))


def times(record: Record, cells: Iterable[Sequence[str]]) -> pd.DataFrame:
    """Return a row for each of these cells, controls left out: ns a pass, the loop included."""
    return pd.DataFrame(
        {"arm": arm, "CPython": label, "ns a pass": Quantity(statistics.per_call(record, (label, arm)))}
        for label, arm in cells
        if not arm.startswith(OURS)
    )


def changed(record: Record, yours: list[str], caption: str) -> None:
    """Display the arms of these names, marked, in the open."""
    cells = [cell.split("/", 1) for cell in record.loops]
    frame = times(record, [(label, arm) for label, arm in cells if arm in yours])
    if len(frame):
        table(frame.assign(arm=[f"➜ {arm}" for arm in frame.arm]), f"{caption} Nanoseconds a pass, the loop included.")


def not_measured(record: Record) -> str:
    """Say which arms have no time, and why: each reason once, as Markdown; empty if all have one."""
    of_reason: dict[str, list[str]] = {}
    for (label, arm), reason in record.missing.items():
        of_reason.setdefault(reason.rstrip("."), []).append(f"{arm} on {label}")
    return "; ".join(f"{plain(listed(cells))} ({plain(reason)})" for reason, cells in of_reason.items())


def keep_table(frame: pd.DataFrame, caption: str, name: str) -> None:
    """Keep a table in the notebook without showing it, for pages that are no chapter (tables.py)."""
    frame = frame.map(lambda cell: cell.kept if isinstance(cell, Quantity) else cell)
    table = {"caption": caption, "mark": mark(), **json.loads(frame.to_json(orient="split", index=False))}
    keep(f"table {name}", table)


def keep(name: str, what: dict) -> None:
    """Keep facts in the notebook without showing them: they lie in the metadata of an output that is glued nowhere."""
    _glued(name, "text/plain", "''", **{KEPT: {name: what}})


def false_alarms(record: Record, copies: list[tuple[str, str]]) -> pd.DataFrame:
    """Return the running A/A test as a table: each (arm, second copy of it) on every interpreter."""
    rows = []
    for label, arm, comparison in statistics.false_alarms(record, copies):
        alarm = "no" if above(comparison.ratio, 1) == OPEN else "yes"
        rows.append((label, arm, Quantity(comparison.ratio), comparison.estimate.n, percent(comparison.mde), alarm))
    columns = ["CPython", "arm", "same / same", "n", "smallest effect to be found", "false alarm"]
    return pd.DataFrame(rows, columns=columns)


def behind(record: Record, cells: list[tuple[str, str]] | None = None) -> int:
    """Return how many layouts (restarts, where none were drawn) stand behind that of these cells that has fewest; of
    all cells, if none are named."""
    named = cells or [(label, arm) for label, _, arm in (cell.partition("/") for cell in record.loops)]
    return min((int(np.isfinite(medians(record.times(*cell))).sum()) for cell in named), default=0)


def of_each(counts: pd.Series) -> str:
    """How many processes there are, and of how much the fewest and the most: `5 × 120 to 3,000`."""
    least, most = counts.min(), counts.max()
    return f"{len(counts)} × {least:,.0f}" + f" to {most:,.0f}" * bool(most > least)


def percent(share: float) -> str:
    """Format the smallest effect that a comparison finds; too few values leave it open."""
    return "not known" if math.isnan(share) else f"{share:.2%}"


def plain(text: str) -> str:
    """Escape a text for Markdown, and put it on one line."""
    return re.sub(r"([\\*_`<\[\]$]|:(?=::))", r"\\\1", " ".join(text.split()))


def literal(text: str) -> str:
    """Escape a text so that Markdown shows it letter by letter, also in a cell of a table."""
    return re.sub(r"([|>~{}#])", r"\\\1", plain(text))


def verdict(row: dict) -> None:
    """Show the ledger's row for a claim: word, counts and size, each number with its interval, and each part with its
    answer."""
    beside = "; ".join(
        f"{name}: " + ", ".join(f"{what} {bounds(*interval)}" for what, interval in each.items())
        for name, each in row["beside"].items()
    )
    measured = "; ".join(
        f"{name} {text(Interval(value, *row['interval'][name]))}{' (withheld)' * ledger.is_withheld(row, name)}"
        for name, value in row["numbers"].items()
    )
    why = "".join(f"\n  - {plain(ledger.part_in_words(part))}" for part in row["parts"]) or f" {plain(row['reason'])}"
    display(
        Markdown(
            f"**{row['id']}: {ledger.verdict_of(row)}.** {plain(row['claim'])}\n\n- Published: "
            f"{plain(row['published'])}\n"
            f"- Here: {measured or 'nothing measured'}\n"
            + (f"- Beside it: {beside}\n" if beside else "")
            + (f"- Published size: {row['size']}\n" if row["size"] else "")
            + (f"- Elsewhere: {plain(said)}\n" if (said := elsewhere.told(row["id"])) else "")
            + f"- Why:{why}"
            + (f"\n- Open: {plain(row['takes'])}" if row["takes"] else "")
            + (f"\n- Not tested: {'; '.join(map(plain, row['untested']))}" if row["untested"] else "")
        )
    )
