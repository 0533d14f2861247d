"""Chapters through papermill and pages through Jupyter Book, on real kernels."""

import json

import nbformat
import pytest

from ffilab.judge import claims, verdicts
from ffilab.measure.alone import alone
from ffilab.page import contents, draw, execute, render
from ffilab.page.chapter import PAGE
from ffilab.page.contents import Chapter
from ffilab.run import paths

# The first of these waits for all chapters.
pytestmark = pytest.mark.timeout(3600)


def is_the_same_again(chapter, folder):
    """A page that was measured, and the one made from its records by the book's own interpreter."""
    again = Chapter(chapter.name, executed_folder=folder)
    execute.execute(again, "smoke", chapter.session.folder)

    def shown(page):
        """By cell; what the page keeps of itself says whether it was measured."""
        return {
            cell.id: [one for one in cell.get("outputs", []) if PAGE not in one.get("metadata", {}).get(draw.KEPT, {})]
            for cell in nbformat.read(page.executed, as_version=4).cells
        }

    live, made = shown(chapter), shown(again)
    assert not [cell for cell in live if live[cell] != made[cell]]
    assert again.facts["read"]
    assert again.changed() == []


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """One chapter as it was measured in smoke budget."""
    chapter = Chapter("loaders", executed_folder=tmp_path_factory.mktemp("live"))
    with alone():
        execute.execute(chapter, "smoke")
    return chapter


def test_a_measured_chapter_is_the_same_when_it_is_made_from_its_records(live, tmp_path):
    assert "smoke test" in live.executed.read_text()
    assert live.facts["budget"] == "smoke"
    assert not live.facts["read"]
    is_the_same_again(live, tmp_path)


@pytest.fixture(scope="module")
def html():
    """Every chapter in smoke budget, rendered with warnings as errors."""
    with alone():
        for chapter in contents.chapters():
            execute.execute(chapter, "smoke")
    return render.render().parent


def pages():
    return ["book/preface", "book/ledger", "book/status", "book/adding"] + [
        page for chapter in contents.chapters() for page in chapter.pages
    ]


@pytest.mark.full
def test_pages_are_there_and_smoke_is_marked(html):
    assert (html / "index.html").exists()
    for page in pages():
        assert (html / f"{page}.html").stat().st_size > 5_000
    assert "smoke test: no result" in (html / "notebooks" / "loaders" / "loaders.html").read_text()


@pytest.mark.full
@pytest.mark.parametrize("chapter", contents.chapters(), ids=lambda chapter: chapter.name)
def test_a_chapter_of_a_smoke_run(html, tmp_path, chapter):
    text = (html / f"{chapter.page}.html").read_text()
    assert 'class="pasted-text"' in text
    assert "{glue:" not in text
    if chapter.name != "loaders":
        is_the_same_again(chapter, tmp_path / "executed")


@pytest.mark.full
def test_ledger_of_a_smoke_run_judges_nothing(html):
    expected = {
        claim.id: verdicts.NOT_MEASURABLE if claim.not_measurable else verdicts.NO_RESULT
        for claim in claims.all_claims()
    }
    rows = json.loads((paths.RESULTS / "ledger.json").read_text())
    assert {row["id"]: row["verdict"] for row in rows} == expected
    assert not [part for row in rows for part in row["parts"]]
