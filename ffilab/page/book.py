"""`make book`: set up interpreters and native projects, measure the chapters, render the pages."""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from ffilab.measure.alone import alone
from ffilab.measure.foreign import NoSession, find
from ffilab.page import render
from ffilab.page.contents import Chapter, chapters, source_digests
from ffilab.page.contents import chapter as find_chapter
from ffilab.page.execute import execute, sweep
from ffilab.page.parts import in_order
from ffilab.run import settings
from ffilab.run.budget import BUDGETS, Budget
from ffilab.run.errors import UserError
from ffilab.run.machine import cores_usable
from ffilab.run.paths import HTML
from ffilab.run.progress import minutes, say
from ffilab.run.subprocesses import explain_os_errors
from ffilab.setup import build, environments, layout_pool, linker, native, relink
from ffilab.setup.catalogue import COMPILED, Request
from ffilab.setup.chapters import chapter_names, with_uses
from ffilab.setup.installed import Installed, is_set_up, load
from ffilab.yours import worked_example


def book(
    request: Request, budget: str, only: str | None = None, source: Path | None = None, more: bool = False
) -> None:
    """Set up what is missing, measure all chapters (or `only` one) afresh, render after each.

    source: a folder of records to make the pages from; then nothing is set up, built or measured.
    more: measure another session on top of those that the pages rest on.
    Raises UserError; of chapters that failed, when all others are measured and rendered.
    """
    wanted = chapters() if only is None else [find_chapter(only)]
    if source is not None:
        wanted = with_records(wanted, source)
    parts = [wanted]
    if source is None and only is None and not (HTML / "index.html").exists():
        # A fresh clone: there is something to read before the native code of the other chapters is built.
        first = in_order()[0].name
        parts = [[chapter for chapter in wanted if (chapter.name == first) is is_first] for is_first in (True, False)]
    began, failures = time.monotonic(), {}
    with explain_os_errors("_build"):
        sweep()
        if source is None:
            for chapter in wanted:
                # Raises where a notebook names a kernel that no chapter runs on, before anything is built.
                _ = chapter.jupyter_kernel
            say(f"  this takes about {minutes(round(seconds_ahead(request, BUDGETS[budget], wanted), -1))} here")
        for number, part in enumerate(parts):
            left = sum(map(len, parts[number + 1 :]))
            if source is None:
                failures |= measured(part, request, budget, more, left)
            else:
                failures |= run(part, lambda chapter: execute(chapter, budget, source), left, early=False)
        if source is None and only is None:
            worked_example.measure(budget)
        elif source is not None:
            worked_example.show(source)
        if any(chapter.is_executed for chapter in chapters()):
            render.render()
    if only is not None and not failures:
        say(f"  the chapter is {os.path.relpath(HTML / f'{wanted[0].page}.html')}")
    say(f"  {minutes(time.monotonic() - began)} in all")
    if failures:
        others = f"All other chapters are measured: {os.path.relpath(HTML / 'index.html')}." if only is None else ""
        raise UserError(" ".join([*failures.values(), others]).strip())


def measured(part: list[Chapter], request: Request, budget: str, more: bool, left: int) -> dict[str, str]:
    """Set up what these chapters need, measure and render them; returns why chapters failed, by name. left: chapters
    behind them."""
    # Before the native code is built of them.
    made_from = {chapter.name: source_digests(chapter.name) for chapter in part}
    names = list(dict.fromkeys(name for chapter in part for name in with_uses(chapter.name)))
    interpreters = set_up(request, names)
    labels = [interpreter.label for interpreter in interpreters]
    settings.tell(interpreters=labels)
    further_builds(interpreters, BUDGETS[budget].builds)
    # Before anything is linked or measured: a page that cannot be added to is a mistake of the reader.
    earlier = {chapter.name: sessions(chapter, budget) for chapter in part} if more else {}

    def measure(chapter: Chapter) -> None:
        with alone():
            execute(chapter, budget, None, made_from[chapter.name], earlier=earlier.get(chapter.name, []))

    with drawn_layouts(labels, BUDGETS[budget]):
        return run(part, measure, left, early=True)


