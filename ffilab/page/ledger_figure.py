"""The figure of the ledger's page: the claims of each document by verdict."""

import pandas as pd

from ffilab.judge import verdicts

# How it is drawn: the colours of verdicts (book/_static/verdicts.css), and a hatching for those who see none.
DRAWN = {
    verdicts.HOLDS: ("#007A5A", ""),
    verdicts.HOLDS_SO_FAR: ("#3D7A66", ".."),
    verdicts.MIXED: ("#0072B2", "\\\\"),
    verdicts.OPEN: ("#8A6100", "||"),
    verdicts.FAILS_SO_FAR: ("#9C5438", "oo"),
    verdicts.FAILS: ("#B3400E", "xx"),
    verdicts.WITHHELD: ("#8E4585", "--"),
    # Kinds of claims, of which there is no verdict.
    verdicts.BY_CONSTRUCTION: ("#4F6D7A", "++"),
    verdicts.NOT_MEASURABLE: ("#6B6B6B", "//"),
}
NOT_TESTED = ("#999999", "")


def given(rows: list[dict]) -> list[str]:
    """List the verdicts that were given: first those on claims that were tested."""
    found = dict.fromkeys(row["verdict"] for row in rows)
    return sorted(found, key=lambda verdict: verdicts.TESTED.index(verdict) if verdict in verdicts.TESTED else 99)


def by_document(rows: list[dict]) -> pd.DataFrame:
    """Count the claims of each document (rows) by verdict (columns)."""
    counts = pd.crosstab([row["id"][0] for row in rows], [row["verdict"] for row in rows])
    return counts.reindex(columns=given(rows))


def summary_for_alt(rows: list[dict]) -> str:
    """Put the figure into words, with its numbers."""
    documents = [
        f"{document}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        for document, counts in by_document(rows).iterrows()
    ]
    return f"Verdicts on {len(rows)} claims by document. {'. '.join(documents)}."


def plot_summary(figure, rows: list[dict]) -> None:
    """Draw a bar for each document, divided by verdicts, with the number of claims in each part."""
    table = by_document(rows)
    axes, left = figure.subplots(), pd.Series(0, index=table.index)
    for verdict, counts in table.items():
        colour, hatch = DRAWN.get(verdict, NOT_TESTED)
        bars = axes.barh(table.index, counts, left=left, color=colour, hatch=hatch, edgecolor="white", label=verdict)
        for text in axes.bar_label(bars, [count or "" for count in counts], label_type="center", color="black", size=9):
            if text.get_text():
                text.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"})
        left = left + counts
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="claims", ylabel="document")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
