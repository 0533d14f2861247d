"""The parts of the front page that a run writes: figure, surprises, chooser, questions, ways through. `book/front.toml` declares them."""

import itertools
import json
import math
import re
import tomllib
from functools import partial
from pathlib import Path

import pandas as pd

from ffilab.judge import ledger
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import LEVEL, Interval
from ffilab.judge.rules import OPEN
from ffilab.page import advice, draw, files, tables
from ffilab.page.chapters import chapters
from ffilab.page.places import Shown, link, since
from ffilab.page.templates import filled
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT

FILE = ROOT / "book" / "front.toml"
SURPRISES = 4
# What a pair is answered with; the page's script fills the same sentences.
ANSWERS = {
    "first": "The whole interval lies below 1: {a} takes less time here.",
    "second": "The whole interval lies above 1: {b} takes less time here.",
    "undecided": "The interval contains 1: which of the two takes less time is undecided here.",
}
RATIO = "{signature} on CPython {CPython}: time of {a} over time of {b}"
QUESTION = "{one} or {other} for {signature} on CPython {CPython}?"
NO_PAIR = "This run has no number for both."
MARKED = "What it means is not said: {mark}."


def read() -> dict:
    """Read the declarations."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def plot(figure, frame: pd.DataFrame, declared: dict) -> None:
    """Draw a dot for each row: its value on a log axis, by group; one line for each hue."""
    axes = figure.subplots()
    groups, hues = list(dict.fromkeys(frame[declared["group"]])), list(dict.fromkeys(frame[declared["hue"]]))
    for number, hue in enumerate(hues):
        part = frame[frame[declared["hue"]] == hue]
        heights = [groups.index(group) + (number - (len(hues) - 1) / 2) * 0.3 for group in part[declared["group"]]]
        axes.scatter(
            part[declared["value"]], heights, s=22, alpha=0.75, marker="os^D"[number % 4], label=f"CPython {hue}"
        )
    axes.axvline(1, color="gray", linewidth=1)
    axes.set(
        xscale="log",
        xlabel=f"time of a call over its time through the {declared['floor']}; one dot is one kind of call",
    )
    axes.set_yticks(range(len(groups)), groups)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    draw.plain_ticks(axes.xaxis)
    draw.legend_above(axes, len(hues))


def drawn_rows(kept: tables.Table, declared: dict) -> pd.DataFrame:
    """Return the rows to draw: those with a value, of the declared hues, without the group that the others are compared with."""
    frame = kept.frame.dropna(subset=[declared["value"]])
    return frame[
        frame[declared["hue"]].isin(map(in_words, declared["hues"])) & (frame[declared["group"]] != declared["floor"])
    ]


def ranges(frame: pd.DataFrame, declared: dict) -> str:
    """Write the alt text: the range of each group, on the first hue."""
    hue = frame[declared["hue"]].iloc[0]
    parts = [
        f"{group} {part[declared['value']].min():.2g} to {part[declared['value']].max():.2g}"
        for group, part in frame[frame[declared["hue"]] == hue].groupby(declared["group"], sort=False)
    ]
    return f"Dots by {declared['group']} on a log axis. On CPython {hue}, times the time through the {declared['floor']}: {'; '.join(parts)}."


def farthest(frame: pd.DataFrame, declared: dict) -> str:
    """Write the caption's sentence on the largest value, with its interval."""
    top = frame.loc[frame[declared["value"]].idxmax()]
    interval = Interval(*[top[f"{declared['value']}{end}"] for end in ("", ", low", ", high")])
    return (
        f"The dot farthest to the right is {top[declared['group']]}, {top[declared['item']]}, on CPython {top[declared['hue']]}: "
        f"{draw.text(interval)} times the time through the {declared['floor']}."
    )


def figure(tree: Path, declared: dict) -> str:
    """Save the figure for light and dark pages, and return it with its caption; a sentence if there is nothing to draw."""
    kept = tables.read(declared["chapter"], declared["table"])
    frame = None if kept is None else drawn_rows(kept, declared)
    if frame is None or frame.empty:
        return "The table behind the figure of this page was not measured yet.\n"
    for mode, drawn in draw.pictures(
        lambda canvas: plot(canvas, frame, declared), (7.2, 4.4), draw.short(kept.mark)
    ).items():
        (tree / "book" / "_static" / f"front-{mode}.svg").write_bytes(drawn)
    return filled(
        "front_figure.md",
        style=draw.SWITCH,
        modes=draw.INK,
        alt=ranges(frame, declared),
        mark=kept.mark,
        csv=files.csv_link(frame, "figure", tree),
        farthest=farthest(frame, declared),
        where=link(tree, declared["link"]),
        since=since(declared["chapter"]),
    )


