"""What a comparison of the reader's own code says, on one screen."""

import html
import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ffilab.judge import basis, controls, groups, questions, wording
from ffilab.judge.estimates import MIN_VALUES, Interval, Location
from ffilab.judge.statistics import explained, log_ratios, unexplained
from ffilab.measure.plan import TWINS, YOURS
from ffilab.measure.record import Record, medians, read_record
from ffilab.run.errors import UserError
from ffilab.yours.amounts import SHARE
from ffilab.yours.comparing import ON, cut, short
from ffilab.yours.pythons import free

Cell = tuple[str, str]
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


def ratio(record: Record, cell: Cell, base: Cell) -> Location:
    """Time of a cell over that of another, over what this run varied; what another session adds is not in it, and is
    said."""
    return explained(record, log_ratios(record, cell, base), log=True, of=0).widened(unexplained(record))


def per_pass(record: Record, cell: Cell) -> Interval:
    """Nanoseconds of one pass, its loop included, over the same."""
    return explained(record, medians(record.times(*cell)), of=0).at()


def cells(record: Record) -> list[Cell]:
    """What was asked for, the baseline first: the label of the Python and the name of the arm."""
    arms = [arm for arm in record.run["plan"]["arms"] if arm["beside"] == YOURS]
    labels = record.interpreters
    return [(label, arm["name"]) for label in labels for arm in arms if label in (arm["interpreters"] or labels)]


def width(record: Record) -> float:
    """How far the widest interval reaches to one side, as a share of its value: of all ratios, or of the only time."""
    base, *others = cells(record)
    if not record.noise.restarts:
        return math.inf
    found = [ratio(record, cell, base).at() for cell in others] or [per_pass(record, base)]
    widest = max(interval.half_width / interval.value for interval in found)
    return math.inf if math.isnan(widest) else widest


def share_of(limit: float | str) -> float:
    """A limit as people type it, "2%", or as a share, 0.02. Raises UserError."""
    return SHARE.read(limit, "limit") if isinstance(limit, str) else limit


def percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


