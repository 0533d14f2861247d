"""How far a build of CPython with profile has come, from what `make` prints and, where it prints nothing, from the time."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass


def approached(share: float, knee: float) -> float:
    """The share to show where the expectation may have been too small: beyond the knee ever closer to 1, and never there."""
    share, room = max(share, 0.0), 1 - knee
    return share if share <= knee else 1 - room**2 / (share - knee + room)


@contextmanager
def ticking(function, every_s: float = 1.0):
    """Call a function now and then from a thread of its own, meanwhile."""
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


@dataclass(frozen=True)
class Stage:
    """seconds: on two slow cores. lines: that are printed, about, as versions differ. cores: how many it can use, None for all.
    begins: what stands in the line that begins it."""

    name: str
    seconds: float
    lines: int = 0
    cores: int | None = 1
    begins: str | None = None

    def expected(self, jobs: int) -> float:
        """Seconds with that many jobs at a time."""
        return self.seconds * MEASURED_JOBS / jobs if self.cores is None else self.seconds


MEASURED_JOBS = 2
# Builds of 3.14 and 3.14t, by the times of the stamps that `make` leaves.
STAGES = (
    Stage("fetch and unpack", 5),
    Stage("configure", 27),
    Stage("instrumented build", 115, 500, None, "Building with support for profile generation"),
    # One process, most of the time on one core; it prints nothing.
    Stage("training run", 22, begins="run the profile task"),
    Stage("final build", 95, 520, None, "Rebuilding with profile guided optimizations"),
    Stage("install", 10, 1_900),
)
# From this share of a stage on it only approaches its end: lines and seconds are expectations.
KNEE = 0.8


def expected(jobs: int) -> float:
    """Seconds for a whole build with that many jobs at a time."""
    return sum(stage.expected(jobs) for stage in STAGES)


class Stages:
    """Call `enter` and `line` as the build goes; `share` rises with lines and with time, and never reaches 1.

    jobs: at a time. estimate: seconds that the whole is expected to take.
    """

    def __init__(self, jobs: int, estimate: float, clock=time.monotonic):
        self._clock, self._estimate = clock, estimate
        self._seconds = [stage.expected(jobs) * estimate / expected(jobs) for stage in STAGES]
        self._began = self._entered = clock()
        self._number = self._lines = 0
        # Of all stages.
        self.lines = 0
        # How much longer than expected the last whole stage took; this one may, too.
        self._slower = 1.0

    @property
    def name(self) -> str:
        return STAGES[self._number].name

    def enter(self, name: str) -> None:
        """Go on to a stage; never back, as an interrupted `make` may begin in the middle."""
        number = [stage.name for stage in STAGES].index(name)
        if number > self._number:
            now = self._clock()
            if self.name != "fetch and unpack":
                self._slower = max(1.0, (now - self._entered) / self._seconds[self._number])
            self._number, self._lines, self._entered = number, 0, now

    def line(self, text: str) -> None:
        """Count a line of output, and see whether it begins a stage."""
        self._lines += 1
        self.lines += 1
        for stage in STAGES[self._number + 1 :]:
            if stage.begins and stage.begins in text:
                self.enter(stage.name)

    def share(self) -> float:
        """Share of the whole build, below 1."""
        seconds, lines = self._seconds[self._number], STAGES[self._number].lines
        done = (self._clock() - self._entered) / (seconds * self._slower)
        if lines:
            # Both: lines know how fast this machine is, and the time goes on where a link prints nothing.
            done = (done + self._lines / lines) / 2
        return (sum(self._seconds[: self._number]) + seconds * approached(done, KNEE)) / sum(self._seconds)

    def left(self) -> float:
        """Seconds: at first as estimated, then more and more by the pace so far."""
        share = self.share()
        return (1 - share) * ((1 - share) * self._estimate + (self._clock() - self._began))