def surprises(tree: Path, rows: list[dict]) -> str:
    """List the first few surprises that have a number: decided ones first."""
    by_claim, decided, open_ = {row["id"]: row for row in rows}, [], []
    for surprise in advice.read(FILE, "surprise"):
        verdict = advice.answer(surprise, by_claim)
        if verdict is not None:
            (open_ if verdict == OPEN else decided).append(surprise)
    lines = [
        f"{number}. {surprise.say} {advice.evidence(surprise, by_claim)} {link(tree, surprise.link)}"
        for number, surprise in enumerate((decided + open_)[:SURPRISES], 1)
    ]
    return "\n".join(lines) + "\n" if lines else "No chapter of this copy has a number for one yet.\n"


def questions(tree: Path, rows: list[dict], part: str) -> str:
    """List the questions of a part, each with this run's answer and a link to where it was measured."""
    by_claim = {row["id"]: row for row in rows}
    lines = [
        f"- {in_words(question.say)} {reply(question, by_claim)} {link(tree, question.link)}"
        for question in advice.read(FILE, "question")
        if question.part == part
    ]
    return "\n".join(lines) + "\n"


def reply(question: advice.Advice, by_claim: dict[str, dict]) -> str:
    """Answer a question: by a claim's verdict, by rows of a kept table, or by the sentence that a test chooses."""
    if question.verdict_of:
        row = by_claim[question.verdict_of]
        stale = " The page of this verdict is stale." * bool(row.get("stale"))
        return f"[Verdict](#claim-{question.verdict_of.lower()}): *{ledger.verdict_of(row)}*.{stale}"
    if question.table:
        kept = Shown(**question.table).read()
        return "Not measured here." if kept is None or kept.frame.empty else in_line(kept) + since(question.chapter)
    return advice.evidence(question, by_claim)


def in_line(kept: tables.Table) -> str:
    """Write each row of a small table as a sentence."""
    sentences = ["; ".join(f"{name}: {row[name]}" for name in kept.frame.columns) for _, row in kept.frame.iterrows()]
    return ". ".join(sentences) + "." + (f" **{draw.capital(kept.mark)}.**" if kept.mark else "")


def chooser_data(cells: tables.Table, pairs: tables.Table, page: str) -> dict:
    """Collect what the page's script needs: names, the text and address of each cell, and the ratio and answer of each pair.

    page: address of the page with all cells; each has a place of its own there, where the page says so by ending in '#'.
    """
    keys = ["CPython", "signature", "binding"]
    names = {key: list(dict.fromkeys(cells.frame[key])) for key in keys}
    at = {key: {name: number for number, name in enumerate(labels)} for key, labels in names.items()}
    found_cells = {}
    for row in cells.frame.to_dict("records"):
        address = page + files.slug(row["CPython"], row["binding"], row["signature"]) if page.endswith("#") else page
        measured = row["ns"] is not None and math.isfinite(row["ns"])
        text = draw.text(Interval(row["ns"], row["ns, low"], row["ns, high"]), "ns") if measured else "no number here"
        found_cells[",".join(str(at[key][row[key]]) for key in keys)] = [text, address, row.get("why") or ""]
    found_pairs = {}
    for row in pairs.frame.to_dict("records"):
        key = [at["CPython"].get(row["CPython"]), at["signature"].get(row["signature"])]
        key += [at["binding"].get(row[name]) for name in ("binding a", "binding b")]
        ratio = Interval(*[math.nan if row[name] is None else row[name] for name in ("ratio", "low", "high")])
        found_pairs[",".join(map(str, key))] = [draw.text(ratio), row["answer"]]
    words = {**ANSWERS, "ratio": RATIO, "missing": NO_PAIR, "marked": MARKED.format(mark=cells.mark or pairs.mark)}
    return {
        "names": names,
        "cells": found_cells,
        "pairs": found_pairs,
        "words": words,
        "mark": cells.mark or pairs.mark,
    }


