"""Progress of a measurement: to the press through a file, to a reader at the keyboard on stderr."""

import json
import sys
import time
from pathlib import Path

from ffilab.run import settings

MIN_INTERVAL_S = 0.5


class Reporter:
    """Counts steps of one measurement. A context manager; `advance` after each step. seconds: the time that ends it, if
    any."""

    def __init__(self, title: str, total: int, seconds: float | None = None):
        self.title, self.total, self.done, self.seconds = title, total, 0, seconds
        self._file = settings.told("progress")
        self._started = time.monotonic()
        self._last = 0.0
        self._share, self._more = 0.0, False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if not self._file:
            sys.stderr.write("\r" + " " * 79 + "\r")

    def add(self, steps: int) -> None:
        """There is more to do than was planned."""
        self.total += steps
        self._more = True

    def advance(self, detail: str = "") -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._last < MIN_INTERVAL_S:
            return
        self._last = now
        elapsed = now - self._started
        share = min(1.0, elapsed / self.seconds) if self.seconds else self.done / self.total
        left = elapsed / share * (1 - share)
        # More to do is said, and is no step back.
        self._share = max(self._share, share)
        if self._more:
            detail = f"{detail}, more than planned"
        if self._file:
            text = json.dumps({"title": self.title, "detail": detail, "left_s": round(left, 1)})
            temporary = Path(self._file + ".tmp")
            temporary.write_text(text)
            temporary.replace(self._file)
        else:
            sys.stderr.write(f"\r{self.title}: {self._share:.0%}, {detail}, about {left:.0f} s left   ")
            sys.stderr.flush()
