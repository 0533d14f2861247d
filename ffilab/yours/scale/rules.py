"""From what was measured and watched to an answer. Nothing here measures: recorded arms and sweeps give the same."""

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from scipy import stats

from ffilab.judge.estimates import LEVEL, MIN_VALUES, Interval
from ffilab.judge.questions import above, larger
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.yours.scale.slices import Process, interval, left_out, ratio, throughput

# What scales does this share of the ceiling, at least; more work than so many times the threads' number is none.
SCALES, IMPOSSIBLE = 0.85, 1.25
# What is cured, or lost without a cure, by less than this share is not told as a finding.
MATTERS = 0.1
# Looks at an object in which it moved, and the share of them, from which on it is a suspect.
LEAST_SEEN, LEAST_SHARE = 3, 0.001
# For what is held so little nobody waits for long.
LEAST_HELD = 0.01
MOST_SUSPECTS = 12
# A pass below so many times an empty one is too little work; waits of a pass above this are locks of the system.
LITTLE, WAITING, FAULTING = 1.5, 1e-5, 0.5
BASE, PROCESSES, CONTROL, DISTURBED = "as it is", "processes", "control", "disturbed controls"
IMMORTAL, EVERYTHING, OWN = "all immortal", "everything immortal", "own setup"
DEFERRED, LOCAL, COPY, BESIDE, COLLECTOR, WITHOUT_GIL = (
    "deferred",
    "local names",
    "own copy",
    "beside others",
    "without the collector",
    "without the GIL",
)
WITHOUT = "all immortal but "
# The kinds of a suspect for which threads were parked: for its critical section, or because it is a lock.
WAITED, WAITED_LOCK = "waited", "waited lock"
# Verdicts.
ERROR, GIL, MACHINE, BANDWIDTH, LITTLE_WORK, FINE, HELD = (
    "error",
    "the GIL",
    "the machine",
    "the memory or the caches",
    "too little work",
    "scales",
    "held back",
)

Arms = Mapping[str, Sequence[Process]]


@dataclass(frozen=True)
class Suspect:
    """An object that moved while the statement ran, or was waited for. kind: counts, mutex, lock, waited or waited
    lock. share: of the looks. named: did a walk from the statement find it? imported: is it reached through a name of
    which a process has one, whatever is copied?"""

    name: str
    kind: str
    share: float
    status: str
    named: bool
    imported: bool = False

    @property
    def root(self) -> str:
        """The name from which the statement reaches it."""
        try:
            node = ast.parse(self.name, mode="eval").body
        except SyntaxError:
            return ""
        while not isinstance(node, ast.Name):
            node = getattr(node, "value", None) or getattr(node, "func", None)
            if node is None:
                return ""
        return node.id


def suspects(watched: Mapping) -> list[Suspect]:
    """What moved while the statement ran and not while `pass` did, the most moved first; an object once."""
    found: dict[tuple[str, str], Suspect] = {}
    for kind in ("counts", "mutex", "lock"):
        idle = {seen["name"] for seen in watched[f"pass {kind}"]["seen"]}
        sweeps = watched[f"statement {kind}"]["sweeps"]
        for seen in watched[f"statement {kind}"]["seen"]:
            # What was shifted once, as counts are when they are merged, does not move.
            moves = seen["changed"] >= max(LEAST_SEEN, LEAST_SHARE * sweeps)
            times = max(seen["changed"], seen["apart"])
            if moves and seen["name"] not in idle:
                found[kind, seen["name"]] = suspect(seen, kind, times / sweeps, watched["imported"])
    return sorted(found.values(), key=lambda one: (not one.named, -one.share))


def suspect(seen: Mapping, kind: str, share: float, imported: Sequence[str]) -> Suspect:
    those = Suspect(seen["name"], kind, share, seen["status"], seen["named"])
    return replace(those, imported=those.root in imported)


KINDS_WAITED = {"mutex": WAITED, "lock": WAITED_LOCK}


def waited_for(parked: Mapping) -> list[Suspect]:
    """The objects for whose locks threads were seen to wait."""
    found = [
        suspect(seen, KINDS_WAITED[seen["kind"]], seen["times"] / parked["parked"], parked["imported"])
        for seen in parked["waited"]
        if seen["times"] >= max(LEAST_SEEN, MATTERS * parked["parked"])
    ]
    return sorted(found, key=lambda one: -one.share)


def own_roots(those: Sequence[Suspect]) -> set[str]:
    """The names of which each thread could have an own copy."""
    return {one.root for one in those if one.root and not one.imported}


