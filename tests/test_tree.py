"""What the tree must look like: outputs stripped, no hosts of registries, no path of a machine, no lint."""

import ast
import importlib
import io
import json
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from ffilab.judge.claims import chapter_names, declared
from ffilab.page.contents import Chapter
from ffilab.run import settings
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import KERNELS, NOTEBOOKS, ROOT
from tests.helpers.environment import ran
from tests.helpers.tree import imported, listed, nodes, texts, tracked


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*/*.ipynb")), ids=lambda p: p.stem)
def test_notebook_is_stripped_and_names_a_kernel_of_the_book(path):
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert (KERNELS / notebook["metadata"]["kernelspec"]["name"] / "kernel.json").exists()
    assert "papermill" not in notebook["metadata"]
    assert "chapter.begin" in "".join(code[0]["source"])
    assert "chapter.end" in "".join(code[-1]["source"])
    # Where nothing was measured yet, a page is its first cell.
    pages = [c for n, c in enumerate(notebook["cells"]) if not n or "page:" in "".join(c["metadata"].get("tags", []))]
    assert not [page for page in pages if "{glue:" in "".join(page["source"])]


def test_kernels_are_relative():
    paths = list(KERNELS.glob("*/kernel.json"))
    assert paths
    for path in paths:
        assert json.loads(path.read_text())["argv"][0] == "{resource_dir}/.venv/bin/python"


def test_no_registry_host_and_no_path_of_a_machine():
    hosts = re.compile(r"pypi\.org|pythonhosted|crates\.io|deb\.debian|registry\.npmjs|proxy\.golang", re.I)
    # A clone may lie in a folder such as /book, of which a relative path is no trace.
    home = re.compile(r"/(home|Users)/\w+/|/ro[o]t/|(?<![\w.])" + re.escape(str(ROOT) + "/"))
    for path in tracked():
        if path.name != "test_tree.py":
            text = path.read_text(errors="replace")
            assert not hosts.search(text), path
            assert not home.search(text), path


def test_no_symbolic_links():
    """Not every copy of a tree keeps them: one that does not turns a source into the name of another."""
    assert not [line for line in listed("-s") if line.startswith("120000")]
    for path in tracked():
        text = path.read_bytes()[:200].decode(errors="replace")
        assert not re.fullmatch(r"\.\.?/[\w./-]+", text), path


def test_locks_are_hashed_and_carry_no_address():
    locks = [*ROOT.glob("requirements/*.txt"), *KERNELS.glob("*/requirements.txt")]
    assert len(locks) >= 7
    for lock in locks:
        text = lock.read_text()
        pins = len(re.findall(r"^[a-z0-9][\w.\-\[\]]*==", text, re.M | re.I))
        assert pins > 0
        assert len(re.findall(r"\\\n\s+--hash=sha256:", text)) >= pins
        assert "://" not in text
        assert "index-url" not in text


def test_ruff():
    for command in (["check"], ["format", "--check"]):
        answer = ran(sys.executable, "-m", "ruff", *command, ".", cwd=ROOT)
        assert answer.returncode == 0, answer.stdout


def test_hooks_before_a_commit_have_the_versions_of_the_lock():
    hooks, locked = ((ROOT / name).read_text() for name in (".pre-commit-config.yaml", "requirements/book.txt"))
    for repository, tool in (("ruff-pre-commit", "ruff"), ("codespell", "codespell")):
        version = re.search(rf"/{repository}\n +rev: v(\S+)\n", hooks)[1]
        assert f"\n{tool}=={version} " in locked


