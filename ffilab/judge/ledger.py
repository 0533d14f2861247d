"""The ledger of claims: what was published, what was measured here, and the verdict of the rule.

Chapters hand in measurements; nobody hands in a verdict.
"""

import importlib
import json
import math
import os
from dataclasses import asdict
from pathlib import Path

from ffilab.errors import UserError
from ffilab.judge.claims import Claim, Rule, all_claims, declared, in_words
from ffilab.judge.statistics import Interval, Measurement
from ffilab.paths import EXECUTED, RESULTS

# Where a chapter under execution hands in; the press keeps it beside the page, and only if the whole chapter succeeds.
HAND_IN_FOLDER = "FFILAB_HAND_IN"
CLAIMS = "claims"
HOLDS = "holds"
IN_DIRECTION = "holds in direction"
DOES_NOT_HOLD = "does not hold here"
CANNOT_TEST = "cannot be tested here"
NOT_MEASURED = "not measured yet"
NOT_WRITTEN = "not written yet"
# A claim with several tests gets the first of these that any of them got: one refuted part refutes the whole,
# whatever could not be tested beside it.
STRENGTH = (DOES_NOT_HOLD, CANNOT_TEST, IN_DIRECTION, HOLDS)


class Handed:
    """What a chapter hands in for its claims. Every name is checked against the rules when it is put."""

    def __init__(self, corner: str):
        self.corner = corner
        self._open = {claim.id: [test.measured for test in claim.tests] for claim in declared(corner).claims}
        self.measurements: dict[str, dict[str, Measurement]] = {identifier: {} for identifier in self._open}
        self.missing: dict[str, dict[str, str]] = {identifier: {} for identifier in self._open}

    def put(self, identifier: str, name: str, found: Measurement | str | None) -> None:
        """Hand in one number under the name that a rule gives it, or the reason why there is none.

        {GIL} and {FREE_THREADED} in a name stand for the labels of the chapter pair. Raises ValueError for a claim or a
        name that the corner's claims.toml does not have, or that was put already.
        """
        name = in_words(name)
        if name not in self._open.get(identifier, []):
            known = "; ".join(self._open.get(identifier, [])) or "none left"
            raise ValueError(
                f"notebooks/{self.corner}/claims.toml has no test {name!r} for {identifier} (open: {known})"
            )
        self._open[identifier].remove(name)
        if isinstance(found, Measurement):
            self.measurements[identifier][name] = found
        else:
            self.missing[identifier][name] = found or "was not measured"

    def complete(self) -> "Handed":
        """All of it, once every test has got a number or a reason. Raises ValueError with what was forgotten."""
        forgotten = [f"{identifier}: {name}" for identifier, names in self._open.items() for name in names]
        if forgotten:
            raise ValueError(f"notebooks/{self.corner}/claims.py hands in nothing for {'; '.join(forgotten)}")
        return self


def measured(session) -> Handed:
    """What a session's records say about the claims of its corner: `measurements` of notebooks/<corner>/claims.py."""
    return importlib.import_module(f"notebooks.{session.corner}.claims").measurements(session).complete()


def judge_test(test: Rule, measurement: Measurement) -> tuple[str, str]:
    """Verdict and reason for one test of a claim: see Rule."""
    interval, null = measurement.interval, test.null
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return CANNOT_TEST, "too few repetitions for an interval"
    if test.direction == "equal":
        low, high = null - test.tolerance, null + test.tolerance
        if low <= interval.low and interval.high <= high:
            return HOLDS, f"the interval lies within {null:g} ± {test.tolerance:g}"
        if interval.excludes(null) and (interval.low > high or interval.high < low):
            return DOES_NOT_HOLD, f"the interval lies outside {null:g} ± {test.tolerance:g}"
        return CANNOT_TEST, f"the interval is too wide to place it within {null:g} ± {test.tolerance:g}"
    sign = 1 if test.direction == "above" else -1
    effect = sign * (interval.value - null)
    on_its_side = sign * (interval.low - null) > 0 and sign * (interval.high - null) > 0
    # A claim without a number is a claim about the side only.
    published = 0.0 if test.published is None else abs(test.published - null)
    if on_its_side and effect >= measurement.mde:
        if test.published is None:
            return HOLDS, f"the interval lies {test.direction} {null:g}"
        slack = test.tolerance * published
        near = interval.low - slack <= test.published <= interval.high + slack
        if near:
            return (
                HOLDS,
                f"the interval meets the published {test.published:g} within {test.tolerance:.0%} of its effect",
            )
        return IN_DIRECTION, f"the effect has the published sign and another size than {test.published:g}"
    if test.published is not None and measurement.mde > published:
        return (
            CANNOT_TEST,
            f"this run could not find an effect below {measurement.mde:.3g}, the published one is {published:.3g}",
        )
    if on_its_side:
        return DOES_NOT_HOLD, "what was found is smaller than what this run can tell from nothing"
    return DOES_NOT_HOLD, "the interval does not lie on the claimed side"


