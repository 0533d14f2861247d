"""The recipes of book/adding.md, one after the other in one copy of the tree, whose whole fast suite is then run.

A chapter comes first, as a copy of one to which nothing was added; what a recipe leaves in the copy stays there for the
next one.
"""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from tests.helpers import small
from tests.helpers.environment import clean_environment, ran
from tests.helpers.tree import tracked

pytestmark = pytest.mark.full
SIDE_BAR = "tests/test_reading.py::test_the_side_bar_fits"
NAMES = sorted({path.relative_to(ROOT).parts[0] for path in tracked()})


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the tree that shares this one's environments and has what was built."""
    tree = small.copy(tmp_path_factory.mktemp("clone"), NAMES)
    shutil.copytree(ROOT / "_build" / "native", tree / "_build" / "native", symlinks=True)
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
    done = ran(*command, cwd=clone, env=clean_environment(**extra))
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def python(clone, code):
    return run(clone, sys.executable, "-c", textwrap.dedent(code), PYTHONPATH=str(clone), BUDGET="smoke")


def executed(clone, chapter):
    """A chapter's page, executed in the clone from the golden records."""
    return python(
        clone,
        f"""
        from pathlib import Path
        from ffilab.page.contents import Chapter
        from ffilab.page.execute import execute
        print(execute(Chapter("{chapter}"), "smoke", Path("tests/golden").resolve()).read_text())
        """,
    )


def test_a_chapter_is_one_folder_and_a_line_of_the_contents(clone):
    """A second copy of the chapter on loaders, under another name and with claims of its own: notebook, native side,
    sentences and notes. It is measured as the first thing in a clone in which nothing was measured."""
    for folder in ("notebooks", "native"):
        shutil.copytree(
            clone / folder / "loaders", clone / folder / "encore", ignore=shutil.ignore_patterns("build", "*zh_TW*")
        )
    # Its golden records are those of the original, as if they came from a run; what is known of its numbers is as well.
    shutil.copytree(clone / "tests/golden/loaders", clone / "tests/golden/encore")
    estimates = clone / "book" / "evidence" / "estimates.json"
    known = json.loads(estimates.read_text())
    known += [{**row, "chapter": "encore"} for row in known if row["chapter"] == "loaders"]
    estimates.write_text(json.dumps(known))
    for path in filter(Path.is_file, [*clone.glob("n*/encore/**/*"), *clone.glob("tests/golden/encore/*")]):
        # Claims X12 to X14 instead of A12 to A14.
        text = path.read_text().replace("loaders", "encore").replace("safe-to", "encore-to")
        path.write_text(re.sub(r"\bA(1[234]b?)\b", r"X\1", text))
        path.rename(path.with_name(path.name.replace("loaders", "encore")))
    (clone / "tests/test_encore.py").write_text('"""Nothing to test that the other chapter does not."""\n')
    add(clone / "_toc.yml", "      - file: notebooks/encore/encore\n", before="  - caption: 正體中文")
    rooms = clone / "pyproject.toml"
    room = re.compile(r'^("ffilab/setup"|native|notebooks|tests) = (\d+)', re.M)
    rooms.write_text(room.sub(lambda m: f"{m[1]} = {int(m[2]) + 1500}", rooms.read_text()))
    run(clone, "make", "chapter", "NAME=encore", "BUDGET=smoke", "KERNELS=pair")
    html = clone / "_build" / "html"
    assert "Questions" in (html / "notebooks/encore/encore.html").read_text()
    # The others say that they were not measured; the ledger knows the new claims; the course table lists the chapter.
    assert "was not measured on this machine yet" in (html / "notebooks/loaders/loaders.html").read_text()
    rows = {row["id"]: row["verdict"] for row in json.loads((clone / "_build/results/ledger.json").read_text())}
    assert rows["X12"] == "no result"  # a smoke test is no result
    assert rows["A12"] == "not measured yet"
    assert "notebooks/encore/encore.html" in (html / "book/instructors.html").read_text()


def test_a_claim_is_one_folder(clone):
    chapter = clone / "notebooks" / "loaders"
    rule = (
        '{kind = "side", number = "noop: ratio on {GIL}", part = "CDLL is dearer", direction = "above", null = 1.0, '
        'interest = 0.02, hard = "golden records are cut down"}'
    )
    add(
        chapter / "claims.toml",
        f"""
[[claim]]
id = "X1"
where = "here"
claim = "CDLL costs time."
published = "nothing"
section = "loaders#key-points"
saw = "One call that took longer."
differs = "Another machine."
test = [{rule}]
""",
    )
    run(clone, sys.executable, "-m", "ffilab", "study", "characteristics", "--from", "tests/golden")
    table = json.loads((clone / "book/evidence/operating_characteristics.json").read_text())
    right = {row["truth"]: row["right"] for row in table if row["claim"] == "X1"}
    assert right["as published"] == "holds"
    assert right["no effect"] == "does not hold"
    # Its records are there already: it is judged without measuring.
    ledger = run(clone, "make", "judge", "FROM=tests/golden")
    assert [line for line in ledger.splitlines() if line.startswith("X1")]


def test_a_limit_is_one_line_of_its_claim(clone):
    claims = clone / "notebooks" / "loaders" / "claims.toml"
    old = 'interest = 0.02, hard = "golden'
    assert claims.read_text().count(old) == 1
    claims.write_text(claims.read_text().replace(old, old.replace("0.02", "0.03")))
    assert "1.03" in run(clone, sys.executable, "-m", "ffilab", "judge", "tests/golden", "X1")


