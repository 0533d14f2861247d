"""The recipes of book/adding.md, done in a copy of the tree: a claim, a chapter, a binding, an interpreter."""

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest
from conftest import clean_environment

from ffilab.paths import ROOT
from ffilab.provision.catalogue import FREE_THREADED, GIL

pytestmark = pytest.mark.slow
FILES = (".gitignore", "Makefile", "README.md", "_config.yml", "_toc.yml", "pyproject.toml")
FOLDERS = ("book", "ffilab", "kernels", "native", "notebooks", "requirements", "tests")


@pytest.fixture
def clone(tmp_path):
    """A copy of the tree that shares this one's environments and has what was built."""
    tree = tmp_path / "clone"
    tree.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
    shutil.copytree(ROOT / "_build" / "native", tree / "_build" / "native", symlinks=True)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    for folder in (ROOT / "kernels" / "kernels").iterdir():
        if (folder / ".venv").exists():
            (tree / "kernels" / "kernels" / folder.name / ".venv").symlink_to(folder / ".venv")
    # A link is no folder, and the pattern in .gitignore is one for folders.
    add(tree / ".gitignore", ".venv\n")
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    return tree


def add(path: Path, text: str, before: str | None = None) -> None:
    """Append to a file, or put before a piece of it."""
    old = path.read_text()
    assert before is None or before in old
    path.write_text(old + text if before is None else old.replace(before, text + before, 1))


def run(clone, *command, **extra):
    """Run a command in the clone; what it prints. Its end must be good."""
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, env=clean_environment(**extra))
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def python(clone, code):
    return run(clone, sys.executable, "-c", textwrap.dedent(code), PYTHONPATH=str(clone), BUDGET="smoke")


def look_at_the_tree(clone):
    """The checks of the tree and of the pages, in the clone: what `make check` tells someone who follows a recipe."""
    files = ("tests/test_tree.py", "tests/test_pages.py")
    chosen = ("-k", "not records_alone and not stale and not golden")
    run(clone, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, *chosen, PYTHONPATH=str(clone))


def test_a_claim_is_one_folder(clone):
    corner = clone / "notebooks" / "loaders"
    rule = '{kind = "side", measured = "noop, CDLL / PyDLL on {GIL}", direction = "above", null = 1.0, interest = 0.02}'
    add(
        corner / "claims.toml",
        f"""
[[claim]]
id = "X1"
where = "here"
claim = "CDLL costs time."
published = "nothing"
test = [{rule}]
""",
    )
    add(
        corner / "claims.py",
        """    handed.put("X1", "noop, CDLL / PyDLL on {GIL}", results.comparison(record, GIL, "noop").measurement)
""",
        before="    return handed",
    )
    # Its records are there already: it is judged without measuring.
    ledger = run(clone, "make", "judge", "FROM=tests/golden")
    assert [line for line in ledger.splitlines() if line.startswith("X1")]
    look_at_the_tree(clone)


def quote(file, name):
    return (
        f'```{{literalinclude}} {file}\n:language: python\n:start-after: "# [{name}]"\n:end-before: "# [/{name}]"\n```'
    )


WORKER = "native/nothing/experiments.py"
# Text of a cell, and whether it is code.
PAGE = (
    ("# Nothing\n\nTeaching: 5 minutes. Exercise: 5 minutes.", False),
    (
        "from ffilab import chapter, draw\nfrom notebooks.nothing import experiment\n\n"
        'session = chapter.begin("nothing", gil_enabled=True)',
        True,
    ),
    (f"{quote('experiment.py', 'nothing')}\n\n{quote(f'../../{WORKER}', 'worker')}", False),
    ("record = experiment.nothing(session)\nruns = experiment.alone(session)", True),
    ("draw.table(runs)", True),
    ("chapter.verdicts(session)", True),
    ("chapter.end(session, gil_enabled=True)", True),
)
CHAPTER = {
    "notebooks/nothing/experiment.py": f'''"""What it measures."""

from ffilab.bench.case import Case
from ffilab.bench.plan import Arm

WORKER = "{WORKER}"


# [nothing]
def nothing(session):
    return session.time("nothing", [Arm("nothing", WORKER, "arm")])


def alone(session):
    cases = [Case(label, WORKER, "answer", {{"n": n}}) for label in session.interpreters for n in (1, 2)]
    return session.run("alone", cases, session.budget.repeats)


# [/nothing]
''',
    "notebooks/nothing/results.py": '"""Nothing yet."""\n',
    "notebooks/nothing/figures.py": '"""Nothing yet."""\n',
    "notebooks/nothing/claims.py": '''"""What it hands in."""

from ffilab.judge.ledger import Handed
from ffilab.judge.processes import measured


def measurements(session):
    handed = Handed(session.corner)
    handed.put("X1", "answer", measured(session.frame("alone").answer.to_numpy(float), ""))
    return handed
''',
    "notebooks/nothing/claims.toml": """[[claim]]
id = "X1"
where = "here"
claim = "The answer is large."
published = "42"
test = [{kind = "side", measured = "answer", direction = "above", null = 0.0, interest = 1.0}]
""",
    WORKER: '''"""Its worker's side."""

import time
import timeit


# [worker]
def arm():
    return timeit.Timer("pass", timer=time.perf_counter_ns)


def answer(n):
    return {"answer": 41 + n}


# [/worker]
''',
    "tests/test_nothing.py": '"""Nothing to test yet."""\n',
}


