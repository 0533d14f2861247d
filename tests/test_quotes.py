"""Nothing that is measured is out of the reader's sight: it is quoted on the page, before the cell that runs it."""

import ast
import json
import re
from functools import cache

import nbformat
import pytest

from ffilab.judge.claims import chapter_names, declared
from ffilab.page.render import gone, without_tails
from ffilab.run.paths import NATIVE, NOTEBOOKS

CHAPTERS = chapter_names()
# What is in a chapter's folder and measures nothing: the exercise's check would give its solution away.
NO_MEASURING = {"exercise.py", "figures.py", "fragments.py", "numbers.py", "results.py"}
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


@cache
def definitions(path):
    """Functions and classes at the top of a file, by name."""
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def measures(node):
    """Does a function get the session, through which alone a chapter measures?"""
    return isinstance(node, ast.FunctionDef) and bool(node.args.args) and node.args.args[0].arg == "session"


def modules(chapter):
    """Module name to path of what this chapter measures with: its own files, and those of the chapters that it uses."""
    found = {}
    for name in (*declared(chapter).uses, chapter):
        for path in (NOTEBOOKS / name).glob("*.py"):
            if path.name not in NO_MEASURING:
                found[f"notebooks.{name}.{path.stem}"] = path
    return found


def aliases(tree, chapter):
    """Names under which a file or a page knows modules: {alias: path}, and single functions: {alias: (path, name)}."""
    known, whole, single = modules(chapter), {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (path := known.get(f"{node.module}.{alias.name}")) is not None:
                    whole[alias.asname or alias.name] = path
                elif (path := known.get(node.module)) is not None:
                    single[alias.asname or alias.name] = (path, alias.name)
    return whole, single


def called(node, here, tree, chapter):
    """(path, name) of everything of the chapter's own that some code takes by name, in this file or through an alias."""
    whole, single = aliases(tree, chapter)
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


def everything_behind(start, chapter):
    """All that these functions use of the chapter's own, however far down."""
    found, left = set(), set(start)
    while left:
        path, name = left.pop()
        found.add((path, name))
        tree = ast.parse(path.read_text())
        left |= called(definitions(path)[name], path, tree, chapter) - found
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


def worker_side(chapter):
    """Names of the functions and classes of the native files that this chapter may run in workers, with their paths."""
    found = {}
    for name in (*declared(chapter).uses, chapter):
        for path in (NATIVE / name).glob("*.py"):
            found |= {(path, function): function for function in definitions(path)}
    return found


def cells(chapter):
    return json.loads((NOTEBOOKS / chapter / f"{chapter}.ipynb").read_text())["cells"]


IN_CELLS = [chapter for chapter in CHAPTERS if not (NOTEBOOKS / chapter / "experiment.py").exists()]


@pytest.mark.parametrize("chapter", IN_CELLS)
def test_what_a_worker_runs_stands_in_a_cell_or_is_quoted(chapter):
    """Functions of a cell go to the worker as they stand there. What two cells share may be a module: the page quotes it."""
    markdown = "\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "markdown")
    on_the_page = quoted(markdown, NOTEBOOKS / chapter)
    code = ast.parse("\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "code"))
    missing = sorted(f"{path.name}:{name}" for path, name in shared(code) - on_the_page)
    assert not missing, missing


def shared(code):
    """(path, name) of what these cells take of modules of native/: by file and name, or from a module that they import."""
    strings = {n.value for n in ast.walk(code) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    files = {NATIVE.parent / text for text in strings if re.fullmatch(r"native/\w+/\w+\.py", text)}
    taken = {(path, name) for path in files for name in strings & set(definitions(path))}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("native"):
            for alias in node.names:
                module = NATIVE.parent / node.module.replace(".", "/")
                if (path := module.with_suffix(".py")).exists():
                    taken |= {(path, alias.name)} if alias.name in definitions(path) else set()
                elif (path := module / f"{alias.name}.py").exists():
                    used = {
                        part.attr
                        for part in ast.walk(code)
                        if isinstance(part, ast.Attribute)
                        and isinstance(part.value, ast.Name)
                        and part.value.id == (alias.asname or alias.name)
                    }
                    taken |= {(path, name) for name in used & set(definitions(path))}
    return taken


@pytest.mark.parametrize("chapter", [chapter for chapter in CHAPTERS if chapter not in IN_CELLS])
def test_what_measures_is_quoted_before_it_runs_and_runs_in_sight(chapter):
    folder, seen = NOTEBOOKS / chapter, set()
    on_the_page = quoted(
        "\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "markdown"), folder
    )
    page = ast.parse("\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "code"))
    for cell in cells(chapter):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            seen |= quoted(text, folder)
            continue
        direct = called(ast.parse(text), None, page, chapter)
        measuring = {(path, name) for path, name in direct if measures(definitions(path)[name])}
        if not measuring:
            continue
        where = f"cell {cell['id']} of {chapter}"
        assert not HIDDEN & set(cell["metadata"].get("tags", [])), f"{where} measures, and is hidden"
        behind = everything_behind(measuring, chapter)
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
            for (path, name), function in worker_side(chapter).items()
            if function in strings and (path, name) not in on_the_page and names_file(behind, path)
        )
        assert not outside, f"{where} runs, and the page does not quote: {', '.join(outside)}"


def names_file(behind, native):
    """Do the modules of these functions speak of that native file?"""
    ours = native.relative_to(NATIVE.parent).as_posix()
    texts = [path.read_text() for path in {path for path, _ in behind}]
    return any(ours in text or imports_file(text, ours) for text in texts)


def imports_file(text, ours):
    """Through a name of another chapter's module, such as `boundary.ARMS`."""
    for chapter in re.findall(r"from notebooks\.(\w+)", text):
        path = NOTEBOOKS / chapter / "experiment.py"
        if ours in path.read_text() and re.search(r"\bARMS\b|\bEXPERIMENTS\b", text):
            return True
    return False


FORBIDDEN = re.compile(
    r"\.(run|time|observe)\(|\binstalled\b|\bmachine\.(?!get)|\bsubprocess\b|os\.environ|\bcurrent\(\)|shutil\.which|\bsoabi\b"
    r"|ffilab\.measure\.(case|instructions|profile|runner)\b"
)


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("name", ["results.py", "figures.py", "numbers.py", "fragments.py"])
def test_what_says_shows_or_hands_in_does_not_measure(chapter, name):
    """No figure, number or claim looks at the machine: what they know is in the records."""
    path = NOTEBOOKS / chapter / name
    tree = ast.parse(path.read_text() if path.exists() else "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    code = ast.unparse(tree).replace("session.machine", "facts").replace("instructions.Node", "Node")
    code = code.replace("from ffilab.measure.instructions import Node", "")
    assert not (found := FORBIDDEN.search(code)), (chapter, name, found)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_hidden_cells_hold_tables_figures_and_words_only(chapter):
    """What is measured, and what is made of it, stands in sight; a hidden cell shows it."""
    for cell in cells(chapter):
        if cell["cell_type"] == "code" and HIDDEN & set(cell["metadata"].get("tags", [])):
            text = "".join(cell["source"])
            found = re.findall(
                r"session\.(?:run|time|observe|frame|timed)\(|\bresults\.\w+\(|\bexperiment\.\w+\(", text
            )
            assert not found, (cell["id"], found)


def test_quotes_end_without_blank_lines_and_lose_nothing():
    source = "# [a]\ndef a():\n    pass\n\n\n# [/a]\n\n\ndef b():\n    pass\n"
    assert without_tails(source) == "# [a]\ndef a():\n    pass\n# [/a]\n\n\ndef b():\n    pass\n"
    for path in NOTEBOOKS.glob("*/*.py"):
        text = path.read_text()
        assert [line for line in without_tails(text).splitlines() if line] == [
            line for line in text.splitlines() if line
        ]


def test_a_page_that_quotes_what_is_gone_is_not_shown(tmp_path):
    (tmp_path / "here.py").write_text("# [a]\ndef a(): ...\n# [/a]\n")

    def page(file, marker):
        quote = f'```{{literalinclude}} {file}\n:language: python\n:start-after: "# [{marker}]"\n:end-before: "# [/{marker}]"\n```'
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(quote)])

    assert gone(page("here.py", "a"), tmp_path) == []
    assert gone(page("here.py", "b"), tmp_path) == ["here.py: # [b]", "here.py: # [/b]"]
    assert gone(page("nowhere.py", "a"), tmp_path)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_page_quotes_what_is_gone(chapter):
    assert gone(nbformat.read(NOTEBOOKS / chapter / f"{chapter}.ipynb", as_version=4), NOTEBOOKS / chapter) == []
