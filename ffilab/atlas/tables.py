"""What the packs of many machines say, as tables: machines, claims, ratios, and what the machines have in common.

No verdict is made here: those of the packs are laid beside each other, and rules are asked of the model's intervals.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from ffilab.atlas import model
from ffilab.atlas.pack import SAME_MACHINE, Pack, rules
from ffilab.judge import verdicts
from ffilab.judge.claims import Claim, all_claims, in_words
from ffilab.judge.estimates import Interval
from ffilab.judge.ledger import is_part
from ffilab.judge.rules import NO, YES, Equal, Rule, Side
from ffilab.page.draw import Quantity
from ffilab.run.errors import UserError

SO_FAR = " so far"
DIFFER = "differ"
NOT_THERE = "not in its pack"


@dataclass(frozen=True)
class Atlas:
    """packs: one for each machine, in the order of the page. refused: why others are not among them."""

    packs: Sequence[Pack]
    refused: Sequence[str]

    @classmethod
    def of(cls, found: Sequence[Pack], refused: Sequence[str]) -> "Atlas":
        """Of packs that hold one run the one with most chapters stays, and of these the newest. Raises UserError if
        there is none."""
        kept: list[Pack] = []
        refused = list(refused)
        for pack in sorted(found, key=lambda one: (len(one.facts["chapters"]), one.machine["date"]), reverse=True):
            twins = [one for one in kept if runs(one) & runs(pack)]
            if twins:
                refused.append(f"{pack.path.name} holds a run that {twins[0].path.name} holds, too: it counts once.")
            else:
                kept.append(pack)
        if not kept:
            raise UserError(" ".join(["There is no pack to make an atlas of (`make pack` makes one).", *refused]))
        return cls(sorted(kept, key=lambda one: (one.machine["cpu"], one.machine["date"])), refused)

    def named(self) -> list[tuple[str, Pack]]:
        """Each pack with what the page calls its machine."""
        return [(f"{number} {called(pack)}"[:44].strip(), pack) for number, pack in enumerate(self.packs, 1)]

    @property
    def alike(self) -> list[list[str]]:
        """Machines that show the same facts, and may be one."""
        by_facts = defaultdict(list)
        for number, pack in enumerate(self.packs, 1):
            by_facts[tuple(pack.machine[fact] for fact in SAME_MACHINE)].append(str(number))
        return [numbers for numbers in by_facts.values() if len(numbers) > 1]


def runs(pack: Pack) -> set[tuple[str, str, str]]:
    """What identifies the sessions of a pack."""
    return {
        (name, session, date)
        for name, of in pack.facts["chapters"].items()
        for session, date in {of["session"]: of["date"], **of.get("earlier", {})}.items()
    }


def called(pack: Pack) -> str:
    return pack.facts["called"] or pack.machine["cpu"]


# By what machines are grouped.
FACTORS: dict[str, Callable[[Pack], str]] = {
    "processor": lambda pack: pack.machine["cpu"],
    "cores": lambda pack: str(pack.machine.get("cores_usable", pack.machine["cores"])),
    "system": lambda pack: f"{pack.machine['system']}, {pack.machine['libc']}",
    "compiler": lambda pack: str(pack.machine["compiler"]),
    "interpreter": lambda pack: "; ".join(
        f"{label}: {build['version'].partition(' ')[0]}, {build['route']}"
        for label, build in sorted(pack.facts["interpreters"].items())
    ),
    "budget": lambda pack: ", ".join(sorted({of["budget"] for of in pack.facts["chapters"].values()})),
}


def machines(atlas: Atlas) -> pd.DataFrame:
    """A row for each machine: what it is, how it was measured, and how many claims got which verdict."""
    rows = []
    for name, pack in atlas.named():
        dates = sorted(of["date"][:10] for of in pack.facts["chapters"].values())
        judged = "the rules of this clone" if pack.facts["rules"] == rules() else "those of another version"
        rows.append(
            {"machine": name, **{factor: of(pack) for factor, of in FACTORS.items()}}
            | {"GiB": pack.machine["memory_gib"], "virtual machine": virtual(pack.machine["virtual_machine"])}
            | {"chapters": len(pack.facts["chapters"]), "measured": " to ".join(dict.fromkeys((dates[0], dates[-1])))}
            | {"judged by": judged, "records": "not in it" if pack.light else "in it", "file": pack.path.name}
        )
    return pd.DataFrame(rows)


def virtual(known: bool | None) -> str:
    return "not known" if known is None else "yes" if known else "no"


def main_rule(claim: Claim) -> Rule | None:
    """The first test of a claim that asks on which side of 1 a ratio lies, or whether it is 1; None without one."""
    asked = [rule for rule in claim.tests if rule.decides and isinstance(rule, Side | Equal) and rule.null == 1]
    return next(iter(asked), None)


def first_number(claim: Claim) -> str:
    """The number that stands for a claim beside its verdict: that of its ratio, else that of its first test."""
    rule = main_rule(claim) or next(iter(claim.tests), None)
    return in_words(rule.number) if rule else ""


def interval_of(row: dict | None, name: str) -> Interval | None:
    """A number of a row with its bounds, NaN where it has none; None without a number."""
    if row is None or row["numbers"].get(name) is None:
        return None
    bounds = [math.nan if bound is None else bound for bound in row["interval"].get(name, (None, None))]
    return Interval(row["numbers"][name], *bounds)


@dataclass(frozen=True)
class Cell:
    """What one machine says of one claim. answers: to its parts, by number."""

    verdict: str
    qualifier: str = ""
    reason: str = ""
    number: Quantity | None = None
    answers: frozenset[tuple[str, str]] = frozenset()


def cell(pack: Pack, claim: Claim) -> Cell:
    row = pack.rows.get(claim.id)
    if row is None:
        return Cell(NOT_THERE, reason="its chapter was not measured")
    found = interval_of(row, first_number(claim)) if pack.is_result(row) else None
    answers = frozenset((part["number"], part["verdict"]) for part in row["parts"] if is_part(part))
    return Cell(row["verdict"], row["qualifier"], row["reason"], Quantity(found) if found else None, answers)


def claims(atlas: Atlas) -> list[tuple[Claim, list[Cell], str]]:
    """Each claim that some machine says something of: what each says, and whether they agree."""
    found = [(claim, [cell(pack, claim) for pack in atlas.packs]) for claim in all_claims()]
    return [(claim, cells, agreement(cells)) for claim, cells in found if any(map(is_tested, cells))]


def untested(atlas: Atlas) -> pd.DataFrame:
    """The claims that no machine says anything of, and why."""
    rows = []
    for claim in all_claims():
        cells = [cell(pack, claim) for pack in atlas.packs]
        if not any(map(is_tested, cells)):
            why = claim.not_measurable or "; ".join(dict.fromkeys(one.reason for one in cells if one.reason))
            rows.append((claim.id, claim.claim, ", ".join(dict.fromkeys(one.verdict for one in cells)), why))
    return pd.DataFrame(rows, columns=["id", "claim", "verdict", "why"])


def is_tested(said: Cell) -> bool:
    return said.verdict in (*verdicts.TESTED, verdicts.BY_CONSTRUCTION)


def agreement(cells: Sequence[Cell]) -> str:
    """How many machines say what; and whether one says yes where another one says no."""
    answers = {answer for one in cells for answer in one.answers}
    against = {number for number, verdict in answers if verdict == YES and (number, NO) in answers}
    said = Counter(one.verdict.removesuffix(SO_FAR) for one in cells if is_tested(one) and one.verdict != verdicts.OPEN)
    counts = ", ".join(f"{count} {word}" for word, count in said.most_common())
    return f"{DIFFER}: {counts}" if against else counts or "none decided"


def groups(atlas: Atlas) -> pd.DataFrame:
    """By each fact of the machines: how many there are, and how often their verdicts were which."""
    rows, words = [], [*verdicts.TESTED, verdicts.WITHHELD]
    for factor, of in FACTORS.items():
        for level, packs in pd.Series([*atlas.packs]).groupby([of(pack) for pack in atlas.packs]):
            count = Counter(row["verdict"] for pack in packs for row in pack.rows.values())
            rows.append({"by": factor, "which": level, "machines": len(packs), **{word: count[word] for word in words}})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Ratio:
    """A claim's main ratio on the machines that have one. found: by what the machine is called. left_out: machines
    that have a number without a proper interval, and those whose number is withheld."""

    claim: Claim
    rule: Rule
    found: dict[str, Interval]
    left_out: list[str]
    combined: model.Combined | None

    def points(self) -> pd.DataFrame:
        """What a forest plot shows, from above: machines, then the model."""
        rows = [(name, "measured", one) for name, one in self.found.items()]
        if self.combined:
            rows += [("mean", "model", self.combined.mean), ("next machine", "model", self.combined.next_machine)]
        return pd.DataFrame(
            [(name, kind, one.value, one.low, one.high) for name, kind, one in rows],
            columns=["machine", "what", "value", "low", "high"],
        )


def ratios(atlas: Atlas) -> list[Ratio]:
    """The main ratio of each claim that has one, on the machines whose runs are results."""
    made = []
    for claim in all_claims():
        if (rule := main_rule(claim)) is None:
            continue
        name, found, errors, left_out = in_words(rule.number), {}, [], []
        for machine, pack in atlas.named():
            row = pack.rows.get(claim.id)
            interval = interval_of(row, name)
            if row is None or interval is None or not pack.is_result(row):
                continue
            given = [part["verdict"] for part in row["parts"] if part["number"] == name and part["kind"] != "size"]
            if verdicts.WITHHELD in given or not model.has_bounds(interval):
                left_out.append(machine)
            else:
                found[machine] = interval
                errors.append(row["errors"].get(name))
        if found:
            made.append(Ratio(claim, rule, found, left_out, model.combined([*found.values()], errors)))
    return made


def modelled(made: Sequence[Ratio]) -> pd.DataFrame:
    """A row for each ratio: its mean over machines, where the next machine is expected, and what its rule says of
    both."""
    rows = []
    for ratio in made:
        of = ratio.combined
        rows.append(
            {"id": ratio.claim.id, "part": ratio.rule.part}
            | {"machines": len(ratio.found), "mean": Quantity(of.mean) if of else "fewer than three machines"}
            | {"next machine": Quantity(of.next_machine) if of else "", "between machines": of.between if of else None}
            | {"mean says": ratio.rule.answer(of.mean).verdict if of else ""}
            | {"next machine says": ratio.rule.answer(of.next_machine).verdict if of else ""}
            | {"left out": ", ".join(ratio.left_out), "number": in_words(ratio.rule.number)}
        )
    columns = ["id", "part", "machines", "mean", "next machine", "between machines", "mean says"]
    columns += ["next machine says", "left out", "number"]
    return pd.DataFrame(rows, columns=columns)


def long(atlas: Atlas) -> pd.DataFrame:
    """Everything, to take away: a row for each number of each claim on each machine."""
    rows = []
    for name, pack in atlas.named():
        about = {"machine": name, **{factor: of(pack) for factor, of in FACTORS.items()}}
        for row in pack.rows.values():
            answers = {part["number"]: part["verdict"] for part in row["parts"] if part["kind"] != "size"}
            said = {key: row[key] for key in ("id", "chapter", "verdict", "qualifier", "size")}
            for number in row["numbers"] or [""]:
                found = interval_of(row, number) or Interval(math.nan, math.nan, math.nan)
                rows.append(
                    {**about, **said, "is a result": pack.is_result(row), "number": number}
                    | {"answer": answers.get(number, ""), "value": found.value, "low": found.low, "high": found.high}
                )
    return pd.DataFrame(rows)