def test_architecture_names_what_is_there():
    """Every path and every test that it names, so that the page cannot outlive them."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    names = set(re.findall(r"`([\w./-]*/[\w./-]*)`|\]\(([\w./-]+)\)", text))
    paths = {name for pair in names for name in pair if name}
    # Two are made by who works here.
    assert {name for name in paths if not (ROOT / name).exists()} <= {"_build/", "my/"}
    for file, test in re.findall(r"`(test_\w+\.py)::(\w+)`", text):
        assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text(), test


def test_worker_side_imports_only_the_standard_library():
    extensions = {path.parent.name for path in ROOT.glob("native/*/*/pyproject.toml")}
    native = [*ROOT.glob("native/*.py"), *ROOT.glob("native/*/*.py")]
    allowed = set(sys.stdlib_module_names) | extensions | {path.stem for path in native}
    for path in [*native, *(ROOT / "ffilab/measure").glob("*worker.py")]:
        if path.name.startswith(("pyperf_", "nanoarrow_")):
            continue  # a library that is measured, in processes of its own
        names = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M)
        assert set(names) <= allowed, path


def test_one_chapter_one_name():
    """Every chapter has its folder of notebooks, with the files that a reader expects, its tests, and a line of the
    contents."""
    toc = (ROOT / "_toc.yml").read_text()
    for chapter in CHAPTERS:
        folder = NOTEBOOKS / chapter
        files = {path.name for path in folder.iterdir()}
        expected = {f"{folder.name}.ipynb", "figures.py", "numbers.py", "claims.toml"}
        assert expected <= files, folder.name
        assert all(f"{page}\n" in toc for page in Chapter(chapter).pages), folder.name
        assert (ROOT / f"tests/test_{folder.name}.py").exists() or (ROOT / f"tests/{folder.name}").is_dir()
    # Projects of a study stand there too.
    ours = {*CHAPTERS, "objects"}
    assert {path.relative_to(ROOT).parts[1] for path in tracked() if path.match("native/*/**/*")} <= ours


CHAPTERS = chapter_names()
PYTHON = [path for path in tracked() if path.suffix == ".py"]


def under(*folders: str) -> list[Path]:
    """The files of Python in these folders of the repository."""
    return [path for path in PYTHON if path.relative_to(ROOT).parts[0] in folders]


# They run alone: in a bare interpreter, as a compiler, or as what a reader copies.
ALONE = {"__main__", "bootstrap", "example", "link_recorder", "pgo_training"}


@pytest.mark.parametrize("folder", ["ffilab", "notebooks", "studies"])
def test_every_module_can_be_imported(folder):
    """A study that takes hours is run once in a year: it must not fail at its first line then."""
    for path in under(folder):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] not in ALONE and "bound" not in parts:
            importlib.import_module(".".join(parts).removesuffix(".__init__"))


def test_nobody_imports_studies():
    for path in under("ffilab", "notebooks"):
        assert not [name for name in imported(path) if name.startswith("studies")], path


def test_no_chapter_imports_another_unless_it_says_so():
    for chapter in CHAPTERS:
        allowed = {chapter, *declared(chapter).uses}
        for path in (NOTEBOOKS / chapter).glob("*.py"):
            others = {name.split(".")[1] for name in imported(path) if name.startswith("notebooks.")}
            assert others <= allowed, path


def test_the_instrument_knows_no_chapter():
    named = re.compile(rf"""["'/.](?:{"|".join(CHAPTERS)})["'/]""")
    for path in under("ffilab"):
        assert not [name for name in imported(path) if name.startswith(("notebooks", "tests"))], path
        assert not named.search(path.read_text()), path


def test_rooms_do_not_reach_back():
    """Setup knows nothing of measuring, measuring nothing of judging, judging nothing of pages; the verbs alone know
    all. Doctor asks, where it can, what setup knows, and build asks the doctor for headers: it is of no room."""
    rooms_in_order = ("run", "setup", "measure", "judge", "yours", "page", "atlas", "cli")
    for number, room in enumerate(rooms_in_order):
        rooms = rooms_in_order[number + 1 :]
        for path in [*(ROOT / "ffilab" / room).rglob("*.py"), *(ROOT / "ffilab").glob(f"{room}.py")]:
            names = {name.split(".")[1] for name in imported(path) if name.startswith("ffilab.")}
            assert not names & set(rooms), path


TAG = re.compile(
    r"</?(a|p|b|div|span|table|tr|td|th|ul|li|form|label|select|option|figure|img|svg|text|details|section|script)\b[^>]*>"
)
# What an executed notebook holds in itself, and what changes that.
WITH_TAGS = {"draw.py", "files.py", "fold.py"}


def test_markup_stands_in_templates():
    """A page is a template: no HTML in a text of Python, but for patterns that read it."""
    for path in under("ffilab"):
        if path.name not in WITH_TAGS:
            calls = [node for node in nodes(path, ast.Call) if ast.unparse(node.func).startswith("re.")]
            patterns = {id(argument) for call in calls for argument in ast.walk(call)}
            wrong = [node.value[:60] for node in texts(path) if id(node) not in patterns and TAG.search(node.value)]
            assert not wrong, path


COMPARED = re.compile(r"\.excludes\(|\.(low|high)\b[^,=\n]{0,3}[<>]|[<>]=? [\w.]+\.(low|high)\b")


def test_only_rules_compare_an_interval_with_a_limit():
    """A decision has one maker: code asks ffilab/judge/questions.py, a sentence by itself."""
    for path in under("ffilab", "notebooks"):
        if not path.is_relative_to(ROOT / "ffilab" / "judge"):
            assert not COMPARED.search(path.read_text()), path


VERSION = re.compile(r"""["'`{ -]3\.1\d+t?["'`} -]""")
GLUED_VERSION = re.compile(r"\{glue:text\}`[^`]*3\.1\d")


def test_no_chapter_names_a_version():
    """They run on GIL and FREE_THREADED of the catalogue. A claim, and prose on a version's source, may name what they
    speak of."""
    for path in under("notebooks", "native"):
        assert not [node.value for node in texts(path) if re.fullmatch(r"(cpython-)?3\.1\d+t?", node.value)], path
    for path in NOTEBOOKS.glob("*/*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            named = VERSION if cell["cell_type"] == "code" else GLUED_VERSION
            assert not named.search("".join(cell["source"])), (path, cell["id"])


def test_what_depends_on_the_budget_knows_every_budget():
    """A dict with a key for one budget has one for each: the missing one would end a chapter in the middle."""
    for path in under("ffilab", "notebooks"):
        for node in nodes(path, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            assert keys == set(BUDGETS) or not {"quick", "smoke"} <= keys, (path, keys)


BUDGETS_OF_ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ffilab"]


def room(path: Path) -> str:
    """The room that a file belongs to: of those with a budget, the innermost folder."""
    above = [folder.relative_to(ROOT).as_posix() for folder in path.parents if folder.is_relative_to(ROOT)]
    return next((name for name in above if name in BUDGETS_OF_ROOMS["lines"]), "")


WITHOUT_CODE = {"COMMENT", "DEDENT", "ENCODING", "ENDMARKER", "INDENT", "NEWLINE", "NL"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path) -> int:
    """Lines that hold code: without blanks, comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    code = [(token.start[0], token.end[0]) for token in tokens if tokenize.tok_name[token.type] not in WITHOUT_CODE]
    could = nodes(path, ast.Module, ast.ClassDef, *FUNCTIONS)
    documented = [node.body[0] for node in could if ast.get_docstring(node, clean=False) is not None]
    return len(lines_of(code) - lines_of((node.lineno, node.end_lineno) for node in documented))


def lines_of(spans: Iterable[tuple[int, int]]) -> set[int]:
    """The numbers of all lines from the first to the last of each span."""
    return {line for first, last in spans for line in range(first, last + 1)}


def statements(function: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1


def test_lines_of_code_are_what_is_neither_blank_nor_comment_nor_docstring(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""Docstring,\nof two lines."""\n\n# Comment.\nx = """\n\n"""\n\n'
        'def f():\n    """Docstring."""\n    return (\n        x  # why\n    )\n'
    )
    assert code_lines(path) == 3 + 1 + 3


def test_a_room_keeps_its_budget():
    """Raise a budget in pyproject.toml if what grew teaches, measures or keeps a result honest, and say so in the
    commit."""
    weight = dict.fromkeys(BUDGETS_OF_ROOMS["lines"], 0)
    for path in PYTHON:
        assert room(path), f"{path.relative_to(ROOT)} belongs to no room of pyproject.toml"
        weight[room(path)] += code_lines(path)
    over = {name: (weight[name], most) for name, most in BUDGETS_OF_ROOMS["lines"].items() if weight[name] > most}
    assert not over, f"rooms over their budget (lines of code, budget): {over}"


def test_no_module_and_no_function_is_long():
    long = set()
    for path in PYTHON:
        name = path.relative_to(ROOT).as_posix()
        long |= {name} if code_lines(path) > BUDGETS_OF_ROOMS["module"] else set()
        functions = nodes(path, *FUNCTIONS)
        long |= {f"{name} {node.name}" for node in functions if statements(node) > BUDGETS_OF_ROOMS["function"]}
    longer = set(BUDGETS_OF_ROOMS["longer_for_now"])
    assert not long - longer, "too long"
    assert not longer - long, "short enough to be taken off the list"


def test_our_environment_variables_are_listed_once():
    known = {name for name, value in vars(settings).items() if name.isupper() and isinstance(value, str)}
    assert len(known) <= 10
    # The last two run before, or without, anything else of ours.
    allowed = {"settings.py", "link_recorder.py", "bootstrap.py"}
    ours = re.compile(r"""["'](FFILAB_\w+)["']""")
    for path in PYTHON:
        if path.name not in allowed and not path.is_relative_to(ROOT / "tests"):
            assert not ours.search(path.read_text()), path
