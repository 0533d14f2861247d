"""What users, odd machines and malice do beside the faults of the other files: said in a sentence, and nothing is guessed."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading

import nbformat
import numpy as np
import pytest
from made_up import timed, write

from ffilab import draw
from ffilab.bench import session as sessions
from ffilab.bench.plan import EMPTY, control_pair
from ffilab.bench.record import read
from ffilab.errors import UserError
from ffilab.judge import again, history, ledger, runs
from ffilab.paths import ROOT, read_json
from ffilab.press import chapters, forecast, ledger_page, slides, tables
from ffilab.press.chapters import Chapter

GOLDEN = ROOT / "tests" / "golden"
SMALLEST = "loaders"


def limited(function, seconds=20):
    """What it returns or raises; fails where it hangs."""
    answer = []

    def run():
        try:
            answer.append((function(), None))
        except Exception as error:
            answer.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert answer, "it hangs"
    found, error = answer[0]
    if error:
        raise error
    return found


@pytest.fixture
def folder(tmp_path):
    """Records of one chapter."""
    shutil.copytree(GOLDEN / SMALLEST, tmp_path / "records" / "one")
    return tmp_path / "records"


def change(path, how):
    """Rewrite the lines of a record as somebody may who knows the format: without its digest."""
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    lines[-1].pop("sha256", None)
    lines = how(lines) or lines
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def refused(function, seen, path):
    with pytest.raises(UserError) as error:
        limited(function)
    assert "\n" not in str(error.value)
    seen(str(error.value).replace(str(path), "…"))
    return str(error.value)


def test_the_records_are_good(folder):
    assert again.rows(folder)


# A bundle, or a folder of records.


@pytest.mark.parametrize("what", ["a pipe", "a device"])
@pytest.mark.fault("records", "FROM names {what}", "It is refused, and nothing waits for its end")
def test_from_without_end(tmp_path, seen, monkeypatch, what):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    path = tmp_path / "pipe" if what == "a pipe" else "/dev/zero"
    if what == "a pipe":
        os.mkfifo(path)
    assert "no regular file" in refused(lambda: sessions.unpacked(str(path)), seen, tmp_path)


@pytest.mark.parametrize("what", ["a pipe", "a device", "a folder", "a link to itself", "brackets without end"])
@pytest.mark.fault("records", "In place of a session's record stands {what}", "It counts as none; nothing hangs")
def test_no_session(tmp_path, seen, what):
    path = tmp_path / "session.jsonl"
    {
        "a pipe": lambda: os.mkfifo(path),
        "a device": lambda: path.symlink_to("/dev/zero"),
        "a folder": path.mkdir,
        "a link to itself": lambda: path.symlink_to(path),
        "brackets without end": lambda: path.write_text("[" * 200_000),
    }[what]()
    assert "no complete session" in refused(lambda: again.report(tmp_path), seen, tmp_path)


@pytest.mark.fault(
    "records", "Of two chapters in FROM one has a damaged record", "`judge` names it, and prints no ledger without it"
)
def test_damaged_chapter_is_not_left_out(folder, seen):
    shutil.copytree(GOLDEN / "pinning", folder / "other")
    path = folder / "one" / "session.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:30] + "\n", *lines[3:]]))
    assert "is damaged (line 3" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault(
    "records", "A session rests on an earlier one that was not sent along", "The record that is missing is named"
)
def test_earlier_is_missing(folder, seen):
    change(folder / "one" / "session.jsonl", lambda lines: lines[0]["plan"].update(earlier=["20260101T000000"]))
    assert "There is no record" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault("records", "A session names an earlier one outside of its folder", "It is refused")
def test_earlier_leads_out(folder, seen):
    change(folder / "one" / "session.jsonl", lambda lines: lines[0]["plan"].update(earlier=["../../elsewhere"]))
    assert "outside" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault("records", "A record stands twice in one file, one behind the other", "It is refused")
def test_behind_the_end(folder, seen):
    path = folder / "one" / "session.jsonl"
    path.write_text(2 * path.read_text())
    assert "behind its end" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault("records", "A bundle is named that is already unpacked and read by another run", "It stays in place")
def test_bundle_in_use(folder, tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    bundle = tmp_path / "x.tar.gz"
    with tarfile.open(bundle, "w:gz") as made:
        made.add(folder, "records")
    first = sessions.unpacked(str(bundle))
    before = {path: path.stat().st_ino for path in first.rglob("*")}
    assert sessions.unpacked(str(bundle)) == first
    assert {path: path.stat().st_ino for path in first.rglob("*")} == before
    seen(f"{len(before)} files, the same as before")


@pytest.mark.fault("records", "A bundle is refused in its middle", "Nothing of it is left")
def test_nothing_is_left_of_a_bundle(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    bundle = tmp_path / "x.tar.gz"
    with tarfile.open(bundle, "w:gz") as made:
        for name in ("good", "../out"):
            info = tarfile.TarInfo(name)
            info.size = 3
            made.addfile(info, io.BytesIO(b"abc"))
    refused(lambda: sessions.unpacked(str(bundle)), seen, tmp_path)
    assert not [path for path in (tmp_path / "build").rglob("*") if path.is_file()]
    assert not list((tmp_path / "build").glob("tmp*"))


# Fields of a record, without a digest: as an older version wrote it, or somebody who wants a certain result.

WRONG = (None, "x", [], {}, True, float("nan"), -1, "gone")
# Of which the value counts for nothing here, or may be missing.
HARMLESS = {"format", "kind", "load", "steal_s", "involuntary", "mhz", "cpu", "layout", "layouts", "probes", "end"}


@pytest.mark.fault(
    "records",
    "Every field of every kind of line is taken away, and is of another type",
    "The record is refused, or the field decides nothing; no traceback",
)
def test_every_field(folder, seen):
    said = accepted = 0
    for path in sorted((folder / "one").glob("*.jsonl")):
        whole = path.read_text()
        lines = [json.loads(text) for text in whole.splitlines()]
        first = {line["kind"]: number for number, line in reversed(list(enumerate(lines)))}
        for kind, number in first.items():
            places = [(lines[number], name) for name in lines[number]]
            places += [
                (lines[number][above], name) for above in ("plan", "layouts") for name in lines[number].get(above, {})
            ]
            for inside, name in places:
                for wrong in WRONG[:: 1 if kind in ("run", "block", "restart") else 2]:
                    kept = inside[name]
                    inside[name] = wrong
                    if wrong == "gone":
                        del inside[name]
                    texts = [{**line} for line in lines]
                    texts[-1].pop("sha256", None)
                    path.write_text("".join(json.dumps(line) + "\n" for line in texts))
                    inside[name] = kept
                    try:
                        session = sessions.Reading(SMALLEST, sessions.find(folder, SMALLEST))
                        [session.timed(plan) for plan in session.plans]
                        assert session.provenance
                        accepted += 1
                    except UserError:
                        said += 1
        path.write_text(whole)
    assert said > accepted / 2
    seen(f"{said + accepted} changes: {said} refused, {accepted} decide nothing")


@pytest.mark.parametrize(
    ("kind", "field", "value", "what"),
    [
        ("restart", "missing", None, "what is missing is null"),
        ("restart", "restart", 100_000, "the number of a restart reaches into the next session"),
        ("block", "strangers_s", "0", "a load is a text"),
        ("block", "steal_s", float("nan"), "stolen time is NaN"),
        ("loops", "block_ns", -1, "a block lasts less than nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
@pytest.mark.fault("records", "In a record {what}", "It is refused")
def test_field(tmp_path, seen, kind, field, value, what):
    path = write(made_up(), tmp_path / "calls.jsonl")
    change(path, lambda lines: next(line for line in lines if line["kind"] == kind).update({field: value}))
    assert "is damaged" in refused(lambda: read(path), seen, tmp_path)


@pytest.mark.fault("records", "Calibrated counts stand twice in a record, and differ", "It is refused")
def test_two_calibrations(tmp_path, seen):
    path = write(made_up(), tmp_path / "calls.jsonl")

    def twice(lines):
        at = next(number for number, line in enumerate(lines) if line["kind"] == "loops")
        other = {**lines[at], "loops": {cell: 2 * count for cell, count in lines[at]["loops"].items()}}
        return [*lines[: at + 1], other, *lines[at + 1 :]]

    change(path, twice)
    assert "'loops' is there twice" in refused(lambda: read(path), seen, tmp_path)


@pytest.mark.fault("records", "A block lacks the time of one arm", "It is refused, and arm and block are named")
def test_block_without_an_arm(tmp_path, seen):
    path = write(made_up(), tmp_path / "calls.jsonl")
    change(path, lambda lines: next(line for line in lines if line["kind"] == "block")["ns"].pop("3.14/x") and None)
    assert "no time of 3.14/x in block 0" in refused(lambda: read(path), seen, tmp_path)


# Texts of a record on a page.

SCRIPT = "\\<script>alert(1)</script>"


@pytest.mark.fault("records", "What is said of an interpreter holds a script", "The record is refused")
def test_markup_of_an_interpreter(folder, seen):
    path = folder / "one" / "session.jsonl"
    change(path, lambda lines: lines[0]["interpreters"]["3.14"].update(version=SCRIPT))
    assert "markup" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault("records", "The title of an experiment holds a script", "The record is refused")
def test_markup_of_a_title(folder, seen):
    path = folder / "one" / "session.jsonl"
    change(path, lambda lines: lines[-1].update(title=SCRIPT))
    assert "markup" in refused(lambda: again.report(folder), seen, folder)


@pytest.mark.fault(
    "records", "A backslash stands before markup in a reason that a record gives", "It stands on the page as text"
)
def test_escaped_markup(seen, monkeypatch):
    row = {"id": "A1", "claim": "c", "published": "p", "verdict": "v", "qualifier": "", "beside": {}, "measured": {}}
    shown = []
    monkeypatch.setattr(draw, "display", lambda one: shown.append(one.data))
    draw.verdict({**row, "interval": {}, "takes": "", "untested": [], "reason": f"{SCRIPT}\n\n```{{raw}} html"})
    for text in (shown[0].partition("Why: ")[2], draw.plain(SCRIPT)):
        before = text.partition("<script")[0]
        # An odd number of backslashes: the last one is for the bracket.
        assert (len(before) - len(before.rstrip("\\"))) % 2 == 1
        assert "\n" not in text
    seen(draw.plain(SCRIPT))


@pytest.mark.fault("records", "A cell of the ledger as CSV begins as a formula", "A program for tables shows its text")
def test_formula(seen):
    assert ledger_page.no_formula("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert ledger_page.no_formula(-1.5) == -1.5
    assert ledger_page.no_formula("a CPU") == "a CPU"
    seen(ledger_page.no_formula("=HYPERLINK(1)"))


# Numbers that are no numbers.


def made_up(shape=(6, 3), scatter=0.01, x=1.0, seed=1):
    rng = np.random.default_rng(seed)
    logs = ((control_pair(1)[0], 0), (EMPTY, -3), ("x", x))
    return timed({arm: log + scatter * rng.standard_normal(shape) for arm, log in logs})


@pytest.mark.parametrize(
    ("what", "shape", "scatter", "says"),
    [
        ("do not scatter at all, as by a coarse clock", (6, 3), 0, "to the last digit"),
        ("come from one restart", (1, 3), 0.01, "3 complete restarts"),
        ("come from two restarts", (2, 3), 0.01, "3 complete restarts"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
@pytest.mark.fault("records", "The times that are compared {what}", "No verdict is given")
def test_nothing_known_of_scatter(tmp_path, seen, what, shape, scatter, says):
    found = [
        write(made_up(shape, scatter, x, seed), tmp_path / str(seed) / "calls.jsonl") for x, seed in ((1, 1), (1.1, 2))
    ]
    lines = [line for line in runs.report(tuple(found)).splitlines() if line.split()[:2] == ["3.14", "x"]]
    assert len(lines) == 1
    assert "no verdict" in lines[0]
    assert says in lines[0]
    assert "changed" not in lines[0]
    seen(lines[0].partition("], ")[2].partition("]: ")[2])


# Files that the press reads back.

DAMAGED = {"empty": b"", "cut off": b'{"a": [1, ', "a list": b"[1]\n", "a text": b'"x"', "binary": b"\xff\xfe\x00"}


@pytest.fixture
def page(tmp_path):
    """A page as it lies in `_build`, with what goes with it."""
    made = Chapter(SMALLEST, executed_folder=tmp_path / "executed")
    made.executed.parent.mkdir(parents=True)
    shutil.copy(made.source, made.executed)
    return made


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.fault("press", "The facts of a page are {how}", "The page is shown as stale")
def test_facts(page, seen, how):
    (page.executed.parent / chapters.FACTS).write_bytes(DAMAGED[how])
    assert page.facts == {}
    said = page.changed()
    assert "nothing is known" in said[0]
    seen(said[0])


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.fault("press", "The notebook of a page is {how}", "It is named, with the command that makes it again")
def test_executed(page, seen, how, tmp_path):
    page.executed.write_bytes(DAMAGED[how])
    assert "make chapter NAME=loaders" in refused(lambda: slides.deck(page), seen, tmp_path)


@pytest.mark.parametrize(
    ("what", "content"),
    [
        ("is cut off", '{"cells": ['),
        (
            "has no cell",
            json.dumps({**nbformat.v4.new_notebook(), "metadata": {"kernelspec": {"name": "cpython-3.14"}}}),
        ),
        ("names no Jupyter kernel", json.dumps(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]))),
        ("is of another time", '{"nbformat": 99, "nbformat_minor": 0, "metadata": {}, "cells": []}'),
    ],
    ids=lambda value: value if " " in value and "{" not in value else "",
)
@pytest.mark.fault("press", "The notebook of a chapter {what}", "It is named, with what takes it back")
def test_source(tmp_path, seen, what, content):
    made = Chapter("victim", tmp_path / "notebooks")
    made.source.parent.mkdir(parents=True)
    made.source.write_text(content)
    for ask in (lambda: made.jupyter_kernel, lambda: made.pages):
        said = refused(ask, lambda _: None, tmp_path)
    assert "git checkout" in said
    seen(said.partition("damaged (")[2].partition(")")[0])


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.fault("press", "What a chapter handed in or kept is {how}", "It counts as not there")
def test_handed_in(page, seen, how, monkeypatch):
    for folder, name, ask in (
        (ledger.CLAIMS, "A1", lambda path: ledger.read_handed_in(path)),
        (tables.TABLES, "x", lambda path: tables.read(SMALLEST, "x")),
    ):
        path = page.executed.parent / folder / f"{name}.json"
        path.parent.mkdir()
        path.write_bytes(DAMAGED[how])
        monkeypatch.setattr(tables, "Chapter", lambda corner: page)
        assert ask(path) is None
    seen("no claim and no table")


@pytest.mark.parametrize("how", [*DAMAGED, "of texts", "of a folder"])
@pytest.mark.fault(
    "runs", "What runs took, and the log of a machine, in the cache are {how}", "They count as not there; no run stops"
)
def test_cache(tmp_path, seen, monkeypatch, how):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "ffi-hidden-corners"
    place.mkdir()
    for path in (place / "seconds.json", place / "x.jsonl"):
        if how == "of a folder":
            path.mkdir()
        else:
            path.write_bytes(DAMAGED.get(how, b'{"native projects": "long", "rendering": NaN, "chapter": -1}'))
    assert forecast.remembered() == {}
    assert history.read(place / "x.jsonl") == []
    forecast.remember("rendering", 20.0)
    assert how == "of a folder" or forecast.remembered() == {"rendering": 20.0}
    assert sorted(path.name for path in place.iterdir()) == ["seconds.json", "x.jsonl"]
    seen("nothing is remembered, and the run goes on")


@pytest.mark.fault(
    "runs", "A chapter was measured, and the log in the cache cannot be written", "The chapter is kept without the log"
)
def test_log_cannot_be_written(folder, tmp_path, seen, monkeypatch):
    (tmp_path / "ffi-hidden-corners").write_text("a file in the place of the cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    change(folder / "one" / "session.jsonl", lambda lines: lines[0]["plan"].update(budget="quick"))
    session = sessions.Reading(SMALLEST, sessions.find(folder, SMALLEST))
    assert session.budget.is_result
    history.keep(session)
    assert (tmp_path / "ffi-hidden-corners").is_file()
    seen("nothing is logged, nothing raised")


@pytest.mark.fault("press", "A file of evidence holds the marks of a merge", "It is named, with a word on git")
def test_merge(tmp_path, seen):
    path = tmp_path / "coverage.json"
    path.write_text("<<<<<<< HEAD\n[]\n=======\n[]\n>>>>>>> other\n")
    assert "take it back with git" in refused(lambda: read_json(path), seen, tmp_path)


# The command line.


def judge(*words, **options):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **options.pop("env", {})}
    command = [sys.executable, "-m", "ffilab", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, timeout=120, **options)


@pytest.mark.parametrize("what", ["a closed pipe", "ASCII", "a full disk", "nothing at all"])
@pytest.mark.fault("input", "What `judge` says goes to {what}", "No traceback")
def test_output(folder, seen, what):
    words, environment = (
        ("judge", str(folder)),
        {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "1", "TERM": "dumb"},
    )
    if what == "a closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        ended = judge(*words, stdout=writing)
        os.close(writing)
    elif what == "a full disk":
        with open("/dev/full", "w") as full:
            ended = judge(*words, stdout=full)
        assert ended.returncode
    elif what == "nothing at all":
        ended = judge(*words, preexec_fn=lambda: os.close(1))
    else:
        ended = judge(*words, stdout=subprocess.PIPE, env=environment)
        assert "A12" in ended.stdout
        assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    seen(ended.stderr.strip() or f"exit {ended.returncode}, and nothing else")


@pytest.mark.parametrize(
    "words",
    [("study", "os"), ("study", "notebooks.nothing"), ("study", "characteristics", "--corner", "x")],
    ids=" ".join,
)
@pytest.mark.fault("input", "A study or its seed is none: {words}", "Said before anything is built")
def test_study(seen, words):
    ended = judge(*words, stdout=subprocess.PIPE)
    assert ended.returncode == 1
    assert ended.stderr.startswith("ffilab: ")
    assert len(ended.stderr.splitlines()) == 1
    seen(ended.stderr.strip())