@dataclass(frozen=True, repr=False)
class Result:
    """What was measured: times, and their ratios to the first one's, each with its interval. text: the record, as it
    was written."""

    record: Record
    text: bytes

    @classmethod
    def read(cls, path: str | Path) -> "Result":
        """From a file that `save` wrote. Raises UserError if it tells nothing."""
        return cls(read_record(Path(path)), Path(path).read_bytes())

    def __post_init__(self):
        if len(self.record.noise.restarts) < MIN_VALUES:
            raise UserError(
                f"Stopped before there were {MIN_VALUES} restarts, too few to tell anything: let it run longer."
            )

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(self.record)

    @cached_property
    def names(self) -> list[str]:
        """What each cell is called: by its arm, its Python, or both, as there are several."""
        labels, arms = ({cell[number] for cell in self.cells} for number in (0, 1))
        if len(labels) == 1:
            return [self.typed[arm] for _, arm in self.cells]
        return [label if len(arms) == 1 else f"{self.typed[arm]} on {label}" for label, arm in self.cells]

    @cached_property
    def typed(self) -> dict[str, str]:
        """What each arm is called: a statement that is its own name as it was typed, with what a record's names may not
        have."""
        names: dict[str, str] = {}
        for arm in self.record.run["plan"]["arms"]:
            statement = arm.get("statement", "")
            line, name = cut(" ".join(statement.split())), arm["name"].removesuffix(ON)
            if line and re.fullmatch(re.escape(short(statement)) + r"( \(\d+\))?", name):
                name = line
            with_gil = ON if arm["name"].endswith(ON) else ""
            names[arm["name"]] = free(name + with_gil, names.values())
        return names

    @cached_property
    def times(self) -> dict[str, Interval]:
        """Nanoseconds per pass by name."""
        return {name: per_pass(self.record, cell) for name, cell in zip(self.names, self.cells)}

    @cached_property
    def estimates(self) -> dict[str, Location]:
        return {name: ratio(self.record, cell, self.cells[0]) for name, cell in zip(self.names[1:], self.cells[1:])}

    @property
    def ratios(self) -> dict[str, Interval]:
        """Time over that of the first, by name, for all others; wider by as much as a control was off."""
        found, off = {name: estimate.at() for name, estimate in self.estimates.items()}, self.off
        return {name: Interval(ratio.value, ratio.low / off, ratio.high * off) for name, ratio in found.items()}

    @property
    def off(self) -> float:
        """The ratio by which the worst control was certainly off; 1 if none was."""
        return math.exp(max((check.bias for check in self.failed), default=0.0))

    @cached_property
    def failed(self) -> list[controls.Check]:
        """The controls that show a bias: equal work that was measured as unequal, or one per cent more as something
        else."""
        found = [controls.same("", self.record, label, twins) for label in self.record.interpreters for twins in TWINS]
        return [check for check in controls.settled(found + controls.more("", self.record)) if check.is_off]

    def slower(self, limit: float | str = 0.0) -> dict[str, str]:
        """Does it take longer than the first, by more than this share of its time? `yes`, `no` or `open` by name.

        limit: 0.02 or "2%". Raises UserError for any other text.
        """
        share = share_of(limit)
        return {name: questions.above(found, 1 + share) for name, found in self.ratios.items()}

    def gate(self, limit: float | str) -> str:
        """What `slower` says of all of them, in one sentence: failed, open, passed or stopped early."""
        slower, longer = self.slower(limit), f"more than {percent(share_of(limit))} longer than {self.names[0]}"
        are, may_be = ([name for name, answer in slower.items() if answer == asked] for asked in ("yes", "open"))
        if are:
            return f"Failed: {wording.listed(are)} takes {longer}."
        if self.record.cut_off:
            return f"Not judged whether anything takes {longer}: it was stopped early."
        if may_be:
            return f"Open: this run cannot tell whether {wording.listed(may_be)} takes {longer}; give it more --time."
        return f"Passed: nothing takes {longer}."

    def sentence(self, name: str) -> str:
        """What the run found about one of the others and the first."""
        base, estimate, found = self.names[0], self.estimates[name], self.ratios[name]
        if not found.is_known:
            return f"Too few restarts to compare {name} with {base}."
        if questions.above(found, 1) == questions.OPEN:
            mde = (1 + estimate.mde) * self.off - 1
            least = percent(mde) if mde < 1 else "a multiple"
            return f"No difference found between {name} and {base}; {least} would have been found."
        times = found if found.value > 1 else found.inverse
        fast, slow = (base, name) if found.value > 1 else (name, base)
        return f"{fast} is {wording.number(times.value, 10 * times.half_width)} times as fast as {slow}."

    def varied(self) -> str:
        """What was varied and what was not, in words."""
        restarts = basis.counted(len(self.record.noise.restarts), "restart")
        links = {
            label: len({line["layouts"][label]["id"] for line in self.record.restarts if line["layouts"]})
            for label in self.record.interpreters
        }
        drawn = [f"{count} links of {label}" for label, count in links.items() if count > 1]
        still = [label for label, count in links.items() if count < 2]
        unknown = [f"the build of {wording.listed(still)}"] if still else []
        lines = [
            f"Varied: {wording.listed([f'{restarts} (addresses, hash seed, stack, heap, order, core)', *drawn])}.",
            f"Not varied, and so unknown: {wording.listed([*unknown, 'the machine'])}; another hour moves a ratio by "
            f"some {percent(groups.SESSION)} more (a kept study).",
        ]
        # Those that all Pythons have, and not in the same version.
        had = [self.record.run["interpreters"][label].get("packages", {}) for label in self.record.interpreters]
        by_name = {name: [each[name] for each in had] for name in sorted(set.intersection(*map(set, had)))}
        apart = [f"{name} ({', '.join(found)})" for name, found in by_name.items() if len(set(found)) > 1]
        return "\n".join([*lines, *([f"Packages that differ: {', '.join(apart)}."] if apart else [])])

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The table, its heading first: a name, the time of a pass, and its ratio."""
        times = list(self.times.values())
        scale, unit = next(((least, unit) for least, unit in UNITS if times[0].value >= least), (1, "ns"))
        rows = [("", f"{unit} per pass", f"over {self.names[0]}" if self.ratios else "")]
        for name, time in self.times.items():
            ratio = wording.text(self.ratios[name]) if name in self.ratios else ""
            rows.append((name, wording.text(time, factor=1 / scale), ratio))
        return rows

    def save_markdown(self, path: str | Path) -> None:
        """Write the table and what was found as Markdown."""
        heading, *rows = [[cell.replace("|", "\\|") for cell in row] for row in self.rows]
        lines = [heading, ["---", "---:", "---:"], *([f"`{name}`", *rest] for name, *rest in rows)]
        said = [f"- {self.sentence(name)}" for name in self.ratios]
        text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        Path(path).write_text("\n\n".join([text, *(["\n".join(said)] if said else []), self.varied()]) + "\n")

    def __str__(self) -> str:
        rows = self.rows
        wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
        table = [f"{name:<{wide[0]}}  {time:<{wide[1]}}  {ratio}".rstrip() for name, time, ratio in rows]
        said = [self.sentence(name) for name in self.ratios]
        controlled = "Controls: equal work was measured as equal, and 1 % more of it as that."
        if self.failed:
            worst, wider = max(self.failed, key=lambda check: check.bias), percent(self.off - 1)
            controlled = f"A control was off ({worst.kind}, {worst.found}): each interval is wider by {wider}."
        early = ["Stopped early: this covers what was measured until then."] if self.record.cut_off else []
        noise = f"Noise: {self.record.noise.report}."
        if not self.record.run["machine"].get("can_pin", True) and self.record.run["plan"]["pin"]:
            noise += " This system cannot keep a process on one core: the intervals are wider for it."
        told = [*early, *said]
        return "\n".join([*table, "", *told, *([""] if told else []), self.varied(), controlled, noise])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def save(self, path: str | Path) -> None:
        """Write the record: one JSON line for each thing that happened."""
        Path(path).write_bytes(self.text)

    def save_pyperf(self, path: str | Path) -> list[Path]:
        """Write pyperf's format, with one value for each process: its median. Of several Pythons each has a file of its
        own, with its label in the name, as pyperf compares what has one name in two files. Returns the files."""
        path, machine = Path(path), self.record.run["machine"]
        each = np.array([medians(self.record.by_restart(*cell)) for cell in self.cells])
        # It compares as many values with as many.
        whole = each[:, np.isfinite(each).all(axis=0)]
        labels = list(dict.fromkeys(label for label, _ in self.cells))
        files = [path] if len(labels) == 1 else [path.with_stem(f"{path.stem}-{label}") for label in labels]
        for file, label in zip(files, labels):
            benchmarks = [
                {
                    "metadata": {"name": arm, "loops": self.record.loops[f"{label}/{arm}"]},
                    "runs": [{"values": [ns / 1e9]} for ns in values],
                }
                for (of, arm), values in zip(self.cells, whole.tolist())
                if of == label
            ]
            version = self.record.run["interpreters"][label]["version"]
            metadata = {"unit": "second", "python_version": version, "cpu_model_name": machine["cpu"]}
            file.write_text(json.dumps({"version": "1.0", "metadata": metadata, "benchmarks": benchmarks}))
        return files
