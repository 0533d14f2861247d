"""The pages: nothing measured is out of the reader's sight, and each can be made from records alone."""

import ast
import json
import math
import os
import re
import shutil
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from ffilab import draw, paths
from ffilab.judge import again
from ffilab.judge.claims import corners, declared
from ffilab.judge.estimates import Interval
from ffilab.paths import NATIVE, NOTEBOOKS, ROOT
from ffilab.press import chapters as chapters_module
from ffilab.press import tables
from ffilab.press.chapters import FACTS, Chapter, chapters, digests, split
from ffilab.press.execute import execute
from ffilab.press.render import gone, not_measured, with_banner, without_tails

CORNERS = corners()
# What is in a corner's folder and measures nothing: the exercise's check would give its solution away.
NO_MEASURING = {"claims.py", "exercise.py", "figures.py", "results.py", "words.py"}
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


@cache
def definitions(path):
    """Functions and classes at the top of a file, by name."""
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def measures(node):
    """Does a function get the session, through which alone a chapter measures?"""
    return isinstance(node, ast.FunctionDef) and bool(node.args.args) and node.args.args[0].arg == "session"


def modules(corner):
    """Module name to path of what this corner measures with: its own files, and those of the corners that it uses."""
    found = {}
    for name in (*declared(corner).uses, corner):
        for path in (NOTEBOOKS / name).glob("*.py"):
            if path.name not in NO_MEASURING:
                found[f"notebooks.{name}.{path.stem}"] = path
    return found