def counted(those: Sequence[Suspect]) -> list[Suspect]:
    return [one for one in those if one.kind == "counts"][:MOST_SUSPECTS]


def locked(those: Sequence[Suspect]) -> list[Suspect]:
    """Locks first: below one of `threading` an object's mutex may be taken, too."""
    held = (one for one in those if one.kind != "counts" and one.share >= LEAST_HELD)
    return sorted(held, key=lambda one: one.kind != "lock")


def value(arms: Arms, name: str) -> Interval:
    """Work of all threads over that of one; of all slices, where too few of them count to compare, or threads take
    turns of many slices."""
    those = arms.get(name, ())
    found = ratio(those)
    return found if found.is_known and not any(one.gil for one in those) else throughput(those)


def ceiling(arms: Arms, threads: int) -> float:
    """What is possible: as many processes, and no more than the threads."""
    found = value(arms, PROCESSES)
    return min(threads, found.value) if found.is_known else threads


def verdict(arms: Arms, threads: int) -> str:
    """What is to be said before anything is watched: one of the verdicts above, or `open`."""
    base, limit = value(arms, BASE), SCALES * threads
    if not arms.get(BASE):
        return MACHINE if above(value(arms, DISTURBED), limit) == NO and not busy(arms) else OPEN
    if any(one.gil for one in arms[BASE]):
        return GIL
    impossible = above(base, IMPOSSIBLE * threads)
    if impossible == YES:
        return ERROR
    if above(value(arms, CONTROL), limit) != YES:
        # Of what was disturbed nothing is said.
        return OPEN
    said = above(base, limit)
    if said == YES:
        # Waits that are rare and long are in no middle slice.
        rare = above(throughput(arms[BASE]), limit) == NO and above(throughput(arms[CONTROL]), limit) == YES
        said = HELD if rare else FINE if impossible == NO else OPEN
    elif above(value(arms, PROCESSES), limit) == NO and larger(value(arms, PROCESSES), base) != YES:
        return BANDWIDTH
    elif larger(value(arms, PROCESSES), base) == YES:
        below = {YES: FINE, NO: HELD}.get(above(base, SCALES * ceiling(arms, threads)), OPEN)
        said = HELD if below == OPEN and slow(arms) else below
    else:
        said = HELD if slow(arms) else OPEN
    return LITTLE_WORK if said != HELD and too_little(arms) else said


def slow(arms: Arms) -> bool:
    """Of all slices, do they certainly do less than those of as many processes? On a busy machine who waits for a lock
    has to wait for a core, too, and such slices do not count in the ratio."""
    base, apart = throughput(arms[BASE]), throughput(arms.get(PROCESSES, ()))
    return larger(apart, base) == YES and base.value < 0.7 * apart.value


