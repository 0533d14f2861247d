"""`make book`: set up interpreters and native projects, measure the chapters, render the pages."""

import os
import secrets
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from ffilab.judge.claims import chapter_names
from ffilab.measure.alone import alone
from ffilab.measure.foreign import NoSession, find
from ffilab.page import render, status, yours
from ffilab.page.chapters import Chapter, chapters, source_digests, with_uses
from ffilab.page.chapters import chapter as find_chapter
from ffilab.page.execute import execute, sweep
from ffilab.run import settings
from ffilab.run.budget import BUDGETS, Budget
from ffilab.run.errors import UserError
from ffilab.run.paths import HTML
from ffilab.run.progress import minutes, say
from ffilab.run.subprocesses import explain_os_errors
from ffilab.setup import build, environments, layout_pool, native, relink
from ffilab.setup.catalogue import Request
from ffilab.setup.installed import Installed


def book(
    request: Request, budget: str, only: str | None = None, source: Path | None = None, more: bool = False
) -> None:
    """Set up what is missing, measure all chapters (or `only` one) afresh, render. Raises UserError.

    source: a folder of records to make the pages from; then nothing is set up, built or measured.
    more: measure another session on top of those that the pages rest on.
    """
    wanted = chapters() if only is None else [find_chapter(only)]
    if source is not None:
        wanted = with_records(wanted, source)
    # Of a fresh clone: so that there is something to read while the other chapters are measured.
    early = source is None and len(wanted) > 1 and not (HTML / "index.html").exists()
    if early:
        first = status.in_order()[0].name
        wanted.sort(key=lambda chapter: chapter.name != first)
    began = time.monotonic()
    with explain_os_errors("_build"):
        sweep()
        # Before the native code is built of them.
        made_from = {chapter.name: source_digests(chapter.name) for chapter in wanted}
        earlier, measuring = {}, nullcontext()
        if source is None:
            interpreters = set_up(request, None if only is None else with_uses(only))
            labels = [interpreter.label for interpreter in interpreters]
            settings.tell(interpreters=labels)
            further_builds(interpreters, BUDGETS[budget].builds)
            # Before anything is linked or measured: a page that cannot be added to is a mistake of the reader.
            earlier = {chapter.name: sessions(chapter, budget) for chapter in wanted} if more else {}
            measuring = drawn_layouts(labels, BUDGETS[budget])
        with measuring:
            began_chapters = time.monotonic()
            for number, chapter in enumerate(wanted, 1):
                with alone() if source is None else nullcontext():
                    execute(chapter, budget, source, made_from[chapter.name], earlier=earlier.get(chapter.name, []))
                # Between two chapters, as nothing may run beside a measurement.
                if early and number == 1:
                    render_first(chapter)
                if number < len(wanted):
                    left = (time.monotonic() - began_chapters) / number * (len(wanted) - number)
                    say(f"  {number} of {len(wanted)} chapters; the others take about {minutes(round(left, -1))}")
            if source is None and only is None:
                yours.measure(budget)
        render.render()
    if only is not None:
        say(f"  the chapter is {os.path.relpath(HTML / f'{wanted[0].page}.html')}")
    say(f"  {minutes(time.monotonic() - began)} in all")


def set_up(request: Request, chapters: list[str] | None = None, slow: bool = True) -> list[Installed]:
    """Set up the interpreters of a request, then build the native projects for them. Raises UserError.

    chapters: whose projects to build; those of all chapters, if None: a study builds its own. slow: see `native.build_all`.
    """
    interpreters = environments.provision(request)
    native.build_all(interpreters, chapters=chapters or chapter_names(), slow=slow)
    return interpreters


def further_builds(interpreters: list[Installed], count: int) -> None:
    """Build each interpreter that was compiled here `count` times, to link layouts from; once, if two builds do not differ."""
    for installed in interpreters if count > 1 else ():
        if installed.facts["route"] == "source":
            for number in range(2, count + 1):
                build.build(installed.interpreter, number)
                if not relink.differences(installed.label, 1, number)["differ"]:
                    break


def render_first(chapter: Chapter) -> None:
    """Render the book with the first chapter alone. An error is reported and stops no measuring: it is rendered again."""
    try:
        render.render()
    except UserError as error:
        say(f"  the first chapter could not be rendered yet: {error}")
        return
    page = os.path.relpath(HTML / f"{chapter.page}.html")
    say(f"  the first chapter is there to read: {page} (the others are rendered when all are measured)")


@contextmanager
def drawn_layouts(labels: list[str], budget: Budget):
    """Make a pool of layouts for everything that is measured meanwhile; remove it afterwards."""
    # What a killed run left.
    layout_pool.remove(layout_pool.POOLS)
    folder = layout_pool.POOLS / secrets.token_hex(4)
    try:
        layout_pool.make(folder, labels, budget.layouts, secrets.randbits(32), list(range(1, budget.builds + 1)))
        settings.tell(layouts=str(folder))
        yield
    finally:
        settings.tell(layouts=None)
        layout_pool.remove(folder)


def sessions(chapter: Chapter, budget: str) -> list[str]:
    """Return the names of the sessions that a chapter's page rests on, the oldest first; none if they cannot be added to.

    Raises UserError if they were measured with another budget.
    """
    facts = chapter.facts
    if not chapter.is_executed or not facts:
        return []
    if facts.get("budget", budget) != budget:
        raise UserError(
            f"The chapter {chapter.name} was measured with BUDGET={facts['budget']}: use the same for `make more`."
        )
    if changed := chapter.changed():
        say(f"  {chapter.name} is measured afresh, as what it was made from has changed: {', '.join(changed)}")
        return []
    return list(dict.fromkeys(Path(record).parent.name for record in facts["records"]))


def with_records(wanted: list[Chapter], source: Path) -> list[Chapter]:
    """Return the chapters that have records in a folder; name those that have none. Raises UserError if none has."""
    there = []
    for chapter in wanted:
        with suppress(NoSession):
            find(source, chapter.name)
            there.append(chapter)
    if not there:
        which = f"the chapter {wanted[0].name!r}" if len(wanted) == 1 else "any chapter"
        raise NoSession(f"{source} holds no complete session of {which}: name a folder or bundle of records.")
    for chapter in [chapter for chapter in wanted if chapter not in there]:
        say(f"  no records of the chapter {chapter.name}: its page stays as it is")
    return there
