"""The parts of the front page that a run writes: figure, surprises, chooser, questions, ways through. `book/front.toml`
declares them."""

import itertools
import json
import math
import tomllib
from functools import partial
from html import escape
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
# Two times that differ by less make no choice; ANSWERS says so, too.
MATTERS = 0.02
# What a pair is answered with, as HTML. The faster one is {a}; {times} is how many times as fast.
ANSWERS = {
    "faster": "<strong>{a} is faster:</strong> {time_a}, {b} {time_b}. Side by side it is {times} times as fast.",
    "same": "<strong>No difference that matters:</strong> {a} {time_a}, {b} {time_b}, less than 2 % apart.",
    "open": "<strong>Too close to call here:</strong> {a} {time_a}, {b} {time_b}.",
    "marked": "{a} {time_a}, {b} {time_b}. What that means is not said: {mark}.",
    "alone": "{a}: {time_a}.",
    "neither": "{a}: {time_a}; {b}: {time_b}.",
}
SLOWEST = (
    "The largest ratio: “{what}” through {by} on CPython {label} takes {times} times as long as in hand-written C."
)
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
    asked = [one for one in advice.entries(FILE, "question") if one.part == part]
    lines = [
        f"- {in_words(question.say)} {advice.evidence(question, copy)} {link(tree, question.link)}"
        for question in asked
    ]
    return "\n".join([*lines, "", advice.unmeasured(asked, copy, partial(link, tree))]).rstrip() + "\n"


def in_short(ns: float) -> str:
    """Write a time with two digits: `33 ns`, `2.3 µs`."""
    value, unit = (ns / 1e6, "ms") if ns >= 1e6 else (ns / 1e3, "µs") if ns >= 1e3 else (ns, "ns")
    return f"{float(f'{value:.2g}'):.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"


def times(ratio: float) -> str:
    """Write how many times as fast: with two digits, or so many that it is not 1."""
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 1.05 else f"{ratio:.2f}"


def answer(pair: dict, mark: str) -> dict[str, str]:
    """Answer which binding of a row of the table of pairs is faster: the form of the answer, and what is poured in."""
    ratio = Interval(*[math.nan if pair[name] is None else pair[name] for name in ("ratio", "low", "high")])
    first, second, form = pair["binding a"], pair["binding b"], "open"
    if equal(ratio, 1, MATTERS) == YES:
        form = "same"
    elif pair["answer"] in ("first", "second"):
        form = "faster"
        if pair["answer"] == "second":
            first, second = second, first
    return {
        "form": "marked" if mark else form,
        "a": first,
        "b": second,
        "times": times(max(ratio.value, 1 / ratio.value)) if form == "faster" else "",
    }


def time_link(cell: dict, page: str) -> str:
    """Write the time of a cell as a link to its place on the page, its interval in the title; else why there is
    none."""
    text, title = words.translated(NO_NUMBER), cell["why"] or ""
    if cell["ns"] is not None and math.isfinite(cell["ns"]):
        text, title = in_short(cell["ns"]), draw.text(Interval(cell["ns"], cell["ns, low"], cell["ns, high"]), "ns")
    elif title:
        text += f" ({title})"
    address = f"{page}#{files.slug(cell['CPython'], cell['binding'], cell['signature'])}"
    return filled("time.html", address=address, title=title, text=text)


def chooser_data(cells: tables.Table, pairs: tables.Table, page: str) -> dict:
    """Compute what the chooser can be asked for: its choices, and the answer to each as HTML, by the numbers of what is
    chosen. A number in braces in an answer is that of a cell.

    page: address of the page with all cells, where each has a place of its own.
    """
    choices = {key: list(dict.fromkeys(cells.frame[key])) for key in ("CPython", "signature", "binding")}
    rows, mark = cells.frame.to_dict("records"), cells.mark or pairs.mark
    place = {(row["CPython"], row["signature"], row["binding"]): f"{{{n}}}" for n, row in enumerate(rows)}
    compared = {
        (pair["CPython"], pair["signature"], frozenset((pair["binding a"], pair["binding b"]))): answer(pair, mark)
        for pair in pairs.frame.to_dict("records")
    }
    forms, none, answers = words.translated(ANSWERS), words.translated(NO_NUMBER), {}
    for label, signature in itertools.product(choices["CPython"], choices["signature"]):
        for one, other in itertools.combinations_with_replacement(choices["binding"], 2):
            alone = {"form": "alone" if one == other else "neither", "a": one, "b": other}
            poured = compared.get((label, signature, frozenset((one, other))), alone)
            time_a, time_b = (place.get((label, signature, poured[letter]), none) for letter in "ab")
            text = {name: escape(value) for name, value in poured.items()}
            answers[key_of(choices, label, signature, one, other)] = forms[poured["form"]].format(
                **text, time_a=time_a, time_b=time_b, mark=escape(mark)
            )
    return {
        "choices": choices,
        "fields": words.translated(FIELDS),
        "cells": [time_link(row, page) for row in rows],
        "answers": answers,
    }


def key_of(choices: dict[str, list[str]], label: str, signature: str, one: str, other: str) -> str:
    """Return under which key the answer to a choice stands; the lower number of a binding comes first."""
    bindings = sorted([choices["binding"].index(one), choices["binding"].index(other)])
    return ",".join(map(str, [choices["CPython"].index(label), choices["signature"].index(signature), *bindings]))


def looked_up(data: dict, example: dict) -> dict[str, str] | None:
    """Look up the answer to an example, as the page's script does; None if this copy has no such row."""
    asked = [in_words(example["CPython"]), example["signature"], example["one"], example["other"]]
    try:
        text = data["answers"][key_of(data["choices"], *asked)]
    except ValueError:
        return None
    question = words.translated(QUESTION).format(**{**example, "CPython": asked[0]})
    return {"question": question, "answer": text.format(*data["cells"])}


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
        examples=[shown for example in examples if (shown := looked_up(data, example))],
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
