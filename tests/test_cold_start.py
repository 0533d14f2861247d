"""The first run on a machine: progress in a log and on a terminal, and a first page to read."""

import contextlib
import io

import pytest
from rich.console import Console

from ffilab.page import book, render
from ffilab.page.contents import Chapter
from ffilab.run import progress
from ffilab.run.errors import UserError
from ffilab.setup import installed
from ffilab.setup.catalogue import parse
from tests.helpers import small


def test_a_log_gets_lines_with_what_is_known(monkeypatch, capsys):
    log = io.StringIO()
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", -1)
    monkeypatch.setattr(progress, "console", Console(file=log))
    with progress.step("work") as bar:
        bar.update(None, "starting")
        bar.update(0.5, "half", seconds_left=200)
    begun = ["  work …", "  work: starting", "  work: 50% half about 3 min 20 s left"]
    assert log.getvalue().splitlines()[:3] == begun
    assert log.getvalue().splitlines()[3].startswith("  work: done in ")


def test_a_terminal_gets_one_live_line_and_the_end_stays(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=screen, force_terminal=True, width=120))
    # One step may hold another.
    with progress.step("outer") as outer, progress.step("inner") as inner:
        outer.update(None, "nothing is known of it")
        inner.update(0.25, "a quarter", seconds_left=90)
        # The screen is drawn ten times a second.
        assert small.wait_for(lambda: "a quarter" in screen.getvalue())
    assert "about 1 min 30 s left" in screen.getvalue()
    assert "outer: done in" in screen.getvalue()


@pytest.fixture
def press(tell, tmp_path, monkeypatch):
    """A book of three chapters that only notes what happens."""
    events = []
    chapters = ["arenas", "loaders", "races"]
    monkeypatch.setattr(book, "HTML", tmp_path / "html")
    monkeypatch.setattr(book, "chapters", lambda: [Chapter(chapter, executed_folder=tmp_path) for chapter in chapters])
    monkeypatch.setattr(book, "in_order", lambda: [Chapter("loaders")])
    monkeypatch.setattr(book, "source_digests", lambda chapter: {})
    monkeypatch.setattr(book, "set_up", lambda *_: [installed.Installed(parse("3.14").required[0], None, {})])
    monkeypatch.setattr(book.worked_example, "measure", lambda budget: None)
    monkeypatch.setattr(book, "drawn_layouts", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(book, "execute", lambda chapter, *_, **__: events.append(chapter.name))
    # Whatever was measured, something can be rendered.
    monkeypatch.setattr(Chapter, "is_executed", True)
    monkeypatch.setattr(book.render, "render", lambda again=False: events.append("render"))
    tell(interpreters=None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return events


def test_in_a_fresh_clone_the_first_chapter_can_be_read_while_the_others_are_measured(press, capsys):
    book.book(parse("pair"), "smoke")
    assert press == ["loaders", "render", "arenas", "render", "races", "render"]
    said = capsys.readouterr().err
    assert said.startswith("  this takes about ")
    assert "notebooks/loaders/loaders.html" in said
    assert "1 of 3 chapters" in said


def test_a_page_that_cannot_be_rendered_yet_stops_no_measuring(press, monkeypatch, capsys):
    def render(again=False):
        press.append("render")
        if "races" not in press:
            raise UserError("a page is missing")

    monkeypatch.setattr(book.render, "render", render)
    book.book(parse("pair"), "smoke")
    assert press == ["loaders", "render", "arenas", "render", "races", "render"]
    assert "a page is missing" in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["loaders", "arenas", "races"])
def test_a_chapter_that_fails_costs_itself_alone(press, monkeypatch, capsys, broken):
    def execute(chapter, *_, **__):
        press.append(chapter.name)
        if chapter.name == broken:
            raise UserError(f"The chapter {broken} stopped in cell 3 with ValueError: `a` <b>.")

    monkeypatch.setattr(book, "execute", execute)
    with pytest.raises(UserError, match=f"The chapter {broken} stopped in cell 3 .* All other chapters are measured: "):
        book.book(parse("pair"), "smoke")
    assert [name for name in press if name != "render"] == ["loaders", "arenas", "races"]
    assert press[-1] == "render"
    assert capsys.readouterr().err.count("stopped in cell 3") == 1
    failed = next(chapter for chapter in book.chapters() if chapter.name == broken)
    assert "stopped in cell 3" in failed.failure
    (page, *_) = render.not_measured(failed).values()
    assert f"The last try failed: The chapter {broken} stopped in cell 3 with ValueError: \\`a\\` \\<b\\>." in page


def test_what_failed_is_forgotten_once_it_is_measured(tmp_path):
    chapter = Chapter("loaders", executed_folder=tmp_path)
    chapter.note_failure("it was dark")
    assert chapter.failure == "it was dark"
    chapter.note_failure("")
    assert chapter.failure == ""