def aliases(tree, corner):
    """Names under which a file or a page knows modules: {alias: path}, and single functions: {alias: (path, name)}."""
    known, whole, single = modules(corner), {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (path := known.get(f"{node.module}.{alias.name}")) is not None:
                    whole[alias.asname or alias.name] = path
                elif (path := known.get(node.module)) is not None:
                    single[alias.asname or alias.name] = (path, alias.name)
    return whole, single


def called(node, here, tree, corner):
    """(path, name) of everything of the corner's own that some code takes by name, in this file or through an alias."""
    whole, single = aliases(tree, corner)
    found = set()
    own = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    own |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in own:
            continue
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in whole:
            path = whole[part.value.id]
            if part.attr in definitions(path):
                found.add((path, part.attr))
        elif isinstance(part, ast.Name) and part.id in single:
            path, name = single[part.id]
            if name in definitions(path):
                found.add((path, name))
        elif isinstance(part, ast.Name) and here is not None and part.id in definitions(here):
            found.add((here, part.id))
    return found


def everything_behind(start, corner):
    """All that these functions use of the corner's own, however far down."""
    found, left = set(), set(start)
    while left:
        path, name = left.pop()
        found.add((path, name))
        tree = ast.parse(path.read_text())
        left |= called(definitions(path)[name], path, tree, corner) - found
    return found


def quoted(markdown, folder):
    """(path, name) of the functions and classes that a piece of markdown quotes by its markers."""
    found = set()
    pattern = r"\{literalinclude\} (\S+\.py)\n((?::.*\n)*)"
    for file, options in re.findall(pattern, markdown):
        path = (folder / file).resolve()
        if named := re.search(r":pyobject: (\w+)\n", options):
            assert named.group(1) in definitions(path), f"{path} has no {named.group(1)}"
            found.add((path, named.group(1)))
            continue
        lines = path.read_text().splitlines()
        begin = re.search(r':start-after: "?(.*?)"?\n', options)
        end = re.search(r':end-before: "?(.*?)"?\n', options)
        first = next((n for n, line in enumerate(lines, 1) if begin.group(1) in line), None) if begin else 0
        assert first is not None, f"{path} has no marker {begin.group(1)}"
        last = next(
            (n for n, line in enumerate(lines, 1) if n > first and end and end.group(1) in line), len(lines) + 1
        )
        found |= {(path, name) for name, node in definitions(path).items() if first < node.lineno < last}
    return found


def worker_side(corner):
    """Names of the functions and classes of the native files that this corner may run in workers, with their paths."""
    found = {}
    for name in (*declared(corner).uses, corner):
        for path in (NATIVE / name).glob("*.py"):
            found |= {(path, function): function for function in definitions(path)}
    return found


def cells(corner):
    return json.loads((NOTEBOOKS / corner / f"{corner}.ipynb").read_text())["cells"]


@pytest.mark.parametrize("corner", CORNERS)
def test_what_measures_is_quoted_before_it_runs_and_runs_in_sight(corner):
    folder, seen = NOTEBOOKS / corner, set()
    on_the_page = quoted("\n".join("".join(c["source"]) for c in cells(corner) if c["cell_type"] == "markdown"), folder)
    page = ast.parse("\n".join("".join(c["source"]) for c in cells(corner) if c["cell_type"] == "code"))
    for cell in cells(corner):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            seen |= quoted(text, folder)
            continue
        direct = called(ast.parse(text), None, page, corner)
        measuring = {(path, name) for path, name in direct if measures(definitions(path)[name])}
        if not measuring:
            continue
        where = f"cell {cell['id']} of {corner}"
        assert not HIDDEN & set(cell["metadata"].get("tags", [])), f"{where} measures, and is hidden"
        behind = everything_behind(measuring, corner)
        missing = sorted(f"{path.name}:{name}" for path, name in behind - seen)
        assert not missing, f"{where} measures by what the page does not quote before it: {', '.join(missing)}"
        strings = {
            part.value
            for path, name in behind
            for part in ast.walk(definitions(path)[name])
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        outside = sorted(
            f"{path.parent.name}/{path.name}:{name}"
            for (path, name), function in worker_side(corner).items()
            if function in strings and (path, name) not in on_the_page and names_file(behind, path)
        )
        assert not outside, f"{where} runs, and the page does not quote: {', '.join(outside)}"


def names_file(behind, native):
    """Do the modules of these functions speak of that native file?"""
    ours = native.relative_to(NATIVE.parent).as_posix()
    texts = [path.read_text() for path in {path for path, _ in behind}]
    return any(ours in text or imports_file(text, ours) for text in texts)


def imports_file(text, ours):
    """Through a name of another corner's module, such as `boundary.ARMS`."""
    for corner in re.findall(r"from notebooks\.(\w+)", text):
        path = NOTEBOOKS / corner / "experiment.py"
        if ours in path.read_text() and re.search(r"\bARMS\b|\bEXPERIMENTS\b", text):
            return True
    return False


FORBIDDEN = re.compile(
    r"\.(run|time|observe)\(|\binstalled\b|\bmachine\.(?!get)|\bsubprocess\b|os\.environ|\bcurrent\(\)|shutil\.which|\bsoabi\b"
    r"|ffilab\.bench\.(case|instructions|profile|runner)\b"
)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("name", ["results.py", "figures.py", "claims.py", "words.py"])
def test_what_says_shows_or_hands_in_does_not_measure(corner, name):
    """No figure, number or claim looks at the machine: what they know is in the records."""
    path = NOTEBOOKS / corner / name
    tree = ast.parse(path.read_text() if path.exists() else "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    code = ast.unparse(tree).replace("session.machine", "facts").replace("instructions.Node", "Node")
    code = code.replace("from ffilab.bench.instructions import Node", "")
    assert not (found := FORBIDDEN.search(code)), (corner, name, found)


@pytest.mark.parametrize("corner", CORNERS)
def test_hidden_cells_hold_tables_figures_and_words_only(corner):
    """What is measured, and what is made of it, stands in sight; a hidden cell shows it."""
    for cell in cells(corner):
        if cell["cell_type"] == "code" and HIDDEN & set(cell["metadata"].get("tags", [])):
            text = "".join(cell["source"])
            found = re.findall(
                r"session\.(?:run|time|observe|frame|timed)\(|\bresults\.\w+\(|\bexperiment\.\w+\(", text
            )
            assert not found, (cell["id"], found)


GOLDEN = Path(__file__).with_name("golden")
WITH_GOLDEN = [corner for corner in CORNERS if (GOLDEN / corner).is_dir()]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """Every page made from golden records, without measuring: {corner: executed notebook}."""
    folder = tmp_path_factory.mktemp("pages")

    def made(corner):
        chapter = Chapter(corner, executed_folder=folder / "executed")
        return corner, nbformat.read(execute(chapter, "smoke", GOLDEN), as_version=4)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(made, WITH_GOLDEN))


@pytest.mark.parametrize("corner", CORNERS)
def test_a_page_is_made_from_records_alone(golden, corner):
    if corner not in WITH_GOLDEN:
        pytest.skip(f"no golden records of {corner} yet: `python tests/golden/make.py _build/records`")
    outputs = [output for cell in golden[corner].cells for output in cell.get("outputs", [])]
    said = "".join(output["data"].get("text/markdown", "") for output in outputs if "data" in output)
    facts = json.loads((GOLDEN / corner / "session.jsonl").read_text().splitlines()[0])["machine"]
    assert f"Measured on {facts['cpu']}, {facts['cores']} cores, at {facts['date'].replace('T', ' ')}" in said
    assert facts["commit"] in said
    claimed = [claim.id for claim in declared(corner).claims]
    assert all(f"**{identifier}: " in said for identifier in claimed)
    # A chapter may have several pages, and what is glued on one is not known on the next.
    for name, page in split(golden[corner], corner).items():
        used = {found for cell in page.cells for found in re.findall(r"\{glue:text\}`([^`]+)`", cell.source)}
        outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
        glued = {o["metadata"]["scrapbook"]["name"] for o in outputs if "scrapbook" in o.get("metadata", {})}
        assert used <= glued, (name, used - glued)


def test_verdicts_of_the_golden_records_are_those_that_were_kept():
    """A change of rules, of results or of the way from record to verdict shows here: make the file again, and say why."""
    kept = json.loads((GOLDEN / "ledger.json").read_text())
    # They are cut down: too short to find their own positive control.
    rows = [row for row in again.rows(GOLDEN, whatever_the_controls=True) if row["id"] in kept]
    assert {row["id"]: row["verdict"] for row in rows} == {name: one["verdict"] for name, one in kept.items()}
    for row in rows:
        for name, value in row["measured"].items():
            expected = kept[row["id"]]["measured"][name]
            assert [value, *row["interval"][name]] == pytest.approx(expected, rel=1e-6, nan_ok=True), (row["id"], name)


def test_golden_records_hold_no_path_of_a_machine():
    for path in GOLDEN.glob("*/*.jsonl"):
        text = path.read_text()
        assert not re.search(r'"/(?!proc|sys|lib|usr|dev|bin)\w+/', text), path
        assert str(ROOT) not in text


def test_a_page_of_which_something_changed_is_stale_and_says_so(golden, tmp_path, monkeypatch):
    chapter = Chapter("loaders", executed_folder=tmp_path)
    execute(chapter, "smoke", GOLDEN)
    assert chapter.changed() == []
    assert "stale" not in {cell.id for page in with_banner(chapter).values() for cell in page.cells}
    facts = chapter.facts
    for what in facts["digests"]:
        (chapter.executed.parent / FACTS).write_text(
            json.dumps({**facts, "digests": {**facts["digests"], what: "other"}})
        )
        assert chapter.changed() == [what]
        banner = with_banner(chapter)["loaders"].cells[1]
        assert what in banner.source
        assert "make chapter NAME=loaders" in banner.source
    (chapter.executed.parent / FACTS).unlink()
    assert chapter.changed()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Copies of the chapters and their native code, free to be changed; and the facts of a page made from them."""
    ignored = shutil.ignore_patterns("__pycache__", "build", "target")
    for name in ("NOTEBOOKS", "NATIVE"):
        source = getattr(chapters_module, name)
        shutil.copytree(source, tmp_path / source.name, ignore=ignored)
        monkeypatch.setattr(chapters_module, name, tmp_path / source.name)
    (tmp_path / "session.jsonl").write_text("record")
    facts = {"records": [str(tmp_path / "session.jsonl")], "read": False, "interpreters": {"3.14": "x"}}
    return tmp_path, facts


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("notebooks/critical_sections/critical_sections.ipynb", "the notebook"),
        ("notebooks/critical_sections/experiment.py", "the experiment"),
        ("notebooks/critical_sections/claims.toml", "the experiment"),
        ("notebooks/boundary/experiment.py", "the experiment"),  # it says that it uses that corner
        ("notebooks/measuring/results.py", "the experiment"),  # and that one uses this
        ("native/critical_sections/lock_pieces/lock_pieces.c", "its native source"),
        ("native/boundary/arms.py", "its native source"),
        ("native/threads.py", "its native source"),
        ("session.jsonl", "its records"),
    ],
)
def test_every_file_that_a_page_is_made_from_counts(tree, file, what):
    folder, facts = tree
    before = digests("critical_sections", facts)
    (folder / file).write_text((folder / file).read_text() + "\n")
    after = digests("critical_sections", facts)
    assert [name for name in before if before[name] != after[name]] == [what]


def test_another_build_of_an_interpreter_counts_for_pages_measured_here(tree, monkeypatch):
    _, facts = tree
    before = digests("loaders", facts)
    monkeypatch.setattr(chapters_module, "stamp", lambda label: "another build")
    assert digests("loaders", facts)["an interpreter"] != before["an interpreter"]
    assert "an interpreter" not in digests("loaders", {**facts, "read": True})


def test_other_corners_do_not_count(tree):
    folder, facts = tree
    before = digests("loaders", facts)
    (folder / "notebooks/races/experiment.py").write_text("")
    assert digests("loaders", facts) == before


def test_a_chapter_that_was_not_measured_has_a_page_that_says_so():
    for chapter in chapters():
        for text in not_measured(chapter).values():
            assert text.startswith("# ")
            assert f"make chapter NAME={chapter.corner}" in text
            assert "glue:" not in text


def test_quotes_end_without_blank_lines_and_lose_nothing():
    source = "# [a]\ndef a():\n    pass\n\n\n# [/a]\n\n\ndef b():\n    pass\n"
    assert without_tails(source) == "# [a]\ndef a():\n    pass\n# [/a]\n\n\ndef b():\n    pass\n"
    for path in NOTEBOOKS.glob("*/*.py"):
        text = path.read_text()
        assert [line for line in without_tails(text).splitlines() if line] == [
            line for line in text.splitlines() if line
        ]


def typed(corner):
    return "\n".join("".join(cell["source"]) for cell in cells(corner) if cell["cell_type"] == "markdown")


# The others are still to follow.
WITH_WORDS = [corner for corner in CORNERS if (NOTEBOOKS / corner / "words.py").exists()]


@pytest.mark.parametrize("corner", WITH_WORDS)
def test_every_prediction_is_answered_by_the_run(corner):
    sections = re.findall(r"^## Your prediction.*?\n(.*?)(?=^## |\Z)", typed(corner), re.M | re.S)
    asked = {number for section in sections for number in re.findall(r"^(\d+)\. ", section, re.M)}
    answered = set(re.findall(r"\{glue:text\}`prediction-(\d+)`", typed(corner)))
    assert asked
    assert asked == answered


@pytest.mark.parametrize("corner", WITH_WORDS)
def test_exercises_have_two_levels_and_folded_solutions(corner):
    exercises = re.findall(r"\{exercise\} .*\n:label: (\S+)", typed(corner))
    solved = re.findall(r"\{solution-start\} (\S+)\n:label: \S+\n:class: dropdown", typed(corner))
    assert len(exercises) >= 2
    assert sorted(exercises) == sorted(solved)


@pytest.fixture(scope="module")
def beside_load(tmp_path_factory):
    """A chapter made from golden records in which others used the cores all the time: a control that fails."""
    folder = tmp_path_factory.mktemp("beside load")
    shutil.copytree(GOLDEN / "loaders", folder / "records")
    plan = folder / "records" / "calls.jsonl"
    lines = [json.loads(line) for line in plan.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "block":
            line["strangers_s"] = line["wall_s"]
    plan.write_text("".join(json.dumps(line) + "\n" for line in lines))
    chapter = Chapter("loaders", executed_folder=folder / "executed")
    execute(chapter, "smoke", folder / "records")
    return chapter


def test_a_page_whose_controls_failed_is_marked_all_over(beside_load):
    cells = nbformat.read(beside_load.executed, as_version=4).cells
    outputs = [
        output for cell in cells for output in cell.get("outputs", []) if "scrapbook" in output.get("metadata", {})
    ]
    assert outputs
    assert all("(withheld)" in next(iter(output["data"].values())) for output in outputs)


def test_the_banner_says_which_controls_failed(beside_load):
    reasons = beside_load.facts["withheld"]
    assert any(reason.startswith("other load") for reason in reasons)
    cell = with_banner(beside_load)["loaders"].cells[1]
    assert cell.id == "withheld"
    assert all(draw.plain(reason) in cell.source for reason in reasons)
    (beside_load.executed.parent / FACTS).write_text(json.dumps({**beside_load.facts, "withheld": []}))
    assert "withheld" not in {cell.id for cell in with_banner(beside_load)["loaders"].cells}


def test_what_is_shown_is_marked_by_what_is_known_then(monkeypatch):
    monkeypatch.setattr(draw, "_page", dict(draw._page))
    failed = []
    draw.start_page(True, lambda: failed)
    assert draw.mark() == ""
    failed.append("A/A")
    assert draw.mark() == draw.WITHHELD
    draw.start_page(False, lambda: failed)
    assert draw.mark() == draw.SMOKE


def test_a_notebook_is_split_into_pages():
    cell = nbformat.v4.new_markdown_cell
    notebook = nbformat.v4.new_notebook(
        cells=[cell("# One"), cell("text"), cell("# Two", metadata={"tags": ["page:two"]}), cell("more")]
    )
    pages = split(notebook, "one")
    assert {name: [each.source for each in page.cells] for name, page in pages.items()} == {
        "one": ["# One", "text"],
        "two": ["# Two", "more"],
    }


def test_a_table_is_kept_as_csv_with_its_bounds_in_columns_of_their_own():
    frame = pd.DataFrame({"arm": ["a", "b"], "time": ["1,050 ns [1,000, 1,100]", "not measured here"]})
    assert draw.spread_out(frame).fillna("").to_dict("list") == {
        "arm": ["a", "b"],
        "time": ["1,050", "not measured here"],
        "time, unit": ["ns", ""],
        "time, low": ["1,000", ""],
        "time, high": ["1,100", ""],
    }
    link = re.search(r'href="data:text/csv;base64,([^"]+)"', draw.csv_link(frame, "table"))
    assert b64decode(link.group(1)).decode().splitlines()[0] == 'arm,time,"time, unit","time, low","time, high"'


def test_a_table_is_kept_for_other_pages_with_its_mark(tmp_path, monkeypatch):
    chapter = Chapter("loaders", executed_folder=tmp_path)
    monkeypatch.setattr(tables, "Chapter", lambda corner: chapter)
    monkeypatch.setenv(paths.TABLES_FOLDER, str(chapter.executed.parent / tables.TABLES))
    monkeypatch.setattr(draw, "_page", dict(draw._page))
    draw.start_page(False)
    frame = pd.DataFrame({"arm": ["a"], "time": ["1.5 ns [1.4, 1.6]"]})
    draw.table(frame, "What it took.", keep="times")
    found = tables.read("loaders", "times")
    pd.testing.assert_frame_equal(found.frame, frame)
    assert (found.caption, found.mark) == ("What it took.", draw.SMOKE)
    assert tables.read("loaders", "nothing") is None


def test_an_interval_without_width_is_not_printed_as_one():
    assert draw.text(Interval(0.814, 0.814, 0.814), "ns") == "0.814 ns (all values alike)"
    assert draw.text(Interval(0.8, 0.7, 0.9)) == "0.80 [0.70, 0.90]"
    assert draw.text(Interval(0.8, math.nan, math.nan), "ns") == "0.8 ns (no interval)"
    assert draw.text(Interval(1.05, 1.0004, 1.1)) == "1.0500 [1.0004, 1.1000]"
    assert draw.text(Interval(28.0, 0.2, 55.0), "ns") == "28.0 ns [0.2, 55.0]"
    assert draw.text(Interval(math.nan, math.nan, math.nan)) == "not known"
    assert draw.text(Interval(1760.0, 1760.0, 1760.0), "KiB") == "1,760 KiB (all values alike)"


def test_a_page_that_quotes_what_is_gone_is_not_shown(tmp_path):
    (tmp_path / "here.py").write_text("# [a]\ndef a(): ...\n# [/a]\n")

    def page(file, marker):
        quote = f'```{{literalinclude}} {file}\n:language: python\n:start-after: "# [{marker}]"\n:end-before: "# [/{marker}]"\n```'
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(quote)])

    assert gone(page("here.py", "a"), tmp_path) == []
    assert gone(page("here.py", "b"), tmp_path) == ["here.py: # [b]", "here.py: # [/b]"]
    assert gone(page("nowhere.py", "a"), tmp_path)


@pytest.mark.parametrize("corner", CORNERS)
def test_no_page_quotes_what_is_gone(corner):
    assert gone(nbformat.read(NOTEBOOKS / corner / f"{corner}.ipynb", as_version=4), NOTEBOOKS / corner) == []
