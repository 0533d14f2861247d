"""The ledger of claims: what was published, what was measured here, and the verdict of the rule.

Chapters hand in measurements; nobody hands in a verdict. The claims and their
rules stand in `book/claims.toml`.
"""

import json
import math
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from ffilab.errors import UserError
from ffilab.judge.statistics import Interval
from ffilab.paths import NOTEBOOKS, RESULTS, ROOT

# Where a chapter under execution hands in; the press accepts it only if the whole chapter succeeds.
HAND_IN_FOLDER = "FFILAB_HAND_IN"
CLAIMS = ROOT / "book" / "claims.toml"
HOLDS = "holds"
IN_DIRECTION = "holds in direction"
DOES_NOT_HOLD = "does not hold here"
CANNOT_TEST = "cannot be tested here"
NOT_WRITTEN = "not written yet"
# A claim with several tests gets the first of these that any of them got: one refuted part refutes the whole,
# whatever could not be tested beside it.
STRENGTH = (DOES_NOT_HOLD, CANNOT_TEST, IN_DIRECTION, HOLDS)


@dataclass(frozen=True)
class Measurement:
    """One measured number of a claim. `mde`: smallest distance from the null that the run could find."""

    interval: Interval
    mde: float
    unit: str


def claims() -> list[dict]:
    """All claims in ledger order."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"]


def claim(identifier: str) -> dict:
    """One claim. Raises KeyError if there is none of that id."""
    return next(c for c in claims() if c["id"] == identifier)


def judge_test(test: dict, measurement: Measurement) -> tuple[str, str]:
    """Verdict and reason for one test of a claim.

    A test is one of two kinds. `direction` "above" or "below": the value must lie
    on that side of `null`; it *holds* if its interval also meets `published`
    within `tolerance` (relative to the published effect), or has no `published` number. `direction` "equal": the
    whole interval must lie within `tolerance` (absolute) of `null`.
    """
    interval, null = measurement.interval, test["null"]
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return CANNOT_TEST, "too few repetitions for an interval"
    if test["direction"] == "equal":
        low, high = null - test["tolerance"], null + test["tolerance"]
        if low <= interval.low and interval.high <= high:
            return HOLDS, f"the interval lies within {null:g} ± {test['tolerance']:g}"
        if interval.excludes(null) and (interval.low > high or interval.high < low):
            return DOES_NOT_HOLD, f"the interval lies outside {null:g} ± {test['tolerance']:g}"
        return CANNOT_TEST, f"the interval is too wide to place it within {null:g} ± {test['tolerance']:g}"
    sign = 1 if test["direction"] == "above" else -1
    effect = sign * (interval.value - null)
    on_its_side = sign * (interval.low - null) > 0 and sign * (interval.high - null) > 0
    # A claim without a number is a claim about the side only.
    published = abs(test["published"] - null) if "published" in test else 0.0
    if on_its_side and effect >= measurement.mde:
        if "published" not in test:
            return HOLDS, f"the interval lies {test['direction']} {null:g}"
        slack = test["tolerance"] * published
        near = interval.low - slack <= test["published"] <= interval.high + slack
        if near:
            return (
                HOLDS,
                f"the interval meets the published {test['published']:g} within {test['tolerance']:.0%} of its effect",
            )
        return IN_DIRECTION, f"the effect has the published sign and another size than {test['published']:g}"
    if "published" in test and measurement.mde > published:
        return (
            CANNOT_TEST,
            f"this run could not find an effect below {measurement.mde:.3g}, the published one is {published:.3g}",
        )
    if on_its_side:
        return DOES_NOT_HOLD, "what was found is smaller than what this run can tell from nothing"
    return DOES_NOT_HOLD, "the interval does not lie on the claimed side"


def judge(entry: dict, handed_in: dict | None) -> dict:
    """One row of the ledger. `handed_in`: what the claim's chapter wrote, or None."""
    row = {
        "id": entry["id"],
        "chapter": entry["chapter"],
        "claim": entry["claim"],
        "published": entry["published"],
        "where": entry["where"],
        "measured": {},
        "interval": {},
        "verdict": NOT_WRITTEN,
        "reason": "its chapter is not written yet",
        "provenance": {},
    }
    if handed_in is None:
        return row
    row["provenance"] = handed_in["provenance"]
    verdicts = []
    for test in entry["test"]:
        raw = handed_in["measurements"].get(test["measured"])
        if raw is None:
            verdicts.append((CANNOT_TEST, f"{test['measured']} was not measured"))
            continue
        measurement = Measurement(Interval(**raw["interval"]), raw["mde"], raw["unit"])
        row["measured"][test["measured"]] = measurement.interval.value
        row["interval"][test["measured"]] = [measurement.interval.low, measurement.interval.high]
        verdict, reason = judge_test(test, measurement)
        verdicts.append((verdict, f"{test['measured']}: {reason}"))
    row["verdict"] = min((v for v, _ in verdicts), key=STRENGTH.index)
    row["reason"] = "; ".join(reason for _, reason in verdicts)
    if not handed_in["provenance"]["is_result"]:
        row["verdict"], row["reason"] = CANNOT_TEST, "smoke test: its figures are no result"
    return row


def hand_in(identifier: str, measurements: dict[str, Measurement], provenance: dict) -> dict:
    """Called by a chapter: write down what it measured for one claim; returns the judged row."""
    entry = claim(identifier)
    expected = {test["measured"] for test in entry["test"]}
    if unknown := set(measurements) - expected:
        raise ValueError(f"{identifier} has no test for {sorted(unknown)}")
    handed_in = {"measurements": {name: asdict(m) for name, m in measurements.items()}, "provenance": provenance}
    path = Path(os.environ.get(HAND_IN_FOLDER) or RESULTS / "claims") / f"{identifier}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(handed_in, indent=1))
    return judge(entry, handed_in)


def collect() -> list[dict]:
    """Judge every claim from what is on disk, write `ledger.json`, return its rows.

    Raises UserError if a chapter that exists handed in nothing for one of its claims.
    """
    rows = []
    for entry in claims():
        path = RESULTS / "claims" / f"{entry['id']}.json"
        handed_in = json.loads(path.read_text()) if path.exists() else None
        if handed_in is None and (NOTEBOOKS / f"{entry['chapter']}.ipynb").exists():
            raise UserError(
                f"The chapter {entry['chapter']!r} handed in nothing for claim {entry['id']}: "
                f"run `make chapter NAME={entry['chapter']}`, and have its notebook call ledger.hand_in."
            )
        rows.append(judge(entry, handed_in))
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "ledger.json").write_text(json.dumps(rows, indent=1))
    return rows


def accept(chapter: str, folder: Path) -> None:
    """Put what a successful chapter handed in into `folder` in place of all that it handed in earlier."""
    claimed = RESULTS / "claims"
    claimed.mkdir(parents=True, exist_ok=True)
    for entry in claims():
        if entry["chapter"] == chapter:
            (claimed / f"{entry['id']}.json").unlink(missing_ok=True)
    for path in folder.glob("*.json"):
        path.replace(claimed / path.name)