def compared(data: dict, example: dict) -> dict | None:
    """One comparison as the page's script makes it: the cells of both, the ratio, and the answer; None if there is no such row."""
    label, signature = in_words(example["CPython"]), example["signature"]
    at = {key: {name: str(number) for number, name in enumerate(labels)} for key, labels in data["names"].items()}
    if label not in at["CPython"] or signature not in at["signature"]:
        return None
    key = f"{at['CPython'][label]},{at['signature'][signature]}"
    asked = [name for name in (example["one"], example["other"]) if name in at["binding"]]
    cells = {name: data["cells"][f"{key},{at['binding'][name]}"] for name in asked}
    ratio, answer = "", data["words"]["missing"]
    for first, second in itertools.permutations(asked, 2):
        if found := data["pairs"].get(f"{key},{at['binding'][first]},{at['binding'][second]}"):
            names = {"a": first, "b": second, "signature": signature, "CPython": label}
            ratio = f"{data['words']['ratio'].format(**names)} {found[0]}."
            answer = data["words"]["marked" if data["mark"] else found[1]].format(**names)
    return {
        "question": QUESTION.format(**{**example, "CPython": label}),
        "cells": cells,
        "ratio": ratio,
        "answer": answer,
    }


def chooser(tree: Path, declared: dict, examples: list[dict]) -> str:
    """Make the form that compares two bindings. Without JavaScript it shows the examples with their answers."""
    cells, pairs = (tables.read(declared["chapter"], declared[name]) for name in ("cells", "pairs"))
    if cells is None or pairs is None:
        return f"The table behind this question was not measured yet: {link(tree, declared['link'])}.\n"
    own = (tree / "book" / f"{declared['page']}.md").exists()
    page = f"{declared['page']}.html#" if own else f"../{declared['link'].replace('#', '.html#')}"
    data = chooser_data(cells, pairs, page)
    data["first"] = {**examples[0], "CPython": in_words(examples[0]["CPython"])}
    # A script and not JSON: a page that is opened from a disk may load no other file.
    (tree / "book" / "_static" / "front-data.js").write_text(
        f"window.ffiChooser = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"
    )
    return filled(
        "chooser.md",
        examples=[found for example in examples if (found := compared(data, example))],
        where=link(tree, f"book/{declared['page']}" if own else declared["link"]),
        level=LEVEL,
        since=since(declared["chapter"]),
    )


def minutes_of(opening: str, parts: list[str]) -> int:
    """Add up the minutes that a page's opening states for these parts."""
    return sum(int(minutes) for part in parts for minutes in re.findall(rf"{part}s?: (\d+) minutes", opening))


def ways(declared: list[dict]) -> list[dict]:
    """Return each way with the minutes of its stops, as the pages state them. Raises UserError for an unknown page."""
    openings = {page: text for chapter in chapters() for page, text in zip(chapter.pages, chapter.openings)}
    toc = (ROOT / "_toc.yml").read_text()
    both = ["Teaching", "Exercise"]
    everything = [{"page": page, "parts": both} for page in sorted(openings, key=toc.find) if f"{page}\n" in toc]
    totalled = []
    for way in declared:
        stops = []
        for stop in way["stops"] or everything:
            if stop["page"] not in openings:
                raise UserError(f"{FILE.name}: there is no page {stop['page']!r}.")
            if took := minutes_of(openings[stop["page"]], stop["parts"]):
                stops.append({**stop, "took": took})
        total = sum(stop["took"] for stop in stops) + way.get("break", 0)
        totalled.append({**way, "stops": stops, "total": total})
    return totalled


def ways_page(tree: Path, declared: list[dict]) -> str:
    """List the stops of each way with their minutes."""
    return filled("ways.md", ways=ways(declared), link=partial(link, tree))


def write(tree: Path, rows: list[dict]) -> None:
    """Write the generated parts of the page."""
    folder, declared = tree / "book" / "_generated", read()
    (folder / "front_figure.md").write_text(figure(tree, declared["figure"]))
    (folder / "surprises.md").write_text(surprises(tree, rows))
    (folder / "chooser.md").write_text(chooser(tree, declared["chooser"], declared["example"]))
    for part in ("safe", "quick"):
        (folder / f"questions_{part}.md").write_text(questions(tree, rows, part))
    (folder / "ways.md").write_text(ways_page(tree, declared["way"]))
