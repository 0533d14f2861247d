"""The exercises of the chapter "Calls from outside", and their self-checks."""

import asyncio
import ctypes
import os
import statistics
import threading

from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED
from native.outside.ways import by_ctypes, library
from notebooks.outside.experiment import FOLDER

CALLBACKS, RINGERS, RINGS = 100, 4, 250
SECONDS = 20
NOT_RUN = "Not run: this page is made from records, and they hold no run of this code. Try it in JupyterLab."


def kept_by_reader(source, folder):
    """How far the callback counts in a threading.local with a reader's `around`, and ns of one callback, the median."""
    names = {}
    exec(source, names)
    around, local, last = names["around"], threading.local(), []

    def count():
        local.n = getattr(local, "n", 0) + 1
        last.append(local.n)

    call = by_ctypes(folder, around) if around else by_ctypes(folder)
    times = call(count, 1, CALLBACKS, bool(around))
    return {"count": max(last, default=0), "calls": len(last), "ns": statistics.median(times)}


def rung(source, folder, ringers, rings):
    """What a reader's `ready` counts while threads of C ring."""
    native, counted, names = library(folder), [], {"os": os}
    exec(source, names)

    async def main():
        file = os.eventfd(0, os.EFD_NONBLOCK)
        asyncio.get_running_loop().add_reader(file, names["ready"], file, counted)
        ns = (ctypes.c_int64 * (ringers * rings))()
        ringing = asyncio.to_thread(native.call_from_threads, native.ring, file, ringers, rings, ns, None)
        await ringing
        await asyncio.sleep(0.05)

    asyncio.run(main())
    return {"counted": sum(counted)}


def tried(function: str, source: str) -> dict:
    """What becomes of a reader's code in a process of its own: `ended`, `error`, and `result` if it came to one."""
    run = {"kept_by_reader": kept_by_reader, "rung": rung}[function]
    fixed = {"folder": FOLDER} | ({"ringers": RINGERS, "rings": RINGS} if run is rung else {})
    outcome = Case(FREE_THREADED, run, {"source": source}, fixed, timeout_s=SECONDS).run()
    return {"ended": outcome.ended, "error": outcome.error.strip(), "result": outcome.result}


def seen(session: Session, title: str, function: str, source: str) -> dict | list[str]:
    """What came of it, or what to say instead."""
    try:
        found = session.observe(title, tried, function, source)
    except UserError:
        return [NOT_RUN]
    if found["result"] is None:
        return [f"It did not come to an end: {(found['error'].splitlines() or [found['ended']])[-1]}"]
    return found["result"]


def check_kept(source: str, session: Session) -> list[str]:
    """Does the count arrive, and what does a callback cost? Returns what to say."""
    found = seen(session, "exercise: keep a state", "kept_by_reader", source)
    if isinstance(found, list):
        return found
    said = f"One callback takes {found['ns']:,.0f} ns, in one run."
    if found["calls"] != CALLBACKS:
        return [f"Not correct: the callback ran {found['calls']} times, not {CALLBACKS}. Does `around` call `run`?"]
    if found["count"] != CALLBACKS:
        return [f"Not correct: of {CALLBACKS} callbacks, none counted further than {found['count']}.", said]
    return [f"Correct: the count came to {CALLBACKS}.", said]


def check_rung(source: str, session: Session) -> list[str]:
    """Are all rings counted? Returns what to say."""
    found = seen(session, "exercise: count what an eventfd says", "rung", source)
    if isinstance(found, list):
        return found
    all_of_them = RINGERS * RINGS
    if found["counted"] != all_of_them:
        return [f"Not correct: {found['counted']:,} of {all_of_them:,} rings were counted."]
    return [f"Correct: all {all_of_them:,} rings were counted."]