@pytest.fixture
def without(clone):
    """Take a claim out of the copied chapter's file, until the test ends."""
    claims = clone / "notebooks" / "encore" / "claims.toml"
    whole = claims.read_text()

    def taken_out(claim: str) -> None:
        entry = re.compile(rf'\[\[claim\]\]\nid = "{claim}"\n.*?(?=\[\[claim\]\]|\Z)', re.S)
        left, count = entry.subn("", whole)
        assert count == 1
        claims.write_text(left)

    yield taken_out
    claims.write_text(whole)


def test_a_claim_that_nobody_asks_goes_with_its_entry(clone, without):
    without("X12b")
    ledger = run(clone, "make", "judge", "FROM=tests/golden")
    assert "\nX13: " in ledger
    assert "\nX12b: " not in ledger


def test_a_sentence_that_still_asks_a_claim_is_refused_by_name(clone, without):
    without("X12")
    with pytest.raises(AssertionError, match=r"encore/sentences\.toml: .* asks X12 for"):
        python(clone, "from ffilab.judge import sentences; sentences.read_sentences('encore')")


def test_a_sentence_is_a_few_lines_and_a_place_on_the_page(clone):
    chapter = clone / "notebooks" / "loaders"
    sentence = """
[dearer]
ask = {number = "noop: ratio on {GIL}", null = 1.0}
yes = "CDLL costs time."
no = "CDLL costs no time."
open = "Whether CDLL costs time cannot be told here."
"""
    add(chapter / "sentences.toml", sentence)
    translated = '[dearer]\nyes = "CDLL 比較慢。"\nno = "CDLL 沒有比較慢。"\nopen = "這次量不出來。"\n'
    add(chapter / "sentences.zh_TW.toml", translated)
    for page in ("loaders.ipynb", "loaders.zh_TW.md"):
        add(chapter / page, r"{glue:text}`dearer` ", before="{glue:text}`prediction-1`")
    assert "'CDLL costs time." in executed(clone, "loaders")


def test_a_binding_is_one_folder(clone):
    """A second copy of the binding in the C API, under another name: found, built, measured beside the others."""
    chapter = clone / "native" / "boundary"
    shutil.copytree(chapter / "c_api", chapter / "second", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    for path in [path for path in (chapter / "second").rglob("*") if path.is_file()]:
        text = path.read_text().replace("boundary_c_api", "boundary_second")
        text = text.replace("boundary-c-api", "boundary-second")
        path.write_text(text.replace('"C API"', '"Second"'))
        path.rename(path.with_name(path.name.replace("c_api", "second")))
    files = [path.relative_to(clone / "native") for path in sorted((chapter / "second").rglob("*")) if path.is_file()]
    shown = [f"```{{literalinclude}} ../../native/{path}\n```\n" for path in files if path.name != "binding.toml"]
    add(clone / "notebooks/boundary/bindings.md", "\n".join(["\n(binding-second)=\n## Second\n", *shown]))
    said = python(
        clone,
        f"""
        from ffilab.setup import native
        from ffilab.measure.session import Measuring
        from ffilab.setup import installed
        from notebooks.boundary import experiment
        failures = native.build_all(installed.pair(), chapters=["boundary"])
        assert not failures, failures
        assert "Second" in experiment.BINDINGS
        session = Measuring("boundary", ["{GIL}", "{FREE_THREADED}"])
        arms = [experiment.call(binding, experiment.INT) for binding in ("C API", "Second")]
        record = session.time("matrix", arms)
        print([record.has(label, arm.name) for label in record.interpreters for arm in arms])
        """,
    )
    assert said.splitlines()[-1] == "[True, True, True, True]"


def test_an_interpreter_is_one_entry_and_a_folder_for_each_build(clone):
    """A version that nobody can build yet: known everywhere, left out of the run, and said so on the page."""
    catalogue = clone / "ffilab" / "setup" / "catalogue.py"
    entry = '    "3.98": Source("3.98.0", "0" * 64, "pool/none"),\n'
    add(catalogue, entry, before="}\n\n\n@dataclass(frozen=True, order=True)")
    for end in ("", "t"):
        old = clone / "kernels" / "kernels" / f"cpython-3.15{end}"
        shutil.copytree(old, old.with_name(f"cpython-3.98{end}"), ignore=shutil.ignore_patterns(".venv"))
    required = "from ffilab.setup.catalogue import parse; print(*(one.label for one in parse('3.98t').required))"
    assert python(clone, required) == "3.98t\n"
    assert "3.98t (add them with" in executed(clone, "critical_sections")


@pytest.mark.timeout(5400)
def test_the_whole_fast_suite_passes_with_all_of_them(clone):
    """After what the recipes renew by a command: operating characteristics and snapshots."""
    run(clone, sys.executable, "-m", "ffilab", "study", "characteristics")
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", "--maxprocesses", "4")
    chosen = ("-k", "loaders or encore or boundary or critical_sections")
    run(clone, *pytest_, "tests/test_snapshots.py", "--renew", *chosen)
    run(clone, *pytest_, "tests/test_parts.py", "tests/test_forms.py", "--renew")
    # Named, so that nobody asks how long it takes beside others.
    # The side bar is full with the chapters that are there: who adds one folds a group.
    run(clone, *pytest_, "--dist", "worksteal", "-m", "not full", "tests", "--deselect", SIDE_BAR)
