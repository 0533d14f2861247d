"""Progress on long work: a live line on a terminal, a plain line now and then in a log."""

import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False, soft_wrap=True)

LOG_INTERVAL_S = 20
# Below this share of the work its pace says little about the rest.
LEAST_SHARE = 0.02


def say(text: str) -> None:
    """Print one plain line for the reader."""
    console.print(text, markup=False)


def minutes(seconds: float) -> str:
    """Write seconds as on a progress line: `40 s`, `3 min 20 s`."""
    seconds = max(0, round(seconds))
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


class Step:
    """One long step of a run. `display` is None where the output is a log."""

    def __init__(self, title: str, display: Progress | None):
        self._title, self._display = title, display
        self._started = self._last_line = time.monotonic()
        self._task = display.add_task(title, total=None, detail="", left="") if display else None

    def update(self, share: float | None, detail: str = "", seconds_left: float | None = None) -> None:
        """Show how far the work has come.

        share: of the work, from 0 to 1; None if it is not known. seconds_left: by default from the pace so far.
        """
        now = time.monotonic()
        if seconds_left is None and share is not None and share > LEAST_SHARE:
            seconds_left = (now - self._started) * (1 - share) / share
        left = "" if seconds_left is None else f"about {minutes(seconds_left)} left"
        if self._display:
            total = None if share is None else 1.0
            self._display.update(self._task, total=total, completed=share, detail=detail, left=left)
        elif now - self._last_line > LOG_INTERVAL_S:
            self._last_line = now
            percent = "" if share is None else f"{share:.0%}"
            say(f"  {self._title}: {' '.join(filter(None, [percent, detail, left]))}")


@contextmanager
def step(title: str):
    """Announce a long step, yield a Step to update, and say how long it took."""
    started = time.monotonic()
    if console.is_terminal:
        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(30),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[detail]}", style="dim", markup=False),
        ]
        with Progress(*columns, console=console, transient=True) as display:
            yield Step(title, display)
    else:
        say(f"  {title} …")
        yield Step(title, None)
    say(f"  {title}: done in {minutes(time.monotonic() - started)}")
