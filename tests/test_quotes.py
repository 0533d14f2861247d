"""Nothing that is measured is out of the reader's sight: it stands in a cell that is seen, or is quoted on the page."""

import ast
import re
from functools import cache

import nbformat
import pytest

from ffilab.page.contents import Chapter, tags
from ffilab.page.render import gone, without_tails
from ffilab.run.paths import NATIVE, NOTEBOOKS
from tests.helpers.notebooks import typed

HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


@cache
def definitions(path):
    """Functions and classes at the top of a file, by name."""
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def quoted(markdown, folder):
    """(path, name) of the functions and classes that a piece of markdown quotes by its markers."""
    found = set()
    pattern = r"\{literalinclude\} (\S+\.py)\n((?::.*\n)*)"
    for file, options in re.findall(pattern, markdown):
        path = (folder / file).resolve()
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


def test_what_a_worker_runs_stands_in_a_cell_or_is_quoted(chapter):
    """Functions of a cell go to the worker as they stand there. What two cells share may be a module: the page quotes
    it."""
    on_the_page = quoted(typed(chapter), NOTEBOOKS / chapter)
    code = ast.parse("\n".join(c.source for c in Chapter(chapter).notebook.cells if c.cell_type == "code"))
    missing = sorted(f"{path.name}:{name}" for path, name in shared(code) - on_the_page)
    assert not missing, missing


def shared(code):
    """(path, name) of what these cells take of modules of native/: by file and name, or from a module that they
    import."""
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


FORBIDDEN = re.compile(
    r"\.(run|time|observe)\(|\binstalled\b|\bmachine\.(?!get)|\bsubprocess\b|os\.environ|\bcurrent\(\)|shutil\.which|\bsoabi\b"
    r"|ffilab\.measure\.(case|instructions|profile|runner)\b"
)


@pytest.mark.parametrize("name", ["figures.py", "numbers.py", "fragments.py"])
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


def test_hidden_cells_hold_tables_figures_and_words_only(chapter):
    """What is measured, and what is made of it, stands in sight; a hidden cell shows it."""
    measures = re.compile(r"session\.(?:run|time|observe|frame|timed)\(|\bnumbers\.\w+\(|\bexperiment\.\w+\(")
    for cell in Chapter(chapter).notebook.cells:
        if cell.cell_type == "code" and HIDDEN.intersection(tags(cell)):
            assert not measures.findall(cell.source), cell.id


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
        quote = (
            f"```{{literalinclude}} {file}\n:language: python\n"
            f':start-after: "# [{marker}]"\n:end-before: "# [/{marker}]"\n```'
        )
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(quote)])

    assert gone(page("here.py", "a"), tmp_path) == []
    assert gone(page("here.py", "b"), tmp_path) == ["here.py: # [b]", "here.py: # [/b]"]
    assert gone(page("nowhere.py", "a"), tmp_path)


def test_no_page_quotes_what_is_gone(chapter):
    assert gone(Chapter(chapter).notebook, NOTEBOOKS / chapter) == []
