"""The page of the studies that take long: what intervals were worth when builds, layouts and sessions were drawn anew."""

from pathlib import Path

from ffilab.judge import coverage as judged
from ffilab.judge.estimates import PREDICTION_LEVEL
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT, read_json

FOLDER = ROOT / "book" / "evidence"
STUDY = "python3 ffilab/bootstrap.py study "
# What an interval over layouts has to reach.
GOAL = 0.9
INTERVALS = {
    "over_layouts": "over layouts",
    "next_build": "the next build",
    "this_binary": "one binary",
}


def read(name: str, folder: Path = FOLDER) -> list[dict]:
    """Read the rows that a study left; nothing if it was not run."""
    path = folder / f"{name}.json"
    return read_json(path) if path.exists() else []


def coverage_page(sessions: list[dict], coverage: list[dict], levels: list[dict]) -> str:
    """The studies, with what they say in words: fresh sessions, those by which a rule was chosen, and the levels."""
    fresh = judged.rows(sessions)
    largest = [max(row["levels"], key=lambda level: row["levels"][level][0]) for row in levels]
    return filled(
        "coverage.md",
        study=STUDY,
        goal=GOAL,
        kinds=judged.KINDS,
        intervals=INTERVALS,
        prediction=PREDICTION_LEVEL,
        sessions=sessions,
        days={session["machine"]["date"][:10] for session in sessions},
        builds={build for session in sessions for ratio in session["ratios"].values() for build in ratio["layouts"]},
        fresh=fresh,
        shares={kind: [row[kind] for row in fresh if row[kind] is not None] for kind in judged.KINDS},
        coverage=coverage,
        honest=[row["honest"] for row in coverage if "honest" in row],
        company=[seen["company"] for row in coverage for seen in row.get("seen", [])],
        levels=levels,
        largest={level: largest.count(level) for level in dict.fromkeys(largest)},
        alarms=sum(row["copies"]["p"] < 0.05 / len(levels) for row in levels),
        mean=lambda values: sum(values) / len(values),
        percent=lambda value, digits=0: f"{value:.{digits}%}",
    )
