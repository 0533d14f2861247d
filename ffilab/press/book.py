"""`make book`: interpreters, native projects, chapters, pages, with the time that each part took."""

import json
import os
import time
from pathlib import Path

from ffilab import native
from ffilab.bench.session import find
from ffilab.errors import UserError
from ffilab.judge import claims
from ffilab.paths import RESULTS
from ffilab.press import render
from ffilab.press.chapters import Chapter, chapter, chapters, source_digests
from ffilab.press.execute import execute
from ffilab.progress import minutes, say
from ffilab.provision import environments, objects
from ffilab.provision.catalogue import Request, parse
from ffilab.provision.installed import CHOSEN
from ffilab.subprocesses import explain_os_errors

# What a corner may need beside interpreters and native projects: `needs` in its claims.toml.
PROVIDERS = {"relinking": objects.provide}
PARTS = ("interpreters", "native", "chapters", "rendering")


def book(request: Request, budget: str, only: str | None = None, source: Path | None = None) -> None:
    """Set up what is missing, measure all chapters (or `only` one) afresh, render. Raises UserError.

    source: a folder of records; then the chapters are made from them, and nothing is built or measured.
    """
    wanted = chapters() if only is None else [chapter(only)]
    if source is not None:
        wanted = with_records(wanted, source)
    clock = [time.monotonic()]
    with explain_os_errors("_build"):
        found = environments.provision(request if source is None else parse("pair"))
        os.environ[CHOSEN] = " ".join(one.label for one in found)
        clock.append(time.monotonic())
        # Before the native code is built of them.
        made_from = {each.corner: source_digests(each.corner) for each in wanted}
        if source is None:
            native.build_all(found)
            provide(wanted)
        clock.append(time.monotonic())
        for each in wanted:
            execute(each, budget, source, made_from[each.corner])
        clock.append(time.monotonic())
        render.render()
        clock.append(time.monotonic())
    spent = {part: round(after - before, 1) for part, before, after in zip(PARTS, clock, clock[1:])}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "times.json").write_text(json.dumps(spent))
    total = sum(spent.values())
    parts = ", ".join(f"{part} {minutes(s)} ({s / total:.0%})" for part, s in spent.items())
    say(f"  {minutes(total)} in all: {parts}")


def with_records(wanted: list[Chapter], source: Path) -> list[Chapter]:
    """The chapters that have records in a folder; says which have not. Raises UserError if none has."""
    found, lacking = [], None
    for each in wanted:
        try:
            find(source, each.corner)
            found.append(each)
        except UserError as error:
            lacking = error
            say(f"  no records of the chapter {each.corner}: its page stays as it is")
    if not found and lacking:
        raise lacking
    return found


def provide(wanted: list[Chapter]) -> None:
    """Whatever else these chapters say that they need."""
    for need in dict.fromkeys(need for each in wanted for need in claims.declared(each.corner).needs):
        PROVIDERS[need]()