def test_a_chapter_is_one_folder_and_a_line_of_the_contents(clone):
    """With its native side and its tests. It is measured as the first thing in a clone in which nothing was measured."""
    for name, text in CHAPTER.items():
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text(text)
    cells = [nbformat.v4.new_code_cell(text) if code else nbformat.v4.new_markdown_cell(text) for text, code in PAGE]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": f"cpython-{GIL}", "display_name": "CPython", "language": "python"}
    nbformat.write(notebook, clone / "notebooks" / "nothing" / "nothing.ipynb")
    add(clone / "_toc.yml", "      - file: notebooks/nothing/nothing\n", before="  - caption: What it adds up to")
    run(clone, "make", "chapter", "NAME=nothing", "BUDGET=smoke", "KERNELS=pair")
    html = clone / "_build" / "html"
    assert "Teaching: 5 minutes" in (html / "notebooks/nothing/nothing.html").read_text()
    # The others say that they were not measured; the ledger knows the new claim; the course table lists it.
    assert "was not measured on this machine yet" in (html / "notebooks/loaders/loaders.html").read_text()
    rows = {row["id"]: row["verdict"] for row in json.loads((clone / "_build/results/ledger.json").read_text())}
    assert rows["X1"] == "cannot be tested here"  # a smoke test is no result
    assert rows["A12"] == "not measured yet"
    assert "5 min" in (html / "book/instructors.html").read_text()
    look_at_the_tree(clone)


def test_a_binding_is_one_folder(clone):
    """A second copy of the binding in the C API, under another name: found, built, measured beside the others."""
    corner = clone / "native" / "boundary"
    shutil.copytree(corner / "c_api", corner / "second", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    for path in [path for path in (corner / "second").rglob("*") if path.is_file()]:
        text = (
            path.read_text().replace("boundary_c_api", "boundary_second").replace("boundary-c-api", "boundary-second")
        )
        path.write_text(text.replace('"C API"', '"Second"'))
        path.rename(path.with_name(path.name.replace("c_api", "second")))
    said = python(
        clone,
        f"""
        from ffilab import native
        from ffilab.bench.session import Measuring
        from ffilab.provision import installed
        from notebooks.boundary import experiment
        failures = native.build_all(installed.pair())
        assert not failures, failures
        assert "Second" in experiment.BINDINGS
        session = Measuring("boundary", ["{GIL}", "{FREE_THREADED}"])
        arms = [experiment.call(binding, experiment.INT) for binding in ("C API", "Second")]
        record = session.time("matrix", arms)
        print([record.measured(label, arm.name) for label in record.interpreters for arm in arms])
        """,
    )
    assert said.splitlines()[-1] == "[True, True, True, True]"
    look_at_the_tree(clone)


def test_an_interpreter_is_one_entry_and_a_folder_for_each_build(clone):
    """A version that nobody can build yet: known everywhere, left out of the run, and said so on the page."""
    catalogue = clone / "ffilab" / "provision" / "catalogue.py"
    entry = '    "3.99": Source("3.99.0", "0" * 64, "pool/none"),\n'
    add(catalogue, entry, before="}\n\n\n@dataclass(frozen=True, order=True)")
    for end in ("", "t"):
        old = clone / "kernels" / "kernels" / f"cpython-3.15{end}"
        shutil.copytree(old, old.with_name(f"cpython-3.99{end}"), ignore=shutil.ignore_patterns(".venv"))
    page = python(
        clone,
        """
        from pathlib import Path
        from ffilab.press.chapters import Chapter
        from ffilab.press.execute import execute
        from ffilab.provision.catalogue import BY_LABEL, parse
        assert parse("3.99t").required == (BY_LABEL["3.99t"],)
        print(execute(Chapter("critical_sections"), "smoke", Path("tests/golden").resolve()).read_text())
        """,
    )
    assert "3.99t (add them with" in page
    look_at_the_tree(clone)
