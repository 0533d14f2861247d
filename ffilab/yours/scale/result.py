"""What `ffilab scale` says, on one screen, and its record."""

import html
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ffilab.judge import wording
from ffilab.judge.estimates import Interval
from ffilab.judge.questions import above
from ffilab.judge.rules import NO, OPEN
from ffilab.run.errors import UserError
from ffilab.yours.scale import rules
from ffilab.yours.scale.slices import Process, left_out, ratio, throughput

# How a kind is named in a sentence about the objects that are called so.
HELD_BY = {
    rules.COUNTS: "the reference counts of {}",
    rules.SECTION: "the critical section of {}, which each thread that changes it must pass",
    rules.LOCK: "the lock {}",
    rules.EXTENSION: "a lock of its own that {} takes",
    rules.C_LIBRARY: "a lock of the C library, in {}",
    rules.STOPS: "{}, which stops all threads (a thread beside it that shares nothing stops, too)",
    rules.SYSTEM: "{}: all threads ask the system for memory of one address space",
    rules.DATA: "{} that all write: a setup for each thread cures it, and neither a count nor a lock was seen",
    rules.INTERPRETER: "a lock of {}, which no object of Python's has",
    rules.UNKNOWN: "something that this tool cannot name: no count and no lock that Python reaches",
}
NOT_JUDGED = "Not judged: other machines, and work that is not this statement."


