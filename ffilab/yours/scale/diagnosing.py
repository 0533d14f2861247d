"""Which arms to try next, until the question is answered or the time is over."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from ffilab.judge.estimates import MIN_VALUES
from ffilab.judge.rules import OPEN
from ffilab.measure.reporting import Reporter
from ffilab.run.errors import UserError
from ffilab.yours.scale import rules
from ffilab.yours.scale.asking import Asker, cores, python_of
from ffilab.yours.scale.result import Scaling

# Processes of an arm; of the statement as it is, and of it where the answer is open.
EACH, OF_BASE, ENOUGH, AT_MOST = MIN_VALUES, 5, 7, 20
# Seconds of a sweep, and of looking where threads are parked.
SWEEP_S, PARK_S = 0.4, 1.0
# How often the statement is tried while its control is disturbed; what comes after it, until the time is over.
TRIES = 3
# How often is watched, what is known being immortal.
LOOKS = 3


def scale(
    statement: str,
    setup: str = "",
    *,
    python: str | Path | None = None,
    file: str | Path | None = None,
    threads: int = 2,
    seconds: float = 60.0,
    quiet: bool = False,
    hurry: bool = True,
) -> Scaling:
    """How much more work do several threads do than one, and what holds them back? Returns a `Scaling`.

    statement, setup: as in `timeit`, but the names of the setup are globals of a module, which all threads share; the
    statement runs many times. `ffilab_thread` is the number of the thread in it.
    python: a free-threaded CPython, by its path, name on PATH or environment; this one, if none is given. file: a file
    whose names statement and setup may use.
    threads: how many, at most as many as there are cores. seconds: end after this time, also if it is open then.
    hurry: whether root's processes come before other work of the machine.
    Raises UserError, in one sentence, where something cannot be measured. After Ctrl-C the result is of what there is.
    """
    if not statement.strip():
        raise UserError("There is nothing to run: give a statement.")
    cores(threads)
    label, found = python_of(str(python or sys.executable))
    folder = Path(tempfile.mkdtemp(prefix="ffilab-"))
    try:
        path = str(Path(file).absolute()) if file else None
        asker = Asker(found.python, statement, setup, path, threads, folder, hurry)
        record = Scaling(statement, label, threads)
        diagnosis = Diagnosis(asker, record, time.monotonic() + seconds)
        began = time.monotonic()
        try:
            if quiet:
                diagnosis.run()
            else:
                with Reporter(f"{threads} threads", 1, seconds) as reporter:
                    diagnosis.show = reporter.advance
                    diagnosis.run()
        except KeyboardInterrupt:
            if len(record.arms.get(rules.BASE, ())) < MIN_VALUES:
                raise
            record.stopped = True
        record.seconds = time.monotonic() - began
        return record
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Diagnosis:
    """Fills a record. end: of the time, by the monotonic clock."""

    def __init__(self, asker: Asker, record: Scaling, end: float):
        self.asker, self.record, self.end = asker, record, end
        self.show: Callable[[str], None] = lambda what: None
        # By arm, how it was measured: so that it can be once more.
        self.how: dict[str, dict] = {}

    def has_time(self) -> bool:
        return time.monotonic() < self.end

    def arm(self, name: str, *options: str, times: int = EACH, **how) -> None:
        """Measure an arm in so many further processes, and the control beside them."""
        self.how[name] = how
        self.beside_a_control({name: lambda: [self.asker.measure(*options, **how) for _ in range(times)]})

    def beside_a_control(self, arms: dict[str, Callable[[], list]]) -> None:
        """Measure arms, then the control: if that did not get its cores, they are measured again. After the end of the
        time nothing is tried."""
        kept = self.record.arms
        # An arm that is not there would make an innocent of its object.
        for _ in range(TRIES) if rules.BASE in arms else count():
            if not self.has_time() and kept:
                return
            self.show(", ".join(arms))
            found = {name: measured() for name, measured in arms.items()}
            control = self.asker.measure(control=True)
            if control.gil or rules.quiet(control, self.asker.threads):
                for name, processes in [*found.items(), (rules.CONTROL, [control])]:
                    kept.setdefault(name, []).extend(processes)
                return
            kept.setdefault(rules.DISTURBED, []).append(control)

    def settle(self, name: str, other: str = rules.BASE, **how) -> bool:
        """Measure an arm until it is known whether it does more than another one, or there is enough of it; is it?"""
        if name not in self.record.arms:
            self.arm(name, **how)
        while rules.undecided(self.record.arms, name, other) and self.more(name):
            self.arm(name, times=2, **how)
            self.arm(other, times=2, **self.how.get(other, {}))
        return rules.better(self.record.arms, name, other)

    def again(self, *names: str) -> None:
        """Ask arms once more, beside each other: a machine may drift between one and the next."""
        for name in names if self.has_time() else ():
            self.arm(name, times=2, **self.how.get(name, {}))

    def more(self, name: str) -> bool:
        """May there be more processes of an arm?"""
        return self.has_time() and 0 < len(self.record.arms.get(name, ())) < ENOUGH

    def run(self) -> None:
        self.asker.ask("measure", seconds=0)  # a mistake is told at once
        for _ in range(OF_BASE):
            self.round()
        while self.record.verdict == OPEN and self.has_time() and len(self.record.arms.get(rules.BASE, ())) < AT_MOST:
            self.round()
        if self.record.verdict == rules.GIL:
            self.without_gil()
        elif self.record.verdict == rules.HELD:
            self.why()
        for fewer in range(2, self.asker.threads):
            self.arm(f"{fewer} threads", threads=fewer)

    def round(self) -> None:
        """The statement as it is, and in as many processes."""
        one = self.asker
        self.beside_a_control(
            {rules.BASE: lambda: [one.measure()], rules.PROCESSES: lambda: [one.measure(processes=True)]}
        )

    def without_gil(self) -> None:
        """Which module brought it back, and what would be without it?"""
        said = self.asker.ask("measure", seconds=0)["because"]
        self.record.gil_by = said[0].split("'")[1] if said and "'" in said[0] else ""
        self.arm(rules.WITHOUT_GIL, "-X", "gil=0")

    def why(self) -> None:
        """Watch, cure, leave out; then what is left."""
        self.show("watching")
        record = self.record
        watched = self.asker.ask("watch", seconds=SWEEP_S)
        record.suspects = rules.suspects(watched)
        for again in range(1, LOOKS + 1):
            names = self.counted()
            if names:
                record.arms.pop(rules.IMMORTAL, None)
                self.settle(rules.IMMORTAL, immortal=names)
            if not rules.lacks(record.arms, rules.IMMORTAL, self.asker.threads):
                break
            if not self.unseen() or again == LOOKS:
                break
            # What moves seldom is seen once the others are still.
            self.show("watching again")
            further = rules.suspects(self.asker.ask("watch", seconds=4 * SWEEP_S, idle_share=0.25, immortal=names))
            seen = {(one.kind, one.name) for one in record.suspects}
            record.suspects += [one for one in further if (one.kind, one.name) not in seen]
            if self.counted() == names:
                break
        # What was compared with it meanwhile may have left it open.
        if names and self.settle(rules.IMMORTAL, immortal=names):
            if rules.unexplained(record.arms, self.asker.threads):
                self.again(rules.BASE, rules.IMMORTAL)
            for name in names if len(names) > 1 else ():
                self.left_out(name, [other for other in names if other != name])
            guilty = rules.culprits(record.arms, rules.counted(record.suspects))
            self.cures(guilty)
        threads = self.asker.threads
        if rules.unexplained(record.arms, threads) and not rules.by_copies(record.arms, record.suspects, threads):
            self.rest(rules.own_roots(rules.locked(record.suspects)), set(watched["imported"]))

    def unseen(self) -> bool:
        """Do counts hold back that were not seen? Asked twice: a lock may be met in one second and not in the next."""
        known = rules.known(self.record.arms)
        if self.settle(rules.EVERYTHING, known, immortal="everything"):
            self.again(known, rules.EVERYTHING)
        return rules.better(self.record.arms, rules.EVERYTHING, known)

    def counted(self) -> list[str]:
        """The names of what is to be made immortal."""
        return [one.name for one in rules.counted(self.record.suspects)]

    def left_out(self, name: str, others: list[str]) -> None:
        """All immortal but one: until it is known whether that loses."""
        arm = rules.WITHOUT + name
        self.arm(arm, immortal=others)
        while rules.undecided(self.record.arms, rules.IMMORTAL, arm) and self.more(arm):
            self.again(arm)
            if self.more(rules.IMMORTAL):
                self.again(rules.IMMORTAL)

    def cures(self, guilty: Sequence[rules.Suspect]) -> None:
        """What a reader could do about counted objects."""
        if guilty:
            self.arm(rules.DEFERRED, deferred=[one.name for one in guilty])
            if local := sorted({one.root for one in guilty} & self.asker.names()):
                self.arm(rules.LOCAL, local=local)
            if own := sorted(rules.own_roots(guilty) & self.asker.names()):
                self.arm(rules.COPY, own=own)

    def rest(self, roots: set[str], imported: set[str]) -> None:
        """What counts do not explain. roots: the names behind locks. imported: those that a thread cannot have of its
        own."""
        known = rules.known(self.record.arms)
        own = sorted(roots & self.asker.names())
        if own:
            self.settle(rules.COPY, known, own=own)
        if rules.of_locks(self.record.arms, self.record.suspects):
            return
        self.show("where threads wait")
        parked = self.asker.ask("park", seconds=PARK_S)
        self.record.parked = rules.where_parked(parked, self.asker.calls())
        waited = rules.waited_for(parked)
        self.record.suspects += waited
        if waited:
            if own := sorted(rules.own_roots(waited) & self.asker.names()):
                self.settle(rules.COPY, known, own=own)
            return
        if self.asker.names() - imported:
            self.settle(rules.OWN, known, own=True)
        self.arm(rules.BESIDE, beside=True)
        while rules.stops_others(self.record.arms) is None and self.more(rules.BESIDE):
            self.again(rules.BESIDE)
        if rules.stops_others(self.record.arms):
            self.settle(rules.COLLECTOR, no_collector=True)