def judge(claim: Claim, handed_in: dict | None) -> dict:
    """One row of the ledger. `handed_in`: what the claim's chapter wrote, or None."""
    row = {
        "id": claim.id,
        "chapter": claim.corner,
        "claim": claim.claim,
        "published": claim.published,
        "where": claim.where,
        "measured": {},
        "interval": {},
        "verdict": NOT_MEASURED if claim.corner else NOT_WRITTEN,
        "reason": "its chapter was not measured yet" if claim.corner else "its chapter is not written yet",
        "provenance": {},
    }
    if handed_in is None:
        return row
    row["provenance"] = handed_in["provenance"]
    verdicts = []
    for test in claim.tests:
        raw = handed_in["measurements"].get(test.measured)
        if raw is None:
            why = handed_in.get("missing", {}).get(test.measured, "was not measured")
            verdicts.append((CANNOT_TEST, f"{test.measured}: {why}"))
            continue
        measurement = Measurement(Interval(**raw["interval"]), raw["mde"], raw["unit"])
        row["measured"][test.measured] = measurement.interval.value
        row["interval"][test.measured] = [measurement.interval.low, measurement.interval.high]
        verdict, reason = judge_test(test, measurement)
        verdicts.append((verdict, f"{test.measured}: {reason}"))
    row["verdict"] = min((v for v, _ in verdicts), key=STRENGTH.index)
    row["reason"] = "; ".join(reason for _, reason in verdicts)
    if not handed_in["provenance"]["is_result"]:
        row["verdict"], row["reason"] = CANNOT_TEST, "smoke test: its figures are no result"
    return row


def rows_of(handed: Handed, provenance: dict) -> list[tuple[dict, dict]]:
    """For each claim of a corner, what is handed in and the judged row."""
    found = []
    for claim in declared(handed.corner).claims:
        handed_in = {
            "measurements": {name: asdict(m) for name, m in handed.measurements[claim.id].items()},
            "missing": handed.missing[claim.id],
            "provenance": provenance,
        }
        found.append((handed_in, judge(claim, handed_in)))
    return found


def hand_in(handed: Handed, provenance: dict) -> list[dict]:
    """Called by a chapter: the judged rows of its claims. What was handed in is kept if the press executes the page."""
    folder = os.environ.get(HAND_IN_FOLDER)
    rows = []
    for handed_in, row in rows_of(handed, provenance):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{row['id']}.json").write_text(json.dumps(handed_in, indent=1))
        rows.append(row)
    return rows


def collect(stale: dict[str, list[str]] | None = None) -> list[dict]:
    """Judge every claim from what lies beside the executed pages, write `ledger.json`, return its rows.

    stale: by corner, what has changed since its page was made; the row says so. Raises UserError if a chapter that was
    measured handed in nothing for one of its claims.
    """
    rows = []
    for claim in all_claims():
        executed = EXECUTED / claim.corner
        path = executed / CLAIMS / f"{claim.id}.json"
        handed_in = json.loads(path.read_text()) if claim.corner and path.exists() else None
        if handed_in is None and claim.corner and executed.exists():
            raise UserError(
                f"The chapter {claim.corner!r} handed in nothing for claim {claim.id}: "
                f"run `make chapter NAME={claim.corner}`, and have its notebook call chapter.verdicts."
            )
        rows.append({**judge(claim, handed_in), "stale": (stale or {}).get(claim.corner, [])})
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "ledger.json").write_text(json.dumps(rows, indent=1))
    return rows