def run(part: list[Chapter], make: Callable[[Chapter], object], left: int, early: bool) -> dict[str, str]:
    """Make each chapter; one that fails costs itself alone. Returns the reasons, by name.

    left: how many chapters come behind these. early: whether to render what there is as soon as each is finished.
    """
    began, failures = time.monotonic(), {}
    for number, chapter in enumerate(part, 1):
        try:
            make(chapter)
        except UserError as error:
            failures[chapter.name] = str(error)
            chapter.note_failure(str(error))
            say(f"  {error}")
        ahead = len(part) - number + left
        if not ahead:
            break
        if early and chapter.name not in failures:
            render_early(chapter)
        seconds = (time.monotonic() - began) / number * ahead
        say(f"  {number} of {number + ahead} chapters; the others take about {minutes(round(seconds, -1))}")
    return failures


def set_up(request: Request, chapters: list[str] | None = None, slow: bool = True) -> list[Installed]:
    """Set up the interpreters of a request, then build the native projects for them. Raises UserError.

    chapters: whose projects to build; those of all chapters, if None: a study builds its own. slow: see
    `native.build_all`.
    """
    interpreters = environments.provision(request)
    native.build_all(interpreters, chapters=chapters or chapter_names(), slow=slow)
    return interpreters


def further_builds(interpreters: list[Installed], count: int) -> None:
    """Build each interpreter that was compiled here `count` times, to link layouts from; once, if two builds do not
    differ."""
    for installed in interpreters if count > 1 else ():
        if installed.facts["route"] == "source":
            for number in range(2, count + 1):
                build.build(installed.interpreter, number)
                if not relink.differences(installed.label, 1, number)["differ"]:
                    break


# What setting up took on two cores, in seconds of one core: an interpreter, its environment, the native projects of a
# chapter.
COMPILING_S, ENVIRONMENT_S, NATIVE_S = 560, 60, 60


def seconds_ahead(request: Request, budget: Budget, wanted: list[Chapter]) -> float:
    """How long setting up, measuring and rendering will take here (s)."""
    lacking = [interpreter for interpreter in request.required if not is_set_up(interpreter)]
    compiled = [i for i in lacking if request.pair == COMPILED and i not in request.named and not build.built(i)]
    ready = [load(interpreter) for interpreter in request.required if interpreter not in lacking]
    unbuilt = [chapter for chapter in wanted if lacking or not native.is_built(chapter.name, ready)]
    working = COMPILING_S * len(compiled) + ENVIRONMENT_S * len(lacking) + NATIVE_S * len(unbuilt)
    return working / cores_usable() + budget.chapter_s * len(wanted)


def render_early(chapter: Chapter) -> None:
    """Render what is measured so far. An error is reported and stops no measuring: all is rendered again in the end."""
    try:
        render.render(again=True)
    except UserError as error:
        say(f"  the chapter {chapter.name} could not be rendered yet: {error}")
        return
    say(f"  there to read: {os.path.relpath(HTML / f'{chapter.page}.html')}")


@contextmanager
def drawn_layouts(labels: list[str], budget: Budget):
    """Make a pool of layouts for everything that is measured meanwhile; remove it afterwards."""
    # What a killed run left.
    layout_pool.remove(layout_pool.POOLS)
    folder = layout_pool.POOLS / secrets.token_hex(4)
    try:
        layout_pool.make(folder, labels, budget.layouts, secrets.randbits(32), list(range(1, budget.builds + 1)))
        settings.tell(layouts=str(folder), linker=linker.version_here() or None)
        yield
    finally:
        settings.tell(layouts=None, linker=None)
        layout_pool.remove(folder)


def sessions(chapter: Chapter, budget: str) -> list[str]:
    """Return the names of the sessions that a chapter's page rests on, the oldest first; none if they cannot be added
    to.

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
