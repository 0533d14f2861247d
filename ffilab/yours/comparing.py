"""Compare statements, Pythons, or both: one plan, one run, one result."""

import os
import re
import shutil
import site
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil

from ffilab.measure import runner
from ffilab.measure.plan import EMPTY, YOURS, Arm, controls, plan
from ffilab.measure.record import read_record
from ffilab.measure.workers import WorkerFailed
from ffilab.run import settings
from ffilab.run.budget import Budget
from ffilab.run.errors import UserError
from ffilab.setup.installed import Installed
from ffilab.setup.layouts import Pool
from ffilab.yours import pythons as known

BATCH_MS = 2
# A run ends by its width or its time: of restarts it may have as many as it likes.
MOST_RESTARTS = 10_000
# A width that few restarts happen to have is luck: it counts from so many on, and is looked at again after a tenth
# more.
FROM_RESTARTS, AGAIN_AFTER = 10, 1.1
# Blocks of a restart; fewer where they would take longer than this.
MOST_BLOCKS, RESTART_S = 20, 1.0
LONGEST_NAME = 40
ON = ", with the GIL"
# A first pass that takes so many times as long as later ones, and as many ns, is no warm-up alone.
USED_UP, LEAST_NS = 20, 20_000
# A moment in which an arm is looked at, in ns and loops, and how often.
MOMENT_NS, MOST_LOOPS, LOOK_S = 5_000_000, 1_000, 0.0005
NEVER_AWAITED = re.compile(r"coroutine '(.+?)' was never awaited")
WHY = "does it use up what the setup made, or keep what it once found? Only later passes are timed."
LIMITS = "A setup, and a batch, may take a minute, or as long as --time; a statement may not end its process."
# Modules of the folder where it is started are found, behind those of the environments: these are what is compared.
HERE = "import sys\nsys.path.append({!r})\n"


def compare(
    arms: Iterable[Arm | str] | str,
    pythons: Sequence[str | Path] | str = (),
    *,
    to: float = 0.01,
    seconds: float = 60.0,
    gil: str = "off",
    pin: bool = True,
    quiet: bool = False,
):
    """Time arms on Pythons, interleaved in one run; return a `Result`. The first arm on the first Python is the
    baseline.

    arms: `Arm`s, or statements; one statement may stand alone. pythons: paths, names on PATH, folders of virtual
    environments; this Python, if none are given.
    to: end when the interval of each ratio reaches no further than this to each side; 0 for never. seconds: end after
    this time.
    gil: of free-threaded builds: "off", "on", or "both", to compare them. pin: keep all on one core; not for arms that
    start threads. quiet: show no progress.
    Raises UserError, in one sentence, where something cannot be measured. After Ctrl-C the result is of what was
    measured.
    """
    if gil not in ("off", "on", "both"):
        raise UserError(f"gil is {gil!r}: say off, on or both.")
    # A text is a sequence of texts, too.
    given = [arms] if isinstance(arms, str) else list(arms)
    interpreters = known.found(([pythons] if isinstance(pythons, str) else pythons) or [sys.executable])
    asked = with_gil(prepared(given), interpreters, gil)
    if not asked:
        raise UserError("There is nothing to time: give a statement.")
    pool, told = known.pool(interpreters), settings.told("progress")
    folder = Path(tempfile.mkdtemp(prefix="ffilab-"))
    if quiet:
        settings.tell(progress=str(folder / "progress.json"))
    try:
        blocks = tried(asked, interpreters, pool, folder, seconds, pin)
        # Not at the top: it takes a second, and a mistake is to be told at once.
        from ffilab.yours.result import Result, width

        labels = list(interpreters)
        budget = Budget(YOURS, MOST_RESTARTS, blocks, seconds, BATCH_MS, scale=1, repeats=1)
        made = plan(YOURS, asked, labels, budget, controls_on=(labels[0],), wall_s=seconds, pin=pin)
        path, restarts = folder / f"{YOURS}.jsonl", iter(range(runner.LEAST_RESTARTS, MOST_RESTARTS))
        next_look = FROM_RESTARTS

        def enough() -> bool:
            nonlocal next_look
            if not to or (count := next(restarts)) < next_look:
                return False
            next_look = count * AGAIN_AFTER
            return width(read_record(path)) <= to

        try:
            runner.run(made, folder, pool, interpreters, folder, enough)
        except KeyboardInterrupt:
            if path.exists():
                # Of too few restarts it is none.
                with suppress(UserError):
                    return Result.read(path)
            raise
        return Result.read(path)
    finally:
        settings.tell(progress=told)
        # Unless a sentence names what lies there.
        if str(folder) not in str(sys.exc_info()[1]):
            shutil.rmtree(folder)


def prepared(arms: Iterable[Arm | str]) -> list[Arm]:
    """The reader's arms, each by a name of its own: their modules are found, and they run beside each other."""
    here, taken, found = HERE.format(os.getcwd()), {EMPTY, *(arm.name for arm in controls())}, []
    for arm in arms:
        arm = Arm(short(arm), arm) if isinstance(arm, str) else replace(arm, name=known.plain(arm.name))
        if not arm.name or not (arm.file or arm.statement.strip()):
            raise UserError("A name or a statement is empty: write every statement, and omit a name or write it whole.")
        found.append(replace(arm, name=known.free(arm.name, taken), beside=YOURS, uses=here + arm.uses))
        taken.add(found[-1].name)
    return found


