"""`make book`: interpreters, native projects, chapters, pages, with the time that each part took."""

import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path

from ffilab import layout_pool, native
from ffilab.bench.alone import alone
from ffilab.bench.foreign import NoSession, find
from ffilab.bench.layouts import ENVIRONMENT
from ffilab.budget import BUDGETS, Budget
from ffilab.errors import UserError
from ffilab.lanes import second_lane
from ffilab.paths import HTML, RESULTS
from ffilab.press import forecast, render, status
from ffilab.press.chapters import Chapter, chapter, chapters, source_digests
from ffilab.press.execute import execute, sweep
from ffilab.progress import minutes, say
from ffilab.provision import build, environments, relink
from ffilab.provision.catalogue import Request, parse
from ffilab.provision.installed import CHOSEN, Installed
from ffilab.subprocesses import explain_os_errors

PARTS = ("interpreters", "native", "chapters", "rendering")


def book(
    request: Request, budget: str, only: str | None = None, source: Path | None = None, more: bool = False
) -> None:
    """Set up what is missing, measure all chapters (or `only` one) afresh, render. Raises UserError.

    source: a folder of records; then the chapters are made from them, and nothing is built or measured.
    more: measure another session on top of those that the pages rest on.
    """
    wanted = chapters() if only is None else [chapter(only)]
    if source is not None:
        wanted = with_records(wanted, source)
    # Of a fresh clone: so that there is something to read while the other chapters are measured.
    early = source is None and len(wanted) > 1 and not (HTML / "index.html").exists()
    if early:
        first = status.in_order()[0].corner
        wanted.sort(key=lambda each: each.corner != first)
    clock = [time.monotonic()]
    with explain_os_errors("_build"):
        sweep()
        # Before the native code is built of them.
        made_from = {each.corner: source_digests(each.corner) for each in wanted}
        expected = forecast.Forecast({})
        if source is None:
            expected = forecast.of(request, [each.corner for each in wanted], budget, early)
            expected.announce()

        def compiled():
            clock.append(time.monotonic())
            if expected.done(forecast.INTERPRETERS):
                expected.say_left("interpreters are there")

        if source is None:
            found = set_up(request, compiled)
        else:
            found = environments.provision(parse("pair"))
            compiled()
        os.environ[CHOSEN] = " ".join(one.label for one in found)
        if source is None:
            further_builds(found, BUDGETS[budget].builds)
        # Before anything is linked or measured: a page that cannot be added to is a mistake of the reader.
        earlier = {each.corner: sessions(each, budget) for each in wanted} if more else {}
        clock.append(time.monotonic())
        if expected.done(forecast.NATIVE):
            expected.say_left("native projects are built")
        with drawn_layouts([one.label for one in found], BUDGETS[budget]) if source is None else nullcontext():
            expected.done(f"{forecast.LAYOUTS} {budget}", time.monotonic() - clock[-1])
            for number, each in enumerate(wanted, 1):
                began = time.monotonic()
                with alone() if source is None else nullcontext():
                    execute(each, budget, source, made_from[each.corner], earlier=earlier.get(each.corner, []))
                expected.done(forecast.chapter(budget, each.corner), time.monotonic() - began)
                # Between two chapters, as nothing may run beside a measurement.
                if early and number == 1:
                    render_first(each)
                    expected.done(forecast.FIRST)
                expected.say_left(f"{number} of {len(wanted)} chapters")
        clock.append(time.monotonic())
        render.render()
        clock.append(time.monotonic())
        expected.done(forecast.RENDERING, clock[-1] - clock[-2])
    spent = {part: round(after - before, 1) for part, before, after in zip(PARTS, clock, clock[1:])}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "times.json").write_text(json.dumps(spent))
    total = sum(spent.values())
    parts = ", ".join(f"{part} {minutes(s)} ({s / total:.0%})" for part, s in spent.items())
    say(f"  {minutes(total)} in all: {parts}")


def set_up(request: Request, compiled: Callable[[], object] = lambda: None) -> list[Installed]:
    """Interpreters in this thread; behind it, in a second lane, whatever needs none of them or only those that are there.

    compiled: is called when the last interpreter is there. Raises UserError, of whichever lane.
    """
    with second_lane() as later:
        later(native.build_libraries)
        coming = environments.provide(request, later, native.build_extensions)
        compiled()
    return environments.report(coming)


def further_builds(found: list[Installed], count: int) -> None:
    """So many builds of each interpreter that was compiled here, to link layouts from; one, if two do not differ."""
    for one in found if count > 1 else ():
        if one.facts["route"] == "source":
            for number in range(2, count + 1):
                build.build(one.interpreter, number)
                if not relink.differences(one.label, 1, number)["differ"]:
                    break


def render_first(each: Chapter) -> None:
    """Render the book with the first chapter alone. What goes wrong is said, and stops no measuring: it is rendered again."""
    try:
        render.render()
    except UserError as error:
        say(f"  the first chapter could not be rendered yet: {error}")
        return
    page = os.path.relpath(HTML / f"{each.page}.html")
    say(f"  the first chapter is there to read: {page} (the others are rendered when all are measured)")


@contextmanager
def drawn_layouts(labels: list[str], budget: Budget):
    """A pool of layouts for everything that is measured meanwhile; removed afterwards, unless KEEP_LAYOUTS is set."""
    keep = os.environ.get("KEEP_LAYOUTS", "") not in ("", "0")
    if not keep:
        # What a run left that was killed.
        layout_pool.remove(layout_pool.POOLS)
    folder = layout_pool.POOLS / secrets.token_hex(4)
    try:
        layout_pool.make(folder, labels, budget.layouts, secrets.randbits(32), list(range(1, budget.builds + 1)))
        os.environ[ENVIRONMENT] = str(folder)
        yield
    finally:
        os.environ.pop(ENVIRONMENT, None)
        if not keep:
            layout_pool.remove(folder)


def sessions(each: Chapter, budget: str) -> list[str]:
    """Names of the sessions that a chapter's page rests on, the oldest first; none if they cannot be added to."""
    facts = each.facts
    if not each.is_executed or not facts:
        return []
    if facts.get("budget", budget) != budget:
        raise UserError(
            f"The chapter {each.corner} was measured with BUDGET={facts['budget']}: say the same for `make more`."
        )
    if changed := each.changed():
        say(f"  {each.corner} is measured afresh, as what it was made from has changed: {', '.join(changed)}")
        return []
    return list(dict.fromkeys(Path(record).parent.name for record in facts["records"]))


def with_records(wanted: list[Chapter], source: Path) -> list[Chapter]:
    """The chapters that have records in a folder; says which have not. Raises UserError if none has."""
    found, lacking = [], None
    for each in wanted:
        try:
            find(source, each.corner)
            found.append(each)
        except NoSession as error:
            lacking = error
            say(f"  no records of the chapter {each.corner}: its page stays as it is")
    if not found and lacking:
        raise lacking
    return found
