"""`make book`: kernels, native projects, chapters, pages, with the time that each part took."""

import json
import os
import time

from ffilab import native
from ffilab.kernels import CHOSEN
from ffilab.paths import NOTEBOOKS, RESULTS
from ffilab.press.execute import execute, notebook
from ffilab.press.render import render
from ffilab.progress import minutes, say
from ffilab.provision import objects
from ffilab.provision.catalogue import Request
from ffilab.provision.environments import provision
from ffilab.subprocesses import explain_os_errors

# The chapter that links CPython again.
PLACEMENT = "placement"
PARTS = ("kernels", "native", "measuring", "rendering")


def book(request: Request, budget: str, only: str | None = None) -> None:
    """Set up what is missing, measure all chapters (or `only` one) afresh, render. Raises UserError."""
    chapters = sorted(NOTEBOOKS.glob("*.ipynb")) if only is None else [notebook(only)]
    clock = [time.monotonic()]
    with explain_os_errors("_build"):
        kernels = provision(request)
        os.environ[CHOSEN] = " ".join(kernel.label for kernel in kernels)
        clock.append(time.monotonic())
        native.build_all(kernels)
        if PLACEMENT in (chapter.stem for chapter in chapters):
            objects.provide()
        clock.append(time.monotonic())
        for chapter in chapters:
            execute(chapter, budget)
        clock.append(time.monotonic())
        render()
        clock.append(time.monotonic())
    spent = {part: round(after - before, 1) for part, before, after in zip(PARTS, clock, clock[1:])}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "times.json").write_text(json.dumps(spent))
    total = sum(spent.values())
    parts = ", ".join(f"{part} {minutes(s)} ({s / total:.0%})" for part, s in spent.items())
    say(f"  {minutes(total)} in all: {parts}")
