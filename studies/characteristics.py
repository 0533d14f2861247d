"""Operating characteristics of the rules: how often which verdict is given, by what is true and how long is measured.

A run of `quick` knows how far each of its numbers may be off; `book/evidence/estimates.json` keeps that. Here every
number is drawn around a truth that is known, with that error, and the rules are asked as in the ledger. The table
stands in `book/evidence/operating_characteristics.json`.

Numbers are drawn independently of each other, and as Student's t supposes: a normal centre, a squared error with the
distribution of χ². The way from records to an estimate is not tried here (tests/test_statistics.py,
tests/test_groups.py).
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ffilab.judge import estimates, groups, numbers, verdicts
from ffilab.judge.claims import Claim
from ffilab.judge.estimates import Counted, Estimate, Location, Share, Spread
from ffilab.judge.numbers import Number
from ffilab.judge.rules import NO, OPEN, YES, Equal, Never, Occurs, Rule, Side, Size
from ffilab.measure.foreign import NoSession, find
from ffilab.measure.reading import Reading
from ffilab.page.characteristics import BUDGETS, is_opposite, tested
from ffilab.run import machine
from ffilab.run.budget import BUDGETS as EVERY_BUDGET
from ffilab.run.budget import Budget
from ffilab.run.errors import UserError
from studies import kept

ESTIMATES, TABLE = (kept.EVIDENCE / f"{name}.json" for name in ("estimates", "operating_characteristics"))
COMMAND = "python3 ffilab/bootstrap.py study characteristics"
RUNS = 200
# What is true: by which part of the published effect.
TRUTHS = {"as published": 1.0, "half the size": 0.5, "no effect": 0.0, "the wrong sign": -1.0}
# A claim about a side only publishes no size: as many times the smallest effect of interest is taken for it. Of an
# order, where any effect counts, three times as many: 8 %, about the smallest that was published of one.
ASSUMED, ORDER = 5, 0.005
# Of a side that may be missed by a margin, of an equality, and of an event that must not happen: by how many margins
# (or times the tolerated rate) each truth is off.
OFF = {"as published": 0.0, "half the size": 0.5, "no effect": 2.0, "the wrong sign": 4.0}
# However wrong the side of a claim is, a ratio does not fall below this.
SMALLEST = 0.1
# A number is told from zero if it lies so many errors away. Then it is a size, whose scatter grows with it.
TOLD = 4
# Of how many trials an endless run counts the events.
ENDLESS = 10_000
QUICK = EVERY_BUDGET["quick"]
# So often chapters repeat a process at `quick`. What a run has of fewer, others have disturbed.
OFTEN = (QUICK.few, QUICK.repeats, 2 * QUICK.repeats, QUICK.shares)


def value(rules: list[Rule], truth: str) -> float:
    """What a number of a claim would be in truth, by the rules that speak of it.

    A published size: by the given part of its effect, on the scale of logarithms for a ratio (null 1). A rate for an
    event.
    """
    part = TRUTHS[truth]
    size = next((rule for rule in rules if isinstance(rule, Size)), None)
    rule = next((rule for rule in rules if not isinstance(rule, Size)), None)
    if size and size.null == 1 and size.published > 0:
        return math.exp(part * math.log(size.published))
    if size:
        return size.null + part * (size.published - size.null)
    if isinstance(rule, Side):
        sign = 1 if rule.direction == "above" else -1
        if rule.interest < 0:
            return rule.null + sign * OFF[truth] * rule.interest
        times = part * ASSUMED * (3 if rule.interest <= ORDER else 1)
        return (1 + sign * rule.interest) ** times if rule.null == 1 else rule.null + sign * times * rule.interest
    if isinstance(rule, Equal):
        # One exact value is hit or missed.
        return rule.null + (OFF[truth] * rule.margin if rule.margin else -float(part <= 0))
    if isinstance(rule, Occurs):
        return max(0.0, part)
    if isinstance(rule, Never):
        return 0.0 if part > 0 else min(1.0, OFF[truth] * rule.rate)
    return 1.0


def asked(claim: Claim) -> dict[str, list[Rule]]:
    """The rules of a claim by the number that they speak of."""
    found: dict[str, list[Rule]] = {}
    for rule in claim.tests:
        found.setdefault(rule.number, []).append(rule)
    return found


def known_by(folder: Path) -> list[dict]:
    """What the newest run of `quick` in a folder of records knew of each number that a claim tests.

    Raises UserError if a chapter was measured with another budget. Nothing is known of a number without an error.
    """
    rows, sessions = {}, {}
    for claim in tested():
        try:
            session = sessions.get(claim.chapter) or Reading(claim.chapter, find(folder, claim.chapter))
        except NoSession:
            continue
        sessions[claim.chapter] = session
        if session.budget != QUICK:
            raise UserError(f"{claim.chapter} was measured at `{session.budget.name}`: estimates are kept of `quick`.")
        facts = {what: session.machine.get(what) for what in ("commit", "date", "cpu", "cores_usable", "system")}
        for name in asked(claim):
            estimate = numbers.numbers_of(session)[name].estimate
            if estimate and is_known(estimate):
                rows[claim.chapter, name] = {
                    "chapter": claim.chapter,
                    "number": name,
                    "kind": type(estimate).__name__,
                    "estimate": rounded(asdict(estimate)),
                    "provenance": {"command": f"{COMMAND} --from RECORDS", **facts},
                }
    return list(rows.values())


def is_known(estimate: Estimate) -> bool:
    """Is it of a kind that can be drawn, with an error that is one of chance?"""
    if isinstance(estimate, Location) and estimate.error and estimate.stays >= estimate.error:
        return False  # two ways to sort what was counted contradict each other
    return isinstance(estimate, Location | Share | Counted | Spread) and estimate.at().is_known


def rounded(fields: dict) -> dict:
    return {name: float(f"{one:.5g}") if isinstance(one, float) else one for name, one in fields.items()}


def added(old: list[dict], new: list[dict]) -> list[dict]:
    """The kept estimates with those of numbers that had none; without those that no claim asks for."""
    rows = {(row["chapter"], row["number"]): row for row in (*new, *old)}
    order = dict.fromkeys((claim.chapter, name) for claim in tested() for name in asked(claim))
    return [rows[place] for place in order if place in rows]


def estimates_of(claim: Claim, rows: list[dict]) -> dict[str, Estimate]:
    """What is known of the numbers of a claim. Of an event that no run has looked for: the processes of the budget."""
    found = {
        row["number"]: getattr(estimates, row["kind"])(**row["estimate"])
        for row in rows
        if row["chapter"] == claim.chapter
    }
    events = {
        name: Share(0, QUICK.shares) for name, rules in asked(claim).items() if all(rule.counts for rule in rules)
    }
    return {name: found.get(name) or events[name] for name in asked(claim) if name in found or name in events}


def grown(estimate: Estimate, true: float) -> Estimate:
    """The estimate where the number is larger in truth than it was in the run: what is a size scatters as much more."""
    if not isinstance(estimate, Location) or estimate.log or abs(estimate.centre) <= TOLD * estimate.error:
        return estimate
    return estimate.widened(max(1.0, abs(true / estimate.centre)))


def at_budget(estimate: Estimate, budget: Budget) -> Estimate:
    """The estimate that a budget would bring if nothing were lost: with its layouts, or its processes.

    It repeats a process more often than `quick`, but for what `quick` asks of more than twice its repetitions.
    """
    n = estimate.n if isinstance(estimate, Spread) else next((one for one in OFTEN if one >= estimate.n), estimate.n)
    more = n / estimate.n * (budget.repeats / QUICK.repeats if n <= 2 * QUICK.repeats else 1.0)
    if isinstance(estimate, Location) and estimate.spread:
        more = budget.layouts / estimate.n
    if more == 1:
        return estimate
    if isinstance(estimate, Location) and estimate.error > estimate.floor:
        own, n = math.sqrt((estimate.error**2 - estimate.floor**2) / more), round(more * estimate.n)
        alone = replace(estimate, error=own, freedom=n - 2 * estimates.trimmed(n) - 1, n=n)
        return groups.combined([alone], adds=estimate.floor)
    repeated = [name for name in ("trials", "cases") if hasattr(estimate, name)]
    return replace(estimate, **{name: round(more * getattr(estimate, name)) for name in repeated})


def drawn(estimate: Estimate, true: float, builds: int, rng: np.random.Generator) -> Estimate:
    """What a run would know of a number that is `true`."""

    def squared(freedom: float) -> float:
        """A variance over its expected value."""
        return rng.chisquare(freedom) / freedom

    match estimate:
        case Share(trials=n):
            return Share(int(rng.binomial(n, np.clip(true, 0, 1))), n)
        case Spread(noise=noise, span=span, freedom=(between, within)):
            of_means = (math.log(max(1.0, true)) / span) ** 2 + noise
            return replace(estimate, of_means=of_means * squared(between), noise=noise * squared(within))
        case Location():
            return drawn_location(estimate, true, builds, squared, rng)
    return Counted(true)


def drawn_location(estimate: Location, true: float, builds: int, squared: Callable, rng) -> Location:
    """What a run would know of a centre that is `true`. Layouts are linked from so many builds, each of which adds as
    much as a session does."""
    own = math.sqrt(max(0.0, estimate.error**2 - estimate.floor**2)) * math.sqrt(squared(estimate.freedom))
    build = estimate.floor if estimate.spread else 0.0
    centre = math.log(max(true, SMALLEST)) if estimate.log else true
    centre += rng.normal(0, math.hypot(estimate.error, build / math.sqrt(builds)))
    found = replace(estimate, centre=centre, error=math.hypot(own, estimate.floor))
    if not estimate.spread or builds == 1:
        return found
    more = 1 + estimate.n / builds * (build / estimate.spread) ** 2
    return groups.wider_by_builds(found, more * rng.f(builds - 1, estimate.n - builds), builds)


def endless(estimate: Estimate, true: float) -> Estimate:
    """What endless measuring would know of it."""
    if isinstance(estimate, Share):
        return Share(math.ceil(np.clip(true, 0, 1) * ENDLESS), ENDLESS)
    if isinstance(estimate, Spread) or (isinstance(estimate, Location) and estimate.log):
        true = max(true, 1.0 if isinstance(estimate, Spread) else SMALLEST)
    return Counted(true)


def judged(claim: Claim, made: dict[str, Estimate]) -> verdicts.Verdict:
    """The verdict of a claim on what a run knows of its numbers."""
    measured = {rule.number: made[rule.number] for rule in claim.tests if rule.number in made}
    return verdicts.of_claim(
        claim, {rule.number: Number(measured.get(rule.number), verdicts.NO_NUMBER) for rule in claim.tests}
    )


def row_of(claim: Claim, known: dict[str, Estimate], truth: str, budget: str, runs: int, seed: int) -> dict | None:
    """What the runs of one claim, truth and budget say; None if nothing is known that decides it. An object with

    claim, truth, budget, runs; verdicts: share of runs by word; right: the word of endless measuring; wrong: share of
    runs in which any part of the claim got the opposite of its right answer; open: share of runs in which no part was
    answered; parts: of each part, what it measures, its kind, its right answer, the shares of yes, no and open, and the
    median half-width of its interval (None if it has none).
    """
    if not any(rule.decides and rule.number in known for rule in claim.tests):
        return None
    length, place = EVERY_BUDGET[budget], (list(TRUTHS).index(truth), BUDGETS.index(budget))
    rng = np.random.default_rng([seed, *claim.id.encode(), *place])
    true = {name: value(rules, truth) for name, rules in asked(claim).items() if name in known}
    known = {name: at_budget(grown(known[name], of), length) for name, of in true.items()}
    made = [{name: drawn(known[name], of, length.builds, rng) for name, of in true.items()} for _ in range(runs)]
    found = [judged(claim, one) for one in made]
    said = [[answer.verdict for _, answer in verdict.parts] for verdict in found]
    right = judged(claim, {name: endless(known[name], of) for name, of in true.items()})
    truths, parts = [answer.verdict for _, answer in right.parts], []
    for number, rule in enumerate(claim.tests):
        counted = Counter(answers[number] for answers in said)
        widths = sorted(one[rule.number].at().half_width for one in made) if rule.number in true else [math.nan]
        middle = widths[len(widths) // 2]
        parts.append(
            {
                "number": rule.number,
                "kind": type(rule).__name__.lower(),
                "right": truths[number],
                **{what: counted[what] / runs for what in (YES, NO, OPEN)},
                "half_width": float(f"{middle:.3g}") if math.isfinite(middle) else None,
            }
        )
    words = Counter(verdict.word for verdict in found)
    return {
        "claim": claim.id,
        "truth": truth,
        "budget": budget,
        "runs": runs,
        "verdicts": {word: count / runs for word, count in words.most_common()},
        "right": right.word,
        "wrong": sum(any(map(is_opposite, answers, truths)) for answers in said) / runs,
        "open": words[OPEN] / runs,
        "parts": parts,
    }


def table(rows: list[dict], of: list[Claim] | None = None, runs: int = RUNS, seed: int = 0) -> list[dict]:
    """The rows of the claims, from the kept estimates: by truth and budget. What is drawn for a claim hangs on no
    other."""
    every = [
        row_of(claim, estimates_of(claim, rows), truth, budget, runs, seed)
        for claim in (tested() if of is None else of)
        for truth in TRUTHS
        for budget in BUDGETS
    ]
    return [row for row in every if row]


def main(folder: Path | None = None) -> None:
    """Make the table. folder: records of a run of `quick`; what they know of numbers that have no estimate yet is kept
    first."""
    rows = added(kept.read_sessions(ESTIMATES), known_by(folder) if folder else [])
    kept.write_sessions(ESTIMATES, rows)
    provenance = {"command": COMMAND, "commit": machine.commit(), "seed": 0}
    results = [row | {"provenance": provenance} for row in table(rows)]
    kept.write_sessions(TABLE, results)
    print(f"{len(results)} rows, from {len(rows)} estimates: `make test` says what falls short.")
