"""The pages: each can be made from records alone, and says so when it is stale, or where a number is withheld."""

import json
import re
import shutil

import pytest

from ffilab.judge import numbers
from ffilab.judge.claims import declared
from ffilab.judge.sentences import sentence
from ffilab.page import advice
from ffilab.page import contents as chapters_module
from ffilab.page.contents import FACTS, Chapter, chapters, digests
from ffilab.page.execute import execute
from ffilab.page.render import not_measured, with_banner
from ffilab.run.paths import ROOT
from tests.helpers.changed_records import DISTURBED, beside_load
from tests.helpers.golden_pages import GOLDEN, page
from tests.helpers.notebooks import glued, shown, typed


def test_a_page_is_made_from_records_alone(chapter, executed):
    page = "".join(shown(executed.executed_notebook))
    facts = json.loads((GOLDEN / chapter / "session.jsonl").read_text().splitlines()[0])["machine"]
    assert f"Measured on {facts['cpu']}, {facts['cores']} cores, at {facts['date'].replace('T', ' ')}" in page
    assert facts["commit"] in page
    assert all(f"**{claim.id}: " in page for claim in declared(chapter).claims)


def test_a_page_is_made_when_processes_were_disturbed(chapter):
    """One of each case is left out, and what is paired with it has no partner."""
    assert page(chapter, DISTURBED).is_executed


def test_golden_records_hold_no_path_of_a_machine():
    paths = list(GOLDEN.parent.glob("golden*/*/*.jsonl"))
    assert paths
    for path in paths:
        text = path.read_text()
        assert not re.search(r'"/(?!proc|sys|lib|usr|dev|bin)\w+/', text), path
        assert str(ROOT) not in text


def test_a_page_of_which_something_changed_is_stale_and_says_so(tmp_path):
    chapter = Chapter("loaders", executed_folder=tmp_path)
    shutil.copytree(page("loaders").executed.parent, tmp_path / "loaders")
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
        ("notebooks/critical_sections/claims.toml", "the experiment"),
        ("notebooks/boundary/numbers.py", "the experiment"),  # it says that it uses that chapter
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


def test_other_chapters_do_not_count(tree):
    folder, facts = tree
    before = digests("loaders", facts)
    (folder / "notebooks/races/experiment.py").write_text("")
    assert digests("loaders", facts) == before


def test_a_chapter_that_was_not_measured_has_a_page_that_says_so():
    for chapter in chapters():
        for text in not_measured(chapter).values():
            assert text.startswith("# ")
            assert f"make chapter NAME={chapter.name}" in text
            assert "glue:" not in text


def test_exercises_have_two_levels_and_folded_solutions(chapter):
    exercises = re.findall(r"\{exercise\} .*\n:label: (\S+)", typed(chapter))
    solved = re.findall(r"\{solution-start\} (\S+)\n:label: \S+\n:class: dropdown", typed(chapter))
    assert len(exercises) >= 2
    assert sorted(exercises) == sorted(solved)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory):
    """A chapter made from golden records in which others used the cores all the time while calls were timed."""
    folder = tmp_path_factory.mktemp("beside load")
    beside_load(GOLDEN / "loaders", folder / "records", "calls")
    chapter = Chapter("loaders", executed_folder=folder / "executed")
    execute(chapter, "quick", folder / "records")
    return chapter


def test_what_is_withheld_says_so_at_the_number_and_nowhere_else(disturbed):
    notebook = disturbed.executed_notebook
    said = {card[2:5]: card for card in shown(notebook) if re.match(r"\*\*A\d+: ", card)}
    assert said["A12"].startswith("**A12: withheld.**")
    assert said["A12"].count("] (withheld)") == 2
    assert "withheld, disturbed, 'calls': " in said["A12"]
    # A13 and A14 rest on processes of their own.
    assert "withheld" not in said["A13"] + said["A14"]
    texts = glued(notebook)
    assert texts
    assert not [name for name, text in texts.items() if "(withheld)" in text]
    assert "stayed disturbed" in "".join(shown(notebook))
    # What no claim asks, but rests on the same, is told by no sentence either, here or on another page.
    assert [name for name, text in texts.items() if "to say: disturbed, 'calls': " in text]
    copy = advice.Copy({}, {"loaders": disturbed.session})
    (number, *_) = [name for name in numbers.numbers_of(disturbed.session) if "noop" in name]
    one = sentence("one", {"ask": {"number": number, "null": 1.0}, "yes": "More: {value}.", "*": "About {value}."})
    assert "is withheld: disturbed, 'calls': " in advice.evidence(advice.Advice("loaders", found=one), copy)
    assert not with_banner(disturbed)["loaders"].cells[1].source.startswith(":::")
