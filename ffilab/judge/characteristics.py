"""Operating characteristics of the rules: how often which verdict is given, by what is true.

It simulates sessions in which a claim is exactly as published, has half the size, no effect, or the
wrong sign, and judges them on the path of every real session. `book/evidence/operating_characteristics.json` keeps the table.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

from ffilab import machine
from ffilab.judge import claims, ledger, verdicts
from ffilab.judge.rules import NO, YES
from ffilab.judge.simulation import TRUTHS, simulate
from ffilab.paths import ROOT, read_json

EVIDENCE = ROOT / "book" / "evidence" / "operating_characteristics.json"
COMMAND = "python3 ffilab/bootstrap.py study characteristics"
# What the table is held to, at the plan of `full`.
MAX_WRONG, MIN_RIGHT = 0.01, 0.8
DECIDED = (YES, NO)


def rows(corner: str, truth: str, budget: str, seed: int, noise: float = 1) -> dict[str, dict]:
    """The ledger's rows of one simulated session, by claim; only of claims that are tested."""
    session = simulate(corner, truth, budget, seed, noise)
    provenance = {"is_result": True, "minutes": None}
    # What is simulated holds no controls: these rows are about the rules.
    judged = ledger.rows_of(ledger.measured(session), provenance, [])
    return {row["id"]: row for _, row in judged if row["verdict"] in (*verdicts.TESTED, verdicts.CANNOT_TEST)}


def is_wrong(row: dict, right: dict) -> bool:
    """Does any part of a verdict say the opposite of what an endless run without noise says?"""
    return any(
        part["verdict"] in DECIDED and true["verdict"] in DECIDED and part["verdict"] != true["verdict"]
        for part, true in zip(row["parts"], right["parts"], strict=True)
    )


def table(corners: list[str], runs: int, budget: str = "full", seed: int = 0) -> list[dict]:
    """One object for each claim and truth: claim, truth, runs, verdicts (shares), right, wrong (share), provenance.

    right: the verdict of the same path without noise, which is what a run would reach in the long run. wrong: share of
    runs in which a part of the claim got the opposite of its right answer.
    """
    provenance = {"command": COMMAND, "commit": machine.commit(), "budget": budget, "seed": seed}
    results = []
    for corner in corners:
        for number, truth in enumerate(TRUTHS):
            right = rows(corner, truth, budget, seed, noise=0)
            shares, wrong = defaultdict(Counter), Counter()
            for run in range(runs):
                for identifier, row in rows(corner, truth, budget, seed + 10_000 * number + run + 1).items():
                    shares[identifier][row["verdict"]] += 1
                    wrong[identifier] += is_wrong(row, right[identifier])
            results += [
                {
                    "claim": identifier,
                    "truth": truth,
                    "runs": runs,
                    "verdicts": {verdict: count / runs for verdict, count in shares[identifier].most_common()},
                    "right": row["verdict"],
                    "wrong": wrong[identifier] / runs,
                    "provenance": provenance,
                }
                for identifier, row in right.items()
            ]
    return in_order(results)


def falls_short(row: dict) -> bool:
    """Is the right verdict given too seldom at this plan?"""
    return row["verdicts"].get(row["right"], 0.0) < MIN_RIGHT


def kept() -> list[dict]:
    """The table as it was kept."""
    return read_json(EVIDENCE)


def keep(results: list[dict], replace_all: bool = True, path: Path = EVIDENCE) -> None:
    """Write the table; of the one that was kept, rows of other claims stay unless all are replaced."""
    fresh = {row["claim"] for row in results}
    others = [] if replace_all or not path.exists() else [row for row in kept() if row["claim"] not in fresh]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in in_order([*others, *results])]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def in_order(results: list[dict]) -> list[dict]:
    """By claim, and from the published effect to the wrong sign."""
    return sorted(results, key=lambda row: (claims.place(row["claim"]), list(TRUTHS).index(row["truth"])))


def report(results: list[dict]) -> str:
    """What the table is held to, and what falls short, in words."""
    wrong = [row for row in results if row["wrong"] > MAX_WRONG]
    short = [row for row in results if falls_short(row)]
    lines = [
        f"{len(results)} rows; wrong in more than {MAX_WRONG:.0%} of the runs: {len(wrong)}; right in fewer than {MIN_RIGHT:.0%}: {len(short)}"
    ]
    lines += [
        f"  {row['claim']:4} {row['truth']}: right is {row['right']!r} ({row['verdicts'].get(row['right'], 0):.1%}); wrong {row['wrong']:.1%}"
        for row in in_order([*wrong, *(row for row in short if row not in wrong)])
    ]
    return "\n".join(lines)
