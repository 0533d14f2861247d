"""Progress on long work: a live bar on a terminal, a line now and then in a log."""

import threading
import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False, soft_wrap=True)

LOG_INTERVAL_S = 20
# From this share on a bar approaches its end without reaching it: only the end of the work is 100 %.
KNEE = 0.95


def say(text: str) -> None:
    """One plain line for the reader."""
    console.print(text, markup=False)


def minutes(seconds: float) -> str:
    """Seconds in the words of a progress line: `40 s`, `3 min 20 s`."""
    seconds = max(0, round(seconds))
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


def approached(share: float, knee: float = KNEE) -> float:
    """The share to show where the expectation may have been too small: as it is up to the knee, beyond it ever closer
    to 1, and never there. `share` may be above 1."""
    share, room = max(share, 0.0), 1 - knee
    return share if share <= knee else 1 - room**2 / (share - knee + room)


@contextmanager
def ticking(function, every_s: float = 1.0):
    """Call a function now and then from a thread of its own, meanwhile: for work that says nothing of itself."""
    over = threading.Event()

    def tick():
        while not over.wait(every_s):
            function()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Bars:
    """The one live display of a terminal: the steps that run at one time share it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._display = None
        self._steps = 0

    def enter(self) -> Progress:
        with self._lock:
            if not self._steps:
                self._display = Progress(
                    TextColumn("  {task.description}"),
                    BarColumn(30),
                    TextColumn("{task.fields[percent]:3d}%"),
                    TimeElapsedColumn(),
                    TextColumn("{task.fields[left]}"),
                    TextColumn("[dim]{task.fields[detail]}"),
                    console=console,
                    transient=True,
                )
                self._display.start()
            self._steps += 1
            return self._display

    def leave(self) -> None:
        with self._lock:
            self._steps -= 1
            if not self._steps:
                self._display.stop()


bars = Bars()


class Step:
    """One long step. Call `update` with the share done and, where known, seconds left."""

    def __init__(self, title: str, bar: Progress | None):
        self.title = title
        self.started = time.monotonic()
        self._bar = bar
        self._task = bar.add_task(title, total=1.0, detail="", left="", percent=0) if bar else None
        self._last_line = self.started

    def update(self, share: float, detail: str = "", seconds_left: float | None = None) -> None:
        """share: of the work; above 1 where there is more of it than was expected."""
        elapsed = time.monotonic() - self.started
        if seconds_left is None and share > 0.02:
            seconds_left = elapsed / share - elapsed
        if seconds_left is None:
            left = ""
        else:
            left = f"about {minutes(seconds_left)} left" if share < 1 else "longer than expected"
        shown = approached(share)
        percent = int(100 * shown)
        if self._bar:
            self._bar.update(self._task, completed=shown, percent=percent, detail=detail, left=left)
        elif time.monotonic() - self._last_line > LOG_INTERVAL_S:
            self._last_line = time.monotonic()
            say(f"  {self.title}: {percent}% {detail} {left}".rstrip())

    def remove(self) -> None:
        if self._bar:
            self._bar.remove_task(self._task)


@contextmanager
def step(title: str):
    """Announce a long step, yield a Step, and say how long it took. Steps of several threads may run at one time."""
    started = time.monotonic()
    # The console's own file: a live display of another step puts something else in the place of sys.stderr.
    if console.file.isatty():
        one = Step(title, bars.enter())
        try:
            yield one
        finally:
            one.remove()
            bars.leave()
    else:
        say(f"  {title} …")
        yield Step(title, None)
    say(f"  {title}: done in {minutes(time.monotonic() - started)}")
