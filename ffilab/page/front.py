"""The parts of the front page that a run writes: figure, surprises, chooser, questions, ways through. `book/front.toml`
declares them."""

import itertools
import json
import math
import re
import tomllib
from functools import partial
from pathlib import Path

import pandas as pd

from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Interval
from ffilab.judge.questions import equal
from ffilab.judge.rules import YES
from ffilab.page import advice, draw, files, tables, words
from ffilab.page.contents import chapters
from ffilab.page.places import link, since
from ffilab.page.templates import filled
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT

FILE = ROOT / "book" / "front.toml"
SURPRISES, LABELLED = 3, 3
# The parts of a way's stop, by the minutes of its page.
PARTS = {"Teaching": "teaching", "Exercise": "exercises"}
# Two times that differ by less make no choice.
MATTERS = 0.02
# What a pair is answered with, the beginning of it in bold; the page's script fills the same sentences. The faster one
# is {a}.
ANSWERS = {
    "faster": ["{a} is faster:", " {time_a}, {b} {time_b}. Side by side it is {times} times as fast."],
    "same": [
        "No difference that matters:",
        f" {{a}} {{time_a}}, {{b}} {{time_b}}, less than {100 * MATTERS:.0f} % apart.",
    ],
    "open": ["Too close to call here:", " {a} {time_a}, {b} {time_b}."],
    "marked": ["", "{a} {time_a}, {b} {time_b}. What that means is not said: {mark}."],
    "alone": ["", "{a}: {time_a}."],
    "neither": ["", "{a}: {time_a}; {b}: {time_b}."],
}
SLOWEST = "The slowest of all calls, “{what}” through {by} on CPython {label}, takes {times} times as long as in hand-written C."
RANGES = "Dots by {group} on a log axis, times the time through the {floor}: {each}."
NOTHING_YET = "The table behind this was not measured yet."
NO_NUMBER = "no number here"
FIELDS = ["This binding", "or this one", "for this kind of call", "on CPython"]
QUESTION = "{one} or {other} for {signature} on CPython {CPython}?"