@dataclass(repr=False)
class Scaling:
    """How much more work several threads do than one, and what holds them back.

    statement, python: what ran, and on what. threads: how many. arms: for each arm its processes. suspects: what was
    seen to move. parked: where threads were seen to wait. gil_by: the module that brought the GIL back. stopped: by
    Ctrl-C. seconds: of the whole.
    """

    statement: str
    python: str
    threads: int
    arms: dict[str, list[Process]] = field(default_factory=dict)
    suspects: list[rules.Suspect] = field(default_factory=list)
    parked: rules.Parked | None = None
    gil_by: str = ""
    stopped: bool = False
    seconds: float = 0.0

    @property
    def ratio(self) -> Interval:
        """Work of all threads over that of one, with its 98 % interval over processes."""
        return rules.value(self.arms, rules.BASE)

    @property
    def ceiling(self) -> Interval:
        """Work of as many processes over that of one, with its 98 % interval: what the machine allows."""
        return rules.value(self.arms, rules.PROCESSES)

    @property
    def control(self) -> Interval:
        """As `ratio`, of a statement that shares nothing."""
        return rules.value(self.arms, rules.CONTROL)

    @property
    def throughput(self) -> Interval:
        """As `ratio`, of all slices, those that were preempted among them."""
        return throughput(self.arms.get(rules.BASE, ()))

    @property
    def left_out(self) -> float:
        """The share of slices that were preempted or waited for a core, and do not count in `ratio`."""
        return left_out(self.arms.get(rules.BASE, ()))

    @property
    def waits(self) -> float:
        """How often a pass waits in the system while all threads run."""
        processes = self.arms.get(rules.BASE, ())
        return sum(one.waits for one in processes) / max(1, len(processes))

    @property
    def verdict(self) -> str:
        """`scales`, `held back`, `open`, `error`, or what else limits it: the GIL, the machine, the memory or the
        caches, too little work."""
        return rules.verdict(self.arms, self.threads)

    @property
    def culprits(self) -> list[rules.Culprit]:
        """What holds the threads back, the surest first; empty unless it is held back."""
        if self.verdict != rules.HELD:
            return []
        return rules.explained(self.arms, self.suspects, self.parked, self.threads)

    @property
    def kinds(self) -> list[str]:
        """The kinds of what holds them back, each once; if it is no object, the verdict."""
        if self.verdict in (rules.GIL, rules.MACHINE, rules.BANDWIDTH, rules.LITTLE_WORK):
            return [self.verdict]
        return list(dict.fromkeys(one.kind for one in self.culprits))

    @property
    def cures(self) -> list[rules.Cure]:
        """What was tried and certainly helped."""
        return rules.cures(self.arms, self.threads)

    def below(self, limit: float) -> str:
        """Is the ratio certainly below a limit? yes, no or open."""
        return {NO: "yes", OPEN: OPEN}.get(above(self.ratio, limit), "no")

    def gate(self, limit: float) -> str:
        """What `below` says, in one sentence: failed, open, passed or stopped early."""
        below = self.below(limit)
        if self.stopped and below != "yes":
            return (
                f"Not judged whether {self.threads} threads do {limit:g} times the work of one: it was stopped early."
            )
        said = {
            "yes": f"Failed: {self.threads} threads do less than {limit:g} times the work of one.",
            "no": f"Passed: {self.threads} threads do more than {limit:g} times the work of one.",
            OPEN: f"Open: this run cannot tell whether {self.threads} threads do {limit:g} times the work of one.",
        }
        return said[below]

    # ---- the screen ----

    @property
    def answer(self) -> str:
        """What it comes to, in one or two sentences."""
        verdict = self.verdict
        if verdict == OPEN:
            return f"Open: {self.why_open()}"
        if verdict == rules.ERROR:
            return (
                "An error: more work than the threads can do. The statement does less when others run it, too, as a "
                "second collection does that finds nothing: measure the work itself."
            )
        if verdict == rules.GIL:
            by = f", which came back with the module {self.gil_by}" if self.gil_by else ""
            off = self.arms.get(rules.WITHOUT_GIL)
            kept = f" Kept off (-X gil=0), it is {text(ratio(off))}." if off else ""
            return f"Held back by the GIL{by}.{kept}"
        other = {
            rules.FINE: "It scales: there is nothing to find.",
            rules.MACHINE: "The machine: threads that share nothing do no more either. Give them other cores.",
            rules.BANDWIDTH: f"The memory or the caches: {self.threads} processes, which share nothing else, do no "
            "more either. Touch less memory.",
            rules.LITTLE_WORK: "Too little work: a pass takes hardly longer than an empty one. Give it more to do.",
        }
        return other.get(verdict) or self.held_back()

    def why_open(self) -> str:
        if rules.above(self.control, rules.SCALES * self.threads) != "yes":
            return (
                "threads that share nothing did not get their cores for certain. Run it again beside less other work."
            )
        return "the interval holds both answers. Give it more --time, or less other work beside it."

    def held_back(self) -> str:
        found, lines = self.culprits, []
        for kind in dict.fromkeys(one.kind for one in found):
            names = [
                f"`{one.name}`" if kind in CODE and one.name != rules.UNSEEN else one.name
                for one in found
                if one.kind == kind
            ]
            more = "Also held back by" if lines else "Held back by"
            lines.append(f"{more} {HELD_BY[kind].format(wording.listed(names))}{self.shown(kind, found)}.")
        return "\n".join(lines)

    def shown(self, kind: str, found: Sequence[rules.Culprit]) -> str:
        """What was tried of a kind."""
        those = [one for one in found if one.kind == kind]
        if kind == rules.COUNTS and rules.IMMORTAL in self.arms:
            cured = text(rules.value(self.arms, rules.IMMORTAL))
            lost = wording.listed([f"{one.without.value:.2f}" for one in those if one.without])
            if not lost:
                return f": with {'all' if len(those) > 1 else 'it'} immortal {cured}"
            # One alone was left out of several that moved.
            if len(those) == 1:
                return f": with all that moved immortal {cured}; with all but it {lost}"
            return f": with all immortal {cured}; with one of them left out {lost}"
        if kind in (rules.SECTION, rules.LOCK):
            copied = f"; with a copy for each thread {text(rules.value(self.arms, rules.COPY))}"
            return f" ({those[0].status})" + (copied if rules.COPY in self.arms else "; no copy could be tried")
        return f" ({those[0].status})" if those and those[0].status else ""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What was compared: a name, and its ratio."""
        rows = [
            (f"work of {self.threads} threads over that of one", text(self.ratio)),
            (f"the same of {self.threads} processes: the ceiling", text(self.ceiling)),
            ("threads that share nothing: the control", text(self.control)),
        ]
        if above(self.throughput, self.ratio.value) == NO or self.waits > rules.WAITING:
            rows.insert(1, ("of all slices, also those left out", text(self.throughput)))
        return rows

    def __str__(self) -> str:
        wide = max(len(name) for name, _ in self.rows)
        lines = [f"{self.answer}", ""]
        lines += [f"{name:<{wide}}  {value}" for name, value in self.rows]
        lines += [*self.figure()]
        if self.verdict == rules.HELD and self.cures:
            lines += ["", "What helped, and its price:"]
            lines += [f"  {one.how}: {text(one.ratio)} ({one.price})" for one in self.cures]
        stopped = ["Stopped early: this is of what was measured until then."] if self.stopped else []
        said = (
            f"{self.statement.strip().splitlines()[0]} on {self.python}, {self.threads} threads; {self.seconds:.0f} s."
        )
        share = f"Left out, as preempted or kept waiting: {self.left_out:.0%} of the slices."
        if self.verdict == rules.GIL:
            share = "With the GIL all slices count, as threads wait between them."
        return "\n".join([*lines, "", *stopped, said, f"{share} {NOT_JUDGED}"])

    def figure(self) -> list[str]:
        """A line for each number of threads, where more than two were asked for."""
        if self.threads < 3:
            return []
        fewer = [(number, rules.value(self.arms, f"{number} threads")) for number in range(2, self.threads)]
        points = [(1, Interval(1.0, 1.0, 1.0)), *fewer, (self.threads, self.ratio)]
        return [
            "",
            *(
                f"{number:>4} threads {'█' * round(4 * one.value)} {text(one)}"
                for number, one in points
                if one.is_known
            ),
        ]

    def __repr__(self) -> str:
        return f"<Scaling {self.statement!r}: {text(self.ratio)}, {self.verdict}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    # ---- the record ----

    def to_json(self) -> str:
        """All that was measured and seen, and the answer; `read` takes it back."""
        found = {"verdict": self.verdict, "kinds": self.kinds, "culprits": [asdict(one) for one in self.culprits]}
        found |= {"ratio": asdict(self.ratio), "ceiling": asdict(self.ceiling), "control": asdict(self.control)}
        return json.dumps(strict({**asdict(self), "found": found}), allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the record as JSON."""
        Path(path).write_text(self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> "Scaling":
        """From a file that `save` wrote: rules answer anew. Raises UserError if it is none."""
        try:
            return cls.of(json.loads(Path(path).read_text()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path} is no record of ffilab scale ({error}): name one that --json wrote.") from None

    @classmethod
    def of(cls, record: dict) -> "Scaling":
        """From a record, as `to_json` writes it."""
        record = {key: value for key, value in record.items() if key != "found"}
        record["arms"] = {name: [process(one) for one in those] for name, those in record["arms"].items()}
        record["suspects"] = [rules.Suspect(**one) for one in record["suspects"]]
        record["parked"] = rules.Parked(**record["parked"]) if record["parked"] else None
        return cls(**record)


# Kinds whose culprits a reader would type.
CODE = (rules.COUNTS, rules.SECTION, rules.LOCK, rules.C_LIBRARY)


def process(one: dict[str, Any]) -> Process:
    """From a record, which has lists where a process has tuples."""
    threads = {key: tuple(map(known, one[key])) for key in ("alone", "together", "rates")}
    fields: dict[str, Any] = {**one, **threads}
    return Process(**fields)


def known(number: float | None) -> float:
    """What `strict` made null is not known."""
    return math.nan if number is None else number


def strict(value):
    """As JSON has it, which knows no NaN and no infinity: null in their place."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text(interval: Interval) -> str:
    """A ratio with its interval, both with two places."""
    if not interval.is_known:
        return "not known: too few slices or processes"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
