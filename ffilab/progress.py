"""Progress on long work: a live bar on a terminal, a line now and then in a log."""

import sys
import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False, soft_wrap=True)

LOG_INTERVAL_S = 20


def say(text: str) -> None:
    """One plain line for the reader."""
    console.print(text, markup=False)


def minutes(seconds: float) -> str:
    """Seconds in the words of a progress line: `40 s`, `3 min 20 s`."""
    seconds = max(0, round(seconds))
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


class Step:
    """One long step. Call `update` with the share done and, where known, seconds left."""

    def __init__(self, title: str, bar: Progress | None):
        self.title = title
        self.started = time.monotonic()
        self._bar = bar
        self._task = bar.add_task(title, total=1.0, detail="", left="") if bar else None
        self._last_line = self.started

    def update(self, share: float, detail: str = "", seconds_left: float | None = None) -> None:
        share = min(max(share, 0.0), 0.99)
        elapsed = time.monotonic() - self.started
        if seconds_left is None and share > 0.02:
            seconds_left = elapsed / share - elapsed
        left = "" if seconds_left is None else f"about {minutes(seconds_left)} left"
        if self._bar:
            self._bar.update(self._task, completed=share, detail=detail, left=left)
        elif time.monotonic() - self._last_line > LOG_INTERVAL_S:
            self._last_line = time.monotonic()
            say(f"  {self.title}: {share:.0%} {detail} {left}".rstrip())


@contextmanager
def step(title: str):
    """Announce a long step, yield a Step, and say how long it took."""
    if sys.stderr.isatty():
        bar = Progress(
            TextColumn("  {task.description}"),
            BarColumn(30),
            TextColumn("{task.percentage:3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            transient=True,
        )
    else:
        bar = None
        say(f"  {title} …")
    started = time.monotonic()
    if bar:
        with bar:
            yield Step(title, bar)
    else:
        yield Step(title, None)
    say(f"  {title}: done in {minutes(time.monotonic() - started)}")