def short(statement: str) -> str:
    """A statement as its own name."""
    return cut(known.plain(statement))


def cut(line: str) -> str:
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def with_gil(arms: list[Arm], interpreters: dict[str, Installed], gil: str) -> list[Arm]:
    """The arms as they are ("off"), with the GIL switched on in free-threaded builds ("on"), or "both"."""
    if gil == "off":
        return arms
    threaded = tuple(label for label, python in interpreters.items() if python.interpreter.free_threaded)
    others = tuple(label for label in interpreters if label not in threaded)
    if not threaded:
        raise UserError(
            "The GIL can be switched on in a free-threaded build only, and none is named: add one, such as python3.14t."
        )
    on = [replace(arm, name=arm.name + ON, group="GIL on", interpreters=threaded, gil=True) for arm in arms]
    if gil == "both":
        return [*arms, *on]
    return [*(replace(arm, interpreters=others) for arm in arms if others), *on]


def way_out(reason: str) -> str:
    """What mends a statement that ended in this."""
    if "No module named" in reason:
        # What -I takes away.
        apart = [name for name in settings.of_python() if name == "PYTHONPATH" and os.environ[name]]
        apart += ["your user site"] if site.ENABLE_USER_SITE and os.path.isdir(site.getusersitepackages()) else []
        return "install it there" + (f" (what lies in {' or '.join(apart)} does not count here)" if apart else "")
    if "'await' outside" in reason:
        return "time a function `async def bench_…` of a --file"
    if "IndentationError" in reason or "unexpected EOF" in reason or "expected an indented block" in reason:
        return "correct it; each argument is a statement of its own, and one of several lines is one argument"
    return "correct it"


@contextmanager
def most_threads(pid: int):
    """Yields a list whose last item is how many threads a process had at once, at the most, while the body ran."""
    most, ended, process = [1], threading.Event(), psutil.Process(pid)

    def look() -> None:
        while not ended.wait(LOOK_S):
            most.append(max(most[-1], process.num_threads()))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
        # Those that stay are seen however short it was.
        most.append(max(most[-1], process.num_threads()))
    finally:
        ended.set()
        looking.join()


def tried(
    arms: list[Arm], interpreters: dict[str, Installed], pool: Pool, folder: Path, seconds: float, pin: bool
) -> int:
    """Make and run each arm for a moment; return how many blocks a restart may have. Raises UserError with what went
    wrong."""
    moment = Budget(YOURS, 1, 1, 0, BATCH_MS, scale=1, repeats=1)
    trial = plan("trial", arms, list(interpreters), moment, with_controls=False, wall_s=seconds)
    try:
        restart = runner.Restart(
            trial, interpreters, drawn={label: lots[0] for label, lots in pool.items()}, logs=folder
        )
        try:
            for label, reasons in restart.missing.items():
                for arm, reason in reasons.items():
                    raise UserError(f"{arm!r} cannot be timed on {label} ({reason.rstrip('.')}): {way_out(reason)}.")
            passes, most = [], 1
            for label, arm in restart.cells:
                worker = restart.worker(label, arm)
                first = worker.loaded["first_ns"][arm.name]
                loops = max(1, min(MOST_LOOPS, int(MOMENT_NS / first))) if first else 1
                with most_threads(worker.loaded["facts"]["pid"]) as threads:
                    later = worker.time(arm.name, loops)["ns"] / loops
                most = max(most, threads[-1])
                if never := NEVER_AWAITED.search(worker.log.read_text(errors="replace")):
                    raise UserError(
                        f"{arm.name!r} makes the coroutine {never[1]}, and nobody awaits it: time a function `async "
                        "def bench_…` of a --file."
                    )
                if first > max(USED_UP * later, LEAST_NS):
                    longer = f"took {first / later:.0f} times as long as later ones"
                    print(f"  The first pass of {arm.name!r} {longer}: {WHY}", file=sys.stderr)
                passes.append(later / 1e9)
            if pin and most > 1:
                print(f"  Your code runs {most} threads on one core: --no-pin gives them all cores.", file=sys.stderr)
        finally:
            restart.close()
    except WorkerFailed as failure:
        if len(arms) > 1:
            print("  They did not run together. Each is tried alone; one that hangs takes a minute.", file=sys.stderr)
            for arm in arms:
                # Which of them was it? Alone, it says so itself.
                tried([arm], interpreters, pool, folder, seconds, pin)
        which = f"{arms[0].name!r}" if len(arms) == 1 else "Together, they"
        raise UserError(f"{which} cannot be timed: {failure}. {LIMITS}") from None
    return max(1, min(MOST_BLOCKS, int(RESTART_S / sum(max(BATCH_MS / 1e3, each) for each in passes))))