def declarations() -> dict:
    """Read the declarations."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def plot(figure, frame: pd.DataFrame, declared: dict) -> None:
    """Draw a dot for each row: its value on a log axis, by group; one line for each hue. The farthest ones are
    named."""
    axes = figure.subplots()
    group, hue_of = frame[declared["group"]], frame[declared["hue"]]
    groups, hues = list(dict.fromkeys(group)), list(dict.fromkeys(hue_of))
    frame = frame.assign(height=group.map(groups.index) + (hue_of.map(hues.index) - (len(hues) - 1) / 2) * 0.3)
    for number, hue in enumerate(hues):
        part = frame[hue_of == hue]
        look = {"s": 22, "alpha": 0.75, "marker": draw.MARKERS[number], "label": f"CPython {hue}"}
        axes.scatter(part[declared["value"]], part.height, **look)
    for _, row in farthest(frame, declared).iterrows():
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
        axes.annotate(row[declared["item"]], (row[declared["value"]], row.height), **place)
    axes.axvline(1, color="gray", linewidth=1)
    axes.set(xscale="log", xlabel=f"times as long as through the {declared['floor']}; a dot for each kind of call")
    # Right of the farthest dot there is room for its name.
    axes.set_xlim(right=5 * frame[declared["value"]].max())
    axes.set_yticks(range(len(groups)), groups)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    draw.plain_ticks(axes.xaxis)
    draw.legend_above(axes, len(hues))


def farthest(frame: pd.DataFrame, declared: dict) -> pd.DataFrame:
    """Return the rows with the largest values: one for each group, of different items, the largest first."""
    frame = frame.sort_values(declared["value"], ascending=False)
    for column in ("group", "item"):
        frame = frame.drop_duplicates(declared[column])
    return frame.head(LABELLED)


def ranges(frame: pd.DataFrame, declared: dict) -> str:
    """Write the alt text: the range of each group."""
    spans = frame.groupby(declared["group"], sort=False)[declared["value"]].agg(["min", "max"])
    said = "; ".join(f"{group} {low:.2g}–{high:.2g}" for group, low, high in spans.itertuples())
    return words.translated(RANGES).format(group=declared["group"], floor=declared["floor"], each=said)


def finding(frame: pd.DataFrame, declared: dict) -> str:
    """Write the caption: the kind of call that is slowest, and how slow it is."""
    top = farthest(frame, declared).iloc[0]
    what, by, label = (top[declared[name]] for name in ("item", "group", "hue"))
    return words.translated(SLOWEST).format(what=what, by=by, label=label, times=f"{top[declared['value']]:.0f}")


def figure(tree: Path) -> str:
    """Save the figure for light and dark pages, and return it with its caption; a sentence if there is nothing to
    draw."""
    declared = declarations()["figure"]
    kept = tables.kept_table(declared["chapter"], declared["table"])
    frame = pd.DataFrame() if kept is None else kept.frame.dropna(subset=[declared["value"]])
    if not frame.empty:
        # Of the declared hues, without the group that the others are compared with.
        frame = frame[frame[declared["hue"]].isin(map(in_words, declared["hues"]))]
        frame = frame[frame[declared["group"]] != declared["floor"]]
    if frame.empty:
        return words.translated(NOTHING_YET) + "\n"
    drawing = partial(plot, frame=frame, declared=declared)
    for mode, drawn in draw.pictures(drawing, (7.2, 4.4), draw.short(kept.mark)).items():
        (tree / "book" / "_static" / f"front-{mode}.svg").write_bytes(drawn)
    return filled(
        "front_figure.md",
        style=draw.SWITCH,
        modes=draw.INK,
        alt=f"{finding(frame, declared)} {ranges(frame, declared)}",
        mark=kept.mark,
        csv=files.csv_link(frame, "figure", tree),
        finding=finding(frame, declared),
        where=link(tree, declared["link"]),
        since=since(declared["chapter"]),
    )


def surprises(tree: Path, copy: advice.Copy) -> str:
    """List the first few surprises that have a number: decided ones first."""
    all_of_them = [(advice.is_decided(surprise, copy), surprise) for surprise in advice.entries(FILE, "surprise")]
    known = [(is_decided, surprise) for is_decided, surprise in all_of_them if is_decided is not None]
    lines = [
        f"{number}. {surprise.say} {advice.evidence(surprise, copy)} {link(tree, surprise.link)}"
        for number, (_, surprise) in enumerate(sorted(known, key=lambda one: not one[0])[:SURPRISES], 1)
    ]
    return "\n".join(lines or [words.translated("No chapter of this copy has a number for one yet.")]) + "\n"


def questions(tree: Path, copy: advice.Copy, part: str) -> str:
    """List the questions of a part: the answer of the mechanism, what this run counted, and a link to where it did."""
    lines = [
        f"- {in_words(question.say)} {advice.evidence(question, copy)} {link(tree, question.link)}"
        for question in advice.entries(FILE, "question")
        if question.part == part
    ]
    return "\n".join(lines) + "\n"


def in_short(ns: float) -> str:
    """Write a time with two digits: `33 ns`, `2.3 µs`."""
    value, unit = (ns / 1e6, "ms") if ns >= 1e6 else (ns / 1e3, "µs") if ns >= 1e3 else (ns, "ns")
    return f"{float(f'{value:.2g}'):.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"


def times(ratio: float) -> str:
    """Write how many times as fast: with two digits, or so many that it is not 1."""
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 1.05 else f"{ratio:.2f}"


def ending(row: dict) -> tuple[bool, str]:
    """Answer which of two is faster: is it the second, and how the answer ends."""
    ratio = Interval(*[math.nan if row[name] is None else row[name] for name in ("ratio", "low", "high")])
    if equal(ratio, 1, MATTERS) == YES:
        return False, "same"
    return row["answer"] == "second", "faster" if row["answer"] in ("first", "second") else "open"


def chooser_data(cells: tables.Table, pairs: tables.Table, page: str) -> dict:
    """Collect what the page's script needs: names, the texts and address of each cell, and the answer of each pair, the
    faster one first.

    page: address of the page with all cells, where each has a place of its own.
    """
    keys = ["CPython", "signature", "binding"]
    names = {key: list(dict.fromkeys(cells.frame[key])) for key in keys}
    at = {key: {name: number for number, name in enumerate(labels)} for key, labels in names.items()}
    found_cells = {}
    for row in cells.frame.to_dict("records"):
        address = f"{page}#{files.slug(row['CPython'], row['binding'], row['signature'])}"
        if row["ns"] is not None and math.isfinite(row["ns"]):
            text = draw.text(Interval(row["ns"], row["ns, low"], row["ns, high"]), "ns")
            shown = [in_short(row["ns"]), text, address]
        else:
            why = row["why"] or ""
            shown = [words.translated(NO_NUMBER) + f" ({why})" * bool(why), why, address]
        found_cells[",".join(str(at[key][row[key]]) for key in keys)] = shown
    found_pairs = {}
    for row in pairs.frame.to_dict("records"):
        key = [at["CPython"].get(row["CPython"]), at["signature"].get(row["signature"])]
        both = [at["binding"].get(row[name]) for name in ("binding a", "binding b")]
        is_second, how = ending(row)
        faster_by = times(max(row["ratio"], 1 / row["ratio"])) if how == "faster" else ""
        found_pairs[",".join(map(str, key + both[:: -1 if is_second else 1]))] = [how, faster_by]
    return {
        "names": names,
        "cells": found_cells,
        "pairs": found_pairs,
        "words": words.translated(ANSWERS),
        "fields": words.translated(FIELDS),
        "none": words.translated(NO_NUMBER),
        "mark": cells.mark or pairs.mark,
    }


def compared(data: dict, example: dict) -> dict | None:
    """One comparison as the page's script makes it: the answer in bold and its rest, with what is poured in; None if
    there is no such row."""
    label, signature = in_words(example["CPython"]), example["signature"]
    at = {key: {name: str(number) for number, name in enumerate(labels)} for key, labels in data["names"].items()}
    if label not in at["CPython"] or signature not in at["signature"]:
        return None
    key = f"{at['CPython'][label]},{at['signature'][signature]}"
    asked = [name for name in dict.fromkeys((example["one"], example["other"])) if name in at["binding"]]
    how, faster_by = "alone" if len(asked) == 1 else "neither", ""
    for two in itertools.permutations(asked, 2):
        if found := data["pairs"].get(f"{key},{at['binding'][two[0]]},{at['binding'][two[1]]}"):
            asked, (how, faster_by) = two, found
    cells = {f"time_{letter}": data["cells"][f"{key},{at['binding'][name]}"] for letter, name in zip("ab", asked)}
    poured = {**dict(zip("ab", asked)), "times": faster_by, "mark": data["mark"]}
    strong, rest = data["words"]["marked" if data["mark"] and len(asked) > 1 else how]
    return {
        "question": words.translated(QUESTION).format(**{**example, "CPython": label}),
        "strong": strong.format(**poured),
        # Text, a name, text, a name, …, text.
        "rest": re.split(r"\{(\w+)\}", rest),
        "words": poured,
        "cells": cells,
    }


def chooser(tree: Path) -> str:
    """Make the form that compares two bindings. Without JavaScript it shows the examples with their answers."""
    declared, examples = declarations()["chooser"], declarations()["example"]
    cells, pairs = (tables.kept_table(declared["chapter"], declared[name]) for name in ("cells", "pairs"))
    if cells is None or pairs is None:
        return f"{words.translated(NOTHING_YET)} {link(tree, declared['page'])}\n"
    data = chooser_data(cells, pairs, f"../{declared['page']}.html")
    data["first"] = {**examples[0], "CPython": in_words(examples[0]["CPython"])}
    # A script and not JSON: a page that is opened from a disk may load no other file.
    script = f"front-data{settings.language()}.js"
    (tree / "book" / "_static" / script).write_text(
        f"window.ffiChooser = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"
    )
    return filled(
        "chooser.md",
        script=script,
        examples=[found for example in examples if (found := compared(data, example))],
        where=link(tree, declared["page"]),
        since=since(declared["chapter"]),
    )


def ways(declared: list[dict]) -> list[dict]:
    """Return each way with the minutes of its stops, as the pages state them, without stops that it has no time for.
    Raises UserError for an unknown page."""
    minutes = {page: stated for chapter in chapters() for page, stated in chapter.minutes.items()}
    toc = (ROOT / "_toc.yml").read_text()
    everything = [{"page": page, "parts": list(PARTS)} for page in sorted(minutes, key=toc.find) if f"{page}\n" in toc]
    totalled = []
    for way in declared:
        stops, total = [], 0
        for stop in way["stops"] or everything:
            if stop["page"] not in minutes | {"": {}}:
                raise UserError(f"{FILE.name}: there is no page {stop['page']!r}.")
            parts, stated = stop["parts"], minutes.get(stop["page"], {})
            if stop["page"]:
                parts = {part: stated[PARTS[part]] for part in parts if stated.get(PARTS[part])}
            took = sum(parts.values())
            if parts and total + took <= way.get("minutes", math.inf):
                stops.append({**stop, "parts": parts, "took": took})
                total += took
        totalled.append({**way, "stops": stops, "total": total})
    return totalled


def ways_page(template: str, tree: Path) -> str:
    """Fill a template with the ways: of the front page, or of the instructors'."""
    return filled(template, ways=ways(declarations()["way"]), link=partial(link, tree))