def too_little(arms: Arms) -> bool:
    """Does a pass take no longer than an empty one?"""
    passes = [min(one.alone) / one.empty for one in arms[BASE] if one.alone and one.empty]
    return bool(passes) and sorted(passes)[len(passes) // 2] < LITTLE


def busy(arms: Arms) -> bool:
    """Were the controls themselves kept from their cores?"""
    return left_out(arms[DISTURBED]) > 0.3


def quiet(control: Process, threads: int) -> bool:
    """Did threads that share nothing get their cores just then? What ran beside a control that did not is measured
    again, whatever it says itself."""
    return control.ratio > SCALES * threads


def both(arms: Arms, one: str, other: str) -> tuple[list[float], list[float]]:
    """The processes of two arms in one currency: slices that count, or, where one arm has too few of them, all."""
    found: list[list[float]] = [[], []]
    for currency in ("ratio", "throughput"):
        found = [[getattr(process, currency) for process in arms.get(name, ())] for name in (one, other)]
        if all(interval(values).is_known for values in found):
            break
    return found[0], found[1]


def certainly_more(here: Sequence[float], there: Sequence[float]) -> bool:
    """By their intervals; or by their ranks (Mann and Whitney 1947): threads that meet at a count, or happen not to,
    leave a ratio two states and a wide interval."""
    if larger(interval(here), interval(there)) == YES:
        return True
    known = [[value for value in values if math.isfinite(value)] for values in (here, there)]
    enough = min(map(len, known)) >= MIN_VALUES
    return enough and stats.mannwhitneyu(*known, alternative="greater").pvalue < 1 - LEVEL


def undecided(arms: Arms, one: str, other: str = BASE) -> bool:
    """Would more processes tell whether an arm does more than another one?"""
    here, there = both(arms, one, other)
    return not certainly_more(here, there) and not interval(here).value < (1 + MATTERS) * interval(there).value


def better(arms: Arms, one: str, other: str = BASE) -> bool:
    """Does an arm certainly do more than another one, and by an amount that matters?"""
    here, there = both(arms, one, other)
    return certainly_more(here, there) and interval(here).value > (1 + MATTERS) * interval(there).value


def cured(arms: Arms, name: str, threads: int) -> bool:
    """Does an arm certainly scale?"""
    return above(value(arms, name), SCALES * ceiling(arms, threads)) == YES


def known(arms: Arms) -> str:
    """The arm in which counts that are known are cured, if there is one."""
    return IMMORTAL if IMMORTAL in arms else BASE


def lacks(arms: Arms, name: str, threads: int) -> bool:
    """Is there still something between an arm and the ceiling?"""
    return name not in arms or value(arms, name).value < 0.95 * ceiling(arms, threads)


def culprits(arms: Arms, those: Sequence[Suspect]) -> list[Suspect]:
    """Of what was made immortal, each without which much of the work is lost; where each loses little, those that
    certainly lose some. None if all together gain nothing."""
    if not better(arms, IMMORTAL):
        return []
    if len(those) == 1:
        return list(those)
    much = [one for one in those if better(arms, IMMORTAL, WITHOUT + one.name)]
    return much or [one for one in those if certainly_more(*both(arms, IMMORTAL, WITHOUT + one.name))]


# ---- where threads are parked ----

# Functions of the C library in which whatever waits does so.
WAITING_FOR = ("sem_", "pthread_cond", "__", "syscall", "futex", "clock_nanosleep")
# Functions of the interpreter that call whatever there is to call, and name nothing.
CALLS = ("_PyEval", "PyEval", "_PyObject", "PyObject", "_PyFunction", "_PyVectorcall", "PyCFunction")
# Functions of the interpreter through which it waits for a lock of its own, and those that lock an extension's mutex.
TAKES = {
    "_PyMutex_LockTimed": "PyMutex_Lock",
    "PyMutex_Lock": "PyMutex_Lock",
    "PyThread_acquire_lock_timed": "PyThread_acquire_lock",
    "PyThread_acquire_lock": "PyThread_acquire_lock",
}
PARKS, LOCKS = ("_PySemaphore_Wait", "_PyParkingLot_Park", "PyEvent_Wait", "PyThread_acquire_lock"), "pthread_"


@dataclass(frozen=True)
class Parked:
    """Where threads wait, by most of the stacks that were seen: the file whose lock it is, the function where known,
    and the extension that called, if there is one."""

    owner: str
    function: str
    caller: str
    share: float


class Frame(NamedTuple):
    """One frame of a stack: its file, and its function where that has a name."""

    file: str
    symbol: str

    @property
    def in_c_library(self) -> bool:
        """Is it of the C library or of the loader?"""
        return self.file.startswith(("libc.", "libc-", "ld-", "libpthread", "libm."))

    @property
    def works(self) -> bool:
        """Is it a named function of the C library, and none that only waits for the kernel?"""
        return self.in_c_library and bool(self.symbol) and not self.symbol.startswith(WAITING_FOR)


def place(stack: Sequence[Sequence[str]], python: str) -> tuple[str, str, str]:
    """Of one stack, the innermost frame first: whose lock, which function, and called by which extension."""

    def ours(frame: Frame) -> bool:
        return frame.file == python or frame.file.startswith("libpython")

    frames = [Frame(*frame) for frame in stack]
    innermost = list(itertools.takewhile(lambda frame: frame.in_c_library, frames))
    outside = frames[len(innermost) :]
    extensions = [frame.file for frame in outside if not ours(frame) and not frame.in_c_library]
    extensions = [file for file in extensions if not file.startswith("libffi")] or extensions
    caller = extensions[0] if extensions else ""
    if named := [frame.symbol for frame in innermost if frame.works]:
        if not named[0].startswith(LOCKS) or not caller:
            return "the C library", named[0], caller
        # Who locks: the extension, or what it calls in the C library.
        calls = itertools.takewhile(lambda frame: frame.file != caller, frames)
        inner = [frame.symbol for frame in calls if frame.works and not frame.symbol.startswith(LOCKS)]
        return ("the C library", inner[0], caller) if inner else (caller, named[0], caller)
    unnamed = innermost and not any(frame.symbol for frame in innermost)
    if unnamed and not any(frame.symbol.startswith(PARKS) for frame in frames):
        # A lock inside of it, below functions that it does not name. Behind what calls it the stack is of others.
        below = itertools.takewhile(lambda frame: not frame.symbol.startswith(CALLS), outside)
        return "the C library", "", next((frame.symbol for frame in below if frame.symbol), "")
    # An extension's lock ends in one of these; what the interpreter locks for itself has others in between.
    taken = [number for number, frame in enumerate(frames) if frame.symbol in TAKES]
    behind = frames[taken[-1] + 1 :] if taken else []
    between = list(itertools.takewhile(lambda frame: ours(frame) or frame.in_c_library, behind))
    if len(between) < len(behind) and not any(ours(frame) and frame.symbol for frame in between):
        owner = behind[len(between)].file
        return owner, TAKES[frames[taken[-1]].symbol], owner
    if outside and not ours(outside[0]):
        return outside[0].file, outside[0].symbol, ""
    return "the interpreter", "", caller


def where_parked(said: Mapping, called: str = "") -> Parked | None:
    """What most of the parked stacks agree on; None if nobody waits, or they do not agree. called: what the statement
    calls, where no stack names it."""
    if said["parked"] < LEAST_SEEN:
        return None
    votes: dict[tuple[str, str, str], int] = {}
    for times, stack in said["stacks"]:
        spot = place(stack, said["python"])
        votes[spot] = votes.get(spot, 0) + times
    by_owner: dict[str, int] = {}
    for (owner, _, _), times in votes.items():
        by_owner[owner] = by_owner.get(owner, 0) + times
    owner = max(by_owner, key=lambda one: by_owner[one])
    if 2 * by_owner[owner] <= sum(votes.values()):
        return None
    _, function, caller = max((spot for spot in votes if spot[0] == owner), key=lambda spot: votes[spot])
    return Parked(owner, function, caller or called, said["parked"] / said["looks"])


# ---- kinds and cures ----

COUNTS, SECTION, LOCK, EXTENSION, C_LIBRARY = (
    "counts",
    "a critical section",
    "a lock of threading",
    "a lock of an extension",
    "a lock of the C library",
)
STOPS, SYSTEM, DATA, INTERPRETER, UNKNOWN = (
    "stopping the world",
    "memory of the system",
    "data on one cache line",
    "a lock of the interpreter",
    "not known",
)
UNSEEN = "objects that were not seen to move"
PRICES = {
    LOCAL: (
        "a local name, fetched once",
        "what another thread binds to the global name later is not seen; a comprehension on one line counts it still",
    ),
    COPY: ("a copy for each thread", "memory, and what one thread changes the others do not see"),
    DEFERRED: ("deferred counts, asked for in C", "freed by the collector alone; from 3.14 on"),
    IMMORTAL: ("immortal objects, made so in C", "never freed; a private function of CPython does it"),
}


@dataclass(frozen=True)
class Culprit:
    """What holds threads back. kind: one of the kinds above. without: what is left of the work if it alone is not
    cured; None where there is nothing to leave out."""

    name: str
    kind: str
    status: str = ""
    without: Interval | None = None


@dataclass(frozen=True)
class Cure:
    """What an arm showed to help: its work, and what it costs."""

    how: str
    ratio: Interval
    price: str
    is_enough: bool


def of_locks(arms: Arms, those: Sequence[Suspect]) -> list[Culprit]:
    """Locks of objects that threads waited for; else those that were seen held, if own copies of what the statement
    reaches them through help."""
    if waited := [one for one in those if one.kind in KINDS_WAITED.values()]:
        told = {WAITED: SECTION, WAITED_LOCK: LOCK}
        return [Culprit(one.name, told[one.kind], f"waited for in {one.share:.0%} of the stacks") for one in waited]
    helped = COPY in arms and better(arms, COPY, known(arms))
    return told_of_locks([one for one in locked(those) if helped and own_roots([one])])


def not_copied(those: Sequence[Suspect]) -> list[Culprit]:
    """Locks that were seen held, and of which no thread can have a copy."""
    return told_of_locks([one for one in locked(those) if not own_roots([one])])


def told_of_locks(seen: Sequence[Suspect]) -> list[Culprit]:
    """Those of `threading` alone, where there are some: each has a mutex, too."""
    if any(one.kind == "lock" for one in seen):
        seen = [one for one in seen if one.kind == "lock"]
    return [
        Culprit(one.name, LOCK if one.kind == "lock" else SECTION, f"held in {one.share:.0%} of looks") for one in seen
    ]


def stops_others(arms: Arms) -> bool | None:
    """Does a thread that shares nothing lose beside the statement? None if that is not certain."""
    others = [min(one.rates[1:]) for one in arms.get(BESIDE, ())]
    return {NO: True, YES: False}.get(above(interval(others), SCALES))


def unexplained(arms: Arms, threads: int) -> bool:
    """Is there a loss that no cure of counts takes away?"""
    return not any(cured(arms, name, threads) for name in (IMMORTAL, EVERYTHING, DEFERRED) if name in arms)


def by_copies(arms: Arms, those: Sequence[Suspect], threads: int) -> bool:
    """Does a copy for each thread of what is counted take away all of it, and immortal objects most, so that the rest
    lies with the same objects?"""
    if not culprits(arms, counted(those)) or locked(those) or not cured(arms, COPY, threads):
        return False
    base, immortal, copied = (value(arms, name).value for name in (BASE, IMMORTAL, COPY))
    return 2 * (immortal - base) > copied - base


def explained(arms: Arms, those: Sequence[Suspect], parked: Parked | None, threads: int) -> list[Culprit]:
    """What holds the threads back, each with its kind; the surest first. Beside a lock, a cache line or pages what was
    not seen to move is not told: immortal objects change who meets there, too."""
    found = causes(arms, those, parked, threads)
    others = {one.kind for one in found} - {COUNTS, UNKNOWN}
    return [one for one in found if one.name != UNSEEN] if others else found


def causes(arms: Arms, those: Sequence[Suspect], parked: Parked | None, threads: int) -> list[Culprit]:
    """Of counts, then the first of what else there is for which something speaks."""
    # Values at the edge of what was suspected are innocents: they are named by what their absence costs.
    guilty = culprits(arms, counted(those))
    found = [Culprit(one.name, COUNTS, one.status, value_of(arms, WITHOUT + one.name)) for one in guilty]
    if better(arms, EVERYTHING, known(arms)):
        found = [*found, Culprit(UNSEEN, COUNTS)]
    if not unexplained(arms, threads) or by_copies(arms, those, threads):
        return found or [Culprit("the rest", UNKNOWN)]
    locks = of_locks(arms, those)
    if locks:
        # Whoever waits for its lock counts it, too.
        seen = {lock.name for lock in locks}
        return [one for one in found if one.name not in seen] + locks
    # Whoever stops the others has them wait at locks, too.
    stops = stops_others(arms)
    if parked and parked.owner == "the C library" and not stops:
        # Where its own function has no name, the one that called it.
        name = parked.function or parked.caller or parked.owner
        return [*found, Culprit(name, C_LIBRARY, f"called by {parked.caller}" if name != parked.caller else "")]
    if parked and parked.function.startswith((*TAKES, LOCKS)) and not stops:
        return [*found, Culprit(parked.caller, EXTENSION, f"taken through {parked.function}")]
    collector = better(arms, COLLECTOR)
    # Memory that is given back interrupts the other cores, so that who only computes there loses, too.
    if sum(one.faults for one in arms[BASE]) > FAULTING * len(arms[BASE]) and not collector:
        return [*found, Culprit("page faults", SYSTEM, "threads share one address space")]
    if stops:
        return [*found, Culprit("the collector" if collector else "the statement", STOPS)]
    if locks := not_copied(those):
        return [*found, *locks]
    if parked and parked.owner == "the interpreter":
        return [*found, Culprit("the interpreter", INTERPRETER, "where threads were seen to wait")]
    if better(arms, OWN, known(arms)):
        return [*found, Culprit("data of the setup", DATA, "nothing counted or locked was seen")]
    # Beside what was found a rest is told only where there certainly is one.
    rest = not found or above(value(arms, known(arms)), SCALES * ceiling(arms, threads)) == NO
    return [*found, Culprit("the rest", UNKNOWN)] if rest else found


def value_of(arms: Arms, name: str) -> Interval | None:
    return value(arms, name) if name in arms else None


def cures(arms: Arms, threads: int) -> list[Cure]:
    """What certainly helped, in the order of what one would try first."""
    return [
        Cure(how, value(arms, name), price, cured(arms, name, threads))
        for name, (how, price) in PRICES.items()
        if name in arms and better(arms, name)
    ]
